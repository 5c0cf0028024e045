//! A cluster of server processes on this machine.

use std::fs;
use std::path::Path;
use std::time::Duration;

use futures::future::join_all;
use tokio::time::Instant;

use super::admin::{Admin, url};
use super::binary::ServerBinary;
use super::facts::{Facts, Live};
use super::health::ClusterHealth;
use super::home::{ClusterNotes, Home, NodeState, make_dir};
use super::keeper::Keeper;
use super::node::LocalNode;
use super::plan::Shape;
use super::ports::PortPool;
use super::process::Process;
use super::progress::Progress;
use super::spec::ClusterSpec;
use tideline_model::error::{Error, ErrorKind, Result};
use tideline_router::wire::{Command, NodeAddr, Reply};
use tideline_router::{ServerProgram, describe_programs};

/// Between two looks at the facts.
pub(super) const POLL: Duration = Duration::from_millis(25);

/// A cluster of real server processes on 127.0.0.1.
///
/// One without a directory of its own is ephemeral: dropping this value kills the servers and removes
/// their files (blocking for some milliseconds), and so does the end of this process, a SIGKILL included.
/// One with a directory goes on when this is dropped; [`LocalCluster::down`] stops it.
#[derive(Debug)]
pub struct LocalCluster {
    pub(super) spec: ClusterSpec,
    pub(super) nodes: Vec<LocalNode>,
    pub(super) home: Home,
    pub(super) admin: Admin,
    pub(super) ports: PortPool,
    keeper: Option<Keeper>,
}

impl LocalCluster {
    /// Starts the cluster, or mends the one that is in the directory already, and waits until it is healthy:
    /// every slot served, every replica in sync.
    ///
    /// # Errors
    /// `Misconfigured` with what to change: no server program, a taken port, a setting the server refuses.
    /// `Unavailable` after [`ClusterSpec::start_deadline`]. The message ends with the failing server's log.
    ///
    /// Cancelling leaves nothing of an ephemeral cluster; a persistent one is mended by the next `up`.
    pub async fn up(spec: ClusterSpec) -> Result<Self> {
        Self::up_with(spec, &|_| {}).await
    }

    /// [`LocalCluster::up`] that tells how far it has come.
    pub async fn up_with(spec: ClusterSpec, progress: &(dyn Fn(Progress) + Sync)) -> Result<Self> {
        spec.validate()?;
        let server = ServerBinary::find(spec.server.as_deref())?;
        let deadline = Instant::now() + spec.start_deadline;
        let Some(dir) = &spec.dir else {
            let mut cluster = Self::ephemeral(spec)?;
            cluster.start(&server, progress, deadline).await?;
            return Ok(cluster);
        };
        let missing = Home::missing(dir);
        let home = Home::create(dir)?;
        let _lock = home.lock(deadline).await?;
        let up = Self::up_in(home.clone(), spec, &server, progress, deadline).await;
        up.inspect_err(|_| home.take_back(&missing))
    }

    /// In its directory, which is ours as long as this runs.
    async fn up_in(
        home: Home,
        spec: ClusterSpec,
        server: &ServerBinary,
        progress: &(dyn Fn(Progress) + Sync),
        deadline: Instant,
    ) -> Result<Self> {
        let mut cluster = match home.load()? {
            None => Self::from_parts(spec, home)?,
            Some(state) => Self::from_state(state, home)?.with_spec(spec).await?,
        };
        cluster.start(server, progress, deadline).await?;
        Ok(cluster)
    }

    /// The cluster in `dir`, running or not, as it is.
    pub async fn open(dir: &Path) -> Result<Self> {
        let home = Home::new(&dir.canonicalize().map_err(|_| no_cluster(dir))?);
        let state = home.load()?.ok_or_else(|| no_cluster(dir))?;
        let cluster = Self::from_state(state, home)?;
        cluster.find_processes().await;
        Ok(cluster)
    }

    fn ephemeral(spec: ClusterSpec) -> Result<Self> {
        let home = Home::temporary()?;
        // The keeper first: there is no moment at which our end would leave something behind.
        let keeper = Keeper::start(home.path())?;
        make_dir(home.path())?;
        let mut cluster = Self::from_parts(spec, home)?;
        cluster.keeper = Some(keeper);
        Ok(cluster)
    }

    fn from_parts(spec: ClusterSpec, home: Home) -> Result<Self> {
        let admin = Admin::new(&spec)?;
        let ports = if spec.is_ephemeral() { PortPool::passing() } else { PortPool::lasting(home.path()) };
        Ok(Self { spec, nodes: Vec::new(), home, admin, ports, keeper: None })
    }

    fn from_state(state: ClusterNotes, home: Home) -> Result<Self> {
        let mut cluster = Self::from_parts(state.spec, home)?;
        for (index, node) in state.nodes.into_iter().enumerate() {
            let dir = cluster.home.node(index);
            let local = LocalNode::new(index, node.ports, dir);
            local.set_process(Process::find(local.dir(), node.pid));
            cluster.nodes.push(local);
        }
        Ok(cluster)
    }

    /// Takes over the settings of `spec`, as far as the existing cluster allows.
    async fn with_spec(mut self, spec: ClusterSpec) -> Result<Self> {
        self.find_processes().await;
        let (dir, old) = (self.home.path(), &self.spec);
        let place = dir.display();
        if (spec.primaries, spec.replicas, spec.port_base) != (old.primaries, old.replicas, old.port_base) {
            return Err(Error::misconfigured(format!(
                "the cluster in {place} has {} and keeps its ports; take another --dir, or remove it with `{}`",
                old.shape_text(),
                ClusterSpec::command("down --wipe", dir)
            )));
        }
        if self.nodes.iter().any(LocalNode::is_running) && spec.lasting() != old.lasting() {
            return Err(Error::misconfigured(format!(
                "the cluster in {place} runs with other settings; stop it with `{}` first",
                ClusterSpec::command("down", dir)
            )));
        }
        self.admin = Admin::new(&spec)?;
        self.spec = spec;
        Ok(self)
    }

    /// Finds the servers whose pid nobody wrote down, by asking whoever listens at the node's port.
    async fn find_processes(&self) {
        let search = self.nodes.iter().filter(|node| !node.is_running()).map(async |node| {
            let pid = self.admin.process_id(&node.addr()).await?;
            node.set_process(Process::find(node.dir(), Some(pid)));
            Some(())
        });
        join_all(search).await;
    }

    /// `redis://` or `rediss://` URLs of all nodes, the password included.
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(|node| url(&self.spec, &node.addr())).collect()
    }

    /// Describes the programs that its nodes run now, and on further lines what another would bring.
    pub async fn describe_programs(&self) -> String {
        let asked = self.nodes.iter().map(async |node| self.admin.program(&node.addr()).await);
        let programs: Vec<ServerProgram> = join_all(asked).await.into_iter().flatten().collect();
        describe_programs(&programs)
    }

    /// The specification that the cluster was started with.
    pub fn spec(&self) -> &ClusterSpec {
        &self.spec
    }

    /// The directory that holds everything.
    pub fn dir(&self) -> &Path {
        self.home.path()
    }

    /// All nodes, dead ones too, in the order of their start.
    pub fn nodes(&self) -> &[LocalNode] {
        &self.nodes
    }

    /// The node at that address.
    pub fn node(&self, addr: &NodeAddr) -> Option<&LocalNode> {
        self.nodes.iter().find(|node| node.addr() == *addr)
    }

    /// The nodes that answer and are primaries in their own eyes, those without slots included.
    pub async fn primaries(&self) -> Vec<&LocalNode> {
        let facts = self.facts().await;
        let is_primary = |facts: &Facts| facts.live().is_some_and(Live::is_primary);
        self.nodes.iter().zip(&facts).filter(|(_, facts)| is_primary(facts)).map(|(node, _)| node).collect()
    }

    /// A node that answers and is a replica of the node at `primary`, which may be dead.
    pub async fn replica_of(&self, primary: &NodeAddr) -> Option<&LocalNode> {
        let facts = self.facts().await;
        let follows = |live: &Live| live.primary_port() == Some(primary.port);
        let mut nodes = self.nodes.iter().zip(&facts);
        nodes.find(|(_, facts)| facts.live().is_some_and(follows)).map(|(node, _)| node)
    }

    /// The primary of a node that answers and is a replica.
    pub async fn primary_of(&self, replica: &NodeAddr) -> Option<NodeAddr> {
        let facts = self.admin.facts(replica).await;
        facts.live()?.primary_port().map(|port| NodeAddr::new("127.0.0.1", port))
    }

    /// Sends a command to one node, on a connection of its own. An error that is answered is an error.
    ///
    /// # Errors
    /// `Unavailable` if the node doesn't answer within 15 seconds, `Internal` with what it answered.
    pub async fn ask(&self, node: &NodeAddr, command: Command) -> Result<Reply> {
        self.admin.act(node, command).await
    }

    /// The facts that each node tells now, in order.
    pub(super) async fn facts(&self) -> Vec<Facts> {
        join_all(self.nodes.iter().map(async |node| match node.is_running() {
            true => self.admin.facts(&node.addr()).await,
            false => Facts::Stopped,
        }))
        .await
    }

    pub(super) fn shape(&self) -> Shape {
        Shape { primaries: self.spec.primaries.into(), replicas: self.spec.replicas.into() }
    }

    pub(super) fn judge(&self, facts: &[Facts]) -> ClusterHealth {
        let addrs: Vec<NodeAddr> = self.nodes.iter().map(LocalNode::addr).collect();
        ClusterHealth::judge(self.shape(), ClusterSpec::command("up", self.dir()), &addrs, facts)
    }

    /// Writes the state file; ids that `facts` do not tell stay as they are.
    pub(super) fn save(&self, facts: &[Facts]) -> Result<()> {
        let old = self.home.load()?.map(|state| state.nodes).unwrap_or_default();
        let nodes = self.nodes.iter().map(|node| {
            let told = facts.get(node.index).and_then(Facts::live).map(|live| live.view.me.id.clone());
            let id = told.or_else(|| old.get(node.index).and_then(|old| old.id.clone()));
            NodeState { ports: node.ports, pid: node.pid(), id }
        });
        self.home.save(&ClusterNotes::new(self.spec.clone(), nodes.collect()))
    }
}

fn no_cluster(dir: &Path) -> Error {
    let up = ClusterSpec::command("up", dir);
    Error::new(ErrorKind::NotFound, format!("there is no cluster in {}; `{up}` starts one", dir.display()))
}

impl Drop for LocalCluster {
    fn drop(&mut self) {
        if let Some(keeper) = self.keeper.take() {
            drop(keeper);
            // The keeper has done this already, unless somebody ended it.
            for node in self.nodes.iter().filter(|node| node.is_running()) {
                let _ = node.kill();
            }
            let _ = fs::remove_dir_all(self.home.path());
        }
    }
}
