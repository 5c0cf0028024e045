//! What fsck alone needs: counting anew, and putting right what no other function leaves behind.

use super::{fcall, unexpected};
use crate::cluster::{Command, Reply};
use crate::error::Result;
use crate::ids::AccountId;

/// Counts the members of a local set with a tree, and writes that if it is wanted. `keys`: set, all its pieces; `seen`:
/// the tree's state and bits.
pub(crate) fn set_recount(keys: &[Vec<u8>], seen: &[u8], writes: bool) -> Command {
    fcall("set_recount", keys).arg(seen).arg(if writes { "1" } else { "" })
}

/// What the tree says, and what the pieces have; `None`: it is another tree by now.
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
