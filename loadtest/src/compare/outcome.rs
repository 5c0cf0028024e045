//! The result of a comparison: what the JSON holds, and the table made of it.

use std::fmt;

use anyhow::Context as _;
use comfy_table::Table;
use serde::Serialize;

use super::turns::{Measured, ratios};
use crate::calibration::Calibration;
use crate::graph::Graph;
use crate::report;
use crate::scenario::Scenario;
use crate::session::Counted;
use crate::stats::{Estimate, median};
use crate::systems::Contestant;

/// A hybrid that costs more than so many times what the better of pushing and pulling all costs has chosen wrong.
const WORSE_MAX: f64 = 1.05;
/// Of fewer rounds no interval holds the median with 95 % confidence.
const SURE_FROM: usize = 6;

/// Everything that a run tells; loadtest/README.md explains the fields.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Outcome {
    pub(crate) command: &'static str,
    pub(crate) scenario: Scenario,
    pub(crate) seed: u64,
    pub(crate) own_cluster: bool,
    pub(crate) accounts: usize,
    pub(crate) follows: usize,
    pub(crate) largest: u32,
    /// What the ratios are to.
    pub(crate) against: Contestant,
    pub(crate) rows: Vec<Row>,
    pub(crate) verdicts: Vec<Verdict>,
    pub(crate) calibration: Option<Calibration>,
}

/// What a system has shown, medians over all rounds.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Row {
    pub(crate) system: Contestant,
    pub(crate) rounds: usize,
    pub(crate) accounts_pulled: u64,
    pub(crate) operations_per_second: f64,
    pub(crate) server_cpu_us_per_operation: Option<f64>,
    pub(crate) client_cpu_us_per_operation: Option<f64>,
    pub(crate) cpu_us_per_operation: Option<Estimate>,
    pub(crate) operations_per_cpu_second: Option<f64>,
    pub(crate) wire_bytes_per_operation: Option<f64>,
    /// Of CPU time per operation, round by round.
    pub(crate) cpu_ratio: Option<Estimate>,
    pub(crate) read_p50_us: u64,
    pub(crate) read_p99_us: u64,
    pub(crate) read_p999_us: u64,
    pub(crate) fanout_lag_p50_ms: f64,
    pub(crate) fanout_lag_p99_ms: f64,
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) posts_per_page: f64,
    pub(crate) failed: u64,
    pub(crate) dropped: u64,
    /// In the open loop: operations that left late, because this program was behind.
    pub(crate) late: u64,
    pub(crate) operations: std::collections::BTreeMap<&'static str, crate::tally::Summary>,
    /// In the order in which they were measured, so that a drift shows.
    pub(crate) rounds_cpu_us_per_operation: Vec<f64>,
}

/// A hybrid, held against the better one of pushing and pulling all.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Verdict {
    pub(crate) hybrid: Contestant,
    pub(crate) better: Contestant,
    /// Of CPU time per operation.
    pub(crate) ratio: Estimate,
    /// The whole interval is more than 5 % worse.
    pub(crate) is_worse: bool,
}

impl Row {
    fn new(measured: &Measured, against: &Measured) -> anyhow::Result<Self> {
        let cpu = measured.rounds(super::turns::Sample::cpu_us);
        let to = against.rounds(super::turns::Sample::cpu_us);
        let rates = measured.rounds(|sample| Some(sample.operations_per_second));
        let per_second: Vec<f64> = cpu.iter().map(|us| 1e6 / us).collect();
        let Counted { operations, pages, fanouts, shown } =
            measured.counted.clone().context("nothing was counted")?;
        let read = pages.counts.succeeded.max(1);
        let all = operations.iter().map(|(_, summary)| &summary.counts);
        let (failed, dropped) = all.fold((0, 0), |(f, d), counts| (f + counts.failed(), d + counts.dropped));
        Ok(Self {
            system: measured.contestant,
            rounds: measured.samples.len(),
            accounts_pulled: measured.pulled,
            operations_per_second: median(&rates).context("no round was measured")?,
            server_cpu_us_per_operation: median(&measured.rounds(|sample| sample.server_us)),
            client_cpu_us_per_operation: median(&measured.rounds(|sample| sample.client_us)),
            cpu_us_per_operation: Estimate::of(&cpu),
            operations_per_cpu_second: median(&per_second),
            wire_bytes_per_operation: median(&measured.rounds(|sample| sample.wire_bytes)),
            cpu_ratio: Estimate::of(&ratios(&cpu, &to)),
            read_p50_us: pages.p50_us,
            read_p99_us: pages.p99_us,
            read_p999_us: pages.p999_us,
            fanout_lag_p50_ms: report::count(fanouts.p50_us) / 1e3,
            fanout_lag_p99_ms: report::count(fanouts.p99_us) / 1e3,
            memory_bytes: measured.memory,
            posts_per_page: report::count(shown) / report::count(read),
            failed: failed + fanouts.counts.failed(),
            dropped,
            late: measured.late,
            operations: operations.into_iter().collect(),
            rounds_cpu_us_per_operation: cpu,
        })
    }

    /// Memory in MB.
    pub(crate) fn memory_mb(&self) -> Option<f64> {
        self.memory_bytes.map(|bytes| report::count(bytes) / 1e6)
    }

    /// Whether everything was carried out.
    pub(crate) fn is_right(&self) -> bool {
        self.failed == 0 && self.dropped == 0
    }

    /// What was not carried out, and why, and what did not leave in time; nothing, if all was and did.
    pub(crate) fn faults(&self) -> Vec<String> {
        let Self { failed, dropped, late, .. } = self;
        let name = self.system.name();
        let mut said = Vec::new();
        if !self.is_right() {
            said.push(format!(
                "{name}: {failed} operations failed, {dropped} were not sent because too many were under way"
            ));
        }
        for (kind, summary) in &self.operations {
            let errors = summary.counts.errors.iter();
            said.extend(errors.map(|(error, count)| format!("{name}, {kind}: {count} {error}")));
        }
        if *late > 0 {
            said.push(format!("{name}: {late} operations left late, this program was behind"));
        }
        said
    }

    /// What tables show.
    pub(crate) fn cells(&self) -> [String; 13] {
        let us = |micros: Option<f64>| micros.map_or("unknown".to_owned(), |micros| format!("{micros:.1}"));
        let ms = |micros: u64| format!("{:.2}", report::count(micros) / 1e3);
        let ratio = self.cpu_ratio;
        [
            self.system.name().to_owned(),
            self.accounts_pulled.to_string(),
            format!("{:.0}", self.operations_per_second),
            self.operations_per_cpu_second.map_or("unknown".to_owned(), |rate| format!("{rate:.0}")),
            us(self.server_cpu_us_per_operation),
            us(self.client_cpu_us_per_operation),
            ratio.map_or(String::new(), |r| format!("{:.2} ({:.2}-{:.2})", r.median, r.low, r.high)),
            ms(self.read_p50_us),
            ms(self.read_p99_us),
            ms(self.read_p999_us),
            format!("{:.1}", self.fanout_lag_p99_ms),
            self.memory_mb().map_or("unknown".to_owned(), |mb| format!("{mb:.1}")),
            format!("{:.2}", self.posts_per_page),
        ]
    }
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
    let judge = |hybrid: &Measured| {
        // Both round by round: the better one is what the hybrid costs more of.
        let to = |pure: &Measured| Some((pure.contestant, cost_ratio(hybrid, pure)?));
        let (to_push, to_pull) = (to(push)?, to(pull)?);
        let (better, ratio) = if to_push.1.median >= to_pull.1.median { to_push } else { to_pull };
        let is_worse = hybrid.samples.len() >= SURE_FROM && ratio.low > WORSE_MAX;
        Some(Verdict { hybrid: hybrid.contestant, better, ratio, is_worse })
    };
    measured.iter().filter(|m| m.contestant.is_hybrid()).filter_map(judge).collect()
}

/// Whether there was no time for all rounds.
pub(crate) fn cut(rows: &[Row], asked: usize) -> Option<String> {
    let rounds = rows.first()?.rounds;
    (rounds < asked).then(|| format!("the time was up after {rounds} of {asked} rounds."))
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
    let cpu = |measured: &Measured| measured.rounds(super::turns::Sample::cpu_us);
    Estimate::of(&ratios(&cpu(of), &cpu(to)))
}

/// A row for each system.
pub(crate) fn rows(measured: &[Measured]) -> anyhow::Result<Vec<Row>> {
    let first = measured.first().context("nothing was measured")?;
    measured.iter().map(|one| Row::new(one, first)).collect()
}

impl Outcome {
    pub(crate) fn new(
        scenario: Scenario,
        (seed, own_cluster): (u64, bool),
        graph: &Graph,
        measured: &[Measured],
        calibration: Option<Calibration>,
    ) -> anyhow::Result<Self> {
        let rows = rows(measured)?;
        Ok(Self {
            command: "compare",
            scenario,
            seed,
            own_cluster,
            accounts: graph.accounts(),
            follows: graph.follows(),
            largest: graph.followers().iter().max().copied().unwrap_or(0),
            against: rows[0].system,
            rows,
            verdicts: verdicts(measured),
            calibration,
        })
    }

    /// What is to be said besides the table.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let verdicts = self.verdicts.iter().map(ToString::to_string);
        let cut = cut(&self.rows, self.scenario.drive.rounds);
        let said = verdicts.chain(unsure(&self.rows).map(str::to_owned)).chain(cut);
        said.chain(self.rows.iter().flat_map(Row::faults)).collect()
    }

    /// Whether everything was carried out.
    pub(crate) fn is_right(&self) -> bool {
        self.rows.iter().all(Row::is_right)
    }

    /// Over the cells of a row.
    pub(crate) fn header(against: Contestant) -> [String; 13] {
        let ratio = format!("CPU to {}", against.name());
        [
            "system",
            "pulled",
            "ops/s",
            "ops per CPU-s",
            "server us",
            "client us",
            &ratio,
            "read p50 ms",
            "p99",
            "p99.9",
            "fan-out p99 ms",
            "MB",
            "posts/page",
        ]
        .map(str::to_owned)
    }

    fn table(&self) -> Table {
        let mut table = report::new_table();
        table.set_header(Self::header(self.against));
        for row in &self.rows {
            table.add_row(row.cells());
        }
        report::align_figures(&mut table);
        table
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { accounts, follows, largest, seed, .. } = self;
        let name = &self.scenario.name;
        writeln!(
            f,
            "{name}: {accounts} accounts, {follows} follows, the largest has {largest} followers; seed {seed}"
        )?;
        writeln!(f, "{}", self.table())?;
        self.remarks().iter().try_for_each(|remark| writeln!(f, "{remark}"))?;
        let Some(calibration) = &self.calibration else { return Ok(()) };
        writeln!(f, "{calibration}")
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hybrid, better) = (self.hybrid.name(), self.better.name());
        let Estimate { median, low, high } = self.ratio;
        let said = if self.is_worse { ": more than 5 % worse" } else { "" };
        write!(
            f,
            "{hybrid} costs {median:.2} ({low:.2}-{high:.2}) times what {better} costs, the better of both{said}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::turns::Sample;
    use super::*;

    /// Rounds that differ among themselves, each by the same times as dear as that of another.
    fn measured(contestant: Contestant, rounds: usize, times: f64) -> Measured {
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
    fn a_hybrid_is_held_against_what_it_costs_more_of_round_by_round() {
        let against_push = verdict(6, 3.0);
        assert_eq!(against_push.better, Contestant::PushOnly);
        assert!(against_push.is_worse && (against_push.ratio.low - 1.2).abs() < 1e-9, "{against_push}");
        let against_pull = verdict(6, 0.5);
        assert_eq!(against_pull.better, Contestant::PullOnly);
        assert!((against_pull.ratio.median - 2.4).abs() < 1e-9, "{against_pull}");
    }

    #[test]
    fn what_failed_was_not_sent_or_left_late_is_told_and_the_first_two_are_not_right() {
        let tally = crate::tally::Tally::new();
        tally.ended(std::time::Duration::ZERO, None);
        let row = || {
            let posts = ("post", tally.summary());
            let pages = crate::tally::Tally::new().summary();
            let counted = Counted { operations: vec![posts], pages: pages.clone(), fanouts: pages, shown: 0 };
            let measured =
                Measured { counted: Some(counted), late: 3, ..measured(Contestant::PushOnly, 2, 1.0) };
            Row::new(&measured, &measured).unwrap()
        };
        let late = "push_only: 3 operations left late, this program was behind";
        assert!(row().is_right());
        assert_eq!(row().faults(), [late]);
        tally.dropped();
        assert!(!row().is_right());
        tally.ended(std::time::Duration::ZERO, Some("unavailable".to_owned()));
        let wrong = "push_only: 1 operations failed, 1 were not sent because too many were under way";
        assert_eq!(row().faults(), [wrong, "push_only, post: 1 unavailable", late]);
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
    fn fewer_than_six_rounds_condemn_nobody() {
        assert!(!verdict(5, 3.0).is_worse);
        assert!(!verdict(2, 0.5).is_worse);
    }
}
