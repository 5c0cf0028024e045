//! The progress of a cluster's start.

use std::fmt;

/// A step in the start of a cluster; one call for every change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// Servers that answer.
    Starting {
        /// Servers that answer.
        started: usize,
        /// All servers.
        of: usize,
    },
    /// Nodes that know all others.
    Joining {
        /// Nodes that know all others.
        joined: usize,
        /// All nodes.
        of: usize,
    },
    /// Nodes that serve, seeing every slot served.
    Serving {
        /// Nodes that report the cluster as served.
        ready: usize,
        /// All nodes.
        of: usize,
    },
    /// Replicas that hold their primary's data and follow it.
    Syncing {
        /// Replicas that follow.
        in_sync: usize,
        /// All replicas.
        of: usize,
    },
    /// Every slot is served, every replica in sync.
    Ready,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starting { started, of } => write!(f, "starting servers ({started} of {of})"),
            Self::Joining { joined, of } => write!(f, "joining nodes ({joined} of {of})"),
            Self::Serving { ready, of } => {
                write!(f, "waiting until all slots are served ({ready} of {of} nodes)")
            }
            Self::Syncing { in_sync, of } => write!(f, "synchronizing replicas ({in_sync} of {of})"),
            Self::Ready => write!(f, "ready"),
        }
    }
}
