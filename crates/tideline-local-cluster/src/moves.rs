//! Moving slots and roles on purpose, whole or step by step.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::cluster::{LocalCluster, POLL};
use super::facts::{Facts, Live};
use super::view::NodeLine;
use tideline_model::error::{Error, Result};
use tideline_router::wire::{Command, NodeAddr};

/// Keys that move with one MIGRATE.
const KEYS_PER_MOVE: usize = 100;
/// The time that one MIGRATE may take between the two servers.
const MIGRATE_TIMEOUT_MS: u32 = 5_000;
/// Replicas are milliseconds behind, unless one has just been cut off.
const REPLICATED_DEADLINE: Duration = Duration::from_secs(10);
/// A failover takes milliseconds, unless the primary is overloaded or the others don't vote yet.
const FAILOVER_DEADLINE: Duration = Duration::from_secs(30);
/// A replica gives up a failover that it was asked for after five seconds, and says nothing.
const FAILOVER_ATTEMPT: Duration = Duration::from_millis(5_500);

impl LocalCluster {
    /// Moves a slot with its keys to the primary at `to`, while clients go on.
    pub async fn migrate_slot(&self, slot: u16, to: &NodeAddr) -> Result<()> {
        let from = self.owner_of(slot).await?;
        if from == *to {
            return Ok(());
        }
        self.begin_migration(slot, &from, to).await?;
        while self.migrate_keys(slot, &from, to, KEYS_PER_MOVE).await? > 0 {}
        self.end_migration(slot, to).await
    }

    /// The address of the primary that claims `slot` for itself.
    pub async fn owner_of(&self, slot: u16) -> Result<NodeAddr> {
        let facts = self.facts().await;
        let owns = |facts: &Facts| facts.live().is_some_and(|live| live.view.me.slots.contains(slot));
        let owner = self.nodes.iter().zip(&facts).find(|(_, facts)| owns(facts));
        owner
            .map(|(node, _)| node.addr())
            .ok_or_else(|| Error::unavailable(format!("no node claims slot {slot}")))
    }

    /// Opens a slot for moving: from here on `from` answers ASK for the keys that it has not.
    pub async fn begin_migration(&self, slot: u16, from: &NodeAddr, to: &NodeAddr) -> Result<()> {
        let (source, target) = (self.id_of(from).await?, self.id_of(to).await?);
        self.until_it_knows(to, slot, &source).await?;
        // The target first: it must be ready when the first ASK sends a client there.
        self.admin.act(to, set_slot(slot, "IMPORTING").arg(&source)).await?;
        self.admin.act(from, set_slot(slot, "MIGRATING").arg(&target)).await?;
        Ok(())
    }

    /// Waits until a server knows that a slot is that one's.
    ///
    /// While it takes the slot for one that is on its way to it, it hears of no other owner (Redis 7.0): once the
    /// source was replaced, nobody has the slot there, for good, whoever got it, and no key comes in. So what a broken
    /// move has left open there is ended first.
    async fn until_it_knows(&self, node: &NodeAddr, slot: u16, owner: &str) -> Result<()> {
        let deadline = Instant::now() + REPLICATED_DEADLINE + self.spec.node_timeout;
        loop {
            let facts = self.admin.facts(node).await;
            if let Some(live) = facts.live() {
                if live.view.owner(slot) == Some(owner) {
                    return Ok(());
                }
                if live.view.me.open_slots.contains(&slot) {
                    self.admin.act(node, set_slot(slot, "STABLE")).await?;
                }
            }
            if Instant::now() >= deadline {
                return Err(Error::unavailable(format!("{node} does not hear whose slot {slot} is")));
            }
            sleep(POLL).await;
        }
    }

    /// Moves up to `max_keys` keys of an open slot; returns how many, 0 when none is left.
    pub async fn migrate_keys(
        &self,
        slot: u16,
        from: &NodeAddr,
        to: &NodeAddr,
        max_keys: usize,
    ) -> Result<usize> {
        let question = Command::new("CLUSTER").arg("GETKEYSINSLOT").arg(slot).arg(max_keys);
        let keys = self.admin.act(from, question).await?.into_array()?;
        if keys.is_empty() {
            return Ok(0);
        }
        let mut migrate =
            Command::new("MIGRATE").arg(&*to.host).arg(to.port).arg("").arg(0u32).arg(MIGRATE_TIMEOUT_MS);
        if let Some(password) = &self.spec.password {
            migrate.push("AUTH").push(password);
        }
        migrate.push("KEYS");
        for key in &keys {
            migrate.push(key.bytes()?);
        }
        self.admin.act(from, migrate).await?;
        Ok(keys.len())
    }

    /// Makes the primary at `to` the owner of an open slot, once its replicas have what has moved: nobody else has that
    /// any more, and no fence waits for it. Returns when all nodes that answer know, and replicas of the old owner have
    /// forgotten what was there: one that didn't would, once promoted, claim the slot with old data.
    ///
    /// With the slot the target takes a newer epoch, and asks nobody (Redis 7.0 to 8). Had the source's risen, and the
    /// target not heard of it, both had the same one: the source takes another then, and the target lost the slot to
    /// its old claim while the source was told that it is the target's. Nobody claimed it any more, for good. So it is
    /// ended only when all know the epochs of all; and said again, with a newer epoch, while some primary says
    /// something else.
    ///
    /// A source that is silent at this moment hears from the others that the slot has gone, and goes on taking it for
    /// one that is on its way (Redis 7.0). Got it the slot back, with keys, it would send whoever asks for a key that
    /// isn't there to the old target, and that one back, for good. So whoever still says so is told that nothing is
    /// open any more.
    ///
    /// # Errors
    /// `Unavailable` if that doesn't come about in time, naming what is missing, and who says what.
    pub async fn end_migration(&self, slot: u16, to: &NodeAddr) -> Result<()> {
        let target = self.id_of(to).await?;
        let deadline = Instant::now() + REPLICATED_DEADLINE + self.spec.node_timeout;
        let mut spread = Spread::default();
        self.until_nothing_is_open(slot, deadline, async |lives| {
            Ok(spread.missing(lives).into_iter().chain(unheard_epochs(lives)).collect())
        })
        .await?;
        self.give(slot, to, &target).await?;
        let mut spread = Spread::default();
        self.until_nothing_is_open(slot, deadline, async |lives| {
            if lives.iter().any(|live| live.is_primary() && live.view.owner(slot) != Some(&target)) {
                self.admin.act(to, Command::new("CLUSTER").arg("BUMPEPOCH")).await?;
                self.give(slot, to, &target).await?;
            }
            let mut open: Vec<String> =
                spread.missing(lives).into_iter().chain(other_owners(slot, &target, lives)).collect();
            for live in lives.iter().filter(|live| live.view.me.open_slots.contains(&slot)) {
                let node = NodeAddr::new("127.0.0.1", live.view.me.port);
                open.push(format!("{node} still says that it is on its way"));
                self.admin.act(&node, set_slot(slot, "STABLE")).await?;
            }
            Ok(open)
        })
        .await
    }

    /// Tells all primaries whose slot it is.
    async fn give(&self, slot: u16, to: &NodeAddr, target: &str) -> Result<()> {
        let command = || set_slot(slot, "NODE").arg(target);
        // The target first: between source and target nobody would serve the slot.
        self.admin.act(to, command()).await?;
        for node in self.primaries().await {
            if node.addr() != *to {
                self.admin.act(&node.addr(), command()).await?;
            }
        }
        Ok(())
    }

    /// Looks at all nodes that answer until nothing is open any more.
    async fn until_nothing_is_open(
        &self,
        slot: u16,
        deadline: Instant,
        mut open: impl AsyncFnMut(&[&Live]) -> Result<Vec<String>>,
    ) -> Result<()> {
        loop {
            let facts = self.facts().await;
            let lives: Vec<&Live> = facts.iter().filter_map(Facts::live).collect();
            let open = open(&lives).await?;
            if open.is_empty() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(Error::unavailable(format!(
                    "moving slot {slot} does not end: {}",
                    open.join("; ")
                )));
            }
            sleep(POLL).await;
        }
    }

    /// Makes the replica at that address the primary, its primary agreeing, and waits until it is.
    ///
    /// One attempt may come to nothing. Primaries don't vote twice about the same primary within two node timeouts; and
    /// a replica that has won an election shortly before (Redis 7.0) counts those old votes again, and is primary for
    /// a moment, until the others show it a newer epoch. So it is asked for again, until a new epoch is won.
    ///
    /// # Errors
    /// `Internal` if it is no replica, `Unavailable` if it doesn't answer or nothing came of it within half a minute.
    pub async fn failover(&self, replica: &NodeAddr) -> Result<()> {
        let silent = || Error::unavailable(format!("{replica} does not answer"));
        let before = self.admin.facts(replica).await.live().map(Live::newest_epoch).ok_or_else(silent)?;
        let has_won = |live: &Live| live.is_primary() && live.view.me.epoch > before;
        let failover = || self.admin.act(replica, Command::new("CLUSTER").arg("FAILOVER"));
        failover().await?;
        let mut asked = Instant::now();
        let deadline = asked + FAILOVER_DEADLINE;
        while !self.admin.facts(replica).await.live().is_some_and(has_won) {
            let now = Instant::now();
            if now >= deadline {
                let text = format!("{replica} is still no primary {FAILOVER_DEADLINE:?} after FAILOVER");
                return Err(Error::unavailable(text));
            }
            if now >= asked + FAILOVER_ATTEMPT {
                // Refused if it is primary at this moment: the next look tells whether it stays.
                let _ = failover().await;
                asked = now;
            }
            sleep(POLL).await;
        }
        Ok(())
    }

    async fn id_of(&self, addr: &NodeAddr) -> Result<String> {
        let id = self.admin.act(addr, Command::new("CLUSTER").arg("MYID")).await?;
        Ok(id.text()?.to_owned())
    }
}

/// The offsets that the replicas of each primary must have: what their primary had when it was first looked at.
#[derive(Default)]
struct Spread {
    wanted: HashMap<String, u64>,
}

impl Spread {
    /// Names the primaries of which a replica lacks something.
    fn missing(&mut self, lives: &[&Live]) -> Vec<String> {
        let mut missing = Vec::new();
        for live in lives {
            let wanted = *self.wanted.entry(live.view.me.id.clone()).or_insert_with(|| live.written());
            if live.is_primary()
                && let Some(least) = live.replicas_written().min().filter(|least| *least < wanted)
            {
                let primary = address(&live.view.me);
                missing.push(format!("a replica of {primary} has {least} of {wanted} bytes written there"));
            }
        }
        missing
    }
}

/// Names the nodes that have not heard of a primary's epoch, and that primary.
fn unheard_epochs(lives: &[&Live]) -> Vec<String> {
    let mut unheard = Vec::new();
    for primary in lives.iter().filter(|live| live.is_primary()) {
        let me = &primary.view.me;
        for live in lives.iter().filter(|live| live.view.me.id != me.id) {
            let heard = live.view.other(&me.id).map(|peer| peer.epoch);
            if heard != Some(me.epoch) {
                let (node, at) = (address(&live.view.me), address(me));
                let heard = heard.map_or_else(|| "none".to_owned(), |epoch| epoch.to_string());
                unheard.push(format!("{node} knows epoch {heard} of {at}, which has {}", me.epoch));
            }
        }
    }
    unheard
}

/// Names the nodes that say that a slot is not the target's.
fn other_owners(slot: u16, target: &str, lives: &[&Live]) -> Vec<String> {
    let wrong = lives.iter().filter(|live| live.view.owner(slot) != Some(target));
    let told = wrong.map(|live| {
        let peers = std::iter::once(&live.view.me).chain(&live.view.others);
        let owner = peers.clone().find(|peer| peer.slots.contains(slot));
        let said = owner.map_or_else(
            || "nobody's".to_owned(),
            |peer| format!("{}'s, epoch {}", address(peer), peer.epoch),
        );
        let wanted = peers.clone().find(|peer| peer.id == target).map_or(0, |peer| peer.epoch);
        format!("{} says that it is {said}; the target has epoch {wanted}", address(&live.view.me))
    });
    told.collect()
}

fn address(peer: &NodeLine) -> String {
    format!("127.0.0.1:{}", peer.port)
}

fn set_slot(slot: u16, word: &str) -> Command {
    Command::new("CLUSTER").arg("SETSLOT").arg(slot).arg(word)
}

#[cfg(test)]
mod tests {
    use super::super::view::NodeView;
    use super::*;

    /// The node with the first line.
    fn live(nodes: &str) -> Live {
        Live { is_ok: true, view: NodeView::parse(nodes).unwrap(), info: HashMap::new() }
    }

    #[test]
    fn who_knows_an_older_epoch_and_who_says_another_owner_is_named() {
        let [one, two] = [
            "aa 127.0.0.1:7000@1 myself,master - 0 0 5 connected 0-9\nbb 127.0.0.1:7001@1 master - 0 0 2 connected 10",
            "bb 127.0.0.1:7001@1 myself,master - 0 0 2 connected 10\naa 127.0.0.1:7000@1 master - 0 0 1 connected 0-9",
        ]
        .map(live);
        assert_eq!(
            unheard_epochs(&[&one, &two]),
            ["127.0.0.1:7001 knows epoch 1 of 127.0.0.1:7000, which has 5"]
        );
        assert_eq!(unheard_epochs(&[&two]), [""; 0]);
        assert_eq!(other_owners(10, "bb", &[&one, &two]), [""; 0]);
        let told = other_owners(9, "bb", &[&one]).join("; ");
        assert_eq!(told, "127.0.0.1:7000 says that it is 127.0.0.1:7000's, epoch 5; the target has epoch 2");
        assert!(other_owners(11, "bb", &[&one]).join("").contains("says that it is nobody's"));
    }
}
