//! Things that go together: lists, hashtags, what a search has found, what stands around a status.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Account, Id, Status};
use crate::http::Timestamp;

/// A list of accounts that somebody has made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct List {
    /// Its id.
    pub id: Id,
    /// What it is called.
    pub title: String,
    /// Whose answers it shows: `followed`, `list`, `none`.
    pub replies_policy: String,
    /// Whether what it shows stays out of home.
    pub exclusive: bool,
}

/// The statuses above one, and below.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Context {
    /// What it answers, the first first.
    pub ancestors: Vec<Status>,
    /// What answers it, each behind what it answers.
    pub descendants: Vec<Status>,
}

/// The result of a search.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Search {
    /// Accounts.
    pub accounts: Vec<Account>,
    /// Statuses.
    pub statuses: Vec<Status>,
    /// Hashtags.
    pub hashtags: Vec<Tag>,
}

/// A hashtag, as its reader gets it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Tag {
    /// Its number; its name where it has none.
    pub id: String,
    /// Its name, without its sign.
    pub name: String,
    /// Its page.
    pub url: String,
    /// How often it was used, the latest day first.
    pub history: Vec<TagHistory>,
    /// Whether the reader follows it.
    pub following: bool,
    /// Whether it stands on the reader's page.
    pub featuring: bool,
}

/// Uses of a hashtag on a day: numbers as texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TagHistory {
    /// The day, in seconds since 1970.
    pub day: String,
    /// How often.
    pub uses: String,
    /// By how many.
    pub accounts: String,
}

/// A marker of how far somebody has read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Marker {
    /// The last that was read.
    pub last_read_id: String,
    /// How often the marker was moved.
    pub version: u64,
    /// When it was moved last.
    pub updated_at: Timestamp,
}

/// Preferences of somebody, by the names that clients know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Preferences {
    /// The visibility of new statuses.
    #[serde(rename = "posting:default:visibility")]
    pub posting_visibility: String,
    /// Whether their pictures are hidden at first.
    #[serde(rename = "posting:default:sensitive")]
    pub posting_sensitive: bool,
    /// Their language.
    #[serde(rename = "posting:default:language")]
    pub posting_language: Option<String>,
    /// Who may quote them.
    #[serde(rename = "posting:default:quote_policy")]
    pub posting_quote_policy: String,
    /// Which pictures are shown at once: `default`, `show_all`, `hide_all`.
    #[serde(rename = "reading:expand:media")]
    pub expand_media: String,
    /// Whether texts with a warning are shown at once.
    #[serde(rename = "reading:expand:spoilers")]
    pub expand_spoilers: bool,
    /// Whether pictures move by themselves.
    #[serde(rename = "reading:autoplay:gifs")]
    pub autoplay_gifs: bool,
}

/// Markers by the timelines that they are of: `home`, `notifications`.
pub type Markers = BTreeMap<String, Marker>;

/// An answer that says nothing but that it was done: `{}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Empty {}
