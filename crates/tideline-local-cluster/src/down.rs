//! Stopping servers in good order.

use std::time::Duration;

use futures::future::join_all;
use tokio::time::{Instant, sleep};

use super::cluster::LocalCluster;
use super::facts::Live;
use super::node::LocalNode;
use tideline_model::error::{Error, Result};

/// The time that a server may take to write its data and end.
const SHUTDOWN_DEADLINE: Duration = Duration::from_secs(20);
/// The time from SIGTERM until a server is killed.
const TERM_DEADLINE: Duration = Duration::from_secs(5);
/// Between two looks whether a server has ended.
const SHUTDOWN_POLL: Duration = Duration::from_millis(5);

impl LocalCluster {
    /// Stops all servers. An ephemeral cluster is gone then; another keeps its data for the next `up`.
    ///
    /// # Errors
    /// `Unavailable` if a server does not end, or another `up` or `down` works in the directory.
    pub async fn down(self) -> Result<()> {
        if self.spec.is_ephemeral() {
            // Dropping blocks until the keeper has finished.
            let dropped = tokio::task::spawn_blocking(move || drop(self)).await;
            return dropped.map_err(|e| Error::internal(e.to_string()));
        }
        let _lock = self.home.lock(Instant::now() + self.spec.start_deadline).await?;
        self.stop_all().await?;
        self.save(&[])
    }

    /// [`LocalCluster::down`], and removes the data too.
    pub async fn wipe(self) -> Result<()> {
        if self.spec.is_ephemeral() {
            return self.down().await;
        }
        let _lock = self.home.lock(Instant::now() + self.spec.start_deadline).await?;
        self.stop_all().await?;
        self.home.wipe(self.nodes.len())
    }

    async fn stop_all(&self) -> Result<()> {
        for node in self.nodes.iter().filter(|node| node.is_running()) {
            // A frozen server hears nothing.
            node.thaw()?;
        }
        // Primaries first: they wait until their replicas have everything.
        let facts = self.facts().await;
        let is_primary = |node: &LocalNode| facts[node.index].live().is_some_and(Live::is_primary);
        let (primaries, others): (Vec<_>, Vec<_>) = self.nodes.iter().partition(|node| is_primary(node));
        for group in [primaries, others] {
            for stopped in join_all(group.into_iter().map(|node| self.stop(node))).await {
                stopped?;
            }
        }
        Ok(())
    }

    /// Ends one server: asks, then insists, then kills.
    pub(super) async fn stop(&self, node: &LocalNode) -> Result<()> {
        let deadline = Instant::now() + SHUTDOWN_DEADLINE;
        while let Some(pid) = node.pid().filter(|_| Instant::now() < deadline) {
            // Somebody else's server may listen at this port. Ours may still start, or refuse while it writes
            // its first append-only file: then it is asked again.
            let is_ours = self.admin.process_id(&node.addr()).await == Some(pid);
            if is_ours && self.admin.shut_down(&node.addr()).await {
                wait_gone(node, deadline).await;
            }
            sleep(SHUTDOWN_POLL).await;
        }
        if node.is_running() {
            node.terminate()?;
            wait_gone(node, Instant::now() + TERM_DEADLINE).await;
        }
        if node.is_running() { node.kill() } else { Ok(()) }
    }
}

async fn wait_gone(node: &LocalNode, deadline: Instant) {
    while node.is_running() && Instant::now() < deadline {
        sleep(SHUTDOWN_POLL).await;
    }
}
