//! The result: what the JSON holds, and the table made of it.

use anyhow::Context as _;
use serde::Serialize;

use super::FairnessArgs;
use crate::common::Told;
use crate::judgement::too_few;
use crate::report::{self, Part, Report};
use crate::stats::{Estimate, SURE_FROM, median};
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
    /// How many times as long small posts take beside the large one, round by round; a round in which none fell due,
    /// here or there, is left out.
    p50_ratio: Option<Estimate>,
    p99_ratio: Option<Estimate>,
    rounds_p50_ratio: Vec<f64>,
    rounds_p99_ratio: Vec<f64>,
}

/// A figure beside the large post by that alone, in each round.
fn ratios(rounds: &[[Summary; 2]], figure: impl Fn(&Summary) -> u64) -> Vec<f64> {
    let is_known = |round: &&[Summary; 2]| round.iter().all(|summary| summary.counts.scheduled() > 0);
    let ratio =
        |[alone, beside]: &[Summary; 2]| report::count(figure(beside)) / report::count(figure(alone).max(1));
    rounds.iter().filter(is_known).map(ratio).collect()
}

impl Outcome {
    pub(super) fn new(
        args: &FairnessArgs,
        seed: u64,
        large_s: &[f64],
        [alone, beside_large]: [Summary; 2],
        rounds: &[[Summary; 2]],
    ) -> anyhow::Result<Self> {
        let rounds_p50_ratio = ratios(rounds, |summary| summary.p50_us);
        let rounds_p99_ratio = ratios(rounds, |summary| summary.p99_us);
        Ok(Self {
            command: "fairness",
            settings: args.clone(),
            seed,
            large_post_seconds: median(large_s).context("the large account has not posted")?,
            p50_ratio: Estimate::of(&rounds_p50_ratio),
            p99_ratio: Estimate::of(&rounds_p99_ratio),
            rounds_p50_ratio,
            rounds_p99_ratio,
            alone,
            beside_large,
        })
    }

    /// Small posts that were not sent.
    fn dropped(&self) -> u64 {
        self.alone.counts.dropped + self.beside_large.counts.dropped
    }

    /// How much longer small posts take beside the large one.
    fn told(&self) -> String {
        let Some((p50, p99)) = self.p50_ratio.zip(self.p99_ratio) else {
            return "Too short to tell: no small post fell due meanwhile.".to_owned();
        };
        let rounds = self.rounds_p99_ratio.len();
        let sure = if rounds < SURE_FROM { "less sure than 95 %" } else { "95 %" };
        format!(
            "Beside it small ones take {} times as long (p50), {} times (p99).\nMedians of {rounds} rounds; in \
             brackets their interval, {sure}.",
            p50.told(1),
            p99.told(1)
        )
    }
}

impl Told for Outcome {
    fn report(&self) -> Report {
        let heading =
            format!("Small posts, from when they were due to their last delivery; seed {}", self.seed);
        let rows = [("alone", &self.alone), ("beside the large post", &self.beside_large)];
        let large = format!("The large post took {:.2} s. {}", self.large_post_seconds, self.told());
        let mut parts = vec![report::operations(heading, &rows), Part::Text(large)];
        if self.dropped() > 0 {
            let posts = report::many(report::count(self.dropped()), "small post was", "small posts were");
            parts.push(Part::Text(format!(
                "{posts} not sent, because too many were under way: these figures leave out the slowest. Choose a \
                 smaller --rate."
            )));
        }
        Report { title: "Small posts beside a large one".to_owned(), parts }
    }

    /// Whether every small post that fell due has reached everybody.
    fn is_right(&self) -> bool {
        [&self.alone, &self.beside_large].iter().all(|summary| summary.counts.failed() == 0)
            && self.dropped() == 0
    }

    fn unmet(&self) -> Vec<String> {
        let known = self.rounds_p99_ratio.len();
        let claim = "how much longer small posts take beside the large one";
        match known {
            0 => vec![format!("{claim} could not be judged: none fell due, here or there")],
            known if known < SURE_FROM => vec![too_few(claim, known)],
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::{Args as _, FromArgMatches as _};

    use super::*;
    use crate::tally::Tally;

    fn outcome(alone: &Tally, beside: &Tally, rounds: usize) -> Outcome {
        let typed = FairnessArgs::augment_args(clap::Command::new("fairness")).get_matches_from(["fairness"]);
        let args = FairnessArgs::from_arg_matches(&typed).unwrap();
        let sides = [alone.summary(), beside.summary()];
        Outcome::new(&args, 1, &[3.0], sides.clone(), &vec![sides; rounds]).unwrap()
    }

    /// Those counted as if they had never been: a stall that outlasted the bound made the figures better, and the run
    /// right.
    #[test]
    fn posts_that_were_never_sent_are_a_failure_and_said() {
        let (alone, beside) = (Tally::new(), Tally::new());
        [&alone, &beside].iter().for_each(|tally| tally.ended(Duration::from_millis(1), None));
        assert!(outcome(&alone, &beside, 6).is_right());
        assert!(!outcome(&alone, &beside, 6).report().to_string().contains("not sent, because"));
        beside.dropped();
        assert!(!outcome(&alone, &beside, 6).is_right());
        let told = outcome(&alone, &beside, 6).report().to_string();
        assert!(told.contains("1 small post was not sent"), "{told}");
    }

    #[test]
    fn what_was_too_short_to_tell_is_not_judged() {
        let (alone, beside) = (Tally::new(), Tally::new());
        alone.ended(Duration::from_millis(1), None);
        assert!(outcome(&alone, &beside, 6).unmet()[0].contains("none fell due"));
        beside.ended(Duration::from_millis(1), None);
        assert_eq!(outcome(&alone, &beside, 6).unmet(), Vec::<String>::new());
        assert!(outcome(&alone, &beside, 5).unmet()[0].contains("in 5 rounds: 6 are needed"));
    }

    /// All rounds were pooled into one ratio, which one bad round could double, and nobody saw it.
    #[test]
    fn ratios_are_those_of_rounds_with_their_interval() {
        let side = |ms: u64| {
            let tally = Tally::new();
            (0..100).for_each(|_| tally.ended(Duration::from_millis(ms), None));
            tally.summary()
        };
        let empty = Tally::new().summary();
        let mut rounds: Vec<[Summary; 2]> = [20, 30, 20, 20, 400, 10].map(|ms| [side(10), side(ms)]).into();
        rounds.push([side(10), empty]);
        let ratios = ratios(&rounds, |summary| summary.p99_us);
        assert_eq!(ratios.len(), 6, "{ratios:?}");
        let Estimate { median, low, high } = Estimate::of(&ratios).unwrap();
        let is = |found: f64, wanted: f64| (found / wanted - 1.0).abs() < 0.01;
        assert!(is(median, 2.0) && is(low, 1.0) && is(high, 40.0), "{median} {low} {high}");
    }
}
