//! The start and the end of a page: the ranges that Mastodon's API names, and the cursor from one page to the next.
//! Pure: no I/O, no clock.

use std::fmt;
use std::str::FromStr;

use super::merge::Direction;
use crate::error::{Error, ErrorCode, Result, excerpt};
use crate::ids::PostId;

/// The first character says what follows: d, the id in 16 hex digits, and down from there. A release that has more
/// to say takes another letter.
const DOWN: char = 'd';
const ID_DIGITS: usize = 16;

/// The place where the next page goes on: hand it back as it came, as a value or as text.
///
/// It names a place, not a post: it stays good when posts around it are deleted. Its text is short, fit for URLs,
/// and may look different in later releases.
///
/// Parsing refuses, as [`ErrorKind::Invalid`](crate::ErrorKind::Invalid), every text that this release wouldn't have
/// written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cursor {
    id: u64,
}

impl Cursor {
    /// Goes on with the posts older than `id`, which need not exist.
    pub fn below(id: u64) -> Self {
        Self { id }
    }

    /// The next page's posts have ids below this: what Mastodon's API calls `max_id`.
    pub fn id(self) -> u64 {
        self.id
    }
}

crate::serialized::as_text!(Cursor);

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{DOWN}{:0ID_DIGITS$x}", self.id)
    }
}

impl FromStr for Cursor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        text.strip_prefix(DOWN)
            .filter(|digits| digits.len() == ID_DIGITS && digits.as_bytes().iter().all(is_digit))
            .and_then(|digits| u64::from_str_radix(digits, 16).ok())
            .map(Self::below)
            .ok_or_else(|| {
                let shown = excerpt(text);
                Error::new(
                    ErrorCode::Malformed,
                    format!("{shown:?} is not a cursor that this release can read: start again without one"),
                )
            })
    }
}

/// A part of a timeline, in the words of Mastodon's API; the default is its newest page. No end is included, and
/// none needs to be the id of a post. Every page is newest first.
///
/// Of the posts 1 to 10, three a page: `since_id` 2 gives 10, 9, 8 (the newest); `min_id` 2 gives 5, 4, 3 (those next
/// to it); `min_id` 2 with `max_id` 5 gives 4, 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Range {
    /// Only older posts than this.
    pub max_id: Option<PostId>,
    /// Only newer posts than this, the newest of all first.
    pub since_id: Option<PostId>,
    /// Only newer posts than this, and of these the ones next to it. With `since_id`, both limit, and the page stands
    /// next to the higher one.
    pub min_id: Option<PostId>,
}

impl Range {
    /// The arguments of [`Merge::new`](super::merge::Merge::new); `cursor` is one more upper end. A page that was
    /// read up is turned around before it is shown.
    pub(crate) fn window(self, cursor: Option<Cursor>) -> (Direction, u64, u64) {
        let upper = [self.max_id.map(PostId::get), cursor.map(Cursor::id)];
        let upper = upper.into_iter().flatten().min().unwrap_or(u64::MAX);
        let lower = self.since_id.max(self.min_id).map_or(0, PostId::get);
        match self.min_id {
            Some(_) => (Direction::Up, lower, upper),
            None => (Direction::Down, upper, lower),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use proptest::prelude::*;

    fn range(max_id: Option<u64>, since_id: Option<u64>, min_id: Option<u64>) -> Range {
        let post = |id: Option<u64>| id.map(|id| PostId::from_u64(id).unwrap());
        Range { max_id: post(max_id), since_id: post(since_id), min_id: post(min_id) }
    }

    proptest! {
        #[test]
        fn a_cursor_survives_its_text(id: u64) {
            let cursor = Cursor::below(id);
            prop_assert_eq!(cursor.to_string().parse::<Cursor>().unwrap(), cursor);
            prop_assert_eq!(cursor.id(), id);
        }

        #[test]
        fn a_text_is_refused_or_is_what_the_cursor_would_write(text in "d?[0-9a-gA-F+dé]{0,17}|.{0,60}") {
            match text.parse::<Cursor>() {
                Ok(cursor) => prop_assert_eq!(cursor.to_string(), text),
                Err(error) => {
                    prop_assert_eq!(error.kind(), ErrorKind::Invalid);
                    prop_assert!(error.to_string().len() < 1000);
                }
            }
        }
    }

    #[test]
    fn a_cursor_has_a_letter_and_sixteen_digits() {
        assert_eq!(Cursor::below(0).to_string(), "d0000000000000000");
        assert_eq!(Cursor::below(0x01AB).to_string(), "d00000000000001ab");
        assert_eq!(Cursor::below(u64::MAX).to_string(), "dffffffffffffffff");
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        let long = "d".repeat(100_000);
        let texts = [
            "",
            "d",
            "0000000000000001",
            "d1",
            "d000000000000001",
            "d00000000000000001",
            "D0000000000000001",
            "e0000000000000001",
            "d000000000000000A",
            "d+000000000000001",
            "d000000000000000g",
            "d0000000000000001 ",
            "é0000000000000001",
            "d00000000000000é",
            &long,
        ];
        for text in texts {
            let error = text.parse::<Cursor>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{text}");
            assert!(error.to_string().len() < 200, "{text}");
        }
    }

    #[test]
    fn since_reads_down_and_min_reads_up() {
        use Direction::{Down, Up};
        assert_eq!(Range::default().window(None), (Down, u64::MAX, 0));
        assert_eq!(range(Some(7), None, None).window(None), (Down, 7, 0));
        assert_eq!(range(None, Some(2), None).window(None), (Down, u64::MAX, 2));
        assert_eq!(range(Some(7), Some(2), None).window(None), (Down, 7, 2));
        assert_eq!(range(None, None, Some(2)).window(None), (Up, 2, u64::MAX));
        assert_eq!(range(Some(5), None, Some(2)).window(None), (Up, 2, 5));
        assert_eq!(range(Some(5), Some(3), Some(2)).window(None), (Up, 3, 5));
        assert_eq!(range(Some(5), Some(1), Some(2)).window(None), (Up, 2, 5));
    }

    #[test]
    fn a_cursor_lowers_the_upper_end_and_never_raises_it() {
        use Direction::{Down, Up};
        let at = |id| Some(Cursor::below(id));
        assert_eq!(Range::default().window(at(9)), (Down, 9, 0));
        assert_eq!(range(Some(7), Some(2), None).window(at(9)), (Down, 7, 2));
        assert_eq!(range(Some(7), Some(2), None).window(at(5)), (Down, 5, 2));
        assert_eq!(range(Some(7), None, Some(2)).window(at(5)), (Up, 2, 5));
    }
}
