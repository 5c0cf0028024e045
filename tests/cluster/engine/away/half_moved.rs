//! A slot that stands half-way between two servers, and a server that is busy with a script, delay what needs them, and
//! nothing else.

use std::time::Duration;

use tideline::cluster::{Command, NodeAddr, Request, RouterSettings};
use tideline::post::{Draft, PostRef};
use tideline::{AccountId, Engine, ErrorKind, ListQuery, StoreOptions};

use super::super::{accounts, drained, engine_with, slot_of};
use super::{
    PLACES, few_places, followed, have_each_once, nothing_is_under_way, server_of, servers, split, tenant_on,
};
use crate::harness::{Own, PATIENCE, eventually, in_the_end, order, tell};

/// An engine whose calls wait for longer than any test: what holds a place while it waits holds it to the end.
async fn patient_engine(cluster: &Own) -> Engine {
    let tenant = tenant_on(cluster);
    let router = RouterSettings { deadline: PATIENCE * 100, ..tenant.router };
    engine_with(StoreOptions { router, ..tenant }, few_places()).await
}

/// Publishes a post whose fan-out ends while others' tasks can't.
async fn reaches_all(engine: &Engine, author: AccountId) {
    let mut published = engine.publish(author, &Draft::text("elsewhere")).await.unwrap();
    in_the_end("a fan-out elsewhere", published.delivery.all()).await.unwrap();
}

/// Each like wants the post and the list of who likes it together, and there is no list yet: its task was told to try
/// again until its deadline, in a place, and then once more. A few a second kept all fan-outs of an instance waiting.
#[tokio::test]
async fn while_a_slot_stands_half_way_only_what_needs_it_waits() {
    let cluster = servers().await;
    let engine = patient_engine(&cluster).await;
    let people = accounts(&engine, 40).await;
    let (author, slot) = (people[0], slot_of(&engine, people[0]));
    let others: Vec<AccountId> =
        people.iter().copied().filter(|other| slot_of(&engine, *other) != slot).collect();
    let likers = &others[..PLACES + 4];
    let [elsewhere, reader] = others[PLACES + 4..][..2] else { panic!("too few accounts lie elsewhere") };
    followed(&engine, &[reader], &[elsewhere]).await;
    let post = engine.publish(author, &Draft::text("liked by many")).await.unwrap().id;
    drained(&engine).await;
    let from = server_of(&engine, author);
    let to = engine.store().router().primaries().into_iter().find(|addr| *addr != from).unwrap();
    cluster.begin_migration(slot, &from, &to).await.unwrap();
    for liker in likers {
        // Each holds a place until it is put aside: a fast machine is there with the next ones before.
        eventually("a place", async || engine.tasks() < PLACES).await;
        in_the_end("a like", engine.like(*liker, post)).await.unwrap();
    }
    nothing_is_under_way(&engine).await;
    reaches_all(&engine, elsewhere).await;
    assert!(engine.health().await.unwrap().journal_entries >= likers.len() as u64, "the slot is open still");
    while cluster.migrate_keys(slot, &from, &to, 100).await.unwrap() > 0 {}
    cluster.end_migration(slot, &to).await.unwrap();
    drained(&engine).await;
    let liked_by = engine.as_reader(reader).likers(post, &ListQuery::default().limit(80)).await.unwrap();
    assert_eq!(liked_by.accounts.len(), likers.len());
}

/// H158: a new post's key can't be declared, and was met half-way: whoever published heard that it may have been done,
/// and a repost was sent again until 64 deadlines were over.
#[tokio::test]
async fn who_publishes_while_a_slot_stands_half_way_hears_that_nothing_was_written() {
    let cluster = servers().await;
    let tenant = tenant_on(&cluster);
    let router = RouterSettings { deadline: Duration::from_secs(4), ..tenant.router };
    let engine = engine_with(StoreOptions { router, ..tenant }, few_places()).await;
    let people = accounts(&engine, 40).await;
    let (author, slot) = (people[0], slot_of(&engine, people[0]));
    let other = people.iter().copied().find(|other| slot_of(&engine, *other) != slot).unwrap();
    followed(&engine, &[other], &[author]).await;
    followed(&engine, &[author], &[other]).await;
    // Every key that publishing declares is there, so it runs where the slot still is: also a set of reposts, and an
    // entry that nobody understands.
    let reposted = async |text: &str| {
        let id = engine.publish(other, &Draft::text(text)).await.unwrap().id;
        Draft::repost(PostRef { id, author: other })
    };
    let (first, second) = (reposted("first").await, reposted("second").await);
    engine.publish(author, &first).await.unwrap();
    drained(&engine).await;
    let keys = engine.store().keys();
    let tag = keys.buckets().tag(keys.buckets().of_account(author.get()));
    let journal = format!("{}{{{tag}}}j", keys.prefix());
    let entry = Command::new("HSET").arg(journal.as_bytes()).arg(&[7; 8]).arg(b"nobody..?");
    engine.store().router().call(Request::write(slot, entry)).await.unwrap();
    let from = server_of(&engine, author);
    let to = engine.store().router().primaries().into_iter().find(|addr| *addr != from).unwrap();
    cluster.begin_migration(slot, &from, &to).await.unwrap();
    let drafts = [Draft::text("alone"), Draft::text("with a token").token("token"), second];
    for draft in &drafts {
        let refused = in_the_end("a publish", engine.publish(author, draft)).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unavailable, "{refused}");
    }
    while cluster.migrate_keys(slot, &from, &to, 100).await.unwrap() > 0 {}
    cluster.end_migration(slot, &to).await.unwrap();
    for draft in &drafts {
        let published = in_the_end("a publish", engine.publish(author, draft)).await.unwrap();
        assert!(!published.is_repeat);
    }
    assert_eq!(engine.stored().account(author).await.unwrap().posts, 1 + drafts.len() as u64);
}

async fn is_busy(server: &NodeAddr) -> bool {
    tell(server, "PING").await.starts_with("-BUSY")
}

#[tokio::test]
async fn a_server_that_is_busy_with_a_script_keeps_only_its_own_waiting() {
    let cluster = servers().await;
    let server = cluster.nodes()[2].addr();
    let engine = patient_engine(&cluster).await;
    let people = accounts(&engine, 40).await;
    let (there, living) = split(&engine, &people, &server);
    let (authors, living, there) = (&living[..4], &living[4..7], &there[..2]);
    followed(&engine, &[living, there].concat(), authors).await;
    order(&server, "CONFIG SET lua-time-limit 50").await;
    // It says nothing until it is killed.
    tell(&server, "EVAL \"while true do end\" 0").await;
    eventually("the server is busy", async || is_busy(&server).await).await;
    let mut posts = Vec::new();
    for n in 0..PLACES + 4 {
        let draft = Draft::text(format!("post {n}"));
        eventually("a place", async || engine.tasks() < PLACES).await;
        let mut published = in_the_end("a publish", engine.publish(authors[n % 4], &draft)).await.unwrap();
        in_the_end("the living", published.delivery.first(living.len() as u64)).await.unwrap();
        posts.push(published.id);
    }
    nothing_is_under_way(&engine).await;
    assert!(is_busy(&server).await);
    have_each_once(&engine, living, &posts).await;
    order(&server, "SCRIPT KILL").await;
    drained(&engine).await;
    have_each_once(&engine, &[living, there].concat(), &posts).await;
}
