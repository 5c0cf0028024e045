//! Remembers when the log was told that a clock is off: clocks are looked at every few seconds, and other things stand
//! there, too.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::{Duration, Instant};

use super::facts::Finding;
use super::wire::NodeAddr;

/// The pause between two lines about one clock that stays off.
const AGAIN: Duration = Duration::from_secs(3_600);

/// The clocks that were off within the last hour, each with when that was told; without an address this machine's.
#[derive(Debug, Default)]
pub(crate) struct ToldClocks(HashMap<Option<NodeAddr>, Instant>);

impl ToldClocks {
    /// The findings, of all that there are now, that are to be told: what was not told within the last hour. A clock
    /// that wavers around its bound is off again and again.
    pub(crate) fn due(&mut self, findings: Vec<Finding>, now: Instant) -> Vec<Finding> {
        self.0.retain(|_, told| now.saturating_duration_since(*told) < AGAIN);
        let is_new = |finding: &Finding| match self.0.entry(finding.node.clone()) {
            Entry::Occupied(_) => false,
            Entry::Vacant(place) => {
                place.insert(now);
                true
            }
        };
        findings.into_iter().filter(is_new).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::facts::Severity;
    use super::*;

    /// A machine without a time daemon wrote 17,280 lines a day.
    #[test]
    fn a_clock_that_is_off_is_told_once_an_hour() {
        let finding = |node: Option<&str>, text: &str| Finding {
            node: node.map(|host| NodeAddr::new(host, 7000)),
            severity: Severity::Warning,
            text: text.into(),
        };
        let off = |seconds: u32| vec![finding(Some("a"), &format!("{seconds} s off")), finding(None, "off")];
        let (mut told, start) = (ToldClocks::default(), Instant::now());
        let mut many =
            |after_s: u64, findings| told.due(findings, start + Duration::from_secs(after_s)).len();
        assert_eq!(many(0, off(1)), 2);
        assert_eq!(many(5, off(2)), 0);
        assert_eq!(many(10, vec![finding(Some("b"), "off")]), 1);
        assert_eq!(many(15, off(2)), 0);
        assert_eq!([many(3_599, off(2)), many(3_601, off(2))], [0, 2]);
    }
}
