//! Which of pushing all and pulling all is the cheaper one, while more and more accounts read. Pure.

use std::fmt;

use serde::Serialize;

use crate::stats::Estimate;

/// What whole intervals tell of it, over all shares.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Cheaper {
    /// One of both wasn't measured, or CPU time is unknown.
    NotMeasured,
    /// At each share it is the cheaper one, or both cost about the same.
    Push,
    /// The same.
    Pull,
    /// Pulling where fewer read, pushing where more do.
    PullThenPush(Crossing),
    /// Both cost about the same at all shares, as far as so many rounds tell.
    Open,
    /// Pulling is cheaper at a share above one where pushing is.
    ToAndFro,
}

/// Where pushing becomes cheaper, in percent of accounts that read.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Crossing {
    /// Up to here pulling is cheaper for sure.
    pub(super) from_percent: f64,
    /// From here on pushing is.
    pub(super) to_percent: f64,
    /// Where medians cross.
    pub(super) percent: f64,
}

/// What pushing all costs in what pulling all does, at one share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ratio {
    pub(super) percent: f64,
    /// Nothing: of too few rounds to say which is the cheaper one.
    pub(super) sure: Option<Estimate>,
    pub(super) median: f64,
}

impl Ratio {
    fn pushing_is_cheaper(&self) -> bool {
        self.sure.is_some_and(|ratio| ratio.high < 1.0)
    }

    fn pulling_is_cheaper(&self) -> bool {
        self.sure.is_some_and(|ratio| ratio.low > 1.0)
    }
}

impl Cheaper {
    /// Of shares in ascending order.
    pub(super) fn of(ratios: &[Ratio]) -> Self {
        if ratios.is_empty() {
            return Self::NotMeasured;
        }
        let last_pull = ratios.iter().rposition(Ratio::pulling_is_cheaper);
        let first_push = ratios.iter().position(Ratio::pushing_is_cheaper);
        match (last_pull, first_push) {
            (None, None) => Self::Open,
            (None, Some(_)) => Self::Push,
            (Some(_), None) => Self::Pull,
            (Some(pull), Some(push)) if pull < push => {
                Self::PullThenPush(Crossing::within(&ratios[pull..=push]))
            }
            _ => Self::ToAndFro,
        }
    }

    pub(super) fn percent(self) -> Option<f64> {
        match self {
            Self::PullThenPush(crossing) => Some(crossing.percent),
            _ => None,
        }
    }
}

impl Crossing {
    /// Of shares at the first of which pulling is cheaper, at the last pushing.
    fn within(ratios: &[Ratio]) -> Self {
        let (first, last) = (ratios[0], ratios[ratios.len() - 1]);
        let percent = ratios.windows(2).find_map(|pair| {
            let (a, b) = (pair[0].median.ln(), pair[1].median.ln());
            let share = a / (a - b);
            (a > 0.0 && b <= 0.0).then(|| pair[0].percent + (pair[1].percent - pair[0].percent) * share)
        });
        Self {
            from_percent: first.percent,
            to_percent: last.percent,
            percent: percent.unwrap_or(last.percent),
        }
    }
}

impl fmt::Display for Cheaper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotMeasured => f.write_str(
                "Where pushing all becomes cheaper than pulling all was not measured: push_only and pull_only have to \
                 be, and CPU time has to be known.",
            ),
            Self::Push => f.write_str("Pushing all is cheaper than pulling all at these shares, or costs about the \
                                       same."),
            Self::Pull => f.write_str("Pulling all is cheaper than pushing all at these shares, or costs about the \
                                       same."),
            Self::PullThenPush(Crossing { from_percent, to_percent, percent }) => write!(
                f,
                "Pushing all becomes cheaper than pulling all where {percent:.0} % read: pulling is at {from_percent} \
                 %, pushing at {to_percent} %."
            ),
            Self::Open => {
                f.write_str("Which of pushing all and pulling all is cheaper is inconclusive at every share.")
            }
            Self::ToAndFro => f.write_str(
                "Which of pushing all and pulling all is cheaper changes to and fro over these shares: no crossing is \
                 told.",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At shares of 1, 10, 30, 50 %: the median, and how far the interval goes to both sides.
    fn cheaper(ratios: &[(f64, f64)]) -> Cheaper {
        let at = |((median, off), percent): (&(f64, f64), f64)| {
            let sure = Some(Estimate { median: *median, low: median - off, high: median + off });
            Ratio { percent, sure, median: *median }
        };
        Cheaper::of(&ratios.iter().zip([1.0, 10.0, 30.0, 50.0]).map(at).collect::<Vec<_>>())
    }

    #[test]
    fn a_crossing_lies_between_where_pulling_is_cheaper_and_where_pushing_is() {
        let (up, down) = (0.2_f64.exp(), (-0.2_f64).exp());
        let crossing = |told: Cheaper| match told {
            Cheaper::PullThenPush(Crossing { from_percent, to_percent, percent }) => {
                [from_percent, to_percent, percent.round()]
            }
            told => panic!("{told:?}"),
        };
        assert_eq!(crossing(cheaper(&[(2.0, 0.1), (up, 0.1), (down, 0.1)])), [10.0, 30.0, 20.0]);
        // What is between may be either.
        assert_eq!(crossing(cheaper(&[(2.0, 0.1), (up, 0.9), (down, 0.9), (0.5, 0.1)])), [1.0, 50.0, 20.0]);
    }

    /// "Neither becomes the cheaper one" was said where pushing was so everywhere, and where one of both wasn't
    /// measured; and noise that
    /// went the other way was told as a crossing.
    #[test]
    fn whoever_is_cheaper_everywhere_is_named_and_noise_is_no_crossing() {
        assert_eq!(cheaper(&[(0.5, 0.1), (0.7, 0.1)]), Cheaper::Push);
        assert_eq!(cheaper(&[(2.0, 0.1), (0.95, 0.1)]), Cheaper::Pull);
        assert_eq!(cheaper(&[(0.95, 0.1), (1.05, 0.1), (0.95, 0.1)]), Cheaper::Open);
        assert_eq!(cheaper(&[(0.5, 0.1), (2.0, 0.1)]), Cheaper::ToAndFro);
        assert_eq!(cheaper(&[]), Cheaper::NotMeasured);
        let few = |percent, median| Ratio { percent, sure: None, median };
        assert_eq!(Cheaper::of(&[few(1.0, 2.0), few(10.0, 0.5)]), Cheaper::Open);
    }
}
