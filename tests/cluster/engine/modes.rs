//! Push and pull, and crossing from one to the other while everything goes on.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::join_all;
use metrics_util::debugging::DebuggingRecorder;
use tideline::post::Draft;
use tideline::{
    AccountFacts, AccountId, DeliveryWay, Engine, EngineSettings, ErrorKind, FanoutState, Mode, ModeSettings,
    NewAccount, Policy, PolicyName, PostId, Query, StoredHomeEntry,
};

use crate::harness::eventually;
use crate::router::counted;

use super::{accounts, drained, engine, engine_with, small, tenant, walk_home};

async fn post(engine: &Engine, author: AccountId) -> PostId {
    engine.publish(author, &Draft::text("a post")).await.unwrap().id
}

/// How many posts of anybody a reader's home holds as stored.
async fn stored(engine: &Engine, reader: AccountId) -> BTreeSet<PostId> {
    let home = engine.inspect(reader).await.unwrap().home;
    let post = |entry: &StoredHomeEntry| match entry {
        StoredHomeEntry::Post { id, .. } => Some(*id),
        StoredHomeEntry::Watermark(_) | StoredHomeEntry::Filling(_) => None,
    };
    home.newest.iter().filter_map(post).collect()
}

async fn set_way(engine: &Engine, account: AccountId, way: Option<DeliveryWay>) -> u64 {
    engine.set_way(account, way).await.unwrap().all().await.unwrap().delivered
}

async fn followed(engine: &Engine, readers: usize) -> (AccountId, Vec<AccountId>) {
    let mut all = accounts(engine, readers + 1).await;
    let author = all.pop().unwrap();
    join_all(all.iter().map(|reader| engine.follow(*reader, author))).await;
    for reader in &all {
        engine.warm(*reader).await.unwrap();
    }
    drained(engine).await;
    (author, all)
}

#[tokio::test]
async fn posts_of_a_pulled_account_stay_in_its_outbox_and_show_all_the_same() {
    // Local, then spread, followers.
    for readers in [10, 60] {
        let engine = engine().await;
        let (author, readers) = followed(&engine, readers).await;
        let before = post(&engine, author).await;
        drained(&engine).await;
        assert_eq!(set_way(&engine, author, Some(DeliveryWay::Pull)).await, readers.len() as u64);
        let state = engine.mode(author).await.unwrap();
        assert_eq!((state.mode, state.forced, state.progress), (Mode::Pull, Some(DeliveryWay::Pull), None));
        let after = post(&engine, author).await;
        drained(&engine).await;
        for reader in &readers {
            assert!(stored(&engine, *reader).await.contains(&before));
            assert!(!stored(&engine, *reader).await.contains(&after));
            assert_eq!(walk_home(&engine, *reader, 20).await, [after, before]);
        }
    }
}

#[tokio::test]
async fn a_demotion_brings_what_was_not_delivered_into_homes_without_filling_any() {
    for readers in [10, 60] {
        let engine = engine().await;
        let (author, readers) = followed(&engine, readers).await;
        set_way(&engine, author, Some(DeliveryWay::Pull)).await;
        let pulled = [post(&engine, author).await, post(&engine, author).await];
        assert_eq!(set_way(&engine, author, Some(DeliveryWay::Push)).await, readers.len() as u64);
        let pushed = post(&engine, author).await;
        drained(&engine).await;
        for reader in &readers {
            let inspection = engine.inspect(*reader).await.unwrap();
            assert!(inspection.pulls.is_empty(), "{reader} pulls still: {:?}", inspection.pulls);
            assert_eq!(stored(&engine, *reader).await, BTreeSet::from([pulled[0], pulled[1], pushed]));
            assert_eq!(walk_home(&engine, *reader, 20).await, [pushed, pulled[1], pulled[0]]);
        }
    }
}

#[tokio::test]
async fn a_mark_that_a_demotion_left_goes_once_the_home_has_moved_on() {
    let settings = EngineSettings { visible_within: Duration::from_millis(20), ..small() };
    let engine = engine_with(tenant(40), settings).await;
    let (author, readers) = followed(&engine, 1).await;
    let reader = readers[0];
    set_way(&engine, author, Some(DeliveryWay::Pull)).await;
    // More than a completion appends: the mark stays.
    let mut posts = Vec::new();
    for _ in 0..200 {
        posts.push(post(&engine, author).await);
    }
    set_way(&engine, author, Some(DeliveryWay::Push)).await;
    assert_eq!(engine.inspect(reader).await.unwrap().pulls, [author]);
    // The home is cut: its floor passes the last post that was not pushed.
    for _ in 0..60 {
        posts.push(post(&engine, author).await);
    }
    drained(&engine).await;
    eventually("a read has the mark taken", async || {
        engine.as_reader(reader).read(&Query::home()).await.unwrap();
        engine.inspect(reader).await.unwrap().pulls.is_empty()
    })
    .await;
    posts.reverse();
    assert_eq!(walk_home(&engine, reader, 20).await, posts);
}

/// Modes go back and forth while followers come and go, posts are written and pages read: no page may have a hole.
#[tokio::test]
async fn nothing_is_missing_while_an_account_crosses_over_and_back() {
    let engine = engine().await;
    let (author, readers) = followed(&engine, 50).await;
    let is_over = AtomicBool::new(false);
    let crossing = async {
        for n in 0..12 {
            let way = if n % 2 == 0 { DeliveryWay::Pull } else { DeliveryWay::Push };
            set_way(&engine, author, Some(way)).await;
        }
        is_over.store(true, Ordering::Relaxed);
    };
    let posting = async {
        let mut posts = Vec::new();
        while !is_over.load(Ordering::Relaxed) {
            posts.push(post(&engine, author).await);
            // Acknowledged and its fan-out finished: from now on every page shows it.
            let settled = posts.clone();
            eventually("everybody has it", async || {
                matches!(engine.fanout(settled[settled.len() - 1]).await, Ok(FanoutState::Done))
            })
            .await;
            for reader in readers.iter().take(5) {
                let seen = engine.as_reader(*reader).read(&Query::home().limit(100)).await.unwrap().ids();
                let newest: Vec<PostId> = settled.iter().rev().take(100).copied().collect();
                let seen: Vec<PostId> = seen.into_iter().filter(|id| settled.contains(id)).collect();
                assert_eq!(seen, newest);
            }
        }
        posts
    };
    let following = async {
        let mut n = 0;
        while !is_over.load(Ordering::Relaxed) {
            let reader = readers[10 + n % 40];
            engine.unfollow(reader, author).await.unwrap();
            engine.follow(reader, author).await.unwrap();
            n += 1;
        }
    };
    let ((), mut posts, ()) = futures::join!(crossing, posting, following);
    drained(&engine).await;
    posts.reverse();
    for reader in &readers {
        assert_eq!(walk_home(&engine, *reader, 20).await, posts, "of {reader}");
    }
}

#[tokio::test]
async fn a_policy_crosses_over_and_what_was_told_by_hand_stays() {
    let modes = ModeSettings {
        policy: PolicyName::Threshold,
        pull_from: 8,
        push_below: 4,
        decide_every: Duration::from_millis(1),
        ..ModeSettings::default()
    };
    let engine = engine_with(tenant(40), EngineSettings { modes, ..small() }).await;
    let (author, readers) = followed(&engine, 9).await;
    post(&engine, author).await;
    wait_for(&engine, author, Mode::Pull).await;
    for reader in &readers[3..] {
        engine.unfollow(*reader, author).await.unwrap();
    }
    drained(&engine).await;
    // What is pulled is looked at when it was pulled.
    engine.as_reader(readers[0]).read(&Query::home()).await.unwrap();
    engine.judge_now().await;
    wait_for(&engine, author, Mode::Push).await;
    set_way(&engine, author, Some(DeliveryWay::Pull)).await;
    engine.as_reader(readers[0]).read(&Query::home()).await.unwrap();
    engine.judge_now().await;
    assert_eq!(engine.mode(author).await.unwrap().mode, Mode::Pull);
    set_way(&engine, author, None).await;
    engine.as_reader(readers[0]).read(&Query::home()).await.unwrap();
    engine.judge_now().await;
    wait_for(&engine, author, Mode::Push).await;
    // Told what it is already: from then on no policy changes it.
    set_way(&engine, author, Some(DeliveryWay::Push)).await;
    assert_eq!(engine.mode(author).await.unwrap().forced, Some(DeliveryWay::Push));
    for reader in &readers[3..] {
        engine.follow(*reader, author).await.unwrap();
    }
    post(&engine, author).await;
    drained(&engine).await;
    assert_eq!(engine.mode(author).await.unwrap().mode, Mode::Push);
}

/// Each hands the author over, whenever it has a post of it delivered, or it is pulled.
#[tokio::test]
async fn instances_whose_policies_differ_hear_of_it() {
    let options = tenant(40);
    let with = async |policy| {
        let modes =
            ModeSettings { policy, decide_every: Duration::from_millis(1), ..ModeSettings::default() };
        engine_with(options.clone(), EngineSettings { modes, ..small() }).await
    };
    let (pulling, pushing) = (with(PolicyName::Pull).await, with(PolicyName::Push).await);
    let (author, readers) = followed(&pulling, 2).await;
    for _ in 0..3 {
        assert!(!is_told(&pulling).await && !is_told(&pushing).await);
        post(&pulling, author).await;
        wait_for(&pulling, author, Mode::Pull).await;
        pushing.as_reader(readers[0]).read(&Query::home()).await.unwrap();
        pushing.judge_now().await;
        wait_for(&pushing, author, Mode::Push).await;
    }
    for engine in [pulling, pushing] {
        eventually("who is overruled says so", async || is_told(&engine).await).await;
        assert!(engine.health().await.unwrap().is_well);
    }
}

async fn is_told(engine: &Engine) -> bool {
    let findings = engine.health().await.unwrap().findings;
    findings.iter().any(|finding| finding.text.contains("was handed back in between"))
}

async fn wait_for(engine: &Engine, author: AccountId, mode: Mode) {
    eventually(&format!("{author} is {mode:?}"), async || engine.mode(author).await.unwrap().mode == mode)
        .await;
    drained(engine).await;
}

/// One of a service's own: announcements are pulled, whoever follows.
#[derive(Debug)]
struct Everybody;

impl Policy for Everybody {
    fn way(&self, facts: &AccountFacts) -> DeliveryWay {
        if facts.followers > 0 { DeliveryWay::Pull } else { facts.now }
    }
}

#[tokio::test]
async fn a_service_may_bring_a_policy_of_its_own() {
    let engine =
        Engine::builder().store(tenant(40)).settings(small()).policy(Everybody).start().await.unwrap();
    let (author, readers) = followed(&engine, 2).await;
    let first = post(&engine, author).await;
    wait_for(&engine, author, Mode::Pull).await;
    assert_eq!(walk_home(&engine, readers[0], 20).await, [first]);
}

/// However many readers pull an outbox at the same time, each instance asks for it once within `visible_within`.
#[tokio::test]
async fn a_pulled_outbox_is_read_once_by_each_instance_however_many_pull_it() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let settings = EngineSettings { visible_within: Duration::from_secs(600), ..small() };
    let options = tenant(40);
    let engines =
        [engine_with(options.clone(), settings.clone()).await, engine_with(options, settings).await];
    let (author, readers) = followed(&engines[0], 30).await;
    set_way(&engines[0], author, Some(DeliveryWay::Pull)).await;
    let posted = post(&engines[0], author).await;
    for engine in &engines {
        // Each learns first what its readers follow: a read that doesn't know whom to pull asks nobody for the newest.
        for round in 0..2 {
            snapshotter.snapshot();
            let reads = join_all(readers.iter().map(|reader| async move {
                let query = Query::home();
                engine.as_reader(*reader).read(&query).await.unwrap().ids()
            }))
            .await;
            assert!(reads.iter().all(|ids| *ids == [posted]), "{reads:?}");
            let of = |outcome| [("cache", "outboxes"), ("outcome", outcome)];
            let looked = snapshotter.snapshot();
            let misses = counted(looked, "tideline_cache_lookups_total", of("miss"));
            assert_eq!(misses, u64::from(round == 0), "in round {round}");
        }
    }
}

#[tokio::test]
async fn an_account_that_is_not_there_has_no_mode() {
    let engine = engine().await;
    let nobody = AccountId::new(77).unwrap();
    assert_eq!(engine.mode(nobody).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(
        engine.set_way(nobody, Some(DeliveryWay::Pull)).await.unwrap_err().kind(),
        ErrorKind::NotFound
    );
    // One that is pulled from the beginning needs no change.
    let pulled = NewAccount { mode: Mode::Pull, ..NewAccount::default() };
    let pulled = engine.create_account(pulled).await.unwrap().value;
    assert_eq!(set_way(&engine, pulled, Some(DeliveryWay::Pull)).await, 0);
}
