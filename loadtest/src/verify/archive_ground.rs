//! The archive that a run stands on, and what can be done to its server.

use anyhow::Context as _;
use tempfile::TempDir;
use tideline_local_cluster::LocalPostgres;
use tokio::sync::Mutex;
use tokio_postgres::{Client, NoTls};

use super::archived::ArchiveAddress;
use super::args::{ArchiveKind, Chaos, Sabotage, VerifyArgs};
use super::chaos::delays::Delays;

/// What a page waits for; machines are slow. And where the archive's server is struck, since a fault has to outlast it.
const PAGE_MS: u64 = 10_000;
const PAGE_SHORT_MS: u64 = 1_500;
/// What a server that takes over may lack, where one does.
const SETTLES_MS: u64 = 6_000;
/// So much is written between two checkpoints: all of it is copied with the server.
const SETTINGS: [(&str, &str); 2] = [("max_wal_size", "64MB"), ("min_wal_size", "32MB")];

/// Tables that ask before they take anything whether there is space, and how often there was none: a sequence is not
/// taken back with its transaction. By default there is.
const ASK_FOR_SPACE: &str = "
    CREATE SCHEMA loadtest;
    CREATE SEQUENCE loadtest.refused;
    CREATE FUNCTION loadtest.ask_for_space() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
    DO $$ DECLARE name text; BEGIN
        FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'tideline' LOOP
            EXECUTE format('CREATE TRIGGER space BEFORE INSERT OR UPDATE ON tideline.%I
                FOR EACH STATEMENT EXECUTE FUNCTION loadtest.ask_for_space()', name);
        END LOOP;
    END $$";
const SPACE: [&str; 2] = [
    // As a disk that is full is told.
    "PERFORM nextval(''loadtest.refused''); RAISE EXCEPTION USING ERRCODE = ''53100'',
     MESSAGE = ''could not extend file: No space left on device'';",
    "",
];

/// Where old posts go.
#[derive(Debug)]
pub(crate) enum ArchiveGround {
    Server(Box<ArchiveServer>),
    /// A folder for a file.
    File(TempDir),
}

/// A PostgreSQL that can be struck.
#[derive(Debug)]
pub(crate) struct ArchiveServer {
    pub(crate) server: Mutex<LocalPostgres>,
    url: String,
    /// Before the server, if it is to be slow.
    pub(crate) delays: Option<Delays>,
    pub(crate) page_ms: u64,
    pub(crate) settles_ms: u64,
}

impl ArchiveGround {
    pub(crate) async fn open(kind: ArchiveKind, args: &VerifyArgs) -> anyhow::Result<Self> {
        if kind == ArchiveKind::Sqlite {
            return Ok(Self::File(tempfile::tempdir().context("no folder for the archive")?));
        }
        let server =
            LocalPostgres::with_settings(&SETTINGS).await.context("no PostgreSQL could be started")?;
        let url = server.url();
        let delays = match args.has(Chaos::SlowArchive) {
            true => Some(Delays::before(&url).await?),
            false => None,
        };
        let page_ms = if args.has_archive_faults() { PAGE_SHORT_MS } else { PAGE_MS };
        let server = Mutex::new(server);
        Ok(Self::Server(Box::new(ArchiveServer { server, url, delays, page_ms, settles_ms: SETTLES_MS })))
    }

    /// Where instances find it.
    pub(crate) fn address(&self, args: &VerifyArgs, visible_within_ms: u64) -> ArchiveAddress {
        let server = match self {
            Self::File(folder) => return ArchiveAddress::Sqlite(folder.path().join("posts")),
            Self::Server(server) => server,
        };
        let settles_ms = match args.has(Chaos::ForgetArchive) {
            true if args.sabotage == Some(Sabotage::Unsettled) => 0,
            true => server.settles_ms,
            // What leaves memory is looked at once more, as where another server may have taken over.
            false => visible_within_ms * 2,
        };
        let url = server.delays.as_ref().map_or(&server.url, Delays::url).clone();
        ArchiveAddress::Postgres { url, page_ms: server.page_ms, settles_ms }
    }

    /// Once its tables are there.
    pub(crate) async fn begin(&self) -> anyhow::Result<()> {
        match self {
            Self::Server(server) => Ok(server.connect().await?.batch_execute(ASK_FOR_SPACE).await?),
            Self::File(_) => Ok(()),
        }
    }
}

impl ArchiveServer {
    async fn connect(&self) -> anyhow::Result<Client> {
        let (client, connection) =
            tokio_postgres::connect(&self.url, NoTls).await.context("the archive's server")?;
        tokio::spawn(connection);
        Ok(client)
    }

    async fn number(&self, sql: &str) -> anyhow::Result<i64> {
        Ok(self.connect().await?.query_one(sql, &[]).await?.try_get(0)?)
    }

    /// Whether its disk is full, from the next transaction on.
    pub(crate) async fn fill(&self, is_full: bool) -> anyhow::Result<()> {
        let body = if is_full { SPACE[0] } else { SPACE[1] };
        let ask = format!(
            "CREATE OR REPLACE FUNCTION loadtest.ask_for_space() RETURNS trigger LANGUAGE plpgsql AS
             'BEGIN {body} RETURN NULL; END'"
        );
        Ok(self.connect().await?.batch_execute(&ask).await?)
    }

    /// How often there was no space.
    pub(crate) async fn refused(&self) -> anyhow::Result<i64> {
        self.number("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM loadtest.refused").await
    }

    /// A number that grows with each change of any account.
    pub(crate) async fn changes(&self) -> anyhow::Result<i64> {
        self.number("SELECT coalesce(sum(token), 0)::bigint FROM tideline.owner").await
    }
}
