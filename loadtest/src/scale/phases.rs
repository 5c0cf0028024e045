//! One kind of operation at a time on a network of which everybody is alike: what it costs.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context as _;
use serde::Serialize;

use super::ScaleArgs;
use super::differences::{Noise, PageUnits, Pages, by, less};
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
const NOT_MEASURED: [&str; 2] = ["delivery_spread_us", "promote_us"];

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

    /// What this costs beyond another.
    fn beyond(self, other: Self) -> [f64; 3] {
        let (this, other) = (self.sides(), other.sides());
        [0, 1, 2].map(|side| this[side] - other[side])
    }

    /// CPU of the servers and of the client, bytes on the wire.
    fn sides(self) -> [f64; 3] {
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
        Ok(tideline::Facts::looks_per_second(pages * self.mean(), outboxes, within) / pages)
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

    /// Ends its engines.
    pub(super) async fn stopped(&self) {
        self.field.stopped().await;
    }

    /// The same, and empties the servers for the next one.
    async fn leave(self) -> anyhow::Result<()> {
        self.stopped().await;
        self.bench.empty().await
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

/// What was measured where everybody is pulled.
struct Pulled {
    bytes: f64,
    read: Cost,
    looks_a_page: f64,
    publish: Cost,
    follow: Cost,
}

impl Pulled {
    async fn measure(at: &mut At<'_>) -> anyhow::Result<Self> {
        let bytes = at.bytes().await?;
        let read = at.measure(reads()).await?;
        let looks_a_page = at.looks_a_page(&read)?;
        let (publish, follow) = (at.cost(posts()).await?, at.cost(follows()).await?);
        Ok(Self { bytes, read: Cost::of(&read)?, looks_a_page, publish, follow })
    }
}

/// What was measured where nothing is remembered: each page reads its posts and authors, and looks at each pulled
/// outbox.
struct Uncached {
    check: Cost,
    read: Cost,
    read_pulled: Cost,
}

impl Uncached {
    async fn measure(
        bench: &Bench,
        network: Network,
        (seed, until): (u64, Deadline),
    ) -> anyhow::Result<Self> {
        let network = Network { is_cached: false, ..network };
        let mut pushed = At::load(bench, network, Contestant::PushOnly, seed, until).await?;
        let (read, check) = (pushed.cost(reads()).await?, pushed.cost(checks()).await?);
        pushed.leave().await?;
        let mut pulled = At::load(bench, network, Contestant::PullOnly, seed, until).await?;
        let read_pulled = pulled.cost(reads()).await?;
        pulled.leave().await?;
        Ok(Self { check, read, read_pulled })
    }
}

/// What was measured where nobody has a home.
struct Asleep {
    /// Of an account with one post and one follower; with a history of posts; and with all its followers.
    silent_bytes: f64,
    lonely_bytes: f64,
    asleep_bytes: f64,
    /// A post to one follower, and to all.
    one_asleep: Cost,
    all_asleep: Cost,
}

impl Asleep {
    async fn measure(
        bench: &Bench,
        network: Network,
        (seed, until): (u64, Deadline),
    ) -> anyhow::Result<Self> {
        let load = async |network| At::load(bench, network, Contestant::PushOnly, seed, until).await;
        let network = Network { active: false, ..network };
        let silent = load(Network { mean: 1, history: 1, ..network }).await?;
        let silent_bytes = silent.bytes().await?;
        silent.leave().await?;
        let mut lonely = load(Network { mean: 1, ..network }).await?;
        let (lonely_bytes, one_asleep) = (lonely.bytes().await?, lonely.cost(posts()).await?);
        lonely.leave().await?;
        let mut asleep = load(network).await?;
        let (asleep_bytes, all_asleep) = (asleep.bytes().await?, asleep.cost(posts()).await?);
        asleep.leave().await?;
        Ok(Self { silent_bytes, lonely_bytes, asleep_bytes, one_asleep, all_asleep })
    }
}

fn source(bench: &Bench, args: &ScaleArgs, seed: u64) -> String {
    let place = if bench.target.is_own() { "on this machine" } else { "of a cluster that was there" };
    let primaries = many(count(bench.slots().len() as u64), "primary", "primaries");
    format!("loadtest scale: {primaries} {place}, {} followers each, seed {seed}", args.mean)
}

async fn units_on(bench: &Bench, args: &ScaleArgs, seed: u64, until: Deadline) -> anyhow::Result<Units> {
    let primaries = u16::try_from(bench.slots().len())?;
    let network = args.network(primaries, true);
    let Asleep { silent_bytes, lonely_bytes, asleep_bytes, one_asleep, all_asleep } =
        Asleep::measure(bench, network, (seed, until)).await?;
    let mut awake = At::load(bench, network, Contestant::PushOnly, seed, until).await?;
    let mean = awake.mean();
    let (awake_bytes, fill) = (awake.bytes().await?, awake.fill()?);
    // Before anything is posted: pages show posts that are in the caches.
    let read = awake.cost(reads()).await?;
    let check = awake.cost(checks()).await?;
    let all_awake = awake.cost(posts()).await?;
    let follow = awake.cost(follows()).await?;
    awake.leave().await?;

    let mut all_pulled = At::load(bench, network, Contestant::PullOnly, seed, until).await?;
    let pulled = Pulled::measure(&mut all_pulled).await;
    all_pulled.leave().await?;
    let pulled = pulled?;
    let uncached = Uncached::measure(bench, network, (seed, until)).await?;

    let mut noise = Noise::default();
    let skipped = noise.above("skipped_us", by(all_asleep.beyond(one_asleep), mean - 1.0));
    let publish = noise.above("publish_us", less(one_asleep.sides(), skipped));
    let delivery = noise.above("delivery_us", by(less(all_awake.sides(), publish), mean));
    let pages = Pages {
        read: read.sides(),
        check: check.sides(),
        pulled: pulled.read.sides(),
        looks: pulled.looks_a_page,
        uncached: [uncached.read, uncached.check, uncached.read_pulled].map(Cost::sides),
        mean,
    };
    let PageUnits { load, pull, look } = pages.units(&mut noise);

    let history = f64::from(HISTORY);
    let post_bytes = (lonely_bytes - silent_bytes) / (history - 1.0);
    let edge_bytes = (asleep_bytes - lonely_bytes) / (2.0 * (mean - 1.0));
    Ok(Units {
        source: source(bench, args, seed),
        at_once: network.at_once as usize,
        not_measured: NOT_MEASURED.map(str::to_owned).to_vec(),
        below_noise: noise.below,
        publish_us: us(publish),
        publish_pulled_us: us(pulled.publish.sides()),
        skipped_us: us(skipped),
        delivery_us: us(delivery),
        check_us: us(check.sides()),
        read_us: us(read.sides()),
        load_us: us(load),
        pull_us: us(pull),
        look_us: us(look),
        follow_us: us(follow.sides()),
        follow_pulled_us: us(pulled.follow.sides()),
        fill_us: us(fill),
        publish_wire_bytes: (publish[2] - TEXT_BYTES).max(0.0),
        publish_pulled_wire_bytes: (pulled.publish.wire_bytes - TEXT_BYTES).max(0.0),
        skipped_wire_bytes: skipped[2],
        delivery_wire_bytes: delivery[2],
        page_wire_bytes: check.wire_bytes,
        follow_wire_bytes: follow.wire_bytes,
        follow_pulled_wire_bytes: pulled.follow.wire_bytes,
        fill_wire_bytes: fill[2],
        home_entry_bytes: (awake_bytes - asleep_bytes) / (history * mean).min(f64::from(home_posts())),
        edge_bytes,
        mark_bytes: (pulled.bytes - awake_bytes) / mean,
        account_bytes: lonely_bytes - history * post_bytes - 2.0 * edge_bytes,
        post_bytes: post_bytes - TEXT_BYTES,
        ..Units::default()
    })
}
