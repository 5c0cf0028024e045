//! How many an account follows, or is followed by: distributions with bounds. Pure.

use serde::{Deserialize, Serialize};

/// Halvings until the smallest value that gives a mean is found.
const HALVINGS: u32 = 60;

/// A distribution of degrees.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Degree {
    /// Each from `least` to `most` is as likely.
    Uniform { least: f64, most: f64 },
    /// The share of x falls as x^-exponent, from `least` to `most`.
    Power { exponent: f64, least: f64, most: f64 },
}

impl Degree {
    /// The power law with that mean, as far as its bounds allow one: from 0.01 to `most`.
    pub(crate) fn power_of_mean(exponent: f64, mean: f64, most: f64) -> Self {
        let law = |least: f64| Self::Power { exponent, least, most };
        let (mut low, mut high) = (0.01_f64.min(most), most);
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high);
            if law(middle).mean() < mean {
                low = middle;
            } else {
                high = middle;
            }
        }
        law(high)
    }

    /// A law of the same mean of which none of so many accounts has more than this, as far as its kind allows one: the
    /// tail of a power law ends there.
    pub(crate) fn up_to(self, accounts: usize, most: f64) -> Self {
        let is_within = self.ranked(accounts).next().is_none_or(|largest| largest <= most);
        match self {
            Self::Power { exponent, .. } if !is_within => Self::power_of_mean(exponent, self.mean(), most),
            _ => self,
        }
    }

    pub(crate) fn mean(&self) -> f64 {
        match *self {
            Self::Uniform { least, most } => f64::midpoint(least, most),
            Self::Power { exponent, least, most } if most > least => {
                let moment = |power: f64| integral(power - exponent, least, most);
                moment(1.0) / moment(0.0)
            }
            Self::Power { least, .. } => least,
        }
    }

    /// The value below which that share lies, from 0 to 1.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        match *self {
            Self::Uniform { least, most } => least + (most - least) * share,
            Self::Power { exponent, least, most } if (exponent - 1.0).abs() < 1e-9 => {
                least * (most / least).powf(share)
            }
            Self::Power { exponent, least, most } => {
                let power = 1.0 - exponent;
                let (from, to) = (least.powf(power), most.powf(power));
                (from + (to - from) * share).powf(1.0 / power)
            }
        }
    }

    /// Of those whose share lies between these two.
    pub(crate) fn between(&self, from: f64, to: f64) -> Self {
        let (low, high) = (self.quantile(from), self.quantile(to));
        match *self {
            Self::Uniform { .. } => Self::Uniform { least: low, most: high },
            Self::Power { exponent, .. } => Self::Power { exponent, least: low, most: high },
        }
    }

    /// One value for each account, the largest first, and spread as evenly over the distribution as can be: chance
    /// would make each graph's largest account another one.
    pub(crate) fn ranked(&self, accounts: usize) -> impl Iterator<Item = f64> + use<> {
        #[expect(clippy::cast_precision_loss, reason = "accounts are far below 2^53")]
        let (law, all) = (*self, accounts as f64);
        #[expect(clippy::cast_precision_loss, reason = "accounts are far below 2^53")]
        let share = move |rank: usize| 1.0 - (rank as f64 + 0.5) / all;
        (0..accounts).map(move |rank| law.quantile(share(rank)))
    }

    /// The first rule that its numbers break.
    pub(crate) fn broken_rule(&self) -> Option<&'static str> {
        let (Self::Uniform { least, most } | Self::Power { least, most, .. }) = *self;
        if !(least.is_finite() && most.is_finite() && least >= 0.0 && most >= least) {
            return Some("least must not be below 0, nor above most");
        }
        match *self {
            Self::Power { least, .. } if least <= 0.0 => Some("a power law's least must be above 0"),
            Self::Power { exponent, .. } if !(0.1..=10.0).contains(&exponent) => {
                Some("an exponent must be 0.1 to 10")
            }
            _ => None,
        }
    }
}

/// Of x^power, from `least` to `most`.
fn integral(power: f64, least: f64, most: f64) -> f64 {
    if (power + 1.0).abs() < 1e-9 {
        return (most / least).ln();
    }
    (most.powf(power + 1.0) - least.powf(power + 1.0)) / (power + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_law_is_found_for_each_mean_that_is_possible() {
        for (exponent, mean) in [(2.05, 35.0), (2.67, 35.0), (1.0, 600.0), (2.0, 5.0), (3.5, 500.0)] {
            let law = Degree::power_of_mean(exponent, mean, 5_000.0);
            assert!((law.mean() / mean - 1.0).abs() < 1e-6, "{law:?}: {}", law.mean());
        }
    }

    #[test]
    fn ranked_values_have_the_mean_and_the_tail_of_their_law() {
        let law = Degree::power_of_mean(2.05, 35.0, 10_000.0);
        let values: Vec<f64> = law.ranked(100_000).collect();
        assert!(values.is_sorted_by(|a, b| a >= b));
        let mean = values.iter().sum::<f64>() / 1e5;
        assert!((mean / 35.0 - 1.0).abs() < 0.02, "{mean}");
        // Ten times as large is 10^1.05 times as seldom, far from the bound.
        let above =
            |limit: f64| f64::from(u32::try_from(values.iter().filter(|v| **v > limit).count()).unwrap());
        let fall = above(50.0) / above(500.0);
        assert!((fall / 10_f64.powf(1.05) - 1.0).abs() < 0.1, "{fall}");
    }

    #[test]
    fn a_tail_that_goes_too_far_ends_there_and_the_mean_stays() {
        let law = Degree::power_of_mean(2.05, 35.0, 90_000.0);
        assert_eq!(law.up_to(1_000, 19_000.0), law, "none of so few is there");
        let bounded = law.up_to(1_000_000, 19_000.0);
        assert!(bounded.ranked(1_000_000).all(|value| value <= 19_000.0));
        assert!((bounded.mean() / law.mean() - 1.0).abs() < 1e-6, "{bounded:?}");
    }

    #[test]
    fn a_uniform_one_lies_between_its_ends() {
        let law = Degree::Uniform { least: 20.0, most: 200.0 };
        assert!((law.mean() - 110.0).abs() < 1e-9);
        let values: Vec<f64> = law.ranked(1_000).collect();
        assert!(values[0] > 199.0 && values[0] <= 200.0 && values[999] >= 20.0 && values[999] < 21.0);
    }

    #[test]
    fn what_cannot_be_drawn_from_is_refused() {
        let refused = [
            Degree::Uniform { least: 5.0, most: 4.0 },
            Degree::Power { exponent: 2.0, least: 0.0, most: 4.0 },
            Degree::Power { exponent: 0.0, least: 1.0, most: 4.0 },
            Degree::Uniform { least: f64::NAN, most: 4.0 },
        ];
        for law in refused {
            assert!(law.broken_rule().is_some(), "{law:?}");
        }
        assert_eq!(Degree::power_of_mean(2.0, 10.0, 100.0).broken_rule(), None);
    }
}
