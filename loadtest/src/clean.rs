//! `loadtest clean`: removes what a run has left on a cluster of others.

use clap::Args;
use tideline::cluster::Seed;

use crate::common::End;
use crate::leftover::{Leftover, parse_prefix};

/// Removes the keys that a run has left on a cluster: one that was killed, or one of `verify`, whose keys stay.
#[derive(Debug, Clone, Args)]
pub(crate) struct CleanArgs {
    /// Nodes of the cluster, separated by commas: redis://HOST:PORT
    #[arg(long, value_name = "URL", env = "TIDELINE_CLUSTER", hide_env_values = true, value_delimiter = ',')]
    #[arg(required = true)]
    cluster: Vec<Seed>,
    /// What the run's keys begin with, as it has told at its start: loadtest-847245f9, say. A run that is still at work
    /// loses them too
    #[arg(long, value_parser = parse_prefix)]
    prefix: String,
}

/// Removes them.
pub(crate) async fn run(args: CleanArgs) -> anyhow::Result<End> {
    let CleanArgs { cluster, prefix } = args;
    let removed = Leftover::new(&cluster, &prefix).remove().await?;
    println!("{removed} keys that begin with `{prefix}` are removed.");
    Ok(End::Right)
}
