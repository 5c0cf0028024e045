//! Turns: of each of many things one holder at a time, within this process.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

/// Turns at things, and who has them. Things that nobody holds or waits for take no memory.
#[derive(Debug)]
pub(crate) struct Turns<K>(Mutex<HashMap<K, Arc<tokio::sync::Mutex<()>>>>);

impl<K> Default for Turns<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash> Turns<K> {
    /// The turn at a thing, to be waited for.
    pub(crate) fn of(&self, thing: K) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        turns.entry(thing).or_default().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_thing_has_one_holder_and_none_is_kept() {
        let turns = Turns::default();
        let held = turns.of(1).lock_owned().await;
        assert!(turns.of(1).try_lock().is_err());
        assert!(turns.of(2).try_lock().is_ok());
        drop(held);
        assert!(turns.of(1).try_lock().is_ok());
        drop(turns.of(3));
        assert!(turns.0.lock().unwrap().len() <= 1);
    }
}
