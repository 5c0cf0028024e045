//! The directory of a cluster: who works in it, and the state file.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::ports::Ports;
use super::spec::ClusterSpec;
use tideline_model::error::{Error, Result};

const STATE: &str = "cluster.json";
/// The state file while it is written; one that was killed meanwhile leaves it.
const FRESH_STATE: &str = "cluster.json.new";
const LOCK: &str = "lock";
/// Raised when an older Tideline could not read the state file.
const FORMAT: u32 = 1;

/// Notes about a cluster; the servers' own files hold the rest.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct ClusterNotes {
    format: u32,
    pub(super) spec: ClusterSpec,
    pub(super) nodes: Vec<NodeState>,
}

/// Notes about a node. The pid and the id are hints for people: both are looked up anew.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct NodeState {
    pub(super) ports: Ports,
    #[serde(default)]
    pub(super) pid: Option<u32>,
    #[serde(default)]
    pub(super) id: Option<String>,
}

impl ClusterNotes {
    pub(super) fn new(spec: ClusterSpec, nodes: Vec<NodeState>) -> Self {
        Self { format: FORMAT, spec, nodes }
    }
}

/// The directory of a cluster.
#[derive(Debug, Clone)]
pub(super) struct Home(PathBuf);

impl Home {
    pub(super) fn new(dir: &Path) -> Self {
        Self(dir.to_owned())
    }

    /// The directories that `create` is going to make, of this one and those above it, the innermost first.
    pub(super) fn missing(dir: &Path) -> Vec<PathBuf> {
        let is_missing = |dir: &&Path| !dir.as_os_str().is_empty() && !dir.exists();
        dir.ancestors().take_while(is_missing).map(Path::to_owned).collect()
    }

    /// Takes back what was made for a cluster that is refused before anything of it was written down.
    pub(super) fn take_back(&self, made: &[PathBuf]) {
        // Where the directory was there before, its lock stays: somebody may wait for it.
        if made.is_empty() || !matches!(self.load(), Ok(None)) {
            return;
        }
        let _ = fs::remove_file(self.0.join(LOCK));
        // What has something else in it stays.
        let _ = made.iter().try_for_each(fs::remove_dir);
    }

    /// Makes the directory if it is missing; its path is absolute and without links from here on.
    pub(super) fn create(dir: &Path) -> Result<Self> {
        make_dir(dir)?;
        let dir = dir.canonicalize().map_err(|e| cannot("find", dir, &e))?;
        Ok(Self(dir))
    }

    /// A name in the system's temporary directory that nobody has; nothing is made yet.
    pub(super) fn temporary() -> Result<Self> {
        let parent = std::env::temp_dir();
        let parent = parent.canonicalize().map_err(|e| cannot("find", &parent, &e))?;
        Ok(Self(parent.join(format!("tideline-{}-{:016x}", std::process::id(), rand::random::<u64>()))))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// The directory of node `index`; the keeper and the identity of processes rest on this name.
    pub(super) fn node(&self, index: usize) -> PathBuf {
        self.0.join(format!("node-{index}"))
    }

    /// The state file, `None` if there is none.
    pub(super) fn load(&self) -> Result<Option<ClusterNotes>> {
        let path = self.0.join(STATE);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(cannot("read", &path, &e)),
        };
        let unreadable = |why: &str| {
            Error::misconfigured(format!(
                "the state file {} is not readable ({why}); restore it, or end the servers by their pids in \
                 {}/node-*/redis.pid and remove the directory",
                path.display(),
                self.0.display()
            ))
        };
        let state: ClusterNotes = serde_json::from_slice(&text).map_err(|e| unreadable(&e.to_string()))?;
        if state.format != FORMAT {
            return Err(unreadable(&format!("format {}, this Tideline knows {FORMAT}", state.format)));
        }
        Ok(Some(state))
    }

    /// Writes the state file; whoever reads it meanwhile sees the old or the new one.
    pub(super) fn save(&self, state: &ClusterNotes) -> Result<()> {
        let (path, fresh) = (self.0.join(STATE), self.0.join(FRESH_STATE));
        let text = serde_json::to_vec_pretty(state).map_err(|e| Error::internal(e.to_string()))?;
        let write = || -> io::Result<()> {
            // It may hold a password.
            let mut file =
                OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&fresh)?;
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&fresh, &path)
        };
        write().map_err(|e| cannot("write", &path, &e))
    }

    /// Waits until no other `up` or `down` works in this directory; they wait until the lock is dropped.
    pub(super) async fn lock(&self, deadline: Instant) -> Result<DirLock> {
        let path = self.0.join(LOCK);
        let open = File::options().create(true).append(true).mode(0o600).open(&path);
        let file = open.map_err(|e| cannot("open", &path, &e))?;
        while file.try_lock().is_err() {
            if Instant::now() >= deadline {
                return Err(Error::unavailable(format!(
                    "another `tideline cluster up` or `down` works in {}: wait for it or end it, then try again",
                    self.0.display()
                )));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(DirLock { _file: file })
    }

    /// Removes the cluster's own files, and the directory if nothing else is in it.
    pub(super) fn wipe(&self, nodes: usize) -> Result<()> {
        for index in 0..nodes {
            ignore_missing(fs::remove_dir_all(self.node(index)))
                .map_err(|e| cannot("remove", &self.node(index), &e))?;
        }
        for name in [STATE, FRESH_STATE, LOCK] {
            let path = self.0.join(name);
            ignore_missing(fs::remove_file(&path)).map_err(|e| cannot("remove", &path, &e))?;
        }
        // Somebody else's files may be here: then the directory stays.
        let _ = fs::remove_dir(&self.0);
        Ok(())
    }
}

/// Held while the servers of a directory are started or stopped.
#[derive(Debug)]
pub(super) struct DirLock {
    _file: File,
}

/// Makes `dir` and its parents, closed to other users.
pub(super) fn make_dir(dir: &Path) -> Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(|e| cannot("make", dir, &e))
}

pub(super) fn cannot(what: &str, path: &Path, error: &io::Error) -> Error {
    Error::misconfigured(format!("cannot {what} {}: {error}", path.display()))
}

fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
