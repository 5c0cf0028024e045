//! Remembers when the log was told that a clock is off: clocks are looked at every few seconds, and other things stand
//! there, too.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::facts::Finding;
use super::wire::NodeAddr;

/// The pause between two lines about one clock that stays off.
const AGAIN: Duration = Duration::from_secs(3_600);

/// The clocks that are off, each with when that was told; without an address this machine's.
#[derive(Debug, Default)]
pub(crate) struct ToldClocks(HashMap<Option<NodeAddr>, Instant>);

impl ToldClocks {
    /// The findings, of all that there are now, that are to be told: new ones, and what was told long ago.
    pub(crate) fn due(&mut self, findings: Vec<Finding>, now: Instant) -> Vec<Finding> {
        self.0.retain(|node, _| findings.iter().any(|finding| finding.node == *node));
        let is_due = |finding: &Finding| {
            let told = self.0.get(&finding.node);
            let is_due = told.is_none_or(|told| now.saturating_duration_since(*told) >= AGAIN);
            if is_due {
                self.0.insert(finding.node.clone(), now);
            }
            is_due
        };
        findings.into_iter().filter(is_due).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::facts::Severity;
    use super::*;

    /// A machine without a time daemon wrote 17,280 lines a day.
    #[test]
    fn a_clock_that_stays_off_is_told_once_an_hour_and_again_when_it_was_right_between() {
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
        assert_eq!(many(15, off(2)), 2);
        assert_eq!([many(3_614, off(2)), many(3_616, off(2))], [0, 2]);
    }
}
