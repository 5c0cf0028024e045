//! Medians, spreads and intervals. Pure.

use serde::Serialize;

/// A count as a number to reckon with.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
pub(crate) fn count(n: u64) -> f64 {
    n as f64
}

/// The nearest whole number; 0 of what is below it, or is no number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it ends at the bounds of a u64")]
pub(crate) fn whole(value: f64) -> u64 {
    value.round() as u64
}

/// How sure an interval is to hold what it is for.
const CONFIDENCE: f64 = 0.95;

/// Of fewer rounds no interval holds the median with that confidence.
pub(crate) const SURE_FROM: usize = 6;

/// The value in the middle (the mean of both, if there are two); nothing of nothing.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = *sorted.get((sorted.len() - 1) / 2)?;
    Some(f64::midpoint(lower, upper))
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The lowest and the highest value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) lowest: f64,
    pub(crate) highest: f64,
}

impl Spread {
    /// Nothing of nothing.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let lowest = values.iter().copied().min_by(f64::total_cmp)?;
        let highest = values.iter().copied().max_by(f64::total_cmp)?;
        Some(Self { lowest, highest })
    }
}

/// A median, and the interval in which it lies with 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Estimate {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Estimate {
    /// From order statistics, which assume nothing of how values are distributed: the narrowest pair of values, equally
    /// far from both ends, that hold the median between them often enough. Of fewer than six values: the outermost
    /// ones.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let sorted = sorted(values);
        let from_end = places_outside(sorted.len());
        let (low, high) = (*sorted.get(from_end)?, *sorted.get(sorted.len() - 1 - from_end)?);
        Some(Self { median: median(values)?, low, high })
    }

    /// With its interval in brackets.
    pub(crate) fn told(&self, digits: usize) -> String {
        let Self { median, low, high } = self;
        format!("{median:.digits$} ({low:.digits$}-{high:.digits$})")
    }

    /// For each of so many.
    pub(crate) fn by(self, count: f64) -> Self {
        Self { median: self.median / count, low: self.low / count, high: self.high / count }
    }
}

/// How many of the outermost values on each side may be left out: as many heads of so many throws of a coin are not
/// seen in more than 2.5 % of all cases.
fn places_outside(values: usize) -> usize {
    let throws = i32::try_from(values).unwrap_or(i32::MAX);
    let (mut chance, mut sum, mut heads) = (0.5_f64.powi(throws), 0.0, 0);
    while heads < throws / 2 {
        sum += chance;
        if sum > (1.0 - CONFIDENCE) / 2.0 {
            break;
        }
        chance *= f64::from(throws - heads) / f64::from(heads + 1);
        heads += 1;
    }
    usize::try_from(heads - 1).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_an_even_number_lies_between_two() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn a_spread_goes_from_the_lowest_to_the_highest() {
        assert_eq!(Spread::of(&[2.0, 5.0, 1.0]), Some(Spread { lowest: 1.0, highest: 5.0 }));
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn intervals_leave_out_what_tables_of_order_statistics_say() {
        // Of n values the k-th from both ends: the usual table for 95 %, whose k counts from 1.
        for (values, k) in [(6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (15, 4), (20, 6), (30, 10), (50, 18)] {
            assert_eq!(places_outside(values), k - 1, "{values}");
        }
        assert_eq!((places_outside(1), places_outside(5)), (0, 0));
    }

    #[test]
    fn an_interval_is_about_the_median() {
        let values: Vec<f64> = (1..=9).map(f64::from).rev().collect();
        assert_eq!(Estimate::of(&values), Some(Estimate { median: 5.0, low: 2.0, high: 8.0 }));
        assert_eq!(Estimate::of(&[7.0]), Some(Estimate { median: 7.0, low: 7.0, high: 7.0 }));
        assert_eq!(Estimate::of(&[]), None);
    }
}
