//! The faults of a cluster, and what to do about them. Facts in, judgement out; no I/O.

use std::fmt;

use super::facts::{Facts, Live};
use super::plan::Shape;
use super::slots::SLOTS;
use Remedy::{Up, Wait};
use tideline_router::wire::NodeAddr;

/// A fault of a cluster, and its remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Index of the node that has it; `None`: the cluster has.
    pub node: Option<usize>,
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub remedy: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.what, self.remedy)
    }
}

/// A judgement over all nodes.
#[derive(Debug, Default)]
pub(super) struct ClusterHealth {
    /// Nodes that answer and know all others.
    pub(super) joined: usize,
    /// Joined nodes that see every slot served.
    pub(super) serving: usize,
    /// Replicas that follow their primary.
    pub(super) in_sync: usize,
    /// Empty if all is well.
    pub(super) problems: Vec<Problem>,
    /// What starts and mends this cluster, as it is to be typed.
    up: String,
}

/// A remedy: what helps.
enum Remedy {
    Up,
    Wait,
}

impl ClusterHealth {
    /// Judges `facts`, the nodes at `addrs` in the same order. `up` is the command that mends this cluster.
    pub(super) fn judge(shape: Shape, up: String, addrs: &[NodeAddr], facts: &[Facts]) -> Self {
        let mut health = Self { up, ..Self::default() };
        if facts.iter().all(|facts| matches!(facts, Facts::Stopped)) {
            let what = format!("none of the {} servers runs", facts.len());
            let remedy = format!("`{}` starts them, with their data", health.up);
            health.problems.push(Problem { node: None, what, remedy });
            return health;
        }
        for (node, (addr, facts_of)) in addrs.iter().zip(facts).enumerate() {
            match facts_of {
                Facts::Stopped => health.report(node, format!("{addr} does not run"), Up),
                Facts::Silent(why) => health.report(node, format!("{addr} does not answer: {why}"), Up),
                Facts::Loading => health.report(node, format!("{addr} reads its data"), Wait),
                Facts::Live(live) => health.judge_node(node, addr, live, facts),
            }
        }
        let wanted = shape.primaries * shape.replicas;
        let present = facts.iter().filter_map(Facts::live).filter(|live| !live.is_primary()).count();
        if health.problems.is_empty() && present < wanted {
            let what = format!("{present} of {wanted} replicas");
            health.report(None::<usize>, what, Up);
        }
        health
    }

    fn report(&mut self, node: impl Into<Option<usize>>, what: String, remedy: Remedy) {
        let remedy = match remedy {
            Up => format!("`{}` mends it", self.up),
            Wait => "wait; if it stays, see the server.log in the node's directory".into(),
        };
        self.problems.push(Problem { node: node.into(), what, remedy });
    }

    fn judge_node(&mut self, node: usize, addr: &NodeAddr, live: &Live, all: &[Facts]) {
        let before = self.problems.len();
        for other in all.iter().filter_map(Facts::live).filter(|other| other.view.me.id != live.view.me.id) {
            let port = other.view.me.port;
            match live.view.other(&other.view.me.id) {
                None => self.report(node, format!("{addr} does not know the node at port {port}"), Up),
                Some(peer) if peer.is_failing || !peer.is_connected => {
                    self.report(node, format!("{addr} has no connection to the node at port {port}"), Wait);
                }
                Some(_) => {}
            }
        }
        self.joined += usize::from(self.problems.len() == before);
        self.judge_slots(node, addr, live, all);
        self.serving += usize::from(self.problems.len() == before);
        if !live.is_primary() {
            self.judge_replica(node, addr, live, all);
        }
    }

    fn judge_slots(&mut self, node: usize, addr: &NodeAddr, live: &Live, all: &[Facts]) {
        if !live.is_ok {
            self.report(node, format!("{addr} reports cluster_state:fail"), Wait);
        }
        let mut covered = live.view.me.slots.clone();
        live.view.others.iter().filter(|peer| !peer.is_failing).for_each(|peer| covered.union(&peer.slots));
        let missing = usize::from(SLOTS) - covered.len();
        if missing > 0 {
            self.report(node, format!("{addr} knows nobody who serves {missing} of {SLOTS} slots"), Up);
        }
        let is_outdated = |other: &&Live| {
            live.view.other(&other.view.me.id).is_some_and(|peer| !peer.agrees_with(&other.view.me))
        };
        if let Some(other) = all.iter().filter_map(Facts::live).find(is_outdated) {
            let port = other.view.me.port;
            self.report(
                node,
                format!("{addr} and the node at port {port} disagree on the latter's slots or role"),
                Up,
            );
        }
    }

    fn judge_replica(&mut self, node: usize, addr: &NodeAddr, live: &Live, all: &[Facts]) {
        let primary = all
            .iter()
            .filter_map(Facts::live)
            .find(|p| live.view.me.primary_id.as_ref() == Some(&p.view.me.id));
        // Of a primary that is none of ours we know only what the replica says.
        if live.is_in_sync() && primary.is_none_or(|primary| primary.feeds(live.view.me.port)) {
            self.in_sync += 1;
        } else {
            self.report(node, format!("the replica {addr} is not in sync with its primary"), Wait);
        }
    }
}

#[cfg(test)]
mod tests;
