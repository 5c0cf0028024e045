//! What an account likes and bookmarks.

use super::accounts::or_empty;
use super::sets::leaf_args;
use super::{fcall, unexpected};
use crate::cluster::{Command, Reply};
use crate::error::Result;
use crate::member::Member as _;
use crate::nonce::Nonce;
use crate::post::PostRef;

/// Likes or bookmarks a post, or takes that back.
#[derive(Debug)]
pub(crate) struct TieSet {
    /// Record, clock, journal, set, its piece (the set again while it is small).
    pub(crate) keys: [Vec<u8>; 5],
    pub(crate) seen: Option<Nonce>,
    pub(crate) new_stamp: Nonce,
    pub(crate) on: bool,
    pub(crate) leaf: Option<(u32, u32)>,
    pub(crate) piece_limit: u32,
    pub(crate) set_limit: u32,
    pub(crate) post: PostRef,
    pub(crate) journal_most: u32,
    pub(crate) entry: Option<(Nonce, Vec<u8>)>,
}

/// What became of a [`TieSet`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TieAnswer {
    /// Done, or it was so already.
    Done {
        has_changed: bool,
    },
    /// Something has changed since the caller looked.
    Stamp,
    NoAccount,
    /// The account's state forbids it.
    State(u8),
    JournalFull,
    /// The set has as many members as it may have.
    Limit,
    Tree(Vec<u8>),
    PieceFull,
}

impl TieSet {
    pub(crate) fn command(&self, now_ms: u64) -> Command {
        let command = fcall("tie_set", &self.keys).arg(or_empty(self.seen.as_ref())).arg(&self.new_stamp);
        let command = leaf_args(command.arg(if self.on { "+" } else { "-" }), self.leaf)
            .arg(self.piece_limit)
            .arg(self.set_limit)
            .arg(&self.post.to_bytes())
            .arg(self.journal_most)
            .arg(now_ms);
        self.entry.iter().fold(command, |command, (entry, value)| command.arg(entry).arg(value))
    }
}

impl TieAnswer {
    pub(crate) fn parse(reply: Reply) -> Result<Self> {
        let reply = reply.into_array()?;
        Ok(match reply.as_slice() {
            [word] => match word.bytes()? {
                b"stamp" => Self::Stamp,
                b"gone" => Self::NoAccount,
                b"busy" => Self::JournalFull,
                b"limit" => Self::Limit,
                b"full" => Self::PieceFull,
                _ => return Err(unexpected("tie_set", &reply)),
            },
            [word, value] => match word.bytes()? {
                b"ok" => Self::Done { has_changed: value.int()? == 1 },
                b"state" => Self::State(value.bytes()?.first().copied().unwrap_or_default()),
                b"tree" => Self::Tree(value.bytes()?.to_vec()),
                _ => return Err(unexpected("tie_set", &reply)),
            },
            _ => return Err(unexpected("tie_set", &reply)),
        })
    }
}

/// Looks whether an account likes a post. `keys`: record, clock, set, its piece.
pub(crate) fn tie_look(keys: &[Vec<u8>; 4], leaf: Option<(u32, u32)>, post: PostRef, now_ms: u64) -> Command {
    leaf_args(fcall("tie_look", keys), leaf).arg(&post.to_bytes()).arg(now_ms)
}

/// What a `tie_look` saw.
#[derive(Debug, PartialEq)]
pub(crate) enum TieLook {
    /// Since that stamp.
    Tied(f64),
    /// Not, and this stamp is above those of all likes there ever were.
    Not(f64),
    Tree(Vec<u8>),
}

impl TieLook {
    pub(crate) fn parse(reply: Reply) -> Result<Self> {
        let reply = reply.into_array()?;
        Ok(match reply.as_slice() {
            [word, since] if word.bytes()? == b"tied" => Self::Tied(since.double()?),
            #[expect(clippy::cast_precision_loss, reason = "stamps are below 2^53")]
            [word, stamp] if word.bytes()? == b"not" => Self::Not(stamp.count()? as f64),
            [word, tree] if word.bytes()? == b"tree" => Self::Tree(tree.bytes()?.to_vec()),
            _ => return Err(unexpected("tie_look", &reply)),
        })
    }
}
