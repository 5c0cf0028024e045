//! The place where a scroll by importance goes on. Pure: no I/O, no clock.
//!
//! It holds what is left of a window, in its order, and where the next one begins: no server keeps anything of a
//! scroll, and nothing is scored twice. It is data and no authority: what it names shows only if the reader may see it.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::bits::{BitReader, BitWriter};
use crate::bucket::Buckets;
use crate::error::{Error, ErrorCode, Result, excerpt};
use crate::ids::{MS_MAX, PostId, sequences};

/// The first character, as `d` is that of a [`Cursor`](crate::Cursor).
const RANKED: char = 'i';
/// No text is longer.
pub const RANKED_CURSOR_LEN_MAX: usize = 1_000;
/// Bits of the number of posts that are left, of an id, of its milliseconds, and of what stands below these.
const COUNT_BITS: u32 = 7;
const ID_BITS: u32 = 63;
const MS_BITS: u32 = 47;
const LOW_BITS: u32 = 16;
/// Bits of the numbers that say how long others are.
const WIDTH_BITS: u32 = 6;

/// The place where the next page of a scroll by importance goes on: hand it back as it came, as a value or as text.
///
/// Its text is shorter than 1 kB, fit for URLs, and may look different in later releases. Parsing refuses, as
/// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid), every text that this release wouldn't have written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RankedCursor {
    /// The posts of its window that were not shown yet, the most important first. Each once.
    rest: Arc<[PostId]>,
    /// The next window's posts have lower ids; `None`: there is none.
    below: Option<u64>,
    /// So many bits of an id count posts of one bucket and millisecond: nearly always they are few.
    sequence_bits: u32,
}

impl RankedCursor {
    /// A scroll that begins below a post: the most important of those that are older.
    pub fn below_post(post: PostId) -> Self {
        Self::below_id(post.get())
    }

    /// One at the border of two windows.
    pub(super) fn below_id(id: u64) -> Self {
        Self { rest: Arc::from([]), below: Some(id.min(ID_MAX)), sequence_bits: 0 }
    }

    /// `None`: its text would be too long. Then fewer posts of the window are to be candidates.
    pub(super) fn of(buckets: Buckets, rest: &[PostId], below: Option<u64>) -> Option<Self> {
        let sequence_bits = sequences(buckets).trailing_zeros();
        let cursor = Self { rest: rest.into(), below: below.map(|id| id.min(ID_MAX)), sequence_bits };
        let is_short = rest.len() < 1 << COUNT_BITS && cursor.to_string().len() <= RANKED_CURSOR_LEN_MAX;
        is_short.then_some(cursor)
    }

    /// The cursor once all but these last posts of its window were shown. Its text is no longer than it was.
    pub(super) fn with_last(&self, posts: usize) -> Self {
        let shown = self.rest.len().saturating_sub(posts);
        Self { rest: self.rest[shown..].into(), ..*self }
    }

    /// The posts of its window that are left, the most important first.
    pub(super) fn rest(&self) -> &[PostId] {
        &self.rest
    }

    pub(super) fn below(&self) -> Option<u64> {
        self.below
    }

    fn read(text: &str) -> Option<Self> {
        let mut bits =
            BitReader::of(text.strip_prefix(RANKED).filter(|rest| rest.len() < RANKED_CURSOR_LEN_MAX)?);
        let below = if bits.read(1)? == 1 { Some(bits.read(ID_BITS)?) } else { None };
        let count = usize::try_from(bits.read(COUNT_BITS)?).ok()?;
        let sequence_bits = u32::try_from(bits.read(WIDTH_BITS)?).ok().filter(|width| *width <= LOW_BITS)?;
        let mut ascending: Vec<PostId> = Vec::with_capacity(count);
        if count > 0 {
            let (step_bits, mut ms) = (u32::try_from(bits.read(WIDTH_BITS)?).ok()?, bits.read(MS_BITS)?);
            for at in 0..count {
                if at > 0 {
                    ms = ms.checked_add(bits.read_steps(step_bits)?).filter(|ms| *ms <= MS_MAX)?;
                }
                let bucket = bits.read(LOW_BITS - sequence_bits)?;
                let sequence = bits.read_small()?.checked_sub(1).filter(|n| *n < 1 << sequence_bits)?;
                ascending.push(PostId::from_u64(ms << LOW_BITS | bucket << sequence_bits | sequence).ok()?);
            }
        }
        let mut rest = Vec::with_capacity(count);
        while !ascending.is_empty() {
            let at = usize::try_from(bits.read(width_of(ascending.len()))?).ok()?;
            if at >= ascending.len() {
                return None;
            }
            rest.push(ascending.remove(at));
        }
        Some(Self { rest: rest.into(), below, sequence_bits })
    }
}

/// With steps of how many bits the milliseconds of ascending ids are shortest. Of all there are: what is short for some
/// ids is so for a part of them, too, and a cursor never grows while its posts are shown.
fn shortest_steps(ascending: &[PostId]) -> u32 {
    let steps = || ascending.windows(2).map(|pair| pair[1].unix_ms() - pair[0].unix_ms());
    // A bit more makes each step one bit longer, and saves the less the more bits there are.
    let saved = |bits: u32| steps().map(|ms| (ms >> bits) - (ms >> (bits + 1))).sum::<u64>();
    let count = steps().count() as u64;
    let (mut least, mut most) = (0, MS_BITS - 1);
    while least < most {
        let bits = least.midpoint(most);
        match saved(bits) > count {
            true => least = bits + 1,
            false => most = bits,
        }
    }
    least
}

const ID_MAX: u64 = i64::MAX.unsigned_abs();

/// Bits of a place among so many.
fn width_of(places: usize) -> u32 {
    places.next_power_of_two().trailing_zeros()
}

impl fmt::Display for RankedCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bits = BitWriter::default();
        bits.write(u64::from(self.below.is_some()), 1);
        self.below.iter().for_each(|below| bits.write(*below, ID_BITS));
        bits.write(self.rest.len() as u64, COUNT_BITS);
        bits.write(u64::from(self.sequence_bits), WIDTH_BITS);
        let mut ascending = self.rest.to_vec();
        ascending.sort_unstable();
        if let Some(first) = ascending.first() {
            let step_bits = shortest_steps(&ascending);
            bits.write(u64::from(step_bits), WIDTH_BITS);
            bits.write(first.unix_ms(), MS_BITS);
            let mut before = first.unix_ms();
            for (at, id) in ascending.iter().enumerate() {
                if at > 0 {
                    bits.write_steps(id.unix_ms() - before, step_bits);
                    before = id.unix_ms();
                }
                let low = id.get() & ((1 << LOW_BITS) - 1);
                bits.write(low >> self.sequence_bits, LOW_BITS - self.sequence_bits);
                bits.write_small((low & ((1 << self.sequence_bits) - 1)) + 1);
            }
        }
        for id in self.rest.iter() {
            let Ok(at) = ascending.binary_search(id) else { continue };
            bits.write(at as u64, width_of(ascending.len()));
            ascending.remove(at);
        }
        write!(f, "{RANKED}{}", bits.finish())
    }
}

impl FromStr for RankedCursor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let is_ours = |cursor: &Self| {
            let mut ids = cursor.rest.to_vec();
            ids.sort_unstable();
            ids.is_sorted_by(|a, b| a < b) && cursor.to_string() == text
        };
        Self::read(text).filter(is_ours).ok_or_else(|| {
            Error::new(
                ErrorCode::Malformed,
                format!(
                    "{:?} is not a cursor of a timeline by importance that this release can read: start again \
                     without one",
                    excerpt(text)
                ),
            )
        })
    }
}

crate::serialized::as_text!(RankedCursor);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn post(id: u64) -> PostId {
        PostId::from_u64(id).unwrap()
    }

    fn buckets(count: u16) -> Buckets {
        Buckets::new(count).unwrap()
    }

    proptest! {
        #[test]
        fn a_cursor_survives_its_text_with_its_order(
            ids in proptest::collection::btree_set(0..=ID_MAX, 0..60),
            below in proptest::option::of(0..=ID_MAX),
            turn in 0usize..60, count in 4u32..15,
        ) {
            let mut rest: Vec<PostId> = ids.iter().copied().map(post).collect();
            rest.rotate_left(turn.min(ids.len()));
            let cursor = RankedCursor::of(buckets(1 << count), &rest, below).unwrap();
            let read: RankedCursor = cursor.to_string().parse().unwrap();
            prop_assert_eq!(read.rest(), &rest[..]);
            prop_assert_eq!(read.below(), below);
            prop_assert_eq!(read, cursor);
        }

        #[test]
        fn steps_are_as_short_as_they_can_be(
            ids in proptest::collection::btree_set(0..=ID_MAX, 0..60), far in 0u32..48,
        ) {
            let ids: BTreeSet<PostId> = ids.into_iter().map(|id| post(id >> far)).collect();
            let ascending: Vec<PostId> = ids.into_iter().collect();
            let steps = || ascending.windows(2).map(|pair| pair[1].unix_ms() - pair[0].unix_ms());
            let length = |bits: &u32| steps().map(|ms| (ms >> bits) + u64::from(*bits)).sum::<u64>();
            prop_assert_eq!(shortest_steps(&ascending), (0..MS_BITS).min_by_key(length).unwrap());
        }

        #[test]
        fn a_text_is_refused_or_is_what_the_cursor_would_write(text in "i?[0-9A-Za-z_-]{0,80}|.{0,60}") {
            match text.parse::<RankedCursor>() {
                Ok(cursor) => prop_assert_eq!(cursor.to_string(), text),
                Err(error) => {
                    prop_assert_eq!(error.kind(), ErrorKind::Invalid);
                    prop_assert!(error.to_string().len() < 1000);
                }
            }
        }

        /// A cursor with a letter changed is another one, or none: never a panic, and never more than it may hold.
        #[test]
        fn a_forged_letter_is_refused_or_read_as_it_stands(
            ids in proptest::collection::btree_set(0..=ID_MAX, 1..40), at in 0usize..400, to in "[0-9A-Za-z_-]",
        ) {
            let rest: Vec<PostId> = ids.iter().copied().map(post).collect();
            let mut text = RankedCursor::of(buckets(1024), &rest, Some(7)).unwrap().to_string();
            let at = at % text.len();
            text.replace_range(at..=at, &to);
            if let Ok(read) = text.parse::<RankedCursor>() {
                prop_assert_eq!(read.rest().iter().collect::<BTreeSet<_>>().len(), read.rest().len());
                prop_assert_eq!(read.to_string(), text);
            }
        }
    }

    /// A whole window but for one post, of a month, of five years, of a second: what a reader may meet.
    #[test]
    fn a_window_fits_into_a_kilobyte_and_what_does_not_is_refused() {
        let now = 1_795_000_000_000_u64;
        let mut drawn = 1_u64;
        let mut next = |most: u64| {
            drawn = drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (drawn >> 33) % most
        };
        for (days, left) in [(0, 119), (1, 119), (30, 119), (365, 112), (5 * 365, 100)] {
            let mut ids = BTreeSet::new();
            while ids.len() < left {
                let ms = now - next(days * 86_400 + 1) * 1_000 - next(1_000);
                ids.insert(
                    PostId::new(buckets(1024), buckets(1024).of_account(next(1_000_000)), ms, 0).unwrap(),
                );
            }
            let mut rest: Vec<PostId> = ids.into_iter().collect();
            rest.reverse();
            let cursor = RankedCursor::of(buckets(1024), &rest, rest.last().map(|id| id.get()));
            let text = cursor.unwrap_or_else(|| panic!("{left} posts of {days} days")).to_string();
            assert!(text.len() <= RANKED_CURSOR_LEN_MAX);
            println!("{left} posts of {days} days: {} characters", text.len());
        }
        let far: Vec<PostId> = (0..127).map(|n| post(n * (ID_MAX / 127) + n * 977)).collect();
        assert!(RankedCursor::of(buckets(16384), &far, None).is_none());
        assert!(RankedCursor::of(buckets(16), &[post(1); 128], None).is_none());
    }

    /// Others store it: a release that writes it otherwise takes another letter.
    #[test]
    fn its_text_stays() {
        let cursor =
            RankedCursor::of(buckets(1024), &[post(0x1234_5678_0040), post(0x1234_5678_0003)], Some(9));
        assert_eq!(cursor.unwrap().to_string(), "igAAAAAAAAAkEMAAABI0VngAMABQ");
        assert_eq!(RankedCursor::of(buckets(1024), &[], Some(9)).unwrap().to_string(), "igAAAAAAAAAkAM");
    }

    /// A cursor must not grow, whatever is shown of it: one that grew beyond the longest allowed ended its scroll.
    #[test]
    fn a_cursor_never_grows_while_its_posts_are_shown() {
        let buckets = buckets(1024);
        for (far_ms, together) in [(12_134, 11), (1, 1), (90_000, 2), (3_000_000, 30)] {
            // Few far apart: by the mean of all steps, those between the others become longer once one is gone.
            let mut ms = 1_795_000_000_000;
            let ids = (0..119).map(|n| {
                ms += if n % together == together - 1 { far_ms } else { 1 };
                PostId::new(buckets, buckets.of_account(n), ms, 0).unwrap()
            });
            let mut rest: Vec<PostId> = ids.collect();
            rest.rotate_left(50);
            let whole = RankedCursor::of(buckets, &rest, Some(3)).unwrap();
            let mut before = whole.to_string().len();
            for left in (0..rest.len()).rev() {
                let cursor = whole.with_last(left);
                assert_eq!(cursor.rest(), &rest[rest.len() - left..]);
                let length = cursor.to_string().len();
                assert!(length <= before, "{far_ms} ms, {left} left: {length} letters, {before} before");
                before = length;
            }
        }
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        let whole = RankedCursor::of(buckets(1024), &[post(5), post(3)], Some(2)).unwrap().to_string();
        let long = format!("i{}", "A".repeat(100_000));
        let cut = &whole[..whole.len() - 1];
        let longer = format!("{whole}A");
        for text in ["", "i", "d0000000000000001", "i!", "é", &long, cut, &longer, &whole[1..]] {
            let error = text.parse::<RankedCursor>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{text}");
            assert!(error.to_string().len() < 250, "{text}");
        }
    }
}
