//! What the examples share: a cluster to run on.

use tideline::Config;
use tideline::cluster::Seed;
use tideline_local_cluster::{ClusterSpec, LocalCluster};

/// Settings from the environment (`TIDELINE_<SECTION>_<FIELD>`), for the cluster that the arguments name. Without
/// arguments a cluster is started on this machine; it ends when what comes back beside the settings is dropped.
pub(crate) async fn config(prefix: &str) -> tideline::Result<(Config, Option<LocalCluster>)> {
    let mut config = Config::load(None)?;
    config.store.prefix = prefix.to_owned();
    let seeds: Vec<Seed> = std::env::args().skip(1).map(Seed::from).collect();
    if !seeds.is_empty() {
        config.store.seeds = seeds;
        return Ok((config, None));
    }
    let cluster = LocalCluster::up(ClusterSpec::ephemeral()).await?;
    config.store.seeds = cluster.urls().into_iter().map(Seed::from).collect();
    Ok((config, Some(cluster)))
}
