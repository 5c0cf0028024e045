//! A home by importance, page by page, each of another instance, while others write and things fail.

use std::time::Duration;

use super::Client;
use crate::verify::answers::PAGES_MAX;
use crate::verify::call::{Asked, Call};
use crate::verify::check::{Seen, Wrong};
use crate::verify::facts::Window;
use crate::verify::run::Ended;
use crate::verify::told::{Page, Reply};

/// How often a page is asked for that says without reason that the archive is away: an instance remembers that for a
/// while.
const ASKED_MAX: usize = 1_000;
const PAUSE: Duration = Duration::from_millis(15);

impl Client<'_> {
    /// All pages together are looked at once it is known what was going on meanwhile.
    pub(super) async fn scroll(&self, limit: usize) {
        let (run, reader, from) = (self.run, self.actor, self.run.now());
        let (mut all, mut cursor) = (Page::default(), None);
        for page in 0..PAGES_MAX {
            let Some((told, next)) = self.ranked_page(page, cursor, limit).await else { return };
            all.posts.extend(told.posts);
            all.lacks_archive |= told.lacks_archive;
            cursor = next;
            if cursor.is_none() {
                let asked = Asked { hydrate: true, ..Asked::home(reader, limit) };
                let window = Window { from, to: run.now() };
                let instance = self.instance % run.pool.len();
                run.note_scroll(Seen { asked, page: all, window, instance, is_refused: false });
                return;
            }
        }
        run.wrong(Wrong::Stuck, reader, None, format!("a home by importance has {PAGES_MAX} pages and more"));
    }

    /// A page, and the cursor behind it; nothing of whoever is gone.
    async fn ranked_page(
        &self,
        page: usize,
        cursor: Option<String>,
        limit: usize,
    ) -> Option<(Page, Option<String>)> {
        let (run, reader) = (self.run, self.actor);
        for n in 0..ASKED_MAX {
            let call = Call::Ranked { reader, after: cursor.clone(), limit };
            match run.call(self.instance + page + n, call).await {
                Ended::Done(Reply::Ranked(told, next))
                    if !told.lacks_archive || run.archive_may_be_away() =>
                {
                    return Some((told, next));
                }
                Ended::Done(_) => tokio::time::sleep(PAUSE).await,
                // What is stuck is told by the run.
                Ended::Stuck => return None,
                Ended::Refused { kind, .. } if kind == "NotFound" => return None,
                Ended::Refused { kind, message, .. } => {
                    let text = format!("page {page} by importance was refused: {kind}: {message}");
                    run.wrong(Wrong::Stuck, reader, None, text);
                    return None;
                }
            }
        }
        let text = format!("page {page} by importance lacks the archive, which is there");
        run.wrong(Wrong::Stuck, reader, None, text);
        None
    }
}
