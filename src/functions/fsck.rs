//! Functions that fsck alone needs: counting anew, and putting right what no other function leaves behind.

use super::archive::token_bytes;
use super::{fcall, unexpected};
use crate::archive::ArchiveToken;
use crate::cluster::{Command, Reply};
use crate::error::Result;
use crate::ids::{AccountId, PostId};

/// Counts the members of a local set with a tree, and writes that if it is wanted. `keys`: set, all its pieces; `seen`:
/// the tree's state and bits.
pub(crate) fn set_recount(keys: &[Vec<u8>], seen: &[u8], writes: bool) -> Command {
    fcall("set_recount", keys).arg(seen).arg(if writes { "1" } else { "" })
}

/// The number that the tree says, and the one that the pieces have; `None`: it is another tree by now.
pub(crate) fn parse_recount(reply: Reply) -> Result<Option<(u64, u64)>> {
    let reply = reply.into_array()?;
    match reply.as_slice() {
        [is_same, told, members] => Ok((is_same.int()? == 1).then_some((told.count()?, members.count()?))),
        _ => Err(unexpected("set_recount", &reply)),
    }
}

/// Drops a piece that its set doesn't know, or of a set that is spread.
pub(crate) fn piece_drop(set: Vec<u8>, piece: Vec<u8>, number: u32) -> Command {
    fcall("piece_drop", &[set, piece]).arg(number)
}

/// Drops keys of an account that isn't there. `keys`: its record first.
pub(crate) fn orphan_drop(keys: &[Vec<u8>]) -> Command {
    fcall("orphan_drop", keys)
}

/// Brings a post and its author's outbox in line. `keys`: post, outbox, record. Answers what it did: 1, it is listed
/// now.
pub(crate) fn outbox_mend(keys: &[Vec<u8>; 3], author: AccountId, id: u64) -> Command {
    fcall("outbox_mend", keys).arg(&author.to_bytes()).arg(&id.to_be_bytes())
}

/// Writes how many posts an account has, if nothing has changed since `seen` and `last` were read.
pub(crate) fn posts_recount(keys: &[Vec<u8>; 2], seen: u64, last: &[u8], counted: u64) -> Command {
    fcall("posts_recount", keys).arg(seen).arg(last).arg(counted)
}

/// The most posts that one call lists again.
pub(crate) const LISTED_AGAIN_MAX: usize = 1_000;

/// Has an outbox go by an archive that is older than memory.
#[derive(Debug)]
pub(crate) struct ArchiveAccept<'a> {
    /// Record, outbox, the bucket's agenda; then the posts that are listed again.
    pub(crate) keys: Vec<Vec<u8>>,
    pub(crate) account: AccountId,
    pub(crate) token: ArchiveToken,
    /// The outbox's first element.
    pub(crate) first: &'a [u8],
    /// Where the archive ends, and how many posts are lost; `None`: more posts are listed before the floor sinks.
    pub(crate) end: Option<(PostId, i64)>,
    pub(crate) now_ms: u64,
    /// Ascending.
    pub(crate) listed: &'a [PostId],
}

/// The answer to [`ArchiveAccept`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArchiveAcceptAnswer {
    Done,
    /// Somebody has taken another token, the account is gone, or its outbox has changed.
    Changed,
}

impl ArchiveAccept<'_> {
    pub(crate) fn command(&self) -> Command {
        let upto = self.end.map(|(upto, _)| upto.get().to_be_bytes().to_vec()).unwrap_or_default();
        let listed: Vec<u8> = self.listed.iter().flat_map(|id| id.get().to_be_bytes()).collect();
        fcall("archive_accept", &self.keys)
            .arg(&self.account.to_bytes())
            .arg(&token_bytes(self.token))
            .arg(self.first)
            .arg(&upto)
            .arg(self.end.map_or(0, |(_, lost)| lost).to_string())
            .arg(self.now_ms)
            .arg(&listed)
    }
}

impl ArchiveAcceptAnswer {
    pub(crate) fn parse(reply: Reply) -> Result<Self> {
        let reply = reply.into_array()?;
        Ok(match reply.as_slice() {
            [word] if word.bytes()? == b"ok" => Self::Done,
            [word] if word.bytes()? == b"token" || word.bytes()? == b"outbox" => Self::Changed,
            _ => return Err(unexpected("archive_accept", &reply)),
        })
    }
}
