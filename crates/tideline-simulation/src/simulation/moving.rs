//! Slots that move from node to node, key by key: both nodes are one here, and what matters is which keys have gone.

use super::data::{Bytes, Data};
use crate::bucket::mix64;

/// Why a request must wait until its slot has moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeldUp {
    Untouched,
    /// What its function wrote before stands.
    HalfWay,
}

/// A slot on its way to another node, key by key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moving {
    pub(super) salt: u64,
    /// Of 256 keys so many have moved.
    pub(super) share: u64,
}

impl Moving {
    pub(super) fn has(&self, key: &[u8]) -> bool {
        key.iter().fold(self.salt, |h, b| mix64(h ^ u64::from(*b))) % 256 < self.share
    }
}

/// Whether a function may run while its slot moves, by the keys that it declares.
pub(super) fn may_run(
    data: &Data,
    moving: Moving,
    has_undeclared: bool,
    keys: &[&[u8]],
) -> Result<(), String> {
    let moved = keys.iter().filter(|key| moving.has(key) && data.has(key)).count();
    let missing = keys.iter().filter(|key| !data.has(key)).count();
    if keys.len() == 1 && !has_undeclared {
        return Ok(());
    }
    match (moved, missing) {
        (0, 0) => Ok(()),
        (n, 0) if n == keys.len() && !has_undeclared => Ok(()),
        (n, 0) if n == keys.len() => Err("ASK".into()),
        _ => Err("TRYAGAIN Multiple keys request during rehashing of slot".into()),
    }
}

impl Moving {
    /// The declared keys of a function that runs at the source: they were there when it began.
    pub(super) fn leaving(&self, data: &Data, keys: &[&[u8]]) -> Vec<Bytes> {
        let there = || keys.iter().filter(|key| data.has(key));
        if there().any(|key| self.has(key)) { Vec::new() } else { there().map(|key| key.to_vec()).collect() }
    }
}
