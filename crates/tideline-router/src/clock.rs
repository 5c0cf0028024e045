//! Time: the one place that reads this machine's clocks, and what is made of those of the primaries.
//!
//! A tenant's time is the median of its primaries' clocks. Each is measured against the monotonic clock of this
//! machine, which no step moves: between two looks time goes on as it does, whatever one server's clock does, or this
//! machine's own (H81). Nothing but the median of an even number, and what is reported, depends on the latter.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Differences above this are reported, in microseconds.
pub(crate) const SKEW_US: i64 = 1_000_000;

/// This machine's monotonic clock, in microseconds since some moment of this process.
pub(crate) fn steady_us() -> i64 {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    i64::try_from(BEGAN.elapsed().as_micros()).unwrap_or(i64::MAX)
}

/// This machine's wall clock less its monotonic one, in microseconds.
pub(crate) fn wall_offset_us() -> i64 {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(wall.as_micros()).unwrap_or(i64::MAX) - steady_us()
}

/// A clock less this machine's monotonic one, in microseconds, once that is known.
#[derive(Debug)]
pub(crate) struct ClockOffset(AtomicI64);

impl Default for ClockOffset {
    fn default() -> Self {
        Self(AtomicI64::new(i64::MIN))
    }
}

impl ClockOffset {
    pub(crate) fn get(&self) -> Option<i64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|us| *us != i64::MIN)
    }

    pub(crate) fn set(&self, us: i64) {
        self.0.store(us, Ordering::Relaxed);
    }
}

/// The result of one look at a clock, all in microseconds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct ClockLook {
    /// That clock less this machine's monotonic one.
    offset: i64,
    /// By how much that may be wrong: half of the time between question and answer.
    within: i64,
    /// When it was taken, by the monotonic clock.
    at: i64,
}

impl ClockLook {
    /// Bounds how far two clocks part: one microsecond in so many. Clocks are slewed by no more.
    const DRIFT: i64 = 2_000;

    pub(crate) fn new(node_us: i64, before: i64, after: i64) -> Self {
        Self { offset: node_us - (before + after) / 2, within: (after - before + 1) / 2, at: after }
    }

    /// The one to go by. A look that took long tells less than a quick one before it: while the two agree, nothing
    /// changes. Went time by each look alone, it went forth and back by half of the time that a busy server takes to
    /// answer, and so did the ids of posts that one instance wrote one after the other (H100).
    pub(crate) fn or_better(self, newer: Self) -> Self {
        let within = self.within + (newer.at - self.at) / Self::DRIFT;
        let agree = (newer.offset - self.offset).abs() <= within + newer.within;
        if agree && within < newer.within { self } else { newer }
    }
}

/// The last look at one server's clock.
#[derive(Debug, Default)]
pub(crate) struct ServerClock(Mutex<Option<ClockLook>>);

impl ServerClock {
    /// The server's clock less this machine's monotonic one, in microseconds.
    pub(crate) fn offset(&self) -> Option<i64> {
        self.known().map(|look| look.offset)
    }

    pub(crate) fn learn(&self, look: ClockLook) {
        let mut known = self.known();
        *known = Some(known.map_or(look, |last| last.or_better(look)));
    }

    fn known(&self) -> MutexGuard<'_, Option<ClockLook>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The last time that was told, in microseconds. A look that knows better by less than [`SKEW_US`] turns no time back:
/// until it has come as far, time stands still. Else the first looks at busy servers put one instance's posts in
/// another order than it wrote them in (H100).
#[derive(Debug, Default)]
pub(crate) struct ToldTime(AtomicI64);

impl ToldTime {
    pub(crate) fn next(&self, us: i64) -> i64 {
        let last = self.0.fetch_max(us, Ordering::Relaxed);
        if last > us && last - us > SKEW_US {
            // The clocks were set.
            self.0.store(us, Ordering::Relaxed);
            return us;
        }
        last.max(us)
    }
}

/// The median of these clocks. Of an even number two stand in the middle: our own wall clock decides between them, so a
/// second one that is wrong moves nothing out of what they span.
pub(crate) fn median(mut offsets: Vec<i64>, own: i64) -> Option<i64> {
    if offsets.is_empty() {
        return None;
    }
    if offsets.len().is_multiple_of(2) {
        offsets.push(own);
    }
    let middle = offsets.len() / 2;
    Some(*offsets.select_nth_unstable(middle).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000_000;

    #[test]
    fn a_slow_answer_moves_nothing_and_a_clock_that_was_set_is_seen_at_once() {
        let ms = 1_000;
        let first = ClockLook::new(HOUR, 0, 4 * ms);
        let slow = ClockLook::new(HOUR + 1_000 * ms, 1_000 * ms, 1_400 * ms);
        assert_eq!(first.or_better(slow), first, "a slow one agrees with whatever lies within");
        // As exact as the first one has become by then.
        let quick = ClockLook::new(HOUR + 2_000 * ms, 2_000 * ms - ms, 2_000 * ms + ms);
        assert_eq!(first.or_better(quick), quick);
        let late = ClockLook::new(HOUR + 3_600_000 * ms, 3_600_000 * ms, 3_600_400 * ms);
        assert_eq!(first.or_better(late), late, "what is an hour old tells less than a slow one of now");
        for step in [-HOUR, -210 * ms, 210 * ms, HOUR] {
            let set = ClockLook::new(HOUR + 1_200 * ms + step, 1_000 * ms, 1_400 * ms);
            assert_eq!(first.or_better(set), set, "set by {step}");
        }
    }

    #[test]
    fn looks_that_take_long_now_and_then_turn_no_time_back() {
        let clock = ServerClock::default();
        let mut last = None;
        // Of an answer that takes 300 ms the server's look comes first thing, or last thing.
        let answers = [(2_000, 1_000), (300_000, 1_000), (300_000, 299_000)].into_iter().cycle();
        for ((took, at), asked) in answers.zip((0..10_000_000).step_by(100_000)) {
            clock.learn(ClockLook::new(HOUR + asked + at, asked, asked + took));
            let offset = clock.offset().unwrap();
            assert!(last.is_none_or(|last: i64| last.abs_diff(offset) <= 2_000), "{last:?}, then {offset}");
            last = Some(offset);
        }
    }

    #[test]
    fn time_stands_still_for_what_is_known_better_and_goes_back_only_if_clocks_were_set() {
        let told = ToldTime::default();
        let steps =
            [(HOUR, HOUR), (HOUR - 4_000, HOUR), (HOUR + 7, HOUR + 7), (HOUR - SKEW_US, HOUR - SKEW_US)];
        for (us, expected) in steps.into_iter().chain([(HOUR - SKEW_US - 1, HOUR - SKEW_US), (5, 5), (6, 6)])
        {
            assert_eq!(told.next(us), expected, "{us}");
        }
    }

    #[test]
    fn one_clock_of_three_moves_the_median_by_no_more_than_the_others_differ() {
        for wrong in [-HOUR, HOUR] {
            for own in [-HOUR, 0, HOUR] {
                assert_eq!(median(vec![5, wrong, 3], own), Some(if wrong < 0 { 3 } else { 5 }));
                let middle = median(vec![wrong, 5, 3, 4], own).unwrap();
                assert!((3..=5).contains(&middle), "{middle} with {wrong} and {own}");
            }
        }
    }

    #[test]
    fn of_two_clocks_our_own_outvotes_the_wrong_one_and_alone_it_moves_nothing() {
        assert_eq!(median(vec![0, HOUR], 7), Some(7));
        assert_eq!(median(vec![-HOUR, 0], 7), Some(0));
        assert_eq!(median(vec![1, 2], HOUR), Some(2));
        assert_eq!(median(vec![HOUR], 0), Some(HOUR));
        assert_eq!(median(Vec::new(), 0), None);
    }
}
