//! `tideline demo`: home timelines of a small site, from its import to pages that are checked.
//!
//! Each stage has its file: `graph` makes the site up, `load` brings it in, `posts` publishes, `reads` reads, `check`
//! compares. Whatever the demonstration says was measured or compared in this very run.

mod check;
mod figures;
mod graph;
mod load;
mod posts;
mod reads;
mod report;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use tideline::cluster::Seed;
use tideline::sharded::SetSettings;
use tideline::{Engine, StoreOptions};
use tideline_local_cluster::{ClusterSpec, LocalCluster};

use self::graph::DemoGraph;
use super::exporter;
use super::progress::Meter;

/// Fan-outs that are under way at the end get so long; there should be none.
const SHUTDOWN: Duration = Duration::from_secs(10);

/// The size of the site, and where it lives.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Seeds of a cluster to use, separated by commas [default: start one, and remove it at the end].
    #[arg(
        long,
        env = "TIDELINE_CLUSTER",
        hide_env_values = true,
        value_delimiter = ',',
        value_name = "URLS"
    )]
    cluster: Vec<Seed>,
    /// Accounts of the site; the first one is followed by nearly all others.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    accounts: u32,
    /// Posts that are published.
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    posts: u32,
    /// Home pages that are read.
    #[arg(long, default_value_t = 40_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    reads: u32,
    /// The same seed makes up the same site.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Serve the metrics at this address while it runs, for a Prometheus or a browser.
    #[arg(long, value_name = "HOST:PORT")]
    metrics: Option<SocketAddr>,
}

pub(crate) async fn run(demo: Demo) -> anyhow::Result<ExitCode> {
    exporter::serve(demo.metrics.as_slice())?;
    if !demo.cluster.is_empty() {
        return show(&demo, &demo.cluster, false).await;
    }
    let meter = Meter::new();
    let cluster = LocalCluster::up_with(ClusterSpec::ephemeral(), &|progress| meter.show(progress)).await?;
    meter.finish();
    println!("A Redis Cluster of 3 primaries runs at {}.", cluster.urls().join(" "));
    let seeds: Vec<Seed> = cluster.urls().into_iter().map(Seed::from).collect();
    let outcome = show(&demo, &seeds, true).await;
    cluster.down().await?;
    outcome
}

/// A tenant of its own; `is_ours`: on a cluster that ends with this.
async fn show(demo: &Demo, seeds: &[Seed], is_ours: bool) -> anyhow::Result<ExitCode> {
    let prefix = format!("demo-{:08x}:", rand::random::<u32>());
    // On a small site too the first account's followers are to be spread.
    let spread_at = Some(u64::from(demo.accounts * 4 / 5).min(16_384));
    let sets = SetSettings { spread_at, ..SetSettings::default() };
    let options = StoreOptions { prefix: prefix.clone(), sets, ..StoreOptions::new(seeds) };
    let graph = DemoGraph::new(demo.accounts, demo.seed);
    let (mut books, imported) = load::import(&options, &graph).await?;
    let engine = Engine::builder().store(options).start().await?;
    // Our own servers are meant to keep nothing.
    for finding in engine.store().router().findings().iter().filter(|_| !is_ours) {
        println!("Note: {finding}");
    }
    let loaded = load::LoadCounts { imported, ..load::follow_and_warm(&engine, &graph).await? };
    report::loaded(&engine, &graph, &loaded).await?;
    let published = posts::publish(&engine, &graph, demo.posts, demo.seed).await?;
    published.posts.iter().for_each(|(author, id)| books.add(*author, *id));
    report::published(&published);
    let read = reads::read(&engine, &graph, demo.reads, demo.seed).await?;
    report::read(&read);
    // What others have posted shows after this long at the latest.
    tokio::time::sleep(engine.settings().visible_within).await;
    let checked = check::check(&engine, &graph, &books, demo.seed).await?;
    report::checked(&checked);
    report::table(&engine, &graph, &loaded, &published, &read, &checked).await?;
    engine.shutdown(SHUTDOWN).await?;
    report::next(is_ours, seeds, &prefix);
    Ok(if checked.wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
