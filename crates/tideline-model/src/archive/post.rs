//! An archived post, with all that belongs to it.

use std::cmp::Ordering;

use crate::error::{Error, Result};
use crate::ids::{AccountId, PostId};

/// The name of a part of a post that stands beside it in its bucket. A part that a release doesn't know is kept, and a
/// post that has one is brought back by no other release than one that knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartName(pub u8);

/// Parts that stand beside a post, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PostParts(Vec<(PartName, Vec<u8>)>);

impl PostParts {
    /// Finds a part by its name.
    pub fn get(&self, name: PartName) -> Option<&[u8]> {
        self.0.iter().find(|part| part.0 == name).map(|part| &*part.1)
    }

    /// Puts a part in, or another one in its place.
    pub fn set(&mut self, name: PartName, bytes: Vec<u8>) {
        match self.0.binary_search_by_key(&name, |part| part.0) {
            Ok(place) => self.0[place].1 = bytes,
            Err(place) => self.0.insert(place, (name, bytes)),
        }
    }

    /// Lists the names of the parts.
    pub fn names(&self) -> impl Iterator<Item = PartName> {
        self.0.iter().map(|part| part.0)
    }

    /// Puts them over those that a post has in an archive: what that has by other names stays, and a part without bytes
    /// goes, whichever has it.
    #[must_use]
    pub fn over(&self, before: &Self) -> Self {
        let mut all = before.clone();
        self.0.iter().for_each(|(name, bytes)| all.set(*name, bytes.clone()));
        all.0.retain(|(_, bytes)| !bytes.is_empty());
        all
    }

    /// Tells how many bytes all parts take.
    pub fn encoded_len(&self) -> usize {
        self.0.iter().map(|part| 5 + part.1.len()).sum()
    }

    /// Encodes all parts: each its name, its length in 4 bytes (big-endian), and its bytes.
    ///
    /// # Panics
    /// With a part of 4 GiB.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.encoded_len());
        for (name, part) in &self.0 {
            bytes.push(name.0);
            bytes.extend_from_slice(&u32::try_from(part.len()).expect("under 4 GiB").to_be_bytes());
            bytes.extend_from_slice(part);
        }
        bytes
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote.
    pub fn from_bytes(mut bytes: &[u8]) -> Result<Self> {
        let mut parts = Self::default();
        while !bytes.is_empty() {
            let taken = bytes.split_first().and_then(|(name, rest)| {
                let (len, rest) = rest.split_first_chunk::<4>()?;
                let (part, rest) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*len)).ok()?)?;
                Some((PartName(*name), part, rest))
            });
            let Some((name, part, rest)) = taken else {
                return Err(Error::internal(format!(
                    "the parts of an archived post end {} bytes too soon or too late",
                    bytes.len()
                )));
            };
            parts.set(name, part.to_vec());
            bytes = rest;
        }
        Ok(parts)
    }
}

/// A post as it stands in an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivedPost {
    /// Which it is.
    pub id: PostId,
    /// Whose outbox it is on.
    pub owner: AccountId,
    /// Its version: rises with each change of the post or of what belongs to it.
    pub change: u64,
    /// Its bytes as they stood in memory.
    pub stored: Vec<u8>,
    /// What stood beside it; in a change, what is put [over](PostParts::over) that.
    pub parts: PostParts,
}

impl ArchivedPost {
    /// A post with nothing beside it.
    pub fn new(id: PostId, owner: AccountId, change: u64, stored: Vec<u8>) -> Self {
        Self { id, owner, change, stored, parts: PostParts::default() }
    }
}

/// A kind of list of a post: who likes it, what answers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListKind(pub u8);

/// A member of a list of a post. Members have the order of a sorted set: by score, then by bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct ListMember {
    /// Its place.
    pub score: f64,
    /// What it is: at most 255 bytes.
    pub bytes: Vec<u8>,
}

impl ListMember {
    /// Compares two as a sorted set does.
    pub fn order(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then_with(|| self.bytes.cmp(&other.bytes))
    }

    /// Encodes members: each its score (8 bytes, big-endian), its length in a byte, and its bytes.
    pub fn encode(members: &[Self]) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(members.iter().map(|member| 9 + member.bytes.len()).sum());
        for member in members {
            let len = u8::try_from(member.bytes.len()).map_err(|_| {
                Error::out_of_range(format!("a member of {} bytes: at most 255", member.bytes.len()))
            })?;
            bytes.extend_from_slice(&member.score.to_bits().to_be_bytes());
            bytes.push(len);
            bytes.extend_from_slice(&member.bytes);
        }
        Ok(bytes)
    }

    /// Reads what [`encode`](Self::encode) wrote.
    pub fn decode(mut bytes: &[u8]) -> Result<Vec<Self>> {
        let mut members = Vec::with_capacity(bytes.len() / 17);
        while !bytes.is_empty() {
            let taken = bytes.split_first_chunk::<8>().and_then(|(score, rest)| {
                let (len, rest) = rest.split_first()?;
                let (member, rest) = rest.split_at_checked(usize::from(*len))?;
                Some((f64::from_bits(u64::from_be_bytes(*score)), member, rest))
            });
            let Some((score, member, rest)) = taken else {
                return Err(Error::internal(format!(
                    "members of an archived list end {} bytes too soon or too late",
                    bytes.len()
                )));
            };
            members.push(Self { score, bytes: member.to_vec() });
            bytes = rest;
        }
        Ok(members)
    }
}

/// The upper end of a list of a post: from some chunk on all of it, in place of what was there.
///
/// Lists grow at their upper end, so what is below stays as it is however often a post comes and goes.
#[derive(Debug, Clone, PartialEq)]
pub struct MemberList {
    /// Which list.
    pub kind: ListKind,
    /// The first chunk that is written anew; 0: the whole list is. Chunks are counted from the lowest members.
    pub first: u32,
    /// All members from there on, ascending; none: the list ends below.
    pub members: Vec<ListMember>,
}

impl MemberList {
    /// Members of a chunk; the last one has up to as many.
    pub const CHUNK: usize = 1_024;

    /// The chunks, with their numbers.
    pub fn chunks(&self) -> impl Iterator<Item = (u32, &[ListMember])> {
        (self.first..).zip(self.members.chunks(Self::CHUNK))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    type Named = BTreeMap<u8, Vec<u8>>;

    fn named() -> impl Strategy<Value = Named> {
        prop::collection::btree_map(any::<u8>(), prop::collection::vec(any::<u8>(), 0..40), 0..6)
    }

    fn scored() -> impl Strategy<Value = Vec<(u64, Vec<u8>)>> {
        prop::collection::vec((any::<u64>(), prop::collection::vec(any::<u8>(), 0..30)), 0..6)
    }

    proptest! {
        #[test]
        fn parts_come_back_as_they_were(parts in named()) {
            let mut stored = PostParts::default();
            // In any order: what they are stored in is that of their names.
            for (name, bytes) in parts.iter().rev() {
                stored.set(PartName(*name), bytes.clone());
            }
            let read = PostParts::from_bytes(&stored.to_bytes()).unwrap();
            prop_assert_eq!(&read, &stored);
            for (name, bytes) in &parts {
                prop_assert_eq!(read.get(PartName(*name)), Some(&**bytes));
            }
        }

        #[test]
        fn members_come_back_as_they_were(scored in scored()) {
            let member = |(score, bytes): (u64, Vec<u8>)| ListMember { score: f64::from_bits(score), bytes };
            let members: Vec<ListMember> = scored.iter().cloned().map(member).collect();
            let read = ListMember::decode(&ListMember::encode(&members).unwrap()).unwrap();
            // By their bits: some are no numbers.
            let read: Vec<(u64, Vec<u8>)> =
                read.into_iter().map(|member| (member.score.to_bits(), member.bytes)).collect();
            prop_assert_eq!(read, scored);
        }

        #[test]
        fn bytes_from_elsewhere_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(parts) = PostParts::from_bytes(&bytes) {
                prop_assert_eq!(PostParts::from_bytes(&parts.to_bytes()).unwrap(), parts);
            }
            if let Ok(members) = ListMember::decode(&bytes) {
                prop_assert_eq!(ListMember::encode(&members).unwrap(), bytes);
            }
        }
    }

    #[test]
    fn parts_of_other_names_stay_and_those_without_bytes_go() {
        let parts = |named: &[(u8, &[u8])]| {
            let mut parts = PostParts::default();
            named.iter().for_each(|(name, bytes)| parts.set(PartName(*name), bytes.to_vec()));
            parts
        };
        let before = parts(&[(1, b"one"), (2, b"two"), (3, b"three")]);
        let over = parts(&[(2, b"new"), (3, b""), (4, b"four"), (5, b"")]).over(&before);
        assert_eq!(over, parts(&[(1, b"one"), (2, b"new"), (4, b"four")]));
        assert_eq!(over.names().collect::<Vec<_>>(), [1, 2, 4].map(PartName));
    }

    #[test]
    fn what_is_cut_off_is_told() {
        let mut parts = PostParts::default();
        parts.set(PartName(1), b"poll".to_vec());
        let bytes = parts.to_bytes();
        let error = PostParts::from_bytes(&bytes[..bytes.len() - 1]).unwrap_err();
        assert!(error.to_string().contains("too soon"), "{error}");
        let long = ListMember { score: 0.0, bytes: vec![0; 256] };
        assert!(ListMember::encode(&[long]).unwrap_err().to_string().contains("256 bytes: at most 255"));
    }

    #[test]
    fn chunks_are_counted_from_the_first_that_is_written() {
        let member = |score| ListMember { score, bytes: vec![1] };
        let members = (0..1_500u16).map(|score| member(f64::from(score))).collect();
        let list = MemberList { kind: ListKind(1), first: 7, members };
        let chunks: Vec<(u32, usize)> =
            list.chunks().map(|(number, members)| (number, members.len())).collect();
        assert_eq!(chunks, [(7, 1_024), (8, 476)]);
    }
}
