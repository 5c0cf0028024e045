//! What an account remarks on another one: a private note, reposts that are left out, a mute with an end.

use std::time::Duration;

use tideline::cluster::{Command, Request};
use tideline::post::{Draft, PostRef};
use tideline::{
    AccountId, AccountState, AccountUpdate, Engine, EngineSettings, ErrorKind, ListQuery, PostId, Query,
    Relationship,
};

use super::{accounts, at_key, drained, engine, engine_with, small, tenant, walk_home};

/// Longer than any test takes.
const HOUR: Duration = Duration::from_secs(3_600);

async fn between(engine: &Engine, account: AccountId, other: AccountId) -> Relationship {
    engine.as_reader(account).relationships(&[other]).await.unwrap().remove(0).unwrap()
}

async fn suspended(engine: &Engine, account: AccountId, is: bool) {
    let state = Some(if is { AccountState::Suspended } else { AccountState::Active });
    engine.update_account(account, &AccountUpdate { state, ..AccountUpdate::default() }).await.unwrap();
}

async fn post(engine: &Engine, author: AccountId) -> PostId {
    engine.publish(author, &Draft::text("hello")).await.unwrap().id
}

async fn length(engine: &Engine, letter: char, of: AccountId) -> u64 {
    at_key(engine, letter, of, "HLEN", &[]).await.count().unwrap()
}

#[tokio::test]
async fn a_note_is_for_its_writer_alone_and_bounded() {
    let engine = engine().await;
    let [me, other, third] = accounts(&engine, 3).await[..] else { unreachable!() };
    let note = async || between(&engine, me, other).await.note;
    assert_eq!(note().await, None);
    for text in ["from the fair", "from the fair, owes me a coffee", &"ü".repeat(1_000)] {
        engine.set_note(me, other, text).await.unwrap();
        assert_eq!(note().await.as_deref(), Some(text));
    }
    assert_eq!(between(&engine, other, me).await.note, None);
    assert_eq!(between(&engine, me, third).await.note, None);
    let long = engine.set_note(me, other, &"ü".repeat(1_001)).await.unwrap_err();
    assert_eq!(long.kind(), ErrorKind::Invalid);
    assert!(long.to_string().contains("2002 bytes: at most 2000"), "{long}");
    // It is no follow's affair.
    engine.follow(me, other).await.unwrap();
    engine.block(me, other).await.unwrap();
    assert!(note().await.is_some());
    // Who is suspended only takes back.
    suspended(&engine, me, true).await;
    assert_eq!(engine.set_note(me, other, "x").await.unwrap_err().kind(), ErrorKind::Invalid);
    engine.set_note(me, other, "").await.unwrap();
    assert_eq!((note().await, length(&engine, 'N', me).await), (None, 0));
    suspended(&engine, me, false).await;
    assert_eq!(engine.set_note(me, me, "x").await.unwrap_err().kind(), ErrorKind::Invalid);
    let nobody = AccountId::new(77).unwrap();
    assert_eq!(engine.set_note(me, nobody, "x").await.unwrap_err().kind(), ErrorKind::NotFound);
    // One less than there may be; one that is there already may change.
    let fields: Vec<String> = (0..1_999).flat_map(|n| [format!("{n:08}"), "x".into()]).collect();
    let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
    at_key(&engine, 'N', me, "HSET", &fields).await;
    engine.set_note(me, other, "the last").await.unwrap();
    let full = engine.set_note(me, third, "one more").await.unwrap_err();
    assert!(full.to_string().contains("has notes on 2000 accounts already"), "{full}");
    engine.set_note(me, other, "another").await.unwrap();
    assert_eq!(note().await.as_deref(), Some("another"));
    // What a later release has written says nothing, and gives way.
    let keys = engine.store().keys();
    let bucket = keys.buckets().of_account(me.get());
    let head = format!("{}{{{}}}N", keys.prefix(), keys.buckets().tag(bucket));
    let key = [head.as_bytes(), &me.to_bytes()].concat();
    let set = Command::new("HSET").arg(&key).arg(&other.to_bytes()).arg("\u{2}what");
    engine.store().router().call(Request::write(keys.buckets().slot(bucket), set)).await.unwrap();
    assert_eq!(note().await, None);
    engine.set_note(me, other, "again").await.unwrap();
    assert_eq!(note().await.as_deref(), Some("again"));
}

#[tokio::test]
async fn reposts_are_left_out_of_a_home_while_the_follow_lasts() {
    let options = tenant(40);
    let engine = engine_with(options.clone(), small()).await;
    let [me, author, other] = accounts(&engine, 3).await[..] else { unreachable!() };
    let refused = engine.hide_reposts(me, author).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    engine.show_reposts(me, author).await.unwrap();
    engine.follow(me, author).await.unwrap();
    assert!(between(&engine, me, author).await.shows_reposts);
    assert!(!between(&engine, author, me).await.shows_reposts, "it doesn't follow");
    let original = PostRef { id: post(&engine, other).await, author: other };
    let quote = engine.publish(author, &Draft::text("see").quoting(original)).await.unwrap().id;
    let repost = engine.repost(author, original.id).await.unwrap().id;
    drained(&engine).await;
    // On an instance that remembers the reader, too.
    let second = engine_with(options, small()).await;
    assert_eq!(walk_home(&second, me, 10).await, [repost, quote]);
    engine.hide_reposts(me, author).await.unwrap();
    for engine in [&engine, &second] {
        assert_eq!(walk_home(engine, me, 10).await, [quote]);
        assert!(!between(engine, me, author).await.shows_reposts);
    }
    let profile = engine.as_reader(me).read(&Query::profile(author)).await.unwrap();
    assert_eq!(profile.ids(), [repost, quote], "elsewhere they show");
    let why = engine.inspect(me).await.unwrap();
    assert_eq!(why.says_of_others["hidden_reposts"], 1);
    let left_out = why.page.iter().find(|candidate| candidate.id == repost).unwrap();
    assert_eq!(format!("{:?}", left_out.verdict), "Hidden(RepostLeftOut)");
    engine.show_reposts(me, author).await.unwrap();
    assert_eq!(walk_home(&second, me, 10).await, [repost, quote]);
    // What ends a follow ends what is said of it.
    engine.hide_reposts(me, author).await.unwrap();
    engine.unfollow(me, author).await.unwrap();
    assert_eq!(length(&engine, 'R', me).await, 0);
    engine.follow(me, author).await.unwrap();
    assert_eq!(walk_home(&second, me, 10).await, [repost, quote]);
    engine.hide_reposts(me, author).await.unwrap();
    engine.block(me, author).await.unwrap();
    engine.unblock(me, author).await.unwrap();
    engine.follow(me, author).await.unwrap();
    assert!(between(&engine, me, author).await.shows_reposts);
    // A request is as good, and hands it on to the follow that it becomes.
    let locked = AccountUpdate { is_locked: Some(true), ..AccountUpdate::default() };
    engine.update_account(other, &locked).await.unwrap();
    engine.follow(me, other).await.unwrap();
    assert!(between(&engine, me, other).await.shows_reposts);
    engine.hide_reposts(me, other).await.unwrap();
    engine.approve(other, me).await.unwrap();
    drained(&engine).await;
    let stands = between(&engine, me, other).await;
    assert!(stands.is_following && !stands.shows_reposts, "{stands:?}");
}

#[tokio::test]
async fn a_mute_with_an_end_hides_until_then_and_the_later_call_counts() {
    let options = tenant(40);
    let engine = engine_with(options.clone(), small()).await;
    let [me, author, other] = accounts(&engine, 3).await[..] else { unreachable!() };
    let second = engine_with(options, small()).await;
    engine.follow(me, author).await.unwrap();
    let post = post(&engine, author).await;
    drained(&engine).await;
    let muted = async || {
        let page = second.as_reader(me).mutes(&ListQuery::default()).await.unwrap();
        page.accounts.iter().map(|account| account.id).collect::<Vec<_>>()
    };
    let stored = async || length(&engine, 'M', me).await;
    assert_eq!(walk_home(&second, me, 10).await, [post]);
    engine.mute_for(me, author, HOUR).await.unwrap();
    assert_eq!((walk_home(&second, me, 10).await, muted().await), (vec![], vec![author]));
    let stands = between(&second, me, author).await;
    assert!(stands.is_muting && stands.muted_until_ms.is_some(), "{stands:?}");
    // For good; again until then; it ends.
    engine.mute(me, author).await.unwrap();
    let stands = between(&second, me, author).await;
    assert!(stands.is_muting && stands.muted_until_ms.is_none(), "{stands:?}");
    assert_eq!(stored().await, 0);
    engine.mute_for(me, author, Duration::from_millis(300)).await.unwrap();
    walk_home(&second, me, 10).await;
    // By the time of each: whoever mutes again takes away what has ended by its own.
    while between(&second, me, author).await.is_muting || between(&engine, me, author).await.is_muting {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!((walk_home(&second, me, 10).await, muted().await), (vec![post], vec![]));
    assert_eq!(between(&second, me, author).await.muted_until_ms, None);
    // It stands there until the next change of that kind.
    assert_eq!((stored().await, second.inspect(me).await.unwrap().sets.mutes), (1, 1));
    engine.mute_for(me, other, HOUR).await.unwrap();
    assert_eq!((stored().await, second.inspect(me).await.unwrap().sets.mutes), (1, 1));
    assert_eq!(muted().await, [other]);
    engine.unmute(me, other).await.unwrap();
    assert_eq!((stored().await, muted().await), (0, vec![]));
    assert!(!between(&engine, me, other).await.is_muting);
}

#[tokio::test]
async fn mutes_that_have_ended_take_no_room_from_others() {
    let settings = EngineSettings { restrictions_max: 2, ..small() };
    let engine = engine_with(tenant(40), settings).await;
    let people = accounts(&engine, 4).await;
    for other in &people[1..3] {
        engine.mute_for(people[0], *other, Duration::from_millis(1)).await.unwrap();
    }
    while between(&engine, people[0], people[2]).await.is_muting {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    engine.mute(people[0], people[3]).await.unwrap();
    engine.mute_for(people[0], people[1], HOUR).await.unwrap();
    let full = engine.mute(people[0], people[2]).await.unwrap_err();
    assert!(full.to_string().contains("mutes 2 already"), "{full}");
}

#[tokio::test]
async fn remarks_go_with_either_account() {
    let engine = engine().await;
    let [me, other, stays] = accounts(&engine, 3).await[..] else { unreachable!() };
    for whom in [other, stays] {
        engine.follow(me, whom).await.unwrap();
        engine.hide_reposts(me, whom).await.unwrap();
        engine.mute_for(me, whom, HOUR).await.unwrap();
        engine.set_note(me, whom, "a cousin").await.unwrap();
    }
    engine.delete_account(other).await.unwrap();
    drained(&engine).await;
    // Its follow has gone with all that was said of that; a note is nobody's affair until fsck finds it.
    assert_eq!((length(&engine, 'R', me).await, length(&engine, 'N', me).await), (1, 2));
    engine.set_note(me, other, "").await.unwrap();
    assert_eq!(length(&engine, 'N', me).await, 1);
    engine.delete_account(me).await.unwrap();
    drained(&engine).await;
    for letter in ['R', 'M', 'N'] {
        assert_eq!(at_key(&engine, letter, me, "EXISTS", &[]).await.int().unwrap(), 0, "{letter}");
    }
}
