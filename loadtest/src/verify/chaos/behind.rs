//! A primary dies whose replica is behind: it has acknowledged what nobody else has.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tideline::cluster::{Command, NodeAddr};
use tideline_local_cluster::{LocalCluster, LocalNode};
use tokio::time::sleep;

use super::{Admit, RETRY, Storm, patiently};
use crate::verify::facts::Time;
use crate::verify::world::PostFact;

/// What is sent to a replica that doesn't read: more than lies in sockets, so that all that comes later stays in the
/// primary.
const FILLERS: usize = 4;
const FILLER_BYTES: usize = 8 << 20;
/// For so long a replica stands still, at most: less than the node timeout. Then the others would take it for dead,
/// fences would do without it, and more might be lost than is promised.
const BEHIND_MAX: Duration = Duration::from_secs(4);
/// For so long a post is waited for that it doesn't get.
const POST_MAX: Duration = Duration::from_secs(2);

impl Storm<'_> {
    /// Kills a primary that has acknowledged a post, at least, which its replica hasn't. Lets it live if that took too
    /// long; whether it is dead.
    pub(super) async fn kill_ahead(
        &self,
        cluster: &LocalCluster,
        victim: &LocalNode,
        replica: &LocalNode,
        admit: Admit,
    ) -> anyhow::Result<bool> {
        let old = victim.addr();
        let slots = self.tags_of(cluster, &old).await?;
        let since = Instant::now();
        replica.freeze()?;
        let is_ahead = self.get_ahead(cluster, &old, &slots, admit).await;
        // It acknowledges nothing more, and is dead only if its replica wasn't taken for dead before.
        victim.freeze()?;
        let is_dead = is_ahead.is_ok() && since.elapsed() < BEHIND_MAX;
        if is_dead {
            victim.kill()?
        } else {
            victim.thaw()?
        }
        // Whatever has happened: nothing may stay frozen.
        replica.thaw()?;
        self.run.event(match (is_dead, is_ahead?) {
            (false, _) => "replicas that were behind for too long",
            (true, true) => "primaries killed that had a post which their replica hadn't",
            (true, false) => "primaries killed whose replica was behind",
        });
        Ok(is_dead)
    }

    /// The slots with data that a primary has, each with a tag that lies in it.
    async fn tags_of(
        &self,
        cluster: &LocalCluster,
        primary: &NodeAddr,
    ) -> anyhow::Result<BTreeMap<u16, &'static str>> {
        let slots = self.slots_of(cluster, primary).await?;
        let tagged = self.buckets.all().map(|bucket| (self.buckets.slot(bucket), self.buckets.tag(bucket)));
        Ok(tagged.filter(|(slot, _)| slots.contains(slot)).collect())
    }

    /// Lets a primary go ahead of its replica, which stands still; whether it has acknowledged a post since.
    async fn get_ahead(
        &self,
        cluster: &LocalCluster,
        primary: &NodeAddr,
        slots: &BTreeMap<u16, &'static str>,
        admit: Admit,
    ) -> anyhow::Result<bool> {
        let tag = slots.values().next().context("a primary without data")?;
        // Beside the run's keys: nobody looks at it.
        let (key, filler) = (format!("filler{{{tag}}}"), vec![b'.'; FILLER_BYTES]);
        for _ in 0..FILLERS {
            let set = Command::new("SET").arg(key.as_bytes()).arg(&filler).arg("EX").arg("5");
            patiently(async || cluster.ask(primary, set.clone()).await).await?;
        }
        let (since, from) = (Instant::now(), self.run.now());
        self.admit(admit);
        while !self.has_published(from, slots) && since.elapsed() < POST_MAX {
            sleep(RETRY).await;
        }
        Ok(self.has_published(from, slots))
    }

    /// Whether a post was begun and acknowledged since then, in one of these slots.
    fn has_published(&self, from: Time, slots: &BTreeMap<u16, &'static str>) -> bool {
        let world = self.run.world();
        let slot = |author| self.buckets.slot(self.buckets.of_account(author));
        let is_such = |post: &PostFact| {
            post.start > from
                && post.id.is_some()
                && !post.is_replicated
                && slots.contains_key(&slot(post.author))
        };
        world.posts.iter().rev().flatten().any(is_such)
    }
}
