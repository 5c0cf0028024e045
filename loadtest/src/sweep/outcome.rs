//! The result of a sweep: what the JSON holds, and the table made of it.

use std::fmt;

use comfy_table::Table;
use serde::Serialize;

use super::crossing::{Cheaper, Ratio};
use crate::calibration::Calibration;
use crate::compare::{
    Measured, Row, Verdict, caveat, cost_ratio, cut, reads_told, rows, unmet, unsure, verdicts,
};
use crate::graph::Graph;
use crate::report;
use crate::scenario::Scenario;
use crate::stats::{Estimate, SURE_FROM};
use crate::systems::Contestant;

/// Everything that a run tells; loadtest/README.md explains the fields.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Outcome {
    command: &'static str,
    pub(crate) scenario: Scenario,
    pub(crate) seed: u64,
    own_cluster: bool,
    pub(crate) accounts: usize,
    pub(crate) follows: usize,
    pub(crate) points: Vec<Point>,
    /// Shares that there was no time for.
    left_out: Vec<f64>,
    /// Where pushing all becomes cheaper than pulling all, in percent of accounts that read.
    crossing_percent: Option<f64>,
    /// The whole of it.
    cheaper: Cheaper,
    calibration: Option<Calibration>,
}

/// At one share of accounts that read.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Point {
    pub(crate) active_percent: f64,
    reads_per_post: f64,
    pub(crate) rows: Vec<Row>,
    pub(crate) verdicts: Vec<Verdict>,
    /// What pushing all costs in what pulling all does, round by round.
    push_to_pull: Option<Estimate>,
}

impl Point {
    pub(crate) fn new(scenario: &Scenario, measured: &[Measured]) -> anyhow::Result<Self> {
        let find = |which: Contestant| measured.iter().find(|one| one.contestant == which);
        let pure = find(Contestant::PushOnly).zip(find(Contestant::PullOnly));
        Ok(Self {
            active_percent: scenario.activity.active_percent,
            reads_per_post: scenario.mix.reads_per_post(),
            rows: rows(measured)?,
            verdicts: verdicts(measured),
            push_to_pull: pure.and_then(|(push, pull)| cost_ratio(push, pull)),
        })
    }
}

impl Point {
    /// What pushing all costs in what pulling all does, if both were measured.
    fn ratio(&self) -> Option<Ratio> {
        let ratio = self.push_to_pull?;
        let sure = self.rows.first().filter(|row| row.rounds >= SURE_FROM).map(|_| ratio);
        Some(Ratio { percent: self.active_percent, sure, median: ratio.median })
    }

    /// What share of accounts read; how many rounds it is from, if these are too few.
    fn share(&self) -> String {
        let rounds = self.rows.first().map_or(0, |row| row.rounds);
        match rounds < SURE_FROM {
            true => format!(
                "{} ({} only)",
                self.active_percent,
                report::many(report::count(rounds as u64), "round", "rounds")
            ),
            false => self.active_percent.to_string(),
        }
    }
}

impl Outcome {
    pub(crate) fn new(
        scenario: Scenario,
        (seed, own_cluster): (u64, bool),
        graph: &Graph,
        points: Vec<Point>,
        left_out: Vec<f64>,
        calibration: Option<Calibration>,
    ) -> Self {
        let cheaper = Cheaper::of(&points.iter().filter_map(Point::ratio).collect::<Vec<_>>());
        Self {
            command: "sweep",
            scenario,
            seed,
            own_cluster,
            accounts: graph.accounts(),
            follows: graph.follows(),
            crossing_percent: cheaper.percent(),
            cheaper,
            points,
            left_out,
            calibration,
        }
    }

    /// Whether everything was carried out.
    pub(crate) fn is_right(&self) -> bool {
        !self.points.is_empty() && self.points.iter().flat_map(|point| &point.rows).all(Row::is_right)
    }

    /// All systems, in the order of their rows.
    pub(crate) fn systems(&self) -> Vec<Contestant> {
        self.points.first().map(|point| point.rows.iter().map(|row| row.system).collect()).unwrap_or_default()
    }

    /// Over the cells of a row.
    pub(crate) fn header(&self) -> Vec<String> {
        let names = self.systems().into_iter().map(|system| system.name().to_owned());
        ["% that read".to_owned(), "reads/post".to_owned()].into_iter().chain(names).collect()
    }

    /// What tables show.
    pub(crate) fn cells(&self) -> Vec<Vec<String>> {
        let cells = |point: &Point| {
            let cost = |row: &Row| {
                let Some(cpu) = row.cpu_us_per_operation else { return "unknown".to_owned() };
                format!("{:.1} ({:.1}-{:.1})", cpu.median, cpu.low, cpu.high)
            };
            let shares = [point.share(), format!("{:.1}", point.reads_per_post)];
            shares.into_iter().chain(point.rows.iter().map(cost)).collect()
        };
        self.points.iter().map(cells).collect()
    }

    /// What is to be said besides.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let verdicts = self.points.iter().flat_map(|point| {
            let told = |verdict: &Verdict| format!("{} %: {verdict}", point.active_percent);
            point.verdicts.iter().map(told).collect::<Vec<_>>()
        });
        let unsure = self.points.iter().find_map(|point| unsure(&point.rows));
        let reads = self
            .points
            .iter()
            .map(|point| format!("{} %: {}", point.active_percent, reads_told(&point.rows)));
        let reads = reads.chain(caveat(&self.scenario.drive));
        let cheaper = std::iter::once(self.cheaper.to_string());
        let said = cheaper.chain(verdicts).chain(unsure.map(str::to_owned)).chain(reads);
        said.chain(self.for_want_of_time()).chain(self.faults()).collect()
    }

    /// What is claimed of hybrids at each share, and is not so, or could not be judged.
    pub(crate) fn unmet(&self) -> Vec<String> {
        let of = |point: &Point| {
            let told = |claim: String| format!("{} %: {claim}", point.active_percent);
            unmet(&point.rows, &point.verdicts).into_iter().map(told).collect::<Vec<_>>()
        };
        self.points.iter().flat_map(of).chain(self.missing()).collect()
    }

    /// What was not carried out, or not in time.
    fn faults(&self) -> Vec<String> {
        let of = |point: &Point, row: &Row| {
            let told = |fault: String| format!("{} %: {fault}", point.active_percent);
            row.faults().into_iter().map(told).collect::<Vec<_>>()
        };
        self.points.iter().flat_map(|point| point.rows.iter().flat_map(move |row| of(point, row))).collect()
    }

    /// What there was no time for.
    fn for_want_of_time(&self) -> Vec<String> {
        let asked = self.scenario.drive.rounds;
        let cut = self
            .points
            .iter()
            .filter_map(|point| Some(format!("{} %: {}", point.active_percent, cut(&point.rows, asked)?)));
        cut.chain(self.missing()).collect()
    }

    /// Shares that are left out.
    fn missing(&self) -> impl Iterator<Item = String> {
        self.left_out.iter().map(|share| format!("{share} %: left out, the time was up."))
    }

    fn table(&self) -> Table {
        let mut table = report::new_table();
        table.set_header(self.header());
        for cells in self.cells() {
            table.add_row(cells);
        }
        report::align_figures(&mut table);
        table
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { accounts, follows, seed, .. } = self;
        writeln!(f, "{}: {accounts} accounts, {follows} follows; seed {seed}", self.scenario.name)?;
        writeln!(f, "CPU us of an operation, servers and client\n{}", self.table())?;
        self.remarks().iter().try_for_each(|remark| writeln!(f, "{remark}"))?;
        self.calibration.iter().try_for_each(|calibration| writeln!(f, "{calibration}"))
    }
}
