//! The place where a list goes on. Pure.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, ErrorCode, Result, excerpt};
use crate::ids::AccountId;
use crate::post::PostRef;
use crate::sharded::{MEMBER_LEN_MAX, Member};

/// The first character says what follows: the bits of a score in 16 hex digits, then a member in hex.
const SCORED: char = 's';
const SCORE_DIGITS: usize = 16;

/// A place in a list of posts or accounts: hand it back as it came, as a value or as text. It stays good when what is
/// around it goes. Its text is fit for URLs, and may look different in later releases.
///
/// Parsing refuses, as [`ErrorKind::Invalid`](crate::ErrorKind::Invalid), what this release wouldn't have written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ListCursor {
    score_bits: u64,
    member: Vec<u8>,
}

/// A member of lists that are read page by page.
pub(super) trait ListedMember: Member {
    /// The bytes of one that stands where a place names none.
    const NOBODY: &'static [u8];
}

impl ListedMember for AccountId {
    const NOBODY: &'static [u8] = &[0, 0, 0, 0, 0, 0, 0, 1];
}

impl ListedMember for PostRef {
    const NOBODY: &'static [u8] = &[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1];
}

impl ListCursor {
    /// The place right above all entries of a score: between two scores that entries have. It names none of them.
    pub(super) fn above<M: ListedMember>(score: f64) -> Self {
        Self { score_bits: score.next_up().to_bits(), member: M::NOBODY.to_vec() }
    }

    /// The place right below all entries of a score.
    pub(super) fn below<M: ListedMember>(score: f64) -> Self {
        Self { score_bits: score.next_down().to_bits(), member: M::NOBODY.to_vec() }
    }

    /// The score that it stands at.
    pub(super) fn score(&self) -> f64 {
        f64::from_bits(self.score_bits)
    }

    pub(super) fn at<M: Member>(member: &M, score: f64) -> Self {
        Self { score_bits: score.to_bits(), member: member.to_bytes().as_ref().to_vec() }
    }

    /// Whether it is below an entry, as sets order them.
    pub(super) fn is_below<M: Member>(&self, member: &M, score: f64) -> bool {
        let of_scores = score.total_cmp(&self.score());
        of_scores.then_with(|| member.to_bytes().as_ref().cmp(&self.member[..])).is_gt()
    }

    /// The place, in a list of these members.
    pub(super) fn place<M: Member>(&self) -> Result<(M, f64)> {
        let score = self.score();
        let member = M::from_bytes(&self.member).ok().filter(|_| !score.is_nan());
        member.map(|member| (member, score)).ok_or_else(|| not_ours(&self.to_string()))
    }
}

fn not_ours(text: &str) -> Error {
    let shown = excerpt(text);
    Error::new(
        ErrorCode::Malformed,
        format!("{shown:?} is not a cursor of this list: start again without one"),
    )
}

crate::serialized::as_text!(ListCursor);

impl fmt::Display for ListCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCORED}{:0SCORE_DIGITS$x}", self.score_bits)?;
        self.member.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for ListCursor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let digits = text.strip_prefix(SCORED).filter(|rest| rest.as_bytes().iter().all(is_digit));
        let parts = digits.and_then(|digits| digits.split_at_checked(SCORE_DIGITS));
        let (score, member) = parts.ok_or_else(|| not_ours(text))?;
        if member.len() % 2 == 1 || member.is_empty() || member.len() > 2 * MEMBER_LEN_MAX {
            return Err(not_ours(text));
        }
        let byte = |at: usize| u8::from_str_radix(&member[at..at + 2], 16).map_err(|_| not_ours(text));
        Ok(Self {
            score_bits: u64::from_str_radix(score, 16).map_err(|_| not_ours(text))?,
            member: (0..member.len()).step_by(2).map(byte).collect::<Result<_>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use proptest::prelude::*;

    #[test]
    fn a_place_between_scores_is_one_of_its_list_and_names_no_entry() {
        let account = AccountId::new(7).unwrap();
        let [above, below] = [ListCursor::above::<AccountId>(5.0), ListCursor::below::<AccountId>(5.0)];
        // What is below a place goes on behind it; an entry that isn't is read with what is newer.
        let sides = |place: &ListCursor| [4.0, 5.0, 6.0].map(|score| place.is_below(&account, score));
        assert_eq!((sides(&above), sides(&below)), ([false, false, true], [false, true, true]));
        assert!(above.place::<AccountId>().is_ok() && above.place::<PostRef>().is_err());
        assert!(ListCursor::above::<PostRef>(5.0).place::<PostRef>().is_ok());
    }

    proptest! {
        #[test]
        fn a_cursor_survives_its_text(score in -1e15..1e15, id in 1..i64::MAX as u64) {
            let cursor = ListCursor::at(&AccountId::new(id).unwrap(), score);
            let read: ListCursor = cursor.to_string().parse().unwrap();
            prop_assert_eq!(read.place::<AccountId>().unwrap(), (AccountId::new(id).unwrap(), score));
            prop_assert_eq!(read.place::<PostRef>().unwrap_err().kind(), ErrorKind::Invalid);
        }

        #[test]
        fn a_text_is_refused_or_is_what_the_cursor_would_write(text in "s?[0-9a-gA-Fé]{0,40}|.{0,60}") {
            match text.parse::<ListCursor>() {
                Ok(cursor) => prop_assert_eq!(cursor.to_string(), text),
                Err(error) => prop_assert_eq!(error.kind(), ErrorKind::Invalid),
            }
        }
    }
}
