//! Which cluster a command works on, and with which settings.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::anyhow;
use clap::Args;
use tideline::cluster::Seed;
use tideline::{Config, Engine, EngineBuilder, ErrorKind};
use tideline_archive::{Archive, PostgresArchive, PostgresSettings, SqliteArchive};

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
    /// Where posts are that have left memory: `sqlite:FILE` or `postgres://USER:PASSWORD@HOST/DATABASE`. Needed where
    /// the tenant has an archive.
    #[arg(long, env = "TIDELINE_ARCHIVE", hide_env_values = true, value_name = "PLACE")]
    archive: Option<String>,
}

impl Target {
    /// Whether a file is named.
    pub(crate) fn has_file(&self) -> bool {
        self.config.is_some()
    }

    /// Sets an engine up with all that is named.
    pub(crate) async fn builder(&self) -> anyhow::Result<EngineBuilder> {
        match self.archive().await? {
            Some(archive) => self.builder_with(archive),
            None => Ok(Engine::builder().config(self.config()?)),
        }
    }

    /// The same, with an archive that is open.
    pub(crate) fn builder_with(&self, archive: Arc<dyn Archive>) -> anyhow::Result<EngineBuilder> {
        Ok(Engine::builder().config(self.config()?).archive(archive))
    }

    /// Opens the archive, if one is named.
    pub(crate) async fn archive(&self) -> anyhow::Result<Option<Arc<dyn Archive>>> {
        match &self.archive {
            Some(place) => open_archive(place).await.map(Some),
            None => Ok(None),
        }
    }

    pub(crate) fn config(&self) -> anyhow::Result<Config> {
        let mut config = Config::load(self.config.as_deref())?;
        if !self.cluster.is_empty() {
            config.store.seeds.clone_from(&self.cluster);
        }
        if let Some(prefix) = &self.prefix {
            config.store.prefix.clone_from(prefix);
        }
        anyhow::ensure!(
            !config.store.seeds.is_empty(),
            "which cluster? name some of its nodes with --cluster, TIDELINE_CLUSTER, or `seeds` under [cluster] in \
             the file of --config"
        );
        Ok(config)
    }
}

/// Opens the archive at a place, or makes an empty one.
pub(crate) async fn open_archive(place: &str) -> anyhow::Result<Arc<dyn Archive>> {
    if let Some(file) = place.strip_prefix("sqlite:") {
        anyhow::ensure!(
            !file.is_empty(),
            "the archive's place names no file: `sqlite:/var/lib/tideline/posts`"
        );
        return Ok(Arc::new(SqliteArchive::open(file).await?));
    }
    // What it says may hold a password: it is never told.
    anyhow::ensure!(
        place.starts_with("postgres://") || place.starts_with("postgresql://") || place.contains("host="),
        "the archive's place begins with neither `sqlite:` nor `postgres://`: `sqlite:/var/lib/tideline/posts`, or \
         `postgres://user:password@host:port/database`"
    );
    Ok(Arc::new(PostgresArchive::connect(PostgresSettings::new(place)?).await?))
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
