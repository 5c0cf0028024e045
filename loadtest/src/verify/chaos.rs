//! What goes wrong on purpose while clients work: instances and servers that die or freeze, slots that move.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use tideline::bucket::Buckets;
use tideline::cluster::NodeAddr;
use tideline::local_cluster::LocalCluster;
use tokio::time::sleep;

use super::args::Chaos;
use super::pool::Instance;
use super::run::Run;
use super::setup::Setup;
use super::worker::Worker;

/// How long anything may take that must happen in the end.
const PATIENCE: Duration = Duration::from_secs(45);
/// Between two events, in milliseconds.
const PAUSE_MS: (u64, u64) = (200, 1_500);
/// How long an instance is frozen; its lease ends after 1.5 s, and others take its work over.
const FROZEN_MS: (u64, u64) = (100, 4_500);
/// Slots that move in a row, and the most keys moved at once.
const MOVES: usize = 6;
const KEYS_AT_ONCE: usize = 8;
/// Moves of one slot are tried so often: a server that has just come back may refuse.
const MOVE_TRIES: usize = 40;

/// Everything that can go wrong, and to whom.
#[derive(Debug)]
pub(crate) struct Storm<'a> {
    pub(crate) run: &'a Arc<Run>,
    pub(crate) setup: &'a Setup,
    pub(crate) cluster: Option<&'a LocalCluster>,
    pub(crate) buckets: Buckets,
    pub(crate) kinds: &'a [Chaos],
    /// Decides what goes wrong first: also a run of a few short rounds has everything.
    pub(crate) round: usize,
    pub(crate) is_over: &'a AtomicBool,
}

impl Storm<'_> {
    /// Goes on until it is over, then mends what it broke.
    pub(crate) async fn rage(&self, random: [StdRng; 2]) -> anyhow::Result<()> {
        let [first, second] = random;
        let (instances, servers) = futures::join!(self.instances(first), self.servers(second));
        instances.and(servers)
    }

    /// Those of these two that are wanted; first what is this round's turn.
    fn of(&self, kinds: [Chaos; 2]) -> Vec<Chaos> {
        let mut kinds: Vec<Chaos> = kinds.into_iter().filter(|kind| self.kinds.contains(kind)).collect();
        if !kinds.is_empty() {
            let turn = self.round % kinds.len();
            kinds.rotate_left(turn);
        }
        kinds
    }

    async fn pause(&self, random: &mut StdRng) -> bool {
        sleep(Duration::from_millis(random.random_range(PAUSE_MS.0..PAUSE_MS.1))).await;
        !self.is_over.load(Ordering::Relaxed)
    }

    async fn instances(&self, mut random: StdRng) -> anyhow::Result<()> {
        let kinds = self.of([Chaos::KillInstance, Chaos::FreezeInstance]);
        let mut turn = kinds.first();
        while self.pause(&mut random).await {
            let Some(kind) = turn.take().or_else(|| kinds.choose(&mut random)) else { return Ok(()) };
            let number = random.random_range(0..self.run.pool.len());
            let Instance::There(worker) = self.run.pool.instance(number) else { return Ok(()) };
            let mut is_killed = *kind == Chaos::KillInstance;
            if !is_killed {
                self.run.event("instances frozen");
                worker.freeze(true);
                sleep(Duration::from_millis(random.random_range(FROZEN_MS.0..FROZEN_MS.1))).await;
                is_killed = self.kinds.contains(&Chaos::KillInstance) && random.random_bool(0.3);
                if !is_killed {
                    worker.freeze(false);
                }
            }
            if is_killed {
                self.run.event("instances killed");
                worker.kill();
                self.run.pool.replace(number, self.another().await?);
            }
        }
        Ok(())
    }

    /// A new instance. Servers may be failing meanwhile: then again.
    async fn another(&self) -> anyhow::Result<Instance> {
        let since = Instant::now();
        loop {
            match Worker::start(self.setup).await {
                Ok(worker) => return Ok(Instance::There(Arc::new(worker))),
                Err(e) if since.elapsed() > PATIENCE => return Err(e),
                Err(_) => sleep(Duration::from_millis(200)).await,
            }
        }
    }

    /// Failovers and moves one after another: a slot whose server dies while it moves needs an operator.
    async fn servers(&self, mut random: StdRng) -> anyhow::Result<()> {
        let kinds = self.of([Chaos::Failover, Chaos::Reshard]);
        let mut turn = kinds.first();
        while self.pause(&mut random).await {
            let kind = turn.take().or_else(|| kinds.choose(&mut random));
            let (Some(kind), Some(cluster)) = (kind, self.cluster) else { return Ok(()) };
            if *kind == Chaos::Failover {
                self.fail_over(cluster, &mut random).await.context("failover")?;
            } else {
                for _ in 0..MOVES {
                    self.move_slot(cluster, &mut random).await.context("moving a slot")?;
                }
            }
        }
        Ok(())
    }

    /// A slot with data in it.
    fn some_slot(&self, random: &mut StdRng) -> anyhow::Result<u16> {
        let bucket = self.buckets.get(random.random_range(0..self.buckets.count()));
        Ok(self.buckets.slot(bucket.context("a bucket is missing")?))
    }

    async fn fail_over(&self, cluster: &LocalCluster, random: &mut StdRng) -> anyhow::Result<()> {
        cluster.wait_healthy(PATIENCE).await?;
        let slot = self.some_slot(random)?;
        let old = cluster.owner_of(slot).await?;
        let replica = cluster.replica_of(&old).await.context("a primary has no replica")?.addr();
        let victim = cluster.node(&old).context("a primary is no node")?;
        let is_frozen = random.random_bool(0.4);
        if random.random_bool(0.15) {
            self.run.event("failovers asked for");
            cluster.failover(&replica).await?;
        } else if is_frozen {
            self.run.event("primaries frozen");
            victim.freeze()?;
        } else {
            self.run.event("primaries killed");
            victim.kill()?;
        }
        let promoted = promoted(cluster, &replica).await;
        sleep(Duration::from_millis(random.random_range(0..800))).await;
        // Mended in any case: nothing may stay frozen.
        if victim.is_running() {
            victim.thaw()?;
        } else {
            cluster.restart(victim.index).await?;
        }
        promoted?;
        Ok(cluster.wait_healthy(PATIENCE).await?)
    }

    async fn move_slot(&self, cluster: &LocalCluster, random: &mut StdRng) -> anyhow::Result<()> {
        let slot = self.some_slot(random)?;
        let from = cluster.owner_of(slot).await?;
        let primaries: Vec<NodeAddr> = cluster.primaries().await.iter().map(|node| node.addr()).collect();
        let to = primaries.choose(random).filter(|to| **to != from);
        let Some(to) = to else { return Ok(()) };
        match move_all(cluster, slot, [&from, to], random).await {
            Ok(()) => self.run.event("slots moved"),
            // Another primary has taken the slot meanwhile, a woken one's replica perhaps: there is nothing left to move.
            Err(_) if cluster.owner_of(slot).await? != from => self.run.event("moves overtaken"),
            Err(e) => return Err(e.into()),
        }
        Ok(())
    }
}

async fn move_all(
    cluster: &LocalCluster,
    slot: u16,
    [from, to]: [&NodeAddr; 2],
    random: &mut StdRng,
) -> tideline::Result<()> {
    patiently(async || cluster.begin_migration(slot, from, to).await).await?;
    let portion = random.random_range(1..KEYS_AT_ONCE);
    while patiently(async || cluster.migrate_keys(slot, from, to, portion).await).await? > 0 {
        sleep(Duration::from_millis(random.random_range(0..4))).await;
    }
    // A slot that is never closed would be a cluster that needs mending.
    patiently(async || cluster.end_migration(slot, to).await).await
}

async fn patiently<T>(mut step: impl AsyncFnMut() -> tideline::Result<T>) -> tideline::Result<T> {
    for _ in 1..MOVE_TRIES {
        match step().await {
            Ok(done) => return Ok(done),
            Err(e) => tracing::debug!("a step of a move: {e}"),
        }
        sleep(Duration::from_millis(50)).await;
    }
    step().await
}

async fn promoted(cluster: &LocalCluster, replica: &NodeAddr) -> anyhow::Result<()> {
    let since = Instant::now();
    while !cluster.primaries().await.iter().any(|node| node.addr() == *replica) {
        anyhow::ensure!(since.elapsed() < PATIENCE, "{replica} was never promoted");
        sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}
