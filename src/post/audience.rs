//! The audience of a post: who may read it.

use std::fmt;

use crate::error::{Error, Result};
use crate::ids::AccountId;

/// The visibility of a post: how far it goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    /// Everybody, and it may be listed where strangers look.
    #[default]
    Public,
    /// Everybody who has the link, and followers' home timelines.
    Unlisted,
    /// Followers, and whom it mentions.
    Followers,
    /// Only the accounts that it names.
    Direct,
}

impl fmt::Display for Visibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Public => "public",
            Self::Unlisted => "unlisted",
            Self::Followers => "for followers",
            Self::Direct => "direct",
        })
    }
}

impl Visibility {
    pub(super) fn to_byte(self) -> u8 {
        match self {
            Self::Public => 0,
            Self::Unlisted => 1,
            Self::Followers => 2,
            Self::Direct => 3,
        }
    }

    pub(super) fn from_byte(byte: u8) -> Result<Self> {
        match byte {
            0 => Ok(Self::Public),
            1 => Ok(Self::Unlisted),
            2 => Ok(Self::Followers),
            3 => Ok(Self::Direct),
            // Never guessed: a wrong guess shows a post to people it was not meant for.
            _ => Err(Error::internal(format!("visibility {byte} is none of 0 to 3"))),
        }
    }
}

/// The accounts that a post names to narrow its visibility.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience<'a> {
    /// None: the visibility alone decides.
    Unnamed,
    /// Only these may read it, if the visibility lets them; always so for a direct post.
    Only(&'a [AccountId]),
    /// These may not.
    Not(&'a [AccountId]),
}

impl Audience<'_> {
    /// Whether the list lets `account` in; it knows neither the author nor followers.
    pub fn admits(self, account: AccountId) -> bool {
        match self {
            Self::Unnamed => true,
            Self::Only(accounts) => accounts.contains(&account),
            Self::Not(accounts) => !accounts.contains(&account),
        }
    }
}
