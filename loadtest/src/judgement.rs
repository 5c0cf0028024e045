//! What an interval tells of a claim that a ratio keeps below a limit: one rule for all commands. Pure.

use serde::Serialize;

use crate::stats::{Estimate, SURE_FROM};

/// What can be said of such a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Judgement {
    /// The whole interval is above the limit.
    Worse,
    /// The whole interval is at the limit or below.
    NotWorse,
    /// The limit lies within the interval: more rounds make it narrower.
    Open,
    /// Of so few rounds no interval is sure enough.
    TooFewRounds,
}

impl Judgement {
    /// Of a ratio, which is from so many rounds.
    pub(crate) fn of(ratio: &Estimate, limit: f64, rounds: usize) -> Self {
        match ratio {
            _ if rounds < SURE_FROM => Self::TooFewRounds,
            Estimate { low, .. } if *low > limit => Self::Worse,
            Estimate { high, .. } if *high <= limit => Self::NotWorse,
            _ => Self::Open,
        }
    }
}

impl Judgement {
    /// What is said of an interval that decides nothing.
    pub(crate) fn unsure(self, rounds: usize) -> String {
        match self {
            Self::TooFewRounds => format!("{rounds} rounds are too few to judge"),
            _ => format!("inconclusive after {rounds} rounds"),
        }
    }
}

/// What is said where nothing can be judged for want of rounds.
pub(crate) fn too_few(what: &str, rounds: usize) -> String {
    format!("{what} could not be judged in {rounds} rounds: {SURE_FROM} are needed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_interval_decides_and_only_of_enough_rounds() {
        let of = |low: f64, high: f64, rounds| {
            let ratio = Estimate { median: f64::midpoint(low, high), low, high };
            Judgement::of(&ratio, 1.05, rounds)
        };
        assert_eq!(of(1.06, 1.2, 6), Judgement::Worse);
        assert_eq!(of(0.9, 1.05, 6), Judgement::NotWorse);
        assert_eq!([of(1.05, 1.2, 6), of(0.8, 1.3, 6)], [Judgement::Open; 2]);
        assert_eq!([of(1.06, 1.2, 5), of(0.9, 1.0, 5)], [Judgement::TooFewRounds; 2]);
    }
}
