//! The lists of a post, and the numbers in it that say how long they are.

use super::inbox::push_told;
use super::sets::{leaf_args, push_score};
use super::{fcall, unexpected};
use crate::cluster::{Command, Reply};
use crate::error::{Error, Result};
use crate::ids::AccountId;
use crate::inbox::Notice;

/// Puts a member on a list of a post, or takes it off.
#[derive(Debug)]
pub(crate) struct ListSet<'a> {
    /// Post, list, its piece (the list while it is small), the bucket's last removal.
    pub(crate) keys: [Vec<u8>; 4],
    pub(crate) author: AccountId,
    /// Where the number of members stands in the post.
    pub(crate) count_offset: usize,
    /// Piece and depth; `None` for a small list.
    pub(crate) leaf: Option<(u32, u32)>,
    pub(crate) piece_limit: u32,
    pub(crate) change: ListChange,
    pub(crate) member: &'a [u8],
    /// The author's inbox, and what it is told of who comes, or not any more of who goes.
    pub(crate) told: Option<(Vec<u8>, Notice)>,
    pub(crate) now_ms: u64,
}

/// A change of a list's member.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ListChange {
    /// On it, with this score if it had a lower one or none; unless something was taken off since (H126). `None`:
    /// whatever was.
    On(f64, Option<LastRemoval>),
    /// Off it.
    Off,
    /// Off it, if its score is below this one.
    OffBelow(f64),
}

/// The time when something was taken off a list of a bucket last, in milliseconds that always rise; 0: never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LastRemoval(u64);

impl LastRemoval {
    pub(crate) fn parse(reply: &Reply) -> Result<Self> {
        if reply.is_nil() {
            Ok(Self(0))
        } else {
            Ok(Self(reply.text()?.parse().map_err(|_| not_a_time(reply))?))
        }
    }

    /// As it stands there, or would if it did.
    pub(crate) fn stored(self) -> Vec<u8> {
        self.0.to_string().into_bytes()
    }
}

fn not_a_time(reply: &Reply) -> Error {
    Error::internal(format!("when something was taken off a list last is {reply:?}"))
}

/// The outcome of a [`ListSet`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ListAnswer {
    /// It is on the list, or off it.
    Done,
    /// A member of a group or a chat wrote the post, and has to be told before anything is added.
    OfMember,
    /// There is no such post, so nothing can be on its list.
    NoPost,
    /// Something was taken off a list of the bucket since the caller looked at what it adds.
    Overtaken,
    /// The caller's copy of the tree is old; empty: the list is small.
    Tree(Vec<u8>),
    Full,
    /// Something stands where the post should that this release can't read.
    Unreadable,
}

impl ListSet<'_> {
    pub(crate) fn command(self) -> Command {
        let (sign, score, time) = match self.change {
            ListChange::On(score, removed) => ("+", Some(score), removed.map(|LastRemoval(ms)| ms)),
            ListChange::Off => ("-", None, Some(self.now_ms)),
            ListChange::OffBelow(score) => ("-", Some(score), Some(self.now_ms)),
        };
        let (inbox, told) = self.told.unzip();
        let keys: Vec<Vec<u8>> = self.keys.into_iter().chain(inbox).collect();
        let command = fcall("list_set", &keys).arg(&self.author.to_bytes()).arg(self.count_offset);
        let mut command = leaf_args(command.arg(sign), self.leaf).arg(self.piece_limit);
        match score {
            Some(score) => push_score(&mut command, score),
            None => drop(command.push("")),
        }
        let command = command.arg(self.member);
        let command = match time {
            Some(ms) => command.arg(ms),
            None => command.arg(""),
        };
        push_told(command, told).arg(self.now_ms)
    }
}

impl ListAnswer {
    pub(crate) fn parse(reply: Reply) -> Result<Self> {
        let reply = reply.into_array()?;
        Ok(match reply.as_slice() {
            [word] if word.bytes()? == b"gone" => Self::NoPost,
            [word] if word.bytes()? == b"late" => Self::Overtaken,
            [word] if word.bytes()? == b"full" => Self::Full,
            [word] if word.bytes()? == b"unreadable" => Self::Unreadable,
            [word] if word.bytes()? == b"ok" => Self::Done,
            [word] if word.bytes()? == b"member" => Self::OfMember,
            [word, tree] if word.bytes()? == b"tree" => Self::Tree(tree.bytes()?.to_vec()),
            _ => return Err(unexpected("list_set", &reply)),
        })
    }
}

/// Drops keys of the lists of a post that is gone. `keys`: the post first. Answers 0 if it is there.
pub(crate) fn list_drop(keys: &[Vec<u8>]) -> Command {
    fcall("list_drop", keys)
}

/// Writes how many members a list has into its post. `keys`: post, list.
pub(crate) fn list_recount(keys: &[Vec<u8>; 2], author: AccountId, count_offset: usize) -> Command {
    fcall("list_recount", keys).arg(&author.to_bytes()).arg(count_offset)
}
