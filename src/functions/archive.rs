//! Posts that leave memory for the archive, and come back.

use super::{fcall, read_nonce, unexpected};
use crate::archive::ArchiveToken;
use crate::cluster::{Command, Reply};
use crate::error::{Error, Result};
use crate::ids::{AccountId, PostId};
use crate::nonce::Nonce;

/// The most elements of an outbox that one move passes.
pub(crate) const MOVED_MAX: usize = 128;

/// A token as it is stored: its number, then its random bytes.
pub(crate) fn token_bytes(token: ArchiveToken) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&token.number.to_be_bytes());
    bytes[8..].copy_from_slice(&token.nonce);
    bytes
}

/// The posts of an account that stay in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StayingPosts {
    /// So many of the newest ones,
    pub(crate) posts: u32,
    /// and those that aren't as old as so many milliseconds.
    pub(crate) ms: u64,
}

/// The reason why somebody asks for a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenCase {
    /// Posts that are due, if there are any.
    Due,
    /// Something else, whatever is due.
    Always,
    /// What is left of an account that was deleted.
    Burial,
}

/// Asks for the next token of an account, and which of its posts may leave.
#[derive(Debug, Clone)]
pub(crate) struct ArchiveBegin {
    /// Record, outbox, the bucket's agenda.
    pub(crate) keys: [Vec<u8>; 3],
    pub(crate) account: AccountId,
    pub(crate) nonce: Nonce,
    pub(crate) stays: StayingPosts,
    pub(crate) now_ms: u64,
    /// When somebody else may begin.
    pub(crate) again_at: u64,
    pub(crate) decision: u32,
    /// A number that the token's must be above.
    pub(crate) above: u64,
    pub(crate) case: TokenCase,
    /// A post that is to be deleted.
    pub(crate) erased: Option<ErasedPost>,
    /// When a burial is looked at; 0: the archive can't lose it.
    pub(crate) looked_at: u64,
    /// Posts below the account's floor that are looked at now.
    pub(crate) warm: Vec<PostId>,
}

/// A post that is to be deleted.
#[derive(Debug, Clone)]
pub(crate) struct ErasedPost {
    pub(crate) id: PostId,
    pub(crate) key: Vec<u8>,
    /// When it is looked at again, if it is there then.
    pub(crate) again_at: u64,
}

/// Under which token the archive has forgotten a post, and when that is looked at; 0: it can't lose that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ErasedUnder {
    pub(crate) token: ArchiveToken,
    pub(crate) looked_at: u64,
}

/// The answer to [`ArchiveBegin`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ArchiveBeginAnswer {
    Begun {
        token: ArchiveToken,
        /// The outbox's first element.
        first: Vec<u8>,
        /// Elements of posts that may leave, deleted ones among them, the oldest first.
        due: Vec<u64>,
    },
    /// Nothing is due.
    Nothing,
    NoAccount,
    /// It was deleted, and of the posts that were to be looked at something may be left.
    Deleted,
    /// The post that is to be deleted has left memory, or lies above the floor.
    Cold,
    /// Too many that were deleted have yet to settle.
    Unsettled,
    /// Somebody else has posts of it leave.
    Moving,
    /// The bucket knows another decision.
    Undecided,
}

impl ArchiveBegin {
    pub(crate) fn command(&self) -> Command {
        let (erased, soon) = match &self.erased {
            Some(post) => (post.id.get().to_be_bytes().to_vec(), post.again_at),
            None => (Vec::new(), 0),
        };
        let erased_key = self.erased.iter().map(|post| post.key.clone());
        let keys: Vec<Vec<u8>> = self.keys.iter().cloned().chain(erased_key).collect();
        let command = fcall("archive_begin", &keys)
            .arg(&self.account.to_bytes())
            .arg(&self.nonce)
            .arg(MOVED_MAX)
            .arg(self.stays.posts)
            .arg(self.stays.ms)
            .arg(self.now_ms)
            .arg(self.again_at)
            .arg(self.decision)
            .arg(self.above)
            .arg(match self.case {
                TokenCase::Due => "",
                TokenCase::Always => "1",
                TokenCase::Burial => "d",
            })
            .arg(&erased)
            .arg(soon)
            .arg(self.looked_at);
        self.warm.iter().fold(command, |command, id| command.arg(&id.get().to_be_bytes()))
    }
}

impl ArchiveBeginAnswer {
    pub(crate) fn parse(reply: Reply) -> Result<Self> {
        let reply = reply.into_array()?;
        Ok(match reply.as_slice() {
            [word] if word.bytes()? == b"nothing" => Self::Nothing,
            [word] if word.bytes()? == b"gone" => Self::NoAccount,
            [word] if word.bytes()? == b"deleted" => Self::Deleted,
            [word] if word.bytes()? == b"cold" => Self::Cold,
            [word] if word.bytes()? == b"unsettled" => Self::Unsettled,
            [word] if word.bytes()? == b"moving" => Self::Moving,
            [word] if word.bytes()? == b"decision" => Self::Undecided,
            [word, token, first, due @ ..] if word.bytes()? == b"ok" => Self::Begun {
                token: read_token(token.bytes()?)?,
                first: first.bytes()?.to_vec(),
                due: due.iter().map(|id| read_nonce(id).map(u64::from_be_bytes)).collect::<Result<_>>()?,
            },
            _ => return Err(unexpected("archive_begin", &reply)),
        })
    }
}

pub(super) fn read_token(bytes: &[u8]) -> Result<ArchiveToken> {
    let wrong = || Error::internal(format!("a token of the archive is `{}`", bytes.escape_ascii()));
    let (number, nonce) = bytes.split_first_chunk().ok_or_else(wrong)?;
    let nonce = nonce.try_into().map_err(|_| wrong())?;
    Ok(ArchiveToken { number: u64::from_be_bytes(*number), nonce })
}

/// A post that may leave, as it was stored in the archive. Small: a million may wait for the archive to settle.
#[derive(Debug, Clone)]
pub(crate) struct LeavingPost {
    pub(crate) id: PostId,
    /// The keys of its lists' pieces.
    pub(crate) piece_keys: Vec<Vec<u8>>,
    /// How many pieces each list has.
    pub(crate) pieces: [u8; 4],
    /// What the function makes anew of what lies there; `None`: the post is gone.
    pub(crate) digest: Option<[u8; 20]>,
}

/// Lets posts leave that the archive has.
#[derive(Debug, Clone)]
pub(crate) struct ArchiveMove {
    /// Record, outbox, the bucket's agenda.
    pub(crate) keys: [Vec<u8>; 3],
    pub(crate) account: AccountId,
    pub(crate) token: ArchiveToken,
    pub(crate) first: Vec<u8>,
    /// The elements that the floor passes.
    pub(crate) passed: Vec<u64>,
    pub(crate) stays: StayingPosts,
    /// Posts that stay though the floor passes them, and when they are looked at again.
    pub(crate) warm: Vec<PostId>,
    pub(crate) warm_at: u64,
    pub(crate) leaving: Vec<LeavingPost>,
    /// Whether more of its posts were due than have room in a move.
    pub(crate) has_more: bool,
}

/// The answer to [`ArchiveMove`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ArchiveMoveAnswer {
    Done,
    /// Somebody has taken another token, or the account is gone.
    OtherToken,
    /// The outbox has changed.
    OtherOutbox,
    /// These of the posts have changed.
    OtherPosts(Vec<usize>),
}

impl ArchiveMove {
    /// `keys_of`: a post and its four lists.
    pub(crate) fn command(&self, keys_of: impl Fn(PostId) -> Result<Vec<Vec<u8>>>) -> Result<Command> {
        let joined = |ids: &[u64]| ids.iter().flat_map(|id| id.to_be_bytes()).collect::<Vec<u8>>();
        let warm: Vec<u64> = self.warm.iter().map(|id| id.get()).collect();
        let mut keys = self.keys.to_vec();
        for post in &self.leaving {
            keys.extend(keys_of(post.id)?);
            keys.extend(post.piece_keys.iter().cloned());
        }
        let command = fcall("archive_move", &keys)
            .arg(&self.account.to_bytes())
            .arg(&token_bytes(self.token))
            .arg(&self.first)
            .arg(&joined(&self.passed))
            .arg(self.stays.posts)
            .arg(self.stays.ms)
            .arg(self.warm_at)
            .arg(&joined(&warm));
        let hex = |digest: [u8; 20]| digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        Ok(self.leaving.iter().fold(command, |command, post| {
            let digest = post.digest.map(hex).unwrap_or_default();
            command.arg(&post.id.get().to_be_bytes()).arg(&digest).arg(&post.pieces)
        }))
    }
}

impl ArchiveMoveAnswer {
    pub(crate) fn parse(reply: Reply) -> Result<Self> {
        let reply = reply.into_array()?;
        Ok(match reply.as_slice() {
            [word] if word.bytes()? == b"ok" => Self::Done,
            [word] if word.bytes()? == b"token" => Self::OtherToken,
            [word] if word.bytes()? == b"outbox" => Self::OtherOutbox,
            [word, posts @ ..] if word.bytes()? == b"posts" => {
                let number = |n: &Reply| Ok(usize::try_from(n.count()?).unwrap_or(usize::MAX));
                Self::OtherPosts(posts.iter().map(number).collect::<Result<_>>()?)
            }
            _ => return Err(unexpected("archive_move", &reply)),
        })
    }
}

/// A list of a post that comes back.
#[derive(Debug, Clone, Default)]
pub(crate) struct ThawedList {
    /// Of one that has pieces; of a small one empty.
    pub(crate) tree: Vec<u8>,
    /// Of a small one its members, else those of each piece: score, length and bytes of each.
    pub(crate) sets: Vec<Vec<u8>>,
}

/// The reason why a post comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThawReason {
    Change,
    Deletion,
    /// Memory has lost it, above its author's floor.
    Recovery,
}

/// Brings a post back into memory.
#[derive(Debug, Clone)]
pub(crate) struct PostThaw<'a> {
    /// Record, outbox, the bucket's agenda; the post, its four lists, their pieces.
    pub(crate) keys: Vec<Vec<u8>>,
    pub(crate) account: AccountId,
    pub(crate) id: PostId,
    /// The token that was given out last when it was looked up, as it is stored.
    pub(crate) token: Vec<u8>,
    pub(crate) stored: &'a [u8],
    /// What for: it comes back to be deleted also where there is no room.
    pub(crate) reason: ThawReason,
    /// When it is looked at again.
    pub(crate) warm_at: u64,
    pub(crate) lists: [ThawedList; 4],
}

/// The answer to [`PostThaw`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThawAnswer {
    Done,
    /// It is there already.
    There,
    /// Its author's floor, or what the archive has, has changed.
    Changed,
    NoAccount,
}

impl PostThaw<'_> {
    pub(crate) fn command(&self) -> Command {
        let pieces = |list: &ThawedList| match list.tree.is_empty() {
            true => 0,
            false => u8::try_from(list.sets.len()).unwrap_or(u8::MAX),
        };
        let name = match self.reason {
            ThawReason::Change => "post_thaw",
            ThawReason::Deletion => "post_thaw_to_delete",
            ThawReason::Recovery => "post_recover",
        };
        let command = fcall(name, &self.keys)
            .arg(&self.account.to_bytes())
            .arg(&self.id.get().to_be_bytes())
            .arg(&self.token)
            .arg(self.stored)
            .arg(self.warm_at)
            .arg(&self.lists.each_ref().map(pieces));
        let command = self.lists.iter().fold(command, |command, list| command.arg(&list.tree));
        let sets = self.lists.iter().flat_map(|list| &list.sets);
        sets.fold(command, |command, set| command.arg(set))
    }
}

impl ThawAnswer {
    pub(crate) fn parse(reply: Reply) -> Result<Self> {
        let reply = reply.into_array()?;
        Ok(match reply.as_slice() {
            [word] if word.bytes()? == b"ok" => Self::Done,
            [word] if word.bytes()? == b"there" => Self::There,
            [word] if word.bytes()? == b"changed" => Self::Changed,
            [word] if word.bytes()? == b"gone" => Self::NoAccount,
            _ => return Err(unexpected("post_thaw", &reply)),
        })
    }
}
