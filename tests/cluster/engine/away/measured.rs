//! What the living get at half the rate that an instance can do, while one primary after the other is away for a
//! minute. `scripts/verify-long.sh` runs it: it takes minutes, and it measures.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt as _};
use tideline::cluster::NodeAddr;
use tideline::post::Draft;
use tideline::{AccountId, Engine, EngineSettings, StoreOptions};

use super::{servers, split, written};
use crate::engine::{accounts, engine_with};
use crate::harness::{Own, options, order};

/// How long a server is away, and how long the rate is measured before.
const AWAY: Duration = Duration::from_secs(60);
const MEASURED: Duration = Duration::from_secs(5);
/// Callers at once while the rate is measured.
const CALLERS: usize = 32;
/// The issue that this is the measure of says so: of what the living got before.
const LEAST: f64 = 0.8;

/// Beside every so manieth post somebody writes all else.
const OTHERS_EVERY: usize = 20;

/// How a server goes away and comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Frozen,
    OutOfMemory,
}

impl How {
    async fn away(self, cluster: &Own, server: &NodeAddr) {
        match self {
            Self::Frozen => cluster.node(server).unwrap().freeze().unwrap(),
            Self::OutOfMemory => order(server, "CONFIG SET maxmemory 1").await,
        }
    }

    async fn back(self, cluster: &Own, server: &NodeAddr) {
        match self {
            Self::Frozen => cluster.node(server).unwrap().thaw().unwrap(),
            Self::OutOfMemory => order(server, "CONFIG SET maxmemory 0").await,
        }
    }
}

/// What came of publishing at a rate.
#[derive(Debug, Default)]
struct Tally {
    refused: AtomicUsize,
    /// Posts whose living homes had them before the time was over.
    arrived: AtomicUsize,
    slowest_ms: AtomicUsize,
    /// The same of all else that the living write about each other, one thing after the other.
    others_refused: AtomicUsize,
    slowest_others_ms: AtomicUsize,
}

fn ms(time: Duration) -> usize {
    usize::try_from(time.as_millis()).unwrap()
}

/// All else that two of the living write.
async fn others(engine: Engine, tally: Arc<Tally>, author: AccountId, other: AccountId) {
    let began = Instant::now();
    match written(&engine, author, other).await {
        Ok(()) => tally.slowest_others_ms.fetch_max(ms(began.elapsed()), Ordering::Relaxed),
        Err(_) => tally.others_refused.fetch_add(1, Ordering::Relaxed),
    };
}

/// Publishes at a rate, each post at its time whatever became of those before, and counts which reached `homes` homes.
async fn open_loop(engine: &Engine, authors: &[AccountId], per_second: usize, homes: u64) -> Arc<Tally> {
    let tally = Arc::new(Tally::default());
    let began = tokio::time::Instant::now();
    let over = began + AWAY;
    let all = per_second * usize::try_from(AWAY.as_secs()).unwrap();
    for n in 0..all {
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let due = began + Duration::from_secs_f64(n as f64 / per_second as f64);
        tokio::time::sleep_until(due).await;
        let [author, other] = [n, n + 1].map(|n| authors[n % authors.len()]);
        if n % OTHERS_EVERY == 0 {
            tokio::spawn(others(engine.clone(), tally.clone(), author, other));
        }
        let (engine, tally) = (engine.clone(), tally.clone());
        tokio::spawn(async move {
            let Ok(mut published) = engine.publish(author, &Draft::text("at its time")).await else {
                tally.refused.fetch_add(1, Ordering::Relaxed);
                return;
            };
            tally.slowest_ms.fetch_max(ms(due.elapsed()), Ordering::Relaxed);
            let reached = published.delivery.first(homes);
            if tokio::time::timeout_at(over, reached).await.is_ok_and(|reached| reached.is_ok()) {
                tally.arrived.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    tokio::time::sleep_until(over).await;
    tally
}

/// Fan-outs a second that an instance can do.
async fn rate(engine: &Engine, authors: &[AccountId]) -> usize {
    let began = Instant::now();
    let done = AtomicUsize::new(0);
    stream::iter(0..CALLERS)
        .for_each_concurrent(None, async |caller| {
            for author in authors.iter().cycle().skip(caller) {
                if began.elapsed() > MEASURED {
                    return;
                }
                let mut published = engine.publish(*author, &Draft::text("as fast as can be")).await.unwrap();
                published.delivery.all().await.unwrap();
                done.fetch_add(1, Ordering::Relaxed);
            }
        })
        .await;
    done.into_inner() / usize::try_from(MEASURED.as_secs()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes ten minutes and measures: make verify-long"]
async fn at_half_the_rate_the_living_get_nearly_all_while_a_primary_is_away_for_a_minute() {
    let cluster = servers().await;
    let options = StoreOptions { buckets: Some(256), ..options(cluster.urls()) };
    let settings = EngineSettings { home_posts: 10_000, ..EngineSettings::default() };
    let engine = engine_with(options, settings).await;
    let people = accounts(&engine, 900).await;
    let primaries = engine.store().router().primaries();
    let frozen = primaries.iter().map(|server| (server, How::Frozen));
    for (server, how) in std::iter::once((&primaries[1], How::OutOfMemory)).chain(frozen) {
        let (there, living) = split(&engine, &people, server);
        let (authors, readers) = living.split_at(200);
        let followers: BTreeMap<AccountId, [AccountId; 3]> = (0..authors.len())
            .map(|n| {
                let reader = |m: usize| readers[(2 * n + m) % readers.len()];
                (authors[n], [reader(0), reader(1), there[n % there.len()]])
            })
            .collect();
        stream::iter(&followers)
            .for_each_concurrent(16, async |(author, followers)| {
                for reader in followers {
                    engine.follow(*reader, *author).await.unwrap();
                }
            })
            .await;
        engine.drained(AWAY).await.unwrap();
        // Only now: a follow of somebody who has posts may drop a home that lacks them.
        for reader in followers.values().flatten() {
            engine.warm(*reader).await.unwrap();
        }
        let rate = rate(&engine, authors).await / 2;
        let before = open_loop(&engine, authors, rate, 3).await;
        engine.drained(AWAY).await.unwrap();
        how.away(&cluster, server).await;
        let since = engine.store().router().now_ms();
        let during = open_loop(&engine, authors, rate, 2).await;
        how.back(&cluster, server).await;
        let back = Instant::now();
        engine.drained(AWAY * 3).await.unwrap();
        println!(
            "{server} {how:?}: {rate} posts a second; before {before:?}; away {during:?}; drained {:.1} s after it was \
             back",
            back.elapsed().as_secs_f64()
        );
        for reader in followers.values().flat_map(|followers| &followers[..2]) {
            let stored = engine.stored_home(*reader).await.unwrap();
            let mut ids: Vec<u64> =
                stored.into_iter().map(|(id, _)| id).filter(|id| id >> 16 >= since).collect();
            let all = ids.len();
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(all, ids.len(), "home of {reader}");
        }
        assert_eq!(during.refused.load(Ordering::Relaxed), 0);
        assert_eq!(during.others_refused.load(Ordering::Relaxed), 0);
        let (had, got) = (before.arrived.load(Ordering::Relaxed), during.arrived.load(Ordering::Relaxed));
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let share = got as f64 / had as f64;
        assert!(share >= LEAST, "the living got {got}, and {had} before");
        for (author, followers) in &followers {
            for reader in followers {
                engine.unfollow(*reader, *author).await.unwrap();
            }
        }
        engine.drained(AWAY).await.unwrap();
    }
}
