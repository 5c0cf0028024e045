//! Wall clocks that are set, of one server or one instance at a time: by an hour, then right again.

use std::time::Duration;

use anyhow::Context as _;
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use tideline_local_cluster::{LocalCluster, LocalNode};
use tokio::time::sleep;

use super::reach::Reach;
use super::skew::{Clocks, HOUR_S};
use super::{Admit, PATIENCE, Storm};

/// How long a clock is off, in milliseconds.
const OFF_MS: (u64, u64) = (500, 3_000);

/// What a server's clock is called, or that of the instances that have a number in turn.
pub(crate) fn name(whose: &str, number: usize) -> String {
    format!("{whose}-{number}")
}

pub(crate) const SERVER: &str = "server";
pub(crate) const INSTANCE: &str = "instance";

impl Storm<'_> {
    /// An instance's clock is an hour ahead, or behind, for a while; then a server's, where replicas take nothing over.
    pub(super) async fn set_clocks(
        &self,
        (cluster, clocks): (&LocalCluster, &Clocks),
        admit: Admit,
        random: &mut StdRng,
    ) -> anyhow::Result<bool> {
        let [first, second] = [(); 2].map(|()| if random.random_bool(0.5) { HOUR_S } else { -HOUR_S });
        let number = random.random_range(0..self.run.pool.len());
        let (clock, struck) = (name(INSTANCE, number), self.run.now());
        self.run.event("clocks of instances set");
        clocks.set(&clock, first)?;
        self.admit(admit);
        self.stay(random).await;
        let has_met = self.until_met(&Reach::Instance(number), struck).await;
        clocks.set(&clock, 0)?;
        if self.run.world().servers_take_over {
            // Two portions come with it.
            self.admit(admit);
            return Ok(has_met);
        }

        let primaries = cluster.primaries().await;
        let node = *primaries.choose(random).context("a cluster without primaries")?;
        let reach = Reach::Slots(self.slots_of(cluster, &node.addr()).await?);
        let struck = self.run.now();
        self.run.event("clocks of servers set");
        self.set_server((cluster, clocks), node, second).await?;
        // It takes the others for dead, by its clock, until they have answered again. If it was set back before that,
        // it would wait for an hour.
        cluster.wait_healthy(PATIENCE).await?;
        self.admit(admit);
        self.stay(random).await;
        let has_met = self.until_met(&reach, struck).await && has_met;
        self.set_server((cluster, clocks), node, 0).await?;
        cluster.wait_healthy(PATIENCE).await?;
        Ok(has_met)
    }

    /// Servers measure by their wall clocks how long they wait for each other: MIGRATE gives up a key that is there
    /// already.
    async fn set_server(
        &self,
        (cluster, clocks): (&LocalCluster, &Clocks),
        node: &LocalNode,
        to: i64,
    ) -> anyhow::Result<()> {
        let _no_keys_move = self.keys.lock().await;
        Ok(clocks.set_server(&name(SERVER, node.index), cluster, &node.addr(), to).await?)
    }

    async fn stay(&self, random: &mut StdRng) {
        sleep(Duration::from_millis(random.random_range(OFF_MS.0..OFF_MS.1))).await;
    }
}
