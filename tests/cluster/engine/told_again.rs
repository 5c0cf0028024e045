//! What an account was told of long ago, and has cleared, isn't told again.

use std::time::Duration;

use tideline::cluster::{Command, Request};
use tideline::post::{Draft, Edit};
use tideline::{AccountId, Engine, EngineSettings, NotificationKind, Query};

use super::notifications::told;
use super::{accounts, drained, engine_with, small, tenant};
use crate::harness::eventually;

async fn telling() -> Engine {
    let settings = EngineSettings { keeps_notifications: true, mentions_max: 20, ..small() };
    engine_with(tenant(40), settings).await
}

/// A post that has left a list of mentions for newer ones came onto it again with each edit that named something more,
/// and its owner was told of it as if it was new.
#[tokio::test]
async fn an_edit_tells_whom_it_adds_and_nobody_else() {
    let engine = telling().await;
    let [mallory, ada, cleo] = accounts(&engine, 3).await[..] else { panic!("three were made") };
    let says =
        async |text: &str| engine.publish(mallory, &Draft::text(text).mentions([ada])).await.unwrap().id;
    let old = says("@ada remember me").await;
    for n in 0..40 {
        says(&format!("@ada {n}")).await;
    }
    drained(&engine).await;
    let is_on_list = async || {
        let query = Query::mentions().limit(100);
        engine.as_reader(ada).read(&query).await.unwrap().ids().contains(&old)
    };
    assert!(!is_on_list().await);
    engine.clear_notifications(ada).await.unwrap();
    let edit = async |edit: Edit| {
        engine.edit(mallory, old, &edit).await.unwrap();
        drained(&engine).await;
    };
    for n in 0..3 {
        edit(Edit { hashtags: Some(vec![format!("tide{n}")]), ..Edit::default() }).await;
        assert_eq!((told(&engine, ada).await, is_on_list().await), (vec![], false), "{n}");
    }
    let both = vec![ada, cleo];
    edit(Edit { mentions: Some(both), ..Edit::default() }).await;
    assert_eq!(told(&engine, cleo).await, [(NotificationKind::Mention, mallory, Some(old))]);
    assert_eq!(told(&engine, ada).await, []);
}

/// Edited at once a post is on the lists of both: what the edit has left does nothing for what the post has.
#[tokio::test]
async fn whom_a_post_names_is_told_though_it_is_edited_at_once() {
    let engine = telling().await;
    let [mallory, ada, cleo] = accounts(&engine, 3).await[..] else { panic!("three were made") };
    for n in 0..20 {
        let post = engine.publish(mallory, &Draft::text("@ada").mentions([ada])).await.unwrap().id;
        let more = Edit { mentions: Some(vec![ada, cleo]), ..Edit::default() };
        engine.edit(mallory, post, &more).await.unwrap();
        drained(&engine).await;
        for account in [ada, cleo] {
            let newest = told(&engine, account).await.first().copied();
            assert_eq!(newest, Some((NotificationKind::Mention, mallory, Some(post))), "{n}");
        }
    }
}

/// A pull mark that had stayed since the author was pulled went with the next page of its follower, and the author was
/// told of a follow of years ago.
#[tokio::test]
async fn a_mark_that_goes_late_tells_nobody_of_a_follow_of_long_ago() {
    let engine = telling().await;
    let [author, reader] = accounts(&engine, 2).await[..] else { panic!("two were made") };
    engine.follow(reader, author).await.unwrap();
    engine.publish(author, &Draft::text("low tide")).await.unwrap();
    drained(&engine).await;
    assert_eq!(told(&engine, author).await, [(NotificationKind::Follow, reader, None)]);
    engine.clear_notifications(author).await.unwrap();
    let home = async || engine.as_reader(reader).read(&Query::home()).await.unwrap().ids().len();
    eventually("the home is whole", async || home().await == 1).await;
    let marks = async |command: Command| {
        let keys = engine.store().keys();
        let slot = keys.buckets().slot(keys.buckets().of_account(reader.get()));
        engine.store().router().call(Request::write(slot, command)).await.unwrap()
    };
    let key = |letter: char| key_of(&engine, letter, reader);
    marks(Command::new("HSET").arg(&key('m')).arg(&author.get().to_be_bytes()).arg(b"as ever!")).await;
    marks(Command::new("HSET").arg(&key('a')).arg("t").arg(b"renewed!")).await;
    eventually("the mark has gone", async || {
        home().await;
        drained(&engine).await;
        marks(Command::new("HLEN").arg(&key('m'))).await.int().unwrap() == 0
    })
    .await;
    assert_eq!(told(&engine, author).await, []);
    // One that follows anew is told of anew.
    engine.unfollow(reader, author).await.unwrap();
    drained(&engine).await;
    tokio::time::sleep(Duration::from_millis(2)).await;
    engine.follow(reader, author).await.unwrap();
    drained(&engine).await;
    assert_eq!(told(&engine, author).await, [(NotificationKind::Follow, reader, None)]);
}

fn key_of(engine: &Engine, letter: char, account: AccountId) -> Vec<u8> {
    let keys = engine.store().keys();
    let tag = keys.buckets().tag(keys.buckets().of_account(account.get()));
    let key = format!("{}{{{tag}}}{letter}", keys.prefix());
    [key.as_bytes(), &account.get().to_be_bytes()].concat()
}
