//! The result of a run: what the JSON holds, and the table made of it.

use std::collections::BTreeMap;
use std::{fmt, iter};

use anyhow::Context as _;
use comfy_table::Table;
use serde::Serialize;

use super::REPLICAS;
use super::args::FanoutArgs;
use super::measure::{Sample, Turn};
use super::system::Kind;
use super::world::World;
use crate::report;
use crate::stats::{Spread, median};

/// The system that the others are baselines for.
pub(crate) const OURS: &str = "tideline";

/// Everything that a run tells; loadtest/README.md explains the fields.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Outcome {
    command: &'static str,
    settings: FanoutArgs,
    seed: u64,
    own_cluster: bool,
    followers: u64,
    homes: u64,
    posts_per_round: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    tideline: Option<Row>,
    baselines: BTreeMap<&'static str, Row>,
    with_replicas: WithReplicas,
}

/// The rows with replicas; none if they were left out.
#[derive(Debug, Clone, Serialize)]
struct WithReplicas {
    replicas_per_primary: u16,
    #[serde(flatten)]
    rows: BTreeMap<&'static str, Row>,
}

/// What a system has shown, medians over all rounds.
#[derive(Debug, Clone, Serialize)]
struct Row {
    samples: usize,
    entries_per_home: u64,
    wall_seconds: f64,
    first_seconds: f64,
    half_seconds: f64,
    percent_99_seconds: f64,
    last_seconds: f64,
    deliveries_per_second: f64,
    server_cpu_us_per_delivery: Option<f64>,
    client_cpu_us_per_delivery: Option<f64>,
    /// Both together, in each round: the median of sums is not the sum of medians.
    cpu_us_per_delivery: Option<f64>,
    bytes_per_entry: f64,
    homes_looked_at: u64,
    homes_wrong: u64,
    spread: Spreads,
    /// In the order in which they were measured, so that a drift shows.
    rounds_cpu_us_per_delivery: Vec<f64>,
}

/// The lowest and highest of the rounds.
#[derive(Debug, Clone, Serialize)]
struct Spreads {
    wall_seconds: Option<Spread>,
    server_cpu_us_per_delivery: Option<Spread>,
    client_cpu_us_per_delivery: Option<Spread>,
    cpu_us_per_delivery: Option<Spread>,
    bytes_per_entry: Option<Spread>,
}

type Turns = BTreeMap<Kind, Vec<Turn>>;

impl Outcome {
    pub(crate) fn new(
        args: &FanoutArgs,
        seed: u64,
        world: &World,
        alone: &Turns,
        with_replicas: &Turns,
    ) -> anyhow::Result<Self> {
        let rows = |turns: &Turns| -> anyhow::Result<BTreeMap<&'static str, Row>> {
            turns.iter().map(|(kind, turns)| Ok((kind.name(), Row::new(args, *kind, turns)?))).collect()
        };
        let mut baselines = rows(alone)?;
        Ok(Self {
            command: "fanout",
            settings: args.clone(),
            seed,
            own_cluster: args.cluster.is_empty(),
            followers: world.followers,
            homes: world.homes,
            posts_per_round: world.posts_per_round,
            tideline: baselines.remove(OURS),
            baselines,
            with_replicas: WithReplicas { replicas_per_primary: REPLICAS, rows: rows(with_replicas)? },
        })
    }

    /// Whether every home that was looked at was as it had to be.
    pub(crate) fn is_right(&self) -> bool {
        self.rows().all(|(_, row)| row.homes_wrong == 0)
    }

    /// All rows, the one to compare with first.
    fn rows(&self) -> impl Iterator<Item = (String, &Row)> {
        let named = |name: &&'static str| self.baselines.get_key_value(name);
        let alone = Kind::ALL.iter().map(|kind| kind.name());
        let alone = alone.filter_map(move |name| match name {
            OURS => Some((OURS, self.tideline.as_ref()?)),
            other => named(&other).map(|(name, row)| (*name, row)),
        });
        let replicated = self.with_replicas.rows.iter();
        alone
            .map(|(name, row)| (name.to_owned(), row))
            .chain(replicated.map(|(name, row)| (format!("{name}, replicas"), row)))
    }
}

impl Row {
    /// Fails without a sample.
    fn new(args: &FanoutArgs, kind: Kind, turns: &[Turn]) -> anyhow::Result<Self> {
        let samples: Vec<&Sample> = turns.iter().flat_map(|turn| &turn.samples).collect();
        let of = |field: &dyn Fn(&Sample) -> f64| samples.iter().map(|s| field(s)).collect::<Vec<f64>>();
        // A value that some round could not measure is unknown.
        let known = |field: &dyn Fn(&Sample) -> Option<f64>| {
            samples.iter().map(|s| field(s)).collect::<Option<Vec<f64>>>().unwrap_or_default()
        };
        let wall = of(&|s| s.times.wall.as_secs_f64());
        let server = known(&|s| s.server_us);
        let client = known(&|s| s.client_us);
        let cpu = known(&|s| Some(s.server_us? + s.client_us?));
        let bytes: Vec<f64> = turns.iter().map(|turn| turn.bytes_per_entry).collect();
        let middle = |values: &[f64]| median(values).context("no round was measured");
        Ok(Self {
            samples: samples.len(),
            entries_per_home: kind.cap(args),
            wall_seconds: middle(&wall)?,
            first_seconds: middle(&of(&|s| s.times.first.as_secs_f64()))?,
            half_seconds: middle(&of(&|s| s.times.half.as_secs_f64()))?,
            percent_99_seconds: middle(&of(&|s| s.times.percent_99.as_secs_f64()))?,
            last_seconds: middle(&of(&|s| s.times.last.as_secs_f64()))?,
            deliveries_per_second: middle(&of(&|s| report::count(s.deliveries) / s.wall.as_secs_f64()))?,
            server_cpu_us_per_delivery: median(&server),
            client_cpu_us_per_delivery: median(&client),
            cpu_us_per_delivery: median(&cpu),
            bytes_per_entry: middle(&bytes)?,
            homes_looked_at: turns.iter().map(|turn| turn.homes_looked_at).sum(),
            homes_wrong: turns.iter().map(|turn| turn.homes_wrong).sum(),
            spread: Spreads {
                wall_seconds: Spread::of(&wall),
                server_cpu_us_per_delivery: Spread::of(&server),
                client_cpu_us_per_delivery: Spread::of(&client),
                cpu_us_per_delivery: Spread::of(&cpu),
                bytes_per_entry: Spread::of(&bytes),
            },
            rounds_cpu_us_per_delivery: cpu,
        })
    }

    fn times(&self, _: &Self) -> [String; 5] {
        let ms = |seconds: f64| format!("{:.1}", seconds * 1e3);
        [
            ms(self.first_seconds),
            ms(self.half_seconds),
            ms(self.percent_99_seconds),
            ms(self.last_seconds),
            format!("{:.0}", self.deliveries_per_second),
        ]
    }

    fn costs(&self, first: &Self) -> [String; 6] {
        let us = |micros: Option<f64>| micros.map_or("unknown".to_owned(), |micros| format!("{micros:.2}"));
        let spread = self.spread.cpu_us_per_delivery;
        let spread = spread.map_or(String::new(), |s| format!(" ({:.2}-{:.2})", s.lowest, s.highest));
        let times = self.cpu_us_per_delivery.zip(first.cpu_us_per_delivery);
        [
            us(self.server_cpu_us_per_delivery),
            us(self.client_cpu_us_per_delivery),
            us(self.cpu_us_per_delivery) + &spread,
            times.map_or(String::new(), |(own, first)| format!("{:.2} x", own / first)),
            self.entries_per_home.to_string(),
            format!("{:.1}", self.bytes_per_entry),
        ]
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} homes; posts to {} followers each, {} in a round; seed {}\n{}\n{}",
            self.homes,
            self.followers,
            self.posts_per_round,
            self.seed,
            self.times(),
            self.costs()
        )?;
        for (name, row) in self.rows() {
            if row.homes_wrong > 0 {
                let (wrong, looked_at) = (row.homes_wrong, row.homes_looked_at);
                writeln!(f, "{name}: {wrong} of {looked_at} homes are not full or lack the last post.")?;
            }
        }
        Ok(())
    }
}

impl Outcome {
    /// When deliveries were there.
    fn times(&self) -> Table {
        self.table(&["first ms", "half ms", "99 % ms", "last ms", "deliveries/s"], Row::times)
    }

    /// What a delivery costs, and what it takes in memory.
    fn costs(&self) -> Table {
        let header = ["server us", "client us", "CPU us (spread)", "CPU", "entries", "bytes/entry"];
        self.table(&header, Row::costs)
    }

    fn table<const N: usize>(&self, header: &[&str; N], cells: impl Fn(&Row, &Row) -> [String; N]) -> Table {
        let mut table = report::new_table();
        table.set_header(iter::once(&"system").chain(header));
        let mut first = None;
        for (name, row) in self.rows() {
            table.add_row(iter::once(name).chain(cells(row, first.get_or_insert(row))));
        }
        report::align_figures(&mut table);
        table
    }
}
