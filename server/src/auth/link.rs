//! Links in letters: each is good for one thing, for a while.
//!
//! A link ends last, after what it is for is done: whoever meets an error on the way comes again with it. So that it
//! gives an account no more than one password it is bound to the first that somebody brings with it.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tideline::AccountId;
use tideline::registration::TicketKind;

use super::era::Era;
use super::secret::{Secret, hash, is_same};
use super::token;
use crate::app::App;
use crate::http::Refusal;
use crate::keep::tickets;

const KIND: TicketKind = tickets::kind('m');

/// So long whoever has brought a password may come again with it.
const COMES_AGAIN_WITHIN: Duration = Duration::from_secs(600);

/// The purpose of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LinkPurpose {
    /// Confirms the address that an account has signed up with.
    Confirmation,
    /// Gives an account another address.
    NewAddress,
    /// Gives an account another password.
    Password,
}

impl LinkPurpose {
    fn lasts(self) -> Duration {
        Duration::from_secs(match self {
            Self::Confirmation => 2 * 86_400,
            Self::NewAddress => 86_400,
            Self::Password => 3_600,
        })
    }

    /// The page that it leads to.
    fn page(self) -> &'static str {
        match self {
            Self::Confirmation | Self::NewAddress => "/auth/confirm",
            Self::Password => "/auth/reset",
        }
    }
}

/// A link in a letter, as it is stored under its hash.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LetterLink {
    pub(crate) purpose: LinkPurpose,
    pub(crate) account: AccountId,
    /// The address that the letter goes to.
    pub(crate) email: String,
    /// When it was asked for: once all sessions are ended it is good for nothing.
    pub(crate) era: Era,
    /// What somebody has begun with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    choice: Option<PasswordChoice>,
}

/// The password that a link is bound to.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct PasswordChoice {
    /// A hash of the link's secret, which is stored nowhere, and the password: whoever sees it can try none.
    sign: String,
    /// The era that begins with the password: the link outlasts the one before, until all its sessions are ended.
    begins: Era,
}

impl PasswordChoice {
    fn sign(secret: &str, password: &str) -> String {
        hash(&format!("password {secret} {password}"))
    }
}

impl LetterLink {
    /// A link for a letter that somebody asks for now.
    pub(crate) async fn new(
        app: &App,
        purpose: LinkPurpose,
        account: AccountId,
        email: &str,
    ) -> Result<Self, Refusal> {
        let era = Era::of(&app.registration, account).await?;
        Ok(Self { purpose, account, email: email.to_owned(), era, choice: None })
    }

    /// Keeps it; gives its address.
    pub(crate) async fn keep(&self, app: &App) -> Result<String, Refusal> {
        let secret = Secret::draw();
        tickets::put(&app.registration, KIND, secret.reveal(), self, self.purpose.lasts()).await?;
        Ok(app.site().at(&format!("{}?token={}", self.purpose.page(), secret.reveal())))
    }

    /// The link with that secret, while it lasts and is good for what it was asked for.
    pub(crate) async fn find(app: &App, secret: &str) -> Result<Option<Self>, Refusal> {
        if secret.is_empty() || secret.len() > SECRET_BYTES_MAX {
            return Ok(None);
        }
        let link: Option<Self> = tickets::get(&app.registration, KIND, secret).await?;
        let Some(link) = link else { return Ok(None) };
        let now = Era::of(&app.registration, link.account).await?;
        let goes_on = now == link.era || link.choice.as_ref().is_some_and(|choice| choice.begins == now);
        Ok(goes_on.then_some(link))
    }

    /// Binds it to a password; `None`: it is too old, or bound to another one. Whoever brings the same again goes on.
    pub(crate) async fn bind(self, app: &App, secret: &str, password: &str) -> Result<Option<Self>, Refusal> {
        let sign = PasswordChoice::sign(secret, password);
        let choice = PasswordChoice { sign: sign.clone(), begins: Era::draw() };
        let mut link = Some(self);
        while let Some(seen) = link {
            if let Some(choice) = &seen.choice {
                return Ok(is_same(&choice.sign, &sign).then_some(seen));
            }
            let bound = Self { choice: Some(choice.clone()), ..seen.clone() };
            let to = (&seen, &bound);
            if tickets::replace(&app.registration, KIND, secret, to, COMES_AGAIN_WITHIN).await? {
                return Ok(Some(bound));
            }
            // Somebody else was first: it is bound by now, or gone.
            link = Self::find(app, secret).await?;
        }
        Ok(None)
    }

    /// Ends all sessions of its account once the password is another one: nobody who knew the old one goes on.
    pub(crate) async fn end_sessions(&self, app: &App) -> Result<(), Refusal> {
        let begins = self.choice.as_ref().map(|choice| &choice.begins);
        Era::end_with(&app.registration, self.account, &self.era, begins.unwrap_or(&Era::draw())).await?;
        token::end_listed(app, self.account).await
    }

    /// Ends it, after what it is for is done.
    pub(crate) async fn end(app: &App, secret: &str) -> Result<(), Refusal> {
        let dropped = app.registration.drop_ticket(KIND, secret.as_bytes()).await;
        dropped.map(|_| ()).map_err(|e| Refusal::from(e).of_what_was_done())
    }
}

/// Longer than any secret.
const SECRET_BYTES_MAX: usize = 64;

/// Hides what the link says: an address.
impl std::fmt::Debug for LetterLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LetterLink").field("purpose", &self.purpose).finish_non_exhaustive()
    }
}
