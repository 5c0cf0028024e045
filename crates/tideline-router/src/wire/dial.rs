//! Opening connections: seed URLs, passwords. The only file that names the Redis client crate.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::{ConnectionAddr, IntoConnectionInfo};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::super::Seed;
use super::tls::{ServerTrust, TlsFiles};
use super::{Command, NodeAddr, Wire, WireError, denied};
use tideline_model::error::{Error, Result};

/// A way to open connections to any node of one cluster: credentials, TLS, timeouts.
#[derive(Clone)]
pub struct Dialer {
    credentials: Credentials,
    tls: Option<Arc<ServerTrust>>,
    connect_timeout: Duration,
    response_timeout: Duration,
}

#[derive(Clone, Default, PartialEq, Eq)]
struct Credentials {
    username: Option<String>,
    password: Option<String>,
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialer")
            .field("username", &self.credentials.username)
            .field("tls", &self.tls.is_some())
            .field("connect_timeout", &self.connect_timeout)
            .field("response_timeout", &self.response_timeout)
            .finish_non_exhaustive()
    }
}

impl Dialer {
    /// Reads seed URLs (`redis://` or `rediss://`, `[user[:password]@]host[:port]`) into a dialer and addresses.
    ///
    /// All seeds must agree on scheme and credentials: they are one cluster.
    pub fn from_urls(
        urls: &[Seed],
        files: &TlsFiles,
        connect_timeout: Duration,
        response_timeout: Duration,
    ) -> Result<(Self, Vec<NodeAddr>)> {
        let mut seeds = Vec::with_capacity(urls.len());
        let mut common: Option<(bool, Credentials)> = None;
        for url in urls {
            let (addr, is_tls, credentials) = parse_seed(url.url())?;
            let this = (is_tls, credentials);
            if common.get_or_insert_with(|| this.clone()) != &this {
                return Err(Error::invalid(format!(
                    "the seed {addr} has another scheme, user or password than the first; one cluster has one"
                )));
            }
            seeds.push(addr);
        }
        let Some((is_tls, credentials)) = common else {
            return Err(Error::invalid(
                "no seed given: name at least one node, as in redis://127.0.0.1:7000",
            ));
        };
        let tls = is_tls.then(|| ServerTrust::new(files).map(Arc::new)).transpose()?;
        Ok((Self { credentials, tls, connect_timeout, response_timeout }, seeds))
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Opens one connection; handshake and authentication are done when it returns.
    pub async fn dial(&self, addr: &NodeAddr) -> Result<Wire, WireError> {
        let silent = || WireError::NotSent("no answer to the handshake".into());
        tokio::time::timeout(self.connect_timeout, self.open(addr)).await.unwrap_or_else(|_| Err(silent()))
    }

    async fn open(&self, addr: &NodeAddr) -> Result<Wire, WireError> {
        let failed = |e: std::io::Error| WireError::NotSent(e.to_string());
        let stream = TcpStream::connect((&*addr.host, addr.port)).await.map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        let wire = match &self.tls {
            None => Wire::new(stream, self.response_timeout),
            Some(tls) => {
                let name = ServerName::try_from(addr.host.to_string())
                    .map_err(|e| WireError::Refused(format!("no name for TLS: {e}")))?;
                let connected = TlsConnector::from(tls.now()).connect(name, stream).await;
                Wire::new(connected.map_err(tls_failed)?, self.response_timeout)
            }
        };
        self.authenticate(&wire).await?;
        Ok(wire)
    }

    async fn authenticate(&self, wire: &Wire) -> Result<(), WireError> {
        let Credentials { username, password: Some(password) } = &self.credentials else { return Ok(()) };
        let auth = username.iter().fold(Command::new("AUTH"), Command::arg).arg(password);
        let reply = wire.call(&auth).await.map_err(|e| WireError::NotSent(e.to_string()))?;
        match reply.error() {
            None => Ok(()),
            Some((code @ "LOADING", rest)) => Err(WireError::NotSent(format!("{code} {rest}"))),
            Some((code, rest)) => Err(WireError::Refused(denied(code, rest, "+auth"))),
        }
    }
}

/// A certificate that doesn't fit never will; a connection that broke may work the next time.
fn tls_failed(error: std::io::Error) -> WireError {
    let is_tls = error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>());
    if is_tls {
        WireError::Refused(format!("TLS: {error}"))
    } else {
        WireError::NotSent(format!("TLS: {error}"))
    }
}

fn parse_seed(url: &str) -> Result<(NodeAddr, bool, Credentials)> {
    // The URL may hold a password: error messages name only what follows it.
    let shown = url.rsplit('@').next().unwrap_or_default();
    let wrong = |why: &dyn fmt::Display| {
        Error::invalid(format!(
            "seed `{shown}`: {why}; expected redis://[user:password@]host:port or rediss://…"
        ))
    };
    // The crate reads the rest; TLS is ours.
    let (is_tls, rest) = match url.split_once("://") {
        Some(("rediss", rest)) => (true, format!("redis://{rest}")),
        Some(_) => (false, url.to_owned()),
        None => (false, format!("redis://{url}")),
    };
    // What the crate takes for the host ends at the first of these: a part of the password would be told as an address.
    let authority =
        url.split_once("://").map_or(url, |(_, rest)| rest).split(['/', '?', '#']).next().unwrap_or_default();
    if url.contains('@') && !authority.contains('@') {
        return Err(wrong(&"write `/` as %2F, `?` as %3F and `#` as %23 in user and password"));
    }
    if let Some(port) = port_too_large(shown) {
        return Err(wrong(&format!("port {port} is above {}", u16::MAX)));
    }
    let info = rest.as_str().into_connection_info().map_err(|e| wrong(&e))?;
    let ConnectionAddr::Tcp(host, port) = info.addr() else {
        return Err(wrong(&format!("{} is not a TCP address", info.addr())));
    };
    let addr = NodeAddr::new(host.as_str(), *port);
    let settings = info.redis_settings();
    let credentials = Credentials {
        username: settings.username().map(str::to_owned),
        password: settings.password().map(str::to_owned),
    };
    Ok((addr, is_tls, credentials))
}

/// The port of a seed, if it is a number that no port has: the crate only says that the URL did not parse.
fn port_too_large(seed: &str) -> Option<&str> {
    let authority = seed.split_once("://").map_or(seed, |(_, rest)| rest).split(['/', '?', '#']).next()?;
    let (_, port) = authority.rsplit_once(':')?;
    let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && port.parse::<u16>().is_err()).then_some(port)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_urls(urls: &[&str]) -> Result<(Dialer, Vec<NodeAddr>)> {
        let urls: Vec<Seed> = urls.iter().map(|url| Seed::from(*url)).collect();
        Dialer::from_urls(&urls, &TlsFiles::default(), Duration::from_secs(1), Duration::from_secs(1))
    }

    #[test]
    fn seeds_are_read_with_or_without_scheme_and_credentials() {
        let (dialer, seeds) = from_urls(&["redis://me:secret@10.0.0.1:7000", "me:secret@host:7001"]).unwrap();
        assert_eq!(seeds, [NodeAddr::new("10.0.0.1", 7000), NodeAddr::new("host", 7001)]);
        assert_eq!(dialer.credentials.password.as_deref(), Some("secret"));
        assert!(!format!("{dialer:?}").contains("secret"));
        assert_eq!(from_urls(&["localhost"]).unwrap().1, [NodeAddr::new("localhost", 6379)]);
    }

    #[test]
    fn wrong_seeds_are_refused_without_telling_the_password() {
        for urls in [
            &[][..],
            &["http://:secret@x"],
            &["redis://:secret@h:99999"],
            &["redis://me:123/secret@h:1"],
            &["redis://secret/secret@h:1"],
            &["redis://:secret#secret@h:1"],
            &["redis://me:secret?secret@h:1"],
            &["redis://:secret@a:1", "redis://b:1"],
        ] {
            let refused = from_urls(urls).unwrap_err();
            assert_eq!(refused.kind(), tideline_model::ErrorKind::Invalid);
            assert!(!refused.to_string().contains("secret"), "{refused}");
        }
    }

    #[test]
    fn a_port_that_is_too_large_is_told() {
        for seed in ["redis://:secret@h:99999", "rediss://h:65536/0", "h:123456789012345678901"] {
            let refused = from_urls(&[seed]).unwrap_err().to_string();
            assert!(refused.contains("is above 65535") && !refused.contains("secret"), "{refused}");
        }
        assert_eq!(from_urls(&["redis://[::1]:65535"]).unwrap().1, [NodeAddr::new("::1", 65_535)]);
        assert!(!from_urls(&["redis://h:port"]).unwrap_err().to_string().contains("above"));
    }
}
