//! The sections of a stored post: tag, length, bytes; and what is inside the ones we know.

use super::layout::TAG_WRITER;
use crate::error::{Error, Result};
use crate::ids::AccountId;

/// Appends a section; an empty one is left out.
///
/// Panics for more than 65,535 bytes: whoever builds a post has checked it.
pub(super) fn put(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    if !bytes.is_empty() {
        put_verbatim(out, tag, bytes);
    }
}

/// Appends a section that a newer release has written; it may mean something by an empty one.
pub(super) fn put_verbatim(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    out.push(tag);
    put_long(out, bytes);
}

pub(super) fn put_accounts(out: &mut Vec<u8>, tag: u8, accounts: &[AccountId]) {
    let bytes: Vec<u8> = accounts.iter().flat_map(|account| account.to_bytes()).collect();
    put(out, tag, &bytes);
}

pub(super) fn put_strings(out: &mut Vec<u8>, tag: u8, strings: &[String]) {
    let mut bytes = Vec::new();
    for string in strings {
        put_short(&mut bytes, string);
    }
    put(out, tag, &bytes);
}

pub(super) fn put_fields(out: &mut Vec<u8>, tag: u8, fields: &[(String, Vec<u8>)]) {
    let mut bytes = Vec::with_capacity(fields_len(fields));
    for (key, value) in fields {
        put_short(&mut bytes, key);
        put_long(&mut bytes, value);
    }
    put(out, tag, &bytes);
}

/// Bytes that the fields' section will have.
pub(super) fn fields_len(fields: &[(String, Vec<u8>)]) -> usize {
    fields.iter().map(|(key, value)| 3 + key.len() + value.len()).sum()
}

fn put_short(out: &mut Vec<u8>, string: &str) {
    out.push(u8::try_from(string.len()).expect("a checked name has at most 255 bytes"));
    out.extend_from_slice(string.as_bytes());
}

/// Appends bytes behind their length, of two bytes.
pub(super) fn put_long(out: &mut Vec<u8>, bytes: &[u8]) {
    put_u16(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn put_u16(out: &mut Vec<u8>, len: usize) {
    let len = u16::try_from(len).expect("a checked section has at most 65,535 bytes");
    out.extend_from_slice(&len.to_be_bytes());
}

/// Walks the sections of stored bytes, in ascending order of tags.
///
/// A known tag comes once, and never empty: bytes would not survive being read and written otherwise, and of two
/// audiences nobody could say which one counts. Tag 0 is refused too, because zeros are what Redis fills a gap with.
pub(super) struct Sections<'a> {
    rest: SectionReader<'a>,
    last: u8,
}

impl<'a> Sections<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: SectionReader(bytes), last: 0 }
    }

    pub(super) fn next(&mut self) -> Result<Option<(u8, &'a [u8])>> {
        if self.rest.0.is_empty() {
            return Ok(None);
        }
        let tag = self.rest.u8()?;
        let known = tag <= TAG_WRITER;
        if tag < self.last || (tag == self.last && known) {
            return Err(Error::internal(format!("section {tag} after section {}", self.last)));
        }
        self.last = tag;
        let bytes = self.rest.long().map_err(|error| error.context(format_args!("section {tag}")))?;
        if known && bytes.is_empty() {
            return Err(Error::internal(format!("section {tag} is empty")));
        }
        Ok(Some((tag, bytes)))
    }
}

pub(super) fn text(bytes: &[u8]) -> Result<String> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => Err(Error::internal(format!("{} bytes: {error}", bytes.len()))),
    }
}

pub(super) fn accounts(bytes: &[u8]) -> Result<Vec<AccountId>> {
    let (accounts, rest) = bytes.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(Error::internal(format!(
            "{} bytes are no list of accounts, of 8 bytes each",
            bytes.len()
        )));
    }
    accounts
        .iter()
        .map(|account| AccountId::from_bytes(account).map_err(|error| Error::internal(error.to_string())))
        .collect()
}

pub(super) fn strings(bytes: &[u8]) -> Result<Vec<String>> {
    let (mut reader, mut strings) = (SectionReader(bytes), Vec::new());
    while !reader.0.is_empty() {
        strings.push(text(reader.short()?)?);
    }
    Ok(strings)
}

pub(super) fn fields(bytes: &[u8]) -> Result<Vec<(String, Vec<u8>)>> {
    let (mut reader, mut fields) = (SectionReader(bytes), Vec::new());
    while !reader.0.is_empty() {
        fields.push((text(reader.short()?)?, reader.long()?.to_vec()));
    }
    Ok(fields)
}

/// A reader of the sections that are left.
pub(super) struct SectionReader<'a>(&'a [u8]);

impl<'a> SectionReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// So many bytes.
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| Error::internal("as many were taken"))
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let Some((taken, rest)) = self.0.split_at_checked(len) else {
            return Err(Error::internal(format!("cut off: {len} bytes announced, {} there", self.0.len())));
        };
        self.0 = rest;
        Ok(taken)
    }

    fn u8(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    /// Bytes behind a length of one byte.
    fn short(&mut self) -> Result<&'a [u8]> {
        let len = self.u8()?;
        self.take(usize::from(len))
    }

    /// Bytes behind a length of two bytes.
    pub(super) fn long(&mut self) -> Result<&'a [u8]> {
        let len = [self.u8()?, self.u8()?];
        self.take(usize::from(u16::from_be_bytes(len)))
    }
}
