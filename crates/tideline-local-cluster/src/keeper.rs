//! The process that ends an ephemeral cluster when its owner has ended, in whatever way.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Stdio};

use super::process::in_own_session;
use tideline_model::error::{Error, Result};

const SCRIPT: &str = include_str!("keeper.sh");

/// A shell that waits for our end; dropping this is our end.
///
/// The pipe to it is opened close-on-exec, as all of std's are: no server inherits our end of it.
#[derive(Debug)]
pub(super) struct Keeper(Child);

impl Keeper {
    /// Starts the keeper of `dir`, which must not exist before: from here on it will not stay.
    pub(super) fn start(dir: &Path) -> Result<Self> {
        Self::start_as(dir, None)
    }

    /// Starts the keeper as another user, if the servers are: who is root in a container may not look at others'
    /// processes.
    pub(super) fn start_as(dir: &Path, user: Option<(u32, u32)>) -> Result<Self> {
        let mut command = in_own_session(Path::new("sh"));
        if let Some((uid, gid)) = user {
            command.uid(uid).gid(gid);
        }
        let child = command
            .args(["-c", SCRIPT, "tideline-keeper"])
            .arg(dir)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| Error::misconfigured(format!("cannot start `sh`, which guards the cluster: {e}")))?;
        Ok(Self(child))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // Bounded: the script ends after 100 rounds at the latest.
        let _ = self.0.wait();
    }
}
