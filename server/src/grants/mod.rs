//! What a token is and allows, and remembering that for a moment. Pure.
//!
//! Not here: who is given one, and where it is kept (`auth`).

mod remembered;
mod scopes;

use serde::{Deserialize, Serialize};
use tideline::AccountId;

pub(crate) use remembered::RememberedTokens;
pub(crate) use scopes::{Scopes, UnknownScope};

/// A token, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredToken {
    /// `None`: it is the application's alone.
    pub(crate) account: Option<AccountId>,
    /// The `client_id` of the application that it was given to.
    pub(crate) client_id: String,
    pub(crate) scopes: Scopes,
    pub(crate) created_ms: u64,
    /// When it was renewed last, because it was used.
    pub(crate) used_ms: u64,
}
