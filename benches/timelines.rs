//! Push against pull against merge, one operation at a time on a local cluster: what a single caller waits for. What it costs
//! in CPU time, under load, `loadtest compare` tells. `cargo bench --bench timelines`.

#![allow(clippy::cast_possible_truncation, reason = "small numbers")]
#![allow(missing_docs, reason = "a benchmark")]

mod support;

use std::time::{Duration, Instant};

use criterion::Criterion;
use support::{account, cluster};
use tideline::cluster::{Replicas, RouterSettings};
use tideline::post::Draft;
use tideline::{
    AccountId, Cursor, Engine, ImportedEdge, ImportedPost, Mode, NewAccount, PostAck, PushOnly, Query,
    StoreOptions, Way,
};
use tokio::runtime::Runtime;

/// Authors that are pushed, whom every reader follows, and their posts: more than a home holds.
const PUSHED: u64 = 50;
const POSTS_EACH: u64 = 20;
/// Authors that are pulled: so many of them one group of readers follows each.
const PULLED: [u64; 5] = [0, 1, 5, 20, 100];
/// Readers without a home, each of whom is filled once.
const DORMANT: u64 = 6_000;
/// Readers without a home that nobody fills: they follow one author each, who is promoted.
const FOLLOWERS: u64 = 10_000;
/// Samples of each benchmark, the fewest that criterion takes: most of them change something.
const SAMPLES: usize = 10;

fn pushed(n: u64) -> AccountId {
    account(n)
}

fn pulled(n: u64) -> AccountId {
    account(100_000 + n)
}

/// Who follows all who are pushed, and so many who are pulled.
fn reader(group: usize) -> AccountId {
    account(200_000 + group as u64)
}

fn dormant(n: u64) -> AccountId {
    account(300_000 + n)
}

/// Whom all of `follower` follow, and nobody else.
fn popular() -> AccountId {
    account(400_000)
}

fn follower(n: u64) -> AccountId {
    account(500_000 + n)
}

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    let (cluster, engine) = runtime.block_on(async {
        let cluster = cluster(3).await;
        let router = RouterSettings { replicas: Replicas::Absent, ..RouterSettings::default() };
        let options = StoreOptions { router, ..StoreOptions::new(cluster.urls()) };
        let engine = stock(&options).await;
        (cluster, engine)
    });
    let mut criterion = Criterion::default()
        .sample_size(SAMPLES)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3))
        .configure_from_args();
    delivery(&mut criterion, &runtime, &engine);
    reads(&mut criterion, &runtime, &engine);
    fills(&mut criterion, &runtime, &engine);
    follows(&mut criterion, &runtime, &engine);
    promotion(&mut criterion, &runtime, &engine);
    criterion.final_summary();
    runtime.block_on(cluster.down()).expect("the cluster ends");
}

/// Times `work`, which is told how many times it has run.
fn bench<F: Future<Output = Duration>>(
    criterion: &mut Criterion,
    runtime: &Runtime,
    name: &str,
    mut work: impl FnMut() -> F,
) {
    criterion.bench_function(name, |bencher| {
        bencher.iter_custom(|times| {
            let mut took = Duration::ZERO;
            for _ in 0..times {
                took += runtime.block_on(work());
            }
            took
        });
    });
}

async fn timed<T>(work: impl Future<Output = tideline::Result<T>>) -> Duration {
    let began = Instant::now();
    work.await.expect("it succeeds");
    began.elapsed()
}

fn delivery(criterion: &mut Criterion, runtime: &Runtime, engine: &Engine) {
    let draft = Draft::text("a few words about the sea");
    bench(criterion, runtime, "publish, and nobody follows", || {
        timed(engine.publish_with(follower(0), &draft, PostAck::Delivered))
    });
    bench(criterion, runtime, "publish and deliver to all who read", || {
        timed(engine.publish_with(pushed(0), &draft, PostAck::Delivered))
    });
    bench(criterion, runtime, "publish to 10,000 who have no home", || {
        timed(engine.publish_with(popular(), &draft, PostAck::Delivered))
    });
    bench(criterion, runtime, "publish, pulled", || {
        timed(engine.publish_with(pulled(0), &draft, PostAck::Delivered))
    });
}

fn reads(criterion: &mut Criterion, runtime: &Runtime, engine: &Engine) {
    let query = Query::home().limit(20).hydrated();
    for (group, count) in PULLED.iter().enumerate() {
        bench(criterion, runtime, &format!("read a page of 20, {count} authors pulled"), || {
            timed(engine.read(reader(group), &query))
        });
    }
    let deep = runtime.block_on(beyond_the_home(engine));
    let query = query.after(deep);
    bench(criterion, runtime, "read a page of 20 beyond the home, 50 authors", || {
        timed(engine.read(reader(0), &query))
    });
}

/// Where the home has ended.
async fn beyond_the_home(engine: &Engine) -> Cursor {
    let mut query = Query::home().limit(100);
    for _ in 0..6 {
        let page = engine.read(reader(0), &query).await.expect("a page");
        query = query.after(page.next.expect("there is more"));
    }
    query.cursor.expect("a cursor")
}

fn fills(criterion: &mut Criterion, runtime: &Runtime, engine: &Engine) {
    let mut next = 0;
    bench(criterion, runtime, "fill a home from 50 authors", || {
        let reader = dormant(next);
        next += 1;
        assert!(next < DORMANT, "all dormant readers have been filled");
        timed(engine.warm(reader))
    });
}

fn follows(criterion: &mut Criterion, runtime: &Runtime, engine: &Engine) {
    let (one, other) = (reader(0), account(600_000));
    runtime.block_on(async {
        let new = NewAccount { id: Some(other), ..NewAccount::default() };
        engine.create_account(new).await.expect("an account");
    });
    bench(criterion, runtime, "follow, until nothing is left to do", || async {
        let took = timed(async {
            engine.follow(one, other).await?;
            while engine.tasks() > 0 {
                tokio::task::yield_now().await;
            }
            Ok(())
        })
        .await;
        engine.unfollow(one, other).await.expect("an unfollow");
        engine.drained(Duration::from_secs(30)).await.expect("its end");
        took
    });
}

fn promotion(criterion: &mut Criterion, runtime: &Runtime, engine: &Engine) {
    bench(criterion, runtime, "promote an account of 10,000 followers", || async {
        let took = timed(change(engine, Way::Pull)).await;
        change(engine, Way::Push).await.expect("a demotion");
        took
    });
}

async fn change(engine: &Engine, way: Way) -> tideline::Result<()> {
    engine.set_way(popular(), Some(way)).await?.all().await.map(drop)
}

/// Accounts, posts, edges and homes.
async fn stock(options: &StoreOptions) -> Engine {
    let mut importer = Engine::builder().store(options.clone()).import().await.expect("an import");
    let of = |id, mode| NewAccount { id: Some(id), mode, ..NewAccount::default() };
    let most = *PULLED.iter().max().expect("some are pulled");
    let readers = (0..PULLED.len()).map(reader).chain((0..DORMANT).map(dormant));
    let mut accounts: Vec<NewAccount> = (0..PUSHED).map(|n| of(pushed(n), Mode::Push)).collect();
    accounts.extend((0..most).map(|n| of(pulled(n), Mode::Pull)));
    accounts.extend(readers.chain((0..FOLLOWERS).map(follower)).map(|id| of(id, Mode::Push)));
    accounts.push(of(popular(), Mode::Push));
    importer.accounts(&accounts).await.expect("accounts");
    let authors = || (0..PUSHED).map(pushed).chain((0..most).map(pulled));
    for n in 0..POSTS_EACH {
        let post = |(at, author)| ImportedPost {
            author,
            created_ms: 1_700_000_000_000 + n * 60_000 + at,
            draft: Draft::text("a few words about the sea and the wind"),
        };
        importer.posts(&(0..).zip(authors()).map(post).collect::<Vec<_>>()).await.expect("posts");
    }
    let edge = |reader, author| ImportedEdge { reader, author, since_ms: 1_600_000_000_000 };
    let mut edges = Vec::new();
    for (group, count) in PULLED.iter().enumerate() {
        let followed = (0..PUSHED).map(pushed).chain((0..*count).map(pulled));
        edges.extend(followed.map(|author| edge(reader(group), author)));
    }
    edges.extend((0..DORMANT).flat_map(|n| (0..PUSHED).map(move |m| edge(dormant(n), pushed(m)))));
    edges.extend((0..FOLLOWERS).map(|n| edge(follower(n), popular())));
    importer.edges(&edges).await.expect("edges");
    importer.finish().await.expect("the end of the import");
    let engine = Engine::builder().store(options.clone()).policy(PushOnly).start().await.expect("an engine");
    for group in 0..PULLED.len() {
        engine.warm(reader(group)).await.expect("a home");
    }
    engine
}
