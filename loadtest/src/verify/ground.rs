//! What a run stands on: the cluster, and what can be done to it.

use std::sync::Arc;

use anyhow::Context as _;
use tideline_local_cluster::{ClusterSpec, LocalCluster};
use tokio::sync::Mutex;

use super::archive_ground::ArchiveGround;
use super::args::{Chaos, VerifyArgs};
use super::chaos::Promotions;
use super::chaos::bus::Bus;
use super::chaos::clocks::{SERVER, name};
use super::chaos::skew::Clocks;
use super::setup::node_timeout;
use crate::target::{PRIMARIES, Target};

/// A cluster.
#[derive(Debug)]
pub(crate) struct Ground {
    pub(crate) target: Target,
    /// If it can be cut.
    pub(crate) bus: Option<Bus>,
    /// Who has taken over when.
    pub(crate) promotions: Mutex<Promotions>,
    /// If they can be set.
    pub(crate) clocks: Option<Arc<Clocks>>,
    /// Where old posts go.
    pub(crate) archive: Option<ArchiveGround>,
}

impl Ground {
    /// Starts a cluster, if none is given. Faults that this machine can't make are left out, and that is said.
    pub(crate) async fn open(args: &mut VerifyArgs) -> anyhow::Result<Self> {
        if !args.cluster.is_empty() {
            return Ok(Self {
                target: Target::Foreign(args.cluster.clone()),
                bus: None,
                promotions: Mutex::default(),
                clocks: None,
                archive: None,
            });
        }
        let replicas = u16::from(args.has_failovers());
        let mut spec = ClusterSpec::ephemeral().node_timeout(node_timeout(args)).replicas(replicas);
        let clocks = args.has(Chaos::SetClocks).then(Clocks::new).flatten();
        if clocks.is_none() {
            args.chaos.retain(|kind| *kind != Chaos::SetClocks);
        }
        // Redis votes by wall clocks: whoever voted in the future votes no more.
        if let Some(clocks) = clocks.as_ref().filter(|_| !args.has_failovers()) {
            let names: Vec<_> = (0..usize::from(PRIMARIES)).map(|node| (node, name(SERVER, node))).collect();
            let names: Vec<_> = names.iter().map(|(node, name)| (*node, name.as_str())).collect();
            spec = clocks.of_servers(spec, &names);
        }
        let up = async {
            if args.has(Chaos::CutBus) {
                return Bus::up(spec).await.map(|(cluster, bus)| (cluster, Some(bus)));
            }
            LocalCluster::up(spec).await.map(|cluster| (cluster, None))
        };
        let (cluster, bus) = up.await.context("no local cluster could be started")?;
        let archive = match args.archive {
            Some(kind) => Some(ArchiveGround::open(kind, args).await?),
            None => None,
        };
        Ok(Self {
            archive,
            target: Target::Own(Box::new(cluster)),
            bus,
            promotions: Mutex::default(),
            clocks: clocks.map(Arc::new),
        })
    }

    /// Once the archive's tables are there.
    pub(crate) async fn begin_archive(&self) -> anyhow::Result<()> {
        match &self.archive {
            Some(archive) => archive.begin().await,
            None => Ok(()),
        }
    }

    /// Nothing if it isn't ours to break.
    pub(crate) fn cluster(&self) -> Option<&LocalCluster> {
        match &self.target {
            Target::Own(cluster) => Some(cluster),
            Target::Foreign(_) => None,
        }
    }
}
