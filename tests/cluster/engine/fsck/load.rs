//! Beside a load: what is in flight is no fault, and a repair harms nothing.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use tideline::post::PostRef;
use tideline::{AccountUpdate, DeliveryWay, EngineSettings, ErrorKind, Query};

use super::*;
use crate::engine::{engine_with, small, tenant, walk_home};
use crate::harness::seeded;

const PEOPLE: usize = 40;

/// What a random step may refuse: somebody is gone, or blocked, or follows already.
fn may_fail<T>(outcome: tideline::Result<T>) {
    if let Err(e) = outcome {
        assert!(matches!(e.kind(), ErrorKind::Invalid | ErrorKind::NotFound), "{e}");
    }
}

/// One random step of any kind.
async fn step(engine: &Engine, random: &mut StdRng, people: &[AccountId], posts: &mut Vec<PostRef>) {
    let (a, b) = (*people.choose(random).unwrap(), *people.choose(random).unwrap());
    let target = posts.choose(random).copied();
    let star = people[random.random_range(0..3)];
    match random.random_range(0..100) {
        0..25 => {
            let draft = match target {
                Some(target) if random.random_ratio(1, 3) => Draft::text("so").reply_to(target),
                Some(target) if random.random_ratio(1, 3) => Draft::repost(target),
                _ => Draft::text("a post"),
            };
            match engine.publish(a, &draft).await {
                Ok(published) => posts.push(PostRef { id: published.id, author: a }),
                Err(e) => assert!(matches!(e.kind(), ErrorKind::Invalid | ErrorKind::NotFound), "{e}"),
            }
        }
        25..30 => {
            if let Some(post) = target {
                may_fail(engine.delete(post.author, post.id).await);
            }
        }
        30..50 => may_fail(engine.follow(a, if random.random() { star } else { b }).await),
        50..60 => may_fail(engine.unfollow(a, if random.random() { star } else { b }).await),
        60..63 => may_fail(engine.block(a, b).await),
        63..66 => may_fail(engine.unblock(a, b).await),
        66..68 => may_fail(engine.mute(a, b).await),
        68..70 => may_fail(engine.hide_from(a, b).await),
        70..72 => {
            let update = AccountUpdate { is_locked: Some(random.random()), ..AccountUpdate::default() };
            may_fail(engine.update_account(a, &update).await);
        }
        72..76 => {
            for asks in engine.stored().follow_requests(a).await.unwrap() {
                may_fail(if random.random() {
                    engine.approve(a, asks).await
                } else {
                    engine.reject(a, asks).await
                });
            }
        }
        76..80 => {
            let way = if random.random() { DeliveryWay::Pull } else { DeliveryWay::Push };
            may_fail(engine.set_way(if random.random() { star } else { a }, Some(way)).await);
        }
        80..83 => drop(raw_of(engine, a, 'h', "UNLINK", &[]).await),
        _ => may_fail(engine.as_reader(a).read(&Query::home().limit(10)).await),
    }
}

#[tokio::test]
async fn after_a_random_history_nothing_is_out_of_step() {
    let mut random = seeded("after_a_random_history_nothing_is_out_of_step");
    // Small outboxes don't matter for a history of this length; follower sets are spread on the way.
    let engine = engine_with(tenant(15), small()).await;
    let people = accounts(&engine, PEOPLE).await;
    let mut posts = Vec::new();
    for n in 0..1_500 {
        step(&engine, &mut random, &people, &mut posts).await;
        if n == 1_000 {
            for gone in &people[PEOPLE - 4..] {
                engine.delete_account(*gone).await.unwrap();
            }
        }
    }
    drained(&engine).await;
    let report = fsck(&engine, false).await;
    assert!(report.is_clean() && report.accounts == PEOPLE as u64, "{report:#?}");
    assert!(report.findings.keys().all(|kind| kind.is_harmless()), "{report:#?}");
    assert_eq!(report.in_flight, 0);
}

#[tokio::test]
async fn beside_a_load_nothing_is_found_and_nothing_is_harmed() {
    let mut random = seeded("beside_a_load_nothing_is_found_and_nothing_is_harmed");
    let store = tenant(15);
    let engine = engine_with(store.clone(), small()).await;
    let people = accounts(&engine, PEOPLE).await;
    let other = engine_with(store, EngineSettings { ..small() }).await;
    let is_over = AtomicBool::new(false);
    let workers: Vec<StdRng> = (0..8).map(|_| StdRng::seed_from_u64(random.random())).collect();
    let load = join_all(workers.into_iter().map(|mut random| {
        let (engine, people, is_over) = (&engine, &people, &is_over);
        async move {
            let mut posts = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                step(engine, &mut random, people, &mut posts).await;
                posts.truncate(500);
            }
            posts.len()
        }
    }));
    let looking = async {
        let mut reports = Vec::new();
        for _ in 0..5 {
            reports.push(fsck(&other, true).await);
        }
        is_over.store(true, Ordering::Relaxed);
        reports
    };
    let (posted, reports) = futures::join!(load, looking);
    println!("{posted:?} posts, {} keys", reports[4].keys);
    for report in reports {
        assert!(report.findings.keys().all(|kind| kind.is_harmless()), "{report:#?}");
    }
    drained(&engine).await;
    let report = fsck(&other, false).await;
    assert!(report.is_clean(), "{report:#?}");
    // Everybody sees what a home shows that is filled anew.
    for reader in &people {
        let before: BTreeSet<PostId> = walk_home(&engine, *reader, 20).await.into_iter().collect();
        raw_of(&engine, *reader, 'h', "UNLINK", &[]).await;
        let after: BTreeSet<PostId> = walk_home(&engine, *reader, 20).await.into_iter().collect();
        assert_eq!(before, after, "of {reader}");
    }
}
