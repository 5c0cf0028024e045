//! A page that is being made: what shows on it so far. Pure: no I/O, no clock.

use super::cursor::Cursor;
use super::filter::HiddenBecause;
use super::merge::Direction;
use crate::ids::{IdMap, PostId};
use crate::post::PostRef;

/// An entry that was looked at, and what became of it.
pub(crate) type JudgedPost = (PostRef, Result<(), HiddenBecause>);

/// The posts that show on a page so far, in the order in which it is read.
#[derive(Debug)]
pub(super) struct PageDraft {
    direction: Direction,
    limit: usize,
    shown: Vec<PostRef>,
    /// Originals whose repost is on the page already, and that repost.
    reposted: IdMap<PostId, PostId>,
    /// Where the last post that was looked at stands.
    pub(super) last: Option<u64>,
    /// The post before which it ends: only the archive could tell what that is.
    pub(super) untold: Option<PostId>,
    /// Of a page that is explained: what became of each entry.
    judged: Option<Vec<JudgedPost>>,
}

/// A page as it was drafted: what shows, newest first, and where it ends.
#[derive(Debug)]
pub(super) struct DraftedPage {
    pub(super) posts: Vec<PostRef>,
    pub(super) next: Option<Cursor>,
    pub(super) newer: Option<PostId>,
    /// Whether it ends where only an archive that is away could tell what follows.
    pub(super) lacks_archive: bool,
    /// What became of each entry, if it is explained.
    pub(super) judged: Vec<JudgedPost>,
}

impl PageDraft {
    pub(super) fn new(direction: Direction, limit: usize, is_explained: bool) -> Self {
        let (shown, judged) = (Vec::with_capacity(limit), is_explained.then(Vec::new));
        Self { direction, limit, shown, reposted: IdMap::default(), last: None, untold: None, judged }
    }

    /// Posts that the page still has room for.
    pub(super) fn missing(&self) -> usize {
        self.limit.saturating_sub(self.shown.len())
    }

    /// Puts a post onto the page, if it shows.
    pub(super) fn take(&mut self, post: PostRef, verdict: Result<(), HiddenBecause>) {
        if verdict.is_ok() {
            self.shown.push(post);
        }
        if let Some(judged) = &mut self.judged {
            judged.push((post, verdict));
        }
    }

    /// Several reposts of one original show once on a page, at the newest: reading up, it takes the older one's place.
    pub(super) fn collapse(&mut self, original: PostId, repost: PostId) -> Result<(), HiddenBecause> {
        let is_up = self.direction == Direction::Up;
        match self.reposted.get(&original).copied() {
            Some(_) if !is_up => return Err(HiddenBecause::RepostedAbove),
            Some(older) => self.shown.retain(|post| post.id != older),
            None => {}
        }
        self.reposted.insert(original, repost);
        Ok(())
    }

    /// The page, of sources that have come to `reached`.
    pub(super) fn finish(self, (reached, is_over): (u64, bool)) -> DraftedPage {
        // Of a full page it goes on right behind the last post that was looked at.
        let is_full = self.shown.len() >= self.limit;
        let (reached, is_over) = match (self.last.filter(|_| is_full), self.untold) {
            (Some(last), _) => (last, is_over),
            (None, Some(untold)) if self.direction == Direction::Down => (untold.get() + 1, false),
            (None, Some(untold)) => (untold.get() - 1, false),
            (None, None) => (reached, is_over),
        };
        let mut posts = self.shown;
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
        DraftedPage { posts, next, newer, lacks_archive: false, judged: self.judged.unwrap_or_default() }
    }
}
