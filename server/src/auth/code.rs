//! Codes: what an application gets in its redirect, and changes into a token once.

use std::time::Duration;

use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use tideline::AccountId;
use tideline::registration::TicketKind;

use super::era::Era;
use super::secret::{Secret, is_same};
use crate::app::App;
use crate::grants::Scopes;
use crate::http::Refusal;
use crate::keep::tickets;

/// So long a code may be changed into a token.
const LASTS: Duration = Duration::from_secs(600);
/// Letters of a verifier (RFC 7636, 4.1).
const VERIFIER_LEN: std::ops::RangeInclusive<usize> = 43..=128;

const KIND: TicketKind = tickets::kind('c');

/// A code, as it is stored under its hash.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Code {
    pub(crate) account: AccountId,
    /// When somebody was logged in as that account, and agreed.
    #[serde(default)]
    pub(crate) era: Era,
    pub(crate) client_id: String,
    pub(crate) scopes: Scopes,
    pub(crate) redirect: String,
    /// The hash of the verifier that whoever changes it has to know, in base64.
    pub(crate) challenge: Option<String>,
}

impl Code {
    /// Keeps it; gives the secret that stands for it.
    pub(crate) async fn keep(&self, app: &App) -> Result<Secret, Refusal> {
        let secret = Secret::draw();
        tickets::put(&app.registration, KIND, secret.reveal(), self, LASTS).await?;
        Ok(secret)
    }

    /// Takes the code with that secret, if it was given to that application for that address, and its verifier is
    /// known. Whatever is wrong, it is used up: who tries verifiers has one try.
    pub(crate) async fn take(
        app: &App,
        secret: &str,
        (client_id, redirect): (&str, &str),
        verifier: Option<&str>,
    ) -> Result<Self, Refusal> {
        let code = tickets::take::<Self>(&app.registration, KIND, secret).await?;
        let is_for = |code: &Self| {
            code.client_id == client_id
                && code.redirect == redirect
                && is_proved(code.challenge.as_deref(), verifier)
        };
        code.filter(is_for).ok_or_else(invalid_grant)
    }
}

/// Whether the verifier is the one that the challenge was made of; without a challenge none may come.
fn is_proved(challenge: Option<&str>, verifier: Option<&str>) -> bool {
    match (challenge, verifier) {
        (None, None) => true,
        (Some(challenge), Some(verifier)) => {
            VERIFIER_LEN.contains(&verifier.len())
                && is_same(challenge, &URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes())))
        }
        _ => false,
    }
}

/// Told where a code, or a password, is not one that a token is given for.
pub(crate) fn invalid_grant() -> Refusal {
    Refusal::oauth(
        StatusCode::BAD_REQUEST,
        "invalid_grant",
        "The provided authorization grant is invalid, expired, revoked, does not match the redirection URI used in \
         the authorization request, or was issued to another client.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_knows_the_verifier_proves_it() {
        // RFC 7636, appendix B.
        let (verifier, challenge) =
            ("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        assert!(is_proved(Some(challenge), Some(verifier)) && is_proved(None, None));
        assert!(!is_proved(Some(challenge), None) && !is_proved(None, Some(verifier)));
        assert!(!is_proved(Some(challenge), Some(challenge)) && !is_proved(Some(""), Some("")));
    }
}
