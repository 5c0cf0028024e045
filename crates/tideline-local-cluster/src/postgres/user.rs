//! The user that PostgreSQL runs as: it refuses to be root.

use std::process::Command;

use tideline_model::error::{Error, Result};

/// The user that all its packages make.
const NAME: &str = "postgres";

/// A user of this machine that isn't root.
#[derive(Debug, Clone, Copy)]
pub(super) struct ServerUser {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

impl ServerUser {
    /// The user that the server has to be, if we are root; else it can be who we are.
    pub(super) fn needed() -> Result<Option<Self>> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        match (number("-u"), number("-g")) {
            (Some(uid), Some(gid)) if uid != 0 => Ok(Some(Self { uid, gid })),
            _ => Err(Error::misconfigured(format!(
                "PostgreSQL refuses to run as root, and there is no user {NAME}: make one (useradd --system {NAME}), \
                 or run this as another user"
            ))),
        }
    }
}

fn number(which: &str) -> Option<u32> {
    let output = Command::new("id").args([which, NAME]).output().ok()?;
    String::from_utf8_lossy(&output.stdout).trim().parse().ok()
}
