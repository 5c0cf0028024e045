//! Messages while no node can tell who serves which slot: at once, then now and then, and once when it is over. Pure:
//! no I/O, no clock.

use std::time::{Duration, Instant};

/// Shortest time between two warnings: looks come several times a second while callers hint.
const BETWEEN_WARNINGS: Duration = Duration::from_secs(10);

/// A span during which looks found nobody to tell, and what was said of it.
#[derive(Debug, Default)]
pub(crate) struct MapOutage {
    /// The first look of it that failed.
    since: Option<Instant>,
    /// Whether a warning told of it.
    is_told: bool,
    /// The last warning, of this outage or of one before: a node that answers every other look is no news each time.
    warned: Option<Instant>,
}

impl MapOutage {
    /// Notes a look that failed. How long none has succeeded, if that is to be said now.
    pub(crate) fn failed(&mut self, now: Instant) -> Option<Duration> {
        let since = *self.since.get_or_insert(now);
        if self.warned.is_some_and(|warned| now.duration_since(warned) < BETWEEN_WARNINGS) {
            return None;
        }
        (self.warned, self.is_told) = (Some(now), true);
        Some(now.duration_since(since))
    }

    /// Notes a look that succeeded. How long none had, if a warning told of it.
    pub(crate) fn ended(&mut self, now: Instant) -> Option<Duration> {
        let is_told = std::mem::take(&mut self.is_told);
        self.since.take().filter(|_| is_told).map(|since| now.duration_since(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks at these moments, in tenths of a second, and whether they succeed: at which ones something is said.
    fn said(looks: impl IntoIterator<Item = (u64, bool)>) -> Vec<(u64, bool, u64)> {
        let (begin, mut outage) = (Instant::now(), MapOutage::default());
        let tenths = |lasted: Duration| u64::try_from(lasted.as_millis() / 100).unwrap();
        let say = |(at, succeeds)| {
            let now = begin + Duration::from_millis(100 * at);
            let lasted = if succeeds { outage.ended(now) } else { outage.failed(now) };
            lasted.map(|lasted| (at, succeeds, tenths(lasted)))
        };
        looks.into_iter().filter_map(say).collect()
    }

    #[test]
    fn an_outage_is_told_at_once_then_every_ten_seconds_and_when_it_is_over() {
        // The story: a cluster that was away for an hour left twenty thousand lines that all said the same.
        let looks = (5..=250).map(|at| (at, false)).chain([(251, true), (252, true)]);
        assert_eq!(said(looks), [(5, false, 0), (105, false, 100), (205, false, 200), (251, true, 246)]);
    }

    #[test]
    fn nothing_is_said_while_all_is_well_and_the_next_outage_is_told_at_once() {
        assert_eq!(said((0..500).map(|at| (at, true))), []);
        let looks = [(0, false), (1, true), (200, false), (201, true)];
        assert_eq!(said(looks), [(0, false, 0), (1, true, 1), (200, false, 0), (201, true, 1)]);
    }

    #[test]
    fn a_node_that_answers_every_other_look_is_told_no_more_often() {
        let told = said((0..=210).map(|at| (at, at % 2 == 1)));
        assert_eq!(
            told,
            [(0, false, 0), (1, true, 1), (100, false, 0), (101, true, 1), (200, false, 0), (201, true, 1)]
        );
    }
}
