//! `tideline demo`: a follower set grows, spreads over the cluster, and is walked meanwhile.

#![expect(clippy::cast_precision_loss, reason = "figures for people")]

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use futures::future::{join, try_join_all};
use indicatif::{ProgressBar, ProgressStyle};
use tideline::cluster::{Command, Router};
use tideline::local_cluster::{ClusterSpec, LocalCluster};
use tideline::sharded::{Checkpoint, Order, SortedSet};
use tideline::{AccountId, Store, StoreOptions};

use super::progress::Meter;

const WRITERS: u64 = 4;
const PAIRS_PER_CALL: u64 = 250;
/// Ids as large as real ones, so that the memory shown is real too.
const FIRST_ID: u64 = 1_700_000_000_000 << 16;
/// Scores are stamps in milliseconds, as those of real edges.
const FIRST_STAMP: f64 = 1_700_000_000_000.0;

/// What to show.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Seeds of a cluster to use, separated by commas [default: start one, and remove it at the end].
    #[arg(long, env = "TIDELINE_CLUSTER", value_delimiter = ',')]
    cluster: Vec<String>,
    /// How many followers the account gets.
    #[arg(long, default_value_t = 300_000, value_parser = clap::value_parser!(u64).range(1_000..=10_000_000))]
    followers: u64,
    /// Serve the metrics at this address while it runs, for a Prometheus or a browser.
    #[arg(long, value_name = "HOST:PORT")]
    metrics: Option<SocketAddr>,
}

pub(crate) async fn run(demo: Demo) -> anyhow::Result<ExitCode> {
    if let Some(address) = demo.metrics {
        serve_metrics(address)?;
    }
    if demo.cluster.is_empty() {
        let meter = Meter::new();
        let spec = ClusterSpec::ephemeral().replicas(1);
        let cluster = LocalCluster::up_with(spec, &|progress| meter.show(progress)).await?;
        meter.finish();
        println!("A Redis Cluster of 3 primaries and 3 replicas runs at {}.", cluster.urls().join(" "));
        show(&cluster.urls(), demo.followers).await?;
        cluster.down().await?;
    } else {
        show(&demo.cluster, demo.followers).await?;
        println!("The demo's keys begin with `demo-`; they stay on the cluster.");
    }
    Ok(ExitCode::SUCCESS)
}

fn serve_metrics(address: SocketAddr) -> anyhow::Result<()> {
    metrics_exporter_prometheus::PrometheusBuilder::new()
        .with_http_listener(address)
        .set_buckets(&[1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 5e-2, 0.25, 1.0])?
        .install()
        .with_context(|| format!("metrics cannot be served at {address}; choose another port"))?;
    println!("Metrics are at http://{address}/metrics.");
    Ok(())
}

/// What the walkers and writers saw.
#[derive(Default)]
struct Seen {
    added: AtomicU64,
    is_done: AtomicBool,
    walks: AtomicU64,
    walked: AtomicU64,
    missed: AtomicU64,
    longest_add_us: AtomicU64,
}

async fn show(seeds: &[String], followers: u64) -> anyhow::Result<()> {
    let options =
        StoreOptions { prefix: format!("demo-{:08x}:", rand::random::<u32>()), ..StoreOptions::new(seeds) };
    let store = Store::open(options).await?;
    for finding in store.router().findings() {
        println!("Note: {finding}");
    }
    let celebrity = AccountId::new(FIRST_ID)?;
    let set: SortedSet<AccountId> = store.sets().of_account(celebrity, "followers")?;
    let memory_before = used_memory(store.router()).await?;
    println!(
        "One account gets {followers} followers from {WRITERS} writers. At {} its set moves from one slot to all {} \
         buckets, while a walker goes through it again and again.",
        store.sets().spread_at(),
        store.keys().buckets().count()
    );
    let seen = Seen::default();
    let started = Instant::now();
    let bar = progress_bar(followers);
    let watch = watch(&set, &seen, &bar);
    let write = async {
        let written = try_join_all((0..WRITERS).map(|w| write(&set, followers, w, &seen))).await;
        seen.is_done.store(true, Ordering::Relaxed);
        written
    };
    let ((written, spread_after), walked) = join(join(write, watch), walk_again(&set, &seen)).await;
    bar.finish_and_clear();
    written?;
    walked?;
    let took = started.elapsed();
    let memory = used_memory(store.router()).await?.saturating_sub(memory_before);
    print_summary(&set, &seen, took, spread_after?, memory).await?;
    if seen.missed.load(Ordering::Relaxed) > 0 {
        anyhow::bail!(
            "a walk missed members that were there throughout: this must not happen, please report it"
        );
    }
    Ok(())
}

async fn write(set: &SortedSet<AccountId>, followers: u64, writer: u64, seen: &Seen) -> tideline::Result<()> {
    let mut next = writer * PAIRS_PER_CALL;
    while next < followers {
        let ids = next..(next + PAIRS_PER_CALL).min(followers);
        let pair = |n: u64| Ok((AccountId::new(FIRST_ID + 1 + n * 65_539)?, FIRST_STAMP + n as f64));
        let pairs = ids.clone().map(pair).collect::<tideline::Result<Vec<_>>>()?;
        let started = Instant::now();
        set.add_greater(&pairs).await?;
        let took_us = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        seen.longest_add_us.fetch_max(took_us, Ordering::Relaxed);
        seen.added.fetch_add(pairs.len() as u64, Ordering::Relaxed);
        next += WRITERS * PAIRS_PER_CALL;
    }
    Ok(())
}

/// Walks the set until the writers are done; a walk must meet at least all who were there when it began.
async fn walk_again(set: &SortedSet<AccountId>, seen: &Seen) -> tideline::Result<()> {
    while !seen.is_done.load(Ordering::Relaxed) {
        let before = seen.added.load(Ordering::Relaxed);
        let mut met = std::collections::HashSet::new();
        let mut next = Some(Checkpoint::START);
        while let Some(from) = next {
            let walk = set.walk(from).await?;
            met.extend(walk.entries.into_iter().map(|(member, _)| member));
            next = walk.next;
        }
        seen.walks.fetch_add(1, Ordering::Relaxed);
        seen.walked.fetch_add(met.len() as u64, Ordering::Relaxed);
        seen.missed.fetch_add(before.saturating_sub(met.len() as u64), Ordering::Relaxed);
    }
    Ok(())
}

/// Moves the bar; tells at which size the set was seen spread.
async fn watch(set: &SortedSet<AccountId>, seen: &Seen, bar: &ProgressBar) -> tideline::Result<Option<u64>> {
    let mut spread_after = None;
    while !seen.is_done.load(Ordering::Relaxed) {
        let added = seen.added.load(Ordering::Relaxed);
        bar.set_position(added);
        if spread_after.is_none() && set.layout().await? == tideline::sharded::Layout::Spread {
            spread_after = Some(added);
            bar.set_message("spread");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(spread_after)
}

async fn print_summary(
    set: &SortedSet<AccountId>,
    seen: &Seen,
    took: Duration,
    spread_after: Option<u64>,
    memory: u64,
) -> anyhow::Result<()> {
    let members = set.len().await?;
    let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let newest = set.page(.., None, 3, Order::Descending).await?;
    let newest: Vec<String> = newest.entries.iter().map(|(m, _)| m.to_string()).collect();
    let seconds = took.as_secs_f64();
    let layout = spread_after.map_or("one slot".into(), |n| format!("spread, first seen so at {n} members"));
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.add_row(["members".to_owned(), members.to_string()]);
    table.add_row(["layout".to_owned(), layout]);
    table.add_row(["added".to_owned(), format!("{:.0} a second", members as f64 / seconds)]);
    table.add_row([
        "longest call of 250 adds".to_owned(),
        format!("{:.0} ms", of(&seen.longest_add_us) as f64 / 1e3),
    ]);
    table.add_row([
        "walks meanwhile".to_owned(),
        format!("{}, over {} members", of(&seen.walks), of(&seen.walked)),
    ]);
    table.add_row(["members that a walk missed".to_owned(), of(&seen.missed).to_string()]);
    table.add_row([
        "memory on the primaries".to_owned(),
        format!("{:.1} bytes a member, the servers' buffers included", memory as f64 / members as f64),
    ]);
    table.add_row(["newest three".to_owned(), newest.join(", ")]);
    println!("{table}");
    Ok(())
}

async fn used_memory(router: &Router) -> anyhow::Result<u64> {
    let mut sum = 0;
    for (_, reply) in router.ask_primaries(&Command::new("INFO").arg("memory")).await {
        let reply = reply?;
        let used = reply.text()?.lines().find_map(|l| l.strip_prefix("used_memory:")).unwrap_or_default();
        sum += used.trim().parse::<u64>().unwrap_or(0);
    }
    Ok(sum)
}

fn progress_bar(length: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} followers {msg}");
    ProgressBar::new(length).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
