//! The places of things in a stored post. Server-side functions read and count at these offsets, so they never move;
//! another layout is another format version.

/// The version that this release writes, and the only one it reads.
pub(crate) const VERSION: u8 = 1;
/// Bytes of the header; the sections begin here.
pub(crate) const HEADER_LEN: usize = 84;

/// u8.
pub(crate) const VERSION_OFFSET: usize = 0;
/// u8, see `Visibility`.
pub(crate) const VISIBILITY_OFFSET: usize = 1;
/// u16, the `FLAG_`s below.
pub(crate) const FLAGS_OFFSET: usize = 2;
/// u32, 0 when new, one more with each edit.
pub(crate) const REVISION_OFFSET: usize = 4;
/// u64.
pub(crate) const AUTHOR_OFFSET: usize = 8;
/// u64, what this reposts; 0: nothing.
pub(crate) const ORIGINAL_OFFSET: usize = 16;
/// u64, 0 with `ORIGINAL_OFFSET`.
pub(crate) const ORIGINAL_AUTHOR_OFFSET: usize = 24;
/// u64, what this answers; 0: nothing.
pub(crate) const REPLY_TO_OFFSET: usize = 32;
/// u64, 0 with `REPLY_TO_OFFSET`.
pub(crate) const REPLY_TO_AUTHOR_OFFSET: usize = 40;
/// u64, the first post of the conversation; 0: none.
pub(crate) const CONVERSATION_OFFSET: usize = 48;
/// 8 bytes of ASCII, zeros behind.
pub(crate) const LANGUAGE_OFFSET: usize = 56;
/// u32.
pub(crate) const LIKES_OFFSET: usize = 64;
/// u32.
pub(crate) const REPOSTS_OFFSET: usize = 68;
/// u32.
pub(crate) const REPLIES_OFFSET: usize = 72;
/// u32.
pub(crate) const QUOTES_OFFSET: usize = 76;
/// 4 random bytes, anew with each change of what moderators say.
pub(crate) const MODERATED_OFFSET: usize = 80;

/// The author asks to hide the attachments at first.
pub(crate) const FLAG_SENSITIVE: u16 = 1;
/// There is an only-to section: who reads the header alone must not show the post.
pub(crate) const FLAG_ONLY_TO: u16 = 1 << 1;
/// There is a not-to section.
pub(crate) const FLAG_NOT_TO: u16 = 1 << 2;
/// There is a writer section: its author is a group or a chat, and a member wrote it. What comes onto its lists is told
/// to that member, elsewhere: `BY_MEMBER` of the functions.
pub(crate) const FLAG_BY_MEMBER: u16 = 1 << 3;
/// A moderator hides it. What moderators say is the upper byte of the flags: no edit of its author changes that.
pub(crate) const FLAG_HIDDEN: u16 = 1 << 8;
/// A moderator asks to hide the attachments at first.
pub(crate) const FLAG_SENSITIVE_SAID: u16 = 1 << 9;

/// In what is to be published: followers if the author is locked, else everybody. Never stored.
pub(crate) const VISIBILITY_UNSAID: u8 = 255;

/// UTF-8.
pub(crate) const TAG_TEXT: u8 = 1;
/// UTF-8.
pub(crate) const TAG_CONTENT_WARNING: u8 = 2;
/// Accounts, 8 bytes each.
pub(crate) const TAG_ONLY_TO: u8 = 3;
/// Accounts.
pub(crate) const TAG_NOT_TO: u8 = 4;
/// Accounts.
pub(crate) const TAG_MENTIONS: u8 = 5;
/// Each u8 length, UTF-8.
pub(crate) const TAG_HASHTAGS: u8 = 6;
/// The caller's bytes.
pub(crate) const TAG_ATTACHMENTS: u8 = 7;
/// The caller's bytes.
pub(crate) const TAG_LOCATION: u8 = 8;
/// Each u8 length, UTF-8 key, u16 length, value.
pub(crate) const TAG_FIELDS: u8 = 9;
/// Lists, 9 bytes each.
pub(crate) const TAG_LISTED_BEFORE: u8 = 10;
/// u64, when it was edited last, in ms.
pub(crate) const TAG_EDITED: u8 = 11;
/// Earlier revisions: each u64 since when, u8 sensitive, 8 bytes language, u16 lengths of text, warning, attachments
/// before each of these.
pub(crate) const TAG_EARLIER: u8 = 12;
/// An account, of a post into a group: the member who wrote it. Also the last tag that this release knows.
pub(crate) const TAG_WRITER: u8 = 13;
