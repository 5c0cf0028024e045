//! Reading a page: what its sources have, then posts and authors; more of both as long as the page isn't full. Here is what
//! all timelines have in common.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::Timelines;
use super::around;
use super::cursor::Cursor;
use super::filter::{
    HiddenBecause, PostFilter, Rules, passes, shown_at_home, shown_on_list, shown_on_profile,
    unwanted_on_lists,
};
use super::load::{Loaded, named};
use super::merge::Direction;
use super::page::{Page, PagePost, Query, Timeline};
use super::sources::Sources;
use super::view::View;
use crate::error::{Error, Result};
use crate::ids::{AccountId, IdMap, PostId};
use crate::meters;
use crate::reader::{Current, ReaderState};
use crate::settings::PAGE_LEN_MAX;

/// Tries of one read; each begins anew because the reader's state has changed. The last one doesn't ask whether it has.
const TRIES_MAX: usize = 4;
/// Rounds in which sources are asked for more; then the page ends early, with a cursor that has moved.
pub(super) const ROUNDS_MAX: usize = 24;
/// Posts that a page of a list looks at before it asks for no more: others put them there, and they may all be hidden.
const LOOKED_AT_MAX: usize = 300;

/// So long a page waits for its home to be filled; usually that takes a few milliseconds.
const FILL_MAX: Duration = Duration::from_millis(200);

/// What a try came to.
pub(super) enum Try {
    Page(Page),
    /// The reader's state has changed meanwhile.
    Again,
    /// There is no home, and it has to be filled first.
    Homeless,
}

/// An entry that was looked at, and what became of it.
pub(crate) type Judged = (PostId, AccountId, Result<(), HiddenBecause>);

/// Reads a page.
pub(crate) async fn read(
    timelines: &Arc<Timelines>,
    filter: Option<&dyn PostFilter>,
    reader: AccountId,
    query: &Query,
) -> Result<Page> {
    Ok(read_or_explain(timelines, filter, reader, query, false).await?.0)
}

/// Reads a page as [`read`] does, and tells of each entry that it met why it shows or not. Changes nothing.
pub(crate) async fn explain(
    timelines: &Arc<Timelines>,
    filter: Option<&dyn PostFilter>,
    reader: AccountId,
    query: &Query,
) -> Result<(Page, Vec<Judged>)> {
    let (page, judged) = read_or_explain(timelines, filter, reader, query, true).await?;
    Ok((page, judged.unwrap_or_default()))
}

async fn read_or_explain(
    timelines: &Arc<Timelines>,
    filter: Option<&dyn PostFilter>,
    reader: AccountId,
    query: &Query,
    explains: bool,
) -> Result<(Page, Option<Vec<Judged>>)> {
    let limit = query.limit.unwrap_or(timelines.settings.page_length);
    if limit == 0 || limit > PAGE_LEN_MAX {
        return Err(Error::invalid(format!("a page of {limit} posts: from 1 to {PAGE_LEN_MAX}")));
    }
    around::check(query)?;
    let query = &Query { hydrate: query.hydrate || around::is_wanted(query), ..*query };
    let (mut may_fill, mut is_filling) = (!explains, false);
    for tried in 1..=TRIES_MAX {
        let mut reading = Reading::new(timelines, filter, reader, query, limit);
        reading.judged = explains.then(Vec::new);
        reading.sources.asks_muted = explains;
        (reading.may_fill, reading.is_filling) = (may_fill, is_filling);
        let tried = match query.timeline {
            Timeline::Home if tried == TRIES_MAX => reading.home_of_outboxes().await?,
            Timeline::Home => reading.home().await?,
            Timeline::Profile { account, .. } => Try::Page(reading.profile(account).await?),
            Timeline::Mentions => Try::Page(reading.mentions().await?),
            Timeline::Tag(tag) => Try::Page(reading.tag(&tag).await?),
            Timeline::Replies(post) => Try::Page(reading.replies(post).await?),
        };
        if matches!(tried, Try::Homeless) {
            // Once, and not for long: in a slot that moves no home can be created, and the outboxes can be read.
            (may_fill, is_filling) = (false, true);
            drop(timeout(FILL_MAX, filled(timelines, reader)).await);
        }
        if let Try::Page(mut page) = tried {
            let judged = reading.judged.take();
            if let Some(current) = reading.current.take().filter(|_| query.hydrate) {
                let loaded = std::mem::take(&mut reading.loaded);
                around::add(View::under(timelines, filter, reader, current, loaded), query, &mut page)
                    .await?;
            }
            return Ok((page, judged));
        }
    }
    Err(Error::internal(format!(
        "the last of {TRIES_MAX} tries to read a page of account {reader} asked for another one"
    )))
}

/// One try of reading one page.
pub(super) struct Reading<'a> {
    pub(super) timelines: &'a Arc<Timelines>,
    pub(super) filter: Option<&'a dyn PostFilter>,
    pub(super) reader: AccountId,
    query: &'a Query,
    /// What is answered on a page of replies: of a plain repost its original.
    pub(super) answered: Option<PostId>,
    pub(super) limit: usize,
    pub(super) direction: Direction,
    pub(super) from: u64,
    pub(super) sources: Sources,
    pub(super) loaded: Loaded,
    shown: Vec<(PostId, AccountId)>,
    /// Posts that were loaded to see whether they show.
    looked_at: usize,
    /// Originals whose repost is on the page already, and that repost.
    reposted: IdMap<PostId, PostId>,
    /// Where the last post that was taken stands.
    last: Option<u64>,
    /// The reader, as the page found it.
    pub(super) current: Option<Current>,
    /// Whether a home that is missing is filled before the page is read: that costs less than to read the page out of all
    /// outboxes, and fill it all the same.
    pub(super) may_fill: bool,
    /// That was begun by an earlier try.
    pub(super) is_filling: bool,
    /// Of a read that only explains: what became of each entry. Such a read leaves no traces.
    pub(super) judged: Option<Vec<Judged>>,
}

impl<'a> Reading<'a> {
    fn new(
        timelines: &'a Arc<Timelines>,
        filter: Option<&'a dyn PostFilter>,
        reader: AccountId,
        query: &'a Query,
        limit: usize,
    ) -> Self {
        let (direction, from, until) = query.range.window(query.cursor);
        Self {
            timelines,
            filter,
            reader,
            query,
            answered: None,
            limit,
            direction,
            from,
            sources: Sources::new(direction, from, until),
            loaded: Loaded::default(),
            shown: Vec::with_capacity(limit),
            looked_at: 0,
            reposted: IdMap::default(),
            last: None,
            current: None,
            may_fill: false,
            is_filling: false,
            judged: None,
        }
    }

    /// Whether the page is full, or there is no more to show on it.
    pub(super) fn is_done(&self) -> bool {
        self.missing() == 0 || self.sources.merge.is_exhausted()
    }

    /// Whether the page is of a list of posts by anybody.
    fn is_list(&self) -> bool {
        matches!(self.query.timeline, Timeline::Mentions | Timeline::Tag(_) | Timeline::Replies(_))
    }

    /// Whether the page has loaded so much that doesn't show that it ends here, with a cursor that has moved (H64).
    pub(super) fn is_dear(&self) -> bool {
        self.is_list() && self.looked_at >= LOOKED_AT_MAX
    }

    /// Posts that the page still has room for.
    pub(super) fn missing(&self) -> usize {
        self.limit.saturating_sub(self.shown.len())
    }

    /// Takes what is safe to show, loads it, and keeps what the reader may see.
    pub(super) async fn show(&mut self, state: &ReaderState) -> Result<()> {
        while self.missing() > 0 {
            let taken = self.sources.merge.take(self.missing());
            if taken.is_empty() {
                return Ok(());
            }
            self.last = taken.last().map(|entry| entry.id);
            let entries = named(&taken);
            let (reader, is_list) = (self.reader, self.is_list());
            let unwanted = |author| is_list.then(|| unwanted_on_lists(reader, state, author)).flatten();
            let wanted: Vec<_> =
                entries.iter().copied().filter(|(_, author)| unwanted(*author).is_none()).collect();
            self.looked_at += wanted.len();
            self.loaded.entries(self.timelines, reader, &wanted).await?;
            for (id, author) in entries {
                let verdict = unwanted(author).map_or_else(|| self.judge(state, id, author), Err);
                if verdict.is_ok() {
                    self.shown.push((id, author));
                }
                if let Some(judged) = &mut self.judged {
                    judged.push((id, author, verdict));
                }
            }
        }
        Ok(())
    }

    fn judge(&mut self, state: &ReaderState, id: PostId, author: AccountId) -> Result<(), HiddenBecause> {
        let seen = self.loaded.seen(id, author).ok_or(HiddenBecause::Gone)?;
        let (met, header) = (seen.met, seen.met.post.header());
        match self.query.timeline {
            Timeline::Home => {
                let rules =
                    Rules { replies_to_strangers: self.timelines.settings.shows_replies_to_strangers };
                shown_at_home(rules, self.reader, state, seen)?;
            }
            Timeline::Profile { replies, reposts, .. } => {
                let is_answer = header.reply_to.is_some_and(|parent| parent.author != author);
                if (!replies && is_answer) || (!reposts && met.post.is_plain_repost()) {
                    return Err(HiddenBecause::NotAsked);
                }
                shown_on_profile(self.reader, state, seen)?;
            }
            Timeline::Mentions | Timeline::Tag(_) | Timeline::Replies(_) => {
                let belongs = match self.query.timeline {
                    Timeline::Mentions => met.post.mentions(self.reader),
                    Timeline::Tag(tag) => met.post.bears(&tag),
                    Timeline::Replies(_) => header.reply_to.map(|to| to.id) == self.answered,
                    Timeline::Home | Timeline::Profile { .. } => true,
                };
                // The list is a hint: the post itself says where it belongs, as of now.
                if !belongs {
                    return Err(HiddenBecause::NotListed);
                }
                shown_on_list(self.reader, state, seen)?;
            }
        }
        passes(self.filter, self.reader, seen)?;
        match met.post.passes_on() {
            Some(original) => self.collapse(original.id, id),
            None => Ok(()),
        }
    }

    /// Several reposts of one original show once on a page, at the newest: reading up, it takes the older one's place.
    fn collapse(&mut self, original: PostId, repost: PostId) -> Result<(), HiddenBecause> {
        let is_up = self.direction == Direction::Up;
        match self.reposted.get(&original).copied() {
            Some(_) if !is_up => return Err(HiddenBecause::RepostedAbove),
            Some(older) => self.shown.retain(|(id, _)| *id != older),
            None => {}
        }
        self.reposted.insert(original, repost);
        Ok(())
    }

    pub(super) fn page(&mut self) -> Page {
        let is_full = self.shown.len() >= self.limit;
        let reached = match self.last.filter(|_| is_full) {
            // The page is full: it goes on right behind the last post that was looked at.
            Some(last) => last,
            None => self.sources.merge.reached(),
        };
        let is_over = self.sources.merge.is_exhausted();
        let entries = std::mem::take(&mut self.shown);
        let mut posts: Vec<PagePost> =
            entries.iter().map(|(id, author)| self.page_post(*id, *author)).collect();
        if self.direction == Direction::Up {
            posts.reverse();
        }
        let newest = posts.first().map(|post| post.id);
        let (next, newer) = match self.direction {
            Direction::Down => ((!is_over).then(|| Cursor::below(reached)), newest),
            Direction::Up => (
                // Older than what this page began above is not its affair, but there is no other way to ask.
                posts.last().map(|post| Cursor::below(post.id.get())),
                if is_over { newest } else { PostId::from_u64(reached).ok().or(newest) },
            ),
        };
        Page { posts, next, newer }
    }

    fn page_post(&self, id: PostId, author: AccountId) -> PagePost {
        if self.query.hydrate { self.loaded.page_post(id, author) } else { PagePost::bare(id, author) }
    }
}

/// Fills a home, to the end also if nobody waits for that.
pub(super) fn filled(timelines: &Arc<Timelines>, reader: AccountId) -> JoinHandle<()> {
    let timelines = timelines.clone();
    tokio::spawn(async move {
        if let Err(e) = super::fill(&timelines, reader).await {
            tracing::debug!("the home of account {reader} could not be filled: {e}");
            meters::fill("failed");
        }
    })
}
