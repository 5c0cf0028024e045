//! Backups as docs/backup.md has them taken, and bringing them back into servers in which there is nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rusqlite::Connection;
use tempfile::TempDir;
use tideline::archive::Archive;
use tideline::cluster::Command as RedisCommand;
use tideline_archive::{PostgresArchive, PostgresSettings, SqliteArchive};
use tideline_local_cluster::{ClusterSpec, LocalCluster, LocalPostgres};

use crate::harness::{Own, PATIENCE, eventually, own};

/// What each primary of a cluster had, in the order of its nodes.
pub(super) struct ClusterBackup(TempDir);

impl ClusterBackup {
    /// Takes one while instances go on.
    pub(super) async fn take(cluster: &LocalCluster) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for node in cluster.nodes() {
            let ask = async |words: &[&str]| {
                let (word, rest) = words.split_first().unwrap();
                let command = RedisCommand::new(word).args(rest.iter().copied());
                cluster.ask(&node.addr(), command).await.unwrap()
            };
            ask(&["BGSAVE"]).await;
            eventually("a server has saved what it has", async || {
                let told = ask(&["INFO", "persistence"]).await.text().unwrap().to_owned();
                told.contains("rdb_bgsave_in_progress:0") && told.contains("rdb_last_bgsave_status:ok")
            })
            .await;
            fs::copy(node.dir().join("dump.rdb"), Self::file(folder.path(), node.index)).unwrap();
        }
        Self(folder)
    }

    /// A new cluster whose servers begin with it.
    pub(super) async fn restore(&self) -> Own {
        let cluster = own(ClusterSpec::ephemeral()).await;
        for node in cluster.nodes() {
            node.kill().unwrap();
            fs::copy(Self::file(self.0.path(), node.index), node.dir().join("dump.rdb")).unwrap();
        }
        for node in cluster.nodes() {
            cluster.restart(node.index).await.unwrap();
        }
        cluster.wait_healthy(PATIENCE).await.unwrap();
        cluster
    }

    fn file(folder: &Path, node: usize) -> PathBuf {
        folder.join(format!("{node}.rdb"))
    }
}

/// Where archives are.
pub(super) enum Backend {
    File(TempDir),
    Server(Box<LocalPostgres>),
}

static PLACES: AtomicU32 = AtomicU32::new(0);

impl Backend {
    pub(super) fn file() -> Self {
        Self::File(tempfile::tempdir().unwrap())
    }

    pub(super) async fn server() -> Self {
        Self::Server(Box::new(LocalPostgres::up().await.unwrap()))
    }

    /// A place in which there is nothing.
    pub(super) fn place(&self) -> String {
        let name = format!("posts{}", PLACES.fetch_add(1, Ordering::Relaxed));
        if let Self::Server(server) = self {
            let create = format!("CREATE DATABASE {name}");
            run(server, "psql", &[&server.url(), "-c", &create]);
        }
        name
    }

    pub(super) async fn open(&self, place: &str) -> Arc<dyn Archive> {
        match self {
            Self::File(folder) => Arc::new(SqliteArchive::open(folder.path().join(place)).await.unwrap()),
            Self::Server(server) => {
                let mut settings = PostgresSettings::new(&server.url_of(place)).unwrap();
                // Machines are slow, and nothing takes over from this one.
                settings.page_timeout = PATIENCE;
                settings.settles_within = std::time::Duration::ZERO;
                Arc::new(PostgresArchive::connect(settings).await.unwrap())
            }
        }
    }

    /// Copies an archive while instances go on; what it gives can be restored any number of times.
    pub(super) fn back_up(&self, place: &str) -> String {
        let copy = format!("copy{}", PLACES.fetch_add(1, Ordering::Relaxed));
        match self {
            Self::File(folder) => {
                let source = Connection::open(folder.path().join(place)).unwrap();
                let to = folder.path().join(&copy);
                source.execute("VACUUM INTO ?1", [to.to_str().unwrap()]).unwrap();
            }
            Self::Server(server) => {
                let to = std::env::temp_dir().join(format!("tideline-{}-{copy}", std::process::id()));
                run(server, "pg_dump", &["-Fc", "-f", to.to_str().unwrap(), &server.url_of(place)]);
                return to.to_str().unwrap().to_owned();
            }
        }
        copy
    }

    /// An archive in a new place that has what was copied.
    pub(super) async fn restore(&self, copy: &str) -> Arc<dyn Archive> {
        let place = self.place();
        match self {
            Self::File(folder) => {
                fs::copy(folder.path().join(copy), folder.path().join(&place)).unwrap();
            }
            Self::Server(server) => {
                run(server, "pg_restore", &["-d", &server.url_of(&place), "--no-owner", copy]);
                fs::remove_file(copy).unwrap();
            }
        }
        self.open(&place).await
    }
}

/// Runs one of PostgreSQL's programs.
fn run(server: &LocalPostgres, program: &str, arguments: &[&str]) {
    let output = Command::new(server.client(program)).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
}
