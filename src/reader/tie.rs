//! Ties of an account to a post.

use crate::error::Result;
use crate::ids::AccountId;
use crate::post::PostRef;
use crate::sharded::SortedSet;
use crate::tenant::Tenant;

/// A tie of an account to a post.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Tie {
    Like,
    Bookmark,
}

impl Tie {
    pub(crate) fn label(self, on: bool) -> &'static str {
        match (self, on) {
            (Self::Like, true) => "like",
            (Self::Like, false) => "unlike",
            (Self::Bookmark, true) => "bookmark",
            (Self::Bookmark, false) => "unbookmark",
        }
    }

    /// The posts that an account has tied so.
    pub(crate) fn set(self, tenant: &Tenant, account: AccountId) -> Result<SortedSet<PostRef>> {
        match self {
            Self::Like => tenant.likes(account),
            Self::Bookmark => tenant.bookmarks(account),
        }
    }
}
