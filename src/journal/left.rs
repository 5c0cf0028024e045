//! The part of a round that is still to be done, as a journal entry says it. Pure.

use std::fmt;
use std::str::FromStr;

use crate::bucket::{Bucket, Buckets, SLOTS};
use crate::cluster::Epoch;
use crate::error::{Error, ErrorCode, Result};

/// The prefix of a round's checkpoint; behind it stands how many buckets are done, in the order of [`Buckets::strewn`].
const ROUND: &str = "round.";
/// The prefix of the checkpoint of a round that is done but for some buckets; behind it stand these.
const LEFT: &str = "left.";
/// Between these, and what was visited in epochs that could not be fenced: `left.0-340;127.0.0.1:7001/<epoch>=700-703`.
const UNFENCED: char = ';';

/// Buckets that one server has acknowledged, in one life of it.
pub(crate) type AcknowledgedBuckets = (Epoch, BucketSet);

/// Buckets visited in an epoch of that name.
pub(crate) type VisitedBuckets = (String, BucketSet);

/// Reads the checkpoint of a round that is done but for this: buckets that are left, and those of which nobody could
/// say whether what was done there lasts.
pub(crate) fn left_by(checkpoint: &str) -> Option<(BucketSet, Vec<VisitedBuckets>)> {
    let mut parts = checkpoint.strip_prefix(LEFT)?.split(UNFENCED);
    let left = parts.next()?.parse().ok()?;
    let unfenced = parts.map(|part| {
        let (name, buckets) = part.rsplit_once('=')?;
        Some((name.to_owned(), buckets.parse().ok()?))
    });
    Some((left, unfenced.collect::<Option<_>>()?))
}

/// The checkpoint that says it.
pub(crate) fn checkpoint_of(left: &BucketSet, unfenced: &[VisitedBuckets]) -> String {
    let visited = unfenced.iter().map(|(name, buckets)| format!("{UNFENCED}{name}={buckets}"));
    format!("{LEFT}{left}{}", visited.collect::<String>())
}

/// Some of a tenant's buckets. As text: their numbers, ranges of neighbours, which those of one server mostly are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BucketSet(Vec<u64>);

impl BucketSet {
    /// Adds a bucket.
    pub(crate) fn insert(&mut self, bucket: Bucket) {
        let (word, bit) = place(bucket);
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= bit;
    }

    pub(crate) fn contains(&self, bucket: Bucket) -> bool {
        let (word, bit) = place(bucket);
        self.0.get(word).is_some_and(|bits| bits & bit != 0)
    }

    /// Adds all of another set.
    pub(crate) fn extend(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(ours, theirs)| *ours |= theirs);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|bits| *bits == 0)
    }

    /// Its buckets, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Bucket> {
        let most = u16::try_from(self.0.len() * 64).unwrap_or(u16::MAX);
        (0..most).map(Bucket).filter(|bucket| self.contains(*bucket))
    }
}

impl FromIterator<Bucket> for BucketSet {
    fn from_iter<T: IntoIterator<Item = Bucket>>(buckets: T) -> Self {
        let mut set = Self::default();
        buckets.into_iter().for_each(|bucket| set.insert(bucket));
        set
    }
}

/// In which word a bucket's bit stands, and which one it is.
fn place(bucket: Bucket) -> (usize, u64) {
    (usize::from(bucket.index() / 64), 1 << (bucket.index() % 64))
}

impl fmt::Display for BucketSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ranges: Vec<(u16, u16)> = Vec::new();
        for bucket in self.iter().map(Bucket::index) {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == bucket => *last = bucket,
                _ => ranges.push((bucket, bucket)),
            }
        }
        for (n, (first, last)) in ranges.into_iter().enumerate() {
            let comma = if n > 0 { "," } else { "" };
            match first == last {
                true => write!(f, "{comma}{first}")?,
                false => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

impl FromStr for BucketSet {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let unknown =
            || Error::new(ErrorCode::Malformed, format!("`{}` is no list of buckets", text.escape_default()));
        let mut set = Self::default();
        for range in text.split(',').filter(|range| !range.is_empty()) {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let number = |text: &str| text.parse().ok().filter(|n: &u16| *n < SLOTS).ok_or_else(unknown);
            (number(first)?..=number(last)?).map(Bucket).for_each(|bucket| set.insert(bucket));
        }
        Ok(set)
    }
}

/// The part of a round that is still to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RoundPart {
    All,
    /// All buckets but so many, in the order of [`Buckets::strewn`].
    Behind(u16),
    /// These buckets.
    Left(BucketSet),
}

impl RoundPart {
    /// The part that a checkpoint leaves. One that can't be read, or is not of a round, leaves all, which is right,
    /// too.
    pub(crate) fn of(checkpoint: &str) -> Self {
        let done = || checkpoint.strip_prefix(ROUND)?.parse().ok().map(Self::Behind);
        let left = || left_by(checkpoint).map(|(left, _)| Self::Left(left));
        done().or_else(left).unwrap_or(Self::All)
    }

    /// Whether a bucket's followers are part of it, where that goes by bucket alone.
    pub(crate) fn has(&self, bucket: Bucket) -> bool {
        match self {
            Self::Left(left) => left.contains(bucket),
            Self::All | Self::Behind(_) => true,
        }
    }

    /// Its buckets, each far from the one before it.
    pub(crate) fn buckets(&self, of: Buckets) -> Vec<Bucket> {
        let done = if let Self::Behind(done) = self { usize::from(*done) } else { 0 };
        of.strewn().skip(done).filter(|bucket| self.has(*bucket)).collect()
    }

    /// The number of buckets that are done, of so many.
    pub(crate) fn done(&self, of: Buckets) -> u16 {
        let open = self.buckets(of).len();
        of.count() - u16::try_from(open).unwrap_or(of.count())
    }
}

/// The checkpoint that says it.
impl fmt::Display for RoundPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => Ok(()),
            Self::Behind(done) => write!(f, "{ROUND}{done}"),
            Self::Left(left) => f.write_str(&checkpoint_of(left, &[])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(buckets: impl IntoIterator<Item = u16>) -> BucketSet {
        buckets.into_iter().map(Bucket).collect()
    }

    proptest! {
        #[test]
        fn a_set_of_buckets_is_what_was_put_into_it_and_survives_as_text(
            buckets in proptest::collection::btree_set(0..SLOTS, 0..60)
        ) {
            let set = set(buckets.clone());
            let indices: Vec<u16> = set.iter().map(Bucket::index).collect();
            prop_assert_eq!(indices, buckets.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(set.is_empty(), buckets.is_empty());
            let read = set.to_string().parse::<BucketSet>().unwrap();
            prop_assert!((0..SLOTS).map(Bucket).all(|b| read.contains(b) == set.contains(b)));
        }

        #[test]
        fn reading_never_panics(text in "[0-9,-]{0,20}") {
            drop(text.parse::<BucketSet>());
        }
    }

    #[test]
    fn the_buckets_of_one_server_are_a_short_text() {
        assert_eq!(set(0..341).to_string(), "0-340");
        assert_eq!(set((5..8).chain([9]).chain(700..800)).to_string(), "5-7,9,700-799");
        for wrong in ["x", "5-", "16384", "-", "1;2"] {
            assert_eq!(wrong.parse::<BucketSet>().unwrap_err().kind(), crate::ErrorKind::Invalid, "{wrong}");
        }
    }

    #[test]
    fn only_the_checkpoint_of_a_round_says_what_is_left() {
        for part in [
            RoundPart::All,
            RoundPart::Behind(256),
            RoundPart::Left(set([3, 4, 5])),
            RoundPart::Left(set([])),
        ] {
            assert_eq!(RoundPart::of(&part.to_string()), part);
        }
        let others = [
            "",
            "round.",
            "round.-1",
            "round.65536",
            "local.0",
            "spread.256.0",
            "left.x",
            "left.1;",
            "left.1;a=x",
        ];
        for other in others {
            assert_eq!(RoundPart::of(other), RoundPart::All, "{other}");
        }
        let buckets = Buckets::default();
        assert_eq!(RoundPart::Behind(1000).buckets(buckets).len(), 24);
        assert_eq!(RoundPart::Behind(1000).done(buckets), 1000);
        assert_eq!(RoundPart::Left(set([3, 4])).done(buckets), 1022);
        assert_eq!(RoundPart::of("round.60000").buckets(buckets), []);
    }

    #[test]
    fn what_nobody_could_vouch_for_stands_behind_what_is_left() {
        let unfenced = [("127.0.0.1:7001/a1b2", 3..5), ("[::1]:7002/c3", 9..10)];
        let unfenced = unfenced.map(|(name, buckets)| (name.to_owned(), set(buckets)));
        for left in [set([]), set([7, 8])] {
            let text = checkpoint_of(&left, &unfenced);
            assert_eq!(RoundPart::of(&text), RoundPart::Left(left.clone()));
            assert_eq!(left_by(&text), Some((left, unfenced.to_vec())));
        }
        assert_eq!(checkpoint_of(&set([]), &unfenced), "left.;127.0.0.1:7001/a1b2=3-4;[::1]:7002/c3=9");
    }
}
