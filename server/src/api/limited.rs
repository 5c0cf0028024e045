//! Limits on how often somebody may ask: around all calls. Whom a request is from is found here, once for it and its
//! call.

use std::convert::Infallible;

use axum::body::HttpBody as _;
use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tideline::AccountId;

use crate::app::{App, Shared};
use crate::auth::caller::{ACT_AS, Caller, FoundWho};
use crate::http::{ClientAddress, Peer, RateStanding, Refusal, TrustedProxies, counted_as};
use crate::limits::{
    CountedAct, RequestFacts, acts_of, application_token, large_list, letter_from, log_in, taken_back,
};

/// By whose address is counted what has limits of its own: tries to log in, letters, tokens of applications, large
/// lists; nobody's, of whom no limit holds for.
#[derive(Debug, Clone)]
pub(super) struct CountedClient(Option<String>);

impl CountedClient {
    /// The address, if limits hold for who comes from there.
    pub(super) fn address(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// Counts a try to log in, before a password is looked at; refuses one too many.
    pub(super) async fn try_log_in(&self, app: &App, name: &str) -> Result<(), RateStanding> {
        let Some(address) = &self.0 else { return Ok(()) };
        let acts = log_in(&app.settings.limits, address, name);
        app.limits.take(&acts).await.map(|_| ())
    }

    /// Counts a letter that is asked for; refuses one too many.
    pub(super) async fn ask_for_letter(&self, app: &App) -> Result<(), RateStanding> {
        let Some(address) = &self.0 else { return Ok(()) };
        app.limits.take(&letter_from(&app.settings.limits, address)).await.map(|_| ())
    }

    /// Counts a token that an application asks for, for itself; refuses one too many.
    pub(super) async fn ask_for_application_token(&self, app: &App) -> Result<(), RateStanding> {
        let Some(address) = &self.0 else { return Ok(()) };
        app.limits.take(&application_token(&app.settings.limits, address)).await.map(|_| ())
    }

    /// Counts a status that its writer takes back by a call that others take it away by; refuses one too many. Services
    /// have no limits.
    pub(super) async fn take_back(&self, app: &App, who: &Caller) -> Result<(), RateStanding> {
        let (Some(_), Caller::Bearer { token, .. }) = (&self.0, who) else { return Ok(()) };
        let Some(account) = token.account else { return Ok(()) };
        app.limits.take(&taken_back(&app.settings.limits, account.get())).await.map(|_| ())
    }

    /// Counts a page of a list that costs much; refuses one too many. Services have no limits.
    pub(super) async fn ask_for_large_list(&self, app: &App, who: &Caller) -> Result<(), RateStanding> {
        let account = match who {
            Caller::Service { .. } => return Ok(()),
            Caller::Bearer { token, .. } => token.account.map(AccountId::get),
            Caller::Anyone => None,
        };
        let Some(address) = &self.0 else { return Ok(()) };
        app.limits.take(&large_list(&app.settings.limits, address, account)).await.map(|_| ())
    }
}

impl<S: Sync> FromRequestParts<S> for CountedClient {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().cloned().unwrap_or(Self(None)))
    }
}

/// Refuses what is too often, and who says that it acts for somebody and may not; says in each answer how much is left.
pub(super) async fn limited(State(app): State<Shared>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let (address, names_account) = (limited_address(&app, &parts), parts.headers.contains_key(ACT_AS));
    if address.is_none() && !names_account {
        return next.run(Request::from_parts(parts, body)).await;
    }
    let who = Caller::of(&app, &parts).await;
    let standing = match &address {
        Some(address) => app.limits.take(&acts(&app, &parts, !body.is_end_stream(), address, &who)).await,
        None => Ok(None),
    };
    let standing = match standing {
        Ok(standing) => standing,
        Err(standing) => return Refusal::limited(standing).into_response(),
    };
    let mut response = match who {
        // Whatever is asked for: also what looks at nobody's token would seem to be done as somebody.
        Err(refusal) if names_account => refusal.into_response(),
        who => {
            parts.extensions.insert(FoundWho(who));
            if let Some(address) = address {
                parts.extensions.insert(CountedClient(Some(address)));
            }
            next.run(Request::from_parts(parts, body)).await
        }
    };
    // What the call itself says of a limit stays.
    if let Some(standing) = standing.filter(|_| !RateStanding::is_told(response.headers())) {
        standing.tell(response.headers_mut());
    }
    response
}

/// The address that limits go by; `None`: none hold for who is connected.
fn limited_address(app: &App, parts: &Parts) -> Option<String> {
    let peer = parts.extensions.get::<Peer>().map(|peer| peer.0.ip());
    if peer.is_some_and(|peer| TrustedProxies::is_exempt(&app.exempt, peer, &parts.headers)) {
        return None;
    }
    parts.extensions.get().map(|ClientAddress(address)| counted_as(*address))
}

fn acts(
    app: &App,
    parts: &Parts,
    has_body: bool,
    address: &str,
    who: &Result<Caller, Refusal>,
) -> Vec<CountedAct> {
    let (account, token) = match who {
        Ok(Caller::Bearer { token, place, .. }) => (token.account.map(AccountId::get), Some(place.as_str())),
        Ok(Caller::Anyone) => (None, None),
        // The site's own, that speaks for all its users.
        Ok(Caller::Service { .. }) => return Vec::new(),
        Err(refusal) if refusal.status().is_client_error() => (None, None),
        // Nobody can be told whose it is: that is no reason to count it as somebody else's.
        Err(_) => return Vec::new(),
    };
    let route = parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let query = parts.uri.query().unwrap_or_default();
    let facts = RequestFacts { method: &parts.method, route, query, has_body, address, account, token };
    acts_of(&app.settings.limits, facts)
}
