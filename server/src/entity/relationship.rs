//! Somebody's relationships to others.

use serde::Serialize;

use super::{Account, Id};

/// A reader's relationship to an account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Relationship {
    /// The account.
    pub id: Id,
    /// Whether the reader follows it.
    pub following: bool,
    /// Whether its reposts come to the reader's home.
    pub showing_reblogs: bool,
    /// Whether the reader is told of each of its posts.
    pub notifying: bool,
    /// Languages that the reader wants of it; `None`: all.
    pub languages: Option<Vec<String>>,
    /// Whether it follows the reader.
    pub followed_by: bool,
    /// Whether the reader blocks it.
    pub blocking: bool,
    /// Whether it blocks the reader.
    pub blocked_by: bool,
    /// Whether the reader mutes it.
    pub muting: bool,
    /// Whether the reader is not told what it does, either.
    pub muting_notifications: bool,
    /// When that ends by itself. Sent as `null` if never.
    pub muting_expires_at: Option<crate::http::Timestamp>,
    /// Whether the reader waits for its answer.
    pub requested: bool,
    /// Whether it waits for the reader's.
    pub requested_by: bool,
    /// Whether the reader blocks all of its site.
    pub domain_blocking: bool,
    /// Whether the reader shows it on its own page.
    pub endorsed: bool,
    /// What the reader has noted of it.
    pub note: String,
}

/// Followers of an account among those whom the reader follows.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FamiliarFollowers {
    /// The account.
    pub id: Id,
    /// Who follows it.
    pub accounts: Vec<Account>,
}
