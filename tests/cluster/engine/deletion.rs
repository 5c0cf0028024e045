//! Accounts that go.

use std::time::Duration;
use tideline::post::{Draft, PostRef};

use tideline::{EngineSettings, ErrorKind, Query};

use super::{accounts, drained, engine, engine_with, small, tenant, walk_home};

#[tokio::test]
async fn a_deleted_account_leaves_no_trace() {
    // One whose followers are spread, and one that follows, is followed, mutes and is reposted.
    let engine = engine().await;
    let people = accounts(&engine, 60).await;
    let gone = people[0];
    for reader in &people[1..] {
        engine.follow(*reader, gone).await.unwrap();
        engine.warm(*reader).await.unwrap();
    }
    engine.follow(gone, people[1]).await.unwrap();
    engine.mute(gone, people[2]).await.unwrap();
    drained(&engine).await;
    let mut posts = Vec::new();
    for n in 0..20 {
        posts.push(engine.publish(gone, &Draft::text(format!("post {n}"))).await.unwrap().id);
    }
    let repost = Draft::repost(PostRef { id: posts[0], author: gone });
    engine.publish(people[3], &repost).await.unwrap();
    let other = engine.publish(people[1], &Draft::text("still here")).await.unwrap().id;
    engine.delete_account(gone).await.unwrap();

    // At once for everybody, though its traces are still being taken away.
    assert_eq!(engine.account(gone).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(walk_home(&engine, people[4], 20).await, []);
    let refused = engine.publish(gone, &Draft::text("a ghost")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    assert_eq!(engine.follow(people[5], gone).await.unwrap_err().kind(), ErrorKind::NotFound);
    drained(&engine).await;

    for reader in &people[1..] {
        assert!(!engine.is_following(*reader, gone).await.unwrap());
    }
    assert_eq!(engine.counts(gone).await.unwrap(), (0, 0));
    assert_eq!(engine.counts(people[1]).await.unwrap(), (0, 0));
    for id in posts {
        assert_eq!(engine.post(id).await.unwrap(), None);
    }
    assert_eq!(walk_home(&engine, people[1], 20).await, [other]);
    assert_eq!(walk_home(&engine, people[3], 20).await, []);
    assert_eq!(engine.delete_account(gone).await.unwrap_err().kind(), ErrorKind::NotFound);
    let profile = engine.read(people[1], &Query::profile(gone)).await.unwrap();
    assert!(profile.posts.is_empty());
}

/// An instance remembered an account and a repost of its post. The account hid from a reader, and was deleted: the list
/// of whom it hides from went, and the reader saw the repost for as long as the instance remembered.
#[tokio::test]
async fn what_a_deleted_account_hid_from_somebody_stays_hidden_while_it_is_remembered() {
    let settings = EngineSettings { visible_within: Duration::from_secs(600), ..small() };
    let engine = engine_with(tenant(40), settings).await;
    let people = accounts(&engine, 4).await;
    let (gone, between, one, other) = (people[0], people[1], people[2], people[3]);
    for reader in [one, other] {
        engine.follow(reader, between).await.unwrap();
    }
    engine.hide_from(gone, other).await.unwrap();
    let post = engine.publish(gone, &Draft::text("not for everybody")).await.unwrap().id;
    let repost = Draft::repost(PostRef { id: post, author: gone });
    let repost = engine.publish(between, &repost).await.unwrap().id;
    drained(&engine).await;
    assert_eq!(walk_home(&engine, one, 20).await, [repost]);
    engine.delete_account(gone).await.unwrap();
    drained(&engine).await;

    // Still remembered, and what others did may show late.
    assert_eq!(walk_home(&engine, one, 20).await, [repost]);
    assert_eq!(walk_home(&engine, other, 20).await, []);
}
