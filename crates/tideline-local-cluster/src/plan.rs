//! The next steps to make one cluster of the nodes. Facts in, steps out; no I/O.
//!
//! There is no list of stages to lose one's place in: each look at the facts yields what is missing now.
//! A new cluster, one whose start was cut off and one with a lost node are therefore the same case.

use std::collections::HashMap;

use super::facts::Live;
use super::slots::{SLOTS, SlotSet, even_owner};

/// One management command, or a few that belong together. Nodes are named by index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PlanStep {
    /// Give a node that knows nobody an epoch of its own, so that no two claim slots with the same.
    SetEpoch { node: usize, epoch: usize },
    /// Introduce two nodes to each other.
    Meet { at: usize, whom: usize },
    /// Strike out a node that no longer exists.
    Forget { at: usize, id: String },
    /// Make a replica the primary of its lost primary's slots.
    TakeOver { node: usize },
    /// Give slots to a primary, after striking out whom it wrongly believes to own them.
    Claim { node: usize, slots: SlotSet, outdated: SlotSet, must_win: bool },
    /// Make an empty node a replica.
    Replicate { node: usize, primary: usize },
}

/// The wanted shape of a cluster.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) primaries: usize,
    /// Of each primary.
    pub(super) replicas: usize,
}

impl Shape {
    /// Nodes with a part to play; those after them joined later and are left as they are.
    pub(super) fn nodes(self) -> usize {
        self.primaries * (1 + self.replicas)
    }
}

/// The steps that can be taken now, in order. None: wait, or all is done.
pub(super) fn next_steps(shape: Shape, nodes: &[&Live]) -> Vec<PlanStep> {
    let planner =
        Planner { shape, nodes, index: nodes.iter().enumerate().map(|(i, n)| (id(n), i)).collect() };
    let mut steps = planner.epochs();
    let take_overs = planner.take_overs();
    if take_overs.is_empty() {
        steps.extend(planner.claims());
        steps.extend(planner.departures());
    }
    steps.extend(take_overs);
    steps.extend(planner.introductions());
    steps.extend(planner.replications());
    steps
}

struct Planner<'a> {
    shape: Shape,
    nodes: &'a [&'a Live],
    index: HashMap<&'a str, usize>,
}

fn id(node: &Live) -> &str {
    &node.view.me.id
}

/// Whether `one` is shaking hands with `other`, whose true id it does not see yet.
fn greets(one: &Live, other: &Live) -> bool {
    one.view.others.iter().any(|peer| peer.is_handshake && peer.port == other.view.me.port)
}

impl Planner<'_> {
    fn epochs(&self) -> Vec<PlanStep> {
        let is_new =
            |node: &Live| node.view.others.is_empty() && node.view.me.epoch == 0 && node.is_primary();
        let new = self.nodes.iter().enumerate().filter(|(_, node)| is_new(node));
        new.map(|(node, _)| PlanStep::SetEpoch { node, epoch: node + 1 }).collect()
    }

    /// Replicas whose primary is none of ours and gone for good: it came back empty, under another id.
    fn take_overs(&self) -> Vec<PlanStep> {
        let mut taken = Vec::new();
        let mut steps = Vec::new();
        for (node, live) in self.nodes.iter().enumerate() {
            let Some(primary) = live.view.me.primary_id.as_deref() else { continue };
            let peer = live.view.other(primary);
            let is_gone =
                peer.is_none_or(|peer| peer.is_failing || peer.has_no_address || self.is_replaced(peer.port));
            if !self.index.contains_key(primary) && is_gone && !taken.contains(&primary) {
                taken.push(primary);
                steps.push(PlanStep::TakeOver { node });
            }
        }
        steps
    }

    fn is_replaced(&self, port: u16) -> bool {
        self.nodes.iter().any(|node| node.view.me.port == port)
    }

    fn departures(&self) -> Vec<PlanStep> {
        let mut steps = Vec::new();
        for (at, live) in self.nodes.iter().enumerate() {
            for peer in live.view.others.iter().filter(|peer| !peer.is_handshake) {
                let is_ours = self.index.contains_key(peer.id.as_str());
                if !is_ours && (peer.has_no_address || self.is_replaced(peer.port)) {
                    steps.push(PlanStep::Forget { at, id: peer.id.clone() });
                }
            }
        }
        steps
    }

    /// Slots that nobody claims for itself, each for the primary with the best title to it.
    fn claims(&self) -> Vec<PlanStep> {
        let missing = self.owned().complement();
        let mut parts: HashMap<usize, SlotSet> = HashMap::new();
        for slot in missing.iter() {
            if let Some(heir) = self.heir(slot) {
                parts.entry(heir).or_insert_with(SlotSet::new).insert(slot);
            }
        }
        let mut steps: Vec<PlanStep> =
            parts.into_iter().map(|(node, slots)| self.claim(node, slots)).collect();
        steps.sort_by_key(|step| if let PlanStep::Claim { node, .. } = step { *node } else { 0 });
        steps
    }

    fn claim(&self, node: usize, slots: SlotSet) -> PlanStep {
        let view = &self.nodes[node].view;
        let mut outdated = SlotSet::new();
        slots.iter().filter(|slot| view.owner(*slot).is_some()).for_each(|slot| outdated.insert(slot));
        PlanStep::Claim { node, slots, outdated, must_win: !view.others.is_empty() }
    }

    /// The slots that nodes claim for themselves; of nodes that are well and none of ours, those that others say they
    /// have.
    fn owned(&self) -> SlotSet {
        let mut owned = SlotSet::new();
        for live in self.nodes {
            owned.union(&live.view.me.slots);
            for peer in &live.view.others {
                let is_foreign = !self.index.contains_key(peer.id.as_str());
                if is_foreign && peer.is_connected && !peer.is_failing && !self.is_replaced(peer.port) {
                    owned.union(&peer.slots);
                }
            }
        }
        owned
    }

    fn heir(&self, slot: u16) -> Option<usize> {
        let is_primary = |node: &usize| self.nodes[*node].is_primary();
        let believed =
            self.nodes.iter().filter_map(|node| node.view.owner(slot)).find_map(|id| self.index.get(id));
        let even = even_owner(slot, self.shape.primaries);
        let fewest = || {
            let primaries = (0..self.shape.nodes()).filter(is_primary);
            primaries
                .filter(|node| self.has_slots(*node))
                .min_by_key(|node| self.nodes[*node].view.me.slots.len())
        };
        believed.copied().filter(is_primary).or(Some(even).filter(is_primary)).or_else(fewest)
    }

    fn has_slots(&self, node: usize) -> bool {
        !self.nodes[node].view.me.slots.is_empty()
    }

    /// Introductions of one node to another that must be made; also again, to one that knows the first with outdated
    /// slots or role: news travel with an introduction at once, and otherwise within some seconds.
    fn introductions(&self) -> Vec<PlanStep> {
        let mut steps = Vec::new();
        for (at, one) in self.nodes.iter().enumerate() {
            for (whom, other) in self.nodes.iter().enumerate().filter(|(whom, _)| *whom != at) {
                let is_due = match (other.view.other(id(one)), one.view.other(id(other))) {
                    (Some(peer), Some(_)) => !peer.agrees_with(&one.view.me),
                    // One introduction serves both.
                    _ => at < whom && !greets(other, one),
                };
                if is_due && !greets(one, other) {
                    steps.push(PlanStep::Meet { at, whom });
                }
            }
        }
        steps
    }

    /// Empty primaries beyond the wanted number, each for the primary that has fewest replicas.
    fn replications(&self) -> Vec<PlanStep> {
        let owners: Vec<usize> = (0..self.nodes.len()).filter(|node| self.has_slots(*node)).collect();
        if self.shape.replicas == 0
            || owners.len() < self.shape.primaries
            || self.owned().len() < usize::from(SLOTS)
        {
            return Vec::new();
        }
        let mut followers: HashMap<usize, usize> = HashMap::new();
        for live in self.nodes {
            let primary = live.view.me.primary_id.as_deref().and_then(|primary| self.index.get(primary));
            primary.into_iter().for_each(|primary| *followers.entry(*primary).or_default() += 1);
        }
        let idle = |node: &usize| self.nodes[*node].is_primary() && !self.has_slots(*node);
        let mut steps = Vec::new();
        for node in (0..self.shape.nodes()).filter(idle) {
            let fewest =
                owners.iter().copied().min_by_key(|owner| followers.get(owner).copied().unwrap_or(0));
            let Some(primary) = fewest else { break };
            *followers.entry(primary).or_default() += 1;
            // It is introduced first; the next look at the facts comes back to this.
            if self.nodes[node].view.other(id(self.nodes[primary])).is_some() {
                steps.push(PlanStep::Replicate { node, primary });
            }
        }
        steps
    }
}

#[cfg(test)]
mod tests;
