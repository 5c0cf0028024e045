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

    /// Whether every small post that fell due has reached everybody.
    pub(super) fn is_right(&self) -> bool {
        [&self.alone, &self.beside_large].iter().all(|summary| summary.counts.failed() == 0)
            && self.dropped() == 0
    }

    /// Small posts that were not sent.
    fn dropped(&self) -> u64 {
        self.alone.counts.dropped + self.beside_large.counts.dropped
    }

    /// What is claimed and could not be judged.
    pub(super) fn unmet(&self) -> Vec<String> {
        let unknown = "how much longer small posts take beside the large one could not be judged: none fell due, here or there";
        if self.p99_ratio.is_some() { Vec::new() } else { vec![unknown.to_owned()] }
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
        }?;
        match self.dropped() {
            0 => Ok(()),
            dropped => writeln!(
                f,
                "{} not sent, because too many were under way: these figures leave out the slowest. Choose a \
                 smaller --rate.",
                report::many(report::count(dropped), "small post was", "small posts were")
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::{Args as _, FromArgMatches as _};

    use super::*;
    use crate::tally::Tally;

    fn outcome(alone: &Tally, beside: &Tally) -> Outcome {
        let typed = FairnessArgs::augment_args(clap::Command::new("fairness")).get_matches_from(["fairness"]);
        let args = FairnessArgs::from_arg_matches(&typed).unwrap();
        Outcome::new(&args, 1, &[3.0], alone.summary(), beside.summary()).unwrap()
    }

    /// Those counted as if they had never been: a stall that outlasted the bound made the figures better, and the run right.
    #[test]
    fn posts_that_were_never_sent_are_a_failure_and_said() {
        let (alone, beside) = (Tally::new(), Tally::new());
        [&alone, &beside].iter().for_each(|tally| tally.ended(Duration::from_millis(1), None));
        assert!(outcome(&alone, &beside).is_right());
        assert!(!outcome(&alone, &beside).to_string().contains("not sent, because"));
        beside.dropped();
        assert!(!outcome(&alone, &beside).is_right());
        let told = outcome(&alone, &beside).to_string();
        assert!(told.contains("1 small post was not sent"), "{told}");
    }

    #[test]
    fn what_was_too_short_to_tell_is_not_judged() {
        let (alone, beside) = (Tally::new(), Tally::new());
        alone.ended(Duration::from_millis(1), None);
        assert_eq!(outcome(&alone, &beside).unmet().len(), 1);
        beside.ended(Duration::from_millis(1), None);
        assert_eq!(outcome(&alone, &beside).unmet(), Vec::<String>::new());
    }
}
