//! From when until when a failover may lose what a primary has acknowledged by itself: nothing that its replica had
//! before.

use std::collections::BTreeSet;
use std::time::Instant;

use tideline::cluster::{Command, NodeAddr};
use tideline_local_cluster::LocalCluster;
use tokio::time::sleep;

use super::super::facts::{Time, Window};
use super::{PATIENCE, RETRY, Storm, patiently};

/// Which primaries there were at a time, each by the name of its history: a replica that takes over begins another one.
pub(super) type Seen = Option<(Time, BTreeSet<String>)>;

impl Storm<'_> {
    /// Notes who the primaries are: whoever takes over later is known by it.
    pub(super) async fn begin_risks(&self, cluster: &LocalCluster) -> anyhow::Result<()> {
        if self.setup.may_lose {
            let from = self.run.now();
            *self.seen.lock().await = Some((from, histories(cluster).await?));
        }
        Ok(())
    }

    /// From now on a primary may be replaced. What was acknowledged before, its replica has.
    pub(super) async fn risk(&self, cluster: &LocalCluster, primary: &NodeAddr) -> anyhow::Result<Time> {
        if !self.setup.may_lose {
            return Ok(self.run.now());
        }
        let replica = self.heir(cluster, primary).await?.addr();
        self.look_for_others(cluster).await?;
        let from = self.run.now();
        caught_up(cluster, primary, &replica).await?;
        Ok(from)
    }

    /// Waits until all know who is primary; what was acknowledged since `from` may be lost.
    pub(super) async fn end_risk(&self, cluster: &LocalCluster, from: Time) -> anyhow::Result<()> {
        if !self.setup.may_lose {
            return Ok(cluster.wait_healthy(PATIENCE).await?);
        }
        let histories = histories(cluster).await?;
        let to = self.run.now();
        self.run.world().losses.push(Window { from, to });
        *self.seen.lock().await = Some((to, histories));
        Ok(())
    }

    /// On a machine that is busy enough, replicas take over from primaries that nobody has struck.
    pub(super) async fn look_for_others(&self, cluster: &LocalCluster) -> anyhow::Result<()> {
        let mut seen = self.seen.lock().await;
        if let Some((from, before)) = seen.take() {
            // Before the look: what it doesn't see the next one does.
            let at = self.run.now();
            let now = histories(cluster).await?;
            if now != before {
                self.run.event("failovers that nobody had made");
                let to = self.run.now();
                self.run.world().losses.push(Window { from, to });
            }
            *seen = Some((at, now));
        }
        Ok(())
    }
}

/// The names of all primaries' histories, once the cluster is well.
async fn histories(cluster: &LocalCluster) -> anyhow::Result<BTreeSet<String>> {
    cluster.wait_healthy(PATIENCE).await?;
    let mut all = BTreeSet::new();
    for primary in cluster.primaries().await {
        all.insert(told(cluster, &primary.addr(), "master_replid").await?);
    }
    Ok(all)
}

/// Waits until a primary's replica has all that this has by now.
pub(super) async fn caught_up(
    cluster: &LocalCluster,
    primary: &NodeAddr,
    replica: &NodeAddr,
) -> anyhow::Result<()> {
    let offset = |text: String| text.parse::<u64>();
    let (since, wanted) = (Instant::now(), offset(told(cluster, primary, "master_repl_offset").await?)?);
    while offset(told(cluster, replica, "slave_repl_offset").await?)? < wanted {
        anyhow::ensure!(since.elapsed() < PATIENCE, "{replica} never caught up with {primary}");
        sleep(RETRY).await;
    }
    Ok(())
}

/// What a server tells of its replication under that name.
async fn told(cluster: &LocalCluster, node: &NodeAddr, name: &str) -> anyhow::Result<String> {
    let info = patiently(async || cluster.ask(node, Command::new("INFO").arg("replication")).await).await?;
    let text = info.text()?;
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.map(|value| value.trim().to_owned()).ok_or_else(|| anyhow::anyhow!("{node} tells no {name}"))
}
