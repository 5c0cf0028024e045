//! One connection to one server, and the only file that names the Redis client crate.
//!
//! Everything above speaks of [`Command`], [`Reply`] and [`Wire`]; a change of client library ends here.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, IntoConnectionInfo,
    RedisConnectionInfo, TlsCertificates, ToRedisArgs, Value,
};

use crate::error::{Error, Result};

/// Where a server listens.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeAddr {
    /// IP address or host name, without brackets.
    pub host: Arc<str>,
    /// TCP port.
    pub port: u16,
}

impl NodeAddr {
    /// An address from its parts.
    pub fn new(host: impl Into<Arc<str>>, port: u16) -> Self {
        Self { host: host.into(), port }
    }

    /// Reads `host:port`, as MOVED and ASK spell it; the host may be an IPv6 address and may be empty.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        Some(Self::new(host.trim_start_matches('[').trim_end_matches(']'), port.parse().ok()?))
    }
}

impl fmt::Display for NodeAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Debug for NodeAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The files that a `rediss://` connection needs; all optional, system certificates serve otherwise.
#[derive(Debug, Clone, Default)]
pub struct TlsFiles {
    /// PEM file with the certificates to trust.
    pub ca: Option<PathBuf>,
    /// PEM file with our own certificate, for servers that ask for one.
    pub certificate: Option<PathBuf>,
    /// PEM file with the key of `certificate`.
    pub key: Option<PathBuf>,
}

/// How to open a connection to any node of one cluster: credentials, TLS, timeouts.
#[derive(Clone)]
pub(crate) struct Dialer {
    username: Option<String>,
    password: Option<String>,
    tls: Option<TlsCertificates>,
    connect_timeout: Duration,
    response_timeout: Duration,
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialer")
            .field("username", &self.username)
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
    pub(crate) fn from_urls(
        urls: &[String],
        files: &TlsFiles,
        connect_timeout: Duration,
        response_timeout: Duration,
    ) -> Result<(Self, Vec<NodeAddr>)> {
        let mut seeds = Vec::with_capacity(urls.len());
        let mut common: Option<(bool, Option<String>, Option<String>)> = None;
        for url in urls {
            let (addr, is_tls, user, password) = parse_seed(url)?;
            let this = (is_tls, user, password);
            if common.get_or_insert_with(|| this.clone()) != &this {
                return Err(Error::invalid(format!(
                    "the seed {addr} has another scheme, user or password than the first; one cluster has one"
                )));
            }
            seeds.push(addr);
        }
        let Some((is_tls, username, password)) = common else {
            return Err(Error::invalid("no seed given: name at least one node, as in redis://127.0.0.1:7000"));
        };
        let tls = is_tls.then(|| load_tls(files)).transpose()?;
        Ok((Self { username, password, tls, connect_timeout, response_timeout }, seeds))
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Opens one connection; handshake and authentication are done when it returns.
    pub(crate) async fn dial(&self, addr: &NodeAddr) -> Result<Wire, WireError> {
        let client = self.client(addr).map_err(|e| WireError::from_redis(&e, true))?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.connect_timeout))
            .set_response_timeout(Some(self.response_timeout));
        let dialing = client.get_multiplexed_async_connection_with_config(&config);
        // The crate's own timeout ends the TCP and TLS part; a frozen server accepts and then says nothing.
        match tokio::time::timeout(self.connect_timeout + self.response_timeout, dialing).await {
            Ok(Ok(connection)) => Ok(Wire { connection }),
            Ok(Err(e)) => Err(WireError::from_redis(&e, true)),
            Err(_) => Err(WireError::NotSent("no answer to the handshake".into())),
        }
    }

    fn client(&self, addr: &NodeAddr) -> redis::RedisResult<Client> {
        let (host, port) = (addr.host.to_string(), addr.port);
        let address = match self.tls {
            None => ConnectionAddr::Tcp(host, port),
            Some(_) => ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None },
        };
        let mut settings = RedisConnectionInfo::default();
        if let Some(user) = &self.username {
            settings = settings.set_username(user);
        }
        if let Some(password) = &self.password {
            settings = settings.set_password(password);
        }
        let info: ConnectionInfo = address
            .into_connection_info()?
            .set_redis_settings(settings)
            .set_tcp_settings(TcpSettings::default().set_nodelay(true));
        match &self.tls {
            None => Client::open(info),
            Some(certificates) => Client::build_with_tls(info, certificates.clone()),
        }
    }
}

fn parse_seed(url: &str) -> Result<(NodeAddr, bool, Option<String>, Option<String>)> {
    // The URL may hold a password: error messages name only what follows it.
    let shown = url.rsplit('@').next().unwrap_or_default();
    let wrong = |why: &dyn fmt::Display| {
        Error::invalid(format!("seed `{shown}`: {why}; expected redis://[user:password@]host:port or rediss://…"))
    };
    let url = if url.contains("://") { url.to_owned() } else { format!("redis://{url}") };
    let info = url.as_str().into_connection_info().map_err(|e| wrong(&e))?;
    let (addr, is_tls) = match info.addr() {
        ConnectionAddr::Tcp(host, port) => (NodeAddr::new(host.as_str(), *port), false),
        ConnectionAddr::TcpTls { host, port, .. } => (NodeAddr::new(host.as_str(), *port), true),
        other => return Err(wrong(&format!("{other} is not a TCP address"))),
    };
    let settings = info.redis_settings();
    Ok((addr, is_tls, settings.username().map(str::to_owned), settings.password().map(str::to_owned)))
}

fn load_tls(files: &TlsFiles) -> Result<TlsCertificates> {
    // Only the first call of a process decides; whoever embeds us may have chosen another provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let read = |path: &PathBuf| {
        std::fs::read(path).map_err(|e| Error::misconfigured(format!("TLS file {}: {e}", path.display())))
    };
    let client_tls = match (&files.certificate, &files.key) {
        (Some(certificate), Some(key)) => {
            Some(ClientTlsConfig { client_cert: read(certificate)?, client_key: read(key)? })
        }
        (None, None) => None,
        _ => return Err(Error::invalid("TLS: a client certificate needs its key, and a key its certificate")),
    };
    Ok(TlsCertificates { client_tls, root_cert: files.ca.as_ref().map(read).transpose()? })
}

/// Why a connection gave no replies.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum WireError {
    /// Nothing reached the server.
    #[error("cannot connect: {0}")]
    NotSent(String),
    /// The server refused us: wrong credentials or TLS.
    #[error("refused: {0}")]
    Refused(String),
    /// The commands were sent, no answer came in time. They may run, now or later.
    #[error("no answer within the response timeout")]
    Timeout,
    /// The connection ended with commands under way. They may have run.
    #[error("connection lost: {0}")]
    Dropped(String),
}

impl WireError {
    fn from_redis(error: &redis::RedisError, dialing: bool) -> Self {
        use redis::ErrorKind as Kind;
        match error.kind() {
            Kind::AuthenticationFailed | Kind::InvalidClientConfig => Self::Refused(error.to_string()),
            _ if matches!(error.code(), Some("NOAUTH" | "WRONGPASS" | "NOPERM")) => {
                Self::Refused(error.to_string())
            }
            _ if dialing => Self::NotSent(error.to_string()),
            _ if error.is_timeout() => Self::Timeout,
            _ => Self::Dropped(error.to_string()),
        }
    }
}

/// One open connection; clones share it, and what clones send concurrently leaves in one system call.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    connection: MultiplexedConnection,
}

impl Wire {
    /// Sends all commands as one pipeline and waits for all replies, errors of single commands among them.
    pub(crate) async fn send(&self, pipeline: &Pipeline) -> Result<Vec<Reply>, WireError> {
        let mut connection = self.connection.clone();
        let count = pipeline.0.len();
        let replies = connection
            .send_packed_commands(&pipeline.0, 0, count)
            .await
            .map_err(|e| WireError::from_redis(&e, false))?;
        debug_assert_eq!(replies.len(), count);
        Ok(replies.into_iter().map(Reply).collect())
    }

    /// Sends one command.
    pub(crate) async fn call(&self, command: Command) -> Result<Reply, WireError> {
        let mut connection = self.connection.clone();
        match connection.send_packed_command(&command.0).await {
            Ok(value) => Ok(Reply(value)),
            Err(e) => Err(WireError::from_redis(&e, false)),
        }
    }
}

/// Commands on their way to one node.
#[derive(Default)]
pub(crate) struct Pipeline(redis::Pipeline);

impl Pipeline {
    pub(crate) fn with_capacity(commands: usize) -> Self {
        Self(redis::Pipeline::with_capacity(commands))
    }

    pub(crate) fn push(&mut self, command: Command) {
        self.0.add_command(command.0);
    }

    /// A copy of one of its commands, to be sent again.
    pub(crate) fn command(&self, index: usize) -> Command {
        Command(self.0.cmd_iter().nth(index).cloned().unwrap_or_default())
    }
}

/// One Redis command with its arguments.
#[derive(Clone)]
pub struct Command(redis::Cmd);

impl Command {
    /// A command by its name, as in `Command::new("ZADD")`.
    pub fn new(name: &str) -> Self {
        // Room for the arguments of nearly every command we send: two allocations, no growth.
        let mut command = redis::Cmd::with_capacity(6, 96);
        command.arg(name);
        Self(command)
    }

    /// Adds an argument: bytes, text or a number.
    #[must_use]
    pub fn arg(mut self, arg: impl ToArg) -> Self {
        arg.write(&mut self);
        self
    }

    /// Adds an argument in place.
    pub fn push(&mut self, arg: impl ToArg) -> &mut Self {
        arg.write(self);
        self
    }

    /// The command's words, for error messages.
    pub(crate) fn name(&self) -> String {
        let first = self.0.args_iter().next();
        match first {
            Some(redis::Arg::Simple(name)) => String::from_utf8_lossy(name).into_owned(),
            _ => String::new(),
        }
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, arg) in self.0.args_iter().enumerate() {
            if let redis::Arg::Simple(bytes) = arg {
                write!(f, "{}{}", if i > 0 { " " } else { "" }, bytes.escape_ascii())?;
            }
        }
        Ok(())
    }
}

/// What can be an argument of a [`Command`].
pub trait ToArg {
    /// Appends itself to `command`.
    fn write(self, command: &mut Command);
}

macro_rules! to_arg {
    ($($t:ty),*) => {$(
        impl ToArg for $t {
            fn write(self, command: &mut Command) {
                ToRedisArgs::write_redis_args(&self, &mut command.0);
            }
        }
    )*};
}
to_arg!(&[u8], &str, &String, String, u16, u32, u64, i64, usize);

impl<const N: usize> ToArg for &[u8; N] {
    fn write(self, command: &mut Command) {
        self.as_slice().write(command);
    }
}

impl ToArg for &Vec<u8> {
    fn write(self, command: &mut Command) {
        self.as_slice().write(command);
    }
}

/// What a server answered to one command, an error included.
#[derive(Clone, PartialEq)]
pub struct Reply(Value);

impl Reply {
    /// The error line, if the server answered with one: its code (`MOVED`) and the rest.
    pub fn error(&self) -> Option<(&str, &str)> {
        match &self.0 {
            Value::ServerError(e) => Some((e.code(), e.details().unwrap_or_default())),
            _ => None,
        }
    }

    /// Whether the server answered "nothing".
    pub fn is_nil(&self) -> bool {
        matches!(self.0, Value::Nil)
    }

    /// An integer.
    pub fn int(&self) -> Result<i64> {
        match &self.0 {
            Value::Int(n) => Ok(*n),
            Value::BulkString(text) => parse_text(text).ok_or_else(|| self.unlike("an integer")),
            _ => Err(self.unlike("an integer")),
        }
    }

    /// A count: an integer that is not negative.
    pub fn count(&self) -> Result<u64> {
        u64::try_from(self.int()?).map_err(|_| self.unlike("a count"))
    }

    /// A floating-point number, as scores are.
    pub fn double(&self) -> Result<f64> {
        match &self.0 {
            Value::Double(n) => Ok(*n),
            Value::BulkString(text) => parse_text(text).ok_or_else(|| self.unlike("a number")),
            _ => Err(self.unlike("a number")),
        }
    }

    /// Bytes.
    pub fn bytes(&self) -> Result<&[u8]> {
        match &self.0 {
            Value::BulkString(bytes) => Ok(bytes),
            Value::SimpleString(text) => Ok(text.as_bytes()),
            Value::VerbatimString { text, .. } => Ok(text.as_bytes()),
            Value::Okay => Ok(b"OK"),
            _ => Err(self.unlike("a string")),
        }
    }

    /// Text.
    pub fn text(&self) -> Result<&str> {
        std::str::from_utf8(self.bytes()?).map_err(|_| self.unlike("text"))
    }

    /// The elements of an array.
    pub fn into_array(self) -> Result<Vec<Reply>> {
        match self.0 {
            Value::Array(items) | Value::Set(items) => Ok(items.into_iter().map(Reply).collect()),
            Value::Map(pairs) => Ok(pairs.into_iter().flat_map(|(k, v)| [Reply(k), Reply(v)]).collect()),
            _ => Err(self.unlike("an array")),
        }
    }

    fn unlike(&self, wanted: &str) -> Error {
        Error::internal(format!("the server answered {self:?} where {wanted} was expected"))
    }
}

#[cfg(test)]
impl Reply {
    pub(crate) fn server_error(line: &str) -> Self {
        let parsed = redis::parse_redis_value(format!("-{line}\r\n").as_bytes());
        Self(parsed.expect("an error line"))
    }

    pub(crate) fn text_of(text: &str) -> Self {
        Self(Value::BulkString(text.into()))
    }
}

fn parse_text<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Value::ServerError(e) => write!(f, "-{} {}", e.code(), e.details().unwrap_or_default()),
            other => write!(f, "{other:?}"),
        }
    }
}
