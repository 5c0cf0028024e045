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
    /// How often a pause has begun: who was admitted before the last one says nothing new by failing.
    pauses: u64,
    until: Option<Instant>,
}

/// A leave to make a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AdmittedCall(u64);

impl Breaker {
    /// Lets a call be made at `now`, or not. Once a pause is over one call may, to see; the others wait for how it
    /// ends.
    pub(super) fn admit(&mut self, now: Instant) -> Option<AdmittedCall> {
        if let Some(until) = self.until {
            if now < until {
                return None;
            }
            self.until = Some(now + self.pause());
        }
        Some(AdmittedCall(self.pauses))
    }

    pub(super) fn has_answered(&mut self) {
        (self.failures, self.until) = (0, None);
    }

    /// A hundred calls that fail at one moment are one reason for a pause, not for the longest.
    pub(super) fn has_failed(&mut self, admission: AdmittedCall, now: Instant) {
        if admission.0 != self.pauses {
            return;
        }
        self.failures = self.failures.saturating_add(1);
        if self.failures >= FAILURES {
            self.until = Some(now + self.pause());
            self.pauses += 1;
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
        for _ in 0..FAILURES {
            let admitted = breaker.admit(now).unwrap();
            breaker.has_failed(admitted, now);
        }
        assert_eq!(breaker.admit(now), None);
        now += PAUSE_FIRST;
        let to_see = breaker.admit(now).unwrap();
        assert_eq!(breaker.admit(now), None, "and no more");
        breaker.has_failed(to_see, now);
        assert_eq!(breaker.admit(now + PAUSE_FIRST), None, "twice as long");
        assert!(breaker.admit(now + PAUSE_FIRST * 2).is_some());
        breaker.has_answered();
        assert!(breaker.admit(now).is_some() && breaker.admit(now).is_some());
    }

    #[test]
    fn calls_that_fail_together_make_one_pause_and_pauses_have_a_bound() {
        let (mut breaker, mut now) = (Breaker::default(), Instant::now());
        let admitted: Vec<AdmittedCall> = (0..100).filter_map(|_| breaker.admit(now)).collect();
        admitted.into_iter().for_each(|admission| breaker.has_failed(admission, now));
        assert!(breaker.admit(now + PAUSE_FIRST).is_some());
        for _ in 0..20 {
            now += PAUSE_MAX;
            let to_see = breaker.admit(now).unwrap();
            breaker.has_failed(to_see, now);
        }
        assert!(breaker.admit(now + PAUSE_MAX - Duration::from_secs(1)).is_none());
        assert!(breaker.admit(now + PAUSE_MAX).is_some());
    }
}
