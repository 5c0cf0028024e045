//! The fence: before the old way is taken away, what replaces it must be on a replica.
//!
//! A fence covers replies: those that a server gave under one epoch, before the fence began. It writes a tiny key
//! to that server, waits until all its replicas have it (and so everything before it), and looks whether the
//! epoch is still the same. One round serves all who wait for the same server.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::join_all;
use tokio::sync::Mutex;

use super::batch::Answer;
use super::epoch::Epoch;
use super::facts::{AttachedServers, Info};
use super::meters;
use super::node::Node;
use super::presence::is_impatient;
use super::router::Router;
use super::settings::Replicas;
use super::verdict::{Verdict, judge};
use super::view::{Replica, all_addrs};
use super::wire::{Command, Reply};
use crate::keys;
use tideline_model::error::{CallFuture, Error, ErrorKind, Result};

/// Slots of a node that a round tries, should the first ones be moving away.
const SLOTS_TRIED: usize = 4;
/// A fence's key goes by itself when nobody fences any more.
const KEY_TTL_S: u32 = 7 * 24 * 60 * 60;

/// Pauses between two questions to a replica how far it has come.
const ASKED_AGAIN: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));

/// The servers that a step has touched, each with the epoch it was in: what must be fenced before the next step.
#[derive(Debug, Clone, Default)]
pub struct TouchedServers(Vec<Epoch>);

impl TouchedServers {
    /// Begins a list of servers that were touched, empty.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the server that gave this answer.
    pub fn add(&mut self, answer: &Answer) {
        self.add_epoch(&answer.epoch);
    }

    /// Adds a server by its epoch.
    pub fn add_epoch(&mut self, epoch: &Epoch) {
        if !self.0.contains(epoch) {
            self.0.push(epoch.clone());
        }
    }

    /// The epochs of these servers.
    #[doc(hidden)]
    pub fn epochs(&self) -> &[Epoch] {
        &self.0
    }

    /// Adds all that another step has touched.
    pub fn extend(&mut self, other: &TouchedServers) {
        other.0.iter().for_each(|e| self.add_epoch(e));
    }
}

/// The outcome of a fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FenceOutcome {
    /// All replicas of these servers have what these acknowledged, and each server has at least one.
    Replicated,
    /// The same, but that some server had no replica; the setting [`Replicas`] says to go on without.
    WithoutReplicas,
}

/// The proof of a round: of which life of the server, and how much.
type FenceProof = (Epoch, FenceOutcome);

/// The rounds of one node: at most one runs, and everybody who came before it began shares its outcome.
#[derive(Debug, Default)]
pub(crate) struct FenceRound {
    started: AtomicU64,
    finished: Mutex<Option<(u64, Result<FenceProof>)>>,
}

impl FenceRound {
    async fn join(&self, round: impl AsyncFnOnce() -> Result<FenceProof>) -> Result<FenceProof> {
        // A round with a higher number than this begins after now, so it covers what the caller has seen.
        let before = self.started.load(Ordering::SeqCst);
        let mut finished = self.finished.lock().await;
        if let Some((number, outcome)) = &*finished
            && *number > before
        {
            return outcome.clone();
        }
        let number = self.started.fetch_add(1, Ordering::SeqCst) + 1;
        let outcome = round().await;
        *finished = Some((number, outcome.clone()));
        outcome
    }
}

impl Router {
    /// Returns when everything that `touched` servers acknowledged is on all their replicas; where one has none, what
    /// the setting [`Replicas`] says, and tells so.
    ///
    /// [`ErrorKind::Conflict`]: a server failed over or restarted since; run the step again, then fence again.
    /// [`ErrorKind::Unavailable`]: its replicas did not answer in time.
    pub fn fence<'a>(&'a self, touched: &'a TouchedServers) -> CallFuture<'a, FenceOutcome> {
        Box::pin(async move {
            if self.replicas() == Replicas::Absent {
                return Ok(FenceOutcome::WithoutReplicas);
            }
            let _waiting = meters::FenceWaiting::begin();
            let rounds = touched.0.iter().map(|epoch| self.fence_one(epoch));
            let outcomes: Vec<_> = join_all(rounds).await.into_iter().collect::<Result<_>>()?;
            let is_replicated = outcomes.iter().all(|outcome| *outcome == FenceOutcome::Replicated);
            Ok(if is_replicated { FenceOutcome::Replicated } else { FenceOutcome::WithoutReplicas })
        })
    }

    async fn fence_one(&self, epoch: &Epoch) -> Result<FenceOutcome> {
        let Some(node) = self.node(epoch.node()) else {
            return Err(conflict(epoch, "is no longer part of the cluster"));
        };
        if is_impatient() {
            self.expect_a_fence(&node, epoch)?;
        }
        let (now, outcome) = node.fence.join(async || self.fence_round(&node).await).await?;
        if now != *epoch {
            meters::fence_round("epoch_changed");
            return Err(conflict(epoch, "restarted or failed over since it acknowledged the step"));
        }
        Ok(outcome)
    }

    /// Refuses a fence that would only be waited for: somebody else finds out when it no longer fails.
    fn expect_a_fence(&self, node: &Node, epoch: &Epoch) -> Result<()> {
        let (is_silent, cannot_vouch) = (node.presence.is_silent(), node.presence.cannot_vouch());
        expect_a_fence(epoch, (is_silent, cannot_vouch), || !self.fence_targets(node, 1).0.is_empty())
    }

    /// Tries once more to fence those whose last fence failed: nobody impatient does.
    #[doc(hidden)]
    pub fn fence_again_who_could_not(&self) {
        for member in self.topology().members.iter().filter(|m| m.node.presence.cannot_vouch()) {
            let (router, node) = (self.clone(), member.node.clone());
            tokio::spawn(async move {
                // Its outcome is noted; whoever waits for one shares it.
                drop(node.fence.join(async || router.fence_round(&node).await).await);
            });
        }
    }

    async fn fence_round(&self, node: &Node) -> Result<FenceProof> {
        let fenced = self.fence_write(node).await;
        node.presence.note_fence(&fenced);
        meters::fence_round(match &fenced {
            Ok((_, FenceOutcome::Replicated)) => "replicated",
            Ok((_, FenceOutcome::WithoutReplicas)) => "without_replicas",
            Err(_) => "failed",
        });
        fenced
    }

    /// Writes and waits; also tells whether there was a replica to wait for.
    async fn fence_write(&self, node: &Node) -> Result<FenceProof> {
        let settings = self.settings();
        let (slots, replicas) = self.fence_targets(node, SLOTS_TRIED);
        if let (true, Some(epoch)) = (slots.is_empty(), node.epoch()) {
            // Deposed, most likely: what it said is not where its slots are now, however often one asks.
            return Err(conflict(&epoch, "serves no slot any more"));
        }
        let unavailable = |why: String| unavailable(node, &why);
        let Some(replicas) = replicas else {
            self.suspect();
            return Err(unavailable("it is new, its replicas are not known yet".into()));
        };
        if replicas.is_empty() && self.replicas() == Replicas::Required {
            self.suspect();
            return Err(unavailable(
                "it has no replica, and the tenant's setting `replicas = required` says to hold".into(),
            ));
        }
        let (mut has_moved, mut wanted, mut slots) = (false, replicas.len(), slots.into_iter());
        let mut at = slots.next();
        while let Some(slot) = at {
            let replies = self.fence_round_trip(node, slot, wanted).await?;
            let [_, written, acked, info] = replies.as_slice() else {
                return Err(Error::internal("a pipeline of four commands gave another number of replies"));
            };
            match judge(written, &node.addr) {
                Verdict::Done if written.int().is_ok_and(|n| n == 1) => {}
                Verdict::Done => return Err(unavailable(format!("its write was answered with {written:?}"))),
                Verdict::Moved(slot, to) => {
                    self.learn(slot, &to);
                    (has_moved, at) = (true, slots.next());
                    continue;
                }
                Verdict::Ask(_) => {
                    at = slots.next();
                    continue;
                }
                Verdict::Wait(cause) => {
                    self.suspect();
                    return Err(unavailable(cause.label().into()));
                }
            }
            let acked = acked.count()?;
            if acked < wanted as u64 {
                // It may have been replaced, and be cut off.
                self.suspect();
                let waited = settings.fence_timeout.as_millis();
                return Err(unavailable(format!("{acked} of {wanted} replicas answered within {waited} ms")));
            }
            let (info, epoch) = node.observe(info)?;
            if !info.is_primary {
                return Err(conflict(&epoch, "is no longer a primary"));
            }
            let due = self.due(node, &info.attached, acked).await?;
            if acked >= due as u64 {
                self.are_all_there(node, &replicas, &info).await?;
                let outcome = match replicas.is_empty() {
                    false => FenceOutcome::Replicated,
                    true => FenceOutcome::WithoutReplicas,
                };
                return Ok((epoch, outcome));
            }
            // One that came back since our look at the map: it may be promoted before we have looked again.
            self.suspect();
            wanted = due;
        }
        self.suspect();
        match node.epoch().filter(|_| has_moved) {
            Some(epoch) => Err(conflict(&epoch, "has handed its slots over")),
            None => Err(unavailable("found no slot there that is not moving".into())),
        }
    }

    /// The number of servers that must have answered, by what the node itself says: those that get all changes, and
    /// nodes of the cluster that load a snapshot. Others load one for a migration, or another data centre: nobody will
    /// promote them.
    async fn due(&self, node: &Node, attached: &AttachedServers, acked: u64) -> Result<usize> {
        let AttachedServers { online, syncing } = attached;
        if acked >= (online.len() + syncing.len()) as u64 {
            return Ok(online.len());
        }
        let told = node.ask([Command::new("CLUSTER").arg("NODES")]).await;
        let told = told.map_err(|e| unavailable(node, &e))?;
        let [nodes] = told.as_slice() else {
            return Err(Error::internal("one command gave another number of replies"));
        };
        let nodes = all_addrs(nodes.text()?, &node.addr);
        Ok(online.len() + syncing.iter().filter(|addr| nodes.contains(addr)).count())
    }

    /// Each replica that the slot map knows has it, by name. As many as WAIT counted may be others: a standby
    /// elsewhere, a migration (H73).
    ///
    /// INFO ran in the same turn of the server in which WAIT ended, so those that answered are among those it lists as
    /// heard of lately, and they are as many: all of these have it. A replica that isn't listed, or under another name
    /// (behind NAT: `replica-announce-ip`), says itself how far it has come.
    async fn are_all_there(&self, node: &Node, replicas: &[Replica], primary: &Info) -> Result<()> {
        let online = &primary.attached.online;
        let others = replicas.iter().filter(|r| !online.contains(&r.ip) && !online.contains(&r.addr));
        let asked = others.map(|replica| self.has_come_as_far(replica, primary));
        let patience = self.settings().fence_timeout;
        match tokio::time::timeout(patience, join_all(asked)).await {
            Ok(_) => Ok(()),
            Err(_) => {
                self.suspect();
                let names: Vec<String> = replicas.iter().map(|replica| replica.addr.to_string()).collect();
                let why = format!(
                    "not all of its replicas ({}) are known to have it, others may",
                    names.join(", ")
                );
                Err(unavailable(node, &why))
            }
        }
    }

    /// Returns when a replica says that it has all that its primary had.
    async fn has_come_as_far(&self, replica: &Replica, primary: &Info) {
        let node = self.inner.node_at(&replica.addr);
        let mut pause = ASKED_AGAIN.0;
        loop {
            let told = node.ask([Info::command()]).await.ok();
            let told = told.and_then(|replies| node.observe(replies.first()?).ok());
            if told.is_some_and(|(replica, _)| {
                !replica.is_primary
                    && replica.replication_id == primary.replication_id
                    && replica.offset >= primary.offset
            }) {
                return;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(ASKED_AGAIN.1);
        }
    }

    /// SET, so that the key exists; EXPIRE, which is a write that a server out of memory takes too; WAIT; INFO.
    async fn fence_round_trip(&self, node: &Node, slot: u16, replicas: usize) -> Result<Vec<Reply>> {
        let key = keys::fence(self.prefix(), slot);
        let timeout_ms = u64::try_from(self.settings().fence_timeout.as_millis()).unwrap_or(u64::MAX);
        let set = Command::new("SET").arg(&key).arg("1").arg("EX").arg(KEY_TTL_S);
        let write = Command::new("EXPIRE").arg(&key).arg(KEY_TTL_S);
        let wait = Command::new("WAIT").arg(replicas).arg(timeout_ms);
        let sent = node.ask_on(&node.fence_lane, [set, write, wait, Info::command()]).await;
        sent.map_err(|e| unavailable(node, &e))
    }
}

/// Tells a caller that won't wait of a fence, by what is known of the server: that it is silent, that its last fence
/// failed, whether it serves any slot.
#[doc(hidden)]
pub fn expect_a_fence(
    epoch: &Epoch,
    (is_silent, cannot_vouch): (bool, bool),
    serves: impl FnOnce() -> bool,
) -> Result<()> {
    if !is_silent && !cannot_vouch {
        return Ok(());
    }
    // H116: another one has its slots, so nobody tries its fence again: to wait for that would be for ever.
    if !serves() {
        return Err(conflict(epoch, "serves no slot any more"));
    }
    let why = if is_silent { "it has not answered for a while" } else { "its last fence has failed" };
    Err(Error::of_fence(ErrorKind::Unavailable, format!("fence at {}: {why}", epoch.node())))
}

fn unavailable(node: &Node, why: &dyn std::fmt::Display) -> Error {
    Error::of_fence(ErrorKind::Unavailable, format!("fence at {}: {why}", node.addr))
}

fn conflict(epoch: &Epoch, why: &str) -> Error {
    Error::of_fence(ErrorKind::Conflict, format!("fence: {} {why}; run the step again", epoch.node()))
}

#[cfg(test)]
mod tests {
    use super::super::epoch::EpochCell;
    use super::super::wire::NodeAddr;
    use super::*;
    use std::sync::Arc;

    #[tokio::test]
    async fn who_arrives_during_a_round_shares_the_next_one() {
        let epoch = EpochCell::default().observe(&NodeAddr::new("h", 1), "run", "repl");
        let (rounds, ran) = (Arc::new(FenceRound::default()), Arc::new(AtomicU64::new(0)));
        let may_end = Arc::new(tokio::sync::Semaphore::new(0));
        let join = |rounds: Arc<FenceRound>| {
            let (epoch, ran, may_end) = (epoch.clone(), ran.clone(), may_end.clone());
            async move {
                let round = async || {
                    ran.fetch_add(1, Ordering::SeqCst);
                    may_end.acquire().await.expect("it is never closed").forget();
                    Ok((epoch, FenceOutcome::Replicated))
                };
                rounds.join(round).await
            }
        };
        let first = tokio::spawn(join(rounds.clone()));
        while ran.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        let later: Vec<_> = (0..10).map(|_| tokio::spawn(join(rounds.clone()))).collect();
        // All of them have come when it is this one's turn again.
        tokio::task::yield_now().await;
        may_end.add_permits(2);
        first.await.unwrap().unwrap();
        for waiter in later {
            waiter.await.unwrap().unwrap();
        }
        // The round under way may have been sent before the ten came: it must not serve them, one more does.
        assert_eq!(ran.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn a_cancelled_round_leaves_nobody_waiting() {
        let epoch = EpochCell::default().observe(&NodeAddr::new("h", 1), "run", "repl");
        let rounds = Arc::new(FenceRound::default());
        let stuck = rounds.clone();
        let cancelled = tokio::spawn(async move { stuck.join(async || std::future::pending().await).await });
        tokio::time::sleep(Duration::from_millis(10)).await;
        let waiting = rounds.clone();
        let waiter =
            tokio::spawn(async move { waiting.join(async || Ok((epoch, FenceOutcome::Replicated))).await });
        tokio::time::sleep(Duration::from_millis(10)).await;
        cancelled.abort();
        assert!(waiter.await.unwrap().is_ok());
    }
}
