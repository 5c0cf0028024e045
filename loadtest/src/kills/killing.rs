//! What is killed, and when: in the middle of work.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rand::RngExt as _;
use rand::rngs::StdRng;
use serde::Serialize;
use tideline::cluster::{Command, NodeAddr};
use tideline_local_cluster::LocalCluster;
use tokio::time::sleep;

use super::args::KillsArgs;
use super::servers::Servers;

/// After so long servers of Redis take another one for dead.
pub(super) const NODE_TIMEOUT: Duration = Duration::from_secs(2);
/// A replica that has taken over has forgotten the votes by which it was elected after so many node timeouts (Redis
/// 7.0): before that it could be elected with an old epoch.
const REST_TIMEOUTS: u32 = 5;
/// Longest wait for what must happen in the end.
const PATIENCE: Duration = Duration::from_secs(60);
/// For so long a replica is left to be elected.
const VOTES_MAX: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(5);
/// How long a server is left dead, in milliseconds.
const DEAD_MS: (u64, u64) = (0, 400);

/// What was killed.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Killed {
    /// One server of the site.
    pub(super) one: u32,
    /// Both at once.
    pub(super) both: u32,
    /// A primary of Redis, whose replica took over.
    pub(super) primaries: u32,
    /// Requests that were under way at those that were killed.
    pub(super) under_way: u64,
}

impl Killed {
    pub(super) fn all(&self) -> u32 {
        self.one + self.both + self.primaries
    }
}

/// Kills one after the other.
pub(super) struct Killing<'a> {
    pub(super) args: &'a KillsArgs,
    pub(super) servers: &'a Servers,
    pub(super) cluster: &'a LocalCluster,
    /// Who has taken over when.
    pub(super) promoted: HashMap<NodeAddr, Instant>,
}

impl Killing<'_> {
    pub(super) async fn run(&mut self, random: &mut StdRng, told: impl Fn(u32)) -> anyhow::Result<Killed> {
        let mut killed = Killed::default();
        for nth in 0..self.args.kills {
            let wanted = self.servers.counted().0 + self.args.answers;
            self.wait("nothing is answered any more", || self.servers.counted().0 >= wanted).await?;
            if self.args.is_failover(nth) {
                self.fail_over(random).await?;
                killed.primaries += 1;
            } else {
                self.kill_servers(nth, random, &mut killed).await?;
            }
            told(nth + 1);
        }
        Ok(killed)
    }

    async fn wait(&self, what: &str, is_so: impl Fn() -> bool) -> anyhow::Result<()> {
        let since = Instant::now();
        while !is_so() {
            anyhow::ensure!(since.elapsed() < 2 * PATIENCE, "{what}, within {:?}", 2 * PATIENCE);
            sleep(LOOK).await;
        }
        Ok(())
    }

    /// Kills one server, the other one, or both, in the middle of what they do.
    async fn kill_servers(&self, nth: u32, random: &mut StdRng, killed: &mut Killed) -> anyhow::Result<()> {
        let doomed: &[usize] = match nth % 3 {
            0 => &[0],
            1 => &[1],
            _ => &[0, 1],
        };
        let under_way = || doomed.iter().map(|nth| self.servers.under_way(*nth)).sum::<u64>();
        self.wait("servers have nothing to do", || under_way() > 0).await?;
        killed.under_way += under_way();
        futures::future::join_all(doomed.iter().map(|nth| self.servers.kill(*nth))).await;
        sleep(Duration::from_millis(random.random_range(DEAD_MS.0..=DEAD_MS.1))).await;
        for nth in doomed {
            self.servers.revive(*nth).await?;
        }
        if doomed.len() == 1 {
            killed.one += 1
        } else {
            killed.both += 1
        }
        Ok(())
    }

    /// Kills a primary of Redis, has its replica take over, and starts it again.
    async fn fail_over(&mut self, random: &mut StdRng) -> anyhow::Result<()> {
        let cluster = self.cluster;
        cluster.wait_healthy(PATIENCE).await?;
        let primaries = cluster.primaries().await;
        let primary = primaries[random.random_range(0..primaries.len())];
        let old = primary.addr();
        let replica = cluster.replica_of(&old).await.context("a primary without a replica")?.addr();
        let since = self.promoted.get(&replica).map(Instant::elapsed);
        sleep(since.and_then(|since| (NODE_TIMEOUT * REST_TIMEOUTS).checked_sub(since)).unwrap_or_default())
            .await;
        primary.kill()?;
        let (began, mut waits_for_votes) = (Instant::now(), true);
        while cluster.primary_of(&replica).await.is_some() {
            if waits_for_votes && began.elapsed() > VOTES_MAX {
                waits_for_votes = false;
                // On a busy machine votes may come too late again and again.
                let takeover = Command::new("CLUSTER").arg("FAILOVER").arg("TAKEOVER");
                let _ = cluster.ask(&replica, takeover).await;
            }
            anyhow::ensure!(began.elapsed() < PATIENCE, "{replica} was never promoted");
            sleep(Duration::from_millis(20)).await;
        }
        self.promoted.insert(replica, Instant::now());
        let index = cluster.nodes().iter().position(|node| node.addr() == old);
        cluster.restart(index.context("a primary is no node")?).await?;
        cluster.wait_healthy(PATIENCE).await?;
        Ok(())
    }
}
