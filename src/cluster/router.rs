//! The router: owns the slot map and the nodes, and is what everybody above holds.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::{ArcSwap, Guard};
use futures::future::join_all;
use tokio::sync::Notify;

use super::batch::{Answer, Batch, Request, kind_of};
use super::facts::{Finding, ListpackLimits, Severity};
use super::library::Library;
use super::node::{Common, Node, unix_us};
use super::refresh;
use super::settings::RouterSettings;
use super::topology::Topology;
use super::wire::{Command, Dialer, NodeAddr, Reply};
use crate::error::{Error, Result};
use crate::keys;

/// A client of one Redis Cluster. Copies are cheap and share everything.
///
/// It sends batches of commands, one pipeline per node at the same time, and puts the replies back in order. What
/// a failover, a moving slot or a broken connection leaves unfinished it repeats, each command for itself, until
/// the deadline. It heals by itself; nobody needs to restart anything.
#[derive(Debug, Clone)]
pub struct Router {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) common: Arc<Common>,
    pub(crate) prefix: String,
    pub(crate) seeds: Vec<NodeAddr>,
    pub(crate) topology: ArcSwap<Topology>,
    /// Every node that somebody has asked for, by address; a snapshot's nodes are among them.
    pub(crate) nodes: Mutex<HashMap<NodeAddr, Arc<Node>>>,
    pub(crate) health: ArcSwap<Health>,
    pub(crate) refresh: Arc<Notify>,
    /// What answers in the simulation, where there are no servers.
    #[cfg(test)]
    pub(crate) simulated: Option<Arc<dyn super::simulated::Simulated>>,
}

/// What was read from the primaries at start-up and at the last change of topology.
#[derive(Debug, Clone, Default)]
pub(crate) struct Health {
    pub(crate) limits: ListpackLimits,
    pub(crate) findings: Vec<Finding>,
}

impl Router {
    /// Connects to the cluster that the seeds belong to: `redis://` or `rediss://`,
    /// `[user[:password]@]host[:port]`. One living seed is enough.
    ///
    /// Fails with what to do if no seed answers, if it is no cluster, if slots are unassigned everywhere, or if a
    /// primary's settings would lose data. Must be called inside a tokio runtime: the slot map is kept by a task,
    /// which ends with the last copy of the router.
    pub async fn connect(
        seeds: &[String],
        prefix: &str,
        settings: RouterSettings,
        library: Option<Library>,
    ) -> Result<Self> {
        settings.check()?;
        keys::check_prefix(prefix)?;
        let (dialer, seeds) =
            Dialer::from_urls(seeds, &settings.tls, settings.connect_timeout, settings.response_timeout)?;
        let inner = Arc::new(Inner {
            common: Arc::new(Common { dialer, settings, library }),
            prefix: prefix.into(),
            seeds,
            topology: ArcSwap::from_pointee(Topology::new(Vec::new())),
            nodes: Mutex::default(),
            health: ArcSwap::default(),
            refresh: Arc::default(),
            #[cfg(test)]
            simulated: None,
        });
        refresh::first(&inner).await?;
        let router = Self { inner };
        router.check_primaries().await?;
        tokio::spawn(refresh::keep(Arc::downgrade(&router.inner), router.inner.refresh.clone()));
        Ok(router)
    }

    async fn check_primaries(&self) -> Result<()> {
        refresh::check_primaries(&self.inner).await?;
        let health = self.inner.health.load();
        let refused: Vec<String> = health
            .findings
            .iter()
            .filter(|f| f.severity == Severity::Refusal)
            .map(ToString::to_string)
            .collect();
        if refused.is_empty() { Ok(()) } else { Err(Error::misconfigured(refused.join("; "))) }
    }

    /// Sends one request and gives back the server's reply, or its error as ours.
    pub async fn call(&self, request: Request) -> Result<Reply> {
        self.ask(request).await?.ok()
    }

    /// Sends one request and gives back the answer, which may be the server's error.
    pub async fn ask(&self, request: Request) -> Result<Answer> {
        let answers = self.run(Batch { requests: vec![request] }).await;
        answers.into_iter().next().unwrap_or_else(|| Err(Error::internal("a request without an answer")))
    }

    /// Sends a command to every primary at once: for questions about servers, not about keys.
    pub async fn ask_primaries(&self, command: &Command) -> Vec<(NodeAddr, Result<Reply>)> {
        let topology = self.inner.topology.load_full();
        let asked = topology.members.iter().map(|member| async {
            let replies = member.node.ask([command.clone()]).await;
            let reply = replies.map_err(|e| Error::unavailable(format!("{}: {e}", member.node.addr)));
            let first = reply.and_then(|r| r.into_iter().next().ok_or_else(|| Error::internal("no reply")));
            (member.node.addr.clone(), first)
        });
        join_all(asked).await
    }

    /// Sends a command to one node.
    pub(crate) async fn ask_node(&self, addr: &NodeAddr, command: Command) -> Result<Reply> {
        let gone = || Error::unavailable(format!("{addr} is no node of the cluster any more"));
        let asked = self.node(addr).ok_or_else(gone)?.ask([command]).await;
        let replies = asked.map_err(|e| Error::unavailable(format!("{addr}: {e}")))?;
        let reply = replies.into_iter().next().ok_or_else(|| Error::internal("no reply"))?;
        match reply.error() {
            Some((code, rest)) => {
                Err(Error::new(kind_of(code, rest), format!("{addr} answered {code} {rest}")))
            }
            None => Ok(reply),
        }
    }

    /// The primaries, as the slot map has them now.
    pub fn primaries(&self) -> Vec<NodeAddr> {
        self.topology().members.iter().map(|m| m.node.addr.clone()).collect()
    }

    /// Which node serves `slot`, as far as is known.
    pub fn owner(&self, slot: u16) -> Option<NodeAddr> {
        self.topology().owner(slot).map(|n| n.addr.clone())
    }

    /// A small number that slots of one node have in common, as far as is known.
    pub(crate) fn node_number(&self, slot: u16) -> u16 {
        self.topology().owner_index(slot)
    }

    /// The numbers of the nodes of these slots, each once.
    pub(crate) fn nodes_of(&self, slots: impl Iterator<Item = u16>) -> Vec<u16> {
        let topology = self.topology();
        let mut nodes = Vec::new();
        for slot in slots {
            let node = topology.owner_index(slot);
            if !nodes.contains(&node) {
                nodes.push(node);
                if nodes.len() == topology.members.len() {
                    break;
                }
            }
        }
        nodes
    }

    /// Up to which sizes the primaries keep sets and lists compact.
    pub fn limits(&self) -> ListpackLimits {
        self.inner.health.load().limits
    }

    /// What does not fit at the primaries, with what to do about it.
    pub fn findings(&self) -> Vec<Finding> {
        self.inner.health.load().findings.clone()
    }

    /// Milliseconds since 1970 by the median of the primaries' clocks.
    pub fn now_ms(&self) -> u64 {
        #[cfg(test)]
        if let Some(simulated) = &self.inner.simulated {
            return simulated.now_ms();
        }
        let us = unix_us() + self.median_offset_us().unwrap_or(0);
        u64::try_from(us / 1_000).unwrap_or(0)
    }

    /// How far the median of the primaries' clocks is from ours.
    pub(crate) fn median_offset_us(&self) -> Option<i64> {
        self.topology().median_offset_us()
    }

    /// Its settings.
    pub fn settings(&self) -> &RouterSettings {
        &self.inner.common.settings
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.inner.prefix
    }

    pub(crate) fn topology(&self) -> Guard<Arc<Topology>> {
        self.inner.topology.load()
    }

    pub(crate) fn node(&self, addr: &NodeAddr) -> Option<Arc<Node>> {
        self.inner.nodes().get(addr).cloned()
    }

    /// Some slots of that node, and how many replicas it has, if that is known.
    pub(crate) fn fence_targets(&self, node: &Node, most: usize) -> (Vec<u16>, Option<usize>) {
        let topology = self.topology();
        let replicas = topology.member(&node.addr).and_then(|m| m.replicas.as_ref()).map(Vec::len);
        (topology.some_slots(&node.addr, most), replicas)
    }

    /// Something hints that the slot map is old: have it looked at soon.
    pub(crate) fn suspect(&self) {
        self.inner.refresh.notify_one();
    }

    /// A node has said that it serves `slot` no more, but `addr` does.
    pub(crate) fn learn(&self, slot: u16, addr: &NodeAddr) {
        let node = self.inner.node_at(addr);
        let known = self.topology().owner(slot).is_some_and(|n| n.addr == *addr);
        if !known {
            self.inner.topology.rcu(|t| t.with_slot_at(slot, node.clone()));
        }
        self.suspect();
    }
}

impl Inner {
    pub(crate) fn nodes(&self) -> MutexGuard<'_, HashMap<NodeAddr, Arc<Node>>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The node at that address: one for all while it is part of the map.
    pub(crate) fn node_at(&self, addr: &NodeAddr) -> Arc<Node> {
        let new = || Arc::new(Node::new(addr.clone(), self.common.clone()));
        self.nodes().entry(addr.clone()).or_insert_with(new).clone()
    }
}

impl Topology {
    pub(crate) fn median_offset_us(&self) -> Option<i64> {
        let mut offsets: Vec<i64> = self.members.iter().filter_map(|m| m.node.clock_offset_us()).collect();
        offsets.sort_unstable();
        offsets.get(offsets.len() / 2).copied()
    }
}
