//! Picking by weight. Pure.

use rand::RngExt as _;
use rand::rngs::StdRng;

/// Things numbered from 0, each as likely to be picked as its weight says.
#[derive(Debug, Clone)]
pub(crate) struct Weighted {
    /// Sums of the weights up to and with this one.
    sums: Vec<u64>,
}

impl Weighted {
    /// The sum of all weights must not be 0.
    pub(crate) fn new(weights: impl IntoIterator<Item = u64>) -> Self {
        let sums = weights.into_iter().scan(0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        });
        let weighted = Self { sums: sums.collect() };
        assert!(weighted.total() > 0, "nothing could be picked");
        weighted
    }

    /// All weights together.
    pub(crate) fn total(&self) -> u64 {
        self.sums.last().copied().unwrap_or(0)
    }

    /// Picks one.
    pub(crate) fn pick(&self, random: &mut StdRng) -> usize {
        let point = random.random_range(0..self.total());
        self.sums.partition_point(|sum| *sum <= point)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng as _;

    #[test]
    fn things_are_picked_by_their_weight_and_what_weighs_nothing_never() {
        let weights = [5, 0, 1, 14];
        let weighted = Weighted::new(weights);
        let mut random = StdRng::seed_from_u64(1);
        let mut picked = [0_u64; 4];
        for _ in 0..100_000 {
            picked[weighted.pick(&mut random)] += 1;
        }
        for (count, weight) in picked.iter().zip(weights) {
            assert!(count.abs_diff(weight * 5_000) <= weight * 300, "{picked:?}");
        }
    }
}
