//! The comparison at the end: what a set holds against what was acknowledged. Pure.

use std::collections::HashMap;

use serde::Serialize;

use super::record::Known;

/// Differences that are told in full.
const EXAMPLES_MAX: usize = 10;

/// What the comparison of all sets found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Differences {
    /// Members whose state is known and was compared, those that must be absent included.
    pub(crate) compared: u64,
    /// Members that were acknowledged and are not there.
    pub(crate) missing: u64,
    /// Members that are there and should not be.
    pub(crate) extra: u64,
    /// Members with another score than was acknowledged.
    pub(crate) altered: u64,
    /// Members that were left out: a change of them failed and may still have happened.
    pub(crate) unsure: u64,
    /// The first differences, for people.
    #[serde(skip)]
    pub(crate) examples: Vec<String>,
}

impl Differences {
    /// Whether anything is wrong.
    pub(crate) fn any(&self) -> bool {
        self.missing + self.extra + self.altered > 0
    }

    /// Adds one set: `known` of its members, and what was `found` in it.
    pub(crate) fn add(&mut self, set: usize, known: &HashMap<u64, Known>, found: &HashMap<u64, f64>) {
        for (member, known) in known {
            if known.is_unsure {
                self.unsure += 1;
            } else {
                self.add_member(set, *member, known.score, found.get(member).copied());
            }
        }
        for (member, score) in found.iter().filter(|(member, _)| !known.contains_key(member)) {
            self.add_member(set, *member, None, Some(*score));
        }
    }

    fn add_member(&mut self, set: usize, member: u64, expected: Option<f64>, found: Option<f64>) {
        self.compared += 1;
        match (expected, found) {
            (expected, found) if expected == found => return,
            (Some(_), None) => self.missing += 1,
            (None, _) => self.extra += 1,
            (Some(_), Some(_)) => self.altered += 1,
        }
        if self.examples.len() < EXAMPLES_MAX {
            let tell =
                |score: Option<f64>| score.map_or("absent".to_owned(), |score| format!("score {score}"));
            let (expected, found) = (tell(expected), tell(found));
            self.examples.push(format!("set {set}, member {member}: acknowledged {expected}, found {found}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(score: Option<f64>, is_unsure: bool) -> Known {
        Known { score, is_unsure, ..Known::default() }
    }

    #[test]
    fn equal_sets_have_no_differences() {
        let mut differences = Differences::default();
        let record = HashMap::from([(1, known(Some(1.0), false)), (2, known(None, false))]);
        differences.add(0, &record, &HashMap::from([(1, 1.0)]));
        assert!(!differences.any());
        assert_eq!(differences.compared, 2);
    }

    #[test]
    fn each_difference_counts_as_what_it_is() {
        let mut differences = Differences::default();
        let record = HashMap::from([
            (1, known(Some(1.0), false)),
            (2, known(None, false)),
            (3, known(Some(3.0), false)),
            (4, known(Some(4.0), true)),
        ]);
        differences.add(0, &record, &HashMap::from([(2, 2.0), (3, 3.5), (9, 9.0)]));
        let Differences { compared, missing, extra, altered, unsure, .. } = differences;
        assert_eq!((compared, missing, extra, altered, unsure), (4, 1, 2, 1, 1));
        assert_eq!(differences.examples.len(), 4);
    }

    #[test]
    fn a_member_that_nobody_is_sure_of_is_never_a_difference() {
        let record = HashMap::from([(1, known(Some(1.0), true)), (2, known(None, true))]);
        for found in [HashMap::new(), HashMap::from([(1, 7.0), (2, 7.0)])] {
            let mut differences = Differences::default();
            differences.add(0, &record, &found);
            assert!(!differences.any());
        }
    }
}
