//! The result: what the JSON holds, and what is told of it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::StrangeArgs;
use crate::common::Told;
use crate::report::{Part, Report};
use crate::stats::count;

/// After the second half the server may have so many times the memory that it had after the first.
const GROWTH_MAX: f64 = 1.05;

/// Everything that a run tells; loadtest/README.md explains the fields.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Outcome {
    pub(super) command: &'static str,
    pub(super) settings: StrangeArgs,
    pub(super) seed: u64,
    pub(super) seconds: f64,
    pub(super) sent: u64,
    /// Answers by their status.
    pub(super) statuses: BTreeMap<String, u64>,
    /// Of the server, after each half.
    pub(super) resident_bytes: [Option<u64>; 2],
    /// Keys by their letter, in the end.
    pub(super) keys: BTreeMap<String, u64>,
    pub(super) accounts_asked_for: u64,
    pub(super) posts_asked_for: u64,
    pub(super) tickets_asked_for: u64,
    /// Answers that may not be, requests without one, keys that nobody asked for.
    pub(super) wrong: u64,
    pub(super) panics: u64,
    #[serde(skip)]
    pub(super) examples: Vec<String>,
}

impl Outcome {
    /// By how much the server's memory has grown in the second half; `None`, where it isn't told.
    fn growth(&self) -> Option<f64> {
        let [first, second] = self.resident_bytes;
        Some(count(second?) / count(first?))
    }
}

impl Told for Outcome {
    fn report(&self) -> Report {
        let statuses = self.statuses.iter().map(|(status, n)| vec![status.clone(), n.to_string()]).collect();
        let keys = self.keys.iter().map(|(letter, n)| vec![letter.clone(), n.to_string()]).collect();
        let mb = |bytes: Option<u64>| {
            bytes.map_or_else(|| "unknown".to_owned(), |bytes| format!("{:.1} MB", count(bytes) / 1e6))
        };
        let header = |name: &str| vec![name.to_owned(), "how many".to_owned()];
        let mut parts = vec![
            Part::Text(format!("{} requests in {:.0} s; seed {}.", self.sent, self.seconds, self.seed)),
            Part::Table("Answers".to_owned(), header("status"), statuses),
            Part::Table("Keys in Redis, by their letters".to_owned(), header("letter"), keys),
            Part::Text(format!(
                "Resident memory of the server: {} after the first half, {} after the second; {} times as much, at \
                 most {GROWTH_MAX}. Wrong: {}; panics: {}.",
                mb(self.resident_bytes[0]),
                mb(self.resident_bytes[1]),
                self.growth().map_or_else(|| "unknown".to_owned(), |growth| format!("{growth:.3}")),
                self.wrong,
                self.panics
            )),
        ];
        parts.extend(self.examples.iter().cloned().map(Part::Text));
        Report { title: "Requests that make no sense".to_owned(), parts }
    }

    fn is_right(&self) -> bool {
        self.wrong + self.panics == 0
            && self.growth().map_or(!cfg!(target_os = "linux"), |growth| growth <= GROWTH_MAX)
    }
}
