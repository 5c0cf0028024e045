//! The fixed part of a stored post.

use serde::{Serialize, Serializer};

use super::check::is_language;
use super::layout::{
    AUTHOR_OFFSET, CONVERSATION_OFFSET, FLAG_BY_MEMBER, FLAG_HIDDEN, FLAG_NOT_TO, FLAG_ONLY_TO,
    FLAG_SENSITIVE, FLAG_SENSITIVE_SAID, FLAGS_OFFSET, HEADER_LEN, LANGUAGE_OFFSET, LIKES_OFFSET,
    MODERATED_OFFSET, ORIGINAL_AUTHOR_OFFSET, ORIGINAL_OFFSET, QUOTES_OFFSET, REPLIES_OFFSET,
    REPLY_TO_AUTHOR_OFFSET, REPLY_TO_OFFSET, REPOSTS_OFFSET, REVISION_OFFSET, VERSION, VERSION_OFFSET,
    VISIBILITY_OFFSET,
};
use super::{Draft, LANGUAGE_LEN_MAX, PostRef, Visibility};
use crate::error::{Error, Result};
use crate::ids::{AccountId, PostId};

/// All that is known about a post without reading what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PostHeader {
    /// Its visibility.
    pub visibility: Visibility,
    /// The number of its edits.
    pub revision: u32,
    /// Its author.
    pub author: AccountId,
    /// The post that it reposts or quotes.
    pub original: Option<PostRef>,
    /// The post that it answers.
    pub reply_to: Option<PostRef>,
    /// The first post of the conversation.
    pub conversation: Option<PostId>,
    /// Likes when it was read.
    pub likes: u32,
    /// Reposts when it was read.
    pub reposts: u32,
    /// Replies when it was read.
    pub replies: u32,
    /// Quotes (reposts with a comment) when it was read.
    pub quotes: u32,
    /// Bits that this release doesn't know are kept for the one that does.
    #[serde(flatten, serialize_with = "serialize_flags")]
    flags: u16,
    /// A valid language with zeros behind, or zeros.
    #[serde(serialize_with = "serialize_language")]
    language: [u8; LANGUAGE_LEN_MAX],
    /// Random bytes that change whenever a moderator changes something.
    #[serde(skip)]
    moderated: [u8; 4],
}

impl PostHeader {
    /// Reads the first 80 bytes of a stored post; what follows may be cut off and is not looked at.
    ///
    /// `Internal` for bytes that no release has written, and for another format version.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        Self::read(bytes).map_err(|error| error.context("header of a stored post"))
    }

    fn read(bytes: &[u8]) -> Result<Self> {
        let header = Self::of_this_format(bytes)?;
        let u32_at = |at| u32::from_be_bytes(array(header, at));
        let header = Self {
            visibility: Visibility::from_byte(header[VISIBILITY_OFFSET])?,
            revision: u32_at(REVISION_OFFSET),
            author: account(header, AUTHOR_OFFSET)?,
            original: reference(header, ORIGINAL_OFFSET, ORIGINAL_AUTHOR_OFFSET)?,
            reply_to: reference(header, REPLY_TO_OFFSET, REPLY_TO_AUTHOR_OFFSET)?,
            conversation: post(header, CONVERSATION_OFFSET)?,
            likes: u32_at(LIKES_OFFSET),
            reposts: u32_at(REPOSTS_OFFSET),
            replies: u32_at(REPLIES_OFFSET),
            quotes: u32_at(QUOTES_OFFSET),
            flags: u16::from_be_bytes(array(header, FLAGS_OFFSET)),
            language: array(header, LANGUAGE_OFFSET),
            moderated: array(header, MODERATED_OFFSET),
        };
        header.verified()
    }

    /// Reads what moderators say of a post, and random bytes that change whenever they change that; also of one that
    /// can't be read otherwise.
    pub(crate) fn moderation_in(bytes: &[u8]) -> Result<(u8, [u8; 4])> {
        let header = Self::of_this_format(bytes).map_err(|error| error.context("header of a stored post"))?;
        Ok((header[FLAGS_OFFSET], array(header, MODERATED_OFFSET)))
    }

    fn of_this_format(bytes: &[u8]) -> Result<&[u8; HEADER_LEN]> {
        let Some(header) = bytes.first_chunk::<HEADER_LEN>() else {
            return Err(Error::internal(format!("{} bytes, not {HEADER_LEN}", bytes.len())));
        };
        if header[VERSION_OFFSET] != VERSION {
            return Err(Error::internal(format!(
                "format version {}, this release reads {VERSION}",
                header[VERSION_OFFSET]
            )));
        }
        Ok(header)
    }

    /// Refuses what leaves doubt about who may read the post, and a language that could not be written again.
    fn verified(self) -> Result<Self> {
        if self.has_only_to() && self.has_not_to() {
            return Err(Error::internal(format!(
                "a stored post is damaged: its flags {:#06x} name both the only readers and those left out, at most \
                 one of which may be",
                self.flags
            )));
        }
        if self.visibility == Visibility::Direct && !self.has_only_to() {
            return Err(Error::internal(format!(
                "a stored post is damaged: it is direct, but its flags {:#06x} say that it names no readers",
                self.flags
            )));
        }
        let language = self.language_bytes();
        if !language.is_empty() && !is_language(language) {
            return Err(Error::internal(format!(
                "a stored post is damaged: its language is \"{}\", not 1 to {LANGUAGE_LEN_MAX} ASCII letters, \
                 digits and hyphens",
                language.escape_ascii()
            )));
        }
        Ok(self)
    }

    /// Of a new post; `draft` is checked.
    pub(super) fn new(author: AccountId, draft: &Draft) -> Self {
        let mut header = Self {
            visibility: draft.visibility.unwrap_or_default(),
            revision: 0,
            author,
            original: draft.repost_of,
            reply_to: draft.reply_to,
            conversation: draft.conversation,
            likes: 0,
            reposts: 0,
            replies: 0,
            quotes: 0,
            flags: 0,
            language: [0; LANGUAGE_LEN_MAX],
            moderated: [0; 4],
        };
        header.set_flag(FLAG_SENSITIVE, draft.sensitive);
        header.set_flag(FLAG_ONLY_TO, !draft.readers().is_empty());
        header.set_flag(FLAG_NOT_TO, !draft.not_to.is_empty());
        header.set_language(draft.language.as_deref());
        header
    }

    pub(super) fn to_bytes(self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        let mut put_reference = |at, author_at, reference: Option<PostRef>| {
            put(at, &reference.map_or(0, |post| post.id.get()).to_be_bytes());
            put(author_at, &reference.map_or(0, |post| post.author.get()).to_be_bytes());
        };
        put_reference(ORIGINAL_OFFSET, ORIGINAL_AUTHOR_OFFSET, self.original);
        put_reference(REPLY_TO_OFFSET, REPLY_TO_AUTHOR_OFFSET, self.reply_to);
        put(VERSION_OFFSET, &[VERSION]);
        put(VISIBILITY_OFFSET, &[self.visibility.to_byte()]);
        put(FLAGS_OFFSET, &self.flags.to_be_bytes());
        put(REVISION_OFFSET, &self.revision.to_be_bytes());
        put(AUTHOR_OFFSET, &self.author.to_bytes());
        put(CONVERSATION_OFFSET, &self.conversation.map_or(0, PostId::get).to_be_bytes());
        put(LANGUAGE_OFFSET, &self.language);
        put(LIKES_OFFSET, &self.likes.to_be_bytes());
        put(REPOSTS_OFFSET, &self.reposts.to_be_bytes());
        put(REPLIES_OFFSET, &self.replies.to_be_bytes());
        put(QUOTES_OFFSET, &self.quotes.to_be_bytes());
        put(MODERATED_OFFSET, &self.moderated);
        bytes
    }

    /// Whether it passes another post on, with or without a text of its own.
    pub fn is_repost(&self) -> bool {
        self.original.is_some()
    }

    /// Whether it answers another post.
    pub fn is_reply(&self) -> bool {
        self.reply_to.is_some()
    }

    /// Whether it was ever edited.
    pub fn is_edited(&self) -> bool {
        self.revision > 0
    }

    /// Whether to hide the attachments at first: its author or a moderator says so.
    pub fn is_sensitive(&self) -> bool {
        self.flags & (FLAG_SENSITIVE | FLAG_SENSITIVE_SAID) != 0
    }

    /// Whether moderators have said anything of it since it was published, or an edit of it was held back.
    pub(crate) fn is_moderated(&self) -> bool {
        self.moderated != [0; 4]
    }

    /// Whether a moderator hides it from everybody but its author.
    pub fn is_hidden(&self) -> bool {
        self.flags & FLAG_HIDDEN != 0
    }

    /// Whether a moderator asks to hide the attachments at first.
    pub fn is_called_sensitive(&self) -> bool {
        self.flags & FLAG_SENSITIVE_SAID != 0
    }

    /// Whether only the accounts of a list may read it; the list is in the [`Post`](super::Post).
    pub fn has_only_to(&self) -> bool {
        self.flags & FLAG_ONLY_TO != 0
    }

    /// Whether the accounts of a list may not read it; the list is in the [`Post`](super::Post).
    pub fn has_not_to(&self) -> bool {
        self.flags & FLAG_NOT_TO != 0
    }

    /// The language of the post's text.
    pub fn language(&self) -> Option<&str> {
        std::str::from_utf8(self.language_bytes()).ok().filter(|language| !language.is_empty())
    }

    fn language_bytes(&self) -> &[u8] {
        let end = self.language.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        &self.language[..end]
    }

    pub(super) fn set_language(&mut self, language: Option<&str>) {
        let language = language.unwrap_or_default().as_bytes();
        self.language = [0; LANGUAGE_LEN_MAX];
        self.language[..language.len()].copy_from_slice(language);
    }

    /// Whether its author asks to hide the attachments at first.
    pub(super) fn asks_sensitive(&self) -> bool {
        self.flags & FLAG_SENSITIVE != 0
    }

    /// Notes that its author is a group or a chat, and a member wrote it.
    pub(super) fn set_by_member(&mut self) {
        self.set_flag(FLAG_BY_MEMBER, true);
    }

    pub(super) fn set_sensitive(&mut self, sensitive: bool) {
        self.set_flag(FLAG_SENSITIVE, sensitive);
    }

    fn set_flag(&mut self, flag: u16, on: bool) {
        self.flags = if on { self.flags | flag } else { self.flags & !flag };
    }
}

/// Serializes what the flags say to who reads the post.
fn serialize_flags<S: Serializer>(flags: &u16, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Flags {
        is_sensitive: bool,
        is_hidden: bool,
    }
    let is_sensitive = flags & (FLAG_SENSITIVE | FLAG_SENSITIVE_SAID) != 0;
    Flags { is_sensitive, is_hidden: flags & FLAG_HIDDEN != 0 }.serialize(serializer)
}

fn serialize_language<S: Serializer>(
    language: &[u8; LANGUAGE_LEN_MAX],
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    let language = std::str::from_utf8(language).unwrap_or_default().trim_end_matches('\0');
    Some(language).filter(|language| !language.is_empty()).serialize(serializer)
}

fn array<const N: usize>(header: &[u8; HEADER_LEN], at: usize) -> [u8; N] {
    std::array::from_fn(|i| header[at + i])
}

/// A broken id in a stored post is nothing that a caller has done: `Internal`, not `Invalid`.
fn account(header: &[u8; HEADER_LEN], at: usize) -> Result<AccountId> {
    let bytes: [u8; 8] = array(header, at);
    AccountId::from_bytes(&bytes).map_err(|error| Error::internal(format!("at byte {at}: {error}")))
}

fn post(header: &[u8; HEADER_LEN], at: usize) -> Result<Option<PostId>> {
    match u64::from_be_bytes(array(header, at)) {
        0 => Ok(None),
        id => {
            PostId::from_u64(id).map(Some).map_err(|error| Error::internal(format!("at byte {at}: {error}")))
        }
    }
}

fn reference(header: &[u8; HEADER_LEN], at: usize, author_at: usize) -> Result<Option<PostRef>> {
    let Some(id) = post(header, at)? else {
        return match u64::from_be_bytes(array(header, author_at)) {
            0 => Ok(None),
            author => Err(Error::internal(format!("at byte {author_at}: author {author} of no post"))),
        };
    };
    Ok(Some(PostRef { id, author: account(header, author_at)? }))
}
