//! Applications: the clients that ask for tokens.

use std::time::Duration;

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use tideline::ErrorKind;
use tideline::registration::TicketKind;

use super::secret::{Secret, hash, is_same, number_of};
use crate::app::App;
use crate::grants::Scopes;
use crate::http::Refusal;
use crate::keep::tickets;

/// Shows the code to whoever logs in, instead of sending it anywhere.
pub(crate) const OUT_OF_BAND: &str = "urn:ietf:wg:oauth:2.0:oob";

/// Letters of an application's name.
pub(crate) const NAME_CHARS_MAX: usize = 60;
/// Addresses that an application may be sent back to.
pub(crate) const REDIRECTS_MAX: usize = 16;
/// Bytes of each of them, and of the application's page.
pub(crate) const ADDRESS_BYTES_MAX: usize = 400;
/// So long an application stays that nobody has given a token yet: whoever registers thousands fills nothing for good.
pub(super) const LASTS: Duration = Duration::from_secs(30 * 24 * 3_600);
/// Longer than any of its tokens.
const LASTS_WITH_TOKENS: Duration = Duration::from_secs(401 * 24 * 3_600);

const KIND: TicketKind = tickets::kind('a');

/// An application, as it is stored: of its secret only the hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredApplication {
    pub(crate) name: String,
    pub(crate) website: Option<String>,
    pub(crate) redirects: Vec<String>,
    pub(crate) scopes: Scopes,
    secret_hash: String,
}

/// An application with the name by which it is known.
#[derive(Debug, Clone)]
pub(crate) struct RegisteredApplication {
    pub(crate) client_id: String,
    pub(crate) application: StoredApplication,
}

impl RegisteredApplication {
    /// Registers an application; also gives its secret, this once.
    pub(crate) async fn new(
        app: &App,
        name: String,
        website: Option<String>,
        redirects: Vec<String>,
        scopes: Scopes,
    ) -> Result<(Self, Secret), Refusal> {
        let (client_id, secret) = (Secret::draw().reveal().to_owned(), Secret::draw());
        let application =
            StoredApplication { name, website, redirects, scopes, secret_hash: hash(secret.reveal()) };
        tickets::put(&app.registration, KIND, &client_id, &application, LASTS).await?;
        Ok((Self { client_id, application }, secret))
    }

    /// Its id, for clients that tell applications apart by numbers; nothing is found by it.
    pub(crate) fn number(&self) -> u64 {
        number_of(&self.client_id)
    }

    /// The application of that name.
    pub(crate) async fn find(app: &App, client_id: &str) -> Result<Option<Self>, Refusal> {
        let application = tickets::get(&app.registration, KIND, client_id).await?;
        Ok(application.map(|application| Self { client_id: client_id.into(), application }))
    }

    /// Finds an application, if whoever asks knows its secret.
    pub(crate) async fn prove(app: &App, client_id: &str, secret: &str) -> Result<Self, Refusal> {
        let found = Self::find(app, client_id).await?;
        found
            .filter(|found| is_same(&found.application.secret_hash, &hash(secret)))
            .ok_or_else(invalid_client)
    }

    /// Has it stay as long as its newest token.
    pub(crate) async fn stay(&self, app: &App) -> Result<(), Refusal> {
        let (by, application) = (&app.registration, &self.application);
        match tickets::renew(by, KIND, &self.client_id, application, LASTS_WITH_TOKENS).await {
            // Others who log in have it stay at this moment.
            Err(e) if e.kind() == ErrorKind::Conflict => Ok(()),
            stays => Ok(stays?),
        }
    }

    /// Whether somebody may be sent back there: letter by letter one of those that it named.
    pub(crate) fn may_go_to(&self, redirect: &str) -> bool {
        self.application.redirects.iter().any(|named| named == redirect)
    }
}

/// Whether an address may be gone back to at all: a page or an app, nothing that a browser runs or opens by itself.
pub(crate) fn is_redirect(address: &str) -> bool {
    if address == OUT_OF_BAND {
        return true;
    }
    let Some((scheme, rest)) = address.split_once(':') else { return false };
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    let is_plain = address.chars().all(|c| c.is_ascii_graphic()) && !address.contains('#');
    let runs = ["javascript", "data", "vbscript", "blob", "file", "about", "urn", "filesystem"];
    let is_page = !matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https")
        || rest.strip_prefix("//").is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'));
    is_scheme
        && is_plain
        && is_page
        && !runs.contains(&scheme.to_ascii_lowercase().as_str())
        && !rest.is_empty()
}

/// Told to whoever names an application that there is not, or doesn't know its secret.
pub(crate) fn invalid_client() -> Refusal {
    Refusal::oauth(
        StatusCode::UNAUTHORIZED,
        "invalid_client",
        "Client authentication failed due to unknown client, no client authentication included, or unsupported \
         authentication method.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_and_apps_are_gone_back_to() {
        for good in
            [OUT_OF_BAND, "https://a.example/cb?x=1", "http://localhost:8080", "ivory://", "com.app.x:/cb"]
        {
            assert!(is_redirect(good), "{good}");
        }
        for bad in [
            "javascript:alert(1)",
            "JavaScript:alert(1)",
            "data:text/html,x",
            "https:a.example",
            "https://",
            "http:///x",
            "//a.example",
            "a.example/cb",
            "https://a.example/#x",
            "https://a.example/\n",
            "file:///etc",
            "",
            ":x",
            "x:",
        ] {
            assert!(!is_redirect(bad), "{bad}");
        }
    }
}
