//! One node of a local cluster.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::Signal;

use super::ports::Ports;
use super::process::{Process, log_tail};
use tideline_model::error::{Error, Result};
use tideline_router::wire::NodeAddr;

/// One node of a local cluster: an address, a directory and a server process.
pub struct LocalNode {
    /// Its place in [`LocalCluster::nodes`](super::LocalCluster::nodes).
    pub index: usize,
    pub(super) ports: Ports,
    home: PathBuf,
    process: Mutex<Option<Process>>,
}

impl LocalNode {
    pub(super) fn new(index: usize, ports: Ports, home: PathBuf) -> Self {
        Self { index, ports, home, process: Mutex::new(None) }
    }

    /// The address at which it listens.
    pub fn addr(&self) -> NodeAddr {
        NodeAddr::new("127.0.0.1", self.ports.client)
    }

    /// The server's directory: configuration, log and data.
    pub fn dir(&self) -> &Path {
        &self.home
    }

    /// The id of its server process, `None` if that does not run.
    pub fn pid(&self) -> Option<u32> {
        let mut process = self.process();
        process.as_mut().and_then(|process| process.is_alive().then(|| process.pid()))
    }

    /// Whether its server process runs; a frozen one does.
    pub fn is_running(&self) -> bool {
        self.pid().is_some()
    }

    /// Ends the server as a crash would (SIGKILL); it is gone when this returns.
    pub fn kill(&self) -> Result<()> {
        self.with_process(Process::kill)
    }

    /// Stops the server in its tracks (SIGSTOP): connections stay open and nothing is answered.
    pub fn freeze(&self) -> Result<()> {
        self.with_process(|process| process.signal(Signal::STOP))
    }

    /// Lets a frozen server go on (SIGCONT).
    pub fn thaw(&self) -> Result<()> {
        self.with_process(|process| process.signal(Signal::CONT))
    }

    pub(super) fn terminate(&self) -> Result<()> {
        self.with_process(|process| process.signal(Signal::TERM))
    }

    pub(super) fn set_process(&self, process: Option<Process>) {
        *self.process() = process;
    }

    /// The last lines of the log, since the last start as far as that was ours.
    pub(super) fn log_tail(&self) -> String {
        self.process().as_ref().map_or_else(|| log_tail(&self.home, 0), Process::log_tail)
    }

    fn with_process(&self, act: impl FnOnce(&mut Process) -> Result<()>) -> Result<()> {
        match self.process().as_mut() {
            Some(process) => act(process),
            None => Err(Error::unavailable(format!("the server of {} does not run", self.addr()))),
        }
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        // A panic between signals leaves nothing half-done.
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for LocalNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LocalNode({}, {})", self.index, self.addr())
    }
}
