//! Starting servers and making a cluster of them.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::binary::ServerBinary;
use super::cluster::LocalCluster;
use super::conf::{self, CONF};
use super::home::{cannot, make_dir};
use super::mend::{Watch, Watcher};
use super::node::LocalNode;
use super::ports;
use super::preload;
use super::process::Process;
use super::progress::Progress;
use tideline_model::error::{Error, Result};
use tideline_router::wire::NodeAddr;

/// Between two looks whether a server answers.
const START_POLL: Duration = Duration::from_millis(10);
/// A port that was free a moment ago can be taken by chance, hardly ever twice.
const BIND_ATTEMPTS: usize = 5;
/// Until a port of an existing node is tried again.
const BIND_PAUSE: Duration = Duration::from_millis(100);

impl LocalCluster {
    /// Starts what does not run and mends until all is well.
    pub(super) async fn start(
        &mut self,
        server: &ServerBinary,
        watch: Watch<'_>,
        deadline: Instant,
    ) -> Result<()> {
        let is_new = self.nodes.is_empty();
        if is_new {
            self.place_nodes()?;
        } else if self.spec.port_base.is_none() {
            self.ports.keep(self.nodes.iter().map(|node| node.ports))?;
        }
        for node in self.nodes.iter().filter(|node| node.is_running()) {
            // It may be frozen.
            node.thaw()?;
        }
        // From here on `down` finds the servers, whenever we are interrupted.
        self.save(&[])?;
        let mut watch = Watcher::new(watch);
        for index in 0..self.nodes.len() {
            self.launch(index, server)?;
        }
        self.save(&[])?;
        for index in 0..self.nodes.len() {
            watch.tell(Progress::Starting { started: index, of: self.nodes.len() });
            self.wait_started(index, is_new, server, deadline).await?;
        }
        watch.tell(Progress::Starting { started: self.nodes.len(), of: self.nodes.len() });
        self.mend(&mut watch, deadline).await
    }

    fn place_nodes(&mut self) -> Result<()> {
        let count = self.spec.node_count();
        let ports = match self.spec.port_base {
            Some(base) => ports::fixed(base, count)?,
            None => (0..count).map(|_| self.ports.take()).collect::<Result<_>>()?,
        };
        for (index, ports) in ports.into_iter().enumerate() {
            self.nodes.push(LocalNode::new(index, ports, self.home.node(index)));
        }
        Ok(())
    }

    /// Starts the server of a node that has none; does not wait for it.
    fn launch(&self, index: usize, server: &ServerBinary) -> Result<()> {
        let node = &self.nodes[index];
        if node.is_running() {
            return Ok(());
        }
        make_dir(node.dir())?;
        let text = conf::render(&self.spec, index, node.ports, node.dir());
        let path = node.dir().join(CONF);
        std::fs::write(&path, text).map_err(|e| cannot("write", &path, &e))?;
        let env = self.spec.node_env.iter().filter(|(node, ..)| *node == index);
        let mut env: Vec<_> = env.map(|(_, name, value)| (name.clone(), value.clone())).collect();
        env.extend(server.jemalloc.and_then(|library| preload::variable(library, &env)));
        node.set_process(Some(Process::spawn(&server.path, node.dir(), &env)?));
        Ok(())
    }

    /// Waits until the server of a node answers; on a port that was snatched away it starts again.
    async fn wait_started(
        &mut self,
        index: usize,
        may_move: bool,
        server: &ServerBinary,
        deadline: Instant,
    ) -> Result<()> {
        for attempt in 1.. {
            let log = match self.wait_answer(index, deadline).await? {
                None => return Ok(()),
                Some(log) => log,
            };
            let node = &self.nodes[index];
            if !is_bind_failure(&log) {
                return Err(Error::misconfigured(format!(
                    "the server of {} ended at once; {log}",
                    node.addr()
                )));
            }
            if attempt == BIND_ATTEMPTS {
                return Err(node.ports.snatched().context(format!("starting {}", node.addr())));
            }
            if may_move && self.spec.port_base.is_none() {
                let (ports, home) = (self.ports.take()?, self.home.node(index));
                self.nodes[index] = LocalNode::new(index, ports, home);
            } else {
                sleep(BIND_PAUSE).await;
                // An `up` that was killed may have started this very server a moment ago.
                self.nodes[index].set_process(Process::find(self.nodes[index].dir(), None));
            }
            self.launch(index, server)?;
            self.save(&[])?;
        }
        Ok(())
    }

    /// Waits until the node answers (`None`) or has ended (the end of its log).
    async fn wait_answer(&self, index: usize, deadline: Instant) -> Result<Option<String>> {
        let node = &self.nodes[index];
        loop {
            let Some(pid) = node.pid() else { return Ok(Some(node.log_tail())) };
            // Another server may answer at this port: then ours is about to end.
            if self.admin.process_id(&node.addr()).await == Some(pid) {
                return Ok(None);
            }
            if Instant::now() >= deadline {
                let (addr, log) = (node.addr(), node.log_tail());
                return Err(Error::unavailable(format!("the server of {addr} does not answer; {log}")));
            }
            sleep(START_POLL).await;
        }
    }

    /// Starts a node again, with its data and its ports; stops it first if it runs. Waits until it answers,
    /// not until it has caught up: [`LocalCluster::wait_healthy`] does.
    pub async fn restart(&self, index: usize) -> Result<()> {
        let node =
            self.nodes.get(index).ok_or_else(|| Error::invalid(format!("there is no node {index}")))?;
        if node.is_running() {
            node.thaw()?;
            self.stop(node).await?;
        }
        let server = ServerBinary::find(self.spec.server.as_deref())?;
        self.launch(index, &server)?;
        match self.wait_answer(index, Instant::now() + self.spec.start_deadline).await? {
            None => self.save(&[]),
            Some(log) => {
                Err(Error::unavailable(format!("the server of {} ended at once; {log}", node.addr())))
            }
        }
    }

    /// Starts one more node, which joins without slots, and waits until all know each other.
    pub async fn start_extra_node(&mut self) -> Result<NodeAddr> {
        let deadline = Instant::now() + self.spec.start_deadline;
        let server = ServerBinary::find(self.spec.server.as_deref())?;
        let (index, ports) = (self.nodes.len(), self.ports.take()?);
        self.nodes.push(LocalNode::new(index, ports, self.home.node(index)));
        self.launch(index, &server)?;
        self.wait_started(index, true, &server, deadline).await?;
        self.mend(&mut Watcher::new(&|_| {}), deadline).await?;
        Ok(self.nodes[index].addr())
    }
}

/// Whether a server ended because a port, or its own directory, was taken. Redis and Valkey say it in these words.
fn is_bind_failure(log: &str) -> bool {
    let words = ["Failed listening on port", "Address already in use", "is already used by a different"];
    words.iter().any(|words| log.contains(words))
}
