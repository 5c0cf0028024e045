//! Statuses: posts, as clients call them.

use serde::Serialize;

use super::{Account, CustomEmoji, Id, MediaAttachment};
use crate::http::Timestamp;

/// A status, as its reader gets it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Status {
    /// Its id.
    pub id: Id,
    /// When it was posted.
    pub created_at: Timestamp,
    /// The status that it answers.
    pub in_reply_to_id: Option<Id>,
    /// Whose that is.
    pub in_reply_to_account_id: Option<Id>,
    /// Whether its pictures are hidden at first.
    pub sensitive: bool,
    /// What is shown in its place at first: a text.
    pub spoiler_text: String,
    /// `public`, `unlisted`, `private`, `direct`.
    pub visibility: String,
    /// Its language.
    pub language: Option<String>,
    /// Its name for machines.
    pub uri: String,
    /// Its page for people.
    pub url: Option<String>,
    /// How many answer it.
    pub replies_count: u64,
    /// How many pass it on.
    pub reblogs_count: u64,
    /// How many like it.
    pub favourites_count: u64,
    /// How many quote it.
    pub quotes_count: u64,
    /// When it was last edited.
    pub edited_at: Option<Timestamp>,
    /// What it says, in HTML; `""`: nothing.
    pub content: String,
    /// What it was written with.
    pub application: Option<StatusApplication>,
    /// Who wrote it.
    pub account: Account,
    /// The group that it was posted into. Sent only with such a status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<Account>,
    /// Its pictures, films and sounds.
    pub media_attachments: Vec<MediaAttachment>,
    /// Whom it mentions.
    pub mentions: Vec<Mention>,
    /// Its hashtags.
    pub tags: Vec<StatusTag>,
    /// Pictures in its text.
    pub emojis: Vec<CustomEmoji>,
    /// What is known of a page that it links to.
    pub card: Option<serde_json::Value>,
    /// What it asks.
    pub poll: Option<Poll>,
    /// The status that this one passes on.
    pub reblog: Option<Box<Status>>,
    /// What it quotes.
    pub quote: Option<Quote>,
    // From here on each reader gets its own: `show::text` writes it behind what all get alike.
    /// Whether the reader likes it.
    pub favourited: bool,
    /// Whether the reader has passed it on.
    pub reblogged: bool,
    /// Whether the reader is not told of what becomes of it.
    pub muted: bool,
    /// Whether the reader has bookmarked it.
    pub bookmarked: bool,
    /// Whether it stands above the others on its author's page. Sent to its author alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
    /// Which of the reader's filters it meets.
    pub filtered: Vec<FilterResult>,
    /// What it says as it was written. Sent only with one that was deleted, to be written anew.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A quote in a status.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Quote {
    /// Whether it may be shown: `accepted`.
    pub state: String,
    /// The status.
    pub quoted_status: Box<Status>,
}

/// The application that a status was written with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StatusApplication {
    /// Its name.
    pub name: String,
    /// Its page.
    pub website: Option<String>,
}

/// Somebody whom a status mentions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Mention {
    /// The account.
    pub id: Id,
    /// Its login.
    pub username: String,
    /// Its page.
    pub url: String,
    /// Its login, with the site's name for one of another site.
    pub acct: String,
}

/// A hashtag of a status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StatusTag {
    /// The hashtag, without its sign.
    pub name: String,
    /// Its page.
    pub url: String,
}

/// A question and its answers.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Poll {
    /// Its id.
    pub id: Id,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
    /// Whether it has ended.
    pub expired: bool,
    /// Whether one may choose several answers.
    pub multiple: bool,
    /// How many choices there were.
    pub votes_count: u64,
    /// How many chose; `None` where that is the same.
    pub voters_count: Option<u64>,
    /// Whether the reader has chosen.
    pub voted: Option<bool>,
    /// What the reader has chosen, by number.
    pub own_votes: Option<Vec<usize>>,
    /// The answers.
    pub options: Vec<PollOption>,
    /// Pictures in them.
    pub emojis: Vec<CustomEmoji>,
}

/// An answer that one may choose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PollOption {
    /// What it says.
    pub title: String,
    /// How many chose it; `None`: that is not told yet.
    pub votes_count: Option<u64>,
}

/// A filter that a status meets, and by what.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FilterResult {
    /// The filter.
    pub filter: serde_json::Value,
    /// Its words that stand in the status.
    pub keyword_matches: Option<Vec<String>>,
    /// The status, if the filter names it.
    pub status_matches: Option<Vec<Id>>,
}

/// A status as it was at some time.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StatusEdit {
    /// What it said, in HTML.
    pub content: String,
    /// What was shown in its place at first.
    pub spoiler_text: String,
    /// Whether its pictures were hidden at first.
    pub sensitive: bool,
    /// Since when it was so.
    pub created_at: Timestamp,
    /// Who wrote it.
    pub account: Account,
    /// What it asked.
    pub poll: Option<serde_json::Value>,
    /// Its pictures, films and sounds.
    pub media_attachments: Vec<MediaAttachment>,
    /// Pictures in its text.
    pub emojis: Vec<CustomEmoji>,
}

/// The text of a status as it was written: for whoever edits it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StatusSource {
    /// Its id.
    pub id: Id,
    /// What it says.
    pub text: String,
    /// What is shown in its place at first.
    pub spoiler_text: String,
}
