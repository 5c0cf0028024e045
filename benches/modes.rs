//! What crossing over costs: posts of an account that is pushed, its promotion, posts while it is pulled, its demotion;
//! and the same posts by an account with ten followers. Then how often its outbox is read by several instances, however
//! many readers they have. `cargo bench --bench modes -- 1000000`: so many followers (default 200,000), whose homes
//! hold 400 posts each.

#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "figures for people")]
#![allow(missing_docs, reason = "a benchmark")]

mod support;

use std::time::{Duration, Instant};

use comfy_table::Table;
use comfy_table::presets::ASCII_MARKDOWN;
use futures::future::join_all;
use metrics::Key;
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use support::{Cost, account, cluster, measure, own_cpu, us_each};
use tideline::bucket::mix64;
use tideline::cluster::{Command, Replicas, RouterSettings};
use tideline::post::Draft;
use tideline::{
    AccountId, DeliveryWay, Engine, EngineSettings, ImportedEdge, NewAccount, PostAck, PushOnly, Query,
    StoreOptions,
};

const FOLLOWERS: u64 = 200_000;
const FEW: u64 = 10;
const HOME: u64 = 400;
const CHUNK: u64 = 20_000;
/// Posts of the large account while it is pushed, and posts where a post is cheap.
const LARGE_POSTS: usize = 3;
const SMALL_POSTS: usize = 500;
const ROUNDS: usize = 3;
/// Instances that serve the readers of the pulled account, for how long, and how many read at the same time at each.
const INSTANCES: usize = 3;
const READING: Duration = Duration::from_secs(10);
const AT_ONCE: [u64; 2] = [8, 64];

fn celebrity() -> AccountId {
    account(u64::MAX)
}

fn nobody() -> AccountId {
    account(u64::MAX - 1)
}

#[tokio::main]
async fn main() {
    let followers = std::env::args().find_map(|arg| arg.parse().ok()).unwrap_or(FOLLOWERS);
    let cluster = cluster(3).await;
    let router = RouterSettings { replicas: Replicas::Absent, ..RouterSettings::default() };
    let options = StoreOptions { router, ..StoreOptions::new(cluster.urls()) };
    let engine = stock(&options, followers).await;
    for server in cluster.urls() {
        eprintln!("{server}: {followers} followers are there");
    }

    let mut rows: Vec<(&str, u64, Vec<Cost>)> = [
        ("a post, pushed", LARGE_POSTS as u64),
        ("promotion", 1),
        ("a post, pulled", SMALL_POSTS as u64),
        ("a post, pulled, 10 followers", SMALL_POSTS as u64),
        ("demotion", 1),
    ]
    .map(|(name, each)| (name, each, Vec::new()))
    .into();
    set_way(&engine, nobody(), DeliveryWay::Pull).await;
    for _ in 0..ROUNDS {
        let mut costs = Vec::new();
        forget_latencies(&engine).await;
        costs.push(measure(&cluster, own_cpu, posts(&engine, celebrity(), LARGE_POSTS)).await.0);
        slowest(&engine, "pushed posts").await;
        forget_latencies(&engine).await;
        costs.push(measure(&cluster, own_cpu, set_way(&engine, celebrity(), DeliveryWay::Pull)).await.0);
        slowest(&engine, "promotion").await;
        costs.push(measure(&cluster, own_cpu, posts(&engine, celebrity(), SMALL_POSTS)).await.0);
        costs.push(measure(&cluster, own_cpu, posts(&engine, nobody(), SMALL_POSTS)).await.0);
        forget_latencies(&engine).await;
        costs.push(measure(&cluster, own_cpu, set_way(&engine, celebrity(), DeliveryWay::Push)).await.0);
        slowest(&engine, "demotion").await;
        rows.iter_mut().zip(costs).for_each(|(row, cost)| row.2.push(cost));
    }
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN);
    table.set_header(["what", "server us", "client us", "CPU us (range)", "in pushed posts", "seconds"]);
    let totals = |costs: &[Cost], each| {
        let of = |cost: &Cost| us_each(cost.server + cost.client, each);
        support::median(&costs.iter().map(of).collect::<Vec<_>>())
    };
    let pushed = totals(&rows[0].2, LARGE_POSTS).0;
    for (name, each, costs) in &rows {
        let each = *each as usize;
        let median = |of: fn(&Cost) -> Duration| {
            support::median(&costs.iter().map(|c| us_each(of(c), each)).collect::<Vec<_>>()).0
        };
        let (all, low, high) = totals(costs, each);
        table.add_row([
            (*name).to_owned(),
            format!("{:.0}", median(|c| c.server)),
            format!("{:.0}", median(|c| c.client)),
            format!("{all:.0} ({low:.0}-{high:.0})"),
            format!("{:.4}", all / pushed),
            format!("{:.4}", median(|c| c.wall) / 1e6),
        ]);
    }
    println!("{followers} followers, medians of {ROUNDS} rounds\n{table}");
    set_way(&engine, celebrity(), DeliveryWay::Pull).await;
    engine.shutdown(READING).await.expect("the end of its lease");
    hot(&options, followers).await;
    cluster.down().await.expect("the cluster ends");
}

/// How often the outbox of the pulled account is read.
async fn hot(options: &StoreOptions, followers: u64) {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    recorder.install().expect("the only recorder");
    let settings = EngineSettings::default();
    let mut engines = Vec::new();
    for _ in 0..INSTANCES {
        let builder = Engine::builder().store(options.clone()).settings(settings.clone()).policy(PushOnly);
        engines.push(builder.start().await.expect("an engine"));
    }
    for at_once in AT_ONCE {
        snapshotter.snapshot();
        let until = Instant::now() + READING;
        let readers = engines.iter().flat_map(|engine| (0..at_once).map(move |n| (engine, n)));
        let pages = join_all(readers.map(async |(engine, n)| {
            let mut pages = 0;
            while Instant::now() < until {
                let reader = account(mix64(n << 32 | pages) % followers);
                engine.as_reader(reader).read(&Query::home()).await.expect("a page");
                pages += 1;
            }
            pages
        }));
        let pages: u64 = pages.await.into_iter().sum();
        let looks: u64 = snapshotter
            .snapshot()
            .into_vec()
            .into_iter()
            .filter(|(key, ..)| is_look_at_outbox(key.key()))
            .filter_map(|(.., value)| if let DebugValue::Counter(n) = value { Some(n) } else { None })
            .sum();
        let (each, seconds) = (INSTANCES as f64, READING.as_secs_f64());
        println!(
            "{INSTANCES} instances, {at_once} readers at once at each, visible within {} ms: {:.0} pages a second; the \
             outbox is read {:.2} times a second by each instance",
            settings.visible_within.as_millis(),
            pages as f64 / seconds,
            looks as f64 / seconds / each
        );
    }
}

fn is_look_at_outbox(key: &Key) -> bool {
    let has = |name, value| key.labels().any(|label| label.key() == name && label.value() == value);
    key.name() == "tideline_cache_lookups_total" && has("cache", "outboxes") && has("outcome", "miss")
}

async fn posts(engine: &Engine, author: AccountId, count: usize) {
    for _ in 0..count {
        engine
            .publish_with(author, &Draft::text("a few words about the sea"), PostAck::Delivered)
            .await
            .expect("a post");
    }
}

async fn set_way(engine: &Engine, account: AccountId, way: DeliveryWay) {
    engine.set_way(account, Some(way)).await.expect("a change of mode").all().await.expect("the end of it");
}

async fn forget_latencies(engine: &Engine) {
    let reset = Command::new("CONFIG").arg("RESETSTAT");
    engine.store().router().ask_primaries(&reset).await;
}

/// The servers' own statistics of function calls since the last reset.
async fn slowest(engine: &Engine, of: &str) {
    for (server, stats) in
        engine.store().router().ask_primaries(&Command::new("INFO").arg("latencystats")).await
    {
        let stats = stats.expect("INFO");
        let text = stats.text().expect("text");
        for line in text.lines().filter(|line| line.starts_with("latency_percentiles_usec_fcall:")) {
            eprintln!("{of}, {server}: {line}");
        }
    }
}

/// Accounts, edges and homes.
async fn stock(options: &StoreOptions, followers: u64) -> Engine {
    let mut importer = Engine::builder().store(options.clone()).import().await.expect("an import");
    let of = |id| NewAccount { id: Some(id), ..NewAccount::default() };
    importer.accounts(&[of(celebrity()), of(nobody())]).await.expect("accounts");
    for first in (0..followers).step_by(CHUNK as usize) {
        let readers = || (first..followers.min(first + CHUNK)).map(account);
        importer.accounts(&readers().map(of).collect::<Vec<_>>()).await.expect("accounts");
        let edge = |reader| ImportedEdge { reader, author: celebrity(), since_ms: 1_600_000_000_000 };
        importer.edges(&readers().map(edge).collect::<Vec<_>>()).await.expect("edges");
    }
    let few = (0..FEW).map(account);
    let edge = |reader| ImportedEdge { reader, author: nobody(), since_ms: 1_600_000_000_000 };
    importer.edges(&few.map(edge).collect::<Vec<_>>()).await.expect("edges");
    importer.finish().await.expect("the end of the import");
    let engine = Engine::builder().store(options.clone()).policy(PushOnly).start().await.expect("an engine");
    let posts: Vec<(u64, u64)> =
        (0..HOME).map(|n| ((1_700_000_000_000 + n) << 16, account(n).get())).collect();
    for first in (0..followers).step_by(500) {
        let homes: Vec<_> =
            (first..followers.min(first + 500)).map(|n| (account(n), posts.clone())).collect();
        engine.stock_homes(&homes).await.expect("homes");
    }
    engine
}
