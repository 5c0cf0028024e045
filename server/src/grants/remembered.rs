//! An instance's memory of tokens, and of whom may act, so that not each request asks for its own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quick_cache::sync::Cache;

/// Tokens that are remembered.
const TOKENS_MAX: usize = 65_536;

/// Tokens by their places, none for longer than what others do may take to show.
pub(crate) struct RememberedTokens<T> {
    tokens: Cache<String, (Arc<T>, Instant)>,
    lasts: Duration,
}

impl<T> RememberedTokens<T> {
    /// None yet; each is forgotten after so long.
    pub(crate) fn new(lasts: Duration) -> Self {
        Self { tokens: Cache::new(TOKENS_MAX), lasts }
    }

    pub(crate) fn get(&self, place: &str) -> Option<Arc<T>> {
        let (token, since) = self.tokens.get(place)?;
        (since.elapsed() < self.lasts).then_some(token)
    }

    /// Remembers a token that was looked for at that moment.
    pub(crate) fn insert(&self, place: String, token: Arc<T>, asked: Instant) {
        if !self.lasts.is_zero() {
            self.tokens.insert(place, (token, asked));
        }
    }

    pub(crate) fn remove(&self, place: &str) {
        self.tokens.remove(place);
    }
}

impl<T> std::fmt::Debug for RememberedTokens<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remembered").field("many", &self.tokens.len()).finish_non_exhaustive()
    }
}
