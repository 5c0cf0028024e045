//! Who asks: nobody in particular, an application, or somebody through one.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use tideline::{AccountId, Viewer};

use crate::app::{App, Shared};
use crate::grants::StoredToken;
use crate::http::Refusal;

/// Who asks, as the token of the request says.
#[derive(Debug, Clone)]
pub(crate) enum Who {
    /// Nobody in particular: no token came along.
    Anyone,
    /// An application, or somebody through it.
    Bearer {
        token: Arc<StoredToken>,
        /// The token itself, for who revokes it.
        secret: String,
    },
}

impl Who {
    /// The account that asks, if its token allows that much.
    pub(crate) fn user(&self, needed: &str) -> Result<AccountId, Refusal> {
        let token = self.allowed(needed)?;
        token.account.ok_or_else(Refusal::no_user)
    }

    /// The token of whoever asks, also of an application alone, if it allows that much.
    pub(crate) fn allowed(&self, needed: &str) -> Result<&StoredToken, Refusal> {
        let Self::Bearer { token, .. } = self else { return Err(Refusal::no_valid_token()) };
        if token.scopes.allow(needed) { Ok(token) } else { Err(Refusal::outside_scopes()) }
    }

    /// The account that looks at something which everybody may see, each in its own way. A token that allows less shows
    /// what everybody sees.
    pub(crate) fn viewing(&self, needed: &str) -> Option<AccountId> {
        match self {
            Self::Bearer { token, .. } if token.scopes.allow(needed) => token.account,
            _ => None,
        }
    }

    /// What that account may see, or a guest.
    pub(crate) fn viewer<'a>(&self, app: &'a App, needed: &str) -> Viewer<'a> {
        match self.viewing(needed) {
            Some(account) => *app.engine.as_reader(account),
            None => app.engine.as_nobody(),
        }
    }

    /// The token of whoever asks, whatever it allows.
    pub(crate) fn token(&self) -> Result<(&StoredToken, &str), Refusal> {
        match self {
            Self::Anyone => Err(Refusal::no_valid_token()),
            Self::Bearer { token, secret } => Ok((token, secret)),
        }
    }

    async fn of(app: &App, parts: &Parts) -> Result<Self, Refusal> {
        let Some(header) = parts.headers.get(AUTHORIZATION) else { return Ok(Self::Anyone) };
        let bearer = header.to_str().ok().and_then(|header| header.split_once(' '));
        let secret =
            bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, it)| it.trim());
        // Other schemes are some calls' own affair: an application's secret, say.
        let Some(secret) = secret else { return Ok(Self::Anyone) };
        let token = StoredToken::find(app, secret).await?.ok_or_else(Refusal::no_valid_token)?;
        Ok(Self::Bearer { token, secret: secret.to_owned() })
    }
}

impl FromRequestParts<Shared> for Who {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Refusal> {
        Self::of(app, parts).await
    }
}
