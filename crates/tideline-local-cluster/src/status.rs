//! The condition of a cluster, for people.

use std::ops::RangeInclusive;

use super::cluster::LocalCluster;
use super::facts::{Facts, Live};
use super::health::Problem;
use super::node::LocalNode;
use tideline_router::wire::NodeAddr;

/// The condition of a cluster.
#[derive(Debug, Clone)]
pub struct ClusterStatus {
    /// All nodes, in the order of their start.
    pub nodes: Vec<NodeStatus>,
    /// Faults; empty if the cluster is healthy.
    pub problems: Vec<Problem>,
    /// Notes on what is worth knowing and not wrong, such as a slot on its way.
    pub notes: Vec<String>,
}

/// The condition of one node.
#[derive(Debug, Clone)]
pub struct NodeStatus {
    /// The address at which it listens.
    pub addr: NodeAddr,
    /// Its process, `None` if it does not run.
    pub pid: Option<u32>,
    /// `primary`, `replica`, `loading`, `silent` or `stopped`.
    pub role: &'static str,
    /// The slots that it serves.
    pub slots: Vec<RangeInclusive<u16>>,
    /// Port of its primary.
    pub replica_of: Option<u16>,
    /// `up` or `down`, for a replica.
    pub link: Option<String>,
    /// Bytes of the replication stream written or read.
    pub offset: Option<u64>,
    /// Memory in use, as the server shows it.
    pub memory: Option<String>,
}

impl ClusterStatus {
    /// Whether every slot is served and every replica in sync.
    pub fn is_healthy(&self) -> bool {
        self.problems.is_empty()
    }
}

impl LocalCluster {
    /// Tells the condition of the cluster; asks every node once.
    pub async fn status(&self) -> ClusterStatus {
        let facts = self.facts().await;
        let nodes = self.nodes.iter().zip(&facts).map(|(node, facts)| node_status(node, facts)).collect();
        let mut open: Vec<u16> =
            facts.iter().filter_map(Facts::live).flat_map(|l| l.view.me.open_slots.clone()).collect();
        open.sort_unstable();
        open.dedup();
        let note = |slot| {
            format!("slot {slot} is being moved; `redis-cli --cluster fix` ends a move that was cut off")
        };
        ClusterStatus {
            nodes,
            problems: self.judge(&facts).problems,
            notes: open.into_iter().map(note).collect(),
        }
    }
}

fn node_status(node: &LocalNode, facts: &Facts) -> NodeStatus {
    let role = match facts {
        Facts::Stopped => "stopped",
        Facts::Silent(_) => "silent",
        Facts::Loading => "loading",
        Facts::Live(live) if live.is_primary() => "primary",
        Facts::Live(_) => "replica",
    };
    let field = |name| facts.live().map(|live| live.field(name)).filter(|value| !value.is_empty());
    let is_replica = role == "replica";
    let offset = if is_replica { "slave_repl_offset" } else { "master_repl_offset" };
    NodeStatus {
        addr: node.addr(),
        pid: node.pid(),
        role,
        slots: facts.live().map(|live| live.view.me.slots.ranges()).unwrap_or_default(),
        replica_of: facts.live().and_then(Live::primary_port),
        link: field("master_link_status").map(str::to_owned),
        offset: field(offset).and_then(|offset| offset.parse().ok()),
        memory: field("used_memory_human").map(str::to_owned),
    }
}
