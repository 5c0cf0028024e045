//! When the deliveries of one post were acknowledged.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Written to by a system while it delivers. Systems that send batches note whole batches.
#[derive(Debug)]
pub(crate) struct Deliveries {
    began: Instant,
    counts: Mutex<Vec<(Duration, u64)>>,
}

impl Deliveries {
    /// Starts the clock.
    pub(crate) fn begin() -> Self {
        Self { began: Instant::now(), counts: Mutex::default() }
    }

    /// So many deliveries have just been acknowledged.
    pub(crate) fn note(&self, count: u64) {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).push((self.began.elapsed(), count));
    }

    /// Stops the clock.
    pub(crate) fn end(self) -> Delivered {
        let wall = self.began.elapsed();
        let mut counts = self.counts.into_inner().unwrap_or_else(PoisonError::into_inner);
        counts.sort_unstable();
        Delivered { count: counts.iter().map(|(_, count)| count).sum(), times: times(&counts, wall) }
    }
}

/// What became of one post.
#[derive(Debug, Clone)]
pub(crate) struct Delivered {
    pub(crate) count: u64,
    pub(crate) times: Times,
}

/// Seconds from the moment of posting until the first, half, 99 % and the last of the deliveries were acknowledged, and
/// until the system had nothing more to do for the post.
pub(crate) type Times = [f64; 5];

/// `counts` are sorted by time.
fn times(counts: &[(Duration, u64)], wall: Duration) -> Times {
    let all: u64 = counts.iter().map(|(_, count)| count).sum();
    let reached = |wanted: u64| {
        let mut delivered = 0;
        let mut at = counts.iter().filter_map(|(at, count)| {
            delivered += count;
            (delivered >= wanted).then_some(*at)
        });
        at.next().unwrap_or(wall).as_secs_f64()
    };
    let [first, half, percent_99, last] =
        [1, all.div_ceil(2), (all * 99).div_ceil(100), all].map(|n| reached(n.max(1)));
    [first, half, percent_99, last, wall.as_secs_f64()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_counts_from_when_all_of_it_was_acknowledged() {
        let ms = Duration::from_millis;
        let times = times(&[(ms(10), 0), (ms(20), 50), (ms(30), 48), (ms(40), 2)], ms(45));
        assert_eq!(times, [20, 20, 40, 40, 45].map(|wanted| ms(wanted).as_secs_f64()));
    }

    #[test]
    fn a_post_without_followers_ends_as_a_whole() {
        let delivered = Deliveries::begin().end();
        assert_eq!(delivered.count, 0);
        let [first, .., wall] = delivered.times;
        assert!((first - wall).abs() < f64::EPSILON);
    }
}
