//! The cluster that is wanted.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::home::Home;
use tideline_model::error::{Error, Result};

/// More nodes than this on one machine is a mistake.
const MAX_NODES: usize = 64;

/// A description of the cluster that is wanted; [`ClusterSpec::default`] is the one of `tideline cluster up`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterSpec {
    /// Nodes that share the slots; at least 1.
    pub primaries: u16,
    /// Replicas of each primary.
    pub replicas: u16,
    /// The directory of data, logs and the state file. `None`: a temporary directory, and nothing survives.
    pub dir: Option<PathBuf>,
    /// The first node's port, the others follow. `None`: free ports are found.
    pub port_base: Option<u16>,
    /// `cluster-node-timeout`: how long a node is silent until it counts as failed.
    pub node_timeout: Duration,
    /// The time that starting may take until it is given up with an explanation.
    pub start_deadline: Duration,
    /// The server program. `None`: `TIDELINE_REDIS_SERVER`, then `redis-server` and `valkey-server` on the PATH.
    pub server: Option<PathBuf>,
    /// Password of the default user, also between the nodes.
    pub password: Option<String>,
    /// TLS on every connection, also between the nodes.
    pub tls: Option<TlsServerFiles>,
    /// More configuration lines for every node.
    pub config: Vec<(String, String)>,
    /// More configuration lines for single nodes, by index.
    pub node_config: Vec<(usize, String, String)>,
    /// Environment variables for single nodes, by index.
    pub node_env: Vec<(usize, String, String)>,
}

/// The PEM files of servers that speak TLS.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsServerFiles {
    /// Certificate of the nodes; must be valid for 127.0.0.1, as a server's and as a client's.
    pub certificate: PathBuf,
    /// Key of `certificate`.
    pub key: PathBuf,
    /// Certificates to trust.
    pub ca: PathBuf,
}

impl Default for ClusterSpec {
    fn default() -> Self {
        Self {
            primaries: 3,
            replicas: 1,
            dir: Some(PathBuf::from(".tideline/cluster")),
            port_base: None,
            node_timeout: Duration::from_secs(5),
            start_deadline: Duration::from_secs(60),
            server: None,
            password: None,
            tls: None,
            config: Vec::new(),
            node_config: Vec::new(),
            node_env: Vec::new(),
        }
    }
}

impl ClusterSpec {
    /// Ports that nodes may have: those below are the system's.
    pub const PORTS: RangeInclusive<u16> = 1024..=u16::MAX;

    /// Three primaries without replicas in a temporary directory; all of it ends with this process.
    pub fn ephemeral() -> Self {
        Self { replicas: 0, dir: None, ..Self::default() }
    }

    /// Reads what the cluster in `dir` was started with, if there is one.
    pub fn stored(dir: &Path) -> Result<Option<Self>> {
        Ok(Home::new(dir).load()?.map(|state| state.spec))
    }

    /// Spells `tideline cluster ACTION` for the cluster in `dir`: with `--dir`, unless that is where it looks
    /// anyway.
    pub fn command(action: &str, dir: &Path) -> String {
        let default = Self::default().dir.unwrap_or_default();
        let is_default = dir == default || default.canonicalize().is_ok_and(|default| dir == default);
        match is_default {
            true => format!("tideline cluster {action}"),
            false => format!("tideline cluster {action} --dir {}", dir.display()),
        }
    }

    /// Sets [`ClusterSpec::primaries`].
    #[must_use]
    pub fn primaries(mut self, count: u16) -> Self {
        self.primaries = count;
        self
    }

    /// Sets [`ClusterSpec::replicas`].
    #[must_use]
    pub fn replicas(mut self, per_primary: u16) -> Self {
        self.replicas = per_primary;
        self
    }

    /// Sets [`ClusterSpec::dir`]: the cluster outlives this process and keeps its data.
    #[must_use]
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = Some(dir.into());
        self
    }

    /// Sets [`ClusterSpec::port_base`].
    #[must_use]
    pub fn port_base(mut self, port: u16) -> Self {
        self.port_base = Some(port);
        self
    }

    /// Sets [`ClusterSpec::node_timeout`]. Lower: failovers begin sooner, and a busy machine causes false ones.
    #[must_use]
    pub fn node_timeout(mut self, timeout: Duration) -> Self {
        self.node_timeout = timeout;
        self
    }

    /// Sets [`ClusterSpec::start_deadline`].
    #[must_use]
    pub fn start_deadline(mut self, deadline: Duration) -> Self {
        self.start_deadline = deadline;
        self
    }

    /// Sets [`ClusterSpec::server`].
    #[must_use]
    pub fn server(mut self, program: impl Into<PathBuf>) -> Self {
        self.server = Some(program.into());
        self
    }

    /// Sets [`ClusterSpec::password`].
    #[must_use]
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// Sets [`ClusterSpec::tls`].
    #[must_use]
    pub fn tls(mut self, files: TlsServerFiles) -> Self {
        self.tls = Some(files);
        self
    }

    /// Adds a line to every node's configuration, after ours: the last one wins.
    #[must_use]
    pub fn config(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.config.push((key.into(), value.into()));
        self
    }

    /// Adds a line to one node's configuration, after all others.
    #[must_use]
    pub fn node_config(mut self, index: usize, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.node_config.push((index, key.into(), value.into()));
        self
    }

    /// Sets an environment variable of one node's server.
    #[must_use]
    pub fn node_env(mut self, index: usize, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.node_env.push((index, name.into(), value.into()));
        self
    }

    /// For people: `3 primaries with 1 replica each`.
    pub(super) fn shape_text(&self) -> String {
        let Self { primaries, replicas, .. } = self;
        let primary = if *primaries == 1 { "primary" } else { "primaries" };
        let replica = if *replicas == 1 { "replica" } else { "replicas" };
        format!("{primaries} {primary} with {replicas} {replica} each")
    }

    /// The number of nodes that this makes.
    pub(super) fn node_count(&self) -> usize {
        usize::from(self.primaries) * (1 + usize::from(self.replicas))
    }

    pub(super) fn is_ephemeral(&self) -> bool {
        self.dir.is_none()
    }

    pub(super) fn validate(&self) -> Result<()> {
        let nodes = self.node_count();
        if nodes == 0 || nodes > MAX_NODES {
            return Err(Error::invalid(format!(
                "{} make {nodes} nodes; 1 to {MAX_NODES} are possible",
                self.shape_text()
            )));
        }
        let shared = self.config.iter().map(|(key, value)| (key, value));
        let single = self.node_config.iter().map(|(_, key, value)| (key, value));
        let secret = self.password.iter().map(|password| (password, password));
        for (key, value) in shared.chain(single).chain(secret) {
            if key.contains(['\n', '\r', '\0']) || value.contains(['\n', '\r', '\0']) {
                return Err(Error::invalid(
                    "configuration values and passwords cannot hold line breaks or zero bytes",
                ));
            }
        }
        Ok(())
    }

    /// The specification without what may change while it runs: the program and our patience.
    pub(super) fn lasting(&self) -> Self {
        let base = Self::default();
        Self { dir: None, server: None, start_deadline: base.start_deadline, ..self.clone() }
    }
}

impl fmt::Debug for ClusterSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterSpec")
            .field("primaries", &self.primaries)
            .field("replicas", &self.replicas)
            .field("dir", &self.dir)
            .field("port_base", &self.port_base)
            .finish_non_exhaustive()
    }
}
