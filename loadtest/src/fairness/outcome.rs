//! The result: what the JSON holds, and the table made of it.

use std::fmt;

use anyhow::Context as _;
use serde::Serialize;

use super::FairnessArgs;
use crate::report;
use crate::stats::median;
use crate::tally::Summary;

/// Everything that a run tells; loadtest/README.md explains the fields.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Outcome {
    command: &'static str,
    settings: FairnessArgs,
    seed: u64,
    /// From the call to the last delivery of the large post.
    large_post_seconds: f64,
    /// Of small posts, from when they were due to their last delivery.
    alone: Summary,
    beside_large: Summary,
    /// How many times as long small posts take; `None`: none fell due, here or there.
    p50_ratio: Option<f64>,
    p99_ratio: Option<f64>,
}

impl Outcome {
    pub(super) fn new(
        args: &FairnessArgs,
        seed: u64,
        large_s: &[f64],
        alone: Summary,
        beside_large: Summary,
    ) -> anyhow::Result<Self> {
        let is_known = [&alone, &beside_large].iter().all(|summary| summary.counts.scheduled() > 0);
        let ratio =
            |with: u64, without: u64| is_known.then(|| report::count(with) / report::count(without.max(1)));
        Ok(Self {
            command: "fairness",
            settings: args.clone(),
            seed,
            large_post_seconds: median(large_s).context("the large account has not posted")?,
            p50_ratio: ratio(beside_large.p50_us, alone.p50_us),
            p99_ratio: ratio(beside_large.p99_us, alone.p99_us),
            alone,
            beside_large,
        })
    }

    pub(super) fn is_right(&self) -> bool {
        [&self.alone, &self.beside_large].iter().all(|summary| summary.counts.failed() == 0)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = [("alone", self.alone.clone()), ("beside the large post", self.beside_large.clone())];
        writeln!(f, "Small posts, from when they were due to their last delivery; seed {}", self.seed)?;
        writeln!(f, "{}", report::operations(&rows))?;
        write!(f, "The large post took {:.2} s. ", self.large_post_seconds)?;
        match (self.p50_ratio, self.p99_ratio) {
            (Some(p50), Some(p99)) => {
                writeln!(f, "Beside it small ones take {p50:.1} times as long (p50), {p99:.1} times (p99).")
            }
            _ => writeln!(f, "Too short to tell: no small post fell due meanwhile."),
        }
    }
}
