//! The cluster under load: one of our own, which goes with this value, or somebody else's.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use tideline::local_cluster::{ClusterSpec, LocalCluster};

use crate::cpu::{self, CpuTime};
use crate::report::many;

/// Of a cluster that is started here, unless a command says otherwise.
pub(crate) const PRIMARIES: u16 = 3;

/// Where the load goes.
#[derive(Debug)]
pub(crate) enum Target {
    /// Started here, removed at the end, and also when this process is killed.
    Own(Box<LocalCluster>),
    /// Only its addresses are known.
    Foreign(Vec<String>),
}

impl Target {
    /// Uses the cluster of these seeds; starts one if there are none, with so many primaries, and replicas for each.
    pub(crate) async fn open(seeds: Vec<String>, primaries: u16, replicas: u16) -> anyhow::Result<Self> {
        if !seeds.is_empty() {
            return Ok(Self::Foreign(seeds));
        }
        let nodes = (many(primaries, "primary", "primaries"), many(replicas, "replica", "replicas"));
        eprintln!("Starting a cluster of {} with {} each.", nodes.0, nodes.1);
        let spec = ClusterSpec::ephemeral().primaries(primaries).replicas(replicas);
        let cluster = LocalCluster::up(spec).await.context("no local cluster could be started")?;
        Ok(Self::Own(Box::new(cluster)))
    }

    /// `redis://` or `rediss://` addresses.
    pub(crate) fn seeds(&self) -> Vec<String> {
        match self {
            Self::Own(cluster) => cluster.urls(),
            Self::Foreign(seeds) => seeds.clone(),
        }
    }

    /// Where its files are, if it was started here.
    pub(crate) fn dir(&self) -> Option<&Path> {
        match self {
            Self::Own(cluster) => Some(cluster.dir()),
            Self::Foreign(_) => None,
        }
    }

    /// Whether it was started here.
    pub(crate) fn is_own(&self) -> bool {
        matches!(self, Self::Own(_))
    }

    /// CPU time of all its servers, replicas included, and of this process.
    pub(crate) fn cpu_time(&self) -> CpuTime {
        CpuTime { server: self.servers_cpu(), client: cpu::own() }
    }

    /// `None` if it cannot be read here.
    fn servers_cpu(&self) -> Option<Duration> {
        let Self::Own(cluster) = self else { return None };
        let pids: Option<Vec<u32>> = cluster.nodes().iter().map(|node| node.pid()).collect();
        cpu::of_processes(&pids?)
    }

    /// Removes it if it is ours.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        if let Self::Own(cluster) = self {
            cluster.down().await?;
        }
        Ok(())
    }
}
