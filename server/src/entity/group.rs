//! Groups.

use serde::Serialize;

use super::Account;

/// A member of a group's staff.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GroupMember {
    /// Who that is.
    pub account: Account,
    /// `owner`, `moderator`.
    pub role: String,
}
