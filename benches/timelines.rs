//! Push against pull against merge, one operation at a time on a local cluster: what a single caller waits for. What it
//! costs in CPU time, under load, `loadtest compare` tells. `cargo bench --bench timelines`; a word behind `--` chooses
//! benchmarks.

#![allow(clippy::cast_possible_truncation, reason = "small numbers")]
#![allow(missing_docs, reason = "a benchmark")]

mod support;

use std::cell::Cell;
use std::time::{Duration, Instant};

use criterion::Criterion;
use support::{account, cluster};
use tideline::bucket::Buckets;
use tideline::cluster::{Replicas, RouterSettings};
use tideline::post::Draft;
use tideline::{
    AccountId, AsItIs, Cursor, DeliveryWay, Engine, EngineSettings, ImportedEdge, ImportedPost, Mode,
    NewAccount, PostAck, Query, StoreOptions,
};
use tokio::runtime::Runtime;

/// Authors that are pushed, whom every reader follows, and their posts: more than a home holds.
const PUSHED: u64 = 50;
const POSTS_EACH: u64 = 20;
/// Authors that are pulled: so many of them one reader follows each.
const PULLED: [u64; 5] = [0, 1, 5, 20, 100];
const MOST: u64 = 100;
/// Followers with full homes of one author, in one bucket: what one call delivers to.
const BATCH: usize = 128;
/// Followers with full homes of another author, all over the cluster.
const AWAKE: u64 = 1_000;
/// Followers without a home of a third one, who is promoted.
const ASLEEP: u64 = 10_000;
/// Entries of a full home.
const HOME: u64 = 400;
/// Readers who have no home, and get one after another; when all have one, all are dropped.
const DORMANT: u64 = 1_000;
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

/// An author for each of these, who follow nobody else; and one that nobody follows.
fn of_batch() -> AccountId {
    account(400_000)
}

fn of_awake() -> AccountId {
    account(400_001)
}

fn of_asleep() -> AccountId {
    account(400_002)
}

fn of_nobody() -> AccountId {
    account(400_003)
}

/// Has posted, and is followed and left again.
fn followed_now_and_then() -> AccountId {
    account(400_004)
}

fn awake(n: u64) -> AccountId {
    account(500_000 + n)
}

fn asleep(n: u64) -> AccountId {
    account(600_000 + n)
}

/// Accounts of one bucket.
fn batch() -> impl Iterator<Item = AccountId> {
    let bucket = |id: AccountId| Buckets::default().of_account(id.get());
    let all = || (1_000_000..).map(account);
    let first = all().next().map(bucket);
    all().filter(move |id| Some(bucket(*id)) == first).take(BATCH)
}

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    let (cluster, engine, forgetful) = runtime.block_on(async {
        let cluster = cluster(3).await;
        let router = RouterSettings { replicas: Replicas::Absent, ..RouterSettings::default() };
        let options = StoreOptions { router, ..StoreOptions::new(cluster.urls()) };
        let engine = stock(&options).await;
        (cluster, engine, start(&options, Duration::ZERO).await)
    });
    let mut criterion = Criterion::default()
        .sample_size(SAMPLES)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3))
        .configure_from_args();
    delivery(&mut criterion, &runtime, &engine);
    reads(&mut criterion, &runtime, &engine);
    reads_unremembered(&mut criterion, &runtime, &forgetful);
    promotion(&mut criterion, &runtime, &engine);
    // These drop all homes now and then.
    follows(&mut criterion, &runtime, &engine);
    fills(&mut criterion, &runtime, &engine);
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
    for (name, author) in [
        ("publish, nobody follows".to_owned(), of_nobody()),
        (format!("publish and push, a batch of {BATCH} homes in one bucket"), of_batch()),
        (format!("publish and push, {AWAKE} homes"), of_awake()),
        (format!("publish and push, {ASLEEP} followers without a home"), of_asleep()),
        ("publish, pulled".to_owned(), pulled(0)),
    ] {
        bench(criterion, runtime, &name, || timed(engine.publish_with(author, &draft, PostAck::Delivered)));
    }
}

fn reads(criterion: &mut Criterion, runtime: &Runtime, engine: &Engine) {
    let query = Query::home().limit(20).hydrated();
    for (group, count) in PULLED.iter().enumerate() {
        let name = match count {
            0 => "read, materialized".to_owned(),
            count => format!("read, {count} pulled outboxes merged"),
        };
        bench(criterion, runtime, &name, || timed(engine.as_reader(reader(group)).read(&query)));
    }
    let query = query.after(runtime.block_on(beyond_the_home(engine)));
    bench(criterion, runtime, &format!("read, beyond the home, from {PUSHED} outboxes"), || {
        timed(engine.as_reader(reader(0)).read(&query))
    });
}

/// The same without caches: every outbox is asked, every post of the page and every author. What pulling adds to that
/// is what lies between a page without pulled authors and one with them.
fn reads_unremembered(criterion: &mut Criterion, runtime: &Runtime, engine: &Engine) {
    let query = Query::home().limit(20).hydrated();
    for (group, count) in PULLED.iter().enumerate() {
        let name = format!("read, {count} pulled outboxes, without caches");
        bench(criterion, runtime, &name, || timed(engine.as_reader(reader(group)).read(&query)));
    }
}

/// Where the home has ended.
async fn beyond_the_home(engine: &Engine) -> Cursor {
    let mut query = Query::home().limit(100);
    for _ in 0..6 {
        let page = engine.as_reader(reader(0)).read(&query).await.expect("a page");
        query = query.after(page.next.expect("there is more"));
    }
    query.cursor.expect("a cursor")
}

/// A reader without a home: the next one each time.
async fn next_dormant(engine: &Engine, next: &Cell<u64>) -> AccountId {
    let n = next.get() % DORMANT;
    if n == 0 {
        engine.sweep(0).await.expect("no homes any more");
    }
    next.set(n + 1);
    dormant(n)
}

fn follows(criterion: &mut Criterion, runtime: &Runtime, engine: &Engine) {
    let (author, next) = (followed_now_and_then(), Cell::new(0));
    bench(criterion, runtime, "follow, until the home holds the posts", || async {
        let reader = next_dormant(engine, &next).await;
        engine.warm(reader).await.expect("a home");
        let began = Instant::now();
        engine.follow(reader, author).await.expect("a follow");
        settled(engine).await;
        let took = began.elapsed();
        let held = engine.stored_home(reader).await.expect("a home");
        assert!(held.iter().any(|(_, of)| *of == author.get()), "no post has come");
        engine.unfollow(reader, author).await.expect("an unfollow");
        settled(engine).await;
        took
    });
}

/// Nothing is left to do for this instance.
async fn settled(engine: &Engine) {
    while engine.tasks() > 0 {
        tokio::task::yield_now().await;
    }
}

fn fills(criterion: &mut Criterion, runtime: &Runtime, engine: &Engine) {
    let next = Cell::new(0);
    bench(criterion, runtime, &format!("fill a home from {PUSHED} outboxes"), || async {
        let reader = next_dormant(engine, &next).await;
        let began = Instant::now();
        assert!(engine.warm(reader).await.expect("a home"), "it had one");
        began.elapsed()
    });
}

fn promotion(criterion: &mut Criterion, runtime: &Runtime, engine: &Engine) {
    bench(criterion, runtime, &format!("promote an account of {ASLEEP} followers"), || async {
        let took = timed(change(engine, DeliveryWay::Pull)).await;
        change(engine, DeliveryWay::Push).await.expect("a demotion");
        took
    });
}

async fn change(engine: &Engine, way: DeliveryWay) -> tideline::Result<()> {
    engine.set_way(of_asleep(), Some(way)).await?.all().await.map(drop)
}

async fn start(options: &StoreOptions, visible_within: Duration) -> Engine {
    let settings = EngineSettings { visible_within, ..EngineSettings::default() };
    let builder = Engine::builder().store(options.clone()).settings(settings).policy(AsItIs);
    builder.start().await.expect("an engine")
}

/// Accounts, posts, edges and homes.
async fn stock(options: &StoreOptions) -> Engine {
    let mut importer = Engine::builder().store(options.clone()).import().await.expect("an import");
    importer.accounts(&accounts()).await.expect("accounts");
    for n in 0..POSTS_EACH {
        let post = |(at, author)| ImportedPost {
            author,
            created_ms: 1_700_000_000_000 + n * 60_000 + at,
            draft: Draft::text("a few words about the sea and the wind"),
        };
        let authors = (0..PUSHED).map(pushed).chain((0..MOST).map(pulled)).chain([followed_now_and_then()]);
        importer.posts(&(0..).zip(authors).map(post).collect::<Vec<_>>()).await.expect("posts");
    }
    importer.edges(&edges()).await.expect("edges");
    importer.finish().await.expect("the end of the import");
    let engine = start(options, EngineSettings::default().visible_within).await;
    for group in 0..PULLED.len() {
        engine.warm(reader(group)).await.expect("a home");
    }
    let posts: Vec<(u64, u64)> =
        (0..HOME).map(|n| ((1_700_000_000_000 + n) << 16, pushed(n).get())).collect();
    let full: Vec<_> = batch().chain((0..AWAKE).map(awake)).map(|id| (id, posts.clone())).collect();
    for homes in full.chunks(200) {
        engine.stock_homes(homes).await.expect("homes");
    }
    engine
}

fn accounts() -> Vec<NewAccount> {
    let of = |id, mode| NewAccount { id: Some(id), mode, ..NewAccount::default() };
    let readers = (0..PULLED.len()).map(reader).chain((0..DORMANT).map(dormant));
    let followers = batch().chain((0..AWAKE).map(awake)).chain((0..ASLEEP).map(asleep));
    let others = [of_batch(), of_awake(), of_asleep(), of_nobody(), followed_now_and_then()];
    let all = (0..PUSHED).map(pushed).chain(readers).chain(followers).chain(others);
    all.map(|id| of(id, Mode::Push)).chain((0..MOST).map(|n| of(pulled(n), Mode::Pull))).collect()
}

fn edges() -> Vec<ImportedEdge> {
    let edge = |reader, author| ImportedEdge { reader, author, since_ms: 1_600_000_000_000 };
    let mut edges = Vec::new();
    for (group, count) in PULLED.iter().enumerate() {
        let followed = (0..PUSHED).map(pushed).chain((0..*count).map(pulled));
        edges.extend(followed.map(|author| edge(reader(group), author)));
    }
    edges.extend((0..DORMANT).flat_map(|n| (0..PUSHED).map(move |m| edge(dormant(n), pushed(m)))));
    edges.extend(batch().map(|id| edge(id, of_batch())));
    edges.extend((0..AWAKE).map(|n| edge(awake(n), of_awake())));
    edges.extend((0..ASLEEP).map(|n| edge(asleep(n), of_asleep())));
    edges
}
