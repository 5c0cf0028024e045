//! Verdicts: each hybrid, held against the better one of pushing and pulling all. Pure.

use std::fmt;

use serde::Serialize;

use super::outcome::Row;
use super::turns::{Measured, Sample, ratios};
use crate::stats::{Estimate, SURE_FROM};
use crate::systems::Contestant;

/// A hybrid that costs more than so many times what the better of pushing and pulling all costs has chosen wrong.
const WORSE_MAX: f64 = 1.05;

/// A hybrid, held against the better one of pushing and pulling all.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Verdict {
    pub(crate) hybrid: Contestant,
    pub(crate) better: Contestant,
    /// Of CPU time per operation.
    pub(crate) ratio: Estimate,
    /// The whole interval is more than 5 % worse.
    pub(crate) is_worse: bool,
    /// The whole interval is below what the better one costs.
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
    let judge = |hybrid: &Measured| {
        let ratio = cost_ratio(hybrid, better)?;
        let is_sure = hybrid.samples.len() >= SURE_FROM;
        Some(Verdict {
            hybrid: hybrid.contestant,
            better: better.contestant,
            ratio,
            is_worse: is_sure && ratio.low > WORSE_MAX,
            is_cheaper: is_sure && ratio.high < 1.0,
        })
    };
    measured.iter().filter(|m| m.contestant.is_hybrid()).filter_map(judge).collect()
}

/// What is claimed of these hybrids (that none is worse than the better one of pushing and pulling all) and is not so, or
/// could not be judged.
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
        if row.rounds < SURE_FROM {
            return Some(format!(
                "{name} could not be judged in {} rounds: {SURE_FROM} are needed",
                row.rounds
            ));
        }
        verdict.is_worse.then(|| verdict.to_string())
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
        let Estimate { median, low, high } = self.ratio;
        let said = match self {
            Self { is_worse: true, .. } => ": more than 5 % worse",
            Self { is_cheaper: true, .. } => ": cheaper than both",
            _ => "",
        };
        write!(
            f,
            "{hybrid} costs {median:.2} ({low:.2}-{high:.2}) times what {better} costs, the better of both{said}"
        )
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::report;
    use crate::session::Counted;

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
        let none = crate::tally::Tally::new().summary();
        let counted = Counted { operations: Vec::new(), pages: none.clone(), fanouts: none, shown: 0 };
        Row::new(&Measured { counted: Some(counted), ..measured.clone() }, measured).unwrap()
    }

    #[test]
    fn a_hybrid_is_held_against_the_better_one_round_by_round() {
        let against_push = verdict(6, 3.0);
        assert_eq!(against_push.better, Contestant::PushOnly);
        assert!(against_push.is_worse && (against_push.ratio.low - 1.2).abs() < 1e-9, "{against_push}");
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
            "cost_model costs 1.20 (1.20-1.20) times what push_only costs, the better of both: more than 5 % worse"
        );
        let same = [
            measured(Contestant::PushOnly, 6, 1.0),
            measured(Contestant::PullOnly, 6, 3.0),
            measured(Contestant::Threshold, 6, 1.04),
        ];
        assert_eq!(told(&same), "");
        assert!(told(&all(5, 3.0)).contains("in 5 rounds: 6 are needed"));
        assert!(told(&all(6, 3.0)[1..]).contains("cost_model could not be judged"));
        assert!(told(&all(6, 3.0)[..2]).contains("no hybrid was measured"));
    }

    #[test]
    fn all_hybrids_are_held_against_the_same_one_and_told_when_they_are_cheaper_than_both() {
        let mut pull = measured(Contestant::PullOnly, 7, 1.1);
        // Cheaper now and then, and dearer most of the time.
        pull.samples[3].server_us = Some(1.0);
        let hybrids = [(Contestant::Threshold, 1.0), (Contestant::CostModel, 0.9)];
        let hybrids = hybrids.map(|(hybrid, times)| measured(hybrid, 7, times));
        let all = [vec![measured(Contestant::PushOnly, 7, 1.0), pull], hybrids.to_vec()].concat();
        let verdicts = verdicts(&all);
        assert!(verdicts.iter().all(|verdict| verdict.better == Contestant::PushOnly), "{verdicts:?}");
        assert_eq!([verdicts[0].is_cheaper, verdicts[1].is_cheaper], [false, true]);
        assert!(verdicts[1].to_string().ends_with("the better of both: cheaper than both"));
    }

    #[test]
    fn fewer_than_six_rounds_condemn_and_praise_nobody() {
        assert!(!verdict(5, 3.0).is_worse);
        assert!(!verdict(2, 0.5).is_worse);
        let cheaper = [Contestant::PushOnly, Contestant::PullOnly].map(|pure| measured(pure, 5, 2.0));
        assert!(
            !verdicts(&[cheaper.to_vec(), vec![measured(Contestant::CostModel, 5, 1.0)]].concat())[0]
                .is_cheaper
        );
    }
}
