//! Likes and bookmarks of an account.

use super::sets::leaf_args;
use super::{fcall, unexpected};
use crate::cluster::{Command, Reply};
use crate::error::Result;
use crate::member::Member as _;
use crate::post::PostRef;

/// Looks whether an account likes a post. `keys`: record, clock, set, its piece.
pub(crate) fn tie_look(keys: &[Vec<u8>; 4], leaf: Option<(u32, u32)>, post: PostRef, now_ms: u64) -> Command {
    leaf_args(fcall("tie_look", keys), leaf).arg(&post.to_bytes()).arg(now_ms)
}

/// The answer to a `tie_look`.
#[derive(Debug, PartialEq)]
pub(crate) enum TieLook {
    /// Since that tick.
    Tied(f64),
    /// Not, and this tick is above those of all likes there ever were.
    Not(f64),
    Tree(Vec<u8>),
}

impl TieLook {
    pub(crate) fn parse(reply: Reply) -> Result<Self> {
        let reply = reply.into_array()?;
        Ok(match reply.as_slice() {
            [word, since] if word.bytes()? == b"tied" => Self::Tied(since.double()?),
            #[expect(clippy::cast_precision_loss, reason = "ticks are below 2^53")]
            [word, tick] if word.bytes()? == b"not" => Self::Not(tick.count()? as f64),
            [word, tree] if word.bytes()? == b"tree" => Self::Tree(tree.bytes()?.to_vec()),
            _ => return Err(unexpected("tie_look", &reply)),
        })
    }
}
