//! Where posts go: PostgreSQL or a file, started and removed here.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::ValueEnum;
use serde::Serialize;
use tempfile::TempDir;
use tideline::archive::Archive;
use tideline_archive::{PostgresArchive, PostgresSettings, SqliteArchive};
use tideline_local_cluster::LocalPostgres;

use crate::bench::Bench;
use crate::cpu::{self, us_each};

/// A change or a page is given up after ten times, or once, this: the machine may be busy.
const PAGE_TIMEOUT: Duration = Duration::from_secs(30);

/// Kinds of archives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(super) enum BackendKind {
    /// A file, which is this process' work
    Sqlite,
    /// A server
    Postgres,
}

impl BackendKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
        }
    }
}

/// A place for archives, which goes with this value.
#[derive(Debug)]
pub(super) enum Backend {
    Sqlite(TempDir),
    Postgres(Box<LocalPostgres>),
}

impl Backend {
    pub(super) async fn start(kind: BackendKind) -> anyhow::Result<Self> {
        Ok(match kind {
            BackendKind::Sqlite => Self::Sqlite(tempfile::tempdir()?),
            BackendKind::Postgres => {
                eprintln!("Starting PostgreSQL.");
                let server = LocalPostgres::up().await.context("no PostgreSQL could be started")?;
                Self::Postgres(Box::new(server))
            }
        })
    }

    /// A new archive, by its name here.
    pub(super) async fn archive(
        &self,
        name: &str,
        settles_within: Duration,
    ) -> anyhow::Result<Arc<dyn Archive>> {
        Ok(match self {
            Self::Sqlite(folder) => Arc::new(SqliteArchive::open(folder.path().join(name)).await?),
            Self::Postgres(server) => {
                let mut settings = PostgresSettings::new(&server.url())?;
                name.clone_into(&mut settings.schema);
                settings.page_timeout = PAGE_TIMEOUT;
                settings.settles_within = settles_within;
                Arc::new(PostgresArchive::connect(settings).await?)
            }
        })
    }

    /// CPU time of its server; `None`: it has none, or that can't be read.
    fn cpu(&self) -> Option<Duration> {
        match self {
            Self::Sqlite(_) => None,
            Self::Postgres(server) => cpu::of_family(&server.pids()),
        }
    }

    /// CPU time until now of all who take part.
    pub(super) async fn used(&self, bench: &Bench) -> anyhow::Result<PartiesCpu> {
        let cpu = bench.cpu_time().await?;
        Ok(PartiesCpu { redis: cpu.server, archive: self.cpu(), client: cpu.client })
    }
}

/// CPU time of Redis, of the archive's server and of this process, where it can be read.
#[derive(Debug, Clone, Copy)]
pub(super) struct PartiesCpu {
    redis: Option<Duration>,
    archive: Option<Duration>,
    client: Option<Duration>,
}

/// The same in microseconds for each of something.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct CpuEach {
    pub(super) redis_us: Option<f64>,
    /// Of PostgreSQL; SQLite is a part of this process.
    pub(super) archive_us: Option<f64>,
    pub(super) client_us: Option<f64>,
}

impl PartiesCpu {
    /// What was used since `before`, for each of `ended`.
    pub(super) fn each_since(self, before: &Self, ended: u64) -> CpuEach {
        let each = |now: Option<Duration>, before: Option<Duration>| {
            us_each(Some(now?.saturating_sub(before?)), ended)
        };
        CpuEach {
            redis_us: each(self.redis, before.redis),
            archive_us: each(self.archive, before.archive),
            client_us: each(self.client, before.client),
        }
    }
}
