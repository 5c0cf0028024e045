//! One kind of operation at a time on a network of which everybody is alike: what it costs.

use std::sync::Arc;

use anyhow::Context as _;
use serde::Serialize;

use super::ScaleArgs;
use crate::bench::Bench;
use crate::compare::{Field, Measured};
use crate::graph::Graph;
use crate::plan::Units;
use crate::scenario::{Mix, Scenario};
use crate::stats::{Estimate, median};
use crate::systems::Contestant;
use crate::workload::Workload;

const PRIMARIES: u16 = 3;

/// A network of which everybody is alike, and how load is put on it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Network {
    pub(super) primaries: u16,
    pub(super) accounts: u32,
    pub(super) mean: u32,
    /// Whether everybody has a home, or (nearly) nobody.
    pub(super) active: bool,
    pub(super) at_once: u32,
    pub(super) rounds: u32,
    pub(super) round_seconds: u32,
}

impl Network {
    fn scenario(&self) -> anyhow::Result<Scenario> {
        let Self { primaries, accounts, mean, at_once, rounds, round_seconds, active } = *self;
        let active = if active { 100.0 } else { 1e-9 };
        Scenario::parse(&format!(
            "name = 'scale'\n[graph]\npreset = 'uniform'\naccounts = {accounts}\nmean = {mean}\n[activity]\n\
             active_percent = {active}\nof_posts_percent = 10\n[mix]\npost = 1\n[drive]\nprimaries = {primaries}\n\
             at_once = {at_once}\nrounds = {rounds}\nround_seconds = {round_seconds}\nwarm_up_seconds = 1\n"
        ))
    }
}

/// What an operation costs, servers and client.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Cost {
    pub(super) server_us: f64,
    pub(super) client_us: f64,
    /// Both together, with its interval.
    pub(super) both_us: Estimate,
}

impl Cost {
    fn of(measured: &Measured) -> anyhow::Result<Self> {
        let known = "CPU time cannot be read on this machine";
        Ok(Self {
            server_us: median(&measured.rounds(|sample| sample.server_us)).context(known)?,
            client_us: median(&measured.rounds(|sample| sample.client_us)).context(known)?,
            both_us: Estimate::of(&measured.rounds(crate::compare::Sample::cpu_us)).context(known)?,
        })
    }

    /// For each of so many.
    pub(super) fn by(self, count: f64) -> Self {
        let Estimate { median, low, high } = self.both_us;
        Self {
            server_us: self.server_us / count,
            client_us: self.client_us / count,
            both_us: Estimate { median: median / count, low: low / count, high: high / count },
        }
    }

    /// Of one more: what this costs beyond another, for each of so many.
    fn beyond(self, other: Self, count: f64) -> [f64; 2] {
        let more = |this: f64, other: f64| ((this - other) / count).max(0.0);
        [more(self.server_us, other.server_us), more(self.client_us, other.client_us)]
    }

    fn sides(self) -> [f64; 2] {
        [self.server_us, self.client_us]
    }
}

/// A network on its servers.
struct At<'a> {
    bench: &'a Bench,
    scenario: Scenario,
    graph: Arc<Graph>,
    field: Field,
    seed: u64,
}

impl<'a> At<'a> {
    async fn load(
        bench: &'a Bench,
        network: Network,
        contestant: Contestant,
        seed: u64,
    ) -> anyhow::Result<Self> {
        let scenario = network.scenario()?;
        let graph = Arc::new(scenario.graph.make(seed)?);
        let workload = Workload::new(graph.clone(), &scenario.activity, &scenario.mix, seed);
        let mut field = Field::load(bench, &scenario, &[contestant], graph.clone(), &workload).await?;
        field.prepare(bench, &scenario, &workload).await?;
        Ok(Self { bench, scenario, graph, field, seed })
    }

    /// Followers of an account.
    fn mean(&self) -> f64 {
        crate::report::count(self.graph.follows() as u64) / crate::report::count(self.graph.accounts() as u64)
    }

    /// What one of these costs.
    async fn cost(&mut self, mix: Mix) -> anyhow::Result<Cost> {
        let mut workload = Workload::new(self.graph.clone(), &self.scenario.activity, &mix, self.seed);
        let measured = self.field.measure(self.bench, &self.scenario, &mut workload, self.seed).await?;
        Cost::of(measured.first().context("nothing was measured")?)
    }

    /// Empties the servers for the next one.
    async fn leave(self) -> anyhow::Result<()> {
        drop(self.field);
        self.bench.empty().await
    }
}

fn posts() -> Mix {
    Mix { post: 1.0, ..Mix::default() }
}

fn reads() -> Mix {
    Mix { read: 1.0, ..Mix::default() }
}

/// On so many primaries.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Point {
    pub(super) primaries: u16,
    pub(super) delivery: Cost,
    pub(super) read: Cost,
}

/// Starts a cluster for some work, and removes it however that ends.
async fn on_cluster<T>(
    seeds: &[String],
    primaries: u16,
    work: impl AsyncFnOnce(&Bench) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let bench = Bench::open(seeds, primaries, 0).await?;
    let found = work(&bench).await;
    let closed = bench.leave().await;
    let found = found?;
    closed?;
    Ok(found)
}

/// A delivery, the post's own part included, and a page.
pub(super) async fn point(args: &ScaleArgs, primaries: u16, seed: u64) -> anyhow::Result<Point> {
    on_cluster(&[], primaries, async |bench| {
        let mut at = At::load(bench, args.network(primaries, true), Contestant::PushOnly, seed).await?;
        let delivery = at.cost(posts()).await?.by(at.mean());
        let read = at.cost(reads()).await?;
        Ok(Point { primaries, delivery, read })
    })
    .await
}

/// What one of each thing costs, on three primaries. What is not measured is as it was for docs/benchmarks.md.
pub(super) async fn units(args: &ScaleArgs, seed: u64) -> anyhow::Result<Units> {
    on_cluster(&args.cluster, PRIMARIES, async |bench| units_on(bench, args, seed).await).await
}

async fn units_on(bench: &Bench, args: &ScaleArgs, seed: u64) -> anyhow::Result<Units> {
    let network = args.network(PRIMARIES, true);
    let pushed = async |network| At::load(bench, network, Contestant::PushOnly, seed).await;

    let mut lonely = pushed(Network { mean: 1, active: false, ..network }).await?;
    let one_asleep = lonely.cost(posts()).await?;
    lonely.leave().await?;

    let mut asleep = pushed(Network { active: false, ..network }).await?;
    let all_asleep = asleep.cost(posts()).await?;
    asleep.leave().await?;

    let mut awake = pushed(network).await?;
    let mean = awake.mean();
    let all_awake = awake.cost(posts()).await?;
    let read = awake.cost(reads()).await?;
    let follow = awake.cost(Mix { subscribe: 1.0, ..Mix::default() }).await?;
    awake.leave().await?;

    let mut pulled = At::load(bench, network, Contestant::PullOnly, seed).await?;
    let read_pulled = pulled.cost(reads()).await?;

    let skipped = all_asleep.beyond(one_asleep, mean - 1.0);
    let publish = [0, 1].map(|side| (one_asleep.sides()[side] - skipped[side]).max(0.0));
    let delivery = [0, 1].map(|side| ((all_awake.sides()[side] - publish[side]) / mean).max(0.0));
    Ok(Units {
        source: format!(
            "loadtest scale: {PRIMARIES} primaries on this machine, {} followers each, seed {seed}",
            args.mean
        ),
        publish_us: publish,
        skipped_us: skipped,
        delivery_us: delivery,
        read_us: read.sides(),
        pull_us: read_pulled.beyond(read, mean),
        follow_us: follow.sides(),
        ..Units::default()
    })
}
