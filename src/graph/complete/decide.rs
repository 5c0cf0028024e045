//! The next step of a completion, by what it has seen so far. No I/O, no clock.

use crate::account::Mode;
use crate::functions::AuthorSeen;

/// The mode that `author_look` gives for an account that is deleted, or being deleted.
const AUTHOR_GONE: u8 = b'X';

/// Facts seen of the author's side.
#[derive(Debug)]
pub(super) struct UnmarkFacts {
    /// The followers' edges are written for it.
    pub(super) writes: bool,
    pub(super) are_written: bool,
    /// The author's mode and newest posts.
    pub(super) seen: Option<AuthorSeen>,
    /// All that was seen and written is on replicas.
    pub(super) lasts: bool,
}

#[derive(Debug)]
pub(super) enum UnmarkStep<'a> {
    WriteEdges,
    AskAuthor,
    Fence,
    AuthorGone,
    /// The marks are right.
    Leave,
    /// Takes the marks away where homes hold what they stood for, or are brought to.
    Settle(&'a AuthorSeen),
}

impl UnmarkFacts {
    /// `have_edges`: they were just read, and are spread. Then `settle` looks at them itself, so none needs to be
    /// written, which might bring one back that has gone meanwhile.
    pub(super) fn new(have_edges: bool) -> Self {
        Self { writes: !have_edges, are_written: false, seen: None, lasts: false }
    }

    /// Of an author's side that was done in one call: the edge was written, and then `seen` was.
    pub(super) fn joined(seen: AuthorSeen) -> Self {
        Self { writes: true, are_written: true, seen: Some(seen), lasts: false }
    }

    pub(super) fn step(&self) -> UnmarkStep<'_> {
        // H16: before the author is asked: what is posted from then on finds the edges, and the ids are all before.
        if self.writes && !self.are_written {
            return UnmarkStep::WriteEdges;
        }
        let Some(seen) = &self.seen else { return UnmarkStep::AskAuthor };
        // H17, H18: edge and mode last before the mark goes, or a failover of the author's server takes them back.
        if !self.lasts {
            return UnmarkStep::Fence;
        }
        if seen.mode == AUTHOR_GONE {
            return UnmarkStep::AuthorGone;
        }
        // H26: whoever is pulled keeps its mark.
        if Mode::from_letter(seen.mode) != Mode::Push {
            return UnmarkStep::Leave;
        }
        UnmarkStep::Settle(seen)
    }

    /// Whether a mark is left without a call in its reader's bucket, whose home has that floor: leaving one is always
    /// right, so there is no need to ask where the ids don't reach. But who has written an edge must hear that the mark
    /// has changed.
    pub(super) fn leaves(&self, floor: Option<u64>, may_drop: bool) -> bool {
        let reaches = |floor| self.seen.as_ref().is_some_and(|seen| seen.reach <= floor);
        !self.writes && !may_drop && floor.is_some_and(|floor| !reaches(floor))
    }
}

/// Picks those of an author's newest posts (newest first) that a home with that floor has to hold; without a home all.
pub(super) fn above(ids: &[u64], floor: Option<u64>) -> &[u64] {
    &ids[..ids.partition_point(|id| floor.is_none_or(|floor| *id > floor))]
}

#[cfg(test)]
mod tests;
