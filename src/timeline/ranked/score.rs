//! The importance of a post to a reader, and the order in which posts of that importance stand. Pure: no I/O, no clock.

use std::time::Duration;

use crate::ids::AccountId;
use crate::post::Post;

/// Most terms of a score.
pub const SCORE_TERMS_MAX: usize = 6;
/// Posts of one author that stand one behind the other at most, while there are others.
pub(super) const IN_A_ROW_MAX: usize = 2;

/// The facts that a scorer decides by.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ScoreFacts<'a> {
    /// The reader.
    pub reader: AccountId,
    /// The post, as it stands on the page.
    pub post: &'a Post,
    /// What a plain repost passes on.
    pub original: Option<&'a Post>,
    /// How long it has been there when its window was scored.
    pub age: Duration,
    /// Likes of what it shows: of a plain repost, of its original. So are the next two.
    pub likes: u32,
    /// Reposts, and quotes.
    pub reposts: u32,
    /// Replies.
    pub replies: u32,
    /// How often the reader has acted on posts of its author, or of the author of what it passes on, whichever is more:
    /// liked, bookmarked, reposted, answered them. One on a post of today counts one, one on a post of two weeks ago
    /// half as much, and so on.
    pub affinity: f64,
}

/// A scorer of your own: how important a post is to a reader.
///
/// A page by importance calls it for each of the newest 120 posts of the timeline, so it should decide from what it is
/// given, and must not block. It need not say the same of a post twice: what a scroll shows doesn't depend on it.
pub trait PostScorer: std::fmt::Debug + Send + Sync {
    /// The importance of this post.
    fn score(&self, facts: &ScoreFacts<'_>) -> Score;
}

/// A score: the sum of terms, each with a name that says what it is for.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Score {
    terms: [(&'static str, f64); SCORE_TERMS_MAX],
    len: usize,
}

impl Score {
    /// Sums terms up: at most [`SCORE_TERMS_MAX`] of them.
    pub fn of<const N: usize>(terms: [(&'static str, f64); N]) -> Self {
        const { assert!(N <= SCORE_TERMS_MAX, "a score has at most 6 terms") };
        let mut score = Self { len: N, ..Self::default() };
        score.terms[..N].copy_from_slice(&terms);
        score
    }

    /// The terms, in the scorer's order.
    pub fn terms(&self) -> &[(&'static str, f64)] {
        &self.terms[..self.len]
    }

    /// The sum of the terms. What is no number is less than everything.
    pub fn total(&self) -> f64 {
        let total: f64 = self.terms().iter().map(|(_, term)| term).sum();
        if total.is_nan() { f64::NEG_INFINITY } else { total }
    }
}

impl serde::Serialize for Score {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.terms().iter().copied())
    }
}

/// The scorer that is used where a service brings none of its own: what others say of a post and how near its author is
/// to the reader, against its age.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Importance {
    /// How much the reader's own acts count, against those of others.
    pub affinity_weight: f64,
    /// Hours in which a post loses as much as one gains that gets 2.7 times as many reactions.
    pub hours_a_point: f64,
}

impl Default for Importance {
    fn default() -> Self {
        Self { affinity_weight: 1.0, hours_a_point: 6.0 }
    }
}

impl PostScorer for Importance {
    fn score(&self, facts: &ScoreFacts<'_>) -> Score {
        let reactions =
            f64::from(facts.likes) + 2.0 * f64::from(facts.reposts) + 3.0 * f64::from(facts.replies);
        let hours = facts.age.as_secs_f64() / 3600.0;
        Score::of([
            ("reactions", reactions.ln_1p()),
            ("affinity", self.affinity_weight * facts.affinity.ln_1p()),
            ("age", -hours / self.hours_a_point),
        ])
    }
}

/// The places of entries, the most important first, of which `author` and `score` are known: the highest score that
/// doesn't make too many of one author stand one behind the other. Of equal ones that first which came first.
pub(super) fn order(entries: &[(AccountId, f64)]) -> Vec<usize> {
    let mut open: Vec<usize> = (0..entries.len()).rev().collect();
    // The most important stand last: what is taken next stands there nearly always, and nothing moves up for it.
    open.sort_by(|a, b| entries[*a].1.total_cmp(&entries[*b].1));
    let mut ordered: Vec<usize> = Vec::with_capacity(open.len());
    while !open.is_empty() {
        let last = ordered.last().map(|at| entries[*at].0);
        let newest = ordered.iter().rev().take(IN_A_ROW_MAX);
        let row = newest.take_while(|at| Some(entries[**at].0) == last).count();
        let other = |at: &usize| row < IN_A_ROW_MAX || Some(entries[*at].0) != last;
        // Where only that author is left, it goes on.
        let next = open.iter().rposition(other).unwrap_or(open.len() - 1);
        ordered.push(open.remove(next));
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::post::Draft;
    use proptest::prelude::*;

    fn id(id: u64) -> AccountId {
        AccountId::new(id).unwrap()
    }

    fn score(likes: u32, replies: u32, affinity: f64, hours: u64) -> f64 {
        let post = Post::new(id(2), &Draft::text("so"));
        let facts = ScoreFacts {
            reader: id(1),
            post: &post,
            original: None,
            age: Duration::from_secs(hours * 3600),
            likes,
            reposts: 0,
            replies,
            affinity,
        };
        Importance::default().score(&facts).total()
    }

    #[test]
    fn reactions_and_nearness_count_for_a_post_and_age_against_it() {
        let plain = score(0, 0, 0.0, 1);
        assert!(score(1, 0, 0.0, 1) > plain && score(0, 0, 1.0, 1) > plain && score(0, 0, 0.0, 2) < plain);
        assert!(score(0, 1, 0.0, 1) > score(1, 0, 0.0, 1), "an answer says more than a like");
        assert!(score(u32::MAX, u32::MAX, f64::MAX, 0).is_finite());
    }

    #[test]
    fn a_score_is_the_sum_of_its_terms_and_what_is_no_number_is_less_than_all() {
        let score = Score::of([("a", 1.5), ("b", -0.5)]);
        assert_eq!((score.total(), score.terms().len()), (1.0, 2));
        assert_eq!(serde_json::to_string(&score).unwrap(), r#"{"a":1.5,"b":-0.5}"#);
        assert_eq!(Score::of([("a", f64::NAN)]).total(), f64::NEG_INFINITY);
        assert_eq!(Score::default().total(), 0.0);
    }

    #[test]
    fn the_third_of_one_author_gives_way_to_another() {
        let of = |entries: &[(u64, f64)]| {
            order(&entries.iter().map(|(author, score)| (id(*author), *score)).collect::<Vec<_>>())
        };
        assert_eq!(of(&[(1, 9.0), (1, 8.0), (1, 7.0), (2, 1.0)]), [0, 1, 3, 2]);
        assert_eq!(of(&[(1, 9.0), (1, 8.0), (1, 7.0)]), [0, 1, 2]);
        assert_eq!(of(&[(1, 1.0), (2, 1.0), (3, f64::NEG_INFINITY), (4, 2.0)]), [3, 0, 1, 2]);
        assert!(of(&[]).is_empty());
    }

    proptest! {
        /// Each entry once; no more in a row than may while others are left; and nothing waits longer than that asks.
        #[test]
        fn each_entry_stands_once_and_nothing_waits_but_for_its_author(
            entries in proptest::collection::vec((1u64..5, -3i8..4), 0..40),
        ) {
            let entries: Vec<_> = entries.into_iter().map(|(a, s)| (id(a), f64::from(s))).collect();
            let ordered = order(&entries);
            let mut places = ordered.clone();
            places.sort_unstable();
            prop_assert_eq!(places, (0..entries.len()).collect::<Vec<_>>());
            for (at, place) in ordered.iter().enumerate() {
                let row = ordered[..at].iter().rev().take_while(|of| entries[**of].0 == entries[*place].0).count();
                let others = ordered[at..].iter().any(|of| entries[*of].0 != entries[*place].0);
                prop_assert!(row < IN_A_ROW_MAX || !others);
                let last = at.checked_sub(1).map(|before| entries[ordered[before]].0);
                let row = ordered[..at].iter().rev().take_while(|of| Some(entries[**of].0) == last).count();
                for later in &ordered[at + 1..] {
                    let waits_for_author = row >= IN_A_ROW_MAX && Some(entries[*later].0) == last;
                    prop_assert!(entries[*later].1 <= entries[*place].1 || waits_for_author);
                }
            }
        }
    }
}
