//! The slot map: who serves which slot, as one immutable snapshot. A request uses one snapshot from start to end.

use std::sync::Arc;

use super::node::Node;
use super::view::Replica;
use super::wire::NodeAddr;
use tideline_model::bucket::SLOTS;

const NOBODY: u16 = u16::MAX;

#[derive(Debug)]
pub(crate) struct Topology {
    /// Index into `members` for every slot.
    owners: Box<[u16]>,
    pub(crate) members: Vec<ReplicatedPrimary>,
}

/// A primary with the replicas that the cluster doesn't believe dead.
#[derive(Debug, Clone)]
pub(crate) struct ReplicatedPrimary {
    pub(crate) node: Arc<Node>,
    /// `None`: learned from a redirect, not from a look at the map; nobody may take that for "none".
    pub(crate) replicas: Option<Vec<Replica>>,
    /// By which it claims its slots; `None`: as above.
    pub(crate) config_epoch: Option<u64>,
    pub(crate) slots: Vec<(u16, u16)>,
}

impl Topology {
    pub(crate) fn new(members: Vec<ReplicatedPrimary>) -> Self {
        let mut owners = vec![NOBODY; usize::from(SLOTS)].into_boxed_slice();
        for (index, member) in (0..NOBODY).zip(&members) {
            for (first, last) in &member.slots {
                owners[usize::from(*first)..=usize::from(*last)].fill(index);
            }
        }
        Self { owners, members }
    }

    pub(crate) fn owner(&self, slot: u16) -> Option<&Arc<Node>> {
        Some(&self.members.get(usize::from(self.owner_index(slot)))?.node)
    }

    /// A small number that is the same for slots of the same node.
    pub(crate) fn owner_index(&self, slot: u16) -> u16 {
        self.owners[usize::from(slot)]
    }

    pub(crate) fn member(&self, addr: &NodeAddr) -> Option<&ReplicatedPrimary> {
        self.members.iter().find(|m| m.node.addr == *addr)
    }

    /// The first slots of that node.
    pub(crate) fn some_slots(&self, addr: &NodeAddr, most: usize) -> Vec<u16> {
        let Some(index) = self.members.iter().position(|m| m.node.addr == *addr) else { return Vec::new() };
        (0..SLOTS).filter(|s| usize::from(self.owner_index(*s)) == index).take(most).collect()
    }

    /// The topology in which `slot` belongs to `node`, as a redirect told.
    pub(crate) fn with_slot_at(&self, slot: u16, node: Arc<Node>) -> Self {
        let mut members = self.members.clone();
        let index = members.iter().position(|m| m.node.addr == node.addr).unwrap_or_else(|| {
            members.push(ReplicatedPrimary { node, replicas: None, config_epoch: None, slots: Vec::new() });
            members.len() - 1
        });
        let mut owners = self.owners.clone();
        owners[usize::from(slot)] = u16::try_from(index).unwrap_or(NOBODY);
        Self { owners, members }
    }

    /// Slots that nobody serves.
    pub(crate) fn unserved(&self) -> usize {
        self.owners.iter().filter(|o| **o == NOBODY).count()
    }
}
