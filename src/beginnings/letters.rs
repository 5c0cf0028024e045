//! Beginnings of names, as somebody types them: folded, cut at some lengths. Pure.

#[cfg(feature = "registration")]
use std::cmp::Reverse;
use std::collections::BTreeSet;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use crate::post::Tag;

/// Letters that a beginning may have: what is typed is cut to the longest of them, and the rest compared.
const LENGTHS: [usize; 11] = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16];
/// Words of a login, and of a display name, by whose beginnings an account is listed.
const WORDS_MAX: usize = 3;
/// Words of what somebody looks for. More are left out.
#[cfg(feature = "registration")]
const ASKED_WORDS_MAX: usize = 8;
/// Characters of what somebody looks for that are read.
#[cfg(feature = "registration")]
const ASKED_CHARS_MAX: usize = 200;
/// Accents of Latin, Greek and Cyrillic letters: nobody has to type them.
const ACCENTS: std::ops::RangeInclusive<char> = '\u{300}'..='\u{36f}';

/// An owner of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum NameOwner {
    Account,
    Hashtag,
}

/// The first letters of names, which have a list of who is called so.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Beginning {
    of: NameOwner,
    letters: String,
}

impl Beginning {
    /// As it stands in a key.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let letter = match self.of {
            NameOwner::Account => b'a',
            NameOwner::Hashtag => b't',
        };
        [&[letter], self.letters.as_bytes()].concat()
    }

    /// Reads one.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (letter, letters) = bytes.split_first()?;
        let of = match letter {
            b'a' => NameOwner::Account,
            b't' => NameOwner::Hashtag,
            _ => return None,
        };
        let letters = std::str::from_utf8(letters).ok()?.to_owned();
        LENGTHS.contains(&letters.chars().count()).then_some(Self { of, letters })
    }

    /// The longest one of a word.
    fn longest(of: NameOwner, word: &str) -> Option<Self> {
        Self::all(of, word).last()
    }

    /// All that a word has, the shortest first.
    fn all(of: NameOwner, word: &str) -> impl Iterator<Item = Self> {
        let chars = word.chars().count();
        let letters = |many: usize| word.chars().take(many).collect();
        LENGTHS
            .into_iter()
            .filter(move |many| *many <= chars)
            .map(move |many| Self { of, letters: letters(many) })
    }
}

/// The words of a text, as they are compared: without case, accents, and ways to write the same letter.
fn words(text: &str) -> impl Iterator<Item = String> {
    let lower: String = text.nfkd().filter(|c| !ACCENTS.contains(c)).flat_map(char::to_lowercase).collect();
    // Some capital letters become a small one with an accent.
    let folded: String = lower.nfkd().filter(|c| !ACCENTS.contains(c)).nfc().collect();
    let of_word = |c: char| c.is_alphanumeric() || is_combining_mark(c);
    let split: Vec<String> =
        folded.split(|c| !of_word(c)).filter(|word| !word.is_empty()).map(str::to_owned).collect();
    split.into_iter()
}

/// The names of an account, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AccountWords {
    login: Vec<String>,
    display_name: Vec<String>,
}

impl AccountWords {
    pub(crate) fn new(login: &str, display_name: &str) -> Self {
        Self { login: words(login).collect(), display_name: words(display_name).collect() }
    }

    /// By what it is found: of more words than [`WORDS_MAX`] only those in front.
    pub(crate) fn beginnings(&self) -> BTreeSet<Beginning> {
        self.listed().flat_map(|word| Beginning::all(NameOwner::Account, word)).collect()
    }

    /// The longest beginning of each word: who is on these lists was put on all.
    pub(crate) fn longest(&self) -> BTreeSet<Beginning> {
        self.listed().filter_map(|word| Beginning::longest(NameOwner::Account, word)).collect()
    }

    fn listed(&self) -> impl Iterator<Item = &String> {
        self.login.iter().take(WORDS_MAX).chain(self.display_name.iter().take(WORDS_MAX))
    }

    /// Whether one of its names begins so.
    #[cfg(feature = "registration")]
    pub(crate) fn begin_with(&self, beginning: &Beginning) -> bool {
        self.all().any(|word| word.starts_with(&beginning.letters))
    }

    #[cfg(feature = "registration")]
    fn all(&self) -> impl Iterator<Item = &String> {
        self.login.iter().chain(&self.display_name)
    }
}

/// The words that somebody has typed, looking for accounts.
#[cfg(feature = "registration")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TypedName(Vec<String>);

#[cfg(feature = "registration")]
impl TypedName {
    /// `None`: there is no word in it.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let text: String = text.chars().take(ASKED_CHARS_MAX).collect();
        let words: Vec<String> = words(&text).take(ASKED_WORDS_MAX).collect();
        (!words.is_empty()).then_some(Self(words))
    }

    /// On which lists to look, one after the other until somebody is found: those of the longest words first, which
    /// have the fewest names. Of a name with many words some have none.
    pub(crate) fn beginnings(&self) -> Vec<Beginning> {
        let mut words: Vec<&String> = self.0.iter().collect();
        words.sort_by_key(|word| Reverse(word.chars().count()));
        words.into_iter().filter_map(|word| Beginning::longest(NameOwner::Account, word)).collect()
    }

    /// Whether each of the words is how one of the account's begins.
    pub(crate) fn is_of(&self, account: &AccountWords) -> bool {
        self.0.iter().all(|typed| account.all().any(|word| word.starts_with(typed.as_str())))
    }
}

/// By what a hashtag is found.
pub(crate) fn beginnings_of(tag: &Tag) -> impl Iterator<Item = Beginning> {
    Beginning::all(NameOwner::Hashtag, tag.as_str())
}

/// On whose list to look for hashtags that begin with this one.
pub(crate) fn beginning_of(tag: &Tag) -> Option<Beginning> {
    Beginning::longest(NameOwner::Hashtag, tag.as_str())
}

#[cfg(all(test, feature = "registration"))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn finds(typed: &str, login: &str, display_name: &str) -> bool {
        let account = AccountWords::new(login, display_name);
        let Some(typed) = TypedName::new(typed) else { return false };
        let is_on =
            |beginning: &Beginning| account.beginnings().contains(beginning) && account.begin_with(beginning);
        typed.beginnings().iter().any(is_on) && typed.is_of(&account)
    }

    #[test]
    fn an_account_is_found_by_how_its_words_begin() {
        for typed in ["a", "AD", "ada", "love", "ada love", "Lovelace, Ada", "@ada", "countess l a", "e"] {
            assert!(finds(typed, "ada_e", "Countess Lovelace"), "{typed:?}");
        }
        for typed in ["", "@", "da", "adam", "ada byron", "lovelaces", "ada_ee"] {
            assert!(!finds(typed, "ada_e", "Countess Lovelace"), "{typed:?}");
        }
        assert!(
            finds("etienne", "x", "Étienne")
                && finds("É", "x", "etienne")
                && finds("STRASSE", "x", "ＳＴＲasse")
        );
        assert!(finds("東京", "x", "東京タワー") && finds("हिन्", "x", "हिन्दी"));
        // A long name is found by its first letters, and by all of them.
        let long = "abcdefghijklmnopqrstuvwxyz1234";
        for many in 1..=long.len() {
            assert!(finds(&long[..many], long, ""), "{many}");
        }
        assert!(!finds("abcdefghijklmnopqX", long, ""));
        // Of many words the first are listed; the others still tell two people apart.
        assert!(finds("one four", "x", "one two three four") && !finds("four", "x", "one two three four"));
    }

    #[test]
    fn lists_are_bounded_in_number_and_in_length() {
        let account = AccountWords::new(&"abcdefghij.".repeat(20), &"абвгдежзийклмнопрст ".repeat(20));
        assert_eq!(account.beginnings().len(), 9 + 11);
        let many: String = (0..20).map(|i| format!("{i:020} ")).collect();
        assert!(AccountWords::new(&many, &many).beginnings().len() <= 2 * WORDS_MAX * LENGTHS.len());
        assert_eq!(AccountWords::new("", "").beginnings().len(), 0);
    }

    proptest! {
        #[test]
        fn whatever_somebody_is_called_is_found_by_each_beginning_of_its_first_words(
            login in "[a-zA-Z0-9_.-]{1,30}", name in "\\PC{0,40}", many in 1usize..20
        ) {
            let account = AccountWords::new(&login, &name);
            for word in account.listed() {
                let typed: String = word.chars().take(many).collect();
                // Some letters alone are none: marks that belong to the one before them.
                prop_assert!(finds(&typed, &login, &name) || is_combining_mark(word.chars().next().unwrap()));
            }
        }

        #[test]
        fn a_beginning_survives_its_bytes(login in "\\PC{1,40}", bytes: Vec<u8>) {
            for beginning in AccountWords::new(&login, "").beginnings() {
                let bytes = beginning.to_bytes();
                prop_assert!(bytes.len() <= 65);
                prop_assert_eq!(Beginning::from_bytes(&bytes), Some(beginning));
            }
            let _ = Beginning::from_bytes(&bytes);
        }

        #[test]
        fn reading_what_is_typed_never_panics(typed: String) {
            let _ = TypedName::new(&typed).map(|typed| typed.beginnings());
        }
    }
}
