//! What a client asks of an instance about groups.

use serde::{Deserialize, Serialize};

use super::groups::GroupKind;

/// How somebody comes into a private group, by whom of its staff.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum LetIn {
    Invited(u64),
    Answered(u64),
}

/// What is asked of an instance about groups. `Posted`: what stands on a group's page, or at home where none is named.
/// `Post`: into a group, or on the writer's own page.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum GroupCall {
    Found { group: u64, owner: u64, kind: GroupKind },
    Enter { by: u64, group: u64, let_in: Option<LetIn> },
    Exit { by: u64, group: u64 },
    TurnOut { group: u64, by: u64, member: u64 },
    Ban { group: u64, by: u64, member: u64, on: bool },
    Promote { group: u64, by: u64, member: u64, on: bool },
    Staff { group: u64 },
    Limit { account: u64, most: u32 },
    Post { by: u64, group: Option<u64>, text: String },
    Remove { by: u64, post: u64 },
    Release { by: u64, writer: u64, post: u64 },
    Posted { reader: u64, group: Option<u64> },
}

impl GroupCall {
    /// For counting.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Found { .. } => "found group",
            Self::Enter { .. } => "enter group",
            Self::Exit { .. } => "exit group",
            Self::TurnOut { .. } => "turn out",
            Self::Ban { .. } => "ban",
            Self::Promote { .. } => "promote",
            Self::Staff { .. } => "staff",
            Self::Limit { .. } => "limit",
            Self::Post { .. } => "post into group",
            Self::Remove { .. } => "remove from group",
            Self::Release { .. } => "release",
            Self::Posted { .. } => "look",
        }
    }
}
