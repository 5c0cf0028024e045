//! The state that all handlers hold.

use std::sync::Arc;

use tideline::registration::Registration;
use tideline::{Engine, Result};

use crate::config::ServerSettings;
use crate::grants::{RememberedTokens, ServiceToken, StoredToken};
use crate::http::{LimitedTurns, Network};
use crate::limits::RateLimits;
use crate::mail::Mailer;
use crate::show::StatusTexts;
use crate::show::site::Site;

/// Pages of large lists that are read at a time, and those that wait: each asks thousands of pieces, on all servers.
const LARGE_LISTS: (usize, usize) = (2, 16);

/// The state that all handlers hold: the engine, registration, settings, what is remembered of tokens and statuses, and
/// counted of requests.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) engine: Engine,
    pub(crate) registration: Registration,
    pub(crate) settings: ServerSettings,
    /// Whom no limit holds for.
    pub(crate) exempt: Vec<Network>,
    pub(crate) tokens: RememberedTokens<StoredToken>,
    pub(crate) services: RememberedTokens<ServiceToken>,
    /// Accounts that act, by themselves or through services, by their ids: those alone that may.
    pub(crate) may_act: RememberedTokens<()>,
    pub(crate) limits: RateLimits,
    /// For pages of large lists.
    pub(crate) large_lists: LimitedTurns,
    /// `None`: no letters are sent.
    pub(crate) mailer: Option<Mailer>,
    pub(crate) texts: StatusTexts,
}

/// The application as handlers are given it.
pub(crate) type Shared = Arc<App>;

impl App {
    pub(crate) fn new(engine: Engine, registration: Registration, settings: ServerSettings) -> Result<Self> {
        let lasts = engine.settings().visible_within;
        let (tokens, services, may_act) =
            (RememberedTokens::new(lasts), RememberedTokens::new(lasts), RememberedTokens::new(lasts));
        let limits = RateLimits::new(engine.clone(), registration.clone());
        let (mailer, texts) = (Mailer::new(&settings.mail)?, StatusTexts::default());
        let (exempt, large_lists) = (settings.exempt(), LimitedTurns::new(LARGE_LISTS.0, LARGE_LISTS.1));
        Ok(Self {
            engine,
            registration,
            settings,
            exempt,
            tokens,
            services,
            may_act,
            limits,
            large_lists,
            mailer,
            texts,
        })
    }

    pub(crate) fn site(&self) -> Site<'_> {
        Site { url: &self.settings.public_url }
    }

    /// Whether clients reach it over TLS, here or at a proxy.
    pub(crate) fn is_https(&self) -> bool {
        self.settings.public_url.starts_with("https://")
    }

    /// Makes a call of the engine, and waits for a moment for what that has left elsewhere.
    pub(crate) async fn settled<T>(&self, call: impl Future<Output = T>) -> T {
        self.engine.settled(self.settings.settle_time, call).await
    }
}
