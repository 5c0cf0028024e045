//! Homes as others keep them. `books_per_node`: a sorted set of post ids by time, cut after every delivery, as "Redis
//! in Action" has it in chapter 8. `list`, Misskey's: a list of 16-character ids with the newest in front.
//!
//! Followers are the books': one sorted set for each account, read in pages by score (Misskey asks a SQL database).
//! Deliveries go in per-node pipelines.

use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{self, Stream, TryStreamExt as _};
use rand::RngExt as _;
use tideline::cluster::{Batch, Command, Request, Router};
use tideline::keys::slot_of_key;

use super::args::FanoutArgs;
use super::deliveries::Deliveries;
use super::system::{Kind, Look, System};
use super::world::{old_entry, owner_id, post_id};
use crate::bench::{Bench, run};

/// Homes filled in one batch.
const FILL_BATCH: usize = 150;
/// Followers read at a time, as in the book.
const PAGE: u64 = 1_000;
/// The first follower's score; each has one of its own, so that no page ends between equal ones.
const FIRST_SCORE: u64 = 1_600_000_000_000;
const FOLLOWS_PER_CALL: usize = 1_000;
/// Followers whose deliveries go into one batch, which the router makes into pipelines of 500.
const BATCH: usize = 5_000;
/// While one batch runs, the next is read and made.
const BATCHES_AT_ONCE: usize = 2;

pub(crate) struct Others<'a> {
    bench: &'a Bench,
    is_list: bool,
    cap: u64,
    /// How many of 100 deliveries to a list are followed by LTRIM.
    trim_percent: u32,
}

impl<'a> Others<'a> {
    pub(crate) fn open(bench: &'a Bench, kind: Kind, args: &FanoutArgs) -> Self {
        let trim_percent = args.list_trim_percent;
        Self { bench, is_list: kind == Kind::List, cap: kind.cap(args), trim_percent }
    }

    fn key(&self, home: u64) -> tideline::Result<String> {
        Ok(home_key(&self.bench.prefix, &owner_id(home)?.to_string()))
    }

    /// An id as it stands in a home.
    fn text_of(&self, id: u64) -> String {
        if self.is_list { list_id(id) } else { id.to_string() }
    }

    fn fill_one(&self, home: u64) -> tideline::Result<Request> {
        let key = self.key(home)?;
        let mut fill = Command::new(if self.is_list { "RPUSH" } else { "ZADD" }).arg(&key);
        // The newest first: each next one goes to the front of a sorted set, where Redis looks first.
        for entry in (0..self.cap).rev() {
            let (id, ms) = old_entry(home, entry);
            if self.is_list {
                fill.push(list_id(id));
            } else {
                fill.push(ms).push(id);
            }
        }
        Ok(Request::write(slot_of_key(key.as_bytes()), fill))
    }

    /// Adds one delivery: the post, then the cut.
    fn deliver(&self, batch: &mut Batch, home: &str, ms: u64, id: &str) {
        let slot = slot_of_key(home.as_bytes());
        let mut add = |command| {
            batch.push(Request::write(slot, command));
        };
        if self.is_list {
            add(Command::new("LPUSH").arg(home).arg(id));
            if rand::rng().random_range(0..100) < self.trim_percent {
                add(Command::new("LTRIM").arg(home).arg(0_u64).arg(self.cap - 1));
            }
        } else {
            add(Command::new("ZADD").arg(home).arg(ms).arg(id));
            let last = -i64::try_from(self.cap).unwrap_or(i64::MAX) - 1;
            add(Command::new("ZREMRANGEBYRANK").arg(home).arg(0_u64).arg(last));
        }
    }
}

/// An id as Misskey's are: 16 characters that are no number to Redis.
fn list_id(id: u64) -> String {
    format!("{id:016x}")
}

/// The home of an account.
pub(crate) fn home_key(prefix: &str, owner: &str) -> String {
    format!("{prefix}home:{owner}")
}

/// Where the followers of an account are.
fn followers_key(prefix: &str, author: u64) -> String {
    format!("{prefix}followers:{author}")
}

/// All homes of an account's followers, at least `BATCH` at a time but in the last batch.
fn homes<'a>(
    router: &'a Router,
    prefix: &'a str,
    author: u64,
) -> impl Stream<Item = anyhow::Result<Vec<String>>> + use<'a> {
    let key = followers_key(prefix, author);
    stream::try_unfold((key, Some("-inf".to_owned())), move |(key, mut next)| async move {
        let mut homes = Vec::with_capacity(BATCH);
        while let Some(from) = next.take_if(|_| homes.len() < BATCH) {
            let range = Command::new("ZRANGEBYSCORE").arg(&key).arg(from).arg("+inf").arg("WITHSCORES");
            let range = range.arg("LIMIT").arg(0_u64).arg(PAGE);
            let page = router.call(Request::read(slot_of_key(key.as_bytes()), range)).await?.into_array()?;
            for follower in page.chunks_exact(2) {
                homes.push(home_key(prefix, follower[0].text()?));
            }
            // Another page may follow a full one.
            let last = page.last().filter(|_| page.len() as u64 / 2 >= PAGE);
            next = last.map(|score| score.text().map(|score| format!("({score}"))).transpose()?;
        }
        anyhow::Ok((!homes.is_empty()).then_some((homes, (key, next))))
    })
}

impl System for Others<'_> {
    fn fill(&self, homes: u64) -> BoxFuture<'_, anyhow::Result<()>> {
        self.bench.run_all((0..homes).map(|home| self.fill_one(home)), FILL_BATCH).boxed()
    }

    fn follow<'a>(&'a self, author: u64, followers: &'a [u64]) -> BoxFuture<'a, anyhow::Result<()>> {
        let key = followers_key(&self.bench.prefix, author);
        let mut score = FIRST_SCORE;
        let calls = followers.chunks(FOLLOWS_PER_CALL).map(move |chunk| {
            let mut add = Command::new("ZADD").arg(&key);
            for home in chunk {
                score += 1;
                add.push(score).push(owner_id(*home)?);
            }
            Ok(Request::write(slot_of_key(key.as_bytes()), add))
        });
        self.bench.run_all(calls, 10).boxed()
    }

    fn post<'a>(
        &'a self,
        author: u64,
        number: u64,
        deliveries: &'a Deliveries,
    ) -> BoxFuture<'a, anyhow::Result<u64>> {
        let post = async move {
            let router = &self.bench.router;
            let ms = router.now_ms();
            let id = post_id(ms, number);
            let text = &self.text_of(id);
            let deliver = async |homes: Vec<String>| {
                let mut batch = Batch::with_capacity(2 * homes.len());
                homes.iter().for_each(|home| self.deliver(&mut batch, home, ms, text));
                run(router, batch).await?;
                deliveries.note(homes.len() as u64);
                Ok(())
            };
            let homes = homes(router, &self.bench.prefix, author);
            homes.try_for_each_concurrent(BATCHES_AT_ONCE, deliver).await?;
            Ok(id)
        };
        post.boxed()
    }

    fn look(&self, home: u64, post_id: u64) -> BoxFuture<'_, anyhow::Result<Look>> {
        let look = async move {
            let key = self.key(home)?;
            let ask = |command| self.bench.router.call(Request::read(slot_of_key(key.as_bytes()), command));
            let (length, place) = if self.is_list { ("LLEN", "LPOS") } else { ("ZCARD", "ZSCORE") };
            let entries = ask(Command::new(length).arg(&key)).await?.count()?;
            let place = ask(Command::new(place).arg(&key).arg(self.text_of(post_id))).await?;
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
            let text = list_id(id);
            assert_eq!(text.len(), 16);
            assert!(text.starts_with('0'), "{text}: Redis packs numbers without leading zeros");
        }
    }
}
