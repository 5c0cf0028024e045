//! Counts and latencies of operations while they happen, one tally for each kind of operation.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// Latencies above this are recorded as this: no operation may take so long.
const LATENCY_MAX: Duration = Duration::from_secs(120);

/// One kind of operation.
#[derive(Debug)]
pub(crate) struct Tally(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    latency: Histogram<u64>,
    counts: Counts,
}

/// What became of the scheduled operations: each is counted once.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Counts {
    /// Those that succeeded.
    pub(crate) succeeded: u64,
    /// Those that failed, by kind.
    pub(crate) errors: BTreeMap<String, u64>,
    /// Not sent: too many were under way.
    pub(crate) dropped: u64,
}

impl Counts {
    pub(crate) fn failed(&self) -> u64 {
        self.errors.values().sum()
    }

    /// All that were due.
    pub(crate) fn scheduled(&self) -> u64 {
        self.succeeded + self.failed() + self.dropped
    }
}

/// A tally, read.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Summary {
    /// What became of them.
    #[serde(flatten)]
    pub(crate) counts: Counts,
    pub(crate) mean_us: f64,
    pub(crate) p50_us: u64,
    pub(crate) p99_us: u64,
    pub(crate) p999_us: u64,
    pub(crate) max_us: u64,
}

impl Tally {
    pub(crate) fn new() -> Self {
        let latency =
            Histogram::new_with_max(micros(LATENCY_MAX), 3).expect("bounds that the histogram allows");
        Self(Mutex::new(Inner { latency, counts: Counts::default() }))
    }

    /// An operation has ended, `latency` after it was due. Failed ones count in the latencies too: a caller waits
    /// for them as well.
    pub(crate) fn ended(&self, latency: Duration, error: Option<String>) {
        let mut inner = self.lock();
        inner.latency.saturating_record(micros(latency));
        match error {
            None => inner.counts.succeeded += 1,
            Some(kind) => *inner.counts.errors.entry(kind).or_default() += 1,
        }
    }

    pub(crate) fn dropped(&self) {
        self.lock().counts.dropped += 1;
    }

    pub(crate) fn summary(&self) -> Summary {
        let inner = self.lock();
        let at = |quantile| inner.latency.value_at_quantile(quantile);
        Summary {
            counts: inner.counts.clone(),
            mean_us: inner.latency.mean(),
            p50_us: at(0.5),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: inner.latency.max(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scheduled_operation_is_counted_once() {
        let tally = Tally::new();
        tally.ended(Duration::from_micros(100), None);
        tally.ended(Duration::from_micros(300), Some("unavailable".into()));
        tally.dropped();
        let summary = tally.summary();
        assert!((summary.mean_us - 200.0).abs() < 1.0, "{summary:?}");
        assert_eq!((summary.counts.scheduled(), summary.counts.failed()), (3, 1));
        assert_eq!((summary.p50_us, summary.max_us), (100, 300));
    }

    #[test]
    fn a_latency_beyond_the_range_is_not_lost() {
        let tally = Tally::new();
        tally.ended(2 * LATENCY_MAX, None);
        assert!(tally.summary().max_us >= micros(LATENCY_MAX));
    }
}
