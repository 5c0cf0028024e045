//! Posts that the archive has forgotten, and may have again once one of its servers has failed.

use super::archive::read_token;
use super::{fcall, read_nonce, unexpected};
use crate::archive::ArchiveToken;
use crate::cluster::{Command, Reply};
use crate::error::{Error, Result};
use crate::ids::{AccountId, PostId};
use crate::nonce::Nonce;

/// A post that was deleted, as its author's record notes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnsettledDeletion {
    /// The number of the token under which the archive has forgotten it.
    pub(crate) number: u64,
    pub(crate) id: PostId,
    /// When the archive is asked whether it still says so.
    pub(crate) looked_at: u64,
}

impl UnsettledDeletion {
    const LEN: usize = 24;

    /// Reads a record's field: the number that the archive must know before all of these doesn't matter here.
    pub(crate) fn parse_all(field: &Reply) -> Result<Vec<Self>> {
        let bytes = if field.is_nil() { &[] } else { field.bytes()? };
        let Some((_, entries)) = bytes.split_first_chunk::<8>() else { return Ok(Vec::new()) };
        let entry = |entry: &[u8]| {
            let part = |n: usize| {
                let part = entry.get(8 * n..8 * n + 8).and_then(|part| part.try_into().ok());
                part.map(u64::from_be_bytes)
                    .ok_or_else(|| Error::internal(format!("noted deletions are `{}`", bytes.escape_ascii())))
            };
            Ok(Self { number: part(0)?, id: PostId::from_u64(part(1)?)?, looked_at: part(2)? })
        };
        entries.chunks(Self::LEN).map(entry).collect()
    }

    fn bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        for (part, number) in bytes.chunks_mut(8).zip([self.number, self.id.get(), self.looked_at]) {
            part.copy_from_slice(&number.to_be_bytes());
        }
        bytes
    }
}

/// Asks for a token under which the archive is to forget once more what it may have lost.
#[derive(Debug, Clone)]
pub(crate) struct ArchiveAgain {
    /// Record, outbox, the bucket's agenda.
    pub(crate) keys: [Vec<u8>; 3],
    pub(crate) account: AccountId,
    pub(crate) nonce: Nonce,
    pub(crate) decision: u32,
    /// A number that the token's must be above.
    pub(crate) above: u64,
    /// When that is looked at.
    pub(crate) looked_at: u64,
}

/// The answer to [`ArchiveAgain`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ArchiveAgainAnswer {
    Begun {
        token: ArchiveToken,
        /// The outbox's first element.
        first: Vec<u8>,
        /// The number that the archive must know.
        needs: u64,
        ids: Vec<PostId>,
    },
    /// Nothing waits.
    Nothing,
    /// The bucket knows another decision.
    Undecided,
}

impl ArchiveAgain {
    pub(crate) fn command(&self) -> Command {
        fcall("archive_again", &self.keys)
            .arg(&self.account.to_bytes())
            .arg(&self.nonce)
            .arg(self.decision)
            .arg(self.above)
            .arg(self.looked_at)
    }
}

impl ArchiveAgainAnswer {
    pub(crate) fn parse(reply: Reply) -> Result<Self> {
        let reply = reply.into_array()?;
        let number = |reply: &Reply| read_nonce(reply).map(u64::from_be_bytes);
        Ok(match reply.as_slice() {
            [word] if word.bytes()? == b"none" => Self::Nothing,
            [word] if word.bytes()? == b"decision" => Self::Undecided,
            [word, token, first, needs, ids @ ..] if word.bytes()? == b"ok" => Self::Begun {
                token: read_token(token.bytes()?)?,
                first: first.bytes()?.to_vec(),
                needs: number(needs)?,
                ids: ids.iter().map(|id| PostId::from_u64(number(id)?)).collect::<Result<_>>()?,
            },
            _ => return Err(unexpected("archive_again", &reply)),
        })
    }
}

/// Strikes what the archive loses no more, if it is noted so still. `keys`: record, the bucket's agenda.
pub(crate) fn archive_settled(
    keys: &[Vec<u8>; 2],
    account: AccountId,
    settled: &[UnsettledDeletion],
) -> Command {
    let settled: Vec<u8> = settled.iter().flat_map(|deletion| deletion.bytes()).collect();
    fcall("archive_settled", keys).arg(&account.to_bytes()).arg(&settled)
}

/// Notes that the burial of a deleted account has settled, if it still is to be looked at at that moment.
pub(crate) fn burial_settled(keys: &[Vec<u8>; 2], account: AccountId, at_ms: f64) -> Command {
    archive_settled(keys, account, &[]).arg(format!("{at_ms:.0}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deletions_are_read_as_they_are_written_and_what_is_cut_off_is_told() {
        let of = |number, id, looked_at| UnsettledDeletion {
            number,
            id: PostId::from_u64(id).unwrap(),
            looked_at,
        };
        let noted = [of(3, 77, 1_700_000_000_000), of(4, 78, 1_700_000_000_001)];
        let entries: Vec<u8> = noted.iter().flat_map(|deletion| deletion.bytes()).collect();
        let field = |entries: &[u8]| Reply::of_bytes(&[&2u64.to_be_bytes()[..], entries].concat());
        assert_eq!(UnsettledDeletion::parse_all(&field(&entries)).unwrap(), noted);
        assert_eq!(UnsettledDeletion::parse_all(&field(b"")).unwrap(), []);
        assert_eq!(UnsettledDeletion::parse_all(&Reply::of_nil()).unwrap(), []);
        assert!(UnsettledDeletion::parse_all(&field(&entries[..47])).is_err());
    }
}
