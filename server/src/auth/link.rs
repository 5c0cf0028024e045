//! Links in letters: each is good for one thing, for a while.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tideline::AccountId;
use tideline::registration::TicketKind;

use super::era::Era;
use super::secret::Secret;
use crate::app::App;
use crate::http::Refusal;
use crate::keep::tickets;

const KIND: TicketKind = tickets::kind('m');

/// What a link is good for.
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
        Ok(Self { purpose, account, email: email.to_owned(), era })
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
        Ok(link.era.goes_on(&app.registration, link.account).await?.then_some(link))
    }

    /// Takes it, before anything is done for it: whoever comes second finds none.
    pub(crate) async fn take(app: &App, secret: &str) -> Result<Option<Self>, Refusal> {
        if Self::find(app, secret).await?.is_none() {
            return Ok(None);
        }
        Ok(tickets::take(&app.registration, KIND, secret).await?)
    }

    /// Ends it.
    pub(crate) async fn end(app: &App, secret: &str) -> Result<(), Refusal> {
        app.registration.drop_ticket(KIND, secret.as_bytes()).await?;
        Ok(())
    }
}

/// Longer than any secret.
const SECRET_BYTES_MAX: usize = 64;

/// What it says is an address.
impl std::fmt::Debug for LetterLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LetterLink").field("purpose", &self.purpose).finish_non_exhaustive()
    }
}
