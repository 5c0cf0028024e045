//! One connection to one server.
//!
//! Everything above speaks of [`Command`], [`Reply`] and [`Wire`]. The redis crate's connections cost twice the CPU
//! time for each command of a large batch (docs/decisions), so the few lines of protocol are our own; the crate
//! reads the seed URLs. Invariants: replies go to the caller whose commands they answer, or nobody gets any; a wait
//! ends at the response timeout; an error says whether the commands may have run.

mod command;
mod connection;
mod denied;
mod dial;
mod reply;
mod tls;

use std::fmt;
use std::sync::Arc;

pub use command::Pipeline;
pub use command::{Command, ToArg};
pub use connection::Wire;
pub(crate) use denied::denied;
pub use dial::Dialer;
pub use reply::Reply;
pub use tls::TlsFiles;

/// The address at which a server listens.
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

/// As it is printed.
impl serde::Serialize for NodeAddr {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Debug for NodeAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The reason why a connection gave no replies.
#[derive(Debug, Clone, thiserror::Error)]
pub enum WireError {
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
