//! One count, as an instance knows it: what all have counted, as it was last told, and what it has counted since. Pure.

use super::quota::Quota;
use crate::http::{RateStanding, Timestamp};

/// So much of a limit, as a part of it, is brought in at once.
const PORTION: u32 = 20;
/// The time after which what was counted is brought in, whatever there is of it.
const BRING_IN_AFTER_MS: u64 = 5_000;
/// So long nothing is brought in after that has failed.
const AFTER_FAILURE_MS: u64 = 1_000;

/// Counts that are to be brought in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PendingCounts {
    /// The span in which it was counted.
    pub(super) span: u64,
    pub(super) more: u32,
    /// Whether what is answered decides: whoever counts waits for it.
    pub(super) decides: bool,
}

/// The outcome of bringing something in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BringingOutcome {
    /// So many were counted then, by all.
    Counted(u64),
    /// Nothing was counted.
    NotCounted,
    /// Nobody knows whether it was. It isn't sent again, or it would count twice.
    Unknown,
}

#[derive(Debug, Default)]
pub(super) struct Tally {
    /// The span that all this is of.
    span: u64,
    /// What all have counted, as was last answered.
    known: u64,
    /// What this instance has counted since.
    pending: u32,
    /// What is being brought in.
    sending: u32,
    /// When something was brought in last, or that failed.
    asked_ms: Option<u64>,
    has_failed: bool,
}

impl Tally {
    /// Tells how much is left, by what is known here.
    pub(super) fn standing(&self, quota: Quota, now_ms: u64) -> RateStanding {
        let span = quota.span_at(now_ms).max(self.span);
        let used = if span == self.span { self.used() } else { 0 };
        let left = u64::from(quota.most).saturating_sub(used);
        RateStanding {
            most: quota.most,
            remaining: u32::try_from(left).unwrap_or(quota.most),
            resets: Timestamp(quota.end_of(span)),
        }
    }

    fn used(&self) -> u64 {
        self.known + u64::from(self.pending) + u64::from(self.sending)
    }

    /// Counts one more; says what is to be brought in now.
    pub(super) fn count(&mut self, quota: Quota, now_ms: u64) -> Option<PendingCounts> {
        let span = quota.span_at(now_ms);
        // A clock that goes back a little counts for the span that had begun.
        if span > self.span {
            *self = Self { span, ..Self::default() };
        }
        let portion = quota.most / PORTION;
        let decides = portion <= 1;
        self.pending = self.pending.saturating_add(1);
        let since_ms = self.asked_ms.map_or(u64::MAX, |asked| now_ms.saturating_sub(asked));
        let is_due = match (self.has_failed, decides) {
            (true, _) => since_ms >= AFTER_FAILURE_MS && (decides || self.sending == 0),
            (false, true) => true,
            (false, false) => self.sending == 0 && (self.pending >= portion || since_ms >= BRING_IN_AFTER_MS),
        };
        is_due.then(|| {
            let more = std::mem::take(&mut self.pending);
            self.sending = self.sending.saturating_add(more);
            self.asked_ms = Some(now_ms);
            PendingCounts { span: self.span, more, decides }
        })
    }

    /// Takes in what became of it. What was of another span is of no interest any more.
    pub(super) fn brought(&mut self, brought: PendingCounts, outcome: BringingOutcome) {
        if brought.span != self.span {
            return;
        }
        self.sending = self.sending.saturating_sub(brought.more);
        self.has_failed = !matches!(outcome, BringingOutcome::Counted(_));
        match outcome {
            // Answers may overtake each other.
            BringingOutcome::Counted(total) => self.known = self.known.max(total),
            BringingOutcome::NotCounted => self.pending = self.pending.saturating_add(brought.more),
            BringingOutcome::Unknown => self.known += u64::from(brought.more),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    /// A step of several instances that count one thing.
    #[derive(Debug, Clone)]
    enum Step {
        /// Somebody does it, at one of them.
        Do(usize),
        /// The oldest that is on its way arrives: well, not at all, or nobody hears of it.
        Arrive(u8),
        Wait(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            8 => (0..3usize).prop_map(Step::Do),
            4 => (0..8u8).prop_map(Step::Arrive),
            1 => (0..20_000u64).prop_map(Step::Wait),
        ];
        proptest::collection::vec(step, 0..400)
    }

    /// Counters by their spans, as all instances share them.
    #[derive(Default)]
    struct World {
        stored: HashMap<u64, u64>,
        under_way: Vec<(usize, PendingCounts)>,
    }

    impl World {
        fn arrive(&mut self, tallies: &mut [Tally], how: u8) {
            if self.under_way.is_empty() {
                return;
            }
            let (at, brought) = self.under_way.remove(0);
            let outcome = match how {
                0 => BringingOutcome::NotCounted,
                1 => BringingOutcome::Unknown,
                _ => {
                    let total = self.stored.entry(brought.span).or_default();
                    *total += u64::from(brought.more);
                    BringingOutcome::Counted(*total)
                }
            };
            tallies[at].brought(brought, outcome);
        }
    }

    proptest! {
        /// Each instance alone never lets more through than the limit; and nobody is refused as long as all together
        /// have let through less.
        #[test]
        fn instances_let_through_about_as_much_as_a_limit_says(steps in steps(), most in 1u32..120) {
            let quota = Quota { most, span_s: 30 };
            let mut tallies: [Tally; 3] = Default::default();
            let (mut world, mut now_ms) = (World::default(), 1_000_000);
            // A naive model: who did what in which span, and of what nobody knows whether it was counted.
            let mut done: HashMap<(u64, usize), u64> = HashMap::new();
            let mut lost: HashMap<(u64, usize), u64> = HashMap::new();
            for step in steps {
                match step {
                    Step::Wait(ms) => now_ms += ms,
                    Step::Arrive(how) => {
                        if let (1, Some((at, brought))) = (how, world.under_way.first()) {
                            *lost.entry((brought.span, *at)).or_default() += u64::from(brought.more);
                        }
                        world.arrive(&mut tallies, how);
                    }
                    Step::Do(at) => {
                        let span = quota.span_at(now_ms);
                        let all: u64 = (0..3).filter_map(|by| done.get(&(span, by))).sum();
                        let standing = tallies[at].standing(quota, now_ms);
                        prop_assert_eq!(standing.resets.0, quota.end_of(span));
                        let own = done.get(&(span, at)).copied().unwrap_or_default();
                        if standing.remaining == 0 {
                            prop_assert!(all >= u64::from(most), "refused after {all} of {most}");
                            continue;
                        }
                        let lost = lost.get(&(span, at)).copied().unwrap_or_default();
                        prop_assert!(own < u64::from(most) + lost, "let through {own} of {most}");
                        *done.entry((span, at)).or_default() += 1;
                        let brought = tallies[at].count(quota, now_ms);
                        world.under_way.extend(brought.map(|brought| (at, brought)));
                    }
                }
            }
        }

        /// All counts arrive at once: no more than a portion of each instance is unknown to the others.
        #[test]
        fn what_all_count_is_off_by_a_portion_each(
            order in proptest::collection::vec(0..3usize, 0..600), most in 1u32..300
        ) {
            let quota = Quota { most, span_s: 3_600 };
            let mut tallies: [Tally; 3] = Default::default();
            let (mut world, mut through) = (World::default(), 0);
            for at in order {
                if tallies[at].standing(quota, 0).remaining == 0 {
                    continue;
                }
                through += 1;
                let brought = tallies[at].count(quota, 0);
                world.under_way.extend(brought.map(|brought| (at, brought)));
                while !world.under_way.is_empty() {
                    world.arrive(&mut tallies, 9);
                }
            }
            let portion = u64::from((most / PORTION).max(1));
            // Each may not have heard of the last portion of each of the others, and has counted one of its own.
            prop_assert!(through <= u64::from(most) + 3 * 2 * portion, "{through} of {most}");
        }
    }

    #[test]
    fn a_count_is_brought_in_by_portions_and_at_first() {
        let (quota, mut tally) = (Quota { most: 100, span_s: 300 }, Tally::default());
        let first = tally.count(quota, 0).unwrap();
        assert_eq!((first.more, first.decides), (1, false));
        // One is under way.
        assert!((0..9).all(|_| tally.count(quota, 0).is_none()));
        tally.brought(first, BringingOutcome::Counted(40));
        assert_eq!(tally.standing(quota, 0).remaining, 100 - 40 - 9);
        let next = tally.count(quota, 0).unwrap();
        assert_eq!(next.more, 10);
        tally.brought(next, BringingOutcome::NotCounted);
        assert_eq!(tally.standing(quota, 0).remaining, 50);
        // Not again at once; then all of it.
        assert_eq!(tally.count(quota, AFTER_FAILURE_MS - 1), None);
        assert_eq!(tally.count(quota, AFTER_FAILURE_MS).map(|brought| brought.more), Some(12));
        // The next span begins anew, whatever is still heard of the last one.
        let old = PendingCounts { span: 0, more: 12, decides: false };
        assert_eq!(tally.count(quota, 300_000).map(|brought| (brought.span, brought.more)), Some((1, 1)));
        tally.brought(old, BringingOutcome::Counted(99));
        assert_eq!(tally.standing(quota, 300_000).remaining, 99);
    }

    #[test]
    fn what_may_be_done_a_few_times_is_brought_in_each_time() {
        let (quota, mut tally) = (Quota { most: 5, span_s: 300 }, Tally::default());
        let (one, other) = (tally.count(quota, 0).unwrap(), tally.count(quota, 0).unwrap());
        assert!(one.decides && other.decides && (one.more, other.more) == (1, 1));
        tally.brought(other, BringingOutcome::Counted(5));
        tally.brought(one, BringingOutcome::Counted(4));
        assert_eq!(tally.standing(quota, 0).remaining, 0);
    }
}
