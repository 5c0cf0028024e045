//! The result of a run: what the JSON holds, and the tables made of it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::args::SetsArgs;
use super::compare::Differences;
use super::perform::{Performer, WRONG_ANSWER};
use super::plan::Action;
use crate::cpu::{self, CpuTime};
use crate::drive::Punctuality;
use crate::report;
use crate::tally::{Counts, Summary};

/// How many of the sets were spread.
#[derive(Debug, Clone, Serialize)]
struct Spread {
    before: u64,
    after: u64,
}

/// Everything that a run tells; loadtest/README.md explains the fields.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Outcome {
    command: &'static str,
    settings: SetsArgs,
    seed: u64,
    own_cluster: bool,
    wall_seconds: f64,
    #[serde(flatten)]
    punctuality: Punctuality,
    #[serde(flatten)]
    total: Counts,
    succeeded_per_second: f64,
    server_cpu_us_per_operation: Option<f64>,
    client_cpu_us_per_operation: Option<f64>,
    operations: BTreeMap<&'static str, Summary>,
    spread_sets: Spread,
    wrong_answers: u64,
    comparison: Differences,
}

impl Outcome {
    /// Fails if not every scheduled operation was counted: then no number here could be trusted.
    pub(crate) fn new(
        settings: &SetsArgs,
        seed: u64,
        performer: &Performer,
        punctuality: Punctuality,
        (wall, cpu): (Duration, CpuTime),
        [before, after]: [u64; 2],
        comparison: Differences,
    ) -> anyhow::Result<Self> {
        let operations: BTreeMap<_, _> =
            Action::ALL.iter().map(|action| (action.name(), performer.tally(*action).summary())).collect();
        let mut total = Counts::default();
        operations.values().for_each(|summary| total.add(&summary.counts));
        anyhow::ensure!(
            total.scheduled() == punctuality.scheduled,
            "{} operations were due and {} are accounted for",
            punctuality.scheduled,
            total.scheduled()
        );
        let ended = total.succeeded + total.failed();
        Ok(Self {
            command: "sets",
            settings: settings.clone(),
            seed,
            own_cluster: settings.cluster.is_empty(),
            wall_seconds: wall.as_secs_f64(),
            punctuality,
            succeeded_per_second: report::count(total.succeeded) / wall.as_secs_f64(),
            server_cpu_us_per_operation: cpu::us_each(cpu.server, ended),
            client_cpu_us_per_operation: cpu::us_each(cpu.client, ended),
            operations,
            spread_sets: Spread { before, after },
            wrong_answers: total.errors.get(WRONG_ANSWER).copied().unwrap_or(0),
            total,
            comparison,
        })
    }

    /// Whether every set and every answer was as it had to be.
    pub(crate) fn is_right(&self) -> bool {
        !self.comparison.any() && self.wrong_answers == 0
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows: Vec<_> =
            Action::ALL.iter().map(|a| (a.name(), self.operations[a.name()].clone())).collect();
        writeln!(f, "{}", report::operations(&rows))?;
        let (found, total, spread) = (&self.comparison, &self.total, &self.spread_sets);
        let Punctuality { late, latest_us, overdue, .. } = self.punctuality;
        let latest_ms = latest_us / 1_000;
        let facts = report::facts([
            ("seed", self.seed.to_string()),
            ("operations due", self.punctuality.scheduled.to_string()),
            ("dropped: too many under way", total.dropped.saturating_sub(overdue).to_string()),
            ("dropped: still due 5 s after the end", overdue.to_string()),
            ("not sent: same member under change", total.overlapping.to_string()),
            ("sent over 10 ms late", format!("{late}, the latest by {latest_ms} ms")),
            ("succeeded", format!("{:.0} a second", self.succeeded_per_second)),
            ("servers' CPU per operation", report::micros_or_unknown(self.server_cpu_us_per_operation)),
            ("client's CPU per operation", report::micros_or_unknown(self.client_cpu_us_per_operation)),
            ("spread sets", format!("{} before, {} after", spread.before, spread.after)),
            ("members compared", format!("{}; {} unsure left out", found.compared, found.unsure)),
            ("missing / extra / altered", format!("{} / {} / {}", found.missing, found.extra, found.altered)),
            ("wrong answers", self.wrong_answers.to_string()),
        ]);
        writeln!(f, "{facts}")?;
        if total.dropped > 0 {
            writeln!(
                f,
                "Dropped operations are in no percentile: this load is more than the cluster takes."
            )?;
        }
        found.examples.iter().try_for_each(|example| writeln!(f, "{example}"))
    }
}
