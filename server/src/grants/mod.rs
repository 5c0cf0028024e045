//! Tokens: what one is and allows, and remembering that for a moment. Pure.
//!
//! Not here: who is given one, and where it is kept (`auth`).

mod remembered;
mod scopes;

use serde::{Deserialize, Serialize};
use tideline::AccountId;

pub(crate) use remembered::RememberedTokens;
pub(crate) use scopes::{Scopes, UnknownScope, is_admins};

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
    /// Whether its account was not let in yet when somebody looked last.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) waits: bool,
}

/// A token of a service, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServiceToken {
    /// What the log calls the service.
    pub(crate) name: String,
    pub(crate) scopes: Scopes,
    pub(crate) created_ms: u64,
    /// When it was renewed last, because it was used.
    pub(crate) used_ms: u64,
}

impl ServiceToken {
    /// Whether it allows what `needed` names: never what is for whoever runs the site.
    pub(crate) fn allows(&self, needed: &str) -> bool {
        !is_admins(needed) && self.scopes.allow(needed)
    }
}
