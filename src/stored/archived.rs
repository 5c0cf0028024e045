//! The word of an account's bucket on its posts in the archive.

use crate::archive::{OwnerState, Prerequisite};
use crate::cluster::Reply;
use crate::error::{Error, ErrorCode, Result};
use crate::ids::{AccountId, PostId};

/// The first byte of the first element of an outbox that ends where the archive begins.
const ARCHIVED: u8 = b'A';

/// The floor at which an outbox ends and the archive begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ArchiveFloor {
    /// The archive must know a token of at least this number, or it lacks what it once had.
    pub(crate) settled: u64,
    /// Up to this one the archive has all posts.
    pub(crate) upto: PostId,
}

impl ArchiveFloor {
    /// Reads an element of an outbox; none: the archive has nothing of that account.
    pub(crate) fn parse(element: &[u8]) -> Option<Self> {
        let (letter, rest) = element.split_first()?;
        let (settled, upto) = rest.split_first_chunk::<8>()?;
        let upto = PostId::from_u64(u64::from_be_bytes(upto.try_into().ok()?)).ok()?;
        (*letter == ARCHIVED).then_some(Self { settled: u64::from_be_bytes(*settled), upto })
    }

    /// Reads what was answered to who asks for an outbox's first element.
    pub(crate) fn read(reply: &Reply) -> Result<Option<Self>> {
        if reply.is_nil() { Ok(None) } else { Ok(Self::parse(reply.bytes()?)) }
    }

    /// The prerequisite that a change of what the archive has follows from.
    pub(crate) fn needs(self) -> Prerequisite {
        Prerequisite { token_number: self.settled, upto: Some(self.upto) }
    }

    /// Refuses what an archive says that lacks what it once had: of a server that was restored from a copy, or has
    /// forgotten its last changes (H169).
    pub(crate) fn check(self, owner: AccountId, state: Option<OwnerState>) -> Result<()> {
        let knows = state.is_some_and(|state| state.token.number >= self.settled && state.upto >= self.upto);
        if knows { Ok(()) } else { Err(behind(owner)) }
    }
}

/// The error for an archive that is older than what memory knows of it.
pub(crate) fn behind(owner: AccountId) -> Error {
    Error::new(
        ErrorCode::ArchiveAway,
        format!(
            "the archive lacks posts of account {owner} that it once had: it was restored from an older copy, or \
             another server answers in its place. Nothing of that account is read from it until it has them again, or \
             until `tideline fsck --repair --accept-loss` gives them up"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::ArchiveToken;

    #[test]
    fn a_floor_is_read_and_an_archive_that_lacks_something_is_refused() {
        let element = [b"A".as_slice(), &7u64.to_be_bytes(), &99u64.to_be_bytes()].concat();
        let floor = ArchiveFloor::parse(&element).unwrap();
        assert_eq!(floor, ArchiveFloor { settled: 7, upto: PostId::from_u64(99).unwrap() });
        for other in [&b"F\0\0\0\0\0\0\0\x09"[..], &99u64.to_be_bytes(), &element[..16], b""] {
            assert_eq!(ArchiveFloor::parse(other), None, "{other:?}");
        }
        let owner = AccountId::new(3).unwrap();
        let state = |number, upto| OwnerState {
            token: ArchiveToken { number, nonce: [1; 8] },
            upto: PostId::from_u64(upto).unwrap(),
            is_buried: false,
        };
        assert!(floor.check(owner, Some(state(7, 99))).is_ok());
        assert!(floor.check(owner, Some(state(8, 120))).is_ok());
        for lacking in [None, Some(state(6, 120)), Some(state(8, 98))] {
            assert!(floor.check(owner, lacking).is_err(), "{lacking:?}");
        }
    }
}
