//! Medians and spreads. Pure.

use serde::Serialize;

/// The value in the middle (the mean of both, if there are two); nothing of nothing.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = *sorted.get((sorted.len() - 1) / 2)?;
    Some(f64::midpoint(lower, upper))
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
}
