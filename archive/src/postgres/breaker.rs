//! Whether a server is worth asking, by how the last calls ended. Pure: moments are given.

use std::time::{Duration, Instant};

/// Failures in a row after which calls fail at once.
const FAILURES: u32 = 5;
/// For so long at first; twice as long after each further failure.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
/// At most for so long.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// A count of failures in a row, and until when nobody asks.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    failures: u32,
    until: Option<Instant>,
}

impl Breaker {
    /// Whether a call may be made at `now`. Once a pause is over one call may, to see; the others wait for how it ends.
    pub(super) fn admits(&mut self, now: Instant) -> bool {
        match self.until {
            Some(until) if now < until => false,
            Some(_) => {
                self.until = Some(now + self.pause());
                true
            }
            None => true,
        }
    }

    pub(super) fn has_answered(&mut self) {
        *self = Self::default();
    }

    pub(super) fn has_failed(&mut self, now: Instant) {
        self.failures = self.failures.saturating_add(1);
        if self.failures >= FAILURES {
            self.until = Some(now + self.pause());
        }
    }

    fn pause(&self) -> Duration {
        let doublings = self.failures.saturating_sub(FAILURES).min(16);
        (PAUSE_FIRST * 2u32.saturating_pow(doublings)).min(PAUSE_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_some_failures_one_call_a_pause_is_made_until_one_is_answered() {
        let (mut breaker, mut now) = (Breaker::default(), Instant::now());
        for _ in 0..FAILURES - 1 {
            assert!(breaker.admits(now));
            breaker.has_failed(now);
        }
        assert!(breaker.admits(now));
        breaker.has_failed(now);
        assert!(!breaker.admits(now));
        now += PAUSE_FIRST;
        assert!(breaker.admits(now), "one to see");
        assert!(!breaker.admits(now), "and no more");
        breaker.has_failed(now);
        assert!(!breaker.admits(now + PAUSE_FIRST), "twice as long");
        assert!(breaker.admits(now + PAUSE_FIRST * 2));
        breaker.has_answered();
        assert!(breaker.admits(now) && breaker.admits(now));
    }

    #[test]
    fn a_pause_has_a_bound() {
        let (mut breaker, now) = (Breaker::default(), Instant::now());
        (0..100).for_each(|_| breaker.has_failed(now));
        assert!(breaker.admits(now + PAUSE_MAX));
    }
}
