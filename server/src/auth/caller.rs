//! The one who asks: nobody in particular, an application, somebody through one, or a service as somebody.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{FromRequestParts, MatchedPath};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use tideline::registration::Name;
use tideline::{AccountId, AccountState, Viewer};

use super::newcomer::{self, AwaitedSteps};
use super::secret::hash;
use crate::app::{App, Shared};
use crate::grants::{ServiceToken, StoredToken};
use crate::http::Refusal;
use crate::http::path::path_id;

/// The header in which a service names the account that it acts as.
pub(crate) const ACT_AS: &str = "tideline-act-as";
/// The target of the log under which each act of a service is written down.
pub const SERVICE_LOG: &str = "tideline_server::service";

/// The one who asks, as the token of the request says.
#[derive(Debug, Clone)]
pub(crate) enum Caller {
    /// Nobody in particular: no token came along.
    Anyone,
    /// An application, or somebody through it.
    Bearer {
        token: Arc<StoredToken>,
        /// What the token is known by: no secret.
        place: String,
        /// What its account has to wait for first.
        awaited: AwaitedSteps,
    },
    /// A service, for an account that it has named.
    Service { token: Arc<ServiceToken>, account: Option<AccountId> },
}

impl Caller {
    /// The account that asks, if its token allows that much.
    pub(crate) fn user(&self, needed: &str) -> Result<AccountId, Refusal> {
        if let Self::Service { account, .. } = self {
            self.service(needed)?;
            return account.ok_or_else(|| {
                Refusal::invalid(format!("This is done by an account: name it in the header {ACT_AS}"))
            });
        }
        let token = self.allowed(needed)?;
        token.account.ok_or_else(Refusal::no_user)
    }

    /// The token of whoever asks, also of an application alone, if it allows that much.
    pub(crate) fn allowed(&self, needed: &str) -> Result<&StoredToken, Refusal> {
        let token = self.token()?;
        if token.scopes.allow(needed) { Ok(token) } else { Err(Refusal::outside_scopes()) }
    }

    /// The service that asks, if its token allows that much.
    pub(crate) fn service(&self, needed: &str) -> Result<&ServiceToken, Refusal> {
        match self {
            Self::Anyone => Err(Refusal::no_valid_token()),
            Self::Bearer { .. } => Err(Refusal::not_allowed()),
            Self::Service { token, .. } if token.allows(needed) => Ok(token),
            Self::Service { .. } => Err(Refusal::outside_scopes()),
        }
    }

    /// The account that looks at something which everybody may see, each in its own way. A token that allows less shows
    /// what everybody sees.
    pub(crate) fn viewing(&self, needed: &str) -> Option<AccountId> {
        match self {
            Self::Bearer { token, .. } if token.scopes.allow(needed) => token.account,
            Self::Service { token, account } if token.allows(needed) => *account,
            _ => None,
        }
    }

    /// The view of that account, or of a guest.
    pub(crate) fn viewer<'a>(&self, app: &'a App, needed: &str) -> Viewer<'a> {
        match self.viewing(needed) {
            Some(account) => *app.engine.as_reader(account),
            None => app.engine.as_nobody(),
        }
    }

    /// The token of whoever asks, whatever it allows.
    pub(crate) fn token(&self) -> Result<&StoredToken, Refusal> {
        match self {
            Self::Anyone => Err(Refusal::no_valid_token()),
            Self::Bearer { token, .. } => Ok(token),
            // It has no application, and gives no tokens.
            Self::Service { .. } => Err(Refusal::not_allowed()),
        }
    }

    /// Finds out who sends a request with this head.
    pub(crate) async fn of(app: &App, parts: &Parts) -> Result<Self, Refusal> {
        let bearer =
            parts.headers.get(AUTHORIZATION).and_then(|header| header.to_str().ok()?.split_once(' '));
        // Other schemes are some calls' own affair: an application's secret, say.
        let bearer = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let secret = bearer.map(|(_, secret)| secret.trim());
        if let Some(secret) = secret.filter(|secret| ServiceToken::is_named_by(secret)) {
            return Self::of_service(app, parts, secret).await;
        }
        if parts.headers.contains_key(ACT_AS) {
            let status = if secret.is_some() { StatusCode::FORBIDDEN } else { StatusCode::UNAUTHORIZED };
            return Err(Refusal::new(status, format!("{ACT_AS} is for services: it needs a token of one")));
        }
        let Some(secret) = secret else { return Ok(Self::Anyone) };
        let place = hash(secret);
        let token = StoredToken::at(app, &place).await?.ok_or_else(Refusal::no_valid_token)?;
        let Some(account) = token.account.filter(|_| token.waits) else {
            if let Some(account) = token.account {
                // Whoever has thrown it out may not have ended its sessions.
                check_may_act(app, account).await.map_err(|refusal| match refusal.status() {
                    StatusCode::NOT_FOUND => Refusal::no_valid_token(),
                    _ => refusal,
                })?;
            }
            return Ok(Self::Bearer { token, place, awaited: AwaitedSteps::default() });
        };
        let found = app.registration.find(&[Name::Id(account)]).await?.pop().flatten();
        let account = found.ok_or_else(Refusal::no_valid_token)?;
        let awaited = newcomer::awaited(&app.engine, &app.registration, &account).await?;
        let token = if awaited.is_nothing() { token.let_in(app, &place).await? } else { token };
        Ok(Self::Bearer { token, place, awaited })
    }

    /// Refuses who isn't let in yet.
    fn let_in(self) -> Result<Self, Refusal> {
        match self {
            Self::Bearer { awaited, .. } if !awaited.is_nothing() => Err(awaited.refusal()),
            who => Ok(who),
        }
    }

    async fn of_service(app: &App, parts: &Parts, secret: &str) -> Result<Self, Refusal> {
        let token = ServiceToken::find(&app.registration, &app.services, secret).await?;
        let token = token.ok_or_else(Refusal::no_valid_token)?;
        let account = acts_as(&parts.headers)?;
        if let Some(account) = account {
            check_may_act(app, account).await?;
        }
        // Each of its acts, since nobody else can be told from the account's own.
        tracing::info!(
            target: SERVICE_LOG,
            service = token.name,
            account = account.map(AccountId::get),
            method = parts.method.as_str(),
            route = parts.extensions.get().map(MatchedPath::as_str),
            "a service acts"
        );
        Ok(Self::Service { token, account })
    }
}

/// Refuses who may do nothing, by itself or through a service: it isn't let in yet, was thrown out, or is gone. Looked
/// at once in [`visible_within`](tideline::EngineSettings::visible_within).
async fn check_may_act(app: &App, account: AccountId) -> Result<(), Refusal> {
    let (place, asked) = (account.to_string(), Instant::now());
    if app.may_act.get(&place).is_some() {
        return Ok(());
    }
    let found = app.registration.find(&[Name::Id(account)]).await?.pop().flatten();
    let found = found.ok_or_else(Refusal::not_found)?;
    let awaited = newcomer::awaited(&app.engine, &app.registration, &found).await?;
    if !awaited.is_nothing() {
        return Err(awaited.refusal());
    }
    match found.state {
        AccountState::Active | AccountState::Limited => {}
        // Whom nothing keeps waiting any more.
        AccountState::Waiting => return Ok(()),
        AccountState::Suspended => return Err(Refusal::disabled()),
        _ => return Err(Refusal::not_found()),
    }
    app.may_act.insert(place, Arc::new(()), asked);
    Ok(())
}

/// The account that a service says it acts as.
fn acts_as(headers: &HeaderMap) -> Result<Option<AccountId>, Refusal> {
    let mut named = headers.get_all(ACT_AS).iter();
    let Some(header) = named.next() else { return Ok(None) };
    let id = header.to_str().ok().and_then(path_id).and_then(|id| AccountId::new(id).ok());
    match id {
        Some(id) if named.next().is_none() => Ok(Some(id)),
        _ => {
            Err(Refusal::bad_request(format!("{ACT_AS} takes one account's id, a number from 1 to 2^63 - 1")))
        }
    }
}

/// The one who asks, as was found before the call: an extension of its request.
#[derive(Debug, Clone)]
pub(crate) struct FoundWho(pub(crate) Result<Caller, Refusal>);

/// The one who asks, also if it isn't let in yet: for what it does to get there.
#[derive(Debug, Clone)]
pub(crate) struct WhoeverAsks(pub(crate) Caller);

impl FromRequestParts<Shared> for WhoeverAsks {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Refusal> {
        match parts.extensions.remove() {
            Some(FoundWho(found)) => found.map(Self),
            None => Caller::of(app, parts).await.map(Self),
        }
    }
}

impl FromRequestParts<Shared> for Caller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Refusal> {
        WhoeverAsks::from_request_parts(parts, app).await?.0.let_in()
    }
}
