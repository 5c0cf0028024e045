//! Codes: what an application gets in its redirect, and changes into a token once.
//!
//! A code that was used stays for as long as it would have been good, with the place of the token that was given for
//! it: whoever brings it again shows that it has come into other hands, and ends that token (RFC 6749, 4.1.2). It is
//! marked as used before there is a token, and as brought again before that ends; who gives the token looks last
//! whether it was brought again meanwhile. So of two who bring it at once neither keeps a token.

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
use super::token;
use crate::app::App;
use crate::grants::Scopes;
use crate::http::Refusal;
use crate::keep::documents::contended;
use crate::keep::tickets;

/// So long a code may be changed into a token.
const LASTS: Duration = Duration::from_secs(600);
/// Letters of a verifier (RFC 7636, 4.1).
const VERIFIER_LEN: std::ops::RangeInclusive<usize> = 43..=128;

/// Tries of using one up between others who bring it.
const TRIES_MAX: usize = 16;

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

    /// Uses the code with that secret up for a token that is about to be given, in that place: if the code was given to
    /// that application for that address, and its verifier is known. Whatever is wrong, it is used up: who tries
    /// verifiers has one try. One that was used before ends the token that was given for it.
    pub(crate) async fn use_up(
        app: &App,
        secret: &str,
        (client_id, redirect): (&str, &str),
        verifier: Option<&str>,
        place: &str,
    ) -> Result<(Self, UsedCode), Refusal> {
        for _ in 0..TRIES_MAX {
            let seen = tickets::get::<StoredCode>(&app.registration, KIND, secret).await?;
            let code = match &seen {
                None => return Err(invalid_grant()),
                Some(StoredCode::Used(used)) => {
                    used.bring_again(app, secret).await?;
                    return Err(invalid_grant());
                }
                Some(StoredCode::Good(code)) => code,
            };
            let is_for = code.client_id == client_id
                && code.redirect == redirect
                && is_proved(code.challenge.as_deref(), verifier);
            let place = is_for.then(|| place.to_owned());
            let used = UsedCode { used_by: code.account, place, again: false };
            if !replace(app, secret, code, &used).await? {
                // Somebody else was first.
                continue;
            }
            return if is_for { Ok((code.clone(), used)) } else { Err(invalid_grant()) };
        }
        Err(contended().into())
    }
}

/// A value stored under a code.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum StoredCode {
    Good(Code),
    /// No field of it is named as one of a code's that is good: the release before takes it for none.
    Used(UsedCode),
}

/// A code that was used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UsedCode {
    used_by: AccountId,
    /// Of the token that it was used for; `None`: whoever brought it got none.
    place: Option<String>,
    /// Whether it was brought again.
    again: bool,
}

impl UsedCode {
    /// Whether nobody has brought it again, as of now.
    pub(crate) async fn is_used_once(&self, app: &App, secret: &str) -> Result<bool, Refusal> {
        let now = tickets::get::<StoredCode>(&app.registration, KIND, secret).await?;
        Ok(matches!(now, Some(StoredCode::Used(now)) if now == *self))
    }

    /// Ends the token that it was used for, also one that is being given at this moment.
    async fn bring_again(&self, app: &App, secret: &str) -> Result<(), Refusal> {
        let again = Self { again: true, ..self.clone() };
        // Where that comes to nothing somebody else has brought it again, or its time is over, and no token is being
        // given any more.
        if !self.again {
            replace(app, secret, self, &again).await?;
        }
        match &self.place {
            Some(place) => token::end(app, Some(self.used_by), place).await,
            None => Ok(()),
        }
    }
}

async fn replace<T: Serialize + Sync>(
    app: &App,
    secret: &str,
    seen: &T,
    used: &UsedCode,
) -> Result<bool, Refusal> {
    Ok(tickets::replace(&app.registration, KIND, secret, (seen, used), LASTS).await?)
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

    /// A server of the release before may be asked for a code that was used at this one: it must not take it for good.
    #[test]
    fn a_code_that_was_used_does_not_read_as_one_that_is_good() {
        let account = AccountId::new(7).unwrap();
        let good = Code {
            account,
            era: Era::default(),
            client_id: "c".into(),
            scopes: Scopes::default(),
            redirect: "r".into(),
            challenge: None,
        };
        let used = UsedCode { used_by: account, place: Some("p".into()), again: false };
        let (good, used) = (serde_json::to_string(&good).unwrap(), serde_json::to_string(&used).unwrap());
        assert!(serde_json::from_str::<Code>(&used).is_err());
        assert!(matches!(serde_json::from_str(&good), Ok(StoredCode::Good(_))));
        assert!(matches!(serde_json::from_str(&used), Ok(StoredCode::Used(_))));
    }
}
