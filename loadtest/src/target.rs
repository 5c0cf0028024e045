//! The cluster under load: one of our own, which goes with this value, or somebody else's.

use std::time::Duration;

use anyhow::Context as _;
use tideline::cluster::Seed;
use tideline_local_cluster::{ClusterSpec, LocalCluster};

use crate::cpu::{self, CpuTime};
use crate::report::many;

/// Of a cluster that is started here, unless a command says otherwise.
pub(crate) const PRIMARIES: u16 = 3;

/// Servers that are started where there is no cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Servers {
    pub(crate) primaries: u16,
    /// Of each primary.
    pub(crate) replicas: u16,
    /// Whether they write append-only files, synced every second, as shipped servers do.
    pub(crate) append_only: bool,
}

/// So many primaries, with so many replicas each, that write nothing to a disk.
impl From<(u16, u16)> for Servers {
    fn from((primaries, replicas): (u16, u16)) -> Self {
        Self { primaries, replicas, append_only: false }
    }
}

/// Where the load goes.
#[derive(Debug)]
pub(crate) enum Target {
    /// Started here, removed at the end, and also when this process is killed.
    Own(Box<LocalCluster>),
    /// Only its addresses are known.
    Foreign(Vec<Seed>),
}

impl Target {
    /// Uses the cluster of these seeds; starts one if there are none.
    pub(crate) async fn open(seeds: Vec<Seed>, servers: Servers) -> anyhow::Result<Self> {
        if !seeds.is_empty() {
            return Ok(Self::Foreign(seeds));
        }
        let Servers { primaries, replicas, append_only } = servers;
        let nodes = (many(primaries, "primary", "primaries"), many(replicas, "replica", "replicas"));
        let files = if append_only { ", and append-only files" } else { "" };
        eprintln!("Starting a cluster of {} with {} each{files}.", nodes.0, nodes.1);
        let mut spec = ClusterSpec::ephemeral().primaries(primaries).replicas(replicas);
        if append_only {
            spec = spec.config("appendonly", "yes").config("appendfsync", "everysec");
        }
        let cluster = LocalCluster::up(spec).await.context("no local cluster could be started")?;
        Ok(Self::Own(Box::new(cluster)))
    }

    /// `redis://` or `rediss://` addresses.
    pub(crate) fn seeds(&self) -> Vec<Seed> {
        match self {
            Self::Own(cluster) => cluster.urls().into_iter().map(Seed::from).collect(),
            Self::Foreign(seeds) => seeds.clone(),
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
