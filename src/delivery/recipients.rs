//! The recipients of a post.

use crate::ids::AccountId;
use crate::post::{Audience, Post};

/// The recipients of a post.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Recipients {
    Followers,
    Named(Vec<AccountId>),
    /// It is gone.
    Nobody,
}

impl Recipients {
    pub(crate) fn of(post: &Post) -> Self {
        match post.audience() {
            Audience::Only(named) => Self::Named(named.to_vec()),
            _ => Self::Followers,
        }
    }
}
