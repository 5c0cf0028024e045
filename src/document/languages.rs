//! In which languages an account wants to read others, as a document that pages go by has it. Pure.

use std::collections::BTreeMap;

use super::{DOCUMENT_BYTES_MAX, Document};
use crate::cluster::Reply;
use crate::error::{Error, ErrorCode, Result};
use crate::ids::AccountId;
use crate::post::is_language;

/// Languages in which an account reads another one.
pub const LANGUAGES_MAX: usize = 16;
/// First byte of the document: the form that this release knows.
const FORM: u8 = 1;

/// In which languages an account wants posts of whom it follows, in its home and on pages of chosen accounts
/// ([`Reader::read_chosen`](crate::Reader::read_chosen)). Whoever isn't named is read in all of them.
///
/// The language of a post counts, and `en` is `en-GB` too. A post that says none shows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WantedLanguages(BTreeMap<u64, Vec<String>>);

impl WantedLanguages {
    /// Reads them from the bytes of a document; `None`: the bytes are of a form that this release doesn't know, and say
    /// nothing.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (form, mut rest) = bytes.split_first()?;
        let mut all = BTreeMap::new();
        while let Some((account, behind)) = rest.split_first_chunk::<8>() {
            let (many, mut behind) = behind.split_first()?;
            let mut languages = Vec::with_capacity((*many).into());
            for _ in 0..*many {
                let (len, text) = behind.split_first()?;
                let (language, others) = text.split_at_checked((*len).into())?;
                languages
                    .push(std::str::from_utf8(language).ok().filter(|_| is_language(language))?.to_owned());
                behind = others;
            }
            all.insert(u64::from_be_bytes(*account), languages);
            rest = behind;
        }
        (*form == FORM && rest.is_empty()).then_some(Self(all))
    }

    /// Writes them as the bytes of a document.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![FORM];
        let byte = |len: usize| u8::try_from(len).unwrap_or(u8::MAX);
        for (account, languages) in &self.0 {
            bytes.extend(account.to_be_bytes());
            bytes.push(byte(languages.len()));
            for language in languages {
                bytes.push(byte(language.len()));
                bytes.extend(language.as_bytes());
            }
        }
        bytes
    }

    /// The languages in which that account is read; `None`: in all.
    pub fn of(&self, account: AccountId) -> Option<&[String]> {
        self.0.get(&account.get()).map(Vec::as_slice)
    }

    /// Whether nobody is read in some languages only.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Has an account read in these languages only; of none in all.
    ///
    /// [`Invalid`](crate::ErrorKind::Invalid): one of them is none, they are more than [`LANGUAGES_MAX`], or all
    /// together are more than a document holds. Nothing has changed then.
    pub fn set(&mut self, account: AccountId, languages: &[String]) -> Result<()> {
        if languages.len() > LANGUAGES_MAX {
            let many = languages.len();
            return Err(Error::out_of_range(format!(
                "{many} languages of one account: at most {LANGUAGES_MAX}"
            )));
        }
        if let Some(language) = languages.iter().find(|language| !is_language(language.as_bytes())) {
            return Err(Error::new(
                ErrorCode::Malformed,
                format!("language {language:?} is none that a post can have"),
            ));
        }
        let before = match languages.is_empty() {
            true => self.0.remove(&account.get()),
            false => self.0.insert(account.get(), languages.to_vec()),
        };
        if self.to_bytes().len() <= DOCUMENT_BYTES_MAX || languages.is_empty() {
            return Ok(());
        }
        match before {
            Some(before) => drop(self.0.insert(account.get(), before)),
            None => drop(self.0.remove(&account.get())),
        }
        let many = self.0.len();
        let text = format!(
            "the list of {many} accounts that are read in some languages only takes more than the \
             {DOCUMENT_BYTES_MAX} bytes allowed. Read some of these accounts in all languages"
        );
        Err(Error::new(ErrorCode::LimitReached, text))
    }

    /// Whether a post of that account in this language is wanted.
    pub(crate) fn want(&self, account: u64, language: Option<&str>) -> bool {
        let (Some(wanted), Some(language)) = (self.0.get(&account), language) else { return true };
        wanted.iter().any(|wanted| {
            let rest = language.get(wanted.len()..).unwrap_or("x");
            let begins = language.get(..wanted.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(wanted));
            begins && (rest.is_empty() || rest.starts_with('-'))
        })
    }

    /// The languages of a stored document; of one that isn't there, or can't be read, none.
    pub(crate) fn of_stored(stored: &Reply) -> Result<Self> {
        let document = Document::parse(stored)?;
        Ok(document.and_then(|document| Self::from_bytes(&document.bytes)).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use proptest::prelude::*;

    fn account(id: u64) -> AccountId {
        AccountId::new(id).unwrap()
    }

    fn texts(languages: &[&str]) -> Vec<String> {
        languages.iter().map(|language| (*language).to_owned()).collect()
    }

    #[test]
    fn a_language_holds_its_kinds_and_a_post_without_one_shows() {
        let mut wanted = WantedLanguages::default();
        wanted.set(account(7), &texts(&["en", "pt-BR"])).unwrap();
        for (language, is_wanted) in [
            (Some("en"), true),
            (Some("EN-gb"), true),
            (Some("pt-BR"), true),
            (Some("pt"), false),
            (Some("eng"), false),
            (Some("de"), false),
            (None, true),
        ] {
            assert_eq!(wanted.want(7, language), is_wanted, "{language:?}");
        }
        assert!(wanted.want(8, Some("de")));
        wanted.set(account(7), &[]).unwrap();
        assert!(wanted.is_empty() && wanted.want(7, Some("de")));
    }

    #[test]
    fn what_has_no_room_changes_nothing() {
        let mut wanted = WantedLanguages::default();
        let many = texts(&["abcdefgh"; LANGUAGES_MAX]);
        let full = (1..).find(|id| wanted.set(account(*id), &many).is_err()).unwrap();
        assert!(wanted.to_bytes().len() <= DOCUMENT_BYTES_MAX && wanted.of(account(full)).is_none());
        assert_eq!(WantedLanguages::from_bytes(&wanted.to_bytes()), Some(wanted.clone()));
        wanted.set(account(1), &[]).unwrap();
        wanted.set(account(full), &many).unwrap();
        for wrong in [texts(&["en"; LANGUAGES_MAX + 1]), texts(&["e n"]), texts(&[""]), texts(&["abcdefghi"])]
        {
            let refused = wanted.set(account(2), &wrong).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Invalid, "{wrong:?}");
        }
        assert_eq!(wanted.of(account(2)), Some(many.as_slice()));
    }

    proptest! {
        #[test]
        fn they_survive_their_bytes_and_other_bytes_say_nothing_or_the_same(
            all in proptest::collection::btree_map(1..99_u64, proptest::collection::vec("[a-z]{2,8}", 1..4), 0..9),
            bytes: Vec<u8>
        ) {
            let wanted = WantedLanguages(all);
            prop_assert_eq!(WantedLanguages::from_bytes(&wanted.to_bytes()), Some(wanted));
            let _ = WantedLanguages::from_bytes(&bytes);
        }
    }
}
