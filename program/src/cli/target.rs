//! Which cluster a command works on, and with which settings.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use tideline::cluster::Seed;
use tideline::{Config, ErrorKind};

/// The file and the variables that `Config` reads, with what is typed over them.
#[derive(Debug, Args)]
pub(crate) struct Target {
    /// File with the settings [default: none; TIDELINE_<SECTION>_<FIELD> variables count in any case].
    #[arg(long, env = "TIDELINE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Seeds of the cluster, separated by commas [default: `seeds` of the settings].
    #[arg(
        long,
        env = "TIDELINE_CLUSTER",
        hide_env_values = true,
        value_delimiter = ',',
        value_name = "URLS"
    )]
    cluster: Vec<Seed>,
    /// What the tenant's keys begin with [default: `prefix` of the settings].
    #[arg(long)]
    prefix: Option<String>,
}

impl Target {
    /// Whether a file is named.
    pub(crate) fn has_file(&self) -> bool {
        self.config.is_some()
    }

    pub(crate) fn config(self) -> anyhow::Result<Config> {
        let mut config = Config::load(self.config.as_deref())?;
        if !self.cluster.is_empty() {
            config.store.seeds = self.cluster;
        }
        if let Some(prefix) = self.prefix {
            config.store.prefix = prefix;
        }
        anyhow::ensure!(
            !config.store.seeds.is_empty(),
            "which cluster? name some of its nodes with --cluster, TIDELINE_CLUSTER, or `seeds` under [cluster] in \
             the file of --config"
        );
        Ok(config)
    }
}

/// What became of opening a tenant that exists; if it doesn't, with what to type.
pub(crate) fn found<T>(opened: tideline::Result<T>) -> anyhow::Result<T> {
    opened.map_err(|error| match error.kind() {
        ErrorKind::NotFound => anyhow!(
            "{error}; `--prefix` names the tenant, as in `--prefix myapp:`, or `prefix` under [cluster] in the file \
             of --config"
        ),
        _ => error.into(),
    })
}
