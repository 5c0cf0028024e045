//! `tideline cluster`: a Redis Cluster on this machine.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use tideline_local_cluster::{ClusterSpec, LocalCluster};
use tokio::signal::unix::{SignalKind, signal};

use super::cluster_status;
use super::progress::Meter;

/// Commands for the cluster.
#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Starts the cluster, or mends it where a part is missing, and prints its addresses.
    Up(UpArguments),
    /// Shows every node, and what is wrong; exit code 1 if something is.
    Status {
        #[command(flatten)]
        place: ClusterDirectory,
    },
    /// Stops the cluster; its data stays for the next `up`.
    Down {
        #[command(flatten)]
        place: ClusterDirectory,
        /// Remove the data too.
        #[arg(long)]
        wipe: bool,
    },
}

/// The directory in which the cluster lives.
#[derive(Debug, Args)]
pub(crate) struct ClusterDirectory {
    /// Directory of the cluster's data, logs and state.
    #[arg(long, default_value = ".tideline/cluster")]
    dir: PathBuf,
}

/// The cluster to start.
#[derive(Debug, Args)]
pub(crate) struct UpArguments {
    #[command(flatten)]
    place: ClusterDirectory,
    /// Nodes that share the slots [default: 3, or as the directory has it].
    #[arg(long)]
    primaries: Option<u16>,
    /// Replicas of each primary [default: 1, or as the directory has it].
    #[arg(long)]
    replicas: Option<u16>,
    /// Port of the first node, the others follow [default: free ports are found].
    #[arg(long, value_parser = clap::value_parser!(u16).range(ports()))]
    port_base: Option<u16>,
    /// Keep nothing: stay in the foreground, and remove all of it at the end.
    #[arg(long, conflicts_with = "dir")]
    ephemeral: bool,
}

fn ports() -> RangeInclusive<i64> {
    (*ClusterSpec::PORTS.start()).into()..=(*ClusterSpec::PORTS.end()).into()
}

pub(crate) async fn run(action: Action) -> anyhow::Result<ExitCode> {
    match action {
        Action::Up(wanted) if wanted.ephemeral => up_ephemeral(wanted.spec()?).await,
        Action::Up(wanted) => up(wanted.spec()?).await,
        Action::Status { place } => {
            let status = LocalCluster::open(&place.dir).await?.status().await;
            println!("{}", cluster_status::render(&status));
            Ok(if status.is_healthy() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Action::Down { place, wipe } => down(&place.dir, wipe).await,
    }
}

impl UpArguments {
    /// Lays what was typed over what the directory has, and that over the defaults.
    fn spec(self) -> anyhow::Result<ClusterSpec> {
        let mut spec = if self.ephemeral {
            ClusterSpec { dir: None, ..ClusterSpec::default() }
        } else {
            ClusterSpec::stored(&self.place.dir)?.unwrap_or_default().dir(self.place.dir)
        };
        spec.primaries = self.primaries.unwrap_or(spec.primaries);
        spec.replicas = self.replicas.unwrap_or(spec.replicas);
        spec.port_base = self.port_base.or(spec.port_base);
        Ok(spec)
    }
}

async fn up(spec: ClusterSpec) -> anyhow::Result<ExitCode> {
    let meter = Meter::new();
    let dir = spec.dir.clone().unwrap_or_default();
    let command = |action| ClusterSpec::command(action, &dir);
    let cluster = LocalCluster::up_with(spec, &|progress| meter.show(progress)).await?;
    meter.finish();
    print_addresses(&cluster).await;
    println!("\nIt runs until `{}`; `{}` shows its state.", command("down"), command("status"));
    Ok(ExitCode::SUCCESS)
}

/// Dropping the cluster ends it, also half-started: every way out of here does.
async fn up_ephemeral(spec: ClusterSpec) -> anyhow::Result<ExitCode> {
    let meter = Meter::new();
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut hangup = signal(SignalKind::hangup())?;
    let session = async {
        let cluster = LocalCluster::up_with(spec, &|progress| meter.show(progress)).await?;
        meter.finish();
        print_addresses(&cluster).await;
        println!("\nPress ctrl-C to stop it and remove its data.");
        std::future::pending::<anyhow::Result<()>>().await
    };
    tokio::select! {
        ended = session => ended?,
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
    Ok(ExitCode::SUCCESS)
}

async fn down(dir: &Path, wipe: bool) -> anyhow::Result<ExitCode> {
    let cluster = LocalCluster::open(dir).await?;
    let place = cluster.dir().display().to_string();
    if wipe {
        cluster.wipe().await?;
        println!("stopped, and removed from {place}");
    } else {
        cluster.down().await?;
        println!("stopped; the data stays in {place}");
    }
    Ok(ExitCode::SUCCESS)
}

async fn print_addresses(cluster: &LocalCluster) {
    println!("Redis Cluster in {}", cluster.dir().display());
    for url in cluster.urls() {
        println!("{url}");
    }
    println!("Servers: {}.", cluster.describe_programs().await);
}
