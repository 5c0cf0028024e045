//! A home by importance, page by page, each of another instance, while others write and things fail.

use super::Client;
use crate::verify::call::{Asked, Call};
use crate::verify::check::{Seen, Wrong};
use crate::verify::facts::Window;
use crate::verify::run::Ended;
use crate::verify::told::{Page, Reply};

/// More pages than that no home has.
const PAGES_MAX: usize = 500;

impl Client<'_> {
    /// All pages together are looked at once it is known what was going on meanwhile.
    pub(super) async fn scroll(&self, limit: usize) {
        let (run, reader, from) = (self.run, self.actor, self.run.now());
        let (mut all, mut cursor) = (Page::default(), None);
        for page in 0..PAGES_MAX {
            let call = Call::Ranked { reader, cursor, limit };
            // Whoever is gone has no home, and what is stuck is told.
            let Ended::Done(Reply::Ranked(told, next)) = run.call(self.instance + page, call).await else {
                return;
            };
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
}
