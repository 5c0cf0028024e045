//! Sizes by a power law, and picking by size: few accounts have most of the followers and of the traffic. Pure.

use rand::rngs::StdRng;

use crate::weighted::Weighted;

/// The account of rank r (from 1) has `largest / r^EXPONENT` followers.
const EXPONENT: f64 = 0.8;

/// The sizes of all accounts, the largest first.
#[derive(Debug, Clone)]
pub(crate) struct PowerLaw {
    sizes: Vec<u64>,
    weighted: Weighted,
}

impl PowerLaw {
    /// Every account has at least one follower.
    pub(crate) fn new(accounts: u32, largest: u32) -> Self {
        assert!(accounts > 0 && largest > 0, "somebody must be followed by somebody");
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to `largest`")]
        let size = |rank: u32| (f64::from(largest) / f64::from(rank).powf(EXPONENT)).round().max(1.0) as u64;
        let sizes: Vec<u64> = (1..=accounts).map(size).collect();
        Self { weighted: Weighted::new(sizes.iter().copied()), sizes }
    }

    /// The sizes, the largest first.
    pub(crate) fn sizes(&self) -> &[u64] {
        &self.sizes
    }

    /// All sizes together.
    pub(crate) fn total(&self) -> u64 {
        self.weighted.total()
    }

    /// An account, the likelier the larger it is.
    pub(crate) fn pick(&self, random: &mut StdRng) -> usize {
        self.weighted.pick(random)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng as _;

    #[test]
    fn sizes_fall_from_the_largest_and_never_to_nothing() {
        let law = PowerLaw::new(10_000, 2_000);
        assert_eq!(law.sizes()[0], 2_000);
        assert_eq!(law.sizes()[31], 125);
        assert!(law.sizes().is_sorted_by(|a, b| a >= b));
        assert_eq!(law.sizes()[9_999], 1);
        assert_eq!(law.total(), law.sizes().iter().sum::<u64>());
    }

    #[test]
    fn accounts_are_picked_by_their_size() {
        let law = PowerLaw::new(50, 1_000);
        let mut random = StdRng::seed_from_u64(1);
        let mut picked = vec![0_u64; 50];
        for _ in 0..100_000 {
            picked[law.pick(&mut random)] += 1;
        }
        for (count, size) in picked.iter().zip(law.sizes()) {
            let expected = 100_000 * size / law.total();
            assert!(count.abs_diff(expected) < expected / 4, "{count} instead of {expected}");
        }
    }
}
