//! Verdicts: each hybrid, held against the better one of pushing and pulling all. Pure.

use std::fmt;

use serde::Serialize;

use super::outcome::Row;
use super::turns::{Measured, Sample, ratios};
use crate::judgement::{Judgement, too_few};
use crate::stats::{Estimate, SURE_FROM};
use crate::systems::Contestant;

/// A hybrid that costs more than so many times what the better of pushing and pulling all costs has chosen wrong.
const WORSE_MAX: f64 = 1.05;

/// A hybrid, held against the better one of pushing and pulling all.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Verdict {
    pub(crate) hybrid: Contestant,
    pub(crate) better: Contestant,
    /// The interval of what pushing costs in what pulling does holds 1: either may be the better one. Nothing, if there
    /// were too few rounds to say so.
    pub(crate) both_alike: Option<bool>,
    /// Of CPU time per operation.
    pub(crate) ratio: Estimate,
    #[serde(skip)]
    pub(crate) rounds: usize,
    /// Whether it is more than 5 % worse.
    pub(crate) judgement: Judgement,
    /// Both whole intervals are below what pushing and pulling all cost.
    pub(crate) is_cheaper: bool,
}

/// What intervals of so few rounds are.
pub(crate) fn unsure(rows: &[Row]) -> Option<&'static str> {
    rows.iter().any(|row| row.rounds < SURE_FROM).then_some(
        "Fewer than six rounds: the intervals go from the lowest to the highest, and are less sure than 95 %.",
    )
}

/// Each hybrid against the better one of pushing and pulling all, if all of them were measured.
pub(crate) fn verdicts(measured: &[Measured]) -> Vec<Verdict> {
    let find = |which: Contestant| measured.iter().find(|one| one.contestant == which);
    let (Some(push), Some(pull)) = (find(Contestant::PushOnly), find(Contestant::PullOnly)) else {
        return Vec::new();
    };
    // Round by round, and one for all hybrids.
    let Some(between) = cost_ratio(push, pull) else { return Vec::new() };
    let better = if between.median <= 1.0 { push } else { pull };
    let is_sure = push.samples.len() >= SURE_FROM;
    let both_alike = is_sure.then_some(between.low <= 1.0 && between.high >= 1.0);
    let judge = |hybrid: &Measured| {
        let ratio = cost_ratio(hybrid, better)?;
        let is_below = |pure: &Measured| cost_ratio(hybrid, pure).is_some_and(|ratio| ratio.high < 1.0);
        Some(Verdict {
            hybrid: hybrid.contestant,
            better: better.contestant,
            both_alike,
            ratio,
            rounds: hybrid.samples.len(),
            judgement: Judgement::of(&ratio, WORSE_MAX, hybrid.samples.len()),
            is_cheaper: is_sure && is_below(push) && is_below(pull),
        })
    };
    measured.iter().filter(|m| m.contestant.is_hybrid()).filter_map(judge).collect()
}

/// What is claimed of these hybrids (that none is worse than the better one of pushing and pulling all) and is not so,
/// or could not be judged at all. What more rounds would tell is neither.
pub(crate) fn unmet(rows: &[Row], verdicts: &[Verdict]) -> Vec<String> {
    let hybrids: Vec<&Row> = rows.iter().filter(|row| row.system.is_hybrid()).collect();
    if hybrids.is_empty() {
        return vec!["no hybrid was measured, so there is nothing to judge".to_owned()];
    }
    let of = |row: &Row| {
        let name = row.system.name();
        let Some(verdict) = verdicts.iter().find(|verdict| verdict.hybrid == row.system) else {
            let needed =
                "push_only and pull_only have to be measured beside it, and CPU time has to be known";
            return Some(format!("{name} could not be judged: {needed}"));
        };
        match verdict.judgement {
            Judgement::TooFewRounds => Some(too_few(name, row.rounds)),
            Judgement::Worse => Some(verdict.to_string()),
            Judgement::NotWorse | Judgement::Open => None,
        }
    };
    hybrids.into_iter().filter_map(of).collect()
}

/// What one system costs in those of another, round by round.
pub(crate) fn cost_ratio(of: &Measured, to: &Measured) -> Option<Estimate> {
    let cpu = |measured: &Measured| measured.rounds(Sample::cpu_us);
    Estimate::of(&ratios(&cpu(of), &cpu(to)))
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hybrid, better) = (self.hybrid.name(), self.better.name());
        let ratio = self.ratio.told(2);
        let other =
            if self.better == Contestant::PushOnly { Contestant::PullOnly } else { Contestant::PushOnly };
        let which = match self.both_alike {
            Some(true) => format!(" ({} costs about the same as {better})", other.name()),
            Some(false) => format!(" ({} costs more)", other.name()),
            None => String::new(),
        };
        let said = match self {
            Self { is_cheaper: true, .. } => "cheaper than both".to_owned(),
            Self { judgement: Judgement::Worse, .. } => "more than 5 % worse".to_owned(),
            Self { judgement: Judgement::NotWorse, .. } => "not worse (5 % at most)".to_owned(),
            Self { judgement, rounds, .. } => judgement.unsure(*rounds),
        };
        write!(f, "{hybrid} costs {ratio} times what {better} costs{which}: {said}")
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::report;
    use crate::session::Counted;

    pub(crate) fn counted() -> Counted {
        let none = crate::tally::Tally::new().summary();
        Counted { operations: Vec::new(), pages: none.clone(), fanouts: none, shown: 0 }
    }

    /// Rounds that differ among themselves, each by the same times as dear as that of another.
    pub(crate) fn measured(contestant: Contestant, rounds: usize, times: f64) -> Measured {
        let sample = |round: usize| Sample {
            operations_per_second: 1.0,
            server_us: Some(times * report::count(10 + 7 * (round as u64 % 3))),
            client_us: Some(0.0),
            wire_bytes: None,
        };
        Measured { samples: (0..rounds).map(sample).collect(), ..Measured::new(contestant) }
    }

    /// A hybrid that costs 1.2 times what pushing does.
    fn all(rounds: usize, pull: f64) -> [Measured; 3] {
        [
            measured(Contestant::PushOnly, rounds, 1.0),
            measured(Contestant::PullOnly, rounds, pull),
            measured(Contestant::CostModel, rounds, 1.2),
        ]
    }

    fn verdict(rounds: usize, pull: f64) -> Verdict {
        verdicts(&all(rounds, pull))[0]
    }

    fn row(measured: &Measured) -> Row {
        Row::new(&Measured { counted: Some(counted()), ..measured.clone() }, measured).unwrap()
    }

    #[test]
    fn a_hybrid_is_held_against_the_better_one_round_by_round() {
        let against_push = verdict(6, 3.0);
        assert_eq!(against_push.better, Contestant::PushOnly);
        assert_eq!(against_push.judgement, Judgement::Worse);
        assert!((against_push.ratio.low - 1.2).abs() < 1e-9, "{against_push}");
        let against_pull = verdict(6, 0.5);
        assert_eq!(against_pull.better, Contestant::PullOnly);
        assert!((against_pull.ratio.median - 2.4).abs() < 1e-9, "{against_pull}");
    }

    #[test]
    fn a_hybrid_that_is_worse_or_could_not_be_judged_does_not_meet_the_claim() {
        let told = |measured: &[Measured]| {
            let rows: Vec<Row> = measured.iter().map(row).collect();
            unmet(&rows, &verdicts(measured)).join("; ")
        };
        assert_eq!(
            told(&all(6, 1.2)),
            "cost_model costs 1.20 (1.20-1.20) times what push_only costs (pull_only costs more): more than 5 % worse"
        );
        let same = [
            measured(Contestant::PushOnly, 6, 1.0),
            measured(Contestant::PullOnly, 6, 3.0),
            measured(Contestant::Threshold, 6, 1.04),
        ];
        assert_eq!(told(&same), "");
        assert!(verdicts(&same)[0].to_string().ends_with("(pull_only costs more): not worse (5 % at most)"));
        assert!(told(&all(5, 3.0)).contains("in 5 rounds: 6 are needed"));
        assert!(told(&all(6, 3.0)[1..]).contains("cost_model could not be judged"));
        assert!(told(&all(6, 3.0)[..2]).contains("no hybrid was measured"));
    }

    /// Pushing was called the better of both where the next run called pulling so, and a hybrid of 0.8 to 1.3 times as
    /// much was told of as if all were well.
    #[test]
    fn what_the_intervals_leave_open_is_told_as_open() {
        let mut all = [measured(Contestant::PushOnly, 6, 1.0), measured(Contestant::PullOnly, 6, 1.1), {
            let mut hybrid = measured(Contestant::CostModel, 6, 1.0);
            hybrid.samples[3].server_us = hybrid.samples[3].server_us.map(|us| us * 1.3);
            hybrid
        }];
        let unclear = verdicts(&all)[0];
        assert_eq!((unclear.judgement, unclear.both_alike), (Judgement::Open, Some(false)));
        assert!(unclear.to_string().ends_with("(pull_only costs more): inconclusive after 6 rounds"));
        let rows: Vec<Row> = all.iter().map(row).collect();
        assert_eq!(unmet(&rows, &verdicts(&all)), [""; 0]);
        // Dearer in most rounds, and cheaper in one.
        all[1].samples[3].server_us = Some(1.0);
        let told = verdicts(&all)[0].to_string();
        assert!(
            told.contains("times what push_only costs (pull_only costs about the same as push_only):"),
            "{told}"
        );
    }

    #[test]
    fn all_hybrids_are_held_against_the_same_one_and_told_when_they_are_cheaper_than_both() {
        let pull = measured(Contestant::PullOnly, 7, 1.1);
        let hybrids = [(Contestant::Threshold, 1.0), (Contestant::CostModel, 0.9)];
        let hybrids = hybrids.map(|(hybrid, times)| measured(hybrid, 7, times));
        let all = [vec![measured(Contestant::PushOnly, 7, 1.0), pull], hybrids.to_vec()].concat();
        let verdicts = verdicts(&all);
        assert!(verdicts.iter().all(|verdict| verdict.better == Contestant::PushOnly), "{verdicts:?}");
        assert_eq!([verdicts[0].is_cheaper, verdicts[1].is_cheaper], [false, true]);
        assert!(verdicts[1].to_string().ends_with("(pull_only costs more): cheaper than both"));
    }

    /// Pushing cost twice as much as pulling in both rounds there were, and was said to cost "about as much".
    #[test]
    fn fewer_than_six_rounds_call_nothing_alike_and_only_name_the_better_one() {
        let two = verdict(2, 0.5);
        assert_eq!((two.better, two.both_alike), (Contestant::PullOnly, None));
        let told =
            "cost_model costs 2.40 (2.40-2.40) times what pull_only costs: 2 rounds are too few to judge";
        assert_eq!(two.to_string(), told);
        assert_eq!([verdict(6, 0.5).both_alike, verdict(6, 1.0).both_alike], [Some(false), Some(true)]);
    }

    #[test]
    fn fewer_than_six_rounds_condemn_and_praise_nobody() {
        assert_eq!(verdict(5, 3.0).judgement, Judgement::TooFewRounds);
        let cheaper = [Contestant::PushOnly, Contestant::PullOnly].map(|pure| measured(pure, 5, 2.0));
        assert!(
            !verdicts(&[cheaper.to_vec(), vec![measured(Contestant::CostModel, 5, 1.0)]].concat())[0]
                .is_cheaper
        );
    }
}
