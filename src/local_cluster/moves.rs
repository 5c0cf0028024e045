//! Moving slots and roles on purpose, whole or step by step.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::cluster::{LocalCluster, POLL};
use super::facts::{Facts, Live};
use crate::cluster::wire::{Command, NodeAddr};
use crate::error::{Error, Result};

/// Keys that move with one MIGRATE.
const KEYS_PER_MOVE: usize = 100;
/// How long one MIGRATE may take between the two servers.
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
        // The target first: it must be ready when the first ASK sends a client there.
        self.admin.act(to, set_slot(slot, "IMPORTING").arg(&source)).await?;
        self.admin.act(from, set_slot(slot, "MIGRATING").arg(&target)).await?;
        Ok(())
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
    /// any more, and no fence waits for it. Returns when all nodes know, and replicas of the old owner have forgotten
    /// what was there: one that didn't would, once promoted, claim the slot with old data.
    pub async fn end_migration(&self, slot: u16, to: &NodeAddr) -> Result<()> {
        let target = self.id_of(to).await?;
        self.wait_replicated(|_| true).await?;
        let command = || set_slot(slot, "NODE").arg(&target);
        // The target first: between source and target nobody would serve the slot.
        self.admin.act(to, command()).await?;
        for node in self.primaries().await {
            if node.addr() != *to {
                self.admin.act(&node.addr(), command()).await?;
            }
        }
        self.wait_replicated(|live| live.view.owner(slot) == Some(&target)).await
    }

    /// Waits until the replicas of all primaries have what these have now, and all nodes that answer are as they should.
    async fn wait_replicated(&self, is_right: impl Fn(&Live) -> bool) -> Result<()> {
        let deadline = Instant::now() + REPLICATED_DEADLINE;
        let mut wanted = HashMap::new();
        loop {
            let facts = self.facts().await;
            let mut lives = facts.iter().filter_map(Facts::live);
            let is_done = lives.all(|live| {
                let id = live.view.me.id.clone();
                let wanted = *wanted.entry(id).or_insert_with(|| live.written());
                let has_spread =
                    !live.is_primary() || live.replicas_written().all(|written| written >= wanted);
                has_spread && is_right(live)
            });
            if is_done {
                return Ok(());
            }
            if Instant::now() >= deadline {
                let text = "replicas have not caught up, or nodes don't agree about a slot that has moved";
                return Err(Error::unavailable(format!("{text}, within {REPLICATED_DEADLINE:?}")));
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

fn set_slot(slot: u16, word: &str) -> Command {
    Command::new("CLUSTER").arg("SETSLOT").arg(slot).arg(word)
}
