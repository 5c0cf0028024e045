//! The part of a post that can be edited and is not in the header.

use crate::ids::AccountId;
use crate::serialized::as_hex;

/// The content of a post: its text and what belongs to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Content {
    /// The text; empty for a plain repost.
    pub text: String,
    /// The warning to show before the text; never an empty string.
    pub content_warning: Option<String>,
    /// Accounts that the text names, at most [`MENTIONS_MAX`](super::MENTIONS_MAX).
    pub mentions: Vec<AccountId>,
    /// Hashtags as the caller writes them, compared as [`Tag`](super::Tag)s, at most
    /// [`HASHTAGS_MAX`](super::HASHTAGS_MAX).
    pub hashtags: Vec<String>,
    /// The caller's description of attachments, at most [`ATTACHMENTS_MAX`](super::ATTACHMENTS_MAX) bytes; never
    /// looked into.
    #[serde(with = "as_hex")]
    pub attachments: Vec<u8>,
    /// The caller's location, at most [`LOCATION_MAX`](super::LOCATION_MAX) bytes; never looked into.
    #[serde(with = "as_hex")]
    pub location: Vec<u8>,
    /// The caller's own fields in their order, each key once, all within [`FIELDS_MAX`](super::FIELDS_MAX) bytes.
    #[serde(with = "as_hex::each")]
    pub fields: Vec<(String, Vec<u8>)>,
}
