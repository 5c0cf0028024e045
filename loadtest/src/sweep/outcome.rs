//! The result of a sweep: what the JSON holds, and the report made of it.

use serde::Serialize;

use super::crossing::{Cheaper, Ratio};
use crate::common::Told;
use crate::compare::{Measured, Row, Verdict, caveat, cost_ratio, cut, rows, unmet, unsure, verdicts};
use crate::graph::Graph;
use crate::page::{Line, lines};
use crate::report::{self, Part, Report, estimates, header};
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
        }
    }

    /// All systems, in the order of their rows.
    fn systems(&self) -> Vec<Contestant> {
        self.points.first().map(|point| point.rows.iter().map(|row| row.system).collect()).unwrap_or_default()
    }

    /// What is to be said at each share, with that.
    fn at_each(&self, of: impl Fn(&Point) -> Vec<String>) -> Vec<String> {
        let told = |point: &Point| {
            let percent = point.active_percent;
            of(point).into_iter().map(move |said| format!("{percent} %: {said}"))
        };
        self.points.iter().flat_map(told).collect()
    }

    /// What is to be said besides.
    fn remarks(&self) -> Vec<String> {
        let asked = self.scenario.drive.rounds;
        let verdicts = self.at_each(|point| point.verdicts.iter().map(ToString::to_string).collect());
        let unsure = self.points.iter().find_map(|point| unsure(&point.rows));
        let cut = self.at_each(|point| cut(&point.rows, asked).into_iter().collect());
        let faults = self.at_each(|point| point.rows.iter().flat_map(Row::faults).collect());
        let said = std::iter::once(self.cheaper.to_string()).chain(verdicts).chain(unsure.map(str::to_owned));
        let said = said.chain(caveat(&self.scenario.drive)).chain(cut).chain(self.missing());
        said.chain(faults).collect()
    }

    /// Shares that are left out.
    fn missing(&self) -> impl Iterator<Item = String> {
        self.left_out.iter().map(|share| format!("{share} %: left out, the time was up."))
    }

    fn chart(&self, heading: &'static str, unit: &str, value: &dyn Fn(&Row) -> Option<Figure>) -> Part {
        let point = |system: Contestant, point: &Point| {
            let (value, low, high) = value(point.rows.iter().find(|row| row.system == system)?)?;
            Some((point.active_percent, value, low, high))
        };
        let line = |system: Contestant| Line {
            name: system.name().to_owned(),
            points: self.points.iter().filter_map(|at| point(system, at)).collect(),
        };
        let all: Vec<Line> = self.systems().into_iter().map(line).collect();
        Part::Chart(heading, "Less is better.", lines(&all, "% of all accounts that read", unit))
    }
}

impl Told for Outcome {
    fn report(&self) -> Report {
        let Self { accounts, follows, seed, .. } = self;
        let name = &self.scenario.name;
        let about = format!(
            "{name}: {accounts} accounts, {follows} follows; seed {seed}. Everybody posts as before, while the share \
             of accounts that read grows, each of which reads as often."
        );
        let header = header("% that read", self.systems().into_iter().map(Contestant::name));
        let figures = |point: &Point| {
            estimates(&point.share(), 1, point.rows.iter().map(|row| row.cpu_us_per_operation))
        };
        let figures = self.points.iter().map(figures).collect();
        let heading = "CPU us of an operation, servers and client; in brackets the interval.";
        let mut parts = vec![Part::Text(about), Part::Table(heading.to_owned(), header, figures)];
        parts.extend(self.remarks().into_iter().map(Part::Text));
        parts.extend([
            self.chart("CPU time of an operation", "us", &|row| {
                row.cpu_us_per_operation.map(|cpu| (cpu.median, cpu.low, cpu.high))
            }),
            self.chart("A page, 99 of 100", "ms", &|row| alone(report::count(row.read_p99_us) / 1e3)),
            self.chart("Memory", "MB", &|row| alone(row.memory_mb()?)),
        ]);
        Report { title: format!("Push or pull, by how many read: {name}"), parts }
    }

    fn is_right(&self) -> bool {
        !self.points.is_empty() && self.points.iter().flat_map(|point| &point.rows).all(Row::is_right)
    }

    /// Of hybrids at each share.
    fn unmet(&self) -> Vec<String> {
        let unmet = self.at_each(|point| unmet(&point.rows, &point.verdicts));
        unmet.into_iter().chain(self.missing()).collect()
    }
}

/// A figure, and its interval.
type Figure = (f64, f64, f64);

fn alone(value: f64) -> Option<Figure> {
    Some((value, value, value))
}
