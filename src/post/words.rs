//! The words of a text as they are searched for. Pure.
//!
//! Two ways to write a word are one: upper and lower case, with accents and without, compatibility forms. In scripts
//! that put no spaces between words each character is one: who searches for two of them finds posts that have both.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use super::Post;
use crate::archive::{SEARCH_WORDS_MAX, WORD_LEN_MAX};
use crate::error::{Error, ErrorCode, Result, excerpt};

/// Bytes of all words that are searched for, as they are compared, with a space between two.
pub const SEARCH_LEN_MAX: usize = 100;

/// The words that a search asks for: a post has to have all of them.
///
/// At most [`SEARCH_LEN_MAX`] bytes, kept inline, so that a [`Query`](crate::Query) can be copied.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SearchWords {
    len: u8,
    /// UTF-8, words in their order with a space between two, zeros behind.
    bytes: [u8; SEARCH_LEN_MAX],
}

impl SearchWords {
    /// The words of that text, however they are written.
    ///
    /// [`Invalid`](crate::ErrorKind::Invalid): it has no word, or more than 16, or they take more than
    /// [`SEARCH_LEN_MAX`] bytes.
    pub fn new(text: &str) -> Result<Self> {
        let refused = |code: ErrorCode, why: String| {
            let shown = excerpt(text);
            Error::new(code, format!("search for {shown:?}: {why}"))
        };
        // What is far too long needn't be looked through.
        if text.len() > SEARCH_LEN_MAX * 8 {
            let why = format!("{} bytes; at most {SEARCH_LEN_MAX} are allowed", text.len());
            return Err(refused(ErrorCode::OutOfRange, why));
        }
        let words = words_of(text);
        if words.is_empty() {
            return Err(refused(ErrorCode::Malformed, "it has no letter and no digit".into()));
        }
        let joined = words.iter().map(String::as_str).collect::<Vec<_>>().join(" ");
        if words.len() > SEARCH_WORDS_MAX || joined.len() > SEARCH_LEN_MAX {
            let (many, len) = (words.len(), joined.len());
            let why = format!(
                "{many} words of {len} bytes; at most {SEARCH_WORDS_MAX} words and {SEARCH_LEN_MAX} bytes are allowed"
            );
            return Err(refused(ErrorCode::OutOfRange, why));
        }
        let mut bytes = [0; SEARCH_LEN_MAX];
        bytes[..joined.len()].copy_from_slice(joined.as_bytes());
        let len = u8::try_from(joined.len()).map_err(|e| Error::internal(e.to_string()))?;
        Ok(Self { len, bytes })
    }

    /// The words as they are compared, with a space between two.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }

    /// One by one.
    pub(crate) fn words(&self) -> impl Iterator<Item = &str> {
        self.as_str().split(' ')
    }

    /// Whether a post has all of them.
    pub(crate) fn are_in(&self, post: &Post) -> bool {
        let words = words_of_post(post);
        self.words().all(|word| words.contains(word))
    }
}

impl fmt::Display for SearchWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for SearchWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SearchWords({:?})", self.as_str())
    }
}

impl FromStr for SearchWords {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::new(text)
    }
}

crate::serialized::as_text!(SearchWords);

/// The words by which a post is found: those of its text and of its content warning.
pub(crate) fn words_of_post(post: &Post) -> BTreeSet<String> {
    let content = post.content();
    let mut words = words_of(&content.text);
    words.extend(content.content_warning.iter().flat_map(|warning| words_of(warning)));
    words
}

/// The words of a text, each once. A long one is cut off. Stored data depends on it.
fn words_of(text: &str) -> BTreeSet<String> {
    let is_letter = |c: &char| !is_combining_mark(*c);
    let lower = text.nfkd().filter(is_letter).flat_map(char::to_lowercase).filter(is_letter);
    // At the end of a word it has another form.
    let folded: String = lower.map(|c| if c == 'ς' { 'σ' } else { c }).nfc().collect();
    let mut words = BTreeSet::new();
    for run in folded.split(|c: char| !c.is_alphanumeric()) {
        for part in run.split_inclusive(is_word_itself) {
            let end = part.char_indices().next_back().filter(|(_, last)| is_word_itself(*last));
            let (word, alone) = part.split_at(end.map_or(part.len(), |(at, _)| at));
            words.extend([word, alone].into_iter().filter(|word| !word.is_empty()).map(cut));
        }
    }
    words
}

fn cut(word: &str) -> String {
    let end =
        word.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= WORD_LEN_MAX).last();
    word[..end.unwrap_or(0)].to_owned()
}

/// Whether it is of a script without spaces: kana, Han, Thai, Lao, Burmese, Khmer.
fn is_word_itself(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::error::ErrorKind;

    fn words(text: &str) -> Vec<String> {
        words_of(text).into_iter().collect()
    }

    #[test]
    fn two_ways_to_write_a_word_are_one() {
        for (text, found) in [
            ("Der Fuchs, der ROTE.", &["der", "fuchs", "rote"][..]),
            ("élan ÉLAN e\u{301}lan", &["elan"]),
            ("Straße İzmir ΣΟΦΟΣ σοφος σοφός", &["izmir", "straße", "σοφοσ"]),
            ("ﬁsh ＦＩＳＨ", &["fish"]),
            ("#Tide @ada https://example.org/a_b", &["a", "ada", "b", "example", "https", "org", "tide"]),
            ("猫が 2 匹abc", &["2", "abc", "が", "匹", "猫"]),
            ("한국어 한국", &["한국", "한국어"]),
            ("—…!", &[]),
        ] {
            // The voiced sound of a syllable is a mark to Unicode.
            let found: Vec<String> = found.iter().map(|word| word.replace('が', "か")).collect();
            let (mut got, mut found) = (words(text), found);
            got.sort();
            found.sort();
            assert_eq!(got, found, "{text}");
        }
        assert_eq!(words(&"ä".repeat(90)), ["a".repeat(WORD_LEN_MAX)]);
        assert_eq!(words(&"ж".repeat(90)), ["ж".repeat(WORD_LEN_MAX / 2)]);
    }

    #[test]
    fn what_cannot_be_searched_for_is_refused_with_its_reason() {
        let many: Vec<String> = (0..17).map(|n| n.to_string()).collect();
        for (text, says) in [
            ("  ?!", "it has no letter and no digit"),
            (&*many.join(" "), "17 words of "),
            (&"ab ".repeat(300), "900 bytes; at most 100"),
            (&(0..4).map(|n| format!("{n}{} ", "x".repeat(30))).collect::<String>(), "4 words of 127 bytes"),
        ] {
            let refused = SearchWords::new(text).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Invalid);
            assert!(refused.to_string().contains(says), "{refused}");
        }
        assert_eq!(SearchWords::new("Rote  rote FÜCHSE").unwrap().as_str(), "fuchse rote");
    }

    proptest! {
        #[test]
        fn words_are_fit_for_the_index_and_found_again(text in "\\PC{0,80}") {
            let words = words_of(&text);
            for word in &words {
                prop_assert!((1..=WORD_LEN_MAX).contains(&word.len()));
                prop_assert!(word.chars().all(|c| !c.is_ascii() || c.is_ascii_alphanumeric()), "{:?}", word);
            }
            if let Ok(asked) = SearchWords::new(&text) {
                prop_assert_eq!(asked.to_string().parse::<SearchWords>().unwrap(), asked);
                prop_assert!(asked.words().all(|word| words.contains(word)));
            }
        }
    }
}
