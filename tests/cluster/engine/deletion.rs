//! Accounts that go.

use std::time::Duration;

use tideline::post::{Draft, PostRef, Visibility};
use tideline::sharded::SortedSet;
use tideline::{AccountId, AccountState, AccountUpdate, Engine, EngineSettings, ErrorKind, PostId, Query};

use super::{accounts, all_keys, at_key, drained, engine, engine_with, small, tenant, walk_home};

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
    assert_eq!(engine.stored().account(gone).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(walk_home(&engine, people[4], 20).await, []);
    let refused = engine.publish(gone, &Draft::text("a ghost")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    assert_eq!(engine.follow(people[5], gone).await.unwrap_err().kind(), ErrorKind::NotFound);
    drained(&engine).await;

    for reader in &people[1..] {
        assert!(!engine.stored().is_following(*reader, gone).await.unwrap());
    }
    assert_eq!(engine.stored().counts(gone).await.unwrap(), (0, 0));
    assert_eq!(engine.stored().counts(people[1]).await.unwrap(), (0, 0));
    for id in posts {
        assert_eq!(engine.stored().post(id).await.unwrap(), None);
    }
    assert_eq!(walk_home(&engine, people[1], 20).await, [other]);
    assert_eq!(walk_home(&engine, people[3], 20).await, []);
    assert_eq!(engine.delete_account(gone).await.unwrap_err().kind(), ErrorKind::NotFound);
    let profile = engine.as_reader(people[1]).read(&Query::profile(gone)).await.unwrap_err();
    assert_eq!(profile.kind(), ErrorKind::NotFound);
}

/// Every key of the tenant that has this account's id in its name, or ends with it as a number, on all servers.
async fn keys_of(engine: &Engine, id: AccountId) -> Vec<String> {
    let (raw, decimal) = (id.get().to_be_bytes(), format!(":{id}"));
    let mut keys = all_keys(engine).await;
    keys.retain(|key| key.windows(8).any(|part| part == raw) || key.ends_with(decimal.as_bytes()));
    keys.iter().map(|key| key.escape_ascii().to_string()).collect()
}

fn list(engine: &Engine, what: &str, post: PostId) -> SortedSet<PostRef> {
    engine.store().sets().of_post(post, what).unwrap()
}

#[tokio::test]
async fn of_a_deleted_account_only_its_record_is_left_and_its_replies_leave_others_lists() {
    let engine = engine().await;
    let people = accounts(&engine, 60).await;
    let [gone, other, third] = people[..3] else { unreachable!() };
    engine
        .update_account(gone, &AccountUpdate { is_locked: Some(true), ..AccountUpdate::default() })
        .await
        .unwrap();
    for reader in &people[1..55] {
        engine.follow(*reader, gone).await.unwrap();
        engine.approve(gone, *reader).await.unwrap();
    }
    // These wait for an answer that never comes; it waits for another one's.
    for reader in &people[55..] {
        engine.follow(*reader, gone).await.unwrap();
    }
    engine
        .update_account(third, &AccountUpdate { is_locked: Some(true), ..AccountUpdate::default() })
        .await
        .unwrap();
    engine.follow(gone, third).await.unwrap();
    engine.follow(gone, other).await.unwrap();
    engine.warm(gone).await.unwrap();
    let parent =
        PostRef { id: engine.publish(other, &Draft::text("a question")).await.unwrap().id, author: other };
    engine.publish(gone, &Draft::text("an answer").reply_to(parent)).await.unwrap();
    engine.publish(gone, &Draft::repost(parent)).await.unwrap();
    let kept = engine.publish(third, &Draft::text("mine").reply_to(parent)).await.unwrap().id;
    let mine = Draft::text("mine").visibility(Visibility::Public);
    let own = PostRef { id: engine.publish(gone, &mine).await.unwrap().id, author: gone };
    engine.publish(other, &Draft::text("well").reply_to(own)).await.unwrap();
    engine.publish(third, &Draft::repost(own)).await.unwrap();
    drained(&engine).await;
    assert_eq!(list(&engine, "replies", parent.id).len().await.unwrap(), 2);
    assert_eq!(list(&engine, "reposts", parent.id).len().await.unwrap(), 1);
    assert_eq!(list(&engine, "replies", own.id).len().await.unwrap(), 1);
    let keys = keys_of(&engine, gone).await;
    assert!(keys.len() > 10, "the search finds too few: {keys:?}");

    engine.delete_account(gone).await.unwrap();
    drained(&engine).await;
    let replies = list(&engine, "replies", parent.id);
    assert_eq!(replies.len().await.unwrap(), 1);
    assert!(replies.score(&PostRef { id: kept, author: third }).await.unwrap().is_some());
    assert_eq!(list(&engine, "reposts", parent.id).len().await.unwrap(), 0);
    for what in ["replies", "reposts"] {
        assert_eq!(list(&engine, what, own.id).len().await.unwrap(), 0);
    }
    assert_eq!(engine.stored().follow_requests(third).await.unwrap(), []);
    for reader in &people[55..] {
        assert_eq!(at_key(&engine, 'r', *reader, "HLEN", &[]).await.int().unwrap(), 0, "a request is left");
    }
    let keys = keys_of(&engine, gone).await;
    assert_eq!(keys.len(), 1, "only the record stays: {keys:?}");
}

#[tokio::test]
async fn a_deleted_account_does_nothing_new_and_reading_creates_nothing_for_it() {
    let engine = engine().await;
    let people = accounts(&engine, 3).await;
    let [gone, other, suspended] = people[..] else { unreachable!() };
    let state = AccountUpdate { state: Some(AccountState::Suspended), ..AccountUpdate::default() };
    engine.follow(suspended, other).await.unwrap();
    engine.update_account(suspended, &state).await.unwrap();
    // Suspended: it takes back, and adds nothing.
    assert_eq!(engine.mute(suspended, other).await.unwrap_err().kind(), ErrorKind::Invalid);
    engine.unfollow(suspended, other).await.unwrap();
    assert_eq!(engine.follow(suspended, other).await.unwrap_err().kind(), ErrorKind::Invalid);
    drained(&engine).await;

    // As it is while its traces are being taken away: the record says "deleted", and still has its stamps.
    at_key(&engine, 'a', gone, "HSET", &["s", "d"]).await;
    assert_eq!(engine.follow(gone, other).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(engine.block(gone, other).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(engine.approve(gone, other).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(engine.warm(gone).await.unwrap_err().kind(), ErrorKind::NotFound);
    // Another device still reads: that fills no home and notes no read.
    drop(engine.as_reader(gone).read(&Query::home()).await);
    drained(&engine).await;
    let keys = keys_of(&engine, gone).await;
    assert_eq!(keys.len(), 1, "only the record: {keys:?}");
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
