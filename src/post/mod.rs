//! Posts: what one holds, and how it is stored. Pure: no I/O, no clock.
//!
//! A post is one binary string, so that reading it is one command and one piece of memory: a header of fixed width,
//! then sections. What a server-side function counts or compares stands at a fixed place in the header (`layout`);
//! what only clients read is a section. Not here: where a post is kept, its id (it is the key), and who follows whom.
//!
//! Invariants: bytes that [`Post::parse`] accepts are what [`Post::encode`] gives back, to the byte, with whatever a
//! newer release has put in; who may read a post is settled when it is written and no [`Edit`] can change it; bytes
//! that leave doubt about that are refused. Limits hold for what is written, not for what is read, so that a later
//! release may raise them.
//!
//! ```
//! use tideline::AccountId;
//! use tideline::post::{Draft, Edit, Post, TEXT_CHARS_DEFAULT};
//!
//! # fn main() -> tideline::Result<()> {
//! let draft = Draft::text("Low tide at noon").language("en").hashtags(["tide"]);
//! draft.check(TEXT_CHARS_DEFAULT)?;
//! let post = Post::new(AccountId::new(7)?, &draft);
//! let stored = post.encode();
//!
//! let edit = Edit { text: Some("Low tide at one".into()), ..Edit::default() };
//! let read = Post::parse(&stored)?;
//! edit.check(&read, TEXT_CHARS_DEFAULT)?;
//! assert_eq!(read.edited(&edit).header().revision, 1);
//! # Ok(())
//! # }
//! ```

mod audience;
mod beside;
mod check;
mod content;
mod draft;
mod earlier;
mod edit;
mod header;
pub(crate) mod layout;
mod lists;
mod parse;
mod reference;
mod sections;
mod stored;
mod tag;
#[cfg(test)]
mod tests;
mod words;

pub use audience::{Audience, Visibility};
pub(crate) use beside::{LIKES, LISTS};
pub(crate) use check::is_language;
pub use content::Content;
pub use draft::Draft;
pub(crate) use earlier::EditMoment;
pub use earlier::Revision;
pub use edit::Edit;
pub use header::PostHeader;
pub(crate) use lists::NamedList;
pub use parse::{MentionedName, NAME_LEN_MAX, TextNames, WrittenTag};
pub(crate) use reference::Reference;
pub use stored::Post;
pub use tag::Tag;
pub(crate) use tag::TagKey;
pub(crate) use words::words_of_post;
pub use words::{SEARCH_LEN_MAX, SearchWords};

use crate::ids::{AccountId, PostId};

/// Characters that a text and its content warning have together, if a setting doesn't say otherwise.
pub const TEXT_CHARS_DEFAULT: usize = 5_000;
/// Bytes of a text, and of a content warning, whatever the setting in characters: a section's length has 16 bits.
pub const TEXT_BYTES_MAX: usize = 65_535;
/// Accounts in only-to, and in not-to.
pub const AUDIENCE_MAX: usize = 500;
/// Accounts that a post mentions.
pub const MENTIONS_MAX: usize = 50;
/// Hashtags of a post.
pub const HASHTAGS_MAX: usize = 30;
/// Bytes of one hashtag.
pub const HASHTAG_LEN_MAX: usize = 100;
/// Lists of mentions and of hashtags that earlier revisions of a post have brought it onto.
pub const LISTED_BEFORE_MAX: usize = 100;
/// Earlier revisions of a post that are kept.
pub const EARLIER_MAX: usize = 32;
/// Bytes of all of them.
pub const EARLIER_BYTES_MAX: usize = 16_384;
/// Bytes of the attachments' description.
pub const ATTACHMENTS_MAX: usize = 4_096;
/// Bytes of the location.
pub const LOCATION_MAX: usize = 256;
/// Bytes of all free fields as stored: three for each, its key and its value.
pub const FIELDS_MAX: usize = 4_096;
/// Bytes of a free field's key.
pub const FIELD_KEY_LEN_MAX: usize = 255;
/// Bytes of an idempotency token.
pub const TOKEN_LEN_MAX: usize = 64;
/// Bytes of a language tag.
pub const LANGUAGE_LEN_MAX: usize = 8;

// The default must never meet the bound in bytes: a character has up to four. Lists must fit their sections, and
// mentions must fit an audience, because those of a direct post become it.
const _: () = assert!(TEXT_CHARS_DEFAULT * 4 <= TEXT_BYTES_MAX && TEXT_BYTES_MAX == u16::MAX as usize);
const _: () = assert!(AUDIENCE_MAX * 8 <= TEXT_BYTES_MAX && MENTIONS_MAX <= AUDIENCE_MAX);
const _: () = assert!(HASHTAGS_MAX * (1 + HASHTAG_LEN_MAX) <= TEXT_BYTES_MAX && HASHTAG_LEN_MAX <= 255);

/// A post and who wrote it; the author says where to look for the post's neighbours without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct PostRef {
    /// The post; never 0.
    pub id: PostId,
    /// Its author.
    pub author: AccountId,
}
