//! What a delivery costs that a group makes, beside one by an account that the same accounts follow: rounds that take
//! turns. `cargo bench --bench groups -- 1000000`: so many members; 100,000 without a number.

#![allow(clippy::cast_possible_truncation, reason = "small numbers")]
#![allow(missing_docs, reason = "a benchmark")]

mod support;

use support::{account, cluster, compare_rounds, measure, own_cpu};
use tideline::cluster::{Replicas, RouterSettings};
use tideline::post::Draft;
use tideline::{
    AccountId, AccountKind, AsItIs, Engine, GroupRole, ImportedEdge, NewAccount, PostAck, StoreOptions,
};

const MEMBERS: u64 = 100_000;
/// Entries of each home: few, so that many homes have room.
const HOME: u64 = 20;
const ROUNDS: usize = 15;
const AT_ONCE: u64 = 2_000;

fn author() -> AccountId {
    account(1)
}

/// In the author's bucket, so that both write at the same server.
fn group(engine: &Engine) -> AccountId {
    let buckets = engine.store().keys().buckets();
    let bucket = |id: AccountId| buckets.of_account(id.get());
    (2..).map(account).find(|id| bucket(*id) == bucket(author())).expect("ids are many")
}

fn member(n: u64) -> AccountId {
    account(1_000_000 + n)
}

#[tokio::main]
async fn main() {
    let members = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(MEMBERS);
    let cluster = cluster(3).await;
    let router = RouterSettings { replicas: Replicas::Absent, ..RouterSettings::default() };
    let options = StoreOptions { router, ..StoreOptions::new(cluster.urls()) };
    let (engine, group) = stock(&options, members).await;
    let mut rounds = [const { Vec::new() }; 2];
    for round in 0..=ROUNDS {
        let by_account = Draft::text("a few words about the sea and the wind");
        let by_group = by_account.clone().group(group);
        for (which, (writer, draft)) in
            [(author(), by_account), (member(0), by_group)].into_iter().enumerate()
        {
            let delivery = engine.publish_with(writer, &draft, PostAck::Delivered);
            let (cost, told) = measure(&cluster, own_cpu, delivery).await;
            told.expect("a delivery");
            // The first round warms up.
            if round > 0 {
                rounds[which].push(cost);
            }
        }
    }
    println!("a post to {members} homes, for each of them; {ROUNDS} rounds that took turns");
    compare_rounds(["by an account", "into a group"], [&rounds[0], &rounds[1]], members as usize);
    cluster.down().await.expect("the cluster ends");
}

/// An account and a group that the same accounts follow, all of whom have homes.
async fn stock(options: &StoreOptions, members: u64) -> (Engine, AccountId) {
    let start = async || {
        let builder = Engine::builder().store(options.clone()).policy(AsItIs);
        builder.start().await.expect("an engine")
    };
    let first = start().await;
    let group = group(&first);
    first.shutdown(std::time::Duration::from_secs(10)).await.expect("it ends");
    let mut importer = Engine::builder().store(options.clone()).import().await.expect("an import");
    let new = |id, kind| NewAccount { id: Some(id), kind, ..NewAccount::default() };
    importer
        .accounts(&[new(author(), AccountKind::Person), new(group, AccountKind::Group)])
        .await
        .expect("two");
    for first in (0..members).step_by(AT_ONCE as usize) {
        let some = || (first..members.min(first + AT_ONCE)).map(member);
        let accounts: Vec<_> = some().map(|id| new(id, AccountKind::Person)).collect();
        importer.accounts(&accounts).await.expect("accounts");
        let edge = |reader, author| ImportedEdge { reader, author, since_ms: 1_600_000_000_000 };
        let edges: Vec<_> = some().flat_map(|id| [edge(id, author()), edge(id, group)]).collect();
        importer.edges(&edges).await.expect("edges");
    }
    importer.finish().await.expect("the end of the import");
    let engine = start().await;
    engine.set_group_role(group, group, member(0), Some(GroupRole::Owner)).await.expect("an owner");
    let posts: Vec<(u64, u64)> = (0..HOME).map(|n| ((1_700_000_000_000 + n) << 16, author().get())).collect();
    for first in (0..members).step_by(AT_ONCE as usize) {
        let homes: Vec<_> =
            (first..members.min(first + AT_ONCE)).map(|n| (member(n), posts.clone())).collect();
        engine.stock_homes(&homes).await.expect("homes");
    }
    (engine, group)
}
