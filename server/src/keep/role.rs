//! Roles: what an account may do for the site, beside what all may.

use std::fmt;

use serde::{Deserialize, Serialize};
use tideline::registration::Registration;
use tideline::{AccountId, CallFuture, Error};

use super::documents;

/// The name of its document; who has none is a user.
const ROLE: &str = "role";

/// The part that an account has in running the site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AccountRole {
    /// What everybody may.
    #[default]
    User,
    /// It looks after reports and accounts.
    Moderator,
    /// All that whoever runs the site may do with it.
    Admin,
}

impl fmt::Display for AccountRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::User => "user",
            Self::Moderator => "moderator",
            Self::Admin => "admin",
        })
    }
}

#[derive(Serialize, Deserialize)]
struct StoredRole {
    role: AccountRole,
}

/// Reads what an account may do for the site. One that a later release has given counts as a user's here.
///
/// # Errors
///
/// [`NotFound`](tideline::ErrorKind::NotFound): there is no such account.
pub fn role(registration: &Registration, account: AccountId) -> CallFuture<'_, AccountRole> {
    Box::pin(async move {
        let stored = registration.document(account, ROLE).await?;
        let role = stored.and_then(|stored| serde_json::from_slice::<StoredRole>(&stored.bytes).ok());
        Ok(role.map(|stored| stored.role).unwrap_or_default())
    })
}

/// Says what an account may do for the site from now on.
///
/// # Errors
///
/// Those of [`role`], and [`Conflict`](tideline::ErrorKind::Conflict): others change it all the time.
pub fn set_role(registration: &Registration, account: AccountId, role: AccountRole) -> CallFuture<'_, ()> {
    Box::pin(async move {
        let becomes = |_: Option<StoredRole>| {
            Ok::<_, Error>((role != AccountRole::User).then_some(StoredRole { role }))
        };
        documents::change(registration, account, ROLE, becomes).await.map(|_| ())
    })
}
