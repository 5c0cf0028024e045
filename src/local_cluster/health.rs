//! What is wrong with a cluster, and what to do about it. Facts in, judgement out; no I/O.

use std::fmt;

use super::facts::{Facts, Live};
use super::plan::Shape;
use super::slots::SLOTS;
use crate::cluster::wire::NodeAddr;

/// What is wrong, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Index of the node that has it; `None`: the cluster has.
    pub node: Option<usize>,
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub remedy: &'static str,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.what, self.remedy)
    }
}

/// A judgement over all nodes.
#[derive(Debug, Default)]
pub(super) struct Health {
    /// Nodes that answer and know all others.
    pub(super) joined: usize,
    /// Joined nodes that see every slot served.
    pub(super) serving: usize,
    /// Replicas that follow their primary.
    pub(super) in_sync: usize,
    /// Empty if all is well.
    pub(super) problems: Vec<Problem>,
}

const UP: &str = "`tideline cluster up` mends it";
const WAIT: &str = "wait; if it stays, see the server.log in the node's directory";

impl Health {
    /// Judges `facts`, the nodes at `addrs` in the same order.
    pub(super) fn judge(shape: Shape, addrs: &[NodeAddr], facts: &[Facts]) -> Self {
        let mut health = Self::default();
        if facts.iter().all(|facts| matches!(facts, Facts::Stopped)) {
            let what = format!("none of the {} servers runs", facts.len());
            health.problems.push(Problem {
                node: None,
                what,
                remedy: "`tideline cluster up` starts them, with their data",
            });
            return health;
        }
        for (node, (addr, facts_of)) in addrs.iter().zip(facts).enumerate() {
            match facts_of {
                Facts::Stopped => health.report(node, format!("{addr} does not run"), UP),
                Facts::Silent(why) => health.report(node, format!("{addr} does not answer: {why}"), UP),
                Facts::Loading => health.report(node, format!("{addr} reads its data"), WAIT),
                Facts::Live(live) => health.judge_node(node, addr, live, facts),
            }
        }
        let wanted = shape.primaries * shape.replicas;
        let present = facts.iter().filter_map(Facts::live).filter(|live| !live.is_primary()).count();
        if health.problems.is_empty() && present < wanted {
            let what = format!("{present} of {wanted} replicas");
            health.problems.push(Problem { node: None, what, remedy: UP });
        }
        health
    }

    fn report(&mut self, node: usize, what: String, remedy: &'static str) {
        self.problems.push(Problem { node: Some(node), what, remedy });
    }

    fn judge_node(&mut self, node: usize, addr: &NodeAddr, live: &Live, all: &[Facts]) {
        let before = self.problems.len();
        for other in all.iter().filter_map(Facts::live).filter(|other| other.view.me.id != live.view.me.id) {
            let port = other.view.me.port;
            match live.view.other(&other.view.me.id) {
                None => self.report(node, format!("{addr} does not know the node at port {port}"), UP),
                Some(peer) if peer.is_failing || !peer.is_connected => {
                    self.report(node, format!("{addr} has no connection to the node at port {port}"), WAIT);
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
            self.report(node, format!("{addr} reports cluster_state:fail"), WAIT);
        }
        let mut covered = live.view.me.slots.clone();
        live.view.others.iter().filter(|peer| !peer.is_failing).for_each(|peer| covered.union(&peer.slots));
        let missing = usize::from(SLOTS) - covered.len();
        if missing > 0 {
            self.report(node, format!("{addr} knows nobody who serves {missing} of {SLOTS} slots"), UP);
        }
        let is_outdated = |other: &&Live| {
            live.view.other(&other.view.me.id).is_some_and(|peer| !peer.agrees_with(&other.view.me))
        };
        if let Some(other) = all.iter().filter_map(Facts::live).find(is_outdated) {
            let port = other.view.me.port;
            self.report(
                node,
                format!("{addr} and the node at port {port} disagree on the latter's slots or role"),
                UP,
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
            self.report(node, format!("the replica {addr} is not in sync with its primary"), WAIT);
        }
    }
}

#[cfg(test)]
mod tests;
