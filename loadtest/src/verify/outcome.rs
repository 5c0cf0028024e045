//! The result of a run: what the JSON holds, and the table made of it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::args::{Chaos, VerifyArgs};
use super::check::Wrong;
use super::comparisons::{Comparisons, Subject};
use super::run::{CallCounts, FaultCounts, Findings};
use crate::report::{Part, Report};

/// Everything that a run tells; loadtest/README.md explains the fields.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    command: &'static str,
    settings: VerifyArgs,
    #[serde(flatten)]
    basis: Basis,
    pages_checked: u64,
    /// How often each of these was found.
    #[serde(flatten)]
    wrongs: BTreeMap<Wrong, u64>,
    operations: BTreeMap<&'static str, CallCounts>,
    errors: BTreeMap<String, u64>,
    events: BTreeMap<&'static str, u64>,
    faults: BTreeMap<Chaos, FaultCounts>,
    comparisons: BTreeMap<Subject, Comparisons>,
}

/// What is known besides the findings.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Basis {
    pub(crate) seed: u64,
    pub(crate) visible_within_ms: u64,
    pub(crate) seconds: f64,
    pub(crate) rounds: usize,
    pub(crate) posts: usize,
}

impl Outcome {
    pub(crate) fn new(settings: &VerifyArgs, basis: Basis, findings: &Findings) -> Self {
        let mut wrongs = BTreeMap::from(Wrong::ALL.map(|wrong| (wrong, 0)));
        findings.violations.iter().for_each(|found| *wrongs.entry(found.wrong).or_default() += 1);
        let of = |kind: &Chaos| findings.faults.get(kind).copied().unwrap_or_default();
        Self {
            command: "verify",
            settings: settings.clone(),
            basis,
            pages_checked: findings.pages,
            wrongs,
            operations: findings.counts.clone(),
            errors: findings.errors.clone(),
            events: findings.events.clone(),
            faults: settings.chaos.iter().map(|kind| (*kind, of(kind))).collect(),
            comparisons: findings.comparisons.clone(),
        }
    }

    /// Whether nothing was wrong, and all that was to go wrong did so while something was under way.
    pub(crate) fn is_right(&self) -> bool {
        self.wrongs.values().sum::<u64>() == 0 && self.without_work().is_empty()
    }

    /// Kinds of faults that met nothing under way in the whole run.
    fn without_work(&self) -> String {
        let unmet = self.faults.iter().filter(|(_, counts)| counts.met == 0);
        unmet.map(|(kind, _)| kind.name()).collect::<Vec<_>>().join(", ")
    }
}

impl Outcome {
    pub(crate) fn report(&self) -> Report {
        let sum = |of: fn(&CallCounts) -> u64| self.operations.values().map(of).sum::<u64>().to_string();
        let list = |map: &BTreeMap<&'static str, u64>| {
            let parts: Vec<String> = map.iter().map(|(what, count)| format!("{count} {what}")).collect();
            if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
        };
        let found = |wrongs: &[Wrong]| {
            wrongs.iter().map(|wrong| self.wrongs[wrong].to_string()).collect::<Vec<_>>().join(" / ")
        };
        let faults: Vec<String> = self
            .faults
            .iter()
            .map(|(kind, counts)| format!("{} {} of {}", kind.name(), counts.met, counts.struck))
            .collect();
        let facts = [
            ("seed", self.basis.seed.to_string()),
            ("visible within", format!("{} ms", self.basis.visible_within_ms)),
            ("calls acknowledged", sum(|counts| counts.acknowledged)),
            ("calls refused", sum(|counts| counts.refused)),
            ("calls repeated", sum(|counts| counts.repeated)),
            ("posts", self.basis.posts.to_string()),
            ("pages checked", self.pages_checked.to_string()),
            ("seconds", format!("{:.1}", self.basis.seconds)),
            ("went wrong on purpose", list(&self.events)),
            ("faults that met work", if faults.is_empty() { "none".to_owned() } else { faults.join(", ") }),
            ("missing / doubled / leaked", found(&[Wrong::Missing, Wrong::Doubled, Wrong::Leaked])),
            ("reordered / lost", found(&[Wrong::Reordered, Wrong::Lost])),
            ("stale / stuck / miscounted", found(&[Wrong::Stale, Wrong::Stuck, Wrong::Miscounted])),
            ("out of step", found(&[Wrong::OutOfStep])),
        ];
        let facts = facts.map(|(name, value)| vec![name.to_owned(), value]).to_vec();
        let mut parts = vec![Part::Table("What was done, and what was wrong".to_owned(), Vec::new(), facts)];
        let unmet = self.without_work();
        if !unmet.is_empty() {
            let nothing = "Nothing was under way that these could affect, so the run says nothing of them";
            parts.push(Part::Text(format!("{nothing}: {unmet}.")));
        }
        Report { title: format!("Verified, seed {}", self.basis.seed), parts }
    }
}
