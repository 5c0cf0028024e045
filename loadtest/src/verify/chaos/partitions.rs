//! Servers whose bus is cut: from all others, or one way only. Clients reach all of them, and each other's data.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use rand::RngExt;
use rand::rngs::StdRng;
use tideline::cluster::{Command, NodeAddr};
use tideline_local_cluster::LocalCluster;
use tokio::time::sleep;

use super::bus::{Bus, Cut};
use super::failovers::epoch_of;
use super::reach::Reach;
use super::{Admit, RETRY, Storm, patiently};

/// How long a server is cut off from which nobody takes over, in milliseconds: longer than the node timeout.
const DEAF_MS: (u64, u64) = (2_000, 4_000);
/// How long one is cut off from which somebody has taken over, in milliseconds.
const DEPOSED_MS: (u64, u64) = (0, 1_500);

impl Storm<'_> {
    /// Cuts a primary off from the bus, until somebody has taken over if anybody does.
    pub(super) async fn cut_bus(
        &self,
        (cluster, bus): (&LocalCluster, &Bus),
        admit: Admit,
        random: &mut StdRng,
    ) -> anyhow::Result<bool> {
        let primary = self.some_primary(cluster, random).await?;
        let replica = self.heir(cluster, &primary).await?.addr();
        let index = cluster.node(&primary).context("a primary is no node")?.index;
        let (cut, event) = match random.random_range(0..3) {
            0 => (Cut::Off(index), "primaries cut off"),
            1 => (Cut::Mute(index), "primaries that nobody heard"),
            _ => (Cut::Deaf(index), "primaries that heard nobody"),
        };
        let risky = self.risk(cluster, &primary).await?;
        let before = patiently(async || epoch_of(cluster, &primary).await).await?;
        let reach = Reach::Slots(self.slots_of(cluster, &primary).await?);
        let struck = self.run.now();
        self.run.event(event);
        bus.cut(cut);
        if !matches!(cut, Cut::Mute(_)) {
            self.until_it_refuses(cluster, &primary).await;
        }
        self.admit(admit);
        let (is_replaced, (least, most)) = match cut {
            Cut::Deaf(_) => (Ok(()), DEAF_MS),
            _ => (self.promoted(cluster, &replica, (&primary, before)).await, DEPOSED_MS),
        };
        sleep(Duration::from_millis(random.random_range(least..most))).await;
        let has_met = self.until_met(&reach, struck).await;
        // Mended in any case.
        bus.cut(Cut::Nobody);
        is_replaced?;
        self.end_risk(cluster, risky).await?;
        Ok(has_met)
    }

    /// Waits until a server that hears nobody knows that, and refuses its clients; or until it follows another one.
    /// Work that came before would be done before anything went wrong: it serves until its node timeout is over.
    async fn until_it_refuses(&self, cluster: &LocalCluster, node: &NodeAddr) {
        let serves = async || {
            let info = cluster.ask(node, Command::new("CLUSTER").arg("INFO")).await?;
            Ok::<_, tideline::Error>(info.text()?.contains("cluster_state:ok"))
        };
        let since = Instant::now();
        while serves().await.unwrap_or(true) && since.elapsed() < self.node_timeout * 4 {
            if tokio::time::timeout(RETRY, self.gate.over()).await.is_ok() {
                break;
            }
        }
    }
}
