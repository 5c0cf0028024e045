//! How homes lie in the servers' memory.

use std::collections::BTreeMap;

use futures::stream::{self, StreamExt as _};
use tideline::post::Draft;
use tideline::{EngineSettings, NewAccount, StoreOptions};
use tideline_local_cluster::ClusterSpec;

use super::{accounts, drained, engine_with, walk_home};
use crate::harness::{eventually, own};

const READERS: usize = 40;
const AUTHORS: usize = 4;

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
    let mut nodes = BTreeMap::new();
    // The last homes are tidied when the last delivery is struck.
    eventually("homes are within their list nodes", async || {
        nodes.clear();
        for reader in readers {
            let home = engine.inspect(*reader).await.unwrap().home;
            let held = engine.stored_home(*reader).await.unwrap();
            assert!(held.len() >= home_posts as usize, "a home of {home_posts} holds {}", held.len());
            *nodes.entry(home.list_nodes.expect("DEBUG is allowed on this cluster")).or_default() += 1;
        }
        nodes.keys().all(|n| *n <= node_max)
    })
    .await;
    assert_eq!(walk_home(&engine, readers[0], 100).await.len(), posts);
    nodes
}

#[tokio::test]
async fn homes_of_every_size_hold_what_they_guarantee_and_those_of_400_are_one_list_node() {
    let cluster = own(ClusterSpec::ephemeral().config("enable-debug-command", "yes")).await;
    for (home_posts, posts, node_max) in [(112, 900, 1), (400, 1_300, 1), (1_000, 1_500, 4)] {
        let options = crate::harness::options(cluster.urls());
        let nodes = fill_up(options, home_posts, posts, node_max).await;
        println!("homes of {home_posts}: list nodes {nodes:?}");
        assert!(nodes.keys().all(|n| *n <= node_max), "homes of {home_posts}: {nodes:?}");
    }
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
