//! Documents: small things that a service keeps with an account under names of its own (filters, markers, preferences).
//! They are stored in a hash, each as 8 random bytes that change with each change, then its bytes. Registration writes
//! them. Pages go by three of them, which are of forms that the engine knows: [`IdList`], [`WantedLanguages`].

mod languages;

use std::fmt;

pub use self::languages::{LANGUAGES_MAX, WantedLanguages};
use crate::cluster::Reply;
use crate::error::{Error, Result};
use crate::nonce::Nonce;

/// Bytes of a document's name, which is printable ASCII.
pub const DOCUMENT_NAME_BYTES_MAX: usize = 64;
/// Bytes of one document.
pub const DOCUMENT_BYTES_MAX: usize = 16 * 1_024;
/// Documents of one account.
pub const DOCUMENTS_MAX: u32 = 512;
/// Bytes of all documents of one account, and 8 for each of them. Their names don't count.
pub const DOCUMENTS_BYTES_MAX: u32 = 256 * 1_024;

/// Documents of an account that change together.
pub const DOCUMENTS_AT_ONCE_MAX: usize = 8;

/// The document of whose posts an account leaves out of its home: an [`IdList`] of accounts. Elsewhere they show, and
/// on pages of chosen accounts ([`Reader::read_chosen`](crate::Reader::read_chosen)).
pub const LEFT_OUT: &str = "left-out";
/// The document of conversations of which an account wants no notifications: an [`IdList`] of the posts that began
/// them.
pub const MUTED_CONVERSATIONS: &str = "muted-conversations";
/// The document of the languages in which an account reads others, at home and on pages of chosen accounts:
/// [`WantedLanguages`].
pub const FOLLOW_LANGUAGES: &str = "follow-languages";
/// Ids of an [`IdList`].
pub const IDS_MAX: usize = 2_000;
/// First byte of an [`IdList`]: the form that this release knows.
const IDS_FORM: u8 = 1;

/// The documents that pages go by, in the order in which a reader's state has them.
pub(crate) const OF_PAGES: [&str; 3] = [LEFT_OUT, MUTED_CONVERSATIONS, FOLLOW_LANGUAGES];

/// A list of ids, as a document that pages go by has it: each once, the one that was added last is the last.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IdList(Vec<u64>);

impl IdList {
    /// Takes ids in this order, each where it comes last. Where they are more than [`IDS_MAX`], the first ones don't
    /// count.
    pub fn of(ids: impl IntoIterator<Item = u64>) -> Self {
        let mut list = Self::default();
        ids.into_iter().for_each(|id| list.add(id));
        list
    }

    /// Reads a list from the bytes of a document; `None`: the bytes are of a form that this release doesn't know, and
    /// say nothing.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (form, ids) = bytes.split_first()?;
        let (ids, rest) = ids.as_chunks::<8>();
        let is_known = *form == IDS_FORM && rest.is_empty() && ids.len() <= IDS_MAX;
        is_known.then(|| Self(ids.iter().map(|id| u64::from_be_bytes(*id)).collect()))
    }

    /// Writes the list as the bytes of a document.
    pub fn to_bytes(&self) -> Vec<u8> {
        let ids = self.0.iter().flat_map(|id| id.to_be_bytes());
        [IDS_FORM].into_iter().chain(ids).collect()
    }

    /// The ids, the one that was added first first.
    pub fn ids(&self) -> &[u64] {
        &self.0
    }

    /// Adds an id, as the last one. Where there are [`IDS_MAX`] others, the first one makes room.
    pub fn add(&mut self, id: u64) {
        self.remove(id);
        if self.0.len() == IDS_MAX {
            self.0.remove(0);
        }
        self.0.push(id);
    }

    /// Takes an id off. Tells whether it was there.
    pub fn remove(&mut self, id: u64) -> bool {
        let before = self.0.len();
        self.0.retain(|other| *other != id);
        self.0.len() < before
    }

    /// The ids of a stored document, sorted; of one that isn't there, or can't be read, none.
    pub(crate) fn sorted_of(stored: &Reply) -> Result<Vec<u64>> {
        let document = Document::parse(stored)?;
        let mut ids = document.and_then(|document| Self::from_bytes(&document.bytes)).unwrap_or_default().0;
        ids.sort_unstable();
        Ok(ids)
    }
}

/// A version of a document: another one after each change, whatever that was.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DocumentVersion(pub(crate) Nonce);

impl DocumentVersion {
    /// The version whose [`to_bytes`](Self::to_bytes) these are.
    pub fn from_bytes(bytes: [u8; 8]) -> Self {
        Self(bytes)
    }

    /// Writes the version as bytes: to store it elsewhere, or to hand it to a client (an `ETag`).
    pub fn to_bytes(self) -> [u8; 8] {
        self.0
    }
}

impl fmt::Debug for DocumentVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DocumentVersion({:016x})", u64::from_be_bytes(self.0))
    }
}

/// A document of an account, as it was read.
#[derive(Clone, PartialEq, Eq)]
pub struct Document {
    /// Which version it is: who changes it names that one.
    pub version: DocumentVersion,
    /// The bytes that somebody has written, possibly none.
    pub bytes: Vec<u8>,
}

/// Without what it says, which may be private.
impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = format_args!("{} bytes", self.bytes.len());
        f.debug_struct("Document").field("version", &self.version).field("bytes", &bytes).finish()
    }
}

impl Document {
    /// Reads one, as it is stored; `None`: there is none.
    pub(crate) fn parse(stored: &Reply) -> Result<Option<Self>> {
        if stored.is_nil() {
            return Ok(None);
        }
        let stored = stored.bytes()?;
        let (version, bytes) = stored
            .split_first_chunk::<8>()
            .ok_or_else(|| Error::internal(format!("a document of {} bytes has no version", stored.len())))?;
        Ok(Some(Self { version: DocumentVersion(*version), bytes: bytes.to_vec() }))
    }

    /// Reads all of an account, by their names.
    pub(crate) fn parse_all(stored: Reply) -> Result<Vec<(String, Self)>> {
        let stored = stored.into_array()?;
        let mut all = Vec::with_capacity(stored.len() / 2);
        for [name, document] in stored.as_chunks::<2>().0 {
            let document = Self::parse(document)?;
            all.extend(
                document.map(|document| Ok::<_, Error>((name.text()?.to_owned(), document))).transpose()?,
            );
        }
        all.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Ok(all)
    }
}

/// Refuses what is no name of a document, as `Invalid`.
#[cfg(feature = "registration")]
pub(crate) fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > DOCUMENT_NAME_BYTES_MAX {
        let bytes = name.len();
        return Err(Error::out_of_range(format!(
            "a document's name: {bytes} bytes; 1 to {DOCUMENT_NAME_BYTES_MAX} are allowed"
        )));
    }
    if !name.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) {
        return Err(Error::invalid(format!("a document's name, {name:?}: only printable ASCII is allowed")));
    }
    Ok(())
}

/// A document as it is stored; one that is too long is `Invalid`.
#[cfg(feature = "registration")]
pub(crate) fn stored(version: &Nonce, bytes: &[u8]) -> Result<Vec<u8>> {
    if bytes.len() > DOCUMENT_BYTES_MAX {
        return Err(Error::out_of_range(format!(
            "a document: {} bytes; at most {DOCUMENT_BYTES_MAX} are allowed",
            bytes.len()
        )));
    }
    Ok([version, bytes].concat())
}

#[cfg(all(test, feature = "registration"))]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_printable() {
        let longest = "n".repeat(DOCUMENT_NAME_BYTES_MAX);
        for name in ["l:17", " ", "~", "filters v2", &longest] {
            check_name(name).unwrap();
        }
        let long = "n".repeat(DOCUMENT_NAME_BYTES_MAX + 1);
        for name in ["", "\n", "caf\u{e9}", "a\u{7f}", &long] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn what_is_stored_is_read_and_what_is_not_is_refused() {
        let (version, longest) = ([7; 8], vec![b'x'; DOCUMENT_BYTES_MAX]);
        for bytes in [&b""[..], b"{}", &longest] {
            let stored = Reply::of_items(vec![
                Reply::text_of("b"),
                Reply::of_bytes(&stored(&version, bytes).unwrap()),
                Reply::text_of("a"),
                Reply::of_bytes(&version),
            ]);
            let all = Document::parse_all(stored).unwrap();
            let document =
                |bytes: &[u8]| Document { version: DocumentVersion(version), bytes: bytes.to_vec() };
            assert_eq!(all, [("a".to_owned(), document(b"")), ("b".to_owned(), document(bytes))]);
        }
        stored(&version, &[longest.as_slice(), b"x"].concat()).unwrap_err();
        assert!(Document::parse(&Reply::text_of("1234567")).is_err());
        assert_eq!(Document::parse(&Reply::of_nil()).unwrap(), None);
    }

    #[test]
    fn a_list_of_ids_has_each_once_and_room_for_the_last() {
        let list = IdList::of([7, 5, 7, 9]);
        assert_eq!(list.ids(), [5, 7, 9]);
        assert_eq!(IdList::from_bytes(&list.to_bytes()), Some(list.clone()));
        let mut full = IdList::of(1..=IDS_MAX as u64 + 2);
        assert_eq!((full.ids().len(), full.ids()[0]), (IDS_MAX, 3));
        stored(&[0; 8], &full.to_bytes()).unwrap();
        full.add(9);
        assert_eq!((full.ids().len(), full.ids().last()), (IDS_MAX, Some(&9)), "it was there");
        assert!(full.remove(9) && !full.remove(9) && !full.remove(1));
        for other in [&b""[..], b"\x02", b"\x01short", &[&[1], &[0; 8 * (IDS_MAX + 1)][..]].concat()] {
            assert_eq!(IdList::from_bytes(other), None, "{} bytes", other.len());
        }
        let sorted =
            |bytes: &[u8]| IdList::sorted_of(&Reply::of_bytes(&stored(&[7; 8], bytes).unwrap())).unwrap();
        assert_eq!(sorted(&IdList::of([9, 2]).to_bytes()), [2, 9]);
        assert!(sorted(b"{}").is_empty() && IdList::sorted_of(&Reply::of_nil()).unwrap().is_empty());
    }

    #[test]
    fn no_document_says_in_debug_what_it_holds() {
        let document = Document { version: DocumentVersion([0xab; 8]), bytes: b"s3cret".to_vec() };
        let shown = format!("{document:?}");
        assert!(!shown.contains("115") && shown.contains("6 bytes") && shown.contains("abababab"), "{shown}");
    }
}
