//! Settings of an archive in PostgreSQL, and what each connection is told.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use rustls::{ClientConfig, RootCertStore};
use tideline_model::error::{Error, Result};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::connect::Connector;
use crate::windows::SEARCH_TIMEOUT;

/// A connection on which so long nothing was said is asked whether the other side is there.
const KEEPALIVE: Duration = Duration::from_secs(60);
/// Silence after which an address that says nothing of it has the other side asked.
const USUAL_KEEPALIVE: Duration = Duration::from_secs(2 * 60 * 60);
/// The most time for which nothing is heard of what was sent: then the connection is given up.
const UNHEARD_MAX: Duration = Duration::from_secs(30);
/// PostgreSQL cuts names off behind so many bytes.
const SCHEMA_LEN_MAX: usize = 63;
/// Options of a URL that aren't for the client of PostgreSQL.
const NAMED: [&str; 5] = ["schema", "sslrootcert", "readers", "writers", "settles_within"];
/// Options of a URL that are for the client.
const OF_CLIENT: [&str; 9] =
    ["sslmode", "sslnegotiation", "user", "password", "dbname", "host", "port", "options", "channel_binding"];
const SSL_MODES: [&str; 3] = ["disable", "prefer", "require"];
/// Seconds: a day.
const SETTLES_MAX: u64 = 86_400;
/// Connections of one kind.
const CONNECTIONS_MAX: u64 = 10_000;

/// Settings of an archive in PostgreSQL.
#[derive(Clone)]
pub struct PostgresSettings {
    pub(super) config: Config,
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
    /// Whether an archive is made where there is none. Not where somebody only reads: who misspells the schema would
    /// leave an empty one.
    pub makes_tables: bool,
    /// For how long a server that takes over may lack what this one has answered: posts stay in memory so long. Zero
    /// where `synchronous_standby_names` is set, or nothing ever takes over.
    pub settles_within: Duration,
}

impl PostgresSettings {
    /// Settings for the server at `url`: `postgres://user:password@host:port/database`, or `host=… user=…`.
    ///
    /// `sslmode` is `prefer` if the URL doesn't say; with `require` there is no connection without TLS, with `disable`
    /// none with it. A certificate that the server shows is always checked. The first form may name what else is set
    /// here, too: `?sslmode=require&sslrootcert=/etc/ca.pem&schema=posts&readers=8&writers=2&settles_within=30`
    /// (seconds).
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
        let (url, own) = split(url)?;
        let mut config: Config = url.parse().map_err(|_| unreadable())?;
        let is_strange = |host: &Host| matches!(host, Host::Tcp(name) if name.contains(['@', '/', ' ']));
        if config.get_hosts().iter().any(is_strange) {
            return Err(unreadable());
        }
        // With several hosts: the one that takes changes.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        config.application_name("tideline");
        // Between here and there some drop what says nothing for minutes, and tell nobody.
        if config.get_keepalives_idle() == USUAL_KEEPALIVE {
            config.keepalives_idle(KEEPALIVE);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(UNHEARD_MAX);
        }
        if config.get_hosts().is_empty() {
            return Err(Error::misconfigured(
                "the archive's address names no host: postgres://user@host/database",
            ));
        }
        // Else it would be begun, for good, in one that has the user's name.
        if config.get_dbname().is_none_or(str::is_empty) {
            return Err(Error::misconfigured(
                "the archive's address names no database: postgres://user@host/database",
            ));
        }
        let mut settings = Self {
            config,
            schema: "tideline".into(),
            root_certificates: None,
            readers: 8,
            writers: 2,
            page_timeout: Duration::from_secs(2),
            search_timeout: SEARCH_TIMEOUT,
            makes_tables: true,
            settles_within: Duration::from_secs(30),
        };
        own.iter().try_for_each(|(name, value)| settings.set(name, value))?;
        Ok(settings)
    }

    /// Sets what a URL names, one of [`NAMED`].
    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let value = percent_decode_str(value).decode_utf8_lossy();
        let number = |least: u64, most: u64| {
            let number = value.parse::<u64>().ok().filter(|number| (least..=most).contains(number));
            number.ok_or_else(|| {
                let text =
                    format!("{name} {value:?} in the archive's address: {least} to {most} are possible");
                Error::misconfigured(text)
            })
        };
        let connections =
            || number(1, CONNECTIONS_MAX).map(|many| usize::try_from(many).unwrap_or(usize::MAX));
        match name {
            "schema" => self.schema = value.into_owned(),
            "sslrootcert" => self.root_certificates = Some(PathBuf::from(&*value)),
            "readers" => self.readers = connections()?,
            "writers" => self.writers = connections()?,
            _ => self.settles_within = Duration::from_secs(number(0, SETTLES_MAX)?),
        }
        Ok(())
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
                "the archive's schema {:?}: 1 to {SCHEMA_LEN_MAX} bytes without quotes",
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

    /// The settings that each connection is told before anything else.
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

/// A name and a value.
type NamedValue<'u> = (&'u str, &'u str);

/// A URL without what is meant for these settings, and that: names and values.
fn split(url: &str) -> Result<(Cow<'_, str>, Vec<NamedValue<'_>>)> {
    let Some((server, query)) = url.rsplit_once('?') else { return Ok((url.into(), Vec::new())) };
    // A question mark in a password, and nothing asked for behind it.
    if query.contains('@') {
        return Ok((url.into(), Vec::new()));
    }
    let mut seen = Vec::new();
    for (name, value) in query.split('&').filter_map(|named| named.split_once('=')) {
        let wrong = if seen.contains(&name) {
            format!("says `{name}` twice")
        } else if !NAMED.contains(&name) && !OF_CLIENT.contains(&name) {
            format!("has no option `{name}`: there are {} and sslmode", NAMED.join(", "))
        } else if name == "sslmode" && !SSL_MODES.contains(&value) {
            "knows other words for sslmode: disable, prefer, or require; a certificate is always checked"
                .into()
        } else {
            seen.push(name);
            continue;
        };
        return Err(Error::misconfigured(format!("the archive's address {wrong}")));
    }
    let (own, others): (Vec<_>, Vec<_>) = query
        .split('&')
        .map(|named| (named, named.split_once('=').filter(|(name, _)| NAMED.contains(name))))
        .partition(|(_, own)| own.is_some());
    let others = others.into_iter().map(|(named, _)| named).collect::<Vec<_>>().join("&");
    let url = if others.is_empty() { server.to_owned() } else { format!("{server}?{others}") };
    Ok((url.into(), own.into_iter().filter_map(|(_, own)| own).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client that is frozen within a transaction, or waits for a lock, holds nobody up; and a commit is on disk,
    /// whatever the user's own setting is.
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

    /// A program that runs from a configuration or an environment has no other place to say these.
    #[test]
    fn a_url_names_what_else_is_set() {
        let url = "postgres://u:a%26b@h/db?schema=old%20posts&sslmode=require&sslrootcert=/etc/ca.pem\
                   &readers=3&settles_within=0&writers=1";
        let settings = PostgresSettings::new(url).unwrap();
        assert_eq!(settings.schema, "old posts");
        assert_eq!(settings.root_certificates.as_deref(), Some(std::path::Path::new("/etc/ca.pem")));
        assert_eq!((settings.readers, settings.writers), (3, 1));
        assert_eq!(settings.settles_within, Duration::ZERO);
        assert_eq!(settings.config.get_password(), Some(&b"a&b"[..]));
        assert_eq!(settings.config.get_ssl_mode(), SslMode::Require);
        let plain = PostgresSettings::new("postgres://u@h/db?schema=a").unwrap();
        assert_eq!((plain.schema.as_str(), plain.config.get_dbname()), ("a", Some("db")));

        let questioned = PostgresSettings::new("postgres://u:p?schema=a@h/db").unwrap();
        assert_eq!(
            (questioned.schema.as_str(), questioned.config.get_password()),
            ("tideline", Some(&b"p?schema=a"[..]))
        );
        for (url, said) in [
            ("postgres://u@h/db?settles_within=-1", "settles_within \"-1\""),
            ("postgres://u@h/db?readers=many", "readers \"many\""),
            ("postgres://u@h/db?writers=0", "1 to 10000"),
            ("postgres://u@h/db?settles_within=99999999999", "0 to 86400"),
            ("postgres://u@h/db?scheme=a", "has no option `scheme`: there are schema,"),
            ("postgres://u@h/db?schema=a&schema=b", "says `schema` twice"),
            ("postgres://u@h/db?sslmode=verify-full", "a certificate is always checked"),
            ("postgres://u@h", "names no database"),
        ] {
            let error = PostgresSettings::new(url).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
