//! What it costs a post that it counts against limits: posts of accounts that nobody follows, 64 at once, with limits
//! that are never reached and without, rounds that take turns.
//!
//! `cargo bench --bench limits -- FOLLOWERS`: each account has so many followers with homes, which the posts come into.

#![allow(missing_docs, reason = "a benchmark")]

mod support;

use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use support::{account, cluster, compare_rounds, measure, own_cpu};
use tideline::cluster::{Replicas, RouterSettings};
use tideline::post::Draft;
use tideline::{ActLimit, ActLimits, Engine, EngineSettings, NewAccount, PostAck, Query, StoreOptions};

const AUTHORS: u64 = 500;
const POSTS: u64 = 2_500;
const AT_ONCE: usize = 64;
const ROUNDS: usize = 60;

#[tokio::main]
async fn main() {
    let cluster = cluster(3).await;
    let far = Some(ActLimit::of(u16::MAX, Duration::from_secs(86_400)));
    // Two that are alike tell how far apart that lies by itself.
    let none = ActLimits::default();
    let one = ActLimits { posts: far, ..none };
    let names = [
        "no limits",
        "another instance without",
        "posts",
        "posts, direct posts, mentions of strangers, follows, reports",
    ];
    let all = ActLimits {
        direct_posts: far,
        group_posts: far,
        mentions_of_strangers: far,
        follows: far,
        reports: far,
        ..one
    };
    let mut engines = Vec::new();
    for limits in [none, none, one, all] {
        let router = RouterSettings { replicas: Replicas::Absent, ..RouterSettings::default() };
        let settings = EngineSettings { limits, ..EngineSettings::default() };
        let store = StoreOptions { router, ..StoreOptions::new(cluster.urls()) };
        engines.push(Engine::builder().store(store).settings(settings).start().await.expect("an engine"));
    }
    for n in 1..=AUTHORS {
        let new = NewAccount { id: Some(account(n)), ..NewAccount::default() };
        engines[0].create_account(new).await.expect("an account");
    }
    let followers = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(0);
    followed(&engines[0], followers).await;
    let mut costs = vec![Vec::new(); engines.len()];
    for round in 0..=ROUNDS {
        // Each comes behind each other one as often: what one has left to be done counts with the next.
        let mut turns: Vec<usize> = (0..engines.len()).collect();
        turns.rotate_left(round % engines.len());
        if round % 2 == 1 {
            turns.reverse();
        }
        for which in turns {
            let engine = &engines[which];
            let post = async |n: u64| {
                let draft = Draft::text("a few words about the sea and the wind");
                let author = account(n % AUTHORS + 1);
                if followers == 0 {
                    engine.publish(author, &draft).await.expect("a post");
                } else {
                    engine.publish_with(author, &draft, PostAck::Delivered).await.expect("a delivered post");
                }
            };
            let posting = stream::iter(0..POSTS).map(post).buffer_unordered(AT_ONCE).collect::<Vec<()>>();
            let (cost, _) = measure(&cluster, own_cpu, posting).await;
            // The first round warms up.
            if round > 0 {
                costs[which].push(cost);
            }
        }
    }
    println!(
        "{POSTS} posts a round by {AT_ONCE} at once, to {followers} followers; {ROUNDS} rounds that took turns"
    );
    let posts = usize::try_from(POSTS).expect("few");
    for (name, limited) in names.iter().zip(&costs).skip(1) {
        compare_rounds([names[0], name], [&costs[0], limited], posts);
    }
    cluster.down().await.expect("the cluster ends");
}

/// Has so many accounts with homes follow each author.
async fn followed(engine: &Engine, followers: u64) {
    for n in 1..=followers {
        let reader = account(AUTHORS + n);
        let new = NewAccount { id: Some(reader), ..NewAccount::default() };
        engine.create_account(new).await.expect("a reader");
        for author in 1..=AUTHORS {
            engine.follow(reader, account(author)).await.expect("a follow");
        }
        engine.as_reader(reader).read(&Query::home()).await.expect("a home");
    }
    engine.drained(Duration::from_secs(60)).await.expect("all is at rest");
}
