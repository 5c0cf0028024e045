//! How often the engine's caches were asked, and knew: its metrics, read within this process, where systems take turns.

use std::ops::{AddAssign, Sub};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use metrics::{Counter, CounterFn, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

const METRIC: &str = "tideline_cache_lookups_total";
/// Caches, as the metric names them.
const CACHES: [&str; 3] = ["posts", "accounts", "outboxes"];
/// Of each cache: found, and not.
static COUNTS: [[AtomicU64; 2]; 3] = [const { [const { AtomicU64::new(0) }; 2] }; 3];

/// Of each cache, found and not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Lookups([[u64; 2]; 3]);

impl Lookups {
    /// All of this process until now; none, if nobody counts them.
    pub(crate) fn so_far() -> Self {
        Self(std::array::from_fn(|of| COUNTS[of].each_ref().map(|count| count.load(Ordering::Relaxed))))
    }

    /// What share was found of posts, accounts and outboxes; nothing of what nobody has looked for.
    pub(crate) fn shares(self) -> [Option<f64>; 3] {
        let count = crate::report::count;
        self.0.map(|[hits, misses]| (hits + misses > 0).then(|| count(hits) / count(hits + misses)))
    }
}

impl Sub for Lookups {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self(std::array::from_fn(|of| [0, 1].map(|which| self.0[of][which] - before.0[of][which])))
    }
}

impl AddAssign for Lookups {
    fn add_assign(&mut self, more: Self) {
        *self = Self(std::array::from_fn(|of| [0, 1].map(|which| self.0[of][which] + more.0[of][which])));
    }
}

/// Counts look-ups, and hands all metrics on to another recorder, if there is one.
#[derive(Debug)]
pub(crate) struct Counting<R>(pub(crate) Option<R>);

/// A count of ours.
struct Ours(&'static AtomicU64);

impl CounterFn for Ours {
    fn increment(&self, value: u64) {
        self.0.fetch_add(value, Ordering::Relaxed);
    }

    fn absolute(&self, value: u64) {
        self.0.fetch_max(value, Ordering::Relaxed);
    }
}

/// Our counts as counters, made once: an engine asks for them with each page.
static OURS: LazyLock<[[Counter; 2]; 3]> = LazyLock::new(|| {
    COUNTS.each_ref().map(|counts| counts.each_ref().map(|count| Counter::from_arc(Arc::new(Ours(count)))))
});

/// A counter of ours and one of the other recorder.
struct Both(Counter, Counter);

impl CounterFn for Both {
    fn increment(&self, value: u64) {
        self.0.increment(value);
        self.1.increment(value);
    }

    fn absolute(&self, value: u64) {
        self.0.absolute(value);
        self.1.absolute(value);
    }
}

fn count_of(key: &Key) -> Option<Counter> {
    if key.name() != METRIC {
        return None;
    }
    let label = |name: &str| key.labels().find(|label| label.key() == name).map(metrics::Label::value);
    let cache = CACHES.iter().position(|cache| Some(*cache) == label("cache"))?;
    Some(OURS[cache][usize::from(label("outcome") == Some("miss"))].clone())
}

impl<R: Recorder> Recorder for Counting<R> {
    fn describe_counter(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.0.iter().for_each(|next| next.describe_counter(key.clone(), unit, description.clone()));
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.0.iter().for_each(|next| next.describe_gauge(key.clone(), unit, description.clone()));
    }

    fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.0.iter().for_each(|next| next.describe_histogram(key.clone(), unit, description.clone()));
    }

    fn register_counter(&self, key: &Key, metadata: &Metadata<'_>) -> Counter {
        let next = self.0.as_ref().map(|next| next.register_counter(key, metadata));
        match (count_of(key), next) {
            (Some(ours), Some(next)) => Counter::from_arc(Arc::new(Both(ours, next))),
            (ours, next) => ours.or(next).unwrap_or_else(Counter::noop),
        }
    }

    fn register_gauge(&self, key: &Key, metadata: &Metadata<'_>) -> Gauge {
        self.0.as_ref().map_or_else(Gauge::noop, |next| next.register_gauge(key, metadata))
    }

    fn register_histogram(&self, key: &Key, metadata: &Metadata<'_>) -> Histogram {
        self.0.as_ref().map_or_else(Histogram::noop, |next| next.register_histogram(key, metadata))
    }
}

#[cfg(test)]
mod tests {
    use metrics::counter;
    use metrics_exporter_prometheus::PrometheusBuilder;

    use super::*;

    #[test]
    fn lookups_are_counted_here_and_by_who_else_records() {
        let prometheus = PrometheusBuilder::new().build_recorder();
        let told = prometheus.handle();
        let lookup = |cache: &'static str, outcome: &'static str, count| {
            counter!(METRIC, "cache" => cache, "outcome" => outcome).increment(count);
        };
        let before = Lookups::so_far();
        metrics::with_local_recorder(&Counting(Some(prometheus)), || {
            lookup("posts", "hit", 3);
            lookup("outboxes", "miss", 2);
            lookup("ties", "miss", 7);
        });
        metrics::with_local_recorder(&Counting(None::<metrics::NoopRecorder>), || lookup("posts", "miss", 1));
        assert_eq!((Lookups::so_far() - before).shares(), [Some(0.75), None, Some(0.0)]);
        let page = told.render();
        assert!(
            page.contains("cache=\"posts\",outcome=\"hit\"} 3") && page.contains("cache=\"ties\""),
            "{page}"
        );
    }
}
