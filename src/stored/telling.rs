//! What whoever runs the service has to hear, though not each time.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// After how long the same is told again.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// Something that may go wrong as often as somebody reads a page: when it was told last.
#[derive(Debug, Default)]
pub(crate) struct RareTelling(Mutex<Option<Instant>>);

impl RareTelling {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Writes it to the log as an error, unless that was done a moment ago.
    pub(crate) fn tell(&self, what: impl FnOnce() -> String) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_none_or(|told| told.elapsed() >= TOLD_EVERY) {
            *told = Some(Instant::now());
            tracing::error!("{}; told once in {TOLD_EVERY:?}", what());
        }
    }
}
