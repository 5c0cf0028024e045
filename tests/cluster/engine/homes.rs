//! How homes lie in the servers' memory.

use std::collections::BTreeMap;

use futures::stream::{self, StreamExt as _};
use tideline::post::Draft;
use tideline::cluster::Command;
use tideline::{Engine, EngineSettings, NewAccount, StoreOptions};
use tideline_local_cluster::ClusterSpec;

use super::{accounts, at_key, drained, engine_with, small, walk_home};
use crate::harness::{eventually, own, tell};

const READERS: usize = 40;
const AUTHORS: usize = 4;
/// Each home gets four watermarks with so many posts. One that kept a second list node would have it for four hundred.
const MORE_MAX: usize = 64;

/// After far more posts than a home holds: how many list nodes homes have, and that they hold what they guarantee.
async fn fill_up(options: StoreOptions, home_posts: u32, posts: usize, node_max: u64) -> BTreeMap<u64, u32> {
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
    stream::iter(0..posts)
        .map(|n| {
            let (engine, author) = (&engine, authors[n % AUTHORS]);
            async move { engine.publish(author, &Draft::text(format!("post {n}"))).await.unwrap() }
        })
        .buffer_unordered(8)
        .collect::<Vec<_>>()
        .await;
    drained(&engine).await;
    let mut more = 0;
    let nodes = loop {
        let mut nodes = BTreeMap::new();
        for reader in readers {
            let home = engine.inspect(*reader).await.unwrap().home;
            let held = engine.stored_home(*reader).await.unwrap();
            assert!(held.len() >= home_posts as usize, "a home of {home_posts} holds {}", held.len());
            *nodes.entry(home.list_nodes.expect("DEBUG is allowed on this cluster")).or_default() += 1;
        }
        if nodes.keys().all(|n| *n <= node_max) {
            break nodes;
        }
        // The last tidying may be on its way; or a slow server has delivered twice, and who asked wasn't told that a
        // home was due. The next delivery that is due there brings it then. What stays for longer fails.
        assert!(more < MORE_MAX, "homes of {home_posts}: list nodes {nodes:?}, after {more} posts more");
        engine.publish(authors[0], &Draft::text(format!("one more, {more}"))).await.unwrap();
        drained(&engine).await;
        more += 1;
    };
    assert_eq!(walk_home(&engine, readers[0], 100).await.len(), posts + more);
    nodes
}

#[tokio::test]
async fn homes_of_every_size_hold_what_they_guarantee_and_those_of_400_are_one_list_node() {
    let cluster = own(ClusterSpec::ephemeral().config("enable-debug-command", "yes")).await;
    for (home_posts, posts, node_max) in [(112, 900, 1), (400, 1_300, 1), (1_000, 1_500, 4)] {
        let options = crate::harness::options(cluster.urls());
        let nodes = fill_up(options, home_posts, posts, node_max).await;
        println!("homes of {home_posts}: list nodes {nodes:?}");
    }
}

/// Loads the engine's functions anew on all servers, with `old` in their code replaced.
async fn replace_in_functions(engine: &Engine, old: &str, new: &str) {
    let router = engine.store().router();
    for (_, listed) in router.ask_primaries(&Command::new("FUNCTION").arg("LIST").arg("WITHCODE")).await {
        let library = listed.unwrap().into_array().unwrap().remove(0).into_array().unwrap();
        let code = std::str::from_utf8(library.last().unwrap().bytes().unwrap()).unwrap();
        assert!(code.contains(old), "`{old}` is not in it");
        let load = Command::new("FUNCTION").arg("LOAD").arg("REPLACE").arg(&code.replace(old, new));
        router.ask_primaries(&load).await;
    }
}

#[tokio::test]
async fn a_tidying_that_a_server_has_no_room_for_is_made_up_for_without_another_delivery() {
    let cluster = own(ClusterSpec::ephemeral()).await;
    let engine = engine_with(crate::harness::options(cluster.urls()), small()).await;
    let people = accounts(&engine, 2).await;
    engine.follow(people[0], people[1]).await.unwrap();
    engine.warm(people[0]).await.unwrap();
    drained(&engine).await;
    let [usual, full] = ["local function home_tidy(keys, args)", " do return redis.error_reply('OOM full') end"];
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
    // Read today: it stays as long as that is not too long ago.
    assert_eq!(engine.sweep(1).await.unwrap(), 0);
    assert_eq!(engine.sweep(0).await.unwrap(), 1);
    let mut second = engine.publish(author, &Draft::text("while away")).await.unwrap();
    let progress = second.delivery.all().await.unwrap();
    assert_eq!((progress.delivered, progress.skipped), (0, 1));
    assert_eq!(walk_home(&engine, reader, 5).await, [second.id, first.id]);
}
