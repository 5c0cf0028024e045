//! Who follows whom, and may.

use std::collections::BTreeSet;
use std::time::Duration;

use metrics_util::debugging::DebuggingRecorder;
use tideline::post::{Draft, PostRef, Visibility};
use tideline::sharded::{Checkpoint, Order};
use tideline::{
    AccountId, AccountUpdate, Engine, EngineSettings, ErrorCode, ErrorKind, FollowOutcome, Query,
    StoreOptions,
};
use tideline_local_cluster::ClusterSpec;

use super::{
    a_millisecond, accounts, at_key, drained, engine, engine_with, slot_of, small, tenant, walk_home,
};
use crate::harness::{eventually, impatient, options, own};
use crate::router::counted;

async fn pages(engine: &Engine, of: AccountId, order: Order) -> Vec<AccountId> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = engine.stored().followers(of, after.as_ref(), 7, order).await.unwrap();
        all.extend(page.entries.into_iter().map(|(id, _)| id));
        match page.next {
            Some(next) => after = Some(next),
            None => return all,
        }
    }
}

#[tokio::test]
async fn followers_and_what_two_accounts_have_in_common() {
    let engine = engine().await;
    let people = accounts(&engine, 70).await;
    let (one, other) = (people[0], people[1]);
    // The first one's followers are spread, the second one's stay in one slot.
    for reader in &people[2..] {
        engine.follow(*reader, one).await.unwrap();
    }
    for reader in &people[2..12] {
        engine.follow(*reader, other).await.unwrap();
    }
    for author in &people[40..] {
        engine.follow(one, *author).await.unwrap();
    }
    for author in &people[50..60] {
        engine.follow(other, *author).await.unwrap();
    }
    drained(&engine).await;
    let newest = pages(&engine, other, Order::Descending).await;
    let mut oldest = pages(&engine, other, Order::Ascending).await;
    oldest.reverse();
    assert_eq!(newest, oldest);
    assert_eq!(newest.iter().collect::<BTreeSet<_>>(), people[2..12].iter().collect());
    assert_eq!(pages(&engine, one, Order::Ascending).await.len(), 68);
    assert_eq!(engine.stored().counts(one).await.unwrap(), (30, 68));
    let both: BTreeSet<_> = engine.stored().common_following(one, other).await.unwrap().into_iter().collect();
    assert_eq!(both, people[50..60].iter().copied().collect());
    let (mut common, mut next) = (BTreeSet::new(), Some(Checkpoint::START));
    while let Some(from) = next {
        let some = engine.stored().common_followers(other, one, from).await.unwrap();
        common.extend(some.members);
        next = some.next;
    }
    assert_eq!(common, people[2..12].iter().copied().collect());
    assert!(engine.stored().is_mutual(one, people[45]).await.unwrap());
    assert!(!engine.stored().is_mutual(one, people[5]).await.unwrap());
}

#[tokio::test]
async fn a_locked_account_decides_who_follows_it() {
    let engine = engine().await;
    let people = accounts(&engine, 4).await;
    let locked = people[0];
    engine
        .update_account(locked, &AccountUpdate { is_locked: Some(true), ..AccountUpdate::default() })
        .await
        .unwrap();
    let post = Draft::text("for my followers").visibility(Visibility::Followers);
    let post = engine.publish(locked, &post).await.unwrap().id;
    for reader in &people[1..] {
        assert_eq!(engine.follow(*reader, locked).await.unwrap().value, FollowOutcome::Requested);
    }
    drained(&engine).await;
    let waiting: BTreeSet<_> = engine.stored().follow_requests(locked).await.unwrap().into_iter().collect();
    assert_eq!(waiting, people[1..].iter().copied().collect());
    engine.approve(locked, people[1]).await.unwrap();
    engine.reject(locked, people[2]).await.unwrap();
    // Taken back before it is answered: there is nothing left to say yes to.
    engine.unfollow(people[3], locked).await.unwrap();
    assert_eq!(engine.approve(locked, people[3]).await.unwrap_err().kind(), ErrorKind::NotFound);
    drained(&engine).await;
    assert_eq!(engine.stored().follow_requests(locked).await.unwrap(), []);
    assert_eq!(walk_home(&engine, people[1], 5).await, [post]);
    for reader in &people[2..] {
        assert!(!engine.stored().is_following(*reader, locked).await.unwrap());
        assert_eq!(walk_home(&engine, *reader, 5).await, []);
    }
}

/// Asked once: what is left to do for it afterwards is nobody's business.
#[tokio::test]
async fn a_follow_that_its_author_has_let_in_stays_however_long_a_home_is_being_filled() {
    let engine = engine().await;
    let [reader, author] = accounts(&engine, 2).await[..] else { panic!("two were made") };
    // A fill that nobody goes on with: a watermark with a nonce.
    at_key(&engine, 'h', reader, "RPUSH", &["\0\0\0\0\0\0\0\0\u{80}nobody"]).await;
    assert_eq!(engine.follow(reader, author).await.unwrap().value, FollowOutcome::Following);
    eventually("its mark is kept, and new no more", async || {
        let marks = at_key(&engine, 'm', reader, "HVALS", &[]).await.into_array().unwrap();
        marks.len() == 1 && !marks[0].bytes().unwrap().starts_with(b"new\0")
    })
    .await;
    let lock = AccountUpdate { is_locked: Some(true), ..AccountUpdate::default() };
    engine.update_account(author, &lock).await.unwrap();
    at_key(&engine, 'h', reader, "DEL", &[]).await;
    drained(&engine).await;
    assert!(engine.stored().is_following(reader, author).await.unwrap());
    assert_eq!(engine.stored().follow_requests(author).await.unwrap(), []);
}

#[tokio::test]
async fn blocks_hides_and_mutes_hold_at_once_and_for_reposts_too() {
    let engine = engine().await;
    let people = accounts(&engine, 4).await;
    let [reader, author, friend, _] = people[..] else { unreachable!() };
    for followed in [author, friend] {
        engine.follow(reader, followed).await.unwrap();
    }
    let post = engine.publish(author, &Draft::text("seen by many")).await.unwrap().id;
    let repost = Draft::repost(PostRef { id: post, author });
    a_millisecond(&engine).await;
    let repost = engine.publish(friend, &repost).await.unwrap().id;
    let seen = async || walk_home(&engine, reader, 10).await;
    assert_eq!(seen().await, [repost, post]);
    engine.mute(reader, author).await.unwrap();
    assert_eq!(seen().await, []);
    engine.unmute(reader, author).await.unwrap();
    engine.hide_from(author, reader).await.unwrap();
    assert_eq!(seen().await, []);
    engine.show_to(author, reader).await.unwrap();
    assert_eq!(seen().await, [repost, post]);
    engine.block(author, reader).await.unwrap();
    // Neither its posts nor a friend's repost of them.
    assert_eq!(seen().await, []);
    assert_eq!(engine.follow(reader, author).await.unwrap_err().kind(), ErrorKind::Invalid);
    drained(&engine).await;
    assert!(!engine.stored().is_following(reader, author).await.unwrap());
    engine.unblock(author, reader).await.unwrap();
    assert_eq!(seen().await, [repost]);
    let profile = engine.as_reader(reader).read(&Query::profile(author)).await.unwrap();
    assert_eq!(profile.ids(), [post]);
}

#[tokio::test]
async fn an_account_follows_no_more_than_it_may() {
    let settings = EngineSettings { following_max: 20, ..small() };
    let engine = engine_with(tenant(40), settings).await;
    let people = accounts(&engine, 23).await;
    for author in &people[1..21] {
        engine.follow(people[0], *author).await.unwrap();
    }
    let refused = engine.follow(people[0], people[21]).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    // What it follows already it may follow again, and one less makes room for one more.
    engine.follow(people[0], people[1]).await.unwrap();
    engine.unfollow(people[0], people[1]).await.unwrap();
    engine.follow(people[0], people[21]).await.unwrap();
    assert_eq!(engine.stored().account(people[0]).await.unwrap().following, 20);
}

#[tokio::test]
async fn a_follow_ends_only_for_a_block_that_lasts() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    // A node timeout far longer than the test: nobody is declared dead.
    let cluster = own(ClusterSpec::ephemeral().replicas(1).node_timeout(Duration::from_secs(300))).await;
    let store = StoreOptions { router: impatient(), ..options(cluster.urls()) };
    let engine = engine_with(store, small()).await;
    let people = accounts(&engine, 3).await;
    let [author, reader, asking] = people[..] else { unreachable!() };
    engine.follow(reader, author).await.unwrap();
    let locked = AccountUpdate { is_locked: Some(true), ..AccountUpdate::default() };
    engine.update_account(author, &locked).await.unwrap();
    assert_eq!(engine.follow(asking, author).await.unwrap().value, FollowOutcome::Requested);
    drained(&engine).await;
    let primary = engine.store().router().owner(slot_of(&engine, author)).unwrap();
    let replica = cluster.replica_of(&primary).await.unwrap();
    replica.freeze().unwrap();
    engine.block(author, reader).await.unwrap();
    engine.block(author, asking).await.unwrap();
    // Fences of the blocks fail, again and again, and nothing ends for one of them.
    let mut failed = 0;
    eventually("fences fail", async || {
        failed += counted(snapshotter.snapshot(), "tideline_fence_rounds_total", [("outcome", "failed")]);
        assert!(
            engine.stored().is_following(reader, author).await.unwrap(),
            "ended for a block that may still get lost"
        );
        assert_eq!(engine.stored().follow_requests(author).await.unwrap(), [asking]);
        failed >= 6
    })
    .await;
    replica.thaw().unwrap();
    eventually("the follow and the request end", async || {
        !engine.stored().is_following(reader, author).await.unwrap()
            && engine.stored().follow_requests(author).await.unwrap().is_empty()
    })
    .await;
}

#[tokio::test]
async fn requests_have_a_bound_on_both_sides() {
    let settings = EngineSettings { requests_max: 3, ..small() };
    let engine = engine_with(tenant(40), settings).await;
    let people = accounts(&engine, 9).await;
    let locked = AccountUpdate { is_locked: Some(true), ..AccountUpdate::default() };
    for account in &people[..5] {
        engine.update_account(*account, &locked).await.unwrap();
    }
    let asking = people[5];
    for author in &people[..3] {
        assert_eq!(engine.follow(asking, *author).await.unwrap().value, FollowOutcome::Requested);
    }
    let refused = engine.follow(asking, people[3]).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    // What it has asked it may ask again; one less makes room for one more.
    engine.follow(asking, people[0]).await.unwrap();
    engine.unfollow(asking, people[0]).await.unwrap();
    engine.follow(asking, people[3]).await.unwrap();
    let popular = people[4];
    for reader in [people[0], people[1], people[6]] {
        engine.follow(reader, popular).await.unwrap();
        drained(&engine).await;
    }
    let refused = engine.follow(people[7], popular).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::LimitReached, "{refused}");
    engine.reject(popular, people[0]).await.unwrap();
    drained(&engine).await;
    assert_eq!(engine.follow(people[7], popular).await.unwrap().value, FollowOutcome::Requested);
}
