//! Primaries whose replicas take over: once, or again and again, back and forth.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rand::RngExt;
use rand::rngs::StdRng;
use tideline::cluster::{Command, NodeAddr};
use tideline::local_cluster::{LocalCluster, LocalNode};
use tokio::time::sleep;

use super::super::args::Chaos;
use super::{Admit, PATIENCE, Storm, patiently};

/// Failovers in a row, of one primary and its replica.
const IN_A_ROW: usize = 3;
/// How long a primary that was replaced is left away, in milliseconds.
const AWAY_MS: (u64, u64) = (0, 800);

/// How a primary comes to be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Asked,
    Frozen,
    Killed,
    /// Killed, with something that its replica hasn't.
    Ahead,
}

impl How {
    fn drawn(random: &mut StdRng) -> Self {
        let is_frozen = random.random_bool(0.4);
        match random.random_bool(0.15) {
            true => Self::Asked,
            false if is_frozen => Self::Frozen,
            false => Self::Killed,
        }
    }
}

/// Who was promoted when.
pub(crate) type Promotions = HashMap<NodeAddr, Instant>;

impl Storm<'_> {
    /// The replica that is to take over from a primary, once it has forgotten the votes by which it was elected before. For four
    /// node timeouts it takes them for new ones (Redis 7.0): it believes to be elected with an old epoch, gives way to the primary
    /// that was killed as soon as that is back, with whatever is on its disk, and drops its own data.
    pub(super) async fn heir<'a>(
        &self,
        cluster: &'a LocalCluster,
        primary: &NodeAddr,
    ) -> anyhow::Result<&'a LocalNode> {
        let replica = replica_of(cluster, primary).await?;
        let since = self.promotions.lock().await.get(&replica.addr()).map(Instant::elapsed);
        let rest = since.and_then(|since| (self.setup.node_timeout() * 4).checked_sub(since));
        sleep(rest.unwrap_or_default()).await;
        Ok(replica)
    }

    /// Waits until a replica has taken over.
    pub(super) async fn promoted(&self, cluster: &LocalCluster, replica: &NodeAddr) -> anyhow::Result<()> {
        let since = Instant::now();
        while !cluster.primaries().await.iter().any(|node| node.addr() == *replica) {
            if since.elapsed() > PATIENCE {
                let told = async |what: &str, of: &str| {
                    let told = cluster.ask(replica, Command::new(what).arg(of)).await;
                    told.and_then(|told| told.text().map(str::to_owned)).unwrap_or_else(|e| e.to_string())
                };
                let (replication, nodes) =
                    (told("INFO", "replication").await, told("CLUSTER", "NODES").await);
                anyhow::bail!("{replica} was never promoted; it says: {replication}{nodes}");
            }
            sleep(Duration::from_millis(20)).await;
        }
        self.promotions.lock().await.insert(replica.clone(), Instant::now());
        Ok(())
    }

    /// One of the primaries, once the cluster is well.
    pub(super) async fn some_primary(
        &self,
        cluster: &LocalCluster,
        random: &mut StdRng,
    ) -> anyhow::Result<NodeAddr> {
        cluster.wait_healthy(PATIENCE).await?;
        let slot = self.some_slot(random)?;
        Ok(patiently(async || cluster.owner_of(slot).await).await?)
    }

    /// Failovers and moves come one after another: a slot whose server dies while it moves needs an operator.
    pub(super) async fn fail_over(
        &self,
        cluster: &LocalCluster,
        admit: Admit,
        random: &mut StdRng,
    ) -> anyhow::Result<()> {
        let old = self.some_primary(cluster, random).await?;
        let risky = self.risk(cluster, &old).await?;
        let struck = self.gate.now();
        // The first of a round loses something, wherever something may be lost.
        let loses = self.setup.may_lose && (admit == Admit::Portion || random.random_bool(0.5));
        let how = if loses { How::Ahead } else { How::drawn(random) };
        self.replace(cluster, &old, how, admit, random).await?;
        self.run.fault(Chaos::Failover, self.gate.was_at_work(struck));
        self.end_risk(cluster, risky).await
    }

    /// One primary and its replica, which take over from each other as soon as the one has what the other had. Nobody waits for the
    /// rest of the cluster to have heard of it.
    pub(super) async fn fail_over_again_and_again(
        &self,
        cluster: &LocalCluster,
        admit: Admit,
        random: &mut StdRng,
    ) -> anyhow::Result<()> {
        let mut primary = self.some_primary(cluster, random).await?;
        let risky = self.risk(cluster, &primary).await?;
        let struck = self.gate.now();
        // The first that succeeds loses something, wherever something may be lost.
        let mut loses = self.setup.may_lose;
        for turn in 0..IN_A_ROW {
            let admit = if turn == 0 { admit } else { Admit::Nothing };
            let how = if loses { How::Ahead } else { How::drawn(random) };
            let next = self.replace(cluster, &primary, how, admit, random).await?;
            if next != primary {
                loses = false;
                in_sync(cluster, &primary).await?;
                primary = next;
            }
        }
        self.run.fault(Chaos::FailoversInARow, self.gate.was_at_work(struck));
        self.end_risk(cluster, risky).await
    }

    /// Has a primary replaced by its replica, and brings it back; gives the new one, or the old one if it was let live.
    async fn replace(
        &self,
        cluster: &LocalCluster,
        old: &NodeAddr,
        how: How,
        admit: Admit,
        random: &mut StdRng,
    ) -> anyhow::Result<NodeAddr> {
        let heir = self.heir(cluster, old).await?;
        let replica = heir.addr();
        let victim = cluster.node(old).context("a primary is no node")?;
        match how {
            How::Asked => {
                self.run.event("failovers asked for");
                self.admit(admit);
                patiently(async || cluster.failover(&replica).await).await?;
            }
            How::Frozen => {
                self.run.event("primaries frozen");
                victim.freeze()?;
                self.admit(admit);
            }
            How::Killed => {
                self.run.event("primaries killed");
                victim.kill()?;
                self.admit(admit);
            }
            How::Ahead if !self.kill_ahead(cluster, victim, heir, admit).await? => return Ok(old.clone()),
            How::Ahead => {}
        }
        let promoted = self.promoted(cluster, &replica).await;
        sleep(Duration::from_millis(random.random_range(AWAY_MS.0..AWAY_MS.1))).await;
        // Mended in any case: nothing may stay frozen.
        if victim.is_running() {
            victim.thaw()?;
        } else {
            cluster.restart(victim.index).await?;
        }
        promoted?;
        Ok(replica)
    }
}

/// A primary's replica, which may be held up for a moment.
async fn replica_of<'a>(cluster: &'a LocalCluster, primary: &NodeAddr) -> anyhow::Result<&'a LocalNode> {
    let since = Instant::now();
    loop {
        match cluster.replica_of(primary).await {
            Some(replica) => return Ok(replica),
            None => anyhow::ensure!(since.elapsed() < PATIENCE, "{primary} has no replica that answers"),
        }
        sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until a server that was a primary follows the new one, and has what that has: else nobody could take over from it.
async fn in_sync(cluster: &LocalCluster, node: &NodeAddr) -> anyhow::Result<()> {
    let since = Instant::now();
    loop {
        let info = cluster.ask(node, Command::new("INFO").arg("replication")).await;
        let told = info.and_then(|info| info.text().map(str::to_owned)).unwrap_or_else(|e| e.to_string());
        if told.contains("master_link_status:up") {
            return Ok(());
        }
        anyhow::ensure!(since.elapsed() < PATIENCE, "{node} never caught up; it says: {told}");
        sleep(Duration::from_millis(20)).await;
    }
}
