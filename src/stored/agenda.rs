//! Entries in the agenda of a bucket: what its tenant's archive has yet to do with, and when somebody looks at it.

use crate::ids::{AccountId, PostId};
use crate::post::{NamedList, PostRef};

/// Before an account of which the archive may have lost what it had forgotten.
const UNSETTLED: u8 = b'E';
/// Before a list that is too long.
const LISTED: u8 = b'L';

/// An entry of an agenda, by what it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgendaEntry {
    /// Posts of this account may leave memory.
    Account(AccountId),
    /// A post below its author's floor that is in memory too.
    Post(PostRef),
    /// The archive may have lost what it had forgotten of this account.
    Unsettled(AccountId),
    /// This list is too long.
    List(NamedList),
}

impl AgendaEntry {
    /// Reads one. `None`: this release doesn't know it.
    pub(crate) fn parse(entry: &[u8]) -> Option<Self> {
        match (entry.len(), entry) {
            (8, account) => AccountId::from_bytes(account).ok().map(Self::Account),
            (9, [UNSETTLED, account @ ..]) => AccountId::from_bytes(account).ok().map(Self::Unsettled),
            (10, [LISTED, list @ ..]) => {
                NamedList::all_from_bytes(list).ok()?.first().copied().map(Self::List)
            }
            (16, post) => {
                let (id, author) = post.split_first_chunk::<8>()?;
                let id = PostId::from_u64(u64::from_be_bytes(*id)).ok()?;
                AccountId::from_bytes(author).ok().map(|author| Self::Post(PostRef { id, author }))
            }
            _ => None,
        }
    }

    /// As it stands there.
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        match self {
            Self::Account(account) => account.to_bytes().to_vec(),
            Self::Post(post) => [post.id.get().to_be_bytes(), post.author.to_bytes()].concat(),
            Self::Unsettled(account) => [&[UNSETTLED][..], &account.to_bytes()].concat(),
            Self::List(list) => [&[LISTED][..], &list.to_bytes()].concat(),
        }
    }

    /// The account that it belongs to; `None`: it belongs to none, as a hashtag's list.
    pub(crate) fn account(self) -> Option<AccountId> {
        match self {
            Self::Account(account) | Self::Unsettled(account) => Some(account),
            Self::Post(post) => Some(post.author),
            Self::List(list) => list.account(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_read_as_it_is_written_and_nothing_else_is_taken_for_one() {
        let account = AccountId::new(7).unwrap();
        let post = PostRef { id: PostId::from_u64(99).unwrap(), author: account };
        for (entry, of) in [
            (AgendaEntry::Account(account), Some(account)),
            (AgendaEntry::Post(post), Some(account)),
            (AgendaEntry::Unsettled(account), Some(account)),
            (AgendaEntry::List(NamedList::Mentions(account)), Some(account)),
            (AgendaEntry::List(NamedList::Tagged(9)), None),
        ] {
            assert_eq!(AgendaEntry::parse(&entry.to_bytes()), Some(entry));
            assert_eq!(entry.account(), of);
        }
        for unknown in
            [&b""[..], b"E", b"Znothing.", b"Lx........", b"more than any of these has", &[0xff; 16]]
        {
            assert_eq!(AgendaEntry::parse(unknown), None, "{unknown:?}");
        }
    }
}
