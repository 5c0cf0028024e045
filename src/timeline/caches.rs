//! What an instance remembers, all of it bounded, and all but readers' states no longer than `visible_within`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quick_cache::sync::Cache;

use super::outbox::Newest;
use super::state::ReaderState;
use crate::account::Account;
use crate::ids::{AccountId, PostId};
use crate::meters;
use crate::post::Post;
use crate::settings::EngineSettings;

/// A cache whose entries are good for a while.
#[derive(Debug)]
pub(crate) struct Fresh<K, V> {
    entries: Option<Cache<K, (Instant, V)>>,
    good_for: Duration,
    name: &'static str,
}

impl<K: Eq + std::hash::Hash + Clone, V: Clone> Fresh<K, V> {
    fn new(name: &'static str, most: usize, good_for: Duration) -> Self {
        Self { entries: (!good_for.is_zero()).then(|| Cache::new(most)), good_for, name }
    }

    /// What was put there, if that is not too long ago.
    pub(crate) fn get(&self, key: &K) -> Option<V> {
        let found = self.entries.as_ref()?.get(key);
        found.filter(|(at, _)| at.elapsed() < self.good_for).map(|(_, value)| value)
    }

    /// Notes a value that was asked for at `at`: it may be older than the answer.
    pub(crate) fn put(&self, key: K, at: Instant, value: V) {
        if let Some(entries) = &self.entries {
            entries.insert(key, (at, value));
        }
    }

    pub(crate) fn count(&self, hits: usize, misses: usize) {
        if hits + misses > 0 {
            meters::cache(self.name, hits, misses);
        }
    }
}

/// Everything that an instance remembers.
#[derive(Debug)]
pub(crate) struct Caches {
    /// Readers' states: good for as long as the stamps say so.
    pub(crate) states: Cache<AccountId, Arc<ReaderState>>,
    /// Posts; `None`: deleted.
    pub(crate) posts: Fresh<PostId, Option<Arc<Post>>>,
    pub(crate) accounts: Fresh<AccountId, Option<Arc<Account>>>,
    /// Whether the first blocks the second, or hides from it.
    pub(crate) restrictions: Fresh<(AccountId, AccountId), bool>,
    pub(crate) outboxes: Fresh<AccountId, Arc<Newest>>,
    /// Pairs that were journaled by a reader not long ago.
    pub(crate) asked: Fresh<(AccountId, AccountId), ()>,
}

/// A reader asks at most this often that a needless mark be looked at.
const ASK_EVERY: Duration = Duration::from_secs(60);
const ASKED_MAX: usize = 10_000;

impl Caches {
    pub(crate) fn new(settings: &EngineSettings) -> Self {
        let t = settings.visible_within;
        Self {
            states: Cache::new(settings.states_cached),
            posts: Fresh::new("posts", settings.posts_cached, t),
            accounts: Fresh::new("accounts", settings.accounts_cached, t),
            restrictions: Fresh::new("restrictions", settings.accounts_cached, t),
            outboxes: Fresh::new("outboxes", settings.outboxes_cached, t),
            asked: Fresh::new("asked", ASKED_MAX, ASK_EVERY),
        }
    }
}
