//! Chats as clients get them.

use serde::Serialize;

use super::{Account, Id, Status};

/// A chat, as one of its members sees it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Conversation {
    /// Its id.
    pub id: Id,
    /// Whether there is something that the reader hasn't read.
    pub unread: bool,
    /// The other members.
    pub accounts: Vec<Account>,
    /// The newest message that shows.
    pub last_status: Option<Status>,
    /// Messages that came since.
    pub unread_count: usize,
    /// Whether it comes from strangers, and the reader has done nothing about it yet.
    pub request: bool,
}
