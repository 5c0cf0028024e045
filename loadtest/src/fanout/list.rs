//! `list`: homes as Misskey keeps them, lists of 16-character ids with the newest in front, in per-node pipelines.
//!
//! Misskey reads followers from a SQL database; here they come from the same sorted set as the books'.

use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::TryStreamExt as _;
use rand::RngExt as _;
use tideline::cluster::{Batch, Command, Request};
use tideline::keys::slot_of_key;

use super::args::FanoutArgs;
use super::books_per_node::{BATCH, BATCHES_AT_ONCE};
use super::deliveries::Deliveries;
use super::followers;
use super::system::{Look, System};
use super::world::{old_entry, owner_id, post_id};
use crate::bench::{Bench, run};

/// Homes filled in one batch.
const FILL_BATCH: usize = 150;

pub(crate) struct MisskeyList<'a> {
    bench: &'a Bench,
    cap: u64,
    trim_percent: u32,
}

impl<'a> MisskeyList<'a> {
    pub(crate) fn open(bench: &'a Bench, args: &FanoutArgs) -> Self {
        Self { bench, cap: args.list_cap, trim_percent: args.list_trim_percent }
    }

    async fn fill_homes(&self, homes: u64) -> anyhow::Result<()> {
        let fills = (0..homes).map(|home| {
            let key = followers::home_key(&self.bench.prefix, &owner_id(home)?.to_string());
            let mut push = Command::new("RPUSH").arg(&key);
            for entry in (0..self.cap).rev() {
                push.push(text_of(old_entry(home, entry).0));
            }
            Ok(Request::write(slot_of_key(key.as_bytes()), push))
        });
        self.bench.run_all(fills, FILL_BATCH).await
    }

    async fn deliver(&self, homes: &[String], id: &str) -> anyhow::Result<()> {
        let mut batch = Batch::with_capacity(2 * homes.len());
        for home in homes {
            let slot = slot_of_key(home.as_bytes());
            batch.push(Request::write(slot, Command::new("LPUSH").arg(home).arg(id)));
            if rand::rng().random_range(0..100) < self.trim_percent {
                let trim = Command::new("LTRIM").arg(home).arg(0_u64).arg(self.cap - 1);
                batch.push(Request::write(slot, trim));
            }
        }
        run(&self.bench.router, batch).await
    }
}

/// An id as Misskey's are: 16 characters that are no number to Redis.
fn text_of(id: u64) -> String {
    format!("{id:016x}")
}

impl System for MisskeyList<'_> {
    fn fill(&self, homes: u64) -> BoxFuture<'_, anyhow::Result<()>> {
        self.fill_homes(homes).boxed()
    }

    fn follow<'a>(&'a self, author: u64, followers: &'a [u64]) -> BoxFuture<'a, anyhow::Result<()>> {
        followers::follow(self.bench, author, followers).boxed()
    }

    fn post<'a>(
        &'a self,
        author: u64,
        number: u64,
        deliveries: &'a Deliveries,
    ) -> BoxFuture<'a, anyhow::Result<u64>> {
        let post = async move {
            let router = &self.bench.router;
            let id = post_id(router.now_ms(), number);
            let text = &text_of(id);
            let deliver = async |homes: Vec<String>| {
                self.deliver(&homes, text).await?;
                deliveries.note(homes.len() as u64);
                Ok(())
            };
            followers::homes(router, &self.bench.prefix, author, BATCH)
                .try_for_each_concurrent(BATCHES_AT_ONCE, deliver)
                .await?;
            Ok(id)
        };
        post.boxed()
    }

    fn look(&self, home: u64, post_id: u64) -> BoxFuture<'_, anyhow::Result<Look>> {
        let look = async move {
            let key = followers::home_key(&self.bench.prefix, &owner_id(home)?.to_string());
            let slot = slot_of_key(key.as_bytes());
            let ask = |command| self.bench.router.call(Request::read(slot, command));
            let entries = ask(Command::new("LLEN").arg(&key)).await?.count()?;
            let place = ask(Command::new("LPOS").arg(&key).arg(text_of(post_id))).await?;
            Ok(Look { entries, has_post: !place.is_nil() })
        };
        look.boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_16_characters_and_would_not_be_stored_as_numbers() {
        for id in [old_entry(0, 0).0, old_entry(70_000, 399).0, post_id(1_790_000_000_000, 3)] {
            let text = text_of(id);
            assert_eq!(text.len(), 16);
            assert!(text.starts_with('0'), "{text}: Redis packs numbers without leading zeros");
        }
    }
}
