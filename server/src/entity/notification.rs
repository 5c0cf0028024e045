//! Notifications: what somebody is told.

use serde::Serialize;

use super::{Account, Id, Status};
use crate::http::Timestamp;

/// Something that others did, and that its reader is told.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Notification {
    /// Its id.
    pub id: Id,
    /// `mention`, `status`, `reblog`, `follow`, `follow_request`, `favourite`, `poll`, `update`, and so on.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it is shown together with.
    pub group_key: String,
    /// When it happened.
    pub created_at: Timestamp,
    /// Who did it.
    pub account: Account,
    /// The status that it is about. Sent only if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
}

/// The number of notifications that somebody hasn't read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UnreadCount {
    /// So many; no more are counted than were asked for.
    pub count: usize,
}
