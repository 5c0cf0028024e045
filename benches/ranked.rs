//! What a page by importance costs beside one by time, of readers who come again: rounds that take turns.
//! `cargo bench --bench ranked`.

#![allow(missing_docs, reason = "a benchmark")]

mod support;

use futures::stream::{self, StreamExt as _};
use support::{account, cluster, compare_rounds, measure, own_cpu, wire_bytes};
use tideline::cluster::{Replicas, RouterSettings};
use tideline::post::Draft;
use tideline::{
    AccountId, Engine, ImportedEdge, ImportedPost, NewAccount, PostId, Query, RankedFeed, RankedQuery,
    StoreOptions,
};

const AUTHORS: u64 = 60;
const READERS: u64 = 100;
/// More than a window holds, together.
const POSTS_EACH: u64 = 10;
/// Likes of each reader: what its affinity is counted from.
const LIKES: usize = 20;
const PAGES: u64 = 4_000;
const PAGE: usize = 20;
const AT_ONCE: usize = 16;
const ROUNDS: usize = 15;

fn author(n: u64) -> AccountId {
    account(1 + n)
}

fn reader(n: u64) -> AccountId {
    account(10_000 + n % READERS)
}

#[tokio::main]
async fn main() {
    let cluster = cluster(3).await;
    let router = RouterSettings { replicas: Replicas::Absent, ..RouterSettings::default() };
    let options = StoreOptions { router, ..StoreOptions::new(cluster.urls()) };
    let engine = stock(&options).await;
    let mut rounds = [const { Vec::new() }; 2];
    let (router, mut wire) = (engine.store().router(), [0; 2]);
    let by_time = Query::home().limit(PAGE).hydrated();
    let by_importance = RankedQuery::of(RankedFeed::Home).limit(PAGE);
    for round in 0..=ROUNDS {
        for is_ranked in [false, true] {
            let page = async |n| {
                let reader = engine.as_reader(reader(n));
                let posts = match is_ranked {
                    true => reader.read_ranked(&by_importance).await.expect("a page").posts,
                    false => reader.read(&by_time).await.expect("a page").posts,
                };
                assert_eq!(posts.len(), PAGE);
            };
            let pages = stream::iter(0..PAGES).map(page).buffer_unordered(AT_ONCE).collect::<Vec<()>>();
            let before = wire_bytes(router).await;
            let (cost, _) = measure(&cluster, own_cpu, pages).await;
            let sent = wire_bytes(router).await - before;
            // The first round warms up.
            if round > 0 {
                rounds[usize::from(is_ranked)].push(cost);
                wire[usize::from(is_ranked)] += sent;
            }
        }
    }
    println!(
        "a page of {PAGE} posts of {AUTHORS} authors, by {READERS} readers; {ROUNDS} rounds that took turns"
    );
    let pages = usize::try_from(PAGES).expect("few");
    compare_rounds(["by time", "by importance"], [&rounds[0], &rounds[1]], pages);
    let [by_time, by_importance] = wire.map(|bytes| bytes / (PAGES * ROUNDS as u64));
    println!("bytes on the wire: {by_time} by time, {by_importance} by importance");
    cluster.down().await.expect("the cluster ends");
}

async fn stock(options: &StoreOptions) -> Engine {
    let mut importer = Engine::builder().store(options.clone()).import().await.expect("an import");
    let people = (0..AUTHORS).map(author).chain((0..READERS).map(reader));
    let new = |id| NewAccount { id: Some(id), ..NewAccount::default() };
    importer.accounts(&people.map(new).collect::<Vec<_>>()).await.expect("accounts");
    let mut posts: Vec<PostId> = Vec::new();
    for n in 0..POSTS_EACH {
        let post = |by| ImportedPost {
            author: author(by),
            created_ms: 1_700_000_000_000 + n * 60_000 + by,
            draft: Draft::text("a few words about the sea and the wind"),
        };
        let some: Vec<_> = (0..AUTHORS).map(post).collect();
        posts.extend(importer.posts(&some).await.expect("posts"));
    }
    let edge = |(reader, author)| ImportedEdge { reader, author, since_ms: 1_600_000_000_000 };
    let edges = (0..READERS).flat_map(|n| (0..AUTHORS).map(move |by| (reader(n), author(by))));
    importer.edges(&edges.map(edge).collect::<Vec<_>>()).await.expect("edges");
    importer.finish().await.expect("the end of the import");
    let engine = Engine::builder().store(options.clone()).start().await.expect("an engine");
    for n in 0..READERS {
        let liked = posts.iter().rev().step_by(usize::try_from(n % 7 + 1).expect("few")).take(LIKES);
        for post in liked {
            engine.like(reader(n), *post).await.expect("a like");
        }
    }
    engine
}
