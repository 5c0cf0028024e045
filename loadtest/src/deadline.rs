//! When something has to be over.

use std::time::{Duration, Instant};

use anyhow::Context as _;

/// A moment at which something is over, whatever is left of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    pub(crate) fn after(longest: Duration) -> Self {
        Self(Instant::now() + longest)
    }

    /// So much later.
    pub(crate) fn later(self, by: Duration) -> Self {
        Self(self.0 + by)
    }

    /// Of the first one of so many that share the time which is left.
    pub(crate) fn of_one(self, of: usize) -> Self {
        let left = self.0.saturating_duration_since(Instant::now());
        Self::after(left / u32::try_from(of.max(1)).unwrap_or(u32::MAX))
    }

    /// Whether something that takes so long ends in time.
    pub(crate) fn allows(self, length: Duration) -> bool {
        Instant::now() + length <= self.0
    }

    /// What comes of some work; it is dropped where it stands, if it doesn't end in time.
    pub(crate) async fn within<T>(self, work: impl Future<Output = T>) -> Option<T> {
        tokio::time::timeout_at(self.0.into(), work).await.ok()
    }

    /// What comes of a phase of a command; an error that names it, if it doesn't end in time.
    pub(crate) async fn phase<T>(
        self,
        name: &str,
        work: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        self.within(work).await.with_context(|| format!("{name}: it did not end in time"))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    #[test]
    fn what_is_left_is_shared_evenly() {
        let whole = Deadline::after(HOUR);
        let part = whole.of_one(4);
        assert!(part.allows(HOUR / 4 - HOUR / 60) && !part.allows(HOUR / 4 + HOUR / 60));
        assert!(whole.allows(HOUR / 2) && !whole.allows(HOUR * 2));
        // Nothing is left, and nothing is to be shared.
        assert!(!Deadline::after(Duration::ZERO).of_one(0).allows(Duration::from_millis(1)));
    }

    #[tokio::test]
    async fn work_that_does_not_end_is_dropped() {
        assert_eq!(Deadline::after(HOUR).within(async { 5 }).await, Some(5));
        // Not for ever: a test that hangs tells less than one that fails.
        let long = tokio::time::sleep(Duration::from_secs(20));
        assert_eq!(Deadline::after(Duration::from_millis(1)).within(long).await, None);
    }

    #[tokio::test]
    async fn a_phase_that_hangs_is_named() {
        let hangs = async {
            tokio::time::sleep(Duration::from_secs(20)).await;
            anyhow::Ok(())
        };
        let told = Deadline::after(Duration::from_millis(1)).phase("loading", hangs).await.unwrap_err();
        assert_eq!(told.to_string(), "loading: it did not end in time");
        let fails = std::future::ready(Err::<(), _>(anyhow::anyhow!("no")));
        let told = Deadline::after(HOUR).phase("loading", fails).await.unwrap_err();
        assert_eq!(told.to_string(), "no");
    }
}
