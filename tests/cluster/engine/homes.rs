//! How homes lie in the servers' memory.

use std::collections::BTreeMap;

use futures::stream::{self, StreamExt as _};
use tideline::cluster::Command;
use tideline::post::Draft;
use tideline::{AccountId, Engine, EngineSettings, NewAccount, StoreOptions};
use tideline_local_cluster::ClusterSpec;

use super::{accounts, at_key, drained, engine_with, small, walk_home};
use crate::harness::{eventually, own, tell};

const READERS: usize = 40;
const AUTHORS: usize = 4;
/// So many posts at once, so many times: homes that are full get longer than their list node, and are cut.
const BURST: usize = 24;
const BURSTS: usize = 20;
/// Each home gets four watermarks with so many posts. One that kept a second list node would have it for four hundred.
const MORE_MAX: usize = 64;

/// How homes have filled up on an engine.
struct Filled<'e> {
    engine: &'e Engine,
    readers: &'e [AccountId],
    authors: &'e [AccountId],
    home_posts: u32,
    posts: usize,
}

impl Filled<'_> {
    async fn publish(&mut self, many: usize) {
        let (engine, authors) = (self.engine, self.authors);
        let publish = |n: usize| async move {
            engine.publish(authors[n % AUTHORS], &Draft::text(format!("post {n}"))).await.unwrap()
        };
        let posts = self.posts..self.posts + many;
        self.posts += many;
        stream::iter(posts).map(publish).buffer_unordered(BURST).collect::<Vec<_>>().await;
        drained(engine).await;
    }

    /// How many homes have how many list nodes. They hold what they guarantee.
    async fn list_nodes(&self) -> BTreeMap<u64, u32> {
        let (home_posts, mut nodes) = (self.home_posts, BTreeMap::new());
        for reader in self.readers {
            let home = self.engine.inspect(*reader).await.unwrap().home;
            let held = self.engine.stored_home(*reader).await.unwrap();
            assert!(held.len() >= home_posts as usize, "a home of {home_posts} holds {}", held.len());
            *nodes.entry(home.list_nodes.expect("DEBUG is allowed on this cluster")).or_default() += 1;
        }
        nodes
    }

    /// Homes are within their list nodes. The last tidying may be on its way; or a slow server has delivered twice, and
    /// who asked wasn't told that a home was due. The next delivery that is due there brings it then.
    async fn are_within(&mut self, node_max: u64) {
        let before = self.posts;
        loop {
            let (nodes, more) = (self.list_nodes().await, self.posts - before);
            if nodes.keys().all(|n| *n <= node_max) {
                return;
            }
            assert!(
                more < MORE_MAX,
                "homes of {}: list nodes {nodes:?}, after {more} posts more",
                self.home_posts
            );
            self.publish(1).await;
        }
    }
}

/// Far more posts than a home holds.
async fn fill_up(options: StoreOptions, home_posts: u32, posts: usize, node_max: u64) {
    let engine = engine_with(options, EngineSettings { home_posts, ..EngineSettings::default() }).await;
    let people = accounts(&engine, READERS + AUTHORS).await;
    let (readers, authors) = people.split_at(READERS);
    for reader in readers {
        for author in authors {
            engine.follow(*reader, *author).await.unwrap();
        }
        engine.warm(*reader).await.unwrap();
    }
    drained(&engine).await;
    let mut filled = Filled { engine: &engine, readers, authors, home_posts, posts: 0 };
    filled.publish(posts - BURSTS * BURST).await;
    for _ in 0..BURSTS {
        filled.are_within(node_max).await;
        filled.publish(BURST).await;
    }
    filled.are_within(node_max).await;
    assert_eq!(walk_home(&engine, readers[0], 100).await.len(), filled.posts);
}

#[tokio::test]
async fn homes_of_every_size_hold_what_they_guarantee_and_those_of_400_are_one_list_node() {
    let cluster = own(ClusterSpec::ephemeral().config("enable-debug-command", "yes")).await;
    for (home_posts, posts, node_max) in [(112, 900, 1), (400, 1_300, 1), (1_000, 1_500, 4)] {
        let options = crate::harness::options(cluster.urls());
        fill_up(options, home_posts, posts, node_max).await;
    }
}

/// Loads the engine's functions anew on all servers, with `old` in their code replaced.
async fn replace_in_functions(engine: &Engine, old: &str, new: &str) {
    let router = engine.store().router();
    let mut listed = router.ask_primaries(&Command::new("FUNCTION").arg("LIST").arg("WITHCODE")).await;
    // They are the same on all.
    let (_, of_one) = listed.remove(0);
    let library = of_one.unwrap().into_array().unwrap().remove(0).into_array().unwrap();
    let code = std::str::from_utf8(library.last().unwrap().bytes().unwrap()).unwrap();
    assert!(code.contains(old), "`{old}` is not in it");
    let load = Command::new("FUNCTION").arg("LOAD").arg("REPLACE").arg(code.replace(old, new));
    router.ask_primaries(&load).await;
}

#[tokio::test]
async fn a_tidying_that_a_server_has_no_room_for_is_made_up_for_without_another_delivery() {
    let cluster = own(ClusterSpec::ephemeral()).await;
    let engine = engine_with(crate::harness::options(cluster.urls()), small()).await;
    let people = accounts(&engine, 2).await;
    engine.follow(people[0], people[1]).await.unwrap();
    engine.warm(people[0]).await.unwrap();
    drained(&engine).await;
    let [usual, full] =
        ["local function home_tidy(keys, args)", " do return redis.error_reply('OOM full') end"];
    let full = usual.to_owned() + full;
    replace_in_functions(&engine, usual, &full).await;
    // A floor, and so many are due for a watermark.
    for n in 1..16 {
        engine.publish(people[1], &Draft::text(format!("post {n}"))).await.unwrap();
    }
    drained(&engine).await;
    eventually("a tidying was refused", async || {
        let mut refused = false;
        for addr in cluster.nodes().iter().map(|node| node.addr()) {
            refused |= tell(&addr, "INFO errorstats").await.contains("errorstat_OOM:");
        }
        refused
    })
    .await;
    let length = async || at_key(&engine, 'h', people[0], "LLEN", &[]).await.count().unwrap();
    assert_eq!(length().await, 16);
    replace_in_functions(&engine, &full, usual).await;
    eventually("the home has its watermark", async || length().await == 17).await;
}

#[tokio::test]
async fn homes_that_nobody_reads_are_dropped_and_filled_again() {
    let engine = super::engine().await;
    let author = engine.create_account(NewAccount::default()).await.unwrap().value;
    let reader = engine.create_account(NewAccount::default()).await.unwrap().value;
    engine.follow(reader, author).await.unwrap();
    engine.warm(reader).await.unwrap();
    drained(&engine).await;
    let mut first = engine.publish(author, &Draft::text("read")).await.unwrap();
    first.delivery.all().await.unwrap();
    assert_eq!(walk_home(&engine, reader, 5).await, [first.id]);
    // Read today, or yesterday where it was midnight since: it stays as long as that is not too long ago.
    assert_eq!(engine.sweep(2).await.unwrap(), 0);
    assert_eq!(engine.sweep(0).await.unwrap(), 1);
    let mut second = engine.publish(author, &Draft::text("while away")).await.unwrap();
    let progress = second.delivery.all().await.unwrap();
    assert_eq!((progress.delivered, progress.skipped), (0, 1));
    assert_eq!(walk_home(&engine, reader, 5).await, [second.id, first.id]);
}
