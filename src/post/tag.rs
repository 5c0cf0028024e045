//! Hashtags as they are compared.

use std::fmt;
use std::str::FromStr;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use super::HASHTAG_LEN_MAX;
use crate::bucket::mix64;
use crate::error::{Error, Result};

/// Inside a hashtag, beside letters, marks, digits and underscores: the middle dot of Catalan, that of Japanese, and
/// the sign that keeps Persian letters apart. Never at its end.
const JOINERS: [char; 3] = ['\u{b7}', '\u{30fb}', '\u{200c}'];
/// So much of a text that is no hashtag is repeated in the error.
const SHOWN_MAX: usize = 40;
/// Passes after which a name no longer changes; nearly always the first.
const PASSES_MAX: usize = 4;

/// A hashtag, without its sign: two ways to write one are equal (NFKC, lower case, nothing that no hashtag has).
///
/// At most [`HASHTAG_LEN_MAX`] bytes, kept inline, so that a [`Query`](crate::Query) can be copied.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tag {
    len: u8,
    /// UTF-8, zeros behind.
    bytes: [u8; HASHTAG_LEN_MAX],
}

impl Tag {
    /// The hashtag of that name, however it is written; a `#` in front is left out.
    ///
    /// [`Invalid`](crate::ErrorKind::Invalid): nothing is left of it, or more than [`HASHTAG_LEN_MAX`] bytes.
    pub fn new(name: &str) -> Result<Self> {
        let refused = |why: &str| {
            let shown: String = name.chars().take(SHOWN_MAX).collect();
            Error::invalid(format!("hashtag {shown:?} {why}"))
        };
        // A character becomes at most eighteen: what is far too long needn't be looked through.
        if name.len() > HASHTAG_LEN_MAX * 8 {
            return Err(refused(&format!("has {} bytes, at most {HASHTAG_LEN_MAX} are allowed", name.len())));
        }
        let name = name.strip_prefix(is_sign).unwrap_or(name);
        let name = settled(name);
        if name.is_empty() {
            return Err(refused("has no letter, digit or underscore"));
        }
        if name.len() > HASHTAG_LEN_MAX {
            return Err(refused(&format!("has {} bytes, at most {HASHTAG_LEN_MAX} are allowed", name.len())));
        }
        let mut bytes = [0; HASHTAG_LEN_MAX];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        let len = u8::try_from(name.len()).map_err(|e| Error::internal(e.to_string()))?;
        Ok(Self { len, bytes })
    }

    /// Its name, as it is compared.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }

    /// What its list is found by. Two tags with one number share a list, and each shows its own posts only. Stored data
    /// depends on it: FNV-1a, mixed.
    pub(crate) fn number(&self) -> u64 {
        let fnv = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        mix64(self.bytes[..usize::from(self.len)].iter().fold(0xcbf2_9ce4_8422_2325, fnv))
    }
}

/// What a name becomes; again, until nothing changes: what was between two characters may have kept them apart.
fn settled(name: &str) -> String {
    let pass = |name: &str| -> String {
        let lower: String = name.nfkc().flat_map(char::to_lowercase).filter(|c| is_inside(*c)).collect();
        lower.nfkc().collect::<String>().trim_matches(JOINERS).to_owned()
    };
    let mut name = pass(name);
    for _ in 1..PASSES_MAX {
        let next = pass(&name);
        if next == name {
            break;
        }
        name = next;
    }
    name
}

/// The signs that hashtags begin with: the usual one and the wide one of East Asian keyboards.
pub(super) fn is_sign(c: char) -> bool {
    matches!(c, '#' | '\u{ff03}')
}

/// Letters, digits and marks of any script, and the underscore: what words are made of.
pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || is_combining_mark(c)
}

/// Whether a hashtag may go on with this.
pub(super) fn is_inside(c: char) -> bool {
    is_word(c) || JOINERS.contains(&c)
}

/// The hashtag at the beginning of `rest`, which follows its sign: how many bytes, 0 if there is none.
pub(super) fn len_at_start(rest: &str) -> usize {
    let end = rest.find(|c| !is_inside(c)).unwrap_or(rest.len());
    let name = rest[..end].trim_end_matches(JOINERS);
    // A mark in front belongs to the sign (an emoji), and numbers alone are numbers.
    let begins = name.chars().next().is_some_and(|c| c.is_alphanumeric() || c == '_');
    if begins && name.contains(char::is_alphabetic) { name.len() } else { 0 }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.as_str())
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Tag {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::new(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use proptest::prelude::*;

    fn tag(name: &str) -> String {
        Tag::new(name).unwrap().to_string()
    }

    #[test]
    fn two_ways_to_write_one_tag_are_equal() {
        for (written, name) in [
            ("Tide", "tide"),
            ("#TIDE", "tide"),
            ("\u{ff03}\u{ff34}ide", "tide"),
            ("Stra\u{df}e", "stra\u{df}e"),
            ("cafe\u{301}", "caf\u{e9}"),
            ("\u{fb01}sh", "fish"),
            ("new york", "newyork"),
            ("l\u{b7}l", "l\u{b7}l"),
            ("\u{645}\u{6cc}\u{200c}\u{62e}", "\u{645}\u{6cc}\u{200c}\u{62e}"),
            ("tide\u{200c}", "tide"),
            ("1984", "1984"),
        ] {
            assert_eq!(tag(written), name, "{written}");
        }
    }

    #[test]
    fn refuses_what_is_no_tag() {
        for name in ["", "#", "!?", "\u{200c}", &"x".repeat(HASHTAG_LEN_MAX + 1), &"x".repeat(1_000_000)] {
            let error = Tag::new(name).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.to_string().len() < 300);
        }
    }

    #[test]
    fn the_number_of_a_tag_never_changes() {
        assert_eq!(Tag::new("tide").unwrap().number(), 17_604_226_807_815_553_839);
        assert_ne!(Tag::new("tide").unwrap().number(), Tag::new("tides").unwrap().number());
    }

    proptest! {
        #[test]
        fn a_tag_is_what_it_reads_as(name in "\\PC{0,40}") {
            if let Ok(tag) = Tag::new(&name) {
                prop_assert_eq!(Tag::new(tag.as_str()).unwrap(), tag);
                prop_assert!(tag.as_str().len() <= HASHTAG_LEN_MAX);
                prop_assert!(tag.as_str().chars().all(is_inside));
            }
        }
    }
}
