//! Epochs: which life of which server gave a reply.
//!
//! A server that restarts gets a new run id; one that is promoted, or loses its data to a resynchronization, a new
//! replication id. While both stay the same, what the server acknowledged is still there.

use std::fmt;
use std::sync::{Arc, RwLock};

use super::wire::NodeAddr;

/// The number of characters of each id that stand in a name.
const NAMED_BY: usize = 8;

/// One life of one server. Copies are cheap; equal means the same life.
#[derive(Clone)]
pub struct Epoch(pub(crate) Arc<ServerLife>);

pub(crate) struct ServerLife {
    pub(crate) addr: NodeAddr,
    run_id: String,
    replication_id: String,
}

impl Epoch {
    /// A life of a server that doesn't exist, for tests.
    #[doc(hidden)]
    pub fn of_life(addr: NodeAddr, life: u32) -> Self {
        Self(Arc::new(ServerLife { addr, run_id: life.to_string(), replication_id: String::new() }))
    }

    /// The server that lives it.
    pub fn node(&self) -> &NodeAddr {
        &self.0.addr
    }

    /// A name that can be stored: of the ids, which are random, so much that no other life of this server has the same.
    #[doc(hidden)]
    pub fn name(&self) -> String {
        let short = |id: &str| id.chars().take(NAMED_BY).collect::<String>();
        format!("{}/{}{}", self.0.addr, short(&self.0.run_id), short(&self.0.replication_id))
    }

    /// Some other life than the server's: nothing that it said is known to be there.
    pub(crate) fn over(addr: NodeAddr) -> Self {
        Self(Arc::new(ServerLife { addr, run_id: String::new(), replication_id: String::new() }))
    }
}

impl PartialEq for Epoch {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Epoch {}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.addr.fmt(f)
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |id: &str| id.chars().take(8).collect::<String>();
        write!(
            f,
            "{} run {} replication {}",
            self.0.addr,
            short(&self.0.run_id),
            short(&self.0.replication_id)
        )
    }
}

/// The current epoch of one node; the same life always gives the same [`Epoch`].
#[derive(Debug, Default)]
pub(crate) struct EpochCell(RwLock<Option<Epoch>>);

impl EpochCell {
    /// The epoch that was read last: a command sent from now on runs under this epoch or a later one.
    pub(crate) fn get(&self) -> Option<Epoch> {
        self.0.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// Notes what the server says of itself.
    pub(crate) fn observe(&self, addr: &NodeAddr, run_id: &str, replication_id: &str) -> Epoch {
        let mut cell = self.0.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        match &*cell {
            Some(e) if e.0.run_id == run_id && e.0.replication_id == replication_id => e.clone(),
            _ => {
                let life = ServerLife {
                    addr: addr.clone(),
                    run_id: run_id.into(),
                    replication_id: replication_id.into(),
                };
                cell.insert(Epoch(Arc::new(life))).clone()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_ends_with_the_process_and_with_the_replication_history() {
        let (cell, addr) = (EpochCell::default(), NodeAddr::new("127.0.0.1", 7000));
        assert!(cell.get().is_none());
        let first = cell.observe(&addr, "run1", "repl1");
        assert_eq!(cell.observe(&addr, "run1", "repl1"), first);
        assert_eq!(cell.get(), Some(first.clone()));
        let promoted = cell.observe(&addr, "run1", "repl2");
        assert_ne!(promoted, first);
        assert_ne!(cell.observe(&addr, "run2", "repl2"), promoted);
        // The same ids again after another life are another epoch: what lay between is unknown.
        assert_ne!(cell.observe(&addr, "run1", "repl1"), first);
    }
}
