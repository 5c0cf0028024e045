//! The router: owns the slot map and the nodes, and is what everybody above holds.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::{ArcSwap, Guard};
use futures::future::join_all;
use tokio::sync::Notify;

use super::batch::{Answer, Batch, Request, kind_of};
use super::clock::{self, ClockOffset, ToldTime};
use super::epoch::Epoch;
use super::facts::{Finding, ListpackLimits, Severity, judge_clocks};
use super::library::Library;
use super::node::{Node, SharedByNodes};
use super::program::ServerProgram;
use super::refresh;
use super::seed::Seed;
use super::settings::{Replicas, RouterSettings};
use super::tenure::Tenures;
use super::told_clocks::ToldClocks;
use super::topology::Topology;
use super::view::{KnownServers, Replica};
use super::wire::{Command, Dialer, NodeAddr, Reply};
use crate::keys;
use tideline_model::error::{CallFuture, Error, Result};

/// A client of one Redis Cluster. Copies are cheap and share everything.
///
/// It sends batches of commands, one pipeline per node at the same time, and puts the replies back in order. What
/// a failover, a moving slot or a broken connection leaves unfinished it repeats, each command for itself, until
/// the deadline. It heals by itself; nobody needs to restart anything.
#[derive(Debug, Clone)]
pub struct Router {
    pub(crate) inner: Arc<SharedRouter>,
}

#[derive(Debug)]
pub(crate) struct SharedRouter {
    pub(crate) common: Arc<SharedByNodes>,
    pub(crate) prefix: String,
    pub(crate) seeds: Vec<NodeAddr>,
    pub(crate) topology: ArcSwap<Topology>,
    /// What looks at the slot map have told so far.
    pub(crate) known: Mutex<KnownServers>,
    /// Who serves under which claim, and who restarted in place.
    pub(crate) tenures: Mutex<Tenures>,
    /// Every node that somebody has asked for, by address; a snapshot's nodes are among them.
    pub(crate) nodes: Mutex<HashMap<NodeAddr, Arc<Node>>>,
    pub(crate) health: ArcSwap<PrimaryFacts>,
    /// What fences do without replicas, if the data's owner has said so.
    pub(crate) replicas: Mutex<Option<Replicas>>,
    /// The median of the primaries' clocks.
    pub(crate) time: ClockOffset,
    pub(crate) told_time: ToldTime,
    /// Which clocks are off, as the log says.
    pub(crate) told_clocks: Mutex<ToldClocks>,
    pub(crate) refresh: Arc<Notify>,
}

/// Facts read from the primaries at start-up and at the last change of topology.
#[derive(Debug, Clone, Default)]
pub(crate) struct PrimaryFacts {
    pub(crate) limits: ListpackLimits,
    pub(crate) findings: Vec<Finding>,
    pub(crate) programs: Vec<(NodeAddr, ServerProgram)>,
}

impl Router {
    /// Connects to the cluster that the seeds belong to: `redis://` or `rediss://`,
    /// `[user[:password]@]host[:port]`. One living seed is enough.
    ///
    /// Fails with what to do if no seed answers, if it is no cluster, if slots are unassigned everywhere, or if a
    /// primary's settings would lose data. Must be called inside a tokio runtime: the slot map is kept by a loop,
    /// which ends with the last copy of the router.
    pub fn connect<'a, S: Clone + Into<Seed>>(
        seeds: &[S],
        prefix: &'a str,
        settings: RouterSettings,
        library: Option<Library>,
    ) -> CallFuture<'a, Self> {
        let seeds: Vec<Seed> = seeds.iter().cloned().map(Into::into).collect();
        Self::connect_to(seeds, prefix, settings, library)
    }

    fn connect_to(
        seeds: Vec<Seed>,
        prefix: &str,
        settings: RouterSettings,
        library: Option<Library>,
    ) -> CallFuture<'_, Self> {
        Box::pin(async move {
            settings.check()?;
            keys::check_prefix(prefix)?;
            let (dialer, seeds) = Dialer::from_urls(
                &seeds,
                &settings.tls,
                settings.connect_timeout,
                settings.response_timeout,
            )?;
            let inner = Arc::new(SharedRouter {
                common: Arc::new(SharedByNodes { dialer, settings, library }),
                prefix: prefix.into(),
                seeds,
                topology: ArcSwap::from_pointee(Topology::new(Vec::new())),
                known: Mutex::default(),
                tenures: Mutex::default(),
                nodes: Mutex::default(),
                health: ArcSwap::default(),
                replicas: Mutex::default(),
                time: ClockOffset::default(),
                told_time: ToldTime::default(),
                told_clocks: Mutex::default(),
                refresh: Arc::default(),
            });
            refresh::first(&inner).await?;
            let router = Self { inner };
            router.check_primaries().await?;
            tokio::spawn(refresh::keep(Arc::downgrade(&router.inner), router.inner.refresh.clone()));
            Ok(router)
        })
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
    #[doc(hidden)]
    pub async fn ask_node(&self, addr: &NodeAddr, command: Command) -> Result<Reply> {
        let gone = || Error::unavailable(format!("{addr} is no node of the cluster any more"));
        let asked = self.node(addr).ok_or_else(gone)?.ask([command]).await;
        let replies = asked.map_err(|e| Error::unavailable(format!("{addr}: {e}")))?;
        let reply = replies.into_iter().next().ok_or_else(|| Error::internal("no reply"))?;
        match reply.error() {
            Some((code, rest)) => Err(Error::new(
                kind_of(code, rest),
                format!("the server {addr} answered with the error {code} {rest}"),
            )),
            None => Ok(reply),
        }
    }

    /// Lists the programs that primaries run, as far as they told at start-up and at the last change of the slot map.
    pub fn programs(&self) -> Vec<(NodeAddr, ServerProgram)> {
        self.inner.health.load().programs.clone()
    }

    /// The primaries, as the slot map has them now.
    pub fn primaries(&self) -> Vec<NodeAddr> {
        self.topology().members.iter().map(|m| m.node.addr.clone()).collect()
    }

    /// Tells which node serves `slot`, as far as is known.
    pub fn owner(&self, slot: u16) -> Option<NodeAddr> {
        self.topology().owner(slot).map(|n| n.addr.clone())
    }

    /// A small number that slots of one node have in common, as far as is known.
    #[doc(hidden)]
    pub fn node_number(&self, slot: u16) -> u16 {
        self.topology().owner_index(slot)
    }

    /// The numbers of the nodes of these slots, each once, without those that are silent.
    #[doc(hidden)]
    pub fn nodes_of(&self, slots: impl Iterator<Item = u16>) -> Vec<u16> {
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
        let is_silent = |node: &u16| {
            topology.members.get(usize::from(*node)).is_some_and(|m| m.node.presence.is_silent())
        };
        nodes.retain(|node| !is_silent(node));
        nodes
    }

    /// Whether the node with that number is silent.
    #[doc(hidden)]
    pub fn is_silent(&self, number: u16) -> bool {
        self.topology().members.get(usize::from(number)).is_some_and(|m| m.node.presence.is_silent())
    }

    /// Whether it makes no sense to send work to a slot now: nobody serves it, or who does is silent or refuses to
    /// work.
    #[doc(hidden)]
    pub fn is_away(&self, slot: u16) -> bool {
        self.topology().owner(slot).is_none_or(|node| node.presence.is_away())
    }

    /// Whether nothing that must last at a slot can be finished now: its server is away, or can't say what lasts, or
    /// the slot is [half-moved](Self::is_half_moved).
    #[doc(hidden)]
    pub fn is_held_up(&self, slot: u16) -> bool {
        let is_held_up = |node: &Arc<Node>| {
            let presence = &node.presence;
            presence.is_away() || presence.cannot_vouch() || presence.is_half_moved(slot)
        };
        self.topology().owner(slot).is_none_or(is_held_up)
    }

    /// Whether a slot moves so slowly that work beside callers has given up there: keys that it needs together are on
    /// both sides. What needs a single one is done all the same.
    #[doc(hidden)]
    pub fn is_half_moved(&self, slot: u16) -> bool {
        self.topology().owner(slot).is_some_and(|node| node.presence.is_half_moved(slot))
    }

    /// The epoch of that name: its server's, if it is still in that one. Else one that is over.
    #[doc(hidden)]
    pub fn epoch_named(&self, name: &str) -> Epoch {
        let addr = name.split_once('/').and_then(|(addr, _)| NodeAddr::parse(addr));
        let addr = addr.unwrap_or_else(|| NodeAddr::new("", 0));
        let now = self.node(&addr).and_then(|node| node.epoch());
        // H114: a fence counts if that server is in the same epoch still.
        now.filter(|now| now.name() == name).unwrap_or_else(|| Epoch::over(addr))
    }

    /// Asks those that are silent whether they are back.
    #[doc(hidden)]
    pub fn probe_silent(&self) {
        for member in self.topology().members.iter().filter(|m| m.node.presence.is_silent()) {
            let node = member.node.clone();
            tokio::spawn(async move { node.probe().await });
        }
    }

    /// Up to which sizes the primaries keep sets and lists compact.
    pub fn limits(&self) -> ListpackLimits {
        self.inner.health.load().limits
    }

    /// Refuses, with [`Replicas::Required`], what is to be fenced where a server is known to have no replica, so that
    /// nothing is written of which nobody can say whether it lasts. One that has failed over a moment ago may have
    /// none, too: this is for the beginning of a call.
    #[doc(hidden)]
    pub fn expect_replicas(&self, slots: impl IntoIterator<Item = u16>) -> Result<()> {
        if self.replicas() != Replicas::Required {
            return Ok(());
        }
        let topology = self.topology();
        let has_none = |slot: u16| {
            let member = topology.member(&topology.owner(slot)?.addr)?;
            member.replicas.as_ref().is_some_and(Vec::is_empty).then_some(&member.node.addr)
        };
        let Some(node) = slots.into_iter().find_map(has_none) else { return Ok(()) };
        // One may have come.
        self.suspect();
        Err(Error::unavailable(format!(
            "{node} has no replica, and the setting `replicas = required` says that nothing is begun without one: give \
             it a replica, and try again"
        )))
    }

    /// Lists what does not fit at the servers, who of them is not there to work, and clocks that are off, with what to
    /// do about it; and what has happened to servers since this router began.
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = self.inner.health.load().findings.clone();
        findings.extend(self.topology().members.iter().filter_map(|member| member.node.absence()));
        if let Some(median) = self.inner.time.get() {
            findings.extend(judge_clocks(median, &self.inner.clocks(), clock::wall_offset_us()));
        }
        findings.extend(self.inner.tenures.lock().unwrap_or_else(PoisonError::into_inner).findings());
        findings
    }

    /// Milliseconds since 1970 by the median of the primaries' clocks, as they were last looked at
    /// ([`refresh_period`](RouterSettings::refresh_period)), and our monotonic clock since: no step of one server's
    /// clock, or of ours, moves it, and it goes back only when clocks were set by more than a second. Three primaries
    /// are needed for that; two and our own clock do as well.
    ///
    /// A machine that was suspended as a whole, whose monotonic clock stood still, is behind until the next look. One
    /// whose process was stopped is not.
    pub fn now_ms(&self) -> u64 {
        let us = clock::steady_us() + self.inner.time.get().unwrap_or_else(clock::wall_offset_us);
        u64::try_from(self.inner.told_time.next(us) / 1_000).unwrap_or(0)
    }

    /// The router's settings.
    pub fn settings(&self) -> &RouterSettings {
        &self.inner.common.settings
    }

    /// Tells what fences do without replicas: what the tenant has decided, else what the settings say.
    #[doc(hidden)]
    pub fn replicas(&self) -> Replicas {
        let decided = *self.inner.replicas.lock().unwrap_or_else(PoisonError::into_inner);
        decided.unwrap_or(self.settings().replicas)
    }

    /// From now on fences of this router and its copies go by this.
    #[doc(hidden)]
    pub fn learn_replicas(&self, decided: Replicas) {
        *self.inner.replicas.lock().unwrap_or_else(PoisonError::into_inner) = Some(decided);
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

    /// Some slots of that node, and its replicas, if they are known.
    pub(crate) fn fence_targets(&self, node: &Node, most: usize) -> (Vec<u16>, Option<Vec<Replica>>) {
        let topology = self.topology();
        let replicas = topology.member(&node.addr).and_then(|m| m.replicas.clone());
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

impl SharedRouter {
    pub(crate) fn nodes(&self) -> MutexGuard<'_, HashMap<NodeAddr, Arc<Node>>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The node at that address: one for all while it is part of the map.
    pub(crate) fn node_at(&self, addr: &NodeAddr) -> Arc<Node> {
        let new = || Arc::new(Node::new(addr.clone(), self.common.clone()));
        self.nodes().entry(addr.clone()).or_insert_with(new).clone()
    }

    /// The primaries' clocks, as far as they are known.
    pub(crate) fn clocks(&self) -> Vec<(NodeAddr, i64)> {
        let topology = self.topology.load();
        let nodes = topology.members.iter().map(|member| &member.node);
        nodes.filter_map(|node| Some((node.addr.clone(), node.clock_offset_us()?))).collect()
    }

    /// A primary's clock was looked at: what time it is now.
    pub(crate) fn tell_time(&self) {
        let topology = self.topology.load();
        let offsets = topology.members.iter().filter_map(|member| member.node.clock_offset_us()).collect();
        if let Some(median) = clock::median(offsets, clock::wall_offset_us()) {
            self.time.set(median);
        }
    }
}
