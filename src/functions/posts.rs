//! Posts and outboxes.

use super::accounts::{or_empty, read_nonce};
use super::archive::{ErasedUnder, StayingPosts, token_bytes};
use super::homes::HomeFit;
use super::packed::{PackedNumber, SMALL, pack, span_ms};
use super::sets::{leaf_args, push_score};
use super::windows::{ReachedLimit, TimeLimits};
use super::{fcall, fcall_ro, unexpected};
use crate::bucket::{Bucket, Buckets};
use crate::cluster::{Command, Reply};
use crate::error::Result;
use crate::ids::{AccountId, sequences};
use crate::member::Member as _;
use crate::nonce::Nonce;
use crate::post::PostRef;

/// A new post.
#[derive(Debug)]
pub(crate) struct Publish<'a> {
    /// Clock, author's record, outbox, author's home, journal, author's followers.
    pub(crate) keys: [Vec<u8>; 6],
    /// Of a plain repost.
    pub(crate) repost: Option<RepostPlace>,
    /// Where it is noted if it turns out to be public.
    pub(crate) public: Option<PublicPlace>,
    /// The token's key, and for how long it is remembered.
    pub(crate) token: Option<(Vec<u8>, u64)>,
    pub(crate) post_head: Vec<u8>,
    pub(crate) now_ms: u64,
    pub(crate) post: &'a [u8],
    pub(crate) author: AccountId,
    pub(crate) journal_most: u32,
    pub(crate) outbox_most: u32,
    pub(crate) reposts_most: u32,
    /// What stays in memory; `None`: everything.
    pub(crate) stays: Option<StayingPosts>,
    pub(crate) owner: [u8; 8],
    /// The journal's entry for the delivery.
    pub(crate) entry: [u8; 8],
    pub(crate) fit: HomeFit,
    /// What it counts against.
    pub(crate) limits: &'a TimeLimits,
    /// Of a post into a group, the graph stamp under which its writer may post there.
    pub(crate) allowed_under: Option<Nonce>,
    /// Tasks about what the post refers to: the entry, the task's letter, what follows post and author in it.
    pub(crate) tasks: Vec<([u8; 8], u8, Vec<u8>)>,
}

/// The public posts of a bucket, and how many there may be.
#[derive(Debug, Clone)]
pub(crate) struct PublicPlace {
    pub(crate) key: Vec<u8>,
    pub(crate) most: u32,
}

/// The place of a note that an account has reposted something, without a comment.
#[derive(Debug, Clone)]
pub(crate) struct RepostPlace {
    /// What it has reposted, and the piece of that (the set again while it is small).
    pub(crate) keys: [Vec<u8>; 2],
    pub(crate) leaf: Option<(u32, u32)>,
    pub(crate) original: PostRef,
    /// The account's ties stamp as it was seen, and the next one.
    pub(crate) seen: Option<Nonce>,
    pub(crate) stamp: Nonce,
}

impl RepostPlace {
    /// Adds what is reposted and where it is noted, as functions take it.
    fn args(repost: Option<&Self>, command: Command) -> Command {
        match repost {
            Some(repost) => leaf_args(command.arg(&repost.original.to_bytes()), repost.leaf)
                .arg(or_empty(repost.seen.as_ref()))
                .arg(&repost.stamp),
            None => leaf_args(command.arg(""), None).arg("").arg(""),
        }
    }
}

/// The outcome of a [`Publish`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PublishAnswer {
    /// Its id, the author's mode, the state of its follower set.
    New {
        id: u64,
        mode: u8,
        layout: u8,
    },
    /// The token was used, or the author has reposted that: the post.
    Again(u64),
    /// Of what the author has tied to posts, or of who may post into a group: something has changed since the caller
    /// looked.
    Stamp,
    /// Of what the author has reposted: our copy of the tree is old, the piece is full.
    Tree(Vec<u8>),
    PieceFull,
    /// As many as there may be.
    Limit,
    NoAccount,
    /// The author's state forbids it.
    State(u8),
    JournalFull,
    /// As many of its posts wait for the archive as may.
    Waits,
    /// What it counts against a limit that is reached: which one, and how often the account may.
    TooOften(ReachedLimit),
}

impl Publish<'_> {
    pub(crate) fn command(self, buckets: Buckets, bucket: Bucket, piece_most: u32) -> Command {
        let packed = pack::<55, _>(self.numbers(buckets, bucket, piece_most));
        let of_repost = self.repost.iter().flat_map(|repost| repost.keys.clone());
        let (public, token) = (self.public.map(|public| public.key), self.token.map(|(key, _)| key));
        let keys: Vec<Vec<u8>> = self.keys.into_iter().chain(of_repost).chain(public).chain(token).collect();
        let command = fcall("post_publish", &keys)
            .arg(&packed)
            .arg(&self.post_head)
            .arg(self.post)
            .arg(&self.author.to_bytes())
            .arg(&self.owner)
            .arg(&self.entry)
            .arg(&self.limits.as_arg())
            .arg(or_empty(self.allowed_under.as_ref()));
        let command = match &self.repost {
            Some(RepostPlace { original, seen, stamp, .. }) => {
                command.arg(&original.to_bytes()).arg(or_empty(seen.as_ref())).arg(stamp)
            }
            None => command.arg("").arg("").arg(""),
        };
        let tasks = self.tasks.iter();
        tasks.fold(self.fit.push(command), |command, (entry, letter, rest)| {
            command.arg(entry).arg(&[*letter]).arg(rest)
        })
    }

    fn numbers(&self, buckets: Buckets, bucket: Bucket, piece_most: u32) -> [PackedNumber; 13] {
        let per_ms = sequences(buckets);
        let (piece, depth) = self.repost.as_ref().and_then(|repost| repost.leaf).unwrap_or(SMALL);
        let (hot, hot_ms) = self.stays.map_or((0, 0), |stays| (stays.posts, stays.ms));
        [
            ("caller_ms", 6, self.now_ms),
            ("per_ms", 4, per_ms),
            ("low", 4, u64::from(bucket.index()) * per_ms),
            ("journal_most", 4, self.journal_most.into()),
            ("most", 4, self.outbox_most.into()),
            ("token_ms", 6, self.token.as_ref().map_or(0, |(_, ms)| span_ms(*ms).max(1))),
            ("piece", 4, piece.into()),
            ("depth", 1, depth.into()),
            ("piece_most", 4, piece_most.into()),
            ("reposts_most", 4, self.reposts_most.into()),
            ("hot", 4, hot.into()),
            ("hot_ms", 6, span_ms(hot_ms)),
            ("public_most", 4, self.public.as_ref().map_or(0, |public| public.most).into()),
        ]
    }
}

impl PublishAnswer {
    pub(crate) fn parse(reply: Reply) -> Result<Self> {
        let reply = reply.into_array()?;
        Ok(match reply.as_slice() {
            [word] if word.bytes()? == b"gone" => Self::NoAccount,
            [word] if word.bytes()? == b"busy" => Self::JournalFull,
            [word] if word.bytes()? == b"waits" => Self::Waits,
            [word] if word.bytes()? == b"stamp" => Self::Stamp,
            [word] if word.bytes()? == b"full" => Self::PieceFull,
            [word] if word.bytes()? == b"limit" => Self::Limit,
            [word, number, most, parts] if word.bytes()? == b"often" => {
                Self::TooOften(ReachedLimit::parse([number, most, parts])?)
            }
            [word, tree] if word.bytes()? == b"tree" => Self::Tree(tree.bytes()?.to_vec()),
            [word, id] if word.bytes()? == b"again" => Self::Again(u64::from_be_bytes(read_nonce(id)?)),
            [word, state] if word.bytes()? == b"state" => {
                Self::State(state.bytes()?.first().copied().unwrap_or_default())
            }
            [word, id, mode, layout] if word.bytes()? == b"ok" => Self::New {
                id: u64::from_be_bytes(read_nonce(id)?),
                mode: mode.bytes()?.first().copied().unwrap_or(b'P'),
                layout: u8::try_from(layout.count()?).unwrap_or_default(),
            },
            _ => return Err(unexpected("post_publish", &reply)),
        })
    }
}

/// Tasks that an edit or a deletion leaves: entries and their values, for a journal of so many at most.
#[derive(Debug)]
pub(crate) struct TasksLeft<'a> {
    pub(crate) journal_most: u32,
    pub(crate) entries: &'a [([u8; 8], Vec<u8>)],
}

impl TasksLeft<'_> {
    fn push_entries(&self, command: Command) -> Command {
        self.entries.iter().fold(command, |command, (entry, value)| command.arg(entry).arg(value))
    }
}

/// Writes another version of a post, if nobody else has since that revision, and of one in a group, if who may write
/// there is still what was seen under that stamp. `keys`: post, author's record; the
/// journal, if something is left: a key that doesn't exist would hold it up in a slot that moves. `hidden_by`: of an
/// edit that is held back, what has hidden the post, and still must.
pub(crate) fn post_edit(
    keys: &[Vec<u8>],
    author: AccountId,
    revision: u32,
    (edited, allowed_under, hidden_by): (&[u8], Option<Nonce>, Option<ModerationStamp>),
    left: &TasksLeft<'_>,
) -> Command {
    let command = fcall("post_edit", keys).arg(&author.to_bytes()).arg(&revision.to_be_bytes());
    let command = command.arg(edited).arg(left.journal_most).arg(or_empty(allowed_under.as_ref()));
    left.push_entries(command.arg(hidden_by.as_ref().map_or(&[][..], |stamp| stamp)))
}

/// The outcome of a `post_edit` or a `post_delete`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PostChangeAnswer {
    Done,
    NoPost,
    Foreign,
    Revision,
    JournalFull,
    /// The author's state forbids the edit.
    State(u8),
    /// The archive has it, or another token was given out since.
    Below,
    /// Of a repost that is deleted: what its author has tied to posts has changed since the caller looked.
    Stamp,
    /// The same: our copy of the tree of what its author has reposted is old.
    Tree(Vec<u8>),
}

impl PostChangeAnswer {
    pub(crate) fn parse(reply: Reply) -> Result<Self> {
        let reply = reply.into_array()?;
        let unknown = || unexpected("a change of a post", &reply);
        match reply.as_slice() {
            [word] => match word.bytes()? {
                b"ok" => Ok(Self::Done),
                b"gone" => Ok(Self::NoPost),
                b"foreign" => Ok(Self::Foreign),
                b"revision" => Ok(Self::Revision),
                b"busy" => Ok(Self::JournalFull),
                b"below" => Ok(Self::Below),
                b"stamp" => Ok(Self::Stamp),
                _ => Err(unknown()),
            },
            [word, value] => match word.bytes()? {
                b"state" => Ok(Self::State(value.bytes()?.first().copied().unwrap_or_default())),
                b"tree" => Ok(Self::Tree(value.bytes()?.to_vec())),
                _ => Err(unknown()),
            },
            _ => Err(unknown()),
        }
    }
}

/// Random bytes that stand with what moderators say of a post, new ones each time.
pub(crate) type ModerationStamp = [u8; 4];

/// Changes what moderators say of a post, if it still is what was `seen`.
/// Answers as [`CompareAnswer`](super::CompareAnswer).
pub(crate) fn post_moderate(post: Vec<u8>, seen: ModerationStamp, new: ModerationStamp, said: u8) -> Command {
    fcall("post_moderate", &[post]).arg(&seen).arg(&new).arg(&[said])
}

/// The version of a post that somebody saw who deletes it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PostVersion<'a> {
    Revision(u32),
    /// What stands there can't be read; `None`: it is no string.
    Unreadable(Option<&'a [u8]>),
}

impl PostVersion<'_> {
    fn to_bytes(self) -> Vec<u8> {
        match self {
            Self::Revision(revision) => revision.to_be_bytes().to_vec(),
            Self::Unreadable(Some(bytes)) => [b"text:", bytes].concat(),
            Self::Unreadable(None) => b"other".to_vec(),
        }
    }
}

/// Deletes a post, if it still is what was seen: nobody has edited it since. `keys`: post, outbox, author's record,
/// journal, the bucket's agenda. `repost`: of a plain repost, with its score. `public`: of one that may be among them,
/// the bucket's public posts. `erased`: under which token the archive has forgotten it, and random bytes for the next
/// one.
pub(crate) fn post_delete(
    keys: &[Vec<u8>; 5],
    (author, id): (AccountId, u64),
    seen: PostVersion<'_>,
    (repost, public): (Option<(&RepostPlace, f64)>, Option<Vec<u8>>),
    erased: Option<(ErasedUnder, Nonce)>,
    left: &TasksLeft<'_>,
) -> Command {
    let of_repost = repost.iter().flat_map(|(repost, _)| repost.keys.clone());
    let may_be_public = if public.is_some() { "1" } else { "" };
    let keys: Vec<Vec<u8>> = keys.iter().cloned().chain(of_repost).chain(public).collect();
    let command = fcall("post_delete", &keys).arg(&author.to_bytes()).arg(&id.to_be_bytes());
    let mut command = RepostPlace::args(repost.map(|(repost, _)| repost), command.arg(&seen.to_bytes()));
    push_score(&mut command, repost.map_or(0.0, |(_, score)| score));
    let command = command.arg(left.journal_most);
    let command = match erased {
        Some((under, nonce)) => command.arg(&token_bytes(under.token)).arg(&nonce).arg(under.looked_at),
        None => command.arg("").arg("").arg("0"),
    };
    let command = command.arg(may_be_public);
    left.push_entries(command)
}

/// Ids of an outbox on one side of an id: answers with whether that is all, then elements as stored, ascending.
pub(crate) fn outbox_page(outbox: Vec<u8>, is_below: bool, id: u64, most: usize) -> Command {
    fcall_ro("outbox_page", &[outbox]).arg(if is_below { "<" } else { ">" }).arg(&id.to_be_bytes()).arg(most)
}

/// Cuts an outbox down to so many ids, if its bucket knows that decision: answers how many went.
pub(crate) fn outbox_cut(outbox: Vec<u8>, most: u32, decision: u32) -> Command {
    fcall("outbox_cut", &[outbox]).arg(most).arg(decision)
}

/// Appends ids to an outbox: answers 1, 0 if there is no such account, -1 if they are not above those that are there.
pub(crate) fn outbox_import(record: Vec<u8>, outbox: Vec<u8>, ids: &[u64]) -> Command {
    let command = fcall("outbox_import", &[record, outbox]);
    ids.iter().fold(command, |command, id| command.arg(&id.to_be_bytes()))
}

#[cfg(test)]
mod tests;
