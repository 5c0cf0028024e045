//! Facts and the step that follows from them; and each sequence of steps against a small model of what it is for.

use proptest::prelude::*;

use super::*;
use crate::ids::AccountId;
use crate::reader::NEW_MARK;

const PLAIN: Nonce = *b"a mark..";
const NEW: Nonce = *b"new\0mark";
const OTHER: Nonce = *b"another.";

#[test]
fn a_follow_is_completed_only_once_its_author_was_asked_and_lets_it() {
    use AuthorWord::{Locked, Open, Unwanted};
    assert!(NEW.starts_with(&NEW_MARK));
    let table = [
        // Whatever was seen: the author first.
        (None, None, None, FollowStep::AskAuthor),
        (Some(PLAIN), None, Some(true), FollowStep::AskAuthor),
        (Some(NEW), None, None, FollowStep::AskAuthor),
        (None, Some(Unwanted), None, FollowStep::EndUnwanted),
        (Some(NEW), Some(Unwanted), Some(true), FollowStep::EndUnwanted),
        // Without a mark all is done.
        (None, Some(Open), None, FollowStep::Tidy),
        (None, Some(Locked), None, FollowStep::Tidy),
        // A plain mark: the author had said yes, or was asked before it was locked.
        (Some(PLAIN), Some(Open), None, FollowStep::Complete(PLAIN)),
        (Some(PLAIN), Some(Locked), None, FollowStep::Complete(PLAIN)),
        (Some(NEW), Some(Open), None, FollowStep::Complete(NEW)),
        (Some(NEW), Some(Locked), None, FollowStep::AskApproval),
        (Some(NEW), Some(Locked), Some(true), FollowStep::Complete(NEW)),
        (Some(NEW), Some(Locked), Some(false), FollowStep::EndUnapproved(NEW)),
    ];
    for (mark, author, is_approved, step) in table {
        let facts = FollowFacts { mark, author, is_approved };
        assert_eq!(facts.step(), step, "{facts:?}");
    }
}

#[test]
fn what_a_completion_comes_to_is_looked_at_again_where_its_edge_may_be_of_no_follow() {
    let reader = AccountId::new(7).unwrap();
    let settled = |settled| CompletionOutcome::Settled(vec![(reader, settled)]);
    let table = [
        (CompletionOutcome::AuthorGone, None, CompletionStep::Later),
        (CompletionOutcome::Pulled, None, CompletionStep::LookAgain),
        (CompletionOutcome::Pulled, Some(true), CompletionStep::Confirm),
        (CompletionOutcome::Pulled, Some(false), CompletionStep::Later),
        (settled(SettleAnswer::Done(None)), None, CompletionStep::Done),
        (settled(SettleAnswer::Done(Some((PLAIN, OTHER)))), None, CompletionStep::Done),
        (settled(SettleAnswer::Left), None, CompletionStep::Confirm),
        (settled(SettleAnswer::Busy(OTHER)), None, CompletionStep::ConfirmAndWait(OTHER)),
        (settled(SettleAnswer::Changed), None, CompletionStep::Later),
        (settled(SettleAnswer::NoEdge), None, CompletionStep::Later),
        (settled(SettleAnswer::Tree(Vec::new())), None, CompletionStep::Later),
        (CompletionOutcome::Settled(Vec::new()), None, CompletionStep::Done),
    ];
    for (completed, still_follows, step) in table {
        let facts = CompletionFacts { completed, still_follows };
        assert_eq!(facts.step(), step, "{facts:?}");
    }
}

#[test]
fn an_edge_that_is_not_below_the_tick_is_looked_at_above_its_own_and_not_for_ever() {
    let mut facts = RemovalFacts::new(5);
    for tick in [5, 9, 13] {
        assert_eq!(facts.step(), RemovalStep::Fence, "{facts:?}");
        facts.lasts = true;
        assert_eq!(facts.step(), RemovalStep::RemoveBelow(tick));
        facts.edge = EdgeFacts::Kept(tick + 3);
        assert_eq!(facts.step(), RemovalStep::LookAbove(tick + 3));
        facts = facts.again(tick + 4);
    }
    assert_eq!(facts.step(), RemovalStep::Later);
    assert_eq!(RemovalFacts { edge: EdgeFacts::Gone, ..facts }.step(), RemovalStep::Done);
}

/// An event that may happen beside a removal, before any of its steps.
#[derive(Debug, Clone, Copy)]
enum Beside {
    Nothing,
    /// The reader follows, and its edge is written.
    Follows,
    Unfollows,
    /// The reader's server fails over: what is not on replicas is lost, the last ticks too.
    FailsOver,
}

/// A reader's bucket, and its edge in the author's.
#[derive(Debug, Clone, Copy, Default)]
struct Pair {
    follows: Option<u64>,
    last_tick: u64,
    /// What replicas have of these two.
    replicated: (Option<u64>, u64),
    life: u32,
    edge: Option<u64>,
}

impl Pair {
    fn beside(&mut self, what: Beside) {
        match what {
            Beside::Nothing => {}
            Beside::Follows => {
                self.last_tick += 1;
                self.follows.get_or_insert(self.last_tick);
                // Acknowledged once it is on replicas; the edge only grows.
                self.replicated = (self.follows, self.last_tick);
                self.edge = self.edge.max(self.follows);
            }
            Beside::Unfollows => self.follows = None,
            Beside::FailsOver => {
                (self.follows, self.last_tick) = self.replicated;
                self.life += 1;
            }
        }
    }

    /// `None`: it follows.
    fn look(&mut self, above: u64) -> Option<u64> {
        if self.follows.is_some() {
            return None;
        }
        self.last_tick = self.last_tick.max(above) + 1;
        Some(self.last_tick)
    }

    fn remove_below(&mut self, tick: u64) -> EdgeFacts {
        match self.edge {
            Some(score) if score >= tick => EdgeFacts::Kept(score),
            _ => {
                self.edge = None;
                EdgeFacts::Gone
            }
        }
    }
}

fn beside() -> impl Strategy<Value = Vec<Beside>> {
    use Beside::{FailsOver, Follows, Nothing, Unfollows};
    proptest::collection::vec(
        prop_oneof![4 => Just(Nothing), 2 => Just(Follows), 2 => Just(Unfollows), 1 => Just(FailsOver)],
        16,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    /// H12, H13, H19, H88: whatever happens beside it.
    #[test]
    fn an_edge_goes_only_once_it_lasts_that_nobody_follows_and_below_a_tick_of_the_followers_bucket(
        beside in beside(),
        // An edge that its follow's server has lost, perhaps of a time that was ahead.
        stray in proptest::option::of(0_u64..40),
    ) {
        let mut pair = Pair { edge: stray, ..Pair::default() };
        let Some(tick) = pair.look(0) else { unreachable!("it doesn't follow yet") };
        let (mut facts, mut seen_in) = (RemovalFacts::new(tick), pair.life);
        for what in beside {
            let had = pair.edge;
            pair.beside(what);
            if pair.follows.is_some() && had.is_some() && matches!(what, Beside::FailsOver) {
                // The edge of a follow that has come back by a failover must be there still.
                prop_assert!(pair.edge.is_some(), "{pair:?}");
            }
            match facts.step() {
                RemovalStep::Fence if pair.life != seen_in => return Ok(()),
                RemovalStep::Fence => {
                    pair.replicated = (pair.follows, pair.last_tick);
                    facts.lasts = true;
                }
                RemovalStep::RemoveBelow(tick) => facts.edge = pair.remove_below(tick),
                RemovalStep::LookAbove(score) => match pair.look(score) {
                    None => facts.edge = EdgeFacts::Wanted,
                    Some(tick) => (facts, seen_in) = (facts.again(tick), pair.life),
                },
                RemovalStep::Done => {
                    prop_assert!(facts.edge == EdgeFacts::Gone);
                    break;
                }
                RemovalStep::Later => break,
            }
        }
        // A failover now, too, brings nobody back whose edge has gone.
        pair.beside(Beside::FailsOver);
        prop_assert!(pair.follows.is_none() || pair.edge.is_some(), "follows without an edge: {pair:?}");
    }

    /// H22, H52, H122, H127: what is done is what the author's last word says, and that lasts.
    #[test]
    fn a_request_ends_only_by_a_word_of_its_author_that_lasts(
        is_wanted: bool,
        approval in proptest::option::of(prop_oneof![Just(PLAIN), Just(OTHER)]),
        locks: [bool; 2],
        is_newer: bool,
    ) {
        let mut facts = FollowRequestFacts::new(PLAIN);
        let (mut asked_lock, mut fenced, mut tidied) = (0, false, false);
        loop {
            let step = facts.step();
            match step {
                RequestStep::AskAuthor => (facts.is_wanted, fenced) = (Some(is_wanted), false),
                RequestStep::AskApproval => (facts.approval, fenced) = (Some(approval), false),
                RequestStep::AskLock => {
                    (facts.is_open, fenced) = (Some(!locks[asked_lock]), false);
                    asked_lock += 1;
                }
                RequestStep::Fence => (facts.lasts, fenced) = (true, true),
                RequestStep::List => {
                    prop_assert!(is_wanted && approval != Some(PLAIN) && locks[0] && !facts.is_listed);
                    (facts.is_listed, facts.is_open) = (true, None);
                }
                RequestStep::Tidy => {
                    prop_assert!(facts.is_listed && asked_lock == 2);
                    (facts.is_newer, tidied) = (Some(is_newer), true);
                }
                RequestStep::Withdraw => {
                    prop_assert!(!is_wanted && fenced);
                    break;
                }
                RequestStep::Follow { is_approved } => {
                    prop_assert!(is_wanted && fenced && is_approved == (approval == Some(PLAIN)));
                    prop_assert!(is_approved || !locks[0]);
                    break;
                }
                // Nobody has said yes: then it is listed, and the lock was asked after that.
                RequestStep::Done => {
                    prop_assert!(locks == [true; 2] && tidied && !is_newer);
                    break;
                }
                RequestStep::Later => {
                    prop_assert!(asked_lock == 2 && (!locks[1] && fenced || tidied && is_newer));
                    break;
                }
            }
        }
    }
}
