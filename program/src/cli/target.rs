//! The cluster that a command works on, and the settings that it works with.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::fsck::GOODBYE;
use anyhow::anyhow;
use clap::Args;
use tideline::cluster::Seed;
use tideline::registration::Registration;
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
    /// Where posts are that have left memory: `sqlite:FILE` or `postgres://USER@HOST/DATABASE`; with a
    /// password in TIDELINE_ARCHIVE, which others don't see. Needed where the tenant has an archive.
    #[arg(long, env = "TIDELINE_ARCHIVE", hide_env_values = true, value_name = "PLACE")]
    archive: Option<String>,
}

impl Target {
    /// The file that is named.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.config.as_deref()
    }

    /// Aims at another cluster.
    pub(crate) fn at(self, cluster: Vec<Seed>) -> Self {
        Self { cluster, ..self }
    }

    /// Whether a file is named.
    pub(crate) fn has_file(&self) -> bool {
        self.config.is_some()
    }

    /// Whether a cluster is named, by an argument or a variable.
    pub(crate) fn names_cluster(&self) -> bool {
        !self.cluster.is_empty()
    }

    /// Sets an engine up with all that is named.
    pub(crate) async fn builder(&self) -> anyhow::Result<EngineBuilder> {
        match self.archive().await? {
            Some(archive) => self.builder_with(archive),
            None => Ok(Engine::builder().config(self.config()?)),
        }
    }

    /// A builder of an engine with an archive that is open.
    pub(crate) fn builder_with(&self, archive: Arc<dyn Archive>) -> anyhow::Result<EngineBuilder> {
        Ok(Engine::builder().config(self.config()?).archive(archive))
    }

    /// Opens the archive, if one is named. It is there: whoever misspells its place makes none.
    pub(crate) async fn archive(&self) -> anyhow::Result<Option<Arc<dyn Archive>>> {
        self.open(false).await
    }

    /// Opens the archive, and makes an empty one where there is none.
    pub(crate) async fn archive_to_begin(&self) -> anyhow::Result<Option<Arc<dyn Archive>>> {
        self.open(true).await
    }

    async fn open(&self, makes: bool) -> anyhow::Result<Option<Arc<dyn Archive>>> {
        match &self.archive {
            Some(place) => open_archive(place, makes).await.map(Some),
            None => Ok(None),
        }
    }

    /// Refuses a place of an archive that is none, whatever is there.
    pub(crate) fn check_archive(&self) -> anyhow::Result<()> {
        self.archive.as_deref().map_or(Ok(()), |place| place_of(place).map(drop))
    }

    /// Whether the archive's place is that one, letter by letter.
    pub(crate) fn has_archive_at(&self, place: &str) -> bool {
        self.archive.as_deref() == Some(place)
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

/// The place of an archive.
enum ArchivePlace<'p> {
    File(&'p str),
    Server(Box<PostgresSettings>),
}

/// Opens the archive at a place; `makes`: or an empty one there.
pub(crate) async fn open_archive(place: &str, makes: bool) -> anyhow::Result<Arc<dyn Archive>> {
    Ok(match place_of(place)? {
        ArchivePlace::File(file) if makes => Arc::new(SqliteArchive::open(file).await?),
        ArchivePlace::File(file) => Arc::new(SqliteArchive::open_existing(file).await?),
        ArchivePlace::Server(mut settings) => {
            settings.makes_tables = makes;
            Arc::new(PostgresArchive::connect(*settings).await?)
        }
    })
}

/// Reads where an archive is.
fn place_of(place: &str) -> anyhow::Result<ArchivePlace<'_>> {
    if let Some(file) = place.strip_prefix("sqlite:") {
        // As an address it would name a file of the root folder.
        anyhow::ensure!(
            !file.starts_with("//"),
            "an archive's file is named without slashes before it: `sqlite:posts`, or `sqlite:/var/lib/tideline/posts`"
        );
        anyhow::ensure!(
            !file.is_empty(),
            "the archive's place names no file: `sqlite:/var/lib/tideline/posts`"
        );
        return Ok(ArchivePlace::File(file));
    }
    // What it says may hold a password: it is never told.
    anyhow::ensure!(
        place.starts_with("postgres://") || place.starts_with("postgresql://") || place.contains("host="),
        "the archive's place begins with neither `sqlite:` nor `postgres://`: `sqlite:/var/lib/tideline/posts`, or \
         `postgres://user:password@host:port/database`"
    );
    Ok(ArchivePlace::Server(Box::new(PostgresSettings::new(place)?)))
}

/// Does something with the accounts of a tenant that exists, as a tool beside its service.
pub(crate) async fn with_registration<T>(
    target: &Target,
    work: impl AsyncFnOnce(&Engine, &Registration) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let settings = target.config()?.registration;
    let engine = found(target.builder().await?.assist().await)?;
    let worked = async {
        let registration = Registration::new(&engine, settings).await?;
        work(&engine, &registration).await
    };
    let worked = worked.await;
    // Also after an error: whatever was begun is left to the service at once.
    engine.shutdown(GOODBYE).await?;
    worked
}

/// The outcome of opening a tenant that has to exist; if it doesn't, with what to type.
pub(crate) fn found<T>(opened: tideline::Result<T>) -> anyhow::Result<T> {
    opened.map_err(|error| match error.kind() {
        ErrorKind::NotFound => anyhow!(
            "{error}; `--prefix` names the tenant, as in `--prefix myapp:`, or `prefix` under [cluster] in the file \
             of --config"
        ),
        _ => error.into(),
    })
}
