//! Messages that whoever runs the service has to hear, though not each time.

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
            let what = what();
            tracing::error!("{what}; told once in {TOLD_EVERY:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_wrong_with_each_page_is_told_once() {
        let (telling, mut told) = (RareTelling::new(), 0);
        for _ in 0..3 {
            telling.tell(|| {
                told += 1;
                "something is wrong".into()
            });
        }
        assert_eq!(told, 1);
    }
}
