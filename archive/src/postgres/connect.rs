//! Finding the server, what is asked of it at start, and what each connection is told.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use rustls::{ClientConfig, RootCertStore};
use tideline_model::error::{Error, Result};
use tokio::time::timeout;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres::{Client, Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::failure::{fails, with_causes};
use crate::migrations;
use crate::windows::SEARCH_TIMEOUT;

/// `jit` and what the tables need are there from here on.
const OLDEST: i32 = 130_000;
/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long making the tables may take, and waiting for somebody else who makes them.
const PREPARE_TIMEOUT: Duration = Duration::from_secs(120);
/// Whoever makes the tables holds this advisory lock: "tideline" in ASCII.
const MIGRATION_LOCK: i64 = i64::from_be_bytes(*b"tideline");
/// PostgreSQL cuts names off behind so many bytes.
const SCHEMA_LEN_MAX: usize = 63;

/// Settings of an archive in PostgreSQL.
#[derive(Clone)]
pub struct PostgresSettings {
    config: Config,
    /// Where its tables are: another tenant's are in another schema.
    pub schema: String,
    /// Certificates (PEM) that the server's is checked by; none: those that the system trusts.
    pub root_certificates: Option<PathBuf>,
    /// The most connections for pages.
    pub readers: usize,
    /// The most connections for changes.
    pub writers: usize,
    /// How long a page may take; a change has ten times as long.
    pub page_timeout: Duration,
    /// How long a search goes on looking beyond the newest few hundred posts of where it begins; at most half of
    /// `page_timeout`. Longer: fewer pages that end early with little on them. Shorter: less of the server for each.
    pub search_timeout: Duration,
    /// For how long a server that takes over may lack what this one has answered: posts stay in memory so long. Zero
    /// where `synchronous_standby_names` is set, or nothing ever takes over.
    pub settles_within: Duration,
}

impl PostgresSettings {
    /// Settings for the server at `url`: `postgres://user:password@host:port/database`, or `host=… user=…`.
    ///
    /// `sslmode` is `prefer` if the URL doesn't say; with `require` there is no connection without TLS. A certificate
    /// that the server shows is always checked.
    ///
    /// # Errors
    /// `Misconfigured` if it isn't one; the message never holds it.
    pub fn new(url: &str) -> Result<Self> {
        // What the client says of one that it can't read may hold all of it, the password too.
        let unreadable = || {
            Error::misconfigured(
                "the archive's address is none: postgres://user:password@host:port/database?sslmode=require, or \
                 host=… user=… password=… dbname=… (what isn't a letter or a digit in a password of the first form is \
                 written as %40)",
            )
        };
        let mut config: Config = url.parse().map_err(|_| unreadable())?;
        let is_strange = |host: &Host| matches!(host, Host::Tcp(name) if name.contains(['@', '/', ' ']));
        if config.get_hosts().iter().any(is_strange) {
            return Err(unreadable());
        }
        // With several hosts: the one that takes changes.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        config.application_name("tideline").connect_timeout(CONNECT_TIMEOUT);
        if config.get_hosts().is_empty() {
            return Err(Error::misconfigured(
                "the archive's address names no host: postgres://user@host/database",
            ));
        }
        Ok(Self {
            config,
            schema: "tideline".into(),
            root_certificates: None,
            readers: 8,
            writers: 2,
            page_timeout: Duration::from_secs(2),
            search_timeout: SEARCH_TIMEOUT,
            settles_within: Duration::from_secs(30),
        })
    }

    /// Within which a search ends, so that what it has found comes before its deadline.
    pub(super) fn search_budget(&self) -> Duration {
        self.search_timeout.min(self.page_timeout / 2)
    }

    pub(super) fn change_timeout(&self) -> Duration {
        self.page_timeout * 10
    }

    pub(super) fn connector(&self) -> Result<Connector> {
        if self.schema.is_empty() || self.schema.len() > SCHEMA_LEN_MAX || self.schema.contains(['"', '\0']) {
            return Err(Error::misconfigured(format!(
                "schema {:?}: 1 to {SCHEMA_LEN_MAX} bytes without quotes",
                self.schema
            )));
        }
        if self.readers == 0 || self.writers == 0 {
            return Err(Error::misconfigured(
                "the archive needs at least one connection for pages, one for changes",
            ));
        }
        let tls = match self.config.get_ssl_mode() {
            SslMode::Disable => None,
            _ => Some(MakeRustlsConnect::new(self.tls()?)),
        };
        Ok(Connector { config: self.config.clone(), tls })
    }

    fn tls(&self) -> Result<ClientConfig> {
        let mut roots = RootCertStore::empty();
        match &self.root_certificates {
            Some(path) => {
                let wrong = |e: &dyn fmt::Display| {
                    Error::misconfigured(format!("certificates {}: {e}", path.display()))
                };
                for certificate in CertificateDer::pem_file_iter(path).map_err(|e| wrong(&e))? {
                    roots.add(certificate.map_err(|e| wrong(&e))?).map_err(|e| wrong(&e))?;
                }
            }
            // A system without any is found out once a server shows a certificate.
            None => drop(roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = versions.map_err(|e| Error::internal(e.to_string()))?;
        Ok(builder.with_root_certificates(roots).with_no_client_auth())
    }

    /// What each connection is told before anything else.
    pub(super) fn greeting(&self, statement: Duration) -> String {
        format!(
            // A commit is on disk, and on standbys that the server waits for, whatever the user's own setting is. Plans
            // for many owners are estimated dear, and compiling them would be dearer than they are.
            "SET search_path = \"{}\"; SET synchronous_commit = on; SET jit = off; SET lock_timeout = '1s';
             SET idle_in_transaction_session_timeout = '5s'; SET statement_timeout = '{}ms'",
            self.schema,
            statement.as_millis()
        )
    }
}

impl fmt::Debug for PostgresSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // No user and no password.
        f.debug_struct("PostgresSettings")
            .field("hosts", &self.config.get_hosts())
            .field("ports", &self.config.get_ports())
            .field("database", &self.config.get_dbname())
            .field("schema", &self.schema)
            .field("readers", &self.readers)
            .field("writers", &self.writers)
            .field("page_timeout", &self.page_timeout)
            .field("search_timeout", &self.search_timeout)
            .field("settles_within", &self.settles_within)
            .finish_non_exhaustive()
    }
}

/// How connections come about.
#[derive(Clone)]
pub(super) struct Connector {
    pub(super) config: Config,
    pub(super) tls: Option<MakeRustlsConnect>,
}

impl Connector {
    async fn connect(&self) -> Result<Client> {
        let failed = |e: tokio_postgres::Error| match e.as_db_error() {
            Some(_) => fails(e),
            None => Error::unavailable(format!("cannot connect to the archive: {}", with_causes(&e))),
        };
        match &self.tls {
            Some(tls) => {
                let (client, connection) = self.config.connect(tls.clone()).await.map_err(failed)?;
                tokio::spawn(connection);
                Ok(client)
            }
            None => {
                let (client, connection) = self.config.connect(NoTls).await.map_err(failed)?;
                tokio::spawn(connection);
                Ok(client)
            }
        }
    }
}

/// Looks whether the server is fit, and makes the tables that are missing.
pub(super) async fn prepare(connector: &Connector, settings: &PostgresSettings) -> Result<()> {
    let work = async {
        let client = connector.connect().await?;
        check(&client).await?;
        begin_tables(&client, settings).await
    };
    timeout(PREPARE_TIMEOUT, work).await.unwrap_or_else(|_| {
        Err(Error::unavailable(
            "the archive's tables could not be made in two minutes: somebody holds a lock",
        ))
    })
}

/// What an archive can't be without.
async fn check(client: &Client) -> Result<()> {
    let sql = "SELECT current_setting('server_version_num')::int, current_setting('fsync')::bool, pg_is_in_recovery()";
    let row = client.query_one(sql, &[]).await.map_err(fails)?;
    let (version, keeps, is_standby): (i32, bool, bool) = (row.get(0), row.get(1), row.get(2));
    let wrong = match () {
        () if version < OLDEST => {
            format!("PostgreSQL {} is too old: 13 or later is needed", version / 10_000)
        }
        () if !keeps => {
            "fsync is off: what it commits is lost with the machine's power; set fsync = on".into()
        }
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
    if found.is_none() {
        client.batch_execute(&format!("CREATE SCHEMA \"{schema}\"")).await.map_err(fails)?;
    }
    client.batch_execute(&format!("SET search_path = \"{schema}\"")).await.map_err(fails)?;
    let row = client.query_one("SELECT to_regclass('store') IS NULL", &[]).await.map_err(fails)?;
    if row.get(0) {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Who is frozen within a transaction, or waits for a lock, holds nobody up; and a commit is on disk, whatever the
    /// user's own setting is.
    #[test]
    fn each_connection_is_told_what_nothing_else_ensures() {
        let settings = PostgresSettings::new("postgres://u@h/db").unwrap();
        let greeting = settings.greeting(Duration::from_secs(2));
        for said in [
            "synchronous_commit = on",
            "lock_timeout = '1s'",
            "idle_in_transaction_session_timeout = '5s'",
            "statement_timeout = '2000ms'",
            "search_path = \"tideline\"",
        ] {
            assert!(greeting.contains(said), "{greeting}");
        }
        assert_eq!(settings.config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
    }
}
