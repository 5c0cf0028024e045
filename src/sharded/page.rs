//! Pages by score: ranges, cursors, and the k-way merge of many pieces into one page. Pure.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::ops::Bound;

use crate::error::{Error, Result};

/// Longest page.
pub const PAGE_MAX: usize = 1_000;

/// In which direction a page runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Lowest score first; equal scores by member.
    #[default]
    Ascending,
    /// Highest score first; equal scores by member, from the highest.
    Descending,
}

/// Scores from one bound to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoreRange {
    /// Lower bound.
    pub min: Bound<f64>,
    /// Upper bound.
    pub max: Bound<f64>,
}

impl Default for ScoreRange {
    fn default() -> Self {
        Self { min: Bound::Unbounded, max: Bound::Unbounded }
    }
}

impl<R: std::ops::RangeBounds<f64>> From<R> for ScoreRange {
    fn from(range: R) -> Self {
        Self { min: range.start_bound().cloned(), max: range.end_bound().cloned() }
    }
}

impl ScoreRange {
    pub(crate) fn check(&self) -> Result<()> {
        let value = |bound: &Bound<f64>| match bound {
            Bound::Included(score) | Bound::Excluded(score) => Some(*score),
            Bound::Unbounded => None,
        };
        let (min, max) = (value(&self.min), value(&self.max));
        if min.is_some_and(f64::is_nan) || max.is_some_and(f64::is_nan) {
            return Err(Error::invalid("a range of scores ends at NaN: give a number"));
        }
        match (min, max) {
            (Some(min), Some(max)) if min > max => {
                Err(Error::invalid(format!("the range of scores is reversed: from {min} to {max}")))
            }
            _ => Ok(()),
        }
    }

    /// The bounds as Redis spells them.
    pub(crate) fn spelled(&self) -> (String, String) {
        let spell = |bound: &Bound<f64>, unbounded: &str| match bound {
            Bound::Included(score) => format!("{score:e}"),
            Bound::Excluded(score) => format!("({score:e}"),
            Bound::Unbounded => unbounded.into(),
        };
        (spell(&self.min, "-inf"), spell(&self.max, "+inf"))
    }

    /// The part of it that a page after `score` can still hold; members with the same score may follow.
    pub(crate) fn after(mut self, score: f64, order: Order) -> Self {
        let tighter = |bound: Bound<f64>, beyond: fn(f64, f64) -> bool| match bound {
            Bound::Included(b) | Bound::Excluded(b) if beyond(b, score) => bound,
            Bound::Excluded(b) if b.total_cmp(&score).is_eq() => bound,
            _ => Bound::Included(score),
        };
        match order {
            Order::Ascending => self.min = tighter(self.min, |b, s| b > s),
            Order::Descending => self.max = tighter(self.max, |b, s| b < s),
        }
        self
    }
}

/// A member in stored form with its score; orders as Redis does: by score, then by bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoredMember {
    /// Its score.
    pub score: f64,
    /// Its bytes.
    pub member: Vec<u8>,
}

impl ScoredMember {
    pub(crate) fn compare(&self, other: &Self, order: Order) -> Ordering {
        let ascending = self.score.total_cmp(&other.score).then_with(|| self.member.cmp(&other.member));
        if order == Order::Ascending { ascending } else { ascending.reverse() }
    }
}

/// A piece's answer: its first entries in page order, and whether there may be more behind them.
#[derive(Debug, Clone, Default)]
pub struct PieceRead {
    /// In page order.
    pub entries: Vec<ScoredMember>,
    /// Whether these are all.
    pub is_complete: bool,
}

/// A page, or which sources must be read deeper before it can be told.
#[derive(Debug, PartialEq)]
pub enum MergeOutcome {
    /// The page.
    Page(Vec<ScoredMember>),
    /// Sources to be read deeper.
    Deepen(Vec<usize>),
}

/// Merges sources into the first `limit` entries behind `after`.
///
/// An incomplete source answers only for what comes up to its last entry; what lies beyond the nearest such bound
/// is not known yet.
pub fn merge(
    sources: &[PieceRead],
    after: Option<&ScoredMember>,
    limit: usize,
    order: Order,
) -> MergeOutcome {
    let is_before = |a: &ScoredMember, b: &ScoredMember| a.compare(b, order) == Ordering::Less;
    let mut bound: Option<&ScoredMember> = None;
    for source in sources.iter().filter(|s| !s.is_complete) {
        match source.entries.last() {
            Some(last) => bound = Some(bound.filter(|b| is_before(b, last)).unwrap_or(last)),
            // Nothing read yet: nothing can be told.
            None => return MergeOutcome::Deepen(unread(sources)),
        }
    }
    let mut heads = BinaryHeap::with_capacity(sources.len());
    let head = |source: usize, at: usize| {
        sources[source].entries.get(at).map(|entry| Reverse(PieceHead { entry, source, at, order }))
    };
    for (i, source) in sources.iter().enumerate() {
        let first = after.map_or(0, |after| source.entries.partition_point(|e| !is_before(after, e)));
        heads.extend(head(i, first));
    }
    let mut page = Vec::with_capacity(limit);
    while page.len() < limit {
        let Some(Reverse(next)) = heads.pop() else { break };
        if bound.is_some_and(|b| is_before(b, next.entry)) {
            break;
        }
        page.push(next.entry.clone());
        heads.extend(head(next.source, next.at + 1));
    }
    match bound {
        Some(bound) if page.len() < limit => {
            let blocks = |s: &PieceRead| !s.is_complete && s.entries.last() == Some(bound);
            MergeOutcome::Deepen((0..sources.len()).filter(|i| blocks(&sources[*i])).collect())
        }
        _ => MergeOutcome::Page(page),
    }
}

fn unread(sources: &[PieceRead]) -> Vec<usize> {
    (0..sources.len()).filter(|i| !sources[*i].is_complete && sources[*i].entries.is_empty()).collect()
}

struct PieceHead<'a> {
    entry: &'a ScoredMember,
    source: usize,
    at: usize,
    order: Order,
}

impl Ord for PieceHead<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.entry.compare(other.entry, self.order).then(self.source.cmp(&other.source))
    }
}

impl PartialOrd for PieceHead<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PieceHead<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for PieceHead<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn order() -> impl Strategy<Value = Order> {
        prop_oneof![Just(Order::Ascending), Just(Order::Descending)]
    }

    /// Few scores, so that ties are common.
    fn pieces() -> impl Strategy<Value = Vec<Vec<ScoredMember>>> {
        let scored = (0u8..6, any::<u16>())
            .prop_map(|(s, m)| ScoredMember { score: f64::from(s), member: m.to_be_bytes().into() });
        proptest::collection::vec(proptest::collection::vec(scored, 0..20), 1..6)
    }

    proptest! {
        #[test]
        fn a_page_is_what_sorting_everything_gives(
            mut pieces in pieces(), order in order(), limit in 1usize..30,
            after in proptest::option::of((0u8..6, any::<u16>()))
        ) {
            pieces.iter_mut().for_each(|p| p.sort_by(|a, b| a.compare(b, order)));
            let after = after.map(|(s, m)| ScoredMember { score: f64::from(s), member: m.to_be_bytes().into() });
            let mut wanted: Vec<ScoredMember> = pieces.concat();
            wanted.sort_by(|a, b| a.compare(b, order));
            wanted.retain(|e| after.as_ref().is_none_or(|a| a.compare(e, order) == Ordering::Less));
            wanted.truncate(limit);
            // Read two entries of each at first, and deepen what the merge asks for.
            let mut depth = vec![2; pieces.len()];
            let page = loop {
                let sources: Vec<PieceRead> = pieces.iter().zip(&depth).map(|(p, d)| PieceRead {
                    entries: p.iter().take(*d).cloned().collect(), is_complete: p.len() < *d,
                }).collect();
                match merge(&sources, after.as_ref(), limit, order) {
                    MergeOutcome::Page(page) => break page,
                    MergeOutcome::Deepen(which) => {
                        prop_assert!(!which.is_empty());
                        which.into_iter().for_each(|i| depth[i] *= 2);
                    }
                }
            };
            prop_assert_eq!(page, wanted);
        }

        #[test]
        fn a_tightened_range_keeps_what_may_follow(
            min in proptest::option::of(-3i8..3), max in proptest::option::of(-3i8..3),
            cursor in -3i8..3, score in -3i8..3,
            order in order()
        ) {
            let bound = |b: Option<i8>| b.map_or(Bound::Unbounded, |b| Bound::Included(f64::from(b)));
            let range = ScoreRange { min: bound(min), max: bound(max) };
            let holds = |r: &ScoreRange, s: i8| {
                std::ops::RangeBounds::contains(&(r.min, r.max), &f64::from(s))
            };
            let follows = if order == Order::Ascending { score >= cursor } else { score <= cursor };
            let tight = range.after(f64::from(cursor), order);
            prop_assert_eq!(holds(&tight, score), holds(&range, score) && follows);
        }
    }

    #[test]
    fn refuses_reversed_ranges_and_nan() {
        assert!(ScoreRange::from(2.0..1.0).check().is_err());
        assert!(ScoreRange::from(f64::NAN..).check().is_err());
        assert!(ScoreRange::from(1.0..=1.0).check().is_ok());
        assert_eq!(ScoreRange::from(1.5..).spelled(), ("1.5e0".into(), "+inf".into()));
    }
}
