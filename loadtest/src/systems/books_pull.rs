//! `books_pull`: pull on read as textbooks have it, with stored timelines. Whoever of the followees has posted since
//! the newest entry of the stored timeline is asked for what is new; that goes into the timeline, and the page comes
//! out of it.
//!
//! It is given what it would have to pay for elsewhere: whom readers follow is remembered here, for all instances,
//! without ever asking whether that is still so; nothing is filtered; and who has posted within the same millisecond is
//! missed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::future::{BoxFuture, FutureExt as _};
use tideline::Delivery;
use tideline::cluster::{Batch, Command, Reply, Request, Router};
use tideline::keys::slot_of_key;

use super::{PAGE, Shown, Timelines, id_of};
use crate::bench::Bench;
use crate::graph::Graph;
use crate::scenario::Scenario;

/// Entries of a timeline, and of an author's list of posts: compact ones, which are cheapest.
const ENTRIES: i64 = 112;
const FIRST_POST_MS: u64 = 1_700_000_000_000;
const POST_STEP_MS: u64 = 60_000;
const LOAD_BATCH: usize = 5_000;
/// Fields of a post, as it is stored here.
const FIELDS: [&str; 9] =
    ["id", "uid", "login", "posted", "likes", "reposts", "replies", "visibility", "language"];

/// A network as the books keep it.
#[derive(Debug)]
pub(crate) struct BooksPull {
    router: Router,
    prefix: String,
    /// By account: whom it follows.
    following: Vec<Mutex<Vec<u32>>>,
    /// The last post's number: ids differ within a millisecond too.
    number: AtomicU64,
}

impl BooksPull {
    /// Writes a network's posts. Timelines come into being when they are read.
    pub(crate) async fn load(
        bench: &Bench,
        prefix: &str,
        scenario: &Scenario,
        graph: &Graph,
    ) -> anyhow::Result<Self> {
        let accounts = u32::try_from(graph.accounts())?;
        let following = (0..accounts).map(|reader| Mutex::new(graph.following(reader).to_vec()));
        let books = Self {
            router: bench.router.clone(),
            prefix: prefix.to_owned(),
            following: following.collect(),
            number: AtomicU64::new(0),
        };
        let text = "x".repeat(scenario.activity.text_chars);
        let follows = graph.all().flat_map(|(reader, author)| books.edge("ZADD", reader, author));
        bench.run_all(follows.map(Ok), LOAD_BATCH).await?;
        let history = scenario.activity.history;
        let posts = (0..history).flat_map(|nth| (0..accounts).map(move |author| (author, nth)));
        let posts = posts.flat_map(|(author, nth)| {
            let ms = FIRST_POST_MS + nth * POST_STEP_MS + u64::from(author) % POST_STEP_MS;
            books.publish(author, ms, &text)
        });
        bench.run_all(posts.map(Ok), LOAD_BATCH).await?;
        Ok(books)
    }

    fn key(&self, kind: &str, number: u64) -> String {
        format!("{}{kind}:{number}", self.prefix)
    }

    fn of_account(&self, kind: &str, account: u32) -> String {
        // Keys as long as those of real accounts.
        self.key(kind, id_of(account).map_or(0, |id| id.get()))
    }

    /// What is written for a post: itself, its author's list, the time of the last one.
    fn publish(&self, author: u32, ms: u64, text: &str) -> [Request; 4] {
        let id = ms << 16 | self.number.fetch_add(1, Ordering::Relaxed) & 0xffff;
        let (post, outbox) = (self.key("post", id), self.of_account("outbox", author));
        let last = self.of_account("last", author);
        let fields =
            FIELDS.iter().fold(Command::new("HSET").arg(&post), |set, field| set.arg(*field).arg(id));
        let cut = Command::new("ZREMRANGEBYRANK").arg(&outbox).arg(0_u64).arg(-ENTRIES - 1);
        [
            at(&post, fields.arg("message").arg(text), true),
            at(&outbox, Command::new("ZADD").arg(&outbox).arg(ms).arg(id), true),
            at(&outbox, cut, true),
            at(&last, Command::new("SET").arg(&last).arg(ms), true),
        ]
    }

    /// A follow, on both sides.
    fn edge(&self, command: &'static str, reader: u32, author: u32) -> [Request; 2] {
        let sides = [("following", reader, author), ("followers", author, reader)];
        sides.map(|(kind, of, member)| {
            let key = self.of_account(kind, of);
            let change = Command::new(command).arg(&key);
            let change = if command == "ZADD" { change.arg(FIRST_POST_MS) } else { change };
            at(&key, change.arg(id_of(member).map_or(0, |id| id.get())), true)
        })
    }

    fn following(&self, reader: u32) -> MutexGuard<'_, Vec<u32>> {
        self.following[reader as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(&self, batch: Batch) -> tideline::Result<Vec<Reply>> {
        self.router.run(batch).await.into_iter().map(|answer| answer?.ok()).collect()
    }

    /// Brings what is new into the stored timeline; what is asked for last is in the answers.
    async fn pull(&self, reader: u32, last: Request) -> tideline::Result<Vec<Reply>> {
        let home = self.of_account("home", reader);
        let authors = self.following(reader).clone();
        let newest = Command::new("ZREVRANGE").arg(&home).arg("0").arg("0").arg("WITHSCORES");
        let mut batch = Batch::with_capacity(authors.len() + 1);
        batch.push(at(&home, newest, false));
        for author in &authors {
            let key = self.of_account("last", *author);
            batch.push(at(&key, Command::new("GET").arg(&key), false));
        }
        let mut answers = self.ask(batch).await?.into_iter();
        let newest = match answers.next().map(Reply::into_array).transpose()?.unwrap_or_default().get(1) {
            Some(score) => score.count()?,
            None => 0,
        };
        let posted = authors
            .iter()
            .zip(answers)
            .filter(|(_, last)| !last.is_nil() && last.count().is_ok_and(|last| last > newest));
        let new: Batch = posted
            .map(|(author, _)| {
                let outbox = self.of_account("outbox", *author);
                let range = Command::new("ZRANGEBYSCORE").arg(&outbox).arg(format!("({newest}")).arg("+inf");
                at(&outbox, range.arg("WITHSCORES"), false)
            })
            .collect();
        let mut batch = Batch::new();
        let found = if new.is_empty() { Vec::new() } else { newest_of(self.ask(new).await?)? };
        if !found.is_empty() {
            // First there is room made, all of it: a sorted set that has once held more than 128 never becomes compact
            // again.
            let kept = ENTRIES - i64::try_from(found.len()).unwrap_or(ENTRIES);
            let cut = Command::new("ZREMRANGEBYRANK").arg(&home).arg("0").arg(-kept - 1);
            let mut add = Command::new("ZADD").arg(&home);
            for (ms, id) in found {
                add.push(ms).push(id);
            }
            batch.push_ordered([at(&home, cut, true), at(&home, add, true), last]);
            return self.ask(batch).await;
        }
        batch.push(last);
        self.ask(batch).await
    }

    async fn read(&self, reader: u32, since: u64) -> tideline::Result<Shown> {
        let home = self.of_account("home", reader);
        let range = Command::new("ZREVRANGEBYSCORE").arg(&home).arg("+inf").arg(format!("({}", since >> 16));
        let range = at(&home, range.arg("LIMIT").arg("0").arg(PAGE), false);
        let page =
            self.pull(reader, range).await?.pop().map(Reply::into_array).transpose()?.unwrap_or_default();
        let ids = page.iter().map(Reply::count).collect::<tideline::Result<Vec<u64>>>()?;
        let get = |id: &u64| {
            let key = self.key("post", *id);
            at(&key, Command::new("HGETALL").arg(&key), false)
        };
        if !ids.is_empty() {
            self.ask(ids.iter().map(get).collect()).await?;
        }
        Ok(Shown { posts: ids.len(), newest: ids.first().copied().unwrap_or(0) })
    }
}

/// The newest entries of these lists of posts, as many as a timeline has: times and ids.
fn newest_of(lists: Vec<Reply>) -> tideline::Result<Vec<(u64, u64)>> {
    let mut found = Vec::new();
    for posts in lists {
        for pair in posts.into_array()?.chunks_exact(2) {
            found.push((pair[1].count()?, pair[0].count()?));
        }
    }
    found.sort_unstable_by(|a, b| b.cmp(a));
    found.truncate(usize::try_from(ENTRIES).unwrap_or(usize::MAX));
    Ok(found)
}

fn at(key: &str, command: Command, is_write: bool) -> Request {
    let slot = slot_of_key(key.as_bytes());
    if is_write { Request::write(slot, command) } else { Request::read(slot, command) }
}

impl Timelines for BooksPull {
    fn post<'a>(&'a self, author: u32, text: &'a str) -> BoxFuture<'a, tideline::Result<Option<Delivery>>> {
        async move {
            let post = self.publish(author, self.router.now_ms(), text);
            self.ask(post.into_iter().collect()).await?;
            Ok(None)
        }
        .boxed()
    }

    fn page(&self, reader: u32, since: u64) -> BoxFuture<'_, tideline::Result<Shown>> {
        self.read(reader, since).boxed()
    }

    fn follow(&self, reader: u32, author: u32) -> BoxFuture<'_, tideline::Result<()>> {
        async move {
            self.ask(self.edge("ZADD", reader, author).into_iter().collect()).await?;
            let mut following = self.following(reader);
            if !following.contains(&author) {
                following.push(author);
            }
            Ok(())
        }
        .boxed()
    }

    fn unfollow(&self, reader: u32, author: u32) -> BoxFuture<'_, tideline::Result<()>> {
        async move {
            self.ask(self.edge("ZREM", reader, author).into_iter().collect()).await?;
            self.following(reader).retain(|followed| *followed != author);
            Ok(())
        }
        .boxed()
    }

    fn warm(&self, reader: u32) -> BoxFuture<'_, tideline::Result<()>> {
        self.read(reader, 0).map(|shown| shown.map(drop)).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::PRIMARIES;

    /// All 880 posts of those whom it follows went into a home before it was cut: Redis made a skiplist of it, which it
    /// stayed, and this way seemed to need four times the memory.
    #[tokio::test]
    async fn homes_are_compact_and_hold_the_newest_posts_when_they_are_filled_and_brought_up_to_date() {
        let text = "name = 'x'\n[graph]\npreset = 'uniform'\naccounts = 120\nmean = 110\n[activity]\nhistory = 8\n\
                    [mix]\npost = 1\ncheck = 1\n";
        let scenario = Scenario::parse(text).unwrap();
        let graph = scenario.graph.make(1).unwrap();
        let bench = Bench::open(&[], (PRIMARIES, 0).into()).await.unwrap();
        let books = BooksPull::load(&bench, "t:", &scenario, &graph).await.unwrap();
        let home = books.of_account("home", 0);
        let ask = async |command: Command| {
            let asked = Request::read(slot_of_key(home.as_bytes()), command);
            bench.router.call(asked).await.unwrap()
        };
        let check = async || {
            let encoding = ask(Command::new("OBJECT").arg("ENCODING").arg(&home)).await;
            assert_eq!(encoding.text().unwrap(), "listpack");
            assert_eq!(ask(Command::new("ZCARD").arg(&home)).await.count().unwrap(), 112);
        };
        let first = books.read(0, 0).await.unwrap();
        assert_eq!(first.posts, PAGE);
        check().await;
        // A few, and more than a home holds: of every author two.
        let authors = graph.following(0).to_vec();
        for round in [&authors[..5], &authors[..], &authors[..]] {
            for author in round {
                books.post(*author, "something new").await.unwrap();
            }
        }
        let page = books.read(0, 0).await.unwrap();
        assert!(page.posts == PAGE && page.newest > first.newest, "{page:?} {first:?}");
        check().await;
        // Who posts within the same millisecond is missed, as the books have it.
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        books.post(authors[0], "and one more").await.unwrap();
        let newer = books.read(0, page.newest).await.unwrap();
        assert!(newer.posts >= 1 && newer.newest > page.newest, "{newer:?}");
        check().await;
        bench.close().await.unwrap();
    }
}
