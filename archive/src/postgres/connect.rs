//! Finding the server, and what is asked of it at start.

use std::time::Duration;

use tideline_model::error::{Error, Result};
use tokio::time::timeout;
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::failure::{fails, with_causes};
use super::hosts::Hosts;
use super::settings::PostgresSettings;
use crate::migrations;

/// `jit` and what the tables need are there from here on.
const OLDEST: i32 = 130_000;
/// Advice for when the server shows a certificate that nobody here knows.
const UNKNOWN_CERTIFICATE: &str = " (name the certificate of who has signed the server's by `sslrootcert`, or, on a \
                                   network that nobody else is in, say `sslmode=disable`)";
/// Encodings that have all letters, or any bytes.
const ENCODINGS: [&str; 2] = ["UTF8", "SQL_ASCII"];
/// The most time until a server has said what it is.
const GREETING_TIMEOUT: Duration = Duration::from_secs(30);
/// The most time for making the tables, and for waiting for somebody else who makes them.
const PREPARE_TIMEOUT: Duration = Duration::from_secs(120);
/// The advisory lock that is held by whoever makes the tables: "tideline" in ASCII.
const MIGRATION_LOCK: i64 = i64::from_be_bytes(*b"tideline");

/// A maker of connections.
#[derive(Clone)]
pub(super) struct Connector {
    pub(super) config: Config,
    pub(super) tls: Option<MakeRustlsConnect>,
}

impl Connector {
    /// The servers that are tried, by name and port: nothing secret.
    fn place(&self) -> String {
        let ports = self.config.get_ports();
        let hosts = self.config.get_hosts().iter().enumerate().map(|(n, host)| {
            let port = ports.get(n).or_else(|| ports.last()).copied().unwrap_or(5432);
            match host {
                Host::Tcp(name) => format!("{name}:{port}"),
                Host::Unix(path) => path.display().to_string(),
            }
        });
        hosts.collect::<Vec<_>>().join(", ")
    }

    async fn connect(&self) -> Result<Client> {
        let failed = |e: tokio_postgres::Error| match e.as_db_error() {
            Some(_) => fails(e),
            None => {
                let why = with_causes(&e);
                let hint = if why.contains("certificate") { UNKNOWN_CERTIFICATE } else { "" };
                Error::unavailable(format!("cannot connect to the archive at {}: {why}{hint}", self.place()))
            }
        };
        let hosts = self.hosts(GREETING_TIMEOUT);
        Ok(hosts.connect().await.map_err(failed)?.0)
    }

    /// The servers that are tried, one after the other, within that time.
    pub(super) fn hosts(&self, deadline: Duration) -> Hosts {
        Hosts::new(&self.config, self.tls.clone(), deadline)
    }
}

/// Looks whether the server is fit, and makes the tables that are missing.
pub(super) async fn prepare(connector: &Connector, settings: &PostgresSettings) -> Result<()> {
    let greeting = async {
        let client = connector.connect().await?;
        check(&client).await?;
        Ok(client)
    };
    // One that accepts a connection may say nothing more: that is no lock.
    let client = timeout(GREETING_TIMEOUT, greeting).await.unwrap_or_else(|_| {
        Err(Error::unavailable(format!(
            "the archive's server has not answered within {} s: see whether it runs, and what stands before it",
            GREETING_TIMEOUT.as_secs()
        )))
    })?;
    timeout(PREPARE_TIMEOUT, begin_tables(&client, settings)).await.unwrap_or_else(|_| {
        Err(Error::unavailable(
            "the archive's tables could not be made in two minutes: somebody holds a lock",
        ))
    })
}

/// Checks what an archive can't be without.
async fn check(client: &Client) -> Result<()> {
    let sql = "SELECT current_setting('server_version_num')::int, current_setting('fsync')::bool, \
               pg_is_in_recovery(), current_setting('server_encoding')";
    let row = client.query_one(sql, &[]).await.map_err(fails)?;
    let (version, keeps, is_standby): (i32, bool, bool) = (row.get(0), row.get(1), row.get(2));
    let encoding: &str = row.get(3);
    let wrong = match () {
        () if version < OLDEST => {
            format!("PostgreSQL {} is too old: 13 or later is needed", version / 10_000)
        }
        () if !keeps => {
            "fsync is off: what it commits is lost with the machine's power; set fsync = on".into()
        }
        () if !ENCODINGS.contains(&encoding) => format!(
            "its database is in {encoding}, which lacks letters that people write; make one with ENCODING 'UTF8'"
        ),
        () if is_standby => "it is a standby, which takes no changes: name the primary".into(),
        () => return Ok(()),
    };
    Err(Error::misconfigured(format!("the archive's server: {wrong}")))
}

/// All in one transaction: one that breaks off leaves nothing.
async fn begin_tables(client: &Client, settings: &PostgresSettings) -> Result<()> {
    let schema = &settings.schema;
    let begin = format!("BEGIN; SELECT pg_advisory_xact_lock({MIGRATION_LOCK})");
    client.batch_execute(&begin).await.map_err(fails)?;
    // Looked for first: making one takes a right that who uses it may lack, even where it is there.
    let found =
        client.query_opt("SELECT FROM pg_namespace WHERE nspname = $1", &[schema]).await.map_err(fails)?;
    let nothing = || {
        Error::misconfigured(format!(
            "the database has no archive in schema `{schema}`: the place is another one, or `tideline archive begin` \
             is to make it"
        ))
    };
    if found.is_none() {
        if !settings.makes_tables {
            return Err(nothing());
        }
        client.batch_execute(&format!("CREATE SCHEMA \"{schema}\"")).await.map_err(fails)?;
    }
    // Else its tables would seem to be missing, and the error would be about making them.
    let may =
        client.query_one("SELECT has_schema_privilege($1, 'USAGE'), current_user::text", &[schema]).await;
    let may = may.map_err(fails)?;
    if !may.get::<_, bool>(0) {
        let user: &str = may.get(1);
        return Err(Error::misconfigured(format!(
            "user `{user}` may not use schema `{schema}` of the archive's database: `GRANT ALL ON SCHEMA` and `ON ALL \
             TABLES IN SCHEMA`, or restore backups as that user"
        )));
    }
    client.batch_execute(&format!("SET search_path = \"{schema}\"")).await.map_err(fails)?;
    let row = client.query_one("SELECT to_regclass('store') IS NULL", &[]).await.map_err(fails)?;
    if row.get(0) {
        if !settings.makes_tables {
            return Err(nothing());
        }
        let table = "CREATE TABLE store (version bigint NOT NULL, name bytea)";
        client.batch_execute(table).await.map_err(fails)?;
    }
    let row = client.query_one("SELECT coalesce(max(version), -1) FROM store", &[]).await.map_err(fails)?;
    let version: i64 = row.get(0);
    if version < 0 {
        client.batch_execute("INSERT INTO store VALUES (0, NULL)").await.map_err(fails)?;
    }
    for step in migrations::missing(&migrations::POSTGRES, version.max(0))? {
        client.batch_execute(step).await.map_err(fails)?;
    }
    let latest = migrations::POSTGRES.len();
    // Who only comes back writes nothing: a disk that is full keeps no instance from starting.
    if i64::try_from(latest).ok() != Some(version) {
        let stands = format!("UPDATE store SET version = {latest}");
        client.batch_execute(&stands).await.map_err(fails)?;
    }
    client.batch_execute("COMMIT").await.map_err(fails)
}
