//! What accounts are told of what others did: once, in order, as long as it is so, and never more than fits.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use rand::RngExt as _;
use tideline::post::{Draft, PostRef};
use tideline::{
    AccountId, AccountState, AccountUpdate, Acknowledge, Engine, EngineSettings, ErrorKind, FindingKind,
    FsckOptions, NotificationId, NotificationKind, NotificationQuery, PostId, Query, StoreOptions,
};

use super::documents::kill_primary;
use super::{accounts, all_keys, at_key, drained, engine_with, letter_and_name, slot_of, small, tenant};
use crate::harness::{in_the_end, options, own, patient_with_replicas, replicated, seeded};

/// Entries that an inbox keeps, where it is cut, and those of one topic that a full one keeps: as in docs/keys.md.
const KEPT: usize = 240;
const CUT_AT: usize = 272;
const TOPIC_MOST: usize = 48;
/// Longer than any test machine stands still.
pub(super) const LONG: Duration = Duration::from_secs(60);

pub(super) type Told = (NotificationKind, AccountId, Option<PostId>);

fn keeping() -> EngineSettings {
    EngineSettings { keeps_notifications: true, ..small() }
}

pub(super) async fn engine() -> Engine {
    engine_with(tenant(40), keeping()).await
}

/// All that an account is told, the newest first, and the ids.
async fn all(engine: &Engine, reader: AccountId) -> (Vec<Told>, Vec<NotificationId>) {
    let (mut told, mut ids) = (Vec::new(), Vec::new());
    let mut query = NotificationQuery::default().limit(100);
    loop {
        let page = engine.as_reader(reader).notifications(&query).await.unwrap();
        ids.extend(page.notifications.iter().map(|of| of.id));
        told.extend(
            page.notifications
                .iter()
                .map(|of| (of.kind, of.account.id, of.post.as_ref().map(|post| post.id))),
        );
        let Some(older) = page.older else { return (told, ids) };
        query.max_id = Some(older);
    }
}

pub(super) async fn told(engine: &Engine, reader: AccountId) -> Vec<Told> {
    all(engine, reader).await.0
}

pub(super) async fn publish(engine: &Engine, author: AccountId, draft: Draft) -> PostId {
    engine.settled(LONG, engine.publish(author, &draft)).await.unwrap().id
}

pub(super) fn quote(of: PostRef, text: &str) -> Draft {
    Draft { repost_of: Some(of), ..Draft::text(text) }
}

#[tokio::test]
async fn an_account_is_told_once_of_what_others_do_and_of_nothing_that_it_does_itself() {
    use NotificationKind::{Follow, Like, Mention, Quote, Repost};
    let engine = engine().await;
    let [ada, ben, cy] = accounts(&engine, 3).await[..] else { panic!("three were made") };
    let post = publish(&engine, ada, Draft::text("low tide").mentions([ada])).await;
    let of = PostRef { id: post, author: ada };
    // Its own deeds.
    engine.settled(LONG, engine.like(ada, post)).await.unwrap();
    engine.settled(LONG, engine.repost(ada, post)).await.unwrap();
    publish(&engine, ada, quote(of, "so it was")).await;
    assert_eq!(told(&engine, ada).await, []);

    for _ in 0..2 {
        engine.settled(LONG, engine.follow(ben, ada)).await.unwrap();
        engine.settled(LONG, engine.like(ben, post)).await.unwrap();
        engine.settled(LONG, engine.repost(ben, post)).await.unwrap();
    }
    let quote = publish(&engine, ben, quote(of, "look")).await;
    let mention = publish(&engine, cy, Draft::text("hey").mentions([ada]).reply_to(of)).await;
    publish(&engine, cy, Draft::text("and so").reply_to(of)).await;
    let mut wanted = vec![
        (Mention, cy, Some(mention)),
        (Quote, ben, Some(quote)),
        (Repost, ben, Some(post)),
        (Like, ben, Some(post)),
        (Follow, ben, None),
    ];
    assert_eq!(told(&engine, ada).await, wanted);
    assert_eq!(told(&engine, ben).await, []);

    // What is taken back, or gone, shows no more; what comes again does.
    engine.settled(LONG, engine.unlike(ben, post)).await.unwrap();
    engine.settled(LONG, engine.unfollow(ben, ada)).await.unwrap();
    engine.settled(LONG, engine.undo_repost(ben, post)).await.unwrap();
    engine.settled(LONG, engine.delete(cy, mention)).await.unwrap();
    assert_eq!(told(&engine, ada).await, [(Quote, ben, Some(quote))]);
    engine.settled(LONG, engine.like(ben, post)).await.unwrap();
    engine.settled(LONG, engine.follow(ben, ada)).await.unwrap();
    wanted = vec![(Follow, ben, None), (Like, ben, Some(post)), (Quote, ben, Some(quote))];
    assert_eq!(told(&engine, ada).await, wanted);

    // Whom it mutes or blocks, and who is suspended, is not met; unless that ends.
    engine.mute(ada, ben).await.unwrap();
    assert_eq!(told(&engine, ada).await, []);
    engine.unmute(ada, ben).await.unwrap();
    let suspended = AccountUpdate { state: Some(AccountState::Suspended), ..AccountUpdate::default() };
    engine.update_account(ben, &suspended).await.unwrap();
    assert_eq!(told(&engine, ada).await, []);
    let active = AccountUpdate { state: Some(AccountState::Active), ..AccountUpdate::default() };
    engine.update_account(ben, &active).await.unwrap();
    assert_eq!(told(&engine, ada).await, wanted);
    engine.settled(LONG, engine.delete(ada, post)).await.unwrap();
    assert!(!told(&engine, ada).await.iter().any(|(kind, ..)| *kind == Like));
}

#[tokio::test]
async fn a_mute_may_leave_what_one_is_told_until_it_ends_or_is_another() {
    let engine = engine().await;
    let [ada, ben] = accounts(&engine, 2).await[..] else { panic!("two were made") };
    engine.settled(LONG, engine.follow(ada, ben)).await.unwrap();
    let post = publish(&engine, ada, Draft::text("low tide")).await;
    engine.settled(LONG, engine.like(ben, post)).await.unwrap();
    let hidden = publish(&engine, ben, Draft::text("high tide")).await;
    drained(&engine).await;
    let like = [(NotificationKind::Like, ben, Some(post))];
    let stands = async || {
        let found = engine.as_reader(ada).relationships(&[ben]).await.unwrap().pop().flatten().unwrap();
        let shows = engine.as_reader(ada).read(&Query::home()).await.unwrap().ids().contains(&hidden);
        (found.is_muting, found.is_told_all_the_same, shows, told(&engine, ada).await == like)
    };
    for time in [None, Some(LONG)] {
        engine.mute_posts(ada, ben, time).await.unwrap();
        assert_eq!(stands().await, (true, true, false, true), "{time:?}");
        engine.mute(ada, ben).await.unwrap();
        assert_eq!(stands().await, (true, false, false, false), "{time:?}");
        engine.mute_posts(ada, ben, time).await.unwrap();
        engine.unmute(ada, ben).await.unwrap();
        assert_eq!(stands().await, (false, false, true, true), "{time:?}");
    }
    engine.mute_posts(ada, ben, Some(Duration::from_millis(1))).await.unwrap();
    while stands().await.0 {}
    assert_eq!(stands().await, (false, false, true, true));
}

#[tokio::test]
async fn a_locked_account_is_told_of_requests_until_they_are_answered_and_then_of_follows() {
    use NotificationKind::{Follow, FollowRequest};
    let engine = engine().await;
    let [ada, ben, cy] = accounts(&engine, 3).await[..] else { panic!("three were made") };
    let locked = AccountUpdate { is_locked: Some(true), ..AccountUpdate::default() };
    engine.update_account(ada, &locked).await.unwrap();
    engine.settled(LONG, engine.follow(ben, ada)).await.unwrap();
    engine.settled(LONG, engine.follow(cy, ada)).await.unwrap();
    assert_eq!(told(&engine, ada).await, [(FollowRequest, cy, None), (FollowRequest, ben, None)]);
    engine.settled(LONG, engine.approve(ada, ben)).await.unwrap();
    engine.settled(LONG, engine.reject(ada, cy)).await.unwrap();
    drained(&engine).await;
    assert_eq!(told(&engine, ada).await, [(Follow, ben, None)]);
    // Who asks again is told of again.
    engine.settled(LONG, engine.follow(cy, ada)).await.unwrap();
    assert_eq!(told(&engine, ada).await, [(FollowRequest, cy, None), (Follow, ben, None)]);
}

#[tokio::test]
async fn who_follows_an_account_with_many_followers_is_told_of_once() {
    let engine = engine_with(tenant(4), keeping()).await;
    let people = accounts(&engine, 12).await;
    let (ada, others) = people.split_first().unwrap();
    for other in others {
        engine.settled(LONG, engine.follow(*other, *ada)).await.unwrap();
    }
    drained(&engine).await;
    let wanted: Vec<Told> = others.iter().rev().map(|by| (NotificationKind::Follow, *by, None)).collect();
    assert_eq!(told(&engine, *ada).await, wanted);
    engine.settled(LONG, engine.unfollow(others[0], *ada)).await.unwrap();
    assert_eq!(told(&engine, *ada).await, wanted[..10]);
    engine.settled(LONG, engine.follow(others[0], *ada)).await.unwrap();
    assert_eq!(told(&engine, *ada).await[0], wanted[10]);
}

#[tokio::test]
async fn pages_show_what_was_asked_for_in_both_directions_and_are_short_only_at_the_end() {
    let engine = engine().await;
    let people = accounts(&engine, 31).await;
    let (ada, others) = people.split_first().unwrap();
    let posts =
        [publish(&engine, *ada, Draft::text("one")).await, publish(&engine, *ada, Draft::text("two")).await];
    for (n, other) in others.iter().enumerate() {
        engine.settled(LONG, engine.like(*other, posts[n % 2])).await.unwrap();
        if n % 3 == 0 {
            engine.settled(LONG, engine.follow(*other, *ada)).await.unwrap();
        }
    }
    // Whoever isn't met makes no page short.
    for muted in &others[5..20] {
        engine.mute(*ada, *muted).await.unwrap();
    }
    let (told, ids) = all(&engine, *ada).await;
    assert_eq!(told.len(), 15 + (0..30).filter(|n| n % 3 == 0 && !(5..20).contains(n)).count());
    assert!(ids.is_sorted_by(|newer, older| newer > older));
    let reader = engine.as_reader(*ada);
    let page = async |query: NotificationQuery| {
        let page = reader.notifications(&query.limit(4)).await.unwrap();
        (page.notifications.iter().map(|of| of.id).collect::<Vec<_>>(), page.older, page.newer)
    };
    let whole = NotificationQuery::default;
    for (n, id) in ids.iter().enumerate() {
        let (older, ..) = page(NotificationQuery { max_id: Some(*id), ..whole() }).await;
        assert_eq!(older, ids[n + 1..].iter().copied().take(4).collect::<Vec<_>>(), "older than number {n}");
        let (newest, ..) = page(NotificationQuery { since_id: Some(*id), ..whole() }).await;
        assert_eq!(newest, ids[..n].iter().copied().take(4).collect::<Vec<_>>(), "since number {n}");
        let (next, ..) = page(NotificationQuery { min_id: Some(*id), ..whole() }).await;
        assert_eq!(next, ids[n.saturating_sub(4)..n], "newer than number {n}");
        let found = reader.notification(*id).await.unwrap();
        assert_eq!((found.id, found.kind, found.account.id), (*id, told[n].0, told[n].1));
    }
    // From the oldest upwards, by the places that pages give.
    let (mut up, mut from) = (Vec::new(), NotificationId::from_u64(0).unwrap());
    loop {
        let (some, _, newer) = page(NotificationQuery { min_id: Some(from), ..whole() }).await;
        if some.is_empty() {
            break;
        }
        up.extend(some.into_iter().rev());
        from = newer.unwrap();
    }
    up.reverse();
    assert_eq!(up, ids);
    let follows = NotificationQuery { kinds: Some(vec![NotificationKind::Follow]), ..whole() };
    let wanted: Vec<_> =
        told.iter().zip(&ids).filter(|((kind, ..), _)| *kind == NotificationKind::Follow).collect();
    assert_eq!(page(follows.clone()).await.0, wanted.iter().map(|(_, id)| **id).take(4).collect::<Vec<_>>());
    assert_eq!(reader.count_notifications(&follows).await.unwrap(), wanted.len());
    let by = NotificationQuery { by: Some(others[0]), ..whole() };
    assert_eq!(reader.count_notifications(&by).await.unwrap(), 2);
    assert_eq!(
        reader.count_notifications(&NotificationQuery { kinds: Some(vec![]), ..whole() }).await.unwrap(),
        0
    );
    let refused = reader.notifications(&whole().limit(101)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn what_is_dismissed_stays_so_and_no_id_comes_twice() {
    let engine = engine().await;
    let people = accounts(&engine, 9).await;
    let (ada, others) = people.split_first().unwrap();
    let post = publish(&engine, *ada, Draft::text("low tide")).await;
    let like = async |by: AccountId| engine.settled(LONG, engine.like(by, post)).await.unwrap();
    let mut ever = HashSet::new();
    for round in 0..20 {
        for other in others {
            like(*other).await;
        }
        let (_, ids) = all(&engine, *ada).await;
        assert_eq!(ids.len(), others.len(), "round {round}");
        assert!(ids.iter().all(|id| ever.insert(*id)), "round {round}: an id comes twice");
        // The newest one, and one in the middle.
        for n in [0, 3] {
            assert!(engine.dismiss_notification(*ada, ids[n]).await.unwrap().value);
            assert!(!engine.dismiss_notification(*ada, ids[n]).await.unwrap().value);
            let refused = engine.as_reader(*ada).notification(ids[n]).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::NotFound);
        }
        // What is liked already tells nothing.
        like(others[7]).await;
        assert_eq!(all(&engine, *ada).await.1, [&ids[1..3], &ids[4..]].concat(), "round {round}");
        if round % 2 == 0 {
            engine.clear_notifications(*ada).await.unwrap();
            engine.clear_notifications(*ada).await.unwrap();
            assert_eq!(told(&engine, *ada).await, []);
        }
        for other in others {
            engine.settled(LONG, engine.unlike(*other, post)).await.unwrap();
        }
        assert_eq!(told(&engine, *ada).await, []);
    }
}

/// What stands in an inbox, by type, who and what about; as it is stored.
pub(super) async fn entries(engine: &Engine, of: AccountId) -> Vec<Vec<u8>> {
    let all = at_key(engine, 'I', of, "LRANGE", &["0", "-1"]).await.into_array().unwrap();
    let entries = all.iter().map(|entry| entry.bytes().unwrap()[8..].to_vec());
    entries.filter(|entry| entry.len() > 1).collect()
}

/// An inbox as anybody would write it down: what is told to it, in order.
#[derive(Default)]
struct NaiveInbox(Vec<Vec<u8>>);

impl NaiveInbox {
    fn entry(kind: u8, by: AccountId, about: PostId) -> Vec<u8> {
        [&[kind][..], &by.get().to_be_bytes(), &about.get().to_be_bytes()].concat()
    }

    fn tell(&mut self, entry: Vec<u8>) {
        self.0.push(entry);
        if self.0.len() >= CUT_AT {
            while self.0.len() > KEPT {
                self.drop_one();
            }
        }
    }

    fn forget(&mut self, entry: &[u8]) {
        self.0.retain(|other| other != entry);
    }

    /// The oldest of a topic that has too many, else of whoever has most.
    fn drop_one(&mut self) {
        let topic = |entry: &[u8]| match entry[0] {
            b'l' | b'b' => Some((entry[0], entry[9..].to_vec())),
            b'm' | b'q' => None,
            kind => Some((kind, Vec::new())),
        };
        let (mut topics, mut people) = (HashMap::new(), HashMap::new());
        for entry in &self.0 {
            *topics.entry(topic(entry)).or_insert(0) += 1;
            *people.entry(entry[1..9].to_vec()).or_insert(0) += 1;
        }
        let is_crowded = |entry: &Vec<u8>| topic(entry).is_some_and(|of| topics[&Some(of)] > TOPIC_MOST);
        let most = people.values().max().copied();
        let oldest_of_most = || self.0.iter().position(|entry| Some(people[&entry[1..9]]) == most);
        let place = self.0.iter().position(is_crowded).or_else(oldest_of_most).unwrap();
        self.0.remove(place);
    }
}

#[tokio::test]
async fn an_inbox_holds_what_a_naive_one_would() {
    let mut random = seeded("an_inbox_holds_what_a_naive_one_would");
    let engine = engine().await;
    let people = accounts(&engine, 61).await;
    let (ada, others) = people.split_first().unwrap();
    let mut posts = Vec::new();
    for n in 0..30 {
        posts.push(publish(&engine, *ada, Draft::text(format!("{n}"))).await);
    }
    let (mut naive, mut likes) = (NaiveInbox::default(), HashSet::new());
    for step in 0..900 {
        // Few do most, and to few posts.
        let by = others[random.random_range(0..others.len()).min(random.random_range(0..others.len()))];
        let post = posts[random.random_range(0..posts.len()).min(random.random_range(0..posts.len()))];
        let like = NaiveInbox::entry(b'l', by, post);
        match random.random_range(0..8) {
            0 => {
                let mention = publish(&engine, by, Draft::text("hey").mentions([*ada])).await;
                naive.tell(NaiveInbox::entry(b'm', by, mention));
            }
            1 => {
                engine.settled(LONG, engine.unlike(by, post)).await.unwrap();
                likes.remove(&(by, post));
                naive.forget(&like);
            }
            _ => {
                engine.settled(LONG, engine.like(by, post)).await.unwrap();
                if likes.insert((by, post)) {
                    naive.tell(like);
                }
            }
        }
        if step % 50 == 0 || naive.0.len() >= CUT_AT - 2 || naive.0.len() <= KEPT + 1 && naive.0.len() >= KEPT
        {
            assert_eq!(entries(&engine, *ada).await, naive.0, "step {step}");
        }
    }
    assert_eq!(entries(&engine, *ada).await, naive.0);
}

#[tokio::test]
async fn who_has_one_account_pushes_out_only_what_it_did_itself() {
    let engine = engine().await;
    let people = accounts(&engine, 12).await;
    let [ada, eve] = people[..2] else { panic!("twelve were made") };
    let mut wanted = Vec::new();
    for other in &people[2..] {
        for _ in 0..10 {
            wanted.push(publish(&engine, *other, Draft::text("hey").mentions([ada])).await);
        }
    }
    for _ in 0..400 {
        publish(&engine, eve, Draft::text("me").mentions([ada])).await;
    }
    let told = told(&engine, ada).await;
    let others: Vec<_> =
        told.iter().rev().filter(|(_, by, _)| *by != eve).filter_map(|(.., post)| *post).collect();
    assert_eq!(others, wanted);
    assert!(told.len() >= KEPT && told.len() < CUT_AT, "{}", told.len());
}

#[tokio::test]
async fn a_storm_of_likes_on_one_post_pushes_out_nothing_else() {
    let engine = engine().await;
    let people = accounts(&engine, 420).await;
    let [ada, ben] = people[..2] else { panic!("many were made") };
    let mut wanted = Vec::new();
    for _ in 0..100 {
        wanted.push(publish(&engine, ben, Draft::text("hey").mentions([ada])).await);
    }
    let post = publish(&engine, ada, Draft::text("look at this")).await;
    for other in &people[2..] {
        engine.like(*other, post).await.unwrap();
    }
    drained(&engine).await;
    let told = told(&engine, ada).await;
    let others: Vec<_> =
        told.iter().rev().filter(|(_, by, _)| *by == ben).filter_map(|(.., post)| *post).collect();
    assert_eq!(others, wanted);
    let likes = told.len() - wanted.len();
    assert!((TOPIC_MOST..CUT_AT - wanted.len()).contains(&likes), "{likes}");
    assert_eq!(engine.stored().post(post).await.unwrap().unwrap().header().likes, 418);
}

#[tokio::test]
async fn where_nobody_keeps_notifications_nothing_is_written_and_what_was_taken_back_goes_all_the_same() {
    let store = tenant(40);
    let (keeping, other) = (engine_with(store.clone(), keeping()).await, engine_with(store, small()).await);
    let [ada, ben] = accounts(&keeping, 2).await[..] else { panic!("two were made") };
    let post = publish(&other, ada, Draft::text("low tide")).await;
    let do_all = async |engine: &Engine| {
        engine.settled(LONG, engine.follow(ben, ada)).await.unwrap();
        engine.settled(LONG, engine.like(ben, post)).await.unwrap();
        publish(engine, ben, Draft::text("hey").mentions([ada])).await;
        drained(engine).await;
    };
    do_all(&other).await;
    assert!(!all_keys(&other).await.iter().any(|key| letter_and_name(key).0 == 'I'));
    other.settled(LONG, other.unlike(ben, post)).await.unwrap();
    keeping.settled(LONG, keeping.like(ben, post)).await.unwrap();
    assert_eq!(entries(&keeping, ada).await.len(), 1);
    other.settled(LONG, other.unlike(ben, post)).await.unwrap();
    assert_eq!(entries(&keeping, ada).await.len(), 0);
}

#[tokio::test]
async fn a_deleted_account_leaves_no_inbox_and_what_others_were_told_of_it_is_found() {
    let engine = engine().await;
    let [ada, ben, cy] = accounts(&engine, 3).await[..] else { panic!("three were made") };
    let post = publish(&engine, ada, Draft::text("low tide")).await;
    for by in [ben, cy] {
        engine.settled(LONG, engine.follow(by, ada)).await.unwrap();
        engine.settled(LONG, engine.like(by, post)).await.unwrap();
        publish(&engine, by, Draft::text("hey").mentions([ada])).await;
        publish(&engine, ada, Draft::text("hey").mentions([by])).await;
    }
    engine.delete_account(ben).await.unwrap();
    drained(&engine).await;
    assert_eq!(entries(&engine, ben).await.len(), 0);
    assert!(told(&engine, ada).await.iter().all(|(_, by, _)| *by == cy));
    assert_eq!(told(&engine, ada).await.len(), 3);
    let check = async |repairs: bool| {
        let options =
            FsckOptions { repair: repairs, pause: Duration::from_millis(50), ..FsckOptions::default() };
        engine.fsck(&options, &|_| {}).await.unwrap()
    };
    let report = check(true).await;
    // The follow, and the mention; the like went with its end.
    assert_eq!(report.findings[&FindingKind::NotificationOfNothing].repaired, 2, "{report:#?}");
    assert!(report.is_clean(), "{report:#?}");
    assert_eq!(entries(&engine, ada).await.len(), 3);
    assert!(check(false).await.findings.is_empty());
    let inspected = engine.inspect(ada).await.unwrap();
    assert_eq!(inspected.notifications, 3);
}

#[tokio::test]
async fn a_like_that_was_acknowledged_is_told_though_the_primary_is_killed() {
    let cluster = own(replicated()).await;
    let store = StoreOptions { router: patient_with_replicas(), ..options(cluster.urls()) };
    let settings = EngineSettings { acknowledge: Acknowledge::Replicated, ..keeping() };
    let engine = engine_with(store, settings).await;
    let people = accounts(&engine, 25).await;
    let (ada, others) = people.split_first().unwrap();
    let (before, meanwhile) = others.split_at(8);
    let post = publish(&engine, *ada, Draft::text("low tide")).await;
    let engine = &engine;
    for by in before {
        engine.like(*by, post).await.unwrap();
    }
    let liking = |by: AccountId| async move { engine.like(by, post).await.ok().map(|_| by) };
    let mut liking: FuturesUnordered<_> = meanwhile.iter().copied().map(liking).collect();
    // All others are under way once one is done.
    let first = liking.next().await.flatten();
    kill_primary(&cluster, engine, slot_of(engine, *ada));
    let meanwhile = in_the_end("all have liked it", liking.collect::<Vec<_>>()).await;
    let acknowledged = before.iter().copied().chain(first).chain(meanwhile.into_iter().flatten());
    drained(engine).await;
    let told = told(engine, *ada).await;
    let by: HashSet<AccountId> = told.iter().map(|(_, by, _)| *by).collect();
    assert_eq!(told.len(), by.len(), "{told:?}");
    assert_eq!(acknowledged.filter(|liker| !by.contains(liker)).collect::<Vec<_>>(), [], "{by:?}");
}
