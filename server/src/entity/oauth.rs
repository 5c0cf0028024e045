//! Applications and tokens.

use serde::Serialize;

use super::Id;
use crate::http::Timestamp;

/// An application, as everybody gets it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Application {
    /// Its id.
    pub id: Id,
    /// Its name.
    pub name: String,
    /// Its page.
    pub website: Option<String>,
    /// What it may ask for.
    pub scopes: Vec<String>,
    /// Where it may be gone back to.
    pub redirect_uris: Vec<String>,
    /// The same in one text, a line each: for clients that know nothing else.
    pub redirect_uri: String,
    /// The key for pushed messages; `""`: there is none.
    pub vapid_key: String,
}

/// An application as it gets itself when it is made: with its secret.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CredentialApplication {
    /// What all get.
    #[serde(flatten)]
    pub application: Application,
    /// Its public name.
    pub client_id: String,
    /// Its secret.
    pub client_secret: String,
    /// When that ends: 0, never.
    pub client_secret_expires_at: u64,
}

/// A token: who has it may do what its scopes say.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Token {
    /// The secret.
    pub access_token: String,
    /// `Bearer`.
    pub token_type: &'static str,
    /// What it allows, with spaces between.
    pub scope: String,
    /// When it was made, in seconds since 1970.
    pub created_at: u64,
}

/// The person who has logged in, as OpenID says it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UserInfo {
    /// The site, with a slash behind it.
    pub iss: String,
    /// The account's name for machines.
    pub sub: String,
    /// The name that is shown.
    pub name: String,
    /// The account's login.
    pub preferred_username: String,
    /// Its page for people.
    pub profile: String,
    /// Its picture.
    pub picture: String,
}

/// A session: somebody is logged in through an application.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Session {
    /// By what it is ended; no secret.
    pub id: String,
    /// The application.
    pub application: SessionApplication,
    /// When it began.
    pub created_at: Timestamp,
    /// The day on which it was used last, about.
    pub last_used_at: Timestamp,
    /// Whether it is the one that asks.
    pub is_current: bool,
}

/// The application of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SessionApplication {
    /// What it calls itself.
    pub name: String,
}

/// It is a secret.
impl std::fmt::Debug for CredentialApplication {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CredentialApplication")
            .field("application", &self.application)
            .finish_non_exhaustive()
    }
}

/// It is a secret.
impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token").field("scope", &self.scope).finish_non_exhaustive()
    }
}
