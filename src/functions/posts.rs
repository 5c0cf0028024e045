//! Posts and outboxes.

use super::accounts::mark;
use super::homes::HomeFit;
use super::{fcall, fcall_ro, one_word, unexpected};
use crate::bucket::{Bucket, Buckets};
use crate::cluster::{Command, Reply};
use crate::error::Result;
use crate::ids::{AccountId, sequences};

/// A new post.
#[derive(Debug)]
pub(crate) struct Publish<'a> {
    /// Clock, author's record, outbox, author's home, journal, author's followers.
    pub(crate) keys: [Vec<u8>; 6],
    /// The token's key, and for how long it is remembered.
    pub(crate) token: Option<(Vec<u8>, u64)>,
    pub(crate) post_head: Vec<u8>,
    pub(crate) now_ms: u64,
    pub(crate) post: &'a [u8],
    pub(crate) author: AccountId,
    pub(crate) journal_most: u32,
    pub(crate) outbox_most: u32,
    pub(crate) owner: [u8; 8],
    /// The journal's entry for the delivery.
    pub(crate) entry: [u8; 8],
    pub(crate) fit: HomeFit,
    /// Entries for what the post refers to.
    pub(crate) references: Vec<([u8; 8], Vec<u8>)>,
}

/// What became of a [`Publish`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Published {
    /// Its id, the author's mode, the state of its follower set.
    New {
        id: u64,
        mode: u8,
        layout: u8,
    },
    /// The token was used: its post.
    Again(u64),
    NoAccount,
    /// The author's state forbids it.
    State(u8),
    JournalFull,
}

impl Publish<'_> {
    pub(crate) fn command(self, buckets: Buckets, bucket: Bucket) -> Command {
        let (token, ttl) = self.token.map_or((None, 0), |(key, ttl)| (Some(key), ttl));
        let keys: Vec<Vec<u8>> = self.keys.into_iter().chain(token).collect();
        let low = u64::from(bucket.index()) * sequences(buckets);
        let command = fcall("post_publish", &keys)
            .arg(&self.post_head)
            .arg(self.now_ms)
            .arg(sequences(buckets))
            .arg(low)
            .arg(self.post)
            .arg(&self.author.to_bytes())
            .arg(self.journal_most)
            .arg(self.outbox_most)
            .arg(&self.owner)
            .arg(&self.entry);
        let command = self.fit.push(command).arg(ttl);
        self.references.iter().fold(command, |command, (entry, rest)| command.arg(entry).arg(rest))
    }
}

impl Published {
    pub(crate) fn parse(reply: Reply) -> Result<Self> {
        let reply = reply.into_array()?;
        Ok(match reply.as_slice() {
            [word] if word.bytes()? == b"gone" => Self::NoAccount,
            [word] if word.bytes()? == b"busy" => Self::JournalFull,
            [word, id] if word.bytes()? == b"again" => Self::Again(u64::from_be_bytes(mark(id)?)),
            [word, state] if word.bytes()? == b"state" => {
                Self::State(state.bytes()?.first().copied().unwrap_or_default())
            }
            [word, id, mode, layout] if word.bytes()? == b"ok" => Self::New {
                id: u64::from_be_bytes(mark(id)?),
                mode: mode.bytes()?.first().copied().unwrap_or(b'P'),
                layout: u8::try_from(layout.count()?).unwrap_or_default(),
            },
            _ => return Err(unexpected("post_publish", &reply)),
        })
    }
}

/// Writes another version of a post, if nobody else has since that revision.
pub(crate) fn post_edit(post: Vec<u8>, author: AccountId, revision: u32, edited: &[u8]) -> Command {
    fcall("post_edit", &[post]).arg(&author.to_bytes()).arg(&revision.to_be_bytes()).arg(edited)
}

/// What became of a `post_edit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edited {
    Done,
    NoPost,
    Foreign,
    Revision,
}

impl Edited {
    pub(crate) fn parse(reply: Reply) -> Result<Self> {
        let words = [
            ("ok", Self::Done),
            ("gone", Self::NoPost),
            ("foreign", Self::Foreign),
            ("revision", Self::Revision),
        ];
        one_word("post_edit", reply, &words)
    }
}

/// Changes what moderators say of a post, if it still is what was `seen`. Answers as [`Compared`](super::Compared).
pub(crate) fn post_moderate(post: Vec<u8>, seen: [u8; 4], new: [u8; 4], said: u8) -> Command {
    fcall("post_moderate", &[post]).arg(&seen).arg(&new).arg(&[said])
}

/// Deletes a post. `keys`: post, outbox, author's record, journal.
pub(crate) fn post_delete(
    keys: &[Vec<u8>; 4],
    author: AccountId,
    id: u64,
    journal_most: u32,
    entries: &[([u8; 8], Vec<u8>)],
) -> Command {
    let command = fcall("post_delete", keys).arg(&author.to_bytes()).arg(&id.to_be_bytes()).arg(journal_most);
    entries.iter().fold(command, |command, (entry, value)| command.arg(entry).arg(value))
}

/// What became of a `post_delete`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deleted {
    Done,
    NoPost,
    Foreign,
    JournalFull,
}

impl Deleted {
    pub(crate) fn parse(reply: Reply) -> Result<Self> {
        let words = [
            ("ok", Self::Done),
            ("gone", Self::NoPost),
            ("foreign", Self::Foreign),
            ("busy", Self::JournalFull),
        ];
        one_word("post_delete", reply, &words)
    }
}

/// Ids of an outbox on one side of an id: answers with whether that is all, then elements as stored, ascending.
pub(crate) fn outbox_page(outbox: Vec<u8>, is_below: bool, id: u64, most: usize) -> Command {
    fcall_ro("outbox_page", &[outbox]).arg(if is_below { "<" } else { ">" }).arg(&id.to_be_bytes()).arg(most)
}

/// Appends ids to an outbox: answers 1, 0 if there is no such account, -1 if they are not above those that are there.
pub(crate) fn outbox_import(record: Vec<u8>, outbox: Vec<u8>, ids: &[u64]) -> Command {
    let command = fcall("outbox_import", &[record, outbox]);
    ids.iter().fold(command, |command, id| command.arg(&id.to_be_bytes()))
}
