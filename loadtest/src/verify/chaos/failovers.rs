//! Primaries whose replicas take over: once, or again and again, back and forth.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rand::RngExt;
use rand::rngs::StdRng;
use tideline::cluster::{Command, NodeAddr};
use tideline_local_cluster::{LocalCluster, LocalNode};
use tokio::time::sleep;

use super::reach::Reach;
use super::risks::caught_up;
use super::{Admit, PATIENCE, RETRY, Storm, patiently};

/// Failovers in a row, of one primary and its replica.
const IN_A_ROW: usize = 3;
/// For so long a replica is left to be elected. On a busy machine votes may come too late again and again, and a
/// primary that was killed can't come back before somebody has what it had.
const VOTES_MAX: Duration = Duration::from_secs(20);
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
    /// The replica that is to take over from a primary, once it has forgotten the votes by which it was elected before.
    /// For four node timeouts it takes them for new ones (Redis 7.0): it believes to be elected with an old epoch,
    /// gives way to the primary that was killed as soon as that is back, with whatever is on its disk, and drops its
    /// own data.
    pub(super) async fn heir<'a>(
        &self,
        cluster: &'a LocalCluster,
        primary: &NodeAddr,
    ) -> anyhow::Result<&'a LocalNode> {
        let replica = replica_of(cluster, primary).await?;
        let since = self.promotions.lock().await.get(&replica.addr()).map(Instant::elapsed);
        let rest = since.and_then(|since| (self.node_timeout * 4).checked_sub(since));
        sleep(rest.unwrap_or_default()).await;
        Ok(replica)
    }

    /// Waits until a replica has taken over from a primary that had that epoch. On a busy machine it may have asked for
    /// votes before, and have had them too late: by those it would be primary for a moment, with an epoch that is none
    /// (Redis 7.0).
    pub(super) async fn promoted(
        &self,
        cluster: &LocalCluster,
        replica: &NodeAddr,
        (old, before): (&NodeAddr, u64),
    ) -> anyhow::Result<()> {
        let (since, mut waits_for_votes) = (Instant::now(), true);
        loop {
            let nodes = nodes_as_told_by(cluster, replica).await;
            if nodes.as_ref().is_ok_and(|nodes| has_taken_over(nodes, old, before)) {
                break;
            }
            if waits_for_votes && since.elapsed() > VOTES_MAX {
                waits_for_votes = false;
                self.run.event("replicas that took over without votes");
                let takeover = Command::new("CLUSTER").arg("FAILOVER").arg("TAKEOVER");
                if let Err(e) = cluster.ask(replica, takeover).await {
                    tracing::debug!("{replica} takes nothing over: {e}");
                }
            }
            if since.elapsed() > PATIENCE {
                let info = cluster.ask(replica, Command::new("INFO").arg("replication")).await;
                let info = info.and_then(|info| info.text().map(str::to_owned));
                anyhow::bail!("{replica} was never promoted; it says: {info:?} {nodes:?}");
            }
            sleep(Duration::from_millis(20)).await;
        }
        self.promotions.lock().await.insert(replica.clone(), Instant::now());
        Ok(())
    }

    /// One of the primaries, once the cluster is well, whose replica follows it. On a busy machine that may have
    /// taken over meanwhile, though nobody has struck: then another one.
    pub(super) async fn some_primary(
        &self,
        cluster: &LocalCluster,
        random: &mut StdRng,
    ) -> anyhow::Result<NodeAddr> {
        let since = Instant::now();
        loop {
            cluster.wait_healthy(PATIENCE).await?;
            let slot = self.some_slot(random)?;
            let primary = patiently(async || cluster.owner_of(slot).await).await?;
            match self.heir(cluster, &primary).await {
                Ok(heir) if follows(cluster, &heir.addr(), &primary).await => return Ok(primary),
                Err(e) if since.elapsed() > PATIENCE => return Err(e),
                Ok(_) if since.elapsed() > PATIENCE => {
                    anyhow::bail!("no primary has a replica that follows it; the last was {primary}")
                }
                _ => sleep(RETRY).await,
            }
        }
    }

    /// Failovers and moves come one after another: a slot whose server dies while it moves needs an operator.
    pub(super) async fn fail_over(
        &self,
        cluster: &LocalCluster,
        admit: Admit,
        random: &mut StdRng,
    ) -> anyhow::Result<bool> {
        let old = self.some_primary(cluster, random).await?;
        let risky = self.risk(cluster, &old).await?;
        // The first of a round loses something, wherever something may be lost.
        let loses = self.setup.may_lose && (admit == Admit::Portion || random.random_bool(0.5));
        let how = if loses { How::Ahead } else { How::drawn(random) };
        let (_, has_met) = self.replace(cluster, &old, how, admit, random).await?;
        self.end_risk(cluster, risky).await?;
        Ok(has_met)
    }

    /// One primary and its replica, which take over from each other as soon as the one has what the other had. Nobody
    /// waits for the rest of the cluster to have heard of it.
    pub(super) async fn fail_over_again_and_again(
        &self,
        cluster: &LocalCluster,
        admit: Admit,
        random: &mut StdRng,
    ) -> anyhow::Result<bool> {
        let mut primary = self.some_primary(cluster, random).await?;
        let risky = self.risk(cluster, &primary).await?;
        // The first that succeeds loses something, wherever something may be lost.
        let (mut loses, mut has_met) = (self.setup.may_lose, false);
        for turn in 0..IN_A_ROW {
            let admit = if turn == 0 { admit } else { Admit::Nothing };
            let how = if loses { How::Ahead } else { How::drawn(random) };
            let (next, has_met_one) = self.replace(cluster, &primary, how, admit, random).await?;
            has_met |= has_met_one;
            if next != primary {
                loses = false;
                in_sync(cluster, &primary).await?;
                // While the new one had no replica, fences did without: what lasts by them this one must have.
                caught_up(cluster, &next, &primary).await?;
                primary = next;
            }
        }
        self.end_risk(cluster, risky).await?;
        Ok(has_met)
    }

    /// Has a primary replaced by its replica, and brings it back; gives the new one, or the old one if it was let
    /// live, and whether something of what it had was asked for while nobody had taken over.
    async fn replace(
        &self,
        cluster: &LocalCluster,
        old: &NodeAddr,
        how: How,
        admit: Admit,
        random: &mut StdRng,
    ) -> anyhow::Result<(NodeAddr, bool)> {
        let heir = self.heir(cluster, old).await?;
        let replica = heir.addr();
        let victim = cluster.node(old).context("a primary is no node")?;
        let before = patiently(async || epoch_of(cluster, old).await).await?;
        let (reach, struck) = (Reach::Slots(self.slots_of(cluster, old).await?), self.run.now());
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
            How::Ahead if !self.kill_ahead(cluster, victim, heir, admit).await? => {
                return Ok((old.clone(), self.has_met(&reach, struck)));
            }
            How::Ahead => {}
        }
        let promoted = self.promoted(cluster, &replica, (old, before)).await;
        let has_met = self.has_met(&reach, struck);
        sleep(Duration::from_millis(random.random_range(AWAY_MS.0..AWAY_MS.1))).await;
        // Mended in any case: nothing may stay frozen.
        if victim.is_running() {
            victim.thaw()?;
        } else {
            cluster.restart(victim.index).await?;
        }
        promoted?;
        Ok((replica, has_met))
    }
}

/// What a server says of all nodes.
async fn nodes_as_told_by(cluster: &LocalCluster, node: &NodeAddr) -> tideline::Result<String> {
    Ok(cluster.ask(node, Command::new("CLUSTER").arg("NODES")).await?.text()?.to_owned())
}

/// The epoch of a server's slots, as it says itself.
pub(super) async fn epoch_of(cluster: &LocalCluster, node: &NodeAddr) -> tideline::Result<u64> {
    let nodes = nodes_as_told_by(cluster, node).await?;
    let epoch = nodes.lines().find(|line| line.contains("myself")).and_then(epoch_in);
    epoch.ok_or_else(|| tideline::Error::new(tideline::ErrorKind::Internal, format!("no epoch in: {nodes}")))
}

/// The epoch in a line of CLUSTER NODES.
fn epoch_in(line: &str) -> Option<u64> {
    line.split(' ').nth(6)?.parse().ok()
}

/// Whether the server that says so is primary, in the place of one that had that epoch, and stays it.
fn has_taken_over(nodes: &str, old: &NodeAddr, before: u64) -> bool {
    let flags = |line: &str, flag: &str| line.split(' ').nth(2).is_some_and(|flags| flags.contains(flag));
    let me = nodes.lines().find(|line| flags(line, "myself"));
    let Some(me) = me.filter(|line| flags(line, "master")) else { return false };
    let at = format!("{}:{}@", old.host, old.port);
    // It had taken over before, on a busy machine.
    let follows = nodes.lines().any(|line| line.contains(&at) && flags(line, "slave"));
    follows || epoch_in(me).is_some_and(|epoch| epoch > before)
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

/// Whether a server is the replica of that primary, and connected to it: else nobody would elect it.
async fn follows(cluster: &LocalCluster, node: &NodeAddr, primary: &NodeAddr) -> bool {
    let info = cluster.ask(node, Command::new("INFO").arg("replication")).await;
    info.is_ok_and(|info| info.text().is_ok_and(|told| is_replica_of(told, primary)))
}

/// Whether a server that tells this of its replication is connected to that primary.
fn is_replica_of(told: &str, primary: &NodeAddr) -> bool {
    let has = |line: &str| told.lines().any(|other| other.trim_end() == line);
    has("role:slave") && has("master_link_status:up") && has(&format!("master_port:{}", primary.port))
}

/// Waits until a server that was a primary follows the new one, and has what that has: else nobody could take over from
/// it.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_took_over_by_itself_is_nobodys_replica() {
        let told = |role: &str, link: &str| {
            format!("role:{role}\r\nmaster_port:7000\r\nmaster_link_status:{link}\r\n")
        };
        let primary = |port| NodeAddr::new("127.0.0.1", port);
        assert!(is_replica_of(&told("slave", "up"), &primary(7000)));
        assert!(!is_replica_of(&told("slave", "down"), &primary(7000)));
        assert!(!is_replica_of(&told("slave", "up"), &primary(700)));
        assert!(!is_replica_of("role:master\r\nconnected_slaves:0\r\n", &primary(7000)));
    }

    #[test]
    fn who_is_elected_by_old_votes_has_not_taken_over() {
        let told = |flags: &str, epoch: u64, of_old: &str| {
            format!(
                "aa 127.0.0.1:7003@17003 {flags} - 0 0 {epoch} connected 0-9\n\
                 bb 127.0.0.1:7000@17000 {of_old} - 1 1 8 disconnected"
            )
        };
        let old = NodeAddr::new("127.0.0.1", 7000);
        assert!(has_taken_over(&told("myself,master", 9, "master,fail"), &old, 8));
        assert!(!has_taken_over(&told("myself,master", 7, "master,fail"), &old, 8));
        assert!(!has_taken_over(&told("myself,slave", 9, "master,fail"), &old, 8));
        assert!(has_taken_over(&told("myself,master", 8, "slave"), &old, 8));
    }
}
