//! What one account (the attacker) can have done in the bucket of another one (the neighbour), which has asked for
//! nothing: each bound that docs/abuse.md names is met, and the neighbour keeps all that it has.

use std::time::Duration;

use futures::future::{join_all, try_join_all};
use futures::stream::{self, StreamExt as _};
use tideline::post::{Draft, PostRef};
use tideline::sharded::{Layout, Order, PAGE_MAX, SortedSet};
use tideline::{
    AROUND_MAX, AROUND_PAGE_MAX, AccountId, Engine, EngineSettings, ErrorKind, PAGE_LEN_MAX, PostId, Query,
    Store, StoreOptions,
};

use super::super::{accounts, at_bucket_key, at_key, drained, engine, engine_with, small, tenant, walk_home};
use super::{many, publish, shown};
use crate::harness::{eventually, in_the_end, options, shared};

/// Two accounts of one bucket, and all others, none of them in it. There are fewer buckets than accounts.
async fn neighbours(engine: &Engine) -> ([AccountId; 2], Vec<AccountId>) {
    let bucket = |account: &AccountId| engine.store().keys().buckets().of_account(account.get());
    let all = accounts(engine, 40).await;
    let mut pairs = all.iter().enumerate().flat_map(|(n, one)| all[..n].iter().map(|other| [*one, *other]));
    let pair = pairs.find(|[one, other]| bucket(one) == bucket(other)).unwrap();
    let others = all.iter().filter(|other| bucket(other) != bucket(&pair[0]));
    (pair, others.copied().collect())
}

/// Who follows an account, in the order of their ids.
async fn following(engine: &Engine, account: AccountId) -> Vec<AccountId> {
    let page = engine.stored().followers(account, None, 1_000, Order::Ascending).await.unwrap();
    let mut ids: Vec<AccountId> = page.entries.into_iter().map(|(id, _)| id).collect();
    ids.sort_unstable();
    ids
}

async fn toggled(engine: &Engine, reader: AccountId, author: AccountId, is_on: bool) -> tideline::Result<()> {
    if is_on {
        engine.follow(reader, author).await.map(drop)
    } else {
        engine.unfollow(reader, author).await.map(drop)
    }
}

/// Publishes what can't be delivered.
async fn publish_only(engine: &Engine, author: AccountId, posts: usize) -> Vec<PostId> {
    let draft = |n: usize| Draft::text(format!("{n}"));
    let publish = |n| async move { engine.publish(author, &draft(n)).await.unwrap().id };
    stream::iter(0..posts).map(publish).buffered(8).collect().await
}

/// The same one after another: a call holds its places a moment longer than it needs them.
async fn publish_in_turn(engine: &Engine, author: AccountId, posts: usize) {
    for n in 0..posts {
        engine.publish(author, &Draft::text(format!("{n}"))).await.unwrap();
    }
}

/// Beyond what is loaded nothing is counted: more answers than that ended the look.
#[tokio::test]
async fn a_conversation_of_many_answers_to_many_answers_shows_as_many_as_it_may() {
    let engine = engine().await;
    let people = accounts(&engine, 2).await;
    let answers = |of: PostRef, many| vec![Draft::text("so").reply_to(of); many];
    let post = publish(&engine, people[0], vec![Draft::text("low tide")]).await[0];
    let at = PostRef { id: post, author: people[0] };
    for id in publish(&engine, people[1], answers(at, 8)).await {
        publish(&engine, people[0], answers(PostRef { id, author: people[1] }, 55)).await;
    }
    let thread = engine.as_reader(people[1]).conversation(post).await.unwrap();
    assert_eq!(thread.descendants.len(), tideline::DESCENDANTS_MAX);
}

/// H285: direct answers to oneself stand among the answers to a post, and show to nobody.
#[tokio::test]
async fn whatever_one_account_answers_a_conversation_shows_what_others_answer() {
    let engine = engine().await;
    let people = accounts(&engine, 6).await;
    let post = publish(&engine, people[0], vec![Draft::text("low tide")]).await[0];
    let at = PostRef { id: post, author: people[0] };
    let mut answers = Vec::new();
    for other in &people[1..5] {
        answers.extend(publish(&engine, *other, vec![Draft::text("so").reply_to(at)]).await);
    }
    answers.sort_unstable();
    let attacker = people[5];
    for n in 0..70 {
        // Of a few of them each is a chat of its own.
        let token = (n % 10 == 0).then(|| n.to_string());
        let draft = Draft { token, ..Draft::text("mine").reply_to(at) };
        engine.publish_direct(attacker, &[], &draft).await.unwrap();
    }
    drained(&engine).await;
    let thread = engine.as_reader(people[1]).conversation(post).await.unwrap();
    let mut shown: Vec<PostId> = thread.descendants.iter().map(|post| post.id).collect();
    shown.sort_unstable();
    assert_eq!(shown, answers);
    assert_eq!(thread.post.post.unwrap().header().replies, 74);
}

#[tokio::test]
async fn an_outbox_lists_no_more_than_its_bound_and_takes_nothing_of_a_neighbours() {
    const LISTED: usize = 100;
    // By so many at once an outbox is cut.
    const SLACK: usize = 512;
    let engine = engine_with(tenant(40), EngineSettings { outbox_posts: 100, ..small() }).await;
    let ([attacker, neighbour], _) = neighbours(&engine).await;
    let mut own = publish(&engine, neighbour, many(5, |draft| draft)).await;
    own.reverse();
    let listed = async || {
        let length = at_key(&engine, 'o', attacker, "LLEN", &[]).await.count().unwrap();
        usize::try_from(length).unwrap() - 1 // its floor
    };
    let mut most = 0;
    for _ in 0..8 {
        publish(&engine, attacker, many(100, |draft| draft)).await;
        most = most.max(listed().await);
    }
    assert!(most > LISTED && most <= LISTED + SLACK, "{most} listed");
    assert!(listed().await < most, "it was cut");
    assert_eq!(shown(&engine, neighbour, &Query::profile(neighbour)).await, own);
    assert_eq!(walk_home(&engine, neighbour, 20).await, own);
}

#[tokio::test]
async fn a_burst_of_ids_has_the_next_one_of_its_bucket_no_later_than_its_own_last() {
    const PER_MS: u32 = 64;
    const AHEAD_MS: u64 = 20_000;
    /// By how much an instance's time may change when clocks are measured again.
    const EXACT_MS: u64 = 2_000;
    let store = Store::open(StoreOptions { buckets: Some(1_024), ..options(shared()) }).await.unwrap();
    let [bucket, elsewhere] = [1, 2].map(|id| store.keys().buckets().of_account(id));
    let take = async |bucket, count: u32| store.clock().post_ids(bucket, count).await.unwrap();
    let first = take(bucket, 1).await[0].unix_ms();
    let mut last = first;
    for _ in 0..AHEAD_MS / 100 {
        last = take(bucket, PER_MS * 100).await.pop().unwrap().unix_ms();
    }
    let now = async || store.router().now_ms() + EXACT_MS;
    assert!((first + AHEAD_MS..=now().await + AHEAD_MS).contains(&last), "{} ms ahead", last - first);
    let next = take(bucket, 1).await[0].unix_ms();
    assert!((last..=last.max(now().await) + 1).contains(&next), "{next} after {last}");
    let other = take(elsewhere, 1).await[0].unix_ms();
    assert!(other <= now().await, "{other} in another bucket, beside {last}");
}

#[tokio::test]
async fn however_often_somebody_follows_it_is_one_follower_and_not_one_of_whom_one_blocks() {
    let engine = engine().await;
    let [attacker, victim, friend] = accounts(&engine, 3).await[..] else { panic!("three were made") };
    engine.follow(friend, victim).await.unwrap();
    for _ in 0..5 {
        try_join_all((0..8).map(|_| engine.follow(attacker, victim))).await.unwrap();
        try_join_all((0..8).map(|n| toggled(&engine, attacker, victim, n % 2 == 0))).await.unwrap();
        engine.follow(attacker, victim).await.unwrap();
        drained(&engine).await;
        assert_eq!(following(&engine, victim).await, [attacker, friend]);
        assert_eq!(engine.stored().account(victim).await.unwrap().followers, 2);
    }
    // Its posts go to one more home; to none of who doesn't read.
    engine.warm(friend).await.unwrap();
    let reached = async || {
        let mut published = engine.publish(victim, &Draft::text("to whom it may concern")).await.unwrap();
        let progress = published.delivery.all().await.unwrap();
        (progress.delivered, progress.skipped)
    };
    assert_eq!(reached().await, (1, 1));
    engine.warm(attacker).await.unwrap();
    assert_eq!(reached().await, (2, 0));
    engine.block(victim, attacker).await.unwrap();
    drained(&engine).await;
    for refused in join_all((0..8).map(|_| engine.follow(attacker, victim))).await {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    }
    drained(&engine).await;
    assert_eq!(following(&engine, victim).await, [friend]);
    assert_eq!(reached().await, (1, 0));
}

#[tokio::test]
async fn a_follower_set_is_spread_once_however_many_come_and_go() {
    let engine = engine().await;
    let mut all = accounts(&engine, 62).await;
    let (victim, friend) = (all.remove(0), all.remove(0));
    let set: SortedSet<AccountId> = engine.store().sets().of_account(victim, "followers").unwrap();
    engine.follow(friend, victim).await.unwrap();
    engine.warm(friend).await.unwrap();
    let mut posts = Vec::new();
    for round in 0..3 {
        assert_eq!(set.layout().await.unwrap(), if round == 0 { Layout::Local } else { Layout::Spread });
        for is_on in [true, false] {
            stream::iter(&all)
                .for_each_concurrent(8, async |one| {
                    toggled(&engine, *one, victim, is_on).await.unwrap();
                })
                .await;
            drained(&engine).await;
            assert_eq!(set.layout().await.unwrap(), Layout::Spread);
            let mut wanted = if is_on { all.clone() } else { Vec::new() };
            wanted.push(friend);
            wanted.sort_unstable();
            assert_eq!(following(&engine, victim).await, wanted);
            posts.insert(0, publish(&engine, victim, many(1, |draft| draft)).await[0]);
            assert_eq!(walk_home(&engine, friend, 20).await, posts);
        }
    }
}

/// What nobody can carry out: the home of somebody whom posts go to is damaged.
async fn who_holds_up(engine: &Engine, author: AccountId, reader: AccountId) {
    engine.follow(reader, author).await.unwrap();
    drained(engine).await;
    at_key(engine, 'h', reader, "SET", &["damaged"]).await;
}

/// Waits until all other work is done, and struck: of one's own not even an entry may be among those that are drawn.
async fn only_held_up(engine: &Engine, entries: usize) {
    let is_so = async || engine.health().await.unwrap().journal_entries == entries as u64;
    eventually("only what is held up is left", is_so).await;
}

async fn is_refused(engine: &Engine, who: AccountId, other: AccountId) {
    let refused = engine.publish(who, &Draft::text("one more")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Overloaded, "{refused}");
    let refused = engine.follow(who, other).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Overloaded, "{refused}");
}

/// Half of it one account may fill with what can't be carried out. It had all: nobody else of that bucket could write
/// (H160).
#[tokio::test]
async fn a_full_journal_refuses_who_writes_in_its_bucket_and_one_account_does_not_fill_it() {
    const ENTRIES: usize = 100;
    let (options, settings) = (tenant(40), EngineSettings { journal_max: 100, ..small() });
    let engine = engine_with(options.clone(), settings.clone()).await;
    let ([attacker, neighbour], others) = neighbours(&engine).await;
    let [reader, other] = others[..2] else { panic!("there are more") };
    who_holds_up(&engine, attacker, reader).await;
    let mut posts = publish_only(&engine, attacker, ENTRIES / 2).await;
    is_refused(&engine, attacker, other).await;
    engine.follow(neighbour, other).await.unwrap();
    engine.follow(other, neighbour).await.unwrap();
    only_held_up(&engine, ENTRIES / 2).await;
    let mut meanwhile = engine.publish(neighbour, &Draft::text("meanwhile")).await.unwrap();
    in_the_end("a neighbour's delivery", meanwhile.delivery.all()).await.unwrap();
    only_held_up(&engine, ENTRIES / 2).await;

    let many: Vec<String> = (ENTRIES / 2..ENTRIES).map(|n| format!("other-{n}")).collect();
    let entries: Vec<&str> = many.iter().flat_map(|entry| [entry.as_str(), "nobody..?"]).collect();
    at_bucket_key(&engine, 'j', attacker, "HSET", &entries).await;
    for who in [attacker, neighbour] {
        is_refused(&engine, who, others[2]).await;
    }
    assert_eq!(engine.health().await.unwrap().journal_entries, ENTRIES as u64);
    // What leaves no entry goes on, and all else elsewhere.
    assert_eq!(walk_home(&engine, neighbour, 20).await, [meanwhile.id]);
    let mut published = engine.publish(other, &Draft::text("elsewhere")).await.unwrap();
    in_the_end("a delivery in another bucket", published.delivery.all()).await.unwrap();
    engine.follow(others[2], other).await.unwrap();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    at_bucket_key(&engine, 'j', attacker, "HDEL", &many).await;

    at_key(&engine, 'h', reader, "DEL", &[]).await;
    // Another instance has not paused for long yet.
    engine.shutdown(Duration::ZERO).await.unwrap();
    let engine = engine_with(options, settings).await;
    drained(&engine).await;
    posts.reverse();
    assert_eq!(walk_home(&engine, reader, 100).await, posts);
    let post = engine.publish(neighbour, &Draft::text("at last")).await.unwrap().id;
    assert_eq!(walk_home(&engine, other, 20).await, [post, published.id, meanwhile.id]);
}

/// One account's posts are delivered to nobody: it had all places of its instance, and nobody else there could write.
#[tokio::test]
async fn one_account_gets_half_of_an_instances_places_and_what_it_takes_back_always_goes() {
    const PLACES: usize = 16;
    let settings = EngineSettings { tasks_max: PLACES, tasks_at_once: 4, ..small() };
    let engine = engine_with(tenant(40), settings).await;
    let ([attacker, _], others) = neighbours(&engine).await;
    let [reader, elsewhere, author] = others[..3] else { panic!("there are more") };
    let liked = engine.publish(author, &Draft::text("liked")).await.unwrap();
    engine.follow(attacker, author).await.unwrap();
    engine.like(attacker, liked.id).await.unwrap();
    drained(&engine).await;
    who_holds_up(&engine, attacker, reader).await;
    publish_in_turn(&engine, attacker, PLACES / 2).await;
    for refused in [
        engine.publish(attacker, &Draft::text("one more")).await.unwrap_err(),
        engine.follow(attacker, elsewhere).await.unwrap_err(),
    ] {
        assert_eq!(refused.kind(), ErrorKind::Overloaded, "{refused}");
        assert!(refused.to_string().contains(&format!("account {attacker} has 8 of 16")), "{refused}");
    }
    engine.unfollow(attacker, author).await.unwrap();
    engine.unlike(attacker, liked.id).await.unwrap();
    let mut published = engine.publish(elsewhere, &Draft::text("beside it")).await.unwrap();
    in_the_end("a delivery beside it", published.delivery.all()).await.unwrap();
}

#[tokio::test]
async fn an_instance_whose_places_are_taken_refuses_and_another_one_does_not() {
    const PLACES: usize = 16;
    let options = tenant(40);
    let settings = EngineSettings { tasks_max: PLACES, tasks_at_once: 4, ..small() };
    let full = engine_with(options.clone(), settings.clone()).await;
    let other = engine_with(options, settings).await;
    let people = accounts(&full, 7).await;
    let [reader, elsewhere] = people[..2] else { panic!("seven were made") };
    // Each gets half of what those before it have left.
    let attackers: Vec<(AccountId, usize)> = people[2..].iter().copied().zip([8, 4, 2, 1, 1]).collect();
    for (attacker, _) in &attackers {
        full.follow(reader, *attacker).await.unwrap();
    }
    drained(&full).await;
    at_key(&full, 'h', reader, "SET", &["damaged"]).await;
    for (attacker, places) in &attackers {
        publish_in_turn(&full, *attacker, *places).await;
    }
    for who in [attackers[4].0, elsewhere] {
        let refused = full.publish(who, &Draft::text("one more")).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Overloaded, "{refused}");
    }
    assert_eq!(full.tasks(), PLACES);
    let mut published = other.publish(elsewhere, &Draft::text("elsewhere")).await.unwrap();
    in_the_end("a delivery by another instance", published.delivery.all()).await.unwrap();
}

/// A burial has a task for each follower; while half of the places are taken it makes none, and nobody waits behind it.
#[tokio::test]
async fn while_an_account_is_buried_others_find_places_and_their_posts_arrive() {
    const PLACES: usize = 40;
    let options = tenant(100);
    let settings = EngineSettings { tasks_max: PLACES, tasks_at_once: 1, ..small() };
    let engine = engine_with(options.clone(), settings).await;
    // Fewer than there are places left.
    let mut readers = accounts(&engine, 14).await;
    let [gone, busy, held_up, author] = [(); 4].map(|()| readers.pop().unwrap());
    readers.sort_unstable();
    for reader in &readers {
        engine.follow(*reader, gone).await.unwrap();
        drained(&engine).await;
    }
    engine.follow(readers[0], author).await.unwrap();
    engine.warm(readers[0]).await.unwrap();
    who_holds_up(&engine, busy, held_up).await;
    publish_in_turn(&engine, busy, PLACES / 2).await;

    engine.delete_account(gone).await.unwrap();
    let mut posts = Vec::new();
    for _ in 0..40 {
        let mut published = engine.publish(author, &Draft::text("meanwhile")).await.unwrap();
        in_the_end("a post beside a burial", published.delivery.all()).await.unwrap();
        posts.insert(0, published.id);
    }
    for reader in &readers {
        assert!(engine.stored().is_following(*reader, gone).await.unwrap(), "a burial has taken places");
    }
    at_key(&engine, 'h', held_up, "DEL", &[]).await;
    engine.shutdown(Duration::ZERO).await.unwrap();
    let engine = engine_with(options, small()).await;
    drained(&engine).await;
    assert_eq!(following(&engine, gone).await, []);
    assert_eq!(walk_home(&engine, readers[0], 100).await, posts);
}

#[tokio::test]
async fn pages_and_what_comes_along_are_as_long_as_they_may_be_and_no_longer() {
    let engine = engine().await;
    let [author, fan] = accounts(&engine, 2).await[..] else { panic!("two were made") };
    let post = PostRef { id: publish(&engine, author, many(1, |draft| draft)).await[0], author };
    publish(&engine, fan, many(AROUND_MAX + 5, |draft| draft.reply_to(post))).await;
    let profile = Query::profile(author).hydrated();
    let page = engine.as_reader(fan).read(&profile.with_replies(AROUND_MAX)).await.unwrap();
    assert_eq!(page.posts[0].replies.len(), AROUND_MAX);
    let (each, each_max) = (profile.limit(PAGE_LEN_MAX), AROUND_PAGE_MAX / PAGE_LEN_MAX);
    let page = engine.as_reader(fan).read(&each.with_replies(each_max).with_likers(each_max)).await.unwrap();
    assert_eq!(page.posts[0].replies.len(), each_max);
    let refused = [
        engine.as_reader(fan).read(&profile.with_replies(AROUND_MAX + 1)).await.unwrap_err(),
        engine.as_reader(fan).read(&profile.limit(PAGE_LEN_MAX + 1)).await.unwrap_err(),
        engine.as_reader(fan).read(&each.with_replies(each_max + 1)).await.unwrap_err(),
        engine.as_reader(fan).read(&each.with_likers(each_max + 1)).await.unwrap_err(),
        engine.stored().followers(author, None, PAGE_MAX + 1, Order::Ascending).await.unwrap_err(),
    ];
    assert!(refused.iter().all(|e| e.kind() == ErrorKind::Invalid), "{refused:?}");
}
