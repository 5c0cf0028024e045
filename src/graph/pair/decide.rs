//! The next step of `pair`, by what it has seen so far. No I/O, no clock.
//!
//! Each function is asked anew after each step: it says what to look at until it knows enough to act, and never acts on
//! what might not last.

use crate::functions::SettleAnswer;
use crate::graph::complete::CompletionOutcome;
use crate::nonce::Nonce;
use crate::reader::is_new_mark;

/// Tries to take an edge off that turns out to be newer than the look at its follow.
const REMOVALS_MAX: usize = 3;

/// An author's word on somebody who follows it, or asks to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AuthorWord {
    /// It is gone, or blocks the reader.
    Unwanted,
    Open,
    Locked,
}

/// Facts seen of a follow.
#[derive(Debug)]
pub(super) struct FollowFacts {
    pub(super) mark: Option<Nonce>,
    /// Asked after the follow was seen.
    pub(super) author: Option<AuthorWord>,
    pub(super) is_approved: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FollowStep {
    AskAuthor,
    AskApproval,
    EndUnwanted,
    /// Makes a request of it.
    EndUnapproved(Nonce),
    Complete(Nonce),
    /// All is as it should be, but for what is left of a request.
    Tidy,
}

impl FollowFacts {
    pub(super) fn step(&self) -> FollowStep {
        // H24: after the follow was seen, whatever was known before: X may have blocked R in between.
        let Some(word) = self.author else { return FollowStep::AskAuthor };
        if word == AuthorWord::Unwanted {
            return FollowStep::EndUnwanted;
        }
        let Some(mark) = self.mark else { return FollowStep::Tidy };
        // H85: it may have been locked between the decision to follow and the follow.
        let is_unasked = word == AuthorWord::Locked && is_new_mark(&mark);
        match self.is_approved {
            None if is_unasked => FollowStep::AskApproval,
            Some(false) if is_unasked => FollowStep::EndUnapproved(mark),
            _ => FollowStep::Complete(mark),
        }
    }
}

/// Facts seen of the edge of somebody who doesn't follow.
#[derive(Debug)]
pub(super) struct RemovalFacts {
    /// Of the follower's bucket: above those of all its follows, and it didn't follow then.
    pub(super) tick: u64,
    /// That it doesn't follow is on replicas.
    pub(super) lasts: bool,
    pub(super) edge: EdgeFacts,
    pub(super) tries: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EdgeFacts {
    Unknown,
    /// It is gone, or was never there.
    Gone,
    /// It was kept, for its score is not below the tick.
    Kept(u64),
    /// By now the follower follows.
    Wanted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RemovalStep {
    /// Waits until it lasts that the follower doesn't follow.
    Fence,
    RemoveBelow(u64),
    /// Looks again at whether it follows; if not, with a tick above that score.
    LookAbove(u64),
    Done,
    Later,
}

impl RemovalFacts {
    pub(super) fn new(tick: u64) -> Self {
        Self { tick, lasts: false, edge: EdgeFacts::Unknown, tries: 0 }
    }

    /// After another look, which saw no follow.
    pub(super) fn again(self, tick: u64) -> Self {
        Self { tries: self.tries + 1, ..Self::new(tick) }
    }

    pub(super) fn step(&self) -> RemovalStep {
        match self.edge {
            EdgeFacts::Gone => RemovalStep::Done,
            EdgeFacts::Wanted => RemovalStep::Later,
            // H88: it is of a newer follow; or of one that R's server has lost, and its clock is behind. Raised above
            // that one, it tells which.
            EdgeFacts::Kept(score) => RemovalStep::LookAbove(score),
            // It follows and unfollows all the time.
            EdgeFacts::Unknown if self.tries == REMOVALS_MAX => RemovalStep::Later,
            // H19: before the edge goes, or R follows again, without an edge.
            EdgeFacts::Unknown if !self.lasts => RemovalStep::Fence,
            // H12, H13: below a tick of R's own bucket, so the edge of a follow that came since stays.
            EdgeFacts::Unknown => RemovalStep::RemoveBelow(self.tick),
        }
    }
}

/// The outcome of a completion, and whether the follow was there when it was looked at after that.
#[derive(Debug)]
pub(super) struct CompletionFacts {
    pub(super) completed: CompletionOutcome,
    pub(super) still_follows: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CompletionStep {
    LookAgain,
    /// The mark stays: it is new no more.
    Confirm,
    /// The same, and looks whether the home's fill has come to a halt.
    ConfirmAndWait(Nonce),
    Done,
    Later,
}

impl CompletionFacts {
    pub(super) fn step(&self) -> CompletionStep {
        match (&self.completed, self.still_follows) {
            // An unfollow may have been settled before our edge was written: then nobody else takes that off.
            (CompletionOutcome::Pulled, None) => CompletionStep::LookAgain,
            (CompletionOutcome::Pulled, Some(true)) => CompletionStep::Confirm,
            // The same for the author's deletion, which may have turned all followers away before.
            (CompletionOutcome::Pulled, Some(false)) | (CompletionOutcome::AuthorGone, _) => {
                CompletionStep::Later
            }
            (CompletionOutcome::Settled(settled), _) => match settled.first() {
                // However long the fill takes, its author has let it follow.
                Some((_, SettleAnswer::Busy(nonce))) => CompletionStep::ConfirmAndWait(*nonce),
                // The edge that we wrote may be of a follow that is over.
                Some((_, SettleAnswer::Changed | SettleAnswer::NoEdge | SettleAnswer::Tree(_))) => {
                    CompletionStep::Later
                }
                Some((_, SettleAnswer::Left)) => CompletionStep::Confirm,
                Some((_, SettleAnswer::Done(_))) | None => CompletionStep::Done,
            },
        }
    }
}

/// Facts seen of a request.
#[derive(Debug)]
pub(super) struct FollowRequestFacts {
    pub(super) request: Nonce,
    pub(super) is_wanted: Option<bool>,
    /// Which request the author has approved, if it was asked for that, and has approved any.
    pub(super) approval: Option<Option<Nonce>>,
    /// The author is there, and locked no more. Asked anew once the request is listed.
    pub(super) is_open: Option<bool>,
    /// The author's last word is on replicas.
    pub(super) lasts: bool,
    pub(super) is_listed: bool,
    /// Another request stands there after this one was listed.
    pub(super) is_newer: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestStep {
    AskAuthor,
    AskApproval,
    AskLock,
    /// Waits until the author's last word lasts.
    Fence,
    Withdraw,
    Follow {
        is_approved: bool,
    },
    /// Has the author's list of who waits name it.
    List,
    /// Takes off the list what isn't asked any more, and looks whether another request has come.
    Tidy,
    Done,
    Later,
}

impl FollowRequestFacts {
    pub(super) fn new(request: Nonce) -> Self {
        let (is_wanted, approval, is_open, is_newer) = (None, None, None, None);
        Self { request, is_wanted, approval, is_open, lasts: false, is_listed: false, is_newer }
    }

    pub(super) fn step(&self) -> RequestStep {
        let Some(is_wanted) = self.is_wanted else { return RequestStep::AskAuthor };
        if !is_wanted {
            // H52: as for a follow: that it is unwanted must last.
            return self.lasting(RequestStep::Withdraw);
        }
        let Some(approval) = self.approval else { return RequestStep::AskApproval };
        // H22: not for another request, since taken back.
        if approval == Some(self.request) {
            // As for a follow that ends: what it begins by must last.
            return self.lasting(RequestStep::Follow { is_approved: true });
        }
        match (self.is_open, self.is_listed, self.is_newer) {
            (None, ..) => RequestStep::AskLock,
            // What was asked of it while it was locked needs no answer.
            (Some(true), false, _) => self.lasting(RequestStep::Follow { is_approved: false }),
            // Who unlocks goes through those that are listed. So the lock is asked again after that: one of the two
            // sees the other.
            (Some(false), false, _) => RequestStep::List,
            (Some(true), true, _) => self.lasting(RequestStep::Later),
            (Some(false), true, None) => RequestStep::Tidy,
            // H127: ours has come over it.
            (Some(false), true, Some(true)) => RequestStep::Later,
            (Some(false), true, Some(false)) => RequestStep::Done,
        }
    }

    fn lasting(&self, then: RequestStep) -> RequestStep {
        if self.lasts { then } else { RequestStep::Fence }
    }
}

#[cfg(test)]
mod tests;
