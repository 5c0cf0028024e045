//! What accounts can do to others who don't want them: fill their homes, empty their lists. Each of these tests was
//! seen to fail before lists were fair, and before delivery by name looked at who follows.

mod bounds;

use std::time::Duration;

use futures::future::try_join_all;
use futures::stream::{self, StreamExt as _};
use tideline::cluster::{Command, Reply, Request};
use tideline::post::{Draft, Tag, Visibility};
use tideline::{AccountId, Engine, EngineSettings, ErrorKind, FsckOptions, PostId, Query, Store};

use super::super::harness::PATIENCE;
use super::{accounts, all_keys, drained, engine, engine_with, small, tenant};

/// Posts on a list, in these tests; with the slack before it is cut.
const MOST: u32 = 20;
const SLACK: u32 = 8;

async fn short_lists() -> Engine {
    let settings = EngineSettings { mentions_max: MOST, tag_posts_max: MOST, ..small() };
    engine_with(tenant(40), settings).await
}

/// Publishes some at a time, and waits until they are where they belong.
async fn publish(engine: &Engine, author: AccountId, drafts: Vec<Draft>) -> Vec<PostId> {
    let posts: Vec<PostId> = stream::iter(&drafts)
        .map(|draft| async { engine.publish(author, draft).await.unwrap().id })
        .buffered(8)
        .collect()
        .await;
    drained(engine).await;
    posts
}

fn many(count: usize, draft: impl Fn(Draft) -> Draft) -> Vec<Draft> {
    (0..count).map(|n| draft(Draft::text(format!("{n}")))).collect()
}

async fn shown(engine: &Engine, reader: AccountId, query: &Query) -> Vec<PostId> {
    let (mut ids, mut query) = (Vec::new(), query.limit(40));
    loop {
        let page = engine.as_reader(reader).read(&query).await.unwrap();
        ids.extend(page.ids());
        match page.next {
            Some(next) => query = query.after(next),
            None => return ids,
        }
    }
}

/// What fsck finds, and says of it: lists that let something go say what.
async fn is_clean(engine: &Engine) {
    let options = FsckOptions { pause: Duration::from_millis(300), ..FsckOptions::default() };
    let report = engine.fsck(&options, &|_| {}).await.unwrap();
    assert!(report.is_clean(), "{report:?}");
}

#[tokio::test]
async fn posts_that_nobody_sees_take_nothing_from_mentions() {
    let engine = short_lists().await;
    let all = accounts(&engine, 9).await;
    let (friend, attacker, alt, victims) = (all[0], all[1], all[2], &all[3..]);
    try_join_all(victims.iter().map(|victim| engine.block(*victim, attacker))).await.unwrap();
    let named = |draft: Draft| draft.mentions(victims.iter().copied());
    let mut wanted = publish(&engine, friend, many(5, named)).await;
    wanted.reverse();
    let unseen = |draft: Draft| named(draft).visibility(Visibility::Direct).only_to([alt]);
    publish(&engine, attacker, many(60, unseen)).await;
    for victim in victims {
        assert_eq!(shown(&engine, *victim, &Query::mentions()).await, wanted);
        let list = engine.store().sets().of_account::<AccountId>(*victim, "mentions").unwrap();
        assert_eq!(list.len().await.unwrap(), 5);
    }
    is_clean(&engine).await;
}

#[tokio::test]
async fn an_author_whom_the_victim_blocks_pushes_out_its_own_mentions_only() {
    let engine = short_lists().await;
    let all = accounts(&engine, 6).await;
    let (victim, friend, other, attackers) = (all[0], all[1], all[2], &all[3..]);
    let named = |draft: Draft| draft.mentions([victim]);
    let mut wanted = publish(&engine, friend, many(4, named)).await;
    wanted.extend(publish(&engine, other, many(3, named)).await);
    wanted.reverse();
    for attacker in attackers {
        let by = publish(&engine, *attacker, many(60, named)).await;
        let on = shown(&engine, victim, &Query::mentions()).await;
        assert!(wanted.iter().all(|post| on.contains(post)), "{on:?} lacks some of {wanted:?}");
        assert_eq!(on[0], by[59]);
        assert!(on.len() <= (MOST + SLACK) as usize, "{on:?}");
        engine.block(victim, *attacker).await.unwrap();
    }
    assert_eq!(shown(&engine, victim, &Query::mentions()).await, wanted);
    is_clean(&engine).await;
    // Nor does it help to delete them, and write others.
    for attacker in attackers {
        let page = engine.as_reader(*attacker).read(&Query::profile(*attacker).limit(60)).await.unwrap();
        try_join_all(page.ids().into_iter().map(|post| engine.delete(*attacker, post))).await.unwrap();
        publish(&engine, *attacker, many(30, named)).await;
    }
    assert_eq!(shown(&engine, victim, &Query::mentions()).await, wanted);
    is_clean(&engine).await;
}

#[tokio::test]
async fn posts_that_are_deleted_at_once_empty_no_hashtag() {
    let engine = short_lists().await;
    let [friend, attacker, reader] = accounts(&engine, 3).await[..] else { panic!("three were made") };
    let tags: Vec<String> = (0..5).map(|n| format!("topic{n}")).collect();
    let tagged = |draft: Draft| draft.hashtags(tags.clone());
    let mut wanted = publish(&engine, friend, many(5, tagged)).await;
    wanted.reverse();
    for post in publish(&engine, attacker, many(60, tagged)).await {
        engine.delete(attacker, post).await.unwrap();
    }
    drained(&engine).await;
    for tag in &tags {
        assert_eq!(shown(&engine, reader, &Query::tag(Tag::new(tag).unwrap())).await, wanted);
    }
    is_clean(&engine).await;
}

#[tokio::test]
async fn a_list_keeps_as_many_floors_as_posts_and_says_still_what_it_lacks() {
    let engine = short_lists().await;
    let all = accounts(&engine, 70).await;
    let (victim, friend, crowd) = (all[0], all[1], &all[2..]);
    let named = |draft: Draft| draft.mentions([victim]);
    let first = publish(&engine, friend, many(1, named)).await[0];
    // Each has most for a moment.
    for (n, author) in crowd.iter().enumerate() {
        let by = publish(&engine, *author, many(12, named)).await;
        let on = shown(&engine, victim, &Query::mentions()).await;
        // One of each stays, while there is room for that.
        assert_eq!(on.contains(&first), n + 2 <= MOST as usize, "{n}: {on:?}");
        assert_eq!(on[0], by[11]);
    }
    let floors = engine.store().sets().of_account::<AccountId>(victim, "mentions-left").unwrap();
    let floors = floors.len().await.unwrap();
    assert!(floors <= u64::from(MOST + SLACK), "{floors}");
    is_clean(&engine).await;
}

#[tokio::test]
async fn posts_for_strangers_take_no_place_in_their_homes() {
    let engine = engine().await;
    let all = accounts(&engine, 30).await;
    let (attacker, author, follower, strangers) = (all[0], all[1], all[2], &all[3..]);
    for reader in &all[2..] {
        engine.follow(*reader, author).await.unwrap();
    }
    engine.follow(follower, attacker).await.unwrap();
    drained(&engine).await;
    try_join_all(all[2..].iter().map(|reader| engine.warm(*reader))).await.unwrap();
    let posts = publish(&engine, author, many(5, |draft| draft)).await;
    try_join_all(strangers.iter().map(|reader| engine.block(*reader, attacker))).await.unwrap();
    drained(&engine).await;
    let before = try_join_all(strangers.iter().map(|reader| engine.stored_home(*reader))).await.unwrap();
    let direct = |draft: Draft| {
        let readers = all.iter().copied().filter(|reader| *reader != author);
        draft.visibility(Visibility::Direct).only_to(readers)
    };
    let sent = publish(&engine, attacker, many(40, direct)).await;
    let after = try_join_all(strangers.iter().map(|reader| engine.stored_home(*reader))).await.unwrap();
    assert_eq!(after, before);
    // Whom it is for, and who follows, has all of it, and follows it later too.
    let mut wanted: Vec<PostId> = posts.into_iter().chain(sent).collect();
    wanted.reverse();
    assert_eq!(shown(&engine, follower, &Query::home()).await, wanted);
    let late = strangers[0];
    engine.unblock(late, attacker).await.unwrap();
    engine.follow(late, attacker).await.unwrap();
    drained(&engine).await;
    assert_eq!(shown(&engine, late, &Query::home()).await, wanted);
    is_clean(&engine).await;
}

/// Says a command about the tenant's charter, behind everybody's back.
pub(crate) async fn at_charter(store: &Store, command: &str, arguments: &[&str]) -> Reply {
    let key = format!("{}{{06S}}i", store.keys().prefix());
    let command = Command::new(command).arg(&key).args(arguments.iter().copied());
    store.router().call(Request::write(0, command)).await.unwrap()
}

#[tokio::test]
async fn hashtags_of_earlier_data_keep_their_lists_until_they_are_given_a_key() {
    let options = tenant(40);
    let store = Store::open(options.clone()).await.unwrap();
    // As the release before has initialized it.
    at_charter(&store, "HSET", &["format", "1"]).await;
    at_charter(&store, "HDEL", &["tags"]).await;
    let before = engine_with(options.clone(), small()).await;
    let [author, reader] = accounts(&before, 2).await[..] else { panic!("two were made") };
    let mut posts = publish(&before, author, many(3, |draft| draft.hashtags(["tide"]))).await;
    posts.reverse();
    let of_tag = Query::tag(Tag::new("tide").unwrap());
    assert_eq!(shown(&before, reader, &of_tag).await, posts);
    assert!(
        at_charter(&store, "HGET", &["tags"]).await.is_nil(),
        "nobody draws a key that the other release lacks"
    );
    // The list of the release before: FNV-1a of the name, mixed.
    let list = [b"#".as_slice(), &17_604_226_807_815_553_839_u64.to_be_bytes()].concat();
    let is_old = |keys: Vec<Vec<u8>>| keys.iter().any(|key| key.ends_with(&list));
    assert!(is_old(all_keys(&before).await));
    before.shutdown(PATIENCE).await.unwrap();

    at_charter(&store, "HSET", &["format", "2"]).await;
    let refused = Store::open_existing(options.clone()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Misconfigured, "{refused}");
    let after = engine_with(options.clone(), small()).await;
    assert_eq!(at_charter(&store, "HGET", &["tags"]).await.bytes().unwrap().len(), 16);
    assert_eq!(shown(&after, reader, &of_tag).await, []);
    let repair = FsckOptions { repair: true, pause: Duration::from_millis(300), ..FsckOptions::default() };
    after.fsck(&repair, &|_| {}).await.unwrap();
    drained(&after).await;
    assert_eq!(shown(&after, reader, &of_tag).await, posts);
    assert!(!is_old(all_keys(&after).await));
    is_clean(&after).await;
    // Every instance has the same key.
    let other = engine_with(options.clone(), small()).await;
    assert_eq!(shown(&other, reader, &of_tag).await, posts);

    at_charter(&store, "HSET", &["format", "9"]).await;
    let refused = Store::open(options).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Misconfigured, "{refused}");
}
