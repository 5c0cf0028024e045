//! Hashtags as they are compared.

use std::fmt;
#[expect(deprecated, reason = "see `sip_hash`")]
use std::hash::{Hasher as _, SipHasher};
use std::str::FromStr;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use super::HASHTAG_LEN_MAX;
use crate::bucket::{fnv, mix64};
use crate::error::{Error, ErrorCode, Result, excerpt};

/// Inside a hashtag, beside letters, marks, digits and underscores: the middle dot of Catalan, that of Japanese, and
/// the sign that keeps Persian letters apart. Never at its end.
const JOINERS: [char; 3] = ['\u{b7}', '\u{30fb}', '\u{200c}'];
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
        let refused = |code: ErrorCode, why: &str| {
            let shown = excerpt(name);
            Error::new(code, format!("hashtag {shown:?}: {why}"))
        };
        // A character becomes at most eighteen: what is far too long needn't be looked through.
        if name.len() > HASHTAG_LEN_MAX * 8 {
            return Err(refused(
                ErrorCode::OutOfRange,
                &format!("{} bytes; at most {HASHTAG_LEN_MAX} are allowed", name.len()),
            ));
        }
        let name = name.strip_prefix(is_sign).unwrap_or(name);
        let name = settled(name);
        if name.is_empty() {
            return Err(refused(ErrorCode::Malformed, "it has no letter, digit or underscore"));
        }
        if name.len() > HASHTAG_LEN_MAX {
            return Err(refused(
                ErrorCode::OutOfRange,
                &format!("{} bytes; at most {HASHTAG_LEN_MAX} are allowed", name.len()),
            ));
        }
        let mut bytes = [0; HASHTAG_LEN_MAX];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        let len = u8::try_from(name.len()).map_err(|e| Error::internal(e.to_string()))?;
        Ok(Self { len, bytes })
    }

    /// The hashtag's name, as it is compared.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }

    /// The number that its list is found by. Two tags with one number share a list, and each shows its own posts only.
    /// Stored data depends on it.
    pub(crate) fn number(&self, key: TagKey) -> u64 {
        key.hash(&self.bytes[..usize::from(self.len)])
    }
}

/// The key that the numbers of a tenant's hashtags are computed with. Nobody who doesn't know it finds two with one
/// number (H63).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct TagKey(Option<[u8; TagKey::LEN]>);

impl TagKey {
    /// Bytes of a key.
    pub(crate) const LEN: usize = 16;
    /// Of data that was initialized before there were keys: FNV-1a, mixed.
    pub(crate) const NONE: Self = Self(None);

    pub(crate) fn new(key: [u8; Self::LEN]) -> Self {
        Self(Some(key))
    }

    pub(crate) fn hash(self, bytes: &[u8]) -> u64 {
        match self.0 {
            Some(key) => sip_hash(key, bytes),
            None => mix64(fnv(bytes)),
        }
    }
}

/// It is a secret.
impl fmt::Debug for TagKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "TagKey(..)" } else { "TagKey(none)" })
    }
}

/// SipHash-2-4.
#[expect(
    deprecated,
    reason = "deprecated for hash maps, in favour of one whose algorithm may change; stored data needs this very one"
)]
fn sip_hash(key: [u8; TagKey::LEN], bytes: &[u8]) -> u64 {
    let (halves, _) = key.as_chunks::<8>();
    let [first, second] = [0, 1].map(|half| u64::from_le_bytes(halves[half]));
    let mut hasher = SipHasher::new_with_keys(first, second);
    hasher.write(bytes);
    hasher.finish()
}

/// Normalizes a name; again, until nothing changes: what was between two characters may have kept them apart.
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

crate::serialized::as_text!(Tag);

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

    /// The paper's key.
    const SIXTEEN: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

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
        let key = TagKey::new(SIXTEEN);
        let number = |name: &str, key| Tag::new(name).unwrap().number(key);
        assert_eq!(number("tide", TagKey::NONE), 17_604_226_807_815_553_839);
        assert_eq!(number("tide", key), 557_276_856_395_641_620);
        for key in [TagKey::NONE, key] {
            assert_ne!(number("tide", key), number("tides", key));
        }
        assert_ne!(number("tide", key), number("tide", TagKey::new([7; 16])));
        assert_eq!(format!("{key:?}"), "TagKey(..)");
    }

    #[test]
    fn the_hash_is_that_of_the_paper() {
        // Appendix A of "SipHash: a fast short-input PRF".
        assert_eq!(sip_hash(SIXTEEN, &SIXTEEN[..15]), 0xa129_ca61_49be_45e5);
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
