//! What messages and posts into groups cost beside a plain post, with limits that are never reached and without: rounds
//! that take turns; and what each of them takes on the wire and in memory. `cargo bench --bench acts`.

#![allow(clippy::cast_precision_loss, reason = "figures for people")]
#![allow(missing_docs, reason = "a benchmark")]

mod support;

use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use support::{account, cluster, compare_rounds, measure, own_cpu, used_memory, wire_bytes};
use tideline::cluster::{Replicas, Router, RouterSettings};
use tideline::post::Draft;
use tideline::{
    AccountId, AccountKind, ActLimit, ActLimits, Engine, EngineSettings, NewAccount, StoreOptions,
};

const WRITERS: u64 = 500;
const POSTS: u64 = 6_000;
const AT_ONCE: usize = 64;
const ROUNDS: usize = 9;
const CHAT_OF_MANY: u64 = 10;

/// Where something is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Profile,
    ChatOfTwo,
    ChatOfMany,
    Group,
}

/// What is measured, the first beside each of the others.
const WAYS: [(&str, Place, bool); 7] = [
    ("a post that nobody follows", Place::Profile, false),
    ("the same, with limits", Place::Profile, true),
    ("a message to one", Place::ChatOfTwo, false),
    ("the same, with limits", Place::ChatOfTwo, true),
    ("a message to nine", Place::ChatOfMany, false),
    ("a post into a group without other members", Place::Group, false),
    ("the same, with limits", Place::Group, true),
];

/// Where each writer writes.
struct Writer {
    id: AccountId,
    chats: [AccountId; 2],
    group: AccountId,
}

impl Writer {
    fn draft(&self, place: Place) -> Draft {
        let draft = Draft::text("a few words about the sea and the wind");
        match place {
            Place::Profile => draft,
            Place::ChatOfTwo => draft.chat(self.chats[0]),
            Place::ChatOfMany => draft.chat(self.chats[1]),
            Place::Group => draft.group(self.group),
        }
    }
}

#[tokio::main]
async fn main() {
    let cluster = cluster(3).await;
    let router = RouterSettings { replicas: Replicas::Absent, ..RouterSettings::default() };
    let options = StoreOptions { router, ..StoreOptions::new(cluster.urls()) };
    let mut engines = Vec::new();
    for limits in [ActLimits::default(), far()] {
        let settings = EngineSettings { limits, ..EngineSettings::default() };
        let builder = Engine::builder().store(options.clone()).settings(settings);
        engines.push(builder.start().await.expect("an engine"));
    }
    let writers: Vec<Writer> =
        stream::iter(0..WRITERS).map(|n| writer(&engines[0], n)).buffer_unordered(AT_ONCE).collect().await;
    let mut costs = vec![Vec::new(); WAYS.len()];
    let mut taken = vec![[0.0; 2]; WAYS.len()];
    for round in 0..=ROUNDS {
        for (way, (_, place, is_limited)) in WAYS.iter().enumerate() {
            let engine = &engines[usize::from(*is_limited)];
            let before = resources(engine.store().router()).await;
            let (cost, ()) = measure(&cluster, own_cpu, write(engine, &writers, *place)).await;
            let after = resources(engine.store().router()).await;
            // The first round warms up.
            if round > 0 {
                costs[way].push(cost);
                let each = |n: usize| (after[n] - before[n]) / (ROUNDS as f64 * POSTS as f64);
                taken[way] = [taken[way][0] + each(0), taken[way][1] + each(1)];
            }
        }
    }
    println!("{POSTS} a round by {AT_ONCE} at once; {ROUNDS} rounds that took turns");
    let posts = usize::try_from(POSTS).expect("few");
    for (way, (name, ..)) in WAYS.iter().enumerate() {
        println!();
        if way > 0 {
            compare_rounds([WAYS[0].0, name], [&costs[0], &costs[way]], posts);
        }
        println!("{name}: {:.0} bytes on the wire, {:.0} in memory", taken[way][0], taken[way][1]);
    }
    cluster.down().await.expect("the cluster ends");
}

/// Limits that nobody reaches.
fn far() -> ActLimits {
    let far = Some(ActLimit::of(u16::MAX, Duration::from_secs(86_400)));
    ActLimits {
        posts: far,
        direct_posts: far,
        group_posts: far,
        mentions_of_strangers: far,
        ..ActLimits::default()
    }
}

/// An account with its chats and its group.
async fn writer(engine: &Engine, n: u64) -> Writer {
    let [id, group] = [account(n), account(1_000_000 + n)];
    let others: Vec<AccountId> = (1..CHAT_OF_MANY).map(|of| account((of + 1) * 10_000 + n)).collect();
    for id in [id].iter().chain(&others) {
        let new = NewAccount { id: Some(*id), ..NewAccount::default() };
        engine.create_account(new).await.expect("an account");
    }
    let new = NewAccount { id: Some(group), kind: AccountKind::Group, ..NewAccount::default() };
    engine.create_group(id, new).await.expect("a group");
    let chats = [
        engine.open_chat(id, &others[..1], None).await.expect("a chat").value,
        engine.open_chat(id, &others, None).await.expect("a chat").value,
    ];
    Writer { id, chats, group }
}

async fn write(engine: &Engine, writers: &[Writer], place: Place) {
    let write = async |writer: &Writer| {
        engine.publish(writer.id, &writer.draft(place)).await.expect("it is written");
    };
    let all = writers.iter().cycle().take(usize::try_from(POSTS).expect("few"));
    stream::iter(all).map(write).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
}

/// Bytes that the servers have received and sent, and those that they hold.
async fn resources(router: &Router) -> [f64; 2] {
    [wire_bytes(router).await as f64, used_memory(router).await as f64]
}
