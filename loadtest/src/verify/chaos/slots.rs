//! Slots that move, key by key: at once, or left half-way for a while.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use tideline::cluster::{Command, NodeAddr};
use tideline_local_cluster::LocalCluster;
use tokio::time::sleep;

use super::reach::Reach;
use super::{Admit, PATIENCE, Storm, patiently};

/// Slots that move in a row, and the most keys moved at once.
const MOVES: usize = 6;
const KEYS_AT_ONCE: usize = 8;
/// How long a slot is left open, in milliseconds; and in a run that takes minutes.
const OPEN_MS: (u64, u64) = (1_500, 5_000);
const OPEN_LONG_MS: (u64, u64) = (60_000, 120_000);
/// Between two keys of a slot that is left open.
const DRIP: Duration = Duration::from_millis(150);
const DRIP_LONG: Duration = Duration::from_secs(2);

/// A slot that moves, and between whom.
struct Move {
    slot: u16,
    from: NodeAddr,
    to: NodeAddr,
}

impl Storm<'_> {
    /// Moves some slots, one after another.
    pub(super) async fn move_slots(
        &self,
        cluster: &LocalCluster,
        admit: Admit,
        random: &mut StdRng,
    ) -> anyhow::Result<Option<bool>> {
        self.admit(admit);
        let mut has_met = false;
        for _ in 0..MOVES {
            let moved = async {
                let slot = self.some_move(cluster, random).await?;
                let portion = random.random_range(1..KEYS_AT_ONCE);
                let (reach, struck) = (Reach::Slots([slot.slot].into()), self.run.now());
                self.open(cluster, &slot).await?;
                while self.move_keys(cluster, &slot, portion).await? > 0 {
                    sleep(Duration::from_millis(random.random_range(0..4))).await;
                }
                close(cluster, &slot).await?;
                anyhow::Ok(self.has_met(&reach, struck))
            };
            has_met |= self.while_nobody_takes_over(cluster, moved).await?;
            self.run.event("slots moved");
        }
        Ok(Some(has_met))
    }

    /// Leaves a slot half-way: some of its keys here, some there, now and then one more. What needs keys of both sides
    /// waits.
    pub(super) async fn leave_slots_open(
        &self,
        cluster: &LocalCluster,
        admit: Admit,
        random: &mut StdRng,
    ) -> anyhow::Result<Option<bool>> {
        let ((least, most), drip) = if self.minutes { (OPEN_LONG_MS, DRIP_LONG) } else { (OPEN_MS, DRIP) };
        let moved = async {
            let slot = self.some_move(cluster, random).await?;
            let (reach, struck) = (Reach::Slots([slot.slot].into()), self.run.now());
            let open = Duration::from_millis(random.random_range(least..most));
            let mut was_on_both = false;
            let opened = self.open(cluster, &slot).await;
            self.admit(admit);
            opened?;
            let until = Instant::now() + open;
            while Instant::now() < until || self.awaits(&reach, struck, until) {
                // Always some are left, as far as there are.
                let [here, there] = [
                    self.keys_at(cluster, &slot.from, slot.slot).await?,
                    self.keys_at(cluster, &slot.to, slot.slot).await?,
                ];
                was_on_both |= here > 0 && there > 0;
                if here > there.max(1) {
                    self.move_keys(cluster, &slot, 1).await?;
                }
                sleep(drip).await;
            }
            while self.move_keys(cluster, &slot, KEYS_AT_ONCE).await? > 0 {}
            close(cluster, &slot).await?;
            anyhow::Ok(was_on_both.then(|| self.has_met(&reach, struck)))
        };
        let has_met = self.while_nobody_takes_over(cluster, moved).await?;
        self.run.event("slots moved");
        if has_met.is_some() {
            self.run.event("slots left open");
        }
        Ok(has_met)
    }

    /// Does something with a slot open. On a busy machine servers take each other for dead, and who takes over from one
    /// of the two knows nothing of the move (Redis 7.0): what has moved is in nobody's sight then, until an operator
    /// closes the slot, and whatever reads meanwhile takes it for gone. So replicas are told to leave that.
    async fn while_nobody_takes_over<T>(
        &self,
        cluster: &LocalCluster,
        work: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        let _all_go_on = self.open.lock().await;
        let_take_over(cluster, false).await?;
        let done = work.await;
        let_take_over(cluster, true).await?;
        done
    }

    async fn some_move(&self, cluster: &LocalCluster, random: &mut StdRng) -> anyhow::Result<Move> {
        // Who has taken over before is known to all by then.
        cluster.wait_healthy(PATIENCE).await?;
        let slot = self.some_slot(random)?;
        let from = patiently(async || cluster.owner_of(slot).await).await?;
        let mut others: Vec<NodeAddr> = cluster.primaries().await.iter().map(|node| node.addr()).collect();
        others.retain(|node| *node != from);
        let to = others.choose(random).context("no other primary answers")?.clone();
        Ok(Move { slot, from, to })
    }

    async fn open(&self, cluster: &LocalCluster, Move { slot, from, to }: &Move) -> tideline::Result<()> {
        patiently(async || cluster.begin_migration(*slot, from, to).await).await
    }

    async fn move_keys(
        &self,
        cluster: &LocalCluster,
        Move { slot, from, to }: &Move,
        many: usize,
    ) -> tideline::Result<usize> {
        patiently(async || {
            let _nobody_is_held_up = self.keys.lock().await;
            cluster.migrate_keys(*slot, from, to, many).await
        })
        .await
    }

    async fn keys_at(&self, cluster: &LocalCluster, node: &NodeAddr, slot: u16) -> tideline::Result<i64> {
        let count = || Command::new("CLUSTER").arg("COUNTKEYSINSLOT").arg(slot);
        patiently(async || cluster.ask(node, count()).await?.int()).await
    }
}

/// Whether replicas take over from who is dead.
async fn let_take_over(cluster: &LocalCluster, may: bool) -> tideline::Result<()> {
    let says = if may { "no" } else { "yes" };
    for node in cluster.nodes() {
        let set = || Command::new("CONFIG").arg("SET").arg("cluster-replica-no-failover").arg(says);
        patiently(async || cluster.ask(&node.addr(), set()).await).await?;
    }
    Ok(())
}

/// A slot that is never closed would be a cluster that needs mending.
async fn close(cluster: &LocalCluster, Move { slot, to, .. }: &Move) -> tideline::Result<()> {
    patiently(async || cluster.end_migration(*slot, to).await).await
}
