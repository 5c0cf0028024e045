//! The result of a run: what the JSON holds, and the table made of it.

use std::collections::BTreeMap;

use anyhow::Context as _;
use serde::Serialize;

use super::args::FanoutArgs;
use super::measure::{Sample, Turn};
use super::system::Kind;
use super::world::World;
use super::{REPLICAS, Turns};
use crate::common::Told;
use crate::report::{self, Part, Report, header, row};
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
pub(super) struct Row {
    samples: usize,
    entries_per_home: u64,
    wall_seconds: f64,
    first_seconds: f64,
    half_seconds: f64,
    percent_99_seconds: f64,
    pub(super) last_seconds: f64,
    deliveries_per_second: f64,
    pub(super) server_cpu_us_per_delivery: Option<f64>,
    pub(super) client_cpu_us_per_delivery: Option<f64>,
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
            own_cluster: args.common.is_own(),
            followers: world.followers,
            homes: world.homes,
            posts_per_round: world.posts_per_round,
            tideline: baselines.remove(OURS),
            baselines,
            with_replicas: WithReplicas { replicas_per_primary: REPLICAS, rows: rows(with_replicas)? },
        })
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
    pub(super) fn new(args: &FanoutArgs, kind: Kind, turns: &[Turn]) -> anyhow::Result<Self> {
        let samples: Vec<&Sample> = turns.iter().flat_map(|turn| &turn.samples).collect();
        let of = |field: &dyn Fn(&Sample) -> f64| samples.iter().map(|s| field(s)).collect::<Vec<f64>>();
        // A value that some round could not measure is unknown.
        let known = |field: &dyn Fn(&Sample) -> Option<f64>| {
            samples.iter().map(|s| field(s)).collect::<Option<Vec<f64>>>().unwrap_or_default()
        };
        let wall = of(&|s| s.times[4]);
        let server = known(&|s| s.server_us);
        let client = known(&|s| s.client_us);
        let cpu = known(&|s| Some(s.server_us? + s.client_us?));
        let bytes: Vec<f64> = turns.iter().map(|turn| turn.bytes_per_entry).collect();
        let middle = |values: &[f64]| median(values).context("no round was measured");
        Ok(Self {
            samples: samples.len(),
            entries_per_home: kind.cap(args),
            wall_seconds: middle(&wall)?,
            first_seconds: middle(&of(&|s| s.times[0]))?,
            half_seconds: middle(&of(&|s| s.times[1]))?,
            percent_99_seconds: middle(&of(&|s| s.times[2]))?,
            last_seconds: middle(&of(&|s| s.times[3]))?,
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
}

impl Told for Outcome {
    fn report(&self) -> Report {
        let Self { homes, followers, posts_per_round, seed, .. } = self;
        let about = format!(
            "{homes} homes; posts to {followers} followers each, {posts_per_round} in a round; seed {seed}"
        );
        let rows: Vec<(String, &Row)> = self.rows().collect();
        let first = rows.first().and_then(|(_, row)| row.cpu_us_per_delivery);
        let ms = |seconds: f64| Some(format!("{:.1}", seconds * 1e3));
        let us = |micros: Option<f64>| Some(format!("{:.2}", micros?));
        let spread = |of: &Row| {
            let Spread { lowest, highest } = of.spread.cpu_us_per_delivery?;
            Some(format!("{:.2} ({lowest:.2}-{highest:.2})", of.cpu_us_per_delivery?))
        };
        let times = |(name, of): &(String, &Row)| {
            let times = [of.first_seconds, of.half_seconds, of.percent_99_seconds, of.last_seconds].map(ms);
            row(name, times.into_iter().chain([Some(format!("{:.0}", of.deliveries_per_second))]))
        };
        let costs = |(name, of): &(String, &Row)| {
            let ratio = of.cpu_us_per_delivery.zip(first).map(|(own, first)| format!("{:.2} x", own / first));
            let cpu =
                [us(of.server_cpu_us_per_delivery), us(of.client_cpu_us_per_delivery), spread(of), ratio];
            let memory = [of.entries_per_home.to_string(), format!("{:.1}", of.bytes_per_entry)];
            row(name, cpu.into_iter().chain(memory.map(Some)))
        };
        let of_times = header("system", ["first ms", "half ms", "99 % ms", "last ms", "deliveries/s"]);
        let columns = ["server us", "client us", "CPU us (spread)", "CPU", "entries", "bytes/entry"];
        let mut parts = vec![
            Part::Table(about, of_times, rows.iter().map(times).collect()),
            Part::Table(String::new(), header("system", columns), rows.iter().map(costs).collect()),
        ];
        let wrong = rows.iter().filter(|(_, row)| row.homes_wrong > 0);
        parts.extend(wrong.map(|(name, Row { homes_wrong, homes_looked_at, .. })| {
            let of = format!("{homes_wrong} of {homes_looked_at} homes");
            Part::Text(format!("{name}: {of} are not full or lack the last post."))
        }));
        Report { title: format!("Posts to {followers} followers"), parts }
    }

    /// Whether every home that was looked at was as it had to be.
    fn is_right(&self) -> bool {
        self.rows().all(|(_, row)| row.homes_wrong == 0)
    }
}
