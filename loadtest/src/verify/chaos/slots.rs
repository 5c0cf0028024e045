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
use super::{Admit, Storm, patiently};

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
        let mut has_met = None;
        for _ in 0..MOVES {
            let _all_go_on = self.open.lock().await;
            let slot = self.some_move(cluster, random).await?;
            let portion = random.random_range(1..KEYS_AT_ONCE);
            let (reach, struck) = (Reach::Slots([slot.slot].into()), self.run.now());
            let done = async {
                self.open(cluster, &slot).await?;
                while self.move_keys(cluster, &slot, portion).await? > 0 {
                    sleep(Duration::from_millis(random.random_range(0..4))).await;
                }
                close(cluster, &slot).await
            };
            let done = done.await;
            let has_met_now = self.has_met(&reach, struck);
            if self.is_moved(cluster, &slot, done).await? {
                has_met = Some(has_met_now || has_met.unwrap_or(false));
            }
        }
        Ok(has_met)
    }

    /// Leaves a slot half-way: some of its keys here, some there, now and then one more. What needs keys of both sides
    /// waits.
    pub(super) async fn leave_slots_open(
        &self,
        cluster: &LocalCluster,
        admit: Admit,
        random: &mut StdRng,
    ) -> anyhow::Result<Option<bool>> {
        let _all_go_on = self.open.lock().await;
        let slot = self.some_move(cluster, random).await?;
        let (reach, struck) = (Reach::Slots([slot.slot].into()), self.run.now());
        let ((least, most), drip) = if self.minutes { (OPEN_LONG_MS, DRIP_LONG) } else { (OPEN_MS, DRIP) };
        let open = Duration::from_millis(random.random_range(least..most));
        let mut was_on_both = false;
        let done = async {
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
            close(cluster, &slot).await
        };
        let done = done.await;
        let has_met = self.has_met(&reach, struck);
        let is_left_open = self.is_moved(cluster, &slot, done).await? && was_on_both;
        if is_left_open {
            self.run.event("slots left open");
        }
        Ok(is_left_open.then_some(has_met))
    }

    async fn some_move(&self, cluster: &LocalCluster, random: &mut StdRng) -> anyhow::Result<Move> {
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

    /// Whether it has moved as it was meant to. Closed it is in any case.
    async fn is_moved(
        &self,
        cluster: &LocalCluster,
        Move { slot, from, to }: &Move,
        done: tideline::Result<()>,
    ) -> anyhow::Result<bool> {
        match done {
            Ok(()) => self.run.event("slots moved"),
            // Another primary has the slot by now: the target, or one that took over from the source on a busy machine
            // and knows nothing of the move. Or one took over from the target: it has what has moved, and knows nothing
            // of it either.
            Err(e) => {
                let owner = patiently(async || cluster.owner_of(*slot).await).await?;
                let heir = cluster.primary_of(to).await;
                if owner == *from && heir.is_none() {
                    return Err(e.into());
                }
                tracing::debug!("a move of slot {slot} was overtaken: {e}");
                self.run.event("moves overtaken");
                let to = heir.as_ref().unwrap_or(to);
                let moved = patiently(async || {
                    let _nobody_is_held_up = self.keys.lock().await;
                    cluster.migrate_slot(*slot, to).await?;
                    cluster.end_migration(*slot, to).await
                });
                moved.await?;
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// A slot that is never closed would be a cluster that needs mending.
async fn close(cluster: &LocalCluster, Move { slot, to, .. }: &Move) -> tideline::Result<()> {
    patiently(async || cluster.end_migration(*slot, to).await).await
}
