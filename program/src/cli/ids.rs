//! Ids as people type them.

use tideline::{AccountId, PostId};

/// Reads the id of an account.
pub(crate) fn account(text: &str) -> Result<AccountId, String> {
    let id = text.parse().ok().and_then(|id| AccountId::new(id).ok());
    id.ok_or_else(|| {
        "an account's id is a whole number from 1 to 2^63 - 1 (a login is none; `tideline account role LOGIN` tells it)"
            .into()
    })
}

/// Reads the id of a post.
pub(crate) fn post(text: &str) -> Result<PostId, String> {
    let id = text.parse().ok().and_then(|id| PostId::from_u64(id).ok());
    id.ok_or_else(|| "a post's id is a whole number below 2^63".into())
}
