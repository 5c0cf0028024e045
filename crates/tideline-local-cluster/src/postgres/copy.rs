//! The data that a server had at one moment, and going back to that: as where another server takes over that follows
//! the first one, and lacks what it acknowledged last.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use tideline_model::error::{Error, Result};
use tokio::time::{Instant, sleep};

use super::{LocalPostgres, POLL, STOP_DEADLINE, state_of};
use crate::home::cannot;

/// All that a server had on disk at one moment; removed when it is dropped.
#[derive(Debug)]
pub struct PostgresCopy {
    path: PathBuf,
    until: Instant,
}

impl PostgresCopy {
    /// Until when the server had nothing else: it went on then.
    pub fn until(&self) -> Instant {
        self.until
    }
}

impl LocalPostgres {
    /// Copies all that the server has on disk, while its processes stand still: what a loss of power would leave at
    /// this moment.
    ///
    /// # Errors
    /// `Internal` if it doesn't stand still, or the files can't be copied. It goes on in any case.
    pub async fn copy(&self) -> Result<PostgresCopy> {
        // The first one begins no more of them then.
        self.signal_first(Signal::STOP);
        self.freeze();
        let copied = self.copy_still().await;
        self.thaw();
        copied
    }

    async fn copy_still(&self) -> Result<PostgresCopy> {
        let since = Instant::now();
        let moving = || {
            let states = self.pids().into_iter().filter_map(|pid| Some((pid, state_of(pid)?)));
            states.filter(|(_, state)| !['T', 't', 'Z', 'X'].contains(state)).collect::<Vec<_>>()
        };
        loop {
            let moving = moving();
            if moving.is_empty() {
                break;
            }
            if since.elapsed() >= STOP_DEADLINE {
                return Err(Error::internal(format!("PostgreSQL does not stand still: {moving:?}")));
            }
            // One that was born just then has heard nothing.
            self.freeze();
            sleep(POLL).await;
        }
        let path = self.home.with_file_name(format!("copy-{:016x}", rand::random::<u64>()));
        // Removes what was copied if not all is.
        let mut copy = PostgresCopy { path, until: since };
        copy_tree(&self.home, &copy.path).await?;
        copy.until = Instant::now();
        Ok(copy)
    }

    /// Starts the server, which was killed, with what it had when that copy was made, and nothing of what came later.
    ///
    /// # Errors
    /// `Internal` if the files can't be replaced; else as [`start`](Self::start).
    pub async fn start_from(&mut self, copy: &PostgresCopy) -> Result<()> {
        if self.is_running() {
            return Err(Error::internal("a server that runs can't go back to what it had"));
        }
        // The folder stays: shared memory that the killed one has left is found by it, and given back.
        let entries = fs::read_dir(&self.home).map_err(|e| cannot("read", &self.home, &e))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.map_err(|e| cannot("remove", &path, &e))?;
        }
        copy_tree(&copy.path, &self.home).await?;
        self.start().await
    }
}

impl Drop for PostgresCopy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Copies what is in a folder into another one, with owners and rights.
async fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    let mut command = Command::new("cp");
    command.arg("-Rp").arg(from.join(".")).arg(to);
    let ran = tokio::task::spawn_blocking(move || command.output()).await;
    let output = ran.map_err(|e| Error::internal(e.to_string()))?.map_err(|e| cannot("copy", from, &e))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Error::internal(format!("cannot copy {}: {}", from.display(), said.trim())))
}
