//! When operations are due: the schedule of an open loop, random as independent users are. Pure.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// Points in time from 0 to an end, in order, with exponential gaps (a Poisson process).
#[derive(Debug)]
pub(crate) struct Arrivals {
    random: StdRng,
    gap_s: f64,
    at_s: f64,
    end_s: f64,
}

impl Arrivals {
    /// `rate` a second on average, for `seconds`. The same seed gives the same points.
    pub(crate) fn new(rate: u32, seconds: u32, seed: u64) -> Self {
        assert!(rate > 0, "nothing would ever be due");
        Self {
            random: StdRng::seed_from_u64(seed),
            gap_s: 1.0 / f64::from(rate),
            at_s: 0.0,
            end_s: seconds.into(),
        }
    }
}

impl Iterator for Arrivals {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        // From above 0 to 1, so that the logarithm is finite.
        let uniform = 1.0 - self.random.random::<f64>();
        self.at_s -= uniform.ln() * self.gap_s;
        (self.at_s < self.end_s).then(|| Duration::from_secs_f64(self.at_s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_schedule() {
        let schedule = |seed| Arrivals::new(100, 3, seed).collect::<Vec<_>>();
        assert_eq!(schedule(7), schedule(7));
        assert_ne!(schedule(7), schedule(8));
    }

    #[test]
    fn arrivals_are_in_order_in_time_and_about_as_many_as_asked_for() {
        let points: Vec<Duration> = Arrivals::new(1_000, 20, 1).collect();
        assert!(points.is_sorted());
        assert!(*points.last().unwrap() < Duration::from_secs(20));
        // Ten standard deviations of a Poisson count of 20,000.
        assert!((18_600..=21_400).contains(&points.len()), "{}", points.len());
    }

    #[test]
    fn gaps_are_exponential_so_bursts_happen() {
        let points: Vec<Duration> = Arrivals::new(1_000, 20, 2).collect();
        let gaps = points.windows(2).map(|pair| pair[1] - pair[0]);
        let short = gaps.filter(|gap| *gap < Duration::from_micros(100)).count();
        // 1 - e^-0.1 of all gaps are below a tenth of their mean.
        assert!((8..=11).contains(&(short * 100 / points.len())), "{short} of {}", points.len());
    }
}
