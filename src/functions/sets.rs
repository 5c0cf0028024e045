//! Adding to and removing from local sets, and spreading them.

use super::inbox::push_told;
use super::tenant::push_decision;
use super::{fcall, fcall_ro, unexpected};
use crate::cluster::{Command, Reply};
use crate::error::{Error, Result};
use crate::inbox::Notice;

/// Adds members that belong to one piece of a local set.
#[derive(Debug)]
pub(crate) struct SetAdd<'a> {
    /// The set; unless it is small, the piece. With a split: the piece (0 of a small set) and its partner.
    pub(crate) keys: Vec<Vec<u8>>,
    /// Piece and depth; `None` for a small set.
    pub(crate) leaf: Option<(u32, u32)>,
    pub(crate) piece_limit: u32,
    pub(crate) option: &'static str,
    /// Key and value of a guard that must hold.
    pub(crate) guard: Option<(Vec<u8>, Vec<u8>)>,
    pub(crate) may_split: bool,
    /// The record of the account whose followers they are: it tells how many.
    pub(crate) record: Option<Vec<u8>>,
    /// Where what is written is noted, whose followers they are, and when.
    pub(crate) noted: Option<(Vec<u8>, &'a [u8], u64)>,
    /// The tenant's decision that this follows from, if it does: nothing is written where the bucket knows another.
    pub(crate) decision: Option<u32>,
    /// The inbox of an account, what that is told of the one member if it is new, and when.
    pub(crate) told: Option<(Vec<u8>, Notice, u64)>,
}

/// The outcome of a [`SetAdd`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SetAddAnswer {
    /// So many pairs are done, from the first on; so many were new; so many members are in the set.
    Done { pairs: usize, new: u64, total: u64 },
    /// The same, but the piece is full: send the rest with a split allowed.
    Full { pairs: usize, new: u64, total: u64 },
    /// The same, but the piece was full and has been split.
    Split { pairs: usize, new: u64, total: u64, tree: Vec<u8> },
    /// The caller's copy of the tree is old; empty: the set is small.
    Tree(Vec<u8>),
    /// The guard has another value.
    Guarded,
    /// The bucket knows another decision.
    Undecided,
}

impl SetAdd<'_> {
    pub(crate) fn command<'m>(mut self, pairs: impl IntoIterator<Item = (f64, &'m [u8])>) -> Command {
        let told = self.told.take().map(|(inbox, told, now_ms)| {
            self.keys.push(inbox);
            (told, now_ms)
        });
        let guard = self.guard.take().map(|(key, value)| {
            self.keys.push(key);
            value
        });
        let noted = self.noted.take().map(|(key, author, now_ms)| {
            self.keys.push(key);
            (author, now_ms)
        });
        let (author, noted_ms) = noted.unwrap_or_default();
        let (told, told_ms) = told.unzip();
        let counts = self.record.is_some();
        self.keys.extend(self.record);
        let command = leaf_args(fcall("set_add", &self.keys), self.leaf)
            .arg(self.piece_limit)
            .arg(self.option)
            .arg(&guard.unwrap_or_default())
            .arg(if self.may_split { "1" } else { "" })
            .arg(if counts { "1" } else { "" })
            .arg(author)
            .arg(told_ms.unwrap_or(noted_ms));
        let mut command = push_told(push_decision(command, self.decision), told);
        for (score, member) in pairs {
            push_score(&mut command, score);
            command.push(member);
        }
        command
    }
}

impl SetAddAnswer {
    pub(crate) fn parse(reply: Reply) -> Result<Self> {
        let reply = reply.into_array()?;
        let answer = match reply.as_slice() {
            [word, tree] if word.bytes()? == b"tree" => Self::Tree(tree.bytes()?.to_vec()),
            [word] if word.bytes()? == b"guard" => Self::Guarded,
            [word] if word.bytes()? == b"undecided" => Self::Undecided,
            [word, pairs, new, total, tree @ ..] => {
                let pairs = usize::try_from(pairs.count()?).map_err(|e| Error::internal(e.to_string()))?;
                let (new, total) = (new.count()?, total.count()?);
                match (word.bytes()?, tree) {
                    (b"ok", []) => Self::Done { pairs, new, total },
                    (b"full", []) => Self::Full { pairs, new, total },
                    (b"split", [tree]) => Self::Split { pairs, new, total, tree: tree.bytes()?.to_vec() },
                    _ => return Err(unexpected("set_add", &reply)),
                }
            }
            _ => return Err(unexpected("set_add", &reply)),
        };
        Ok(answer)
    }
}

/// Removes members of one piece of a local set.
#[derive(Debug)]
pub(crate) struct SetRemove {
    /// The set; unless it is small, the piece.
    pub(crate) keys: Vec<Vec<u8>>,
    /// Piece and depth; `None` for a small set.
    pub(crate) leaf: Option<(u32, u32)>,
    /// The record of the account whose followers they are: it tells how many.
    pub(crate) record: Option<Vec<u8>>,
    /// The tenant's decision that this follows from, if it does: nothing goes where the bucket knows another.
    pub(crate) decision: Option<u32>,
    /// Where who adds is told of it, and when.
    pub(crate) told: Option<(Vec<u8>, u64)>,
}

/// The outcome of a [`SetRemove`].
#[derive(Debug, PartialEq)]
pub(crate) enum SetRemoveAnswer {
    /// So many are gone; of those whose score isn't below, the highest score.
    Done {
        removed: u64,
        kept: Option<f64>,
    },
    Tree(Vec<u8>),
}

impl SetRemove {
    /// Each member goes only if its score is below the one given, or always.
    pub(crate) fn command<'m>(
        mut self,
        members: impl IntoIterator<Item = (Option<f64>, &'m [u8])>,
    ) -> Command {
        let counts = self.record.is_some();
        self.keys.extend(self.record);
        let told = self.told.map(|(key, now_ms)| {
            self.keys.push(key);
            now_ms.to_string()
        });
        let mut command = leaf_args(fcall("set_remove", &self.keys), self.leaf);
        command.push(if counts { "1" } else { "" });
        let mut command = push_decision(command, self.decision);
        command.push(told.unwrap_or_default());
        for (below, member) in members {
            match below {
                Some(below) => push_score(&mut command, below),
                None => {
                    command.push("");
                }
            }
            command.push(member);
        }
        command
    }
}

impl SetRemoveAnswer {
    pub(crate) fn parse(reply: Reply) -> Result<Self> {
        let reply = reply.into_array()?;
        match reply.as_slice() {
            [word, removed, _total, kept] if word.bytes()? == b"ok" => {
                let kept = if kept.bytes()?.is_empty() { None } else { Some(kept.double()?) };
                Ok(Self::Done { removed: removed.count()?, kept })
            }
            [word, tree] if word.bytes()? == b"tree" => Ok(Self::Tree(tree.bytes()?.to_vec())),
            _ => Err(unexpected("set_remove", &reply)),
        }
    }
}

/// Drops notes of edges that were looked at, unless they were written again since.
pub(crate) fn notes_drop<'m>(
    notes: Vec<u8>,
    looked_at: impl IntoIterator<Item = (f64, &'m [u8])>,
) -> Command {
    let mut command = fcall("notes_drop", &[notes]);
    for (noted, member) in looked_at {
        push_score(&mut command, noted);
        command.push(member);
    }
    command
}

/// Makes room in a full piece. Answers as a step of spreading does: with the tree as it is now.
pub(crate) fn set_split(set: Vec<u8>, piece: Vec<u8>, partner: Vec<u8>, leaf: Option<(u32, u32)>) -> Command {
    leaf_args(fcall("set_split", &[set, piece, partner]), leaf)
}

/// Asks how many members the local set at `key` has.
pub(crate) fn count(key: Vec<u8>) -> Command {
    fcall_ro("set_count", &[key])
}

/// Members, and whether the set has been spread.
pub(crate) fn parse_count(reply: Reply) -> Result<(u64, u8)> {
    let reply = reply.into_array()?;
    let [members, state] = reply.as_slice() else { return Err(unexpected("set_count", &reply)) };
    Ok((members.count()?, u8::try_from(state.count()?).unwrap_or_default()))
}

/// The outcome of a step of spreading.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SpreadAnswer {
    Done,
    /// The set is in another state; empty: small.
    Tree(Vec<u8>),
}

impl SpreadAnswer {
    pub(crate) fn parse(reply: Reply) -> Result<Self> {
        let reply = reply.into_array()?;
        match reply.as_slice() {
            [word] if word.bytes()? == b"ok" => Ok(Self::Done),
            [word, tree] if word.bytes()? == b"tree" => Ok(Self::Tree(tree.bytes()?.to_vec())),
            _ => Err(unexpected("spread", &reply)),
        }
    }
}

/// Freezes the set; `before` is who was spreading it until now, empty if nobody.
pub(crate) fn spread_begin(set: Vec<u8>, piece0: Vec<u8>, before: &[u8], nonce: &[u8]) -> Command {
    fcall("spread_begin", &[set, piece0]).arg(before).arg(nonce)
}

/// Notes that whoever copies the set with this nonce is alive.
pub(crate) fn spread_beat(set: Vec<u8>, nonce: &[u8], bit: u32) -> Command {
    fcall("spread_beat", &[set]).arg(nonce).arg(bit)
}

/// All copies are made, and on replicas.
pub(crate) fn spread_copied(set: Vec<u8>, nonce: &[u8]) -> Command {
    fcall("spread_copied", &[set]).arg(nonce)
}

/// The parts are the set from now on.
pub(crate) fn spread_end(set: Vec<u8>, nonce: &[u8]) -> Command {
    fcall("spread_end", &[set]).arg(nonce)
}

/// Drops some pieces of a set that was spread.
pub(crate) fn spread_drop(set: &[u8], pieces: impl Iterator<Item = Vec<u8>>) -> Command {
    let keys: Vec<Vec<u8>> = std::iter::once(set.to_vec()).chain(pieces).collect();
    fcall("spread_drop", &keys)
}

/// The tree forgets its pieces, which are gone.
pub(crate) fn spread_forget(set: Vec<u8>) -> Command {
    fcall("spread_forget", &[set])
}

/// Drops a string if it still has this value.
pub(crate) fn string_drop(key: Vec<u8>, value: &[u8]) -> Command {
    fcall("guard_close", &[key]).arg(value)
}

/// Removes the guard if it still has this value.
pub(crate) fn guard_close(guard: Vec<u8>, nonce: &[u8]) -> Command {
    fcall("guard_close", &[guard]).arg(nonce)
}

pub(super) fn leaf_args(command: Command, leaf: Option<(u32, u32)>) -> Command {
    match leaf {
        Some((piece, depth)) => command.arg(piece).arg(depth),
        None => command.arg("-1").arg("0"),
    }
}

/// Scores as Redis reads them back exactly: shortest digits that round-trip.
pub(crate) fn push_score(command: &mut Command, score: f64) {
    #[expect(clippy::cast_possible_truncation, reason = "checked to be a whole number of 53 bits")]
    if score.fract() == 0.0 && score.abs() < 9_007_199_254_740_992.0 {
        command.push(score as i64);
    } else {
        command.push(format!("{score:e}"));
    }
}
