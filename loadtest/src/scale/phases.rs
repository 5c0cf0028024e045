//! One kind of operation at a time on a network of which everybody is alike: what it costs.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context as _;
use serde::Serialize;

use super::ScaleArgs;
use super::differences::{Noise, PageUnits, Pages, Sides, by, less};
use crate::bench::{Bench, Used, on_cluster};
use crate::compare::{Contender, Field, Measured};
use crate::cpu;
use crate::deadline::Deadline;
use crate::graph::Graph;
use crate::report::{count, many};
use crate::scenario::{Mix, Scenario};
use crate::session::Counted;
use crate::stats::{Estimate, median};
use crate::systems::{Contestant, home_posts};
use crate::units::Units;
use crate::workload::Workload;

/// Of the cluster on which one of each thing is measured.
const PRIMARIES: u16 = 3;
/// Posts of each account that are there at the beginning, and the bytes of their texts.
pub(super) const HISTORY: u32 = 8;
const TEXT_BYTES: f64 = 100.0;
/// Taken from docs/benchmarks.md; the first one unless accounts with very many followers are measured as well.
const NOT_MEASURED: [&str; 7] = [
    "delivery_spread_us",
    "promote_us",
    "ranked_us",
    "group_post_us",
    "message_us",
    "message_member_us",
    "permit_us",
];

/// A network of which everybody is alike, and how load is put on it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Network {
    pub(super) accounts: u32,
    pub(super) mean: u32,
    /// Posts of each account that are there at the beginning.
    pub(super) history: u32,
    /// Whether everybody has a home, or (nearly) nobody.
    pub(super) active: bool,
    /// Whether posts, accounts and outboxes are remembered for a while.
    pub(super) is_cached: bool,
    pub(super) at_once: u32,
    pub(super) rounds: u32,
    pub(super) round_seconds: u32,
}

impl Network {
    fn scenario(&self) -> anyhow::Result<Scenario> {
        let Self { accounts, mean, history, at_once, rounds, round_seconds, active, is_cached } = *self;
        let active = if active { 100.0 } else { 1e-9 };
        let mut scenario = Scenario::parse(&format!(
            "name = 'scale'\n[graph]\npreset = 'uniform'\naccounts = {accounts}\nmean = {mean}\n[activity]\n\
             active_percent = {active}\nof_posts_percent = 10\nhistory = {history}\ntext_chars = \
             {TEXT_BYTES}\n[mix]\npost = 1\n[drive]\n\
             at_once = {at_once}\nrounds = {rounds}\nround_seconds = {round_seconds}\nwarm_up_seconds = 1\n"
        ))?;
        if !is_cached {
            scenario.policies.visible_within_ms = 0;
        }
        Ok(scenario)
    }
}

/// What an operation costs, servers and client.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Cost {
    pub(super) server_us: f64,
    pub(super) client_us: f64,
    /// As the servers receive and send it.
    pub(super) wire_bytes: f64,
    /// Both together, with its interval.
    pub(super) both_us: Estimate,
}

impl Cost {
    pub(super) fn of(measured: &Measured) -> anyhow::Result<Self> {
        let known = "CPU time cannot be read on this machine";
        Ok(Self {
            server_us: median(&measured.rounds(|sample| sample.server_us)).context(known)?,
            client_us: median(&measured.rounds(|sample| sample.client_us)).context(known)?,
            wire_bytes: median(&measured.rounds(|sample| sample.wire_bytes)).context("nothing was done")?,
            both_us: Estimate::of(&measured.rounds(crate::compare::Sample::cpu_us)).context(known)?,
        })
    }

    /// For each of so many.
    pub(super) fn by(self, count: f64) -> Self {
        Self {
            server_us: self.server_us / count,
            client_us: self.client_us / count,
            wire_bytes: self.wire_bytes / count,
            both_us: self.both_us.by(count),
        }
    }

    /// CPU of the servers and of the client, bytes on the wire.
    fn sides(self) -> Sides {
        [self.server_us, self.client_us, self.wire_bytes]
    }
}

/// A network on its servers.
pub(super) struct At<'a> {
    pub(super) bench: &'a Bench,
    scenario: Scenario,
    graph: Arc<Graph>,
    field: Field,
    seed: u64,
    until: Deadline,
    /// What all homes together have cost to fill.
    filled: Used,
}

impl<'a> At<'a> {
    pub(super) async fn load(
        bench: &'a Bench,
        network: Network,
        contestant: Contestant,
        seed: u64,
        until: Deadline,
    ) -> anyhow::Result<Self> {
        let scenario = network.scenario()?;
        let graph = Arc::new(scenario.graph.make(seed)?);
        let workload = Workload::new(graph.clone(), &scenario.activity, &scenario.mix, seed);
        let mut field = Field::load(bench, &scenario, &[contestant], graph.clone(), &workload).await?;
        let before = bench.used().await?;
        field.prepare(&scenario, &workload).await?;
        let filled = bench.used().await?.since(&before);
        Ok(Self { bench, scenario, graph, field, seed, until, filled })
    }

    /// To take turns with others: its network under a load of these operations.
    pub(super) fn contenders(&self, mix: Mix) -> Vec<Contender> {
        self.field.contenders(&Scenario { mix, ..self.scenario.clone() }, self.seed)
    }

    pub(super) fn rounds(&self) -> usize {
        self.scenario.drive.rounds
    }

    pub(super) fn accounts(&self) -> usize {
        self.graph.accounts()
    }

    /// Followers of an account.
    pub(super) fn mean(&self) -> f64 {
        count(self.graph.follows() as u64) / count(self.graph.accounts() as u64)
    }

    /// Bytes of an account with all that is its own, as they were loaded.
    async fn bytes(&self) -> anyhow::Result<f64> {
        let bytes: u64 = self.field.memory(self.bench).await?.iter().sum();
        Ok(count(bytes) / count(self.graph.accounts() as u64))
    }

    /// What a home has cost to fill for each account that its reader follows, if all have one.
    fn fill(&self) -> anyhow::Result<[f64; 3]> {
        let Used { cpu, wire_bytes } = self.filled;
        let follows = self.graph.follows() as u64;
        let sides = cpu::us_each(cpu.server, follows).zip(cpu::us_each(cpu.client, follows));
        let (server, client) = sides.context("CPU time cannot be read on this machine")?;
        Ok([server, client, count(wire_bytes) / count(follows)])
    }

    /// Looks at outboxes for each page, if everybody is pulled.
    fn looks_a_page(&self, pages: &Measured) -> anyhow::Result<f64> {
        let rates = pages.rounds(|sample| Some(sample.operations_per_second));
        let pages = median(&rates).context("nothing was measured")?;
        let outboxes = count((self.graph.accounts() * self.scenario.drive.instances) as u64);
        let within = tideline::EngineSettings::default().visible_within;
        Ok(tideline::AccountFacts::looks_per_second(pages * self.mean(), outboxes, within) / pages)
    }

    /// What one of these costs.
    async fn cost(&mut self, mix: Mix) -> anyhow::Result<Cost> {
        Cost::of(&self.measure(mix).await?)
    }

    async fn measure(&mut self, mix: Mix) -> anyhow::Result<Measured> {
        let scenario = Scenario { mix, ..self.scenario.clone() };
        let warmed_up = self.field.warmed_up(&scenario, self.seed).await?;
        let measured = self.field.measure(self.bench, warmed_up, Some(self.until), None).await?;
        let measured = measured.into_iter().flatten().next().context("nothing was measured")?;
        check(&measured, self.rounds())?;
        Ok(measured)
    }

    /// Where everybody has a home: followers of an account, bytes, what a home costs to fill, and what reads, checks,
    /// posts and follows do.
    async fn awake(&mut self) -> anyhow::Result<(f64, f64, Sides, [Sides; 4])> {
        let (bytes, fill) = (self.bytes().await?, self.fill()?);
        // Before anything is posted: pages show posts that are in the caches.
        let mut costs = [Sides::default(); 4];
        for (cost, mix) in costs.iter_mut().zip([reads(), checks(), posts(), follows()]) {
            *cost = self.cost(mix).await?.sides();
        }
        Ok((self.mean(), bytes, fill, costs))
    }

    /// Where everybody is pulled: bytes, looks for each page, and what reads, posts and follows cost.
    async fn pulled(&mut self) -> anyhow::Result<(f64, f64, [Sides; 3])> {
        let (bytes, read) = (self.bytes().await?, self.measure(reads()).await?);
        let costs = [Cost::of(&read)?, self.cost(posts()).await?, self.cost(follows()).await?];
        Ok((bytes, self.looks_a_page(&read)?, costs.map(Cost::sides)))
    }

    /// Ends its engines.
    pub(super) async fn stopped(&self) {
        self.field.stopped().await;
    }
}

/// Networks that are there one after the other, each for what is measured on it.
struct OneByOne<'a> {
    bench: &'a Bench,
    seed: u64,
    until: Deadline,
}

impl OneByOne<'_> {
    /// What comes of this on such a network; then the servers are emptied for the next one.
    async fn on<T>(
        &self,
        network: Network,
        contestant: Contestant,
        work: impl AsyncFnOnce(&mut At<'_>) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let mut at = At::load(self.bench, network, contestant, self.seed, self.until).await?;
        let measured = work(&mut at).await;
        at.stopped().await;
        self.bench.empty().await?;
        measured
    }
}

/// Says how many rounds are missing. Operations that failed are an error: what is refused is cheap.
pub(super) fn check(measured: &Measured, asked: usize) -> anyhow::Result<()> {
    let rounds = measured.samples.len();
    if rounds < asked {
        eprintln!("The time was up after {rounds} of {asked} rounds.");
    }
    let counted = measured.counted.iter().flat_map(Counted::all);
    let errors: BTreeMap<&String, &u64> = counted.flat_map(|summary| &summary.counts.errors).collect();
    anyhow::ensure!(
        errors.is_empty(),
        "operations failed, so nobody knows what one costs: {errors:?}; fewer --at-once, perhaps"
    );
    Ok(())
}

fn us([server, client, _]: [f64; 3]) -> [f64; 2] {
    [server, client]
}

pub(super) fn posts() -> Mix {
    Mix { post: 1.0, ..Mix::default() }
}

fn checks() -> Mix {
    Mix { check: 1.0, ..Mix::default() }
}

pub(super) fn reads() -> Mix {
    Mix { read: 1.0, ..Mix::default() }
}

fn follows() -> Mix {
    Mix { subscribe: 1.0, ..Mix::default() }
}

/// What one of each thing costs, on three primaries or as many as a cluster of others has.
pub(super) async fn units(args: &ScaleArgs, seed: u64, until: Deadline) -> anyhow::Result<Units> {
    on_cluster(&args.common.cluster, (PRIMARIES, 0), async |bench| units_on(bench, args, seed, until).await)
        .await
}

fn source(bench: &Bench, args: &ScaleArgs, seed: u64) -> String {
    let place = if bench.target.is_own() { "on this machine" } else { "of a cluster that was there" };
    let primaries = many(count(bench.slots().len() as u64), "primary", "primaries");
    format!("loadtest scale: {primaries} {place}, {} followers each, seed {seed}", args.mean)
}

async fn units_on(bench: &Bench, args: &ScaleArgs, seed: u64, until: Deadline) -> anyhow::Result<Units> {
    let all = args.network(u16::try_from(bench.slots().len())?);
    let (push, pull) = (Contestant::PushOnly, Contestant::PullOnly);
    let networks = OneByOne { bench, seed, until };
    let both = async |at: &mut At<'_>, mix| anyhow::Ok((at.bytes().await?, at.cost(mix).await?.sides()));
    // Where nobody has a home: with one post and one follower, with a history of posts, and with all followers.
    let asleep = Network { active: false, ..all };
    let lonely = Network { mean: 1, ..asleep };
    let silent = Network { history: 1, ..lonely };
    let silent_bytes = networks.on(silent, push, async |at| at.bytes().await).await?;
    let (lonely_bytes, one_asleep) = networks.on(lonely, push, async |at| both(at, posts()).await).await?;
    let (asleep_bytes, all_asleep) = networks.on(asleep, push, async |at| both(at, posts()).await).await?;

    let on_all = networks.on(all, push, async |at| at.awake().await);
    let (mean, awake_bytes, fill, [read, check, all_awake, follow]) = on_all.await?;
    let on_pulled = networks.on(all, pull, async |at| at.pulled().await);
    let (pulled_bytes, looks, [read_pulled, publish_pulled, follow_pulled]) = on_pulled.await?;
    // Where nothing is remembered each page reads its posts and authors, and looks at each pulled outbox.
    let uncached = Network { is_cached: false, ..all };
    let pushed =
        async |at: &mut At<'_>| Ok((at.cost(reads()).await?.sides(), at.cost(checks()).await?.sides()));
    let (read_anew, check_anew) = networks.on(uncached, push, pushed).await?;
    let pulled_anew = networks.on(uncached, pull, async |at| Ok(at.cost(reads()).await?.sides())).await?;

    let mut noise = Noise::default();
    let skipped = noise.above("skipped_us", by(less(all_asleep, one_asleep), mean - 1.0));
    let publish = noise.above("publish_us", less(one_asleep, skipped));
    let delivery = noise.above("delivery_us", by(less(all_awake, publish), mean));
    let pages = Pages {
        read,
        check,
        pulled: read_pulled,
        looks,
        uncached: [read_anew, check_anew, pulled_anew],
        mean,
    };
    let PageUnits { load, pull, look } = pages.units(&mut noise);

    let history = f64::from(HISTORY);
    let post_bytes = (lonely_bytes - silent_bytes) / (history - 1.0);
    let edge_bytes = (asleep_bytes - lonely_bytes) / (2.0 * (mean - 1.0));
    Ok(Units {
        source: source(bench, args, seed),
        at_once: all.at_once as usize,
        not_measured: NOT_MEASURED.map(str::to_owned).to_vec(),
        below_noise: noise.below,
        publish_us: us(publish),
        publish_pulled_us: us(publish_pulled),
        skipped_us: us(skipped),
        delivery_us: us(delivery),
        check_us: us(check),
        read_us: us(read),
        load_us: us(load),
        pull_us: us(pull),
        look_us: us(look),
        follow_us: us(follow),
        follow_pulled_us: us(follow_pulled),
        fill_us: us(fill),
        publish_wire_bytes: (publish[2] - TEXT_BYTES).max(0.0),
        publish_pulled_wire_bytes: (publish_pulled[2] - TEXT_BYTES).max(0.0),
        skipped_wire_bytes: skipped[2],
        delivery_wire_bytes: delivery[2],
        page_wire_bytes: check[2],
        follow_wire_bytes: follow[2],
        follow_pulled_wire_bytes: follow_pulled[2],
        fill_wire_bytes: fill[2],
        home_entry_bytes: (awake_bytes - asleep_bytes) / (history * mean).min(f64::from(home_posts())),
        edge_bytes,
        mark_bytes: (pulled_bytes - awake_bytes) / mean,
        account_bytes: lonely_bytes - history * post_bytes - 2.0 * edge_bytes,
        post_bytes: post_bytes - TEXT_BYTES,
        ..Units::default()
    })
}
