//! What is counted of every request, and told of slow ones; and what becomes of a handler that panics.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::FutureExt as _;
use metrics::{counter, gauge, histogram};

use super::request_id::{HEADER, RequestId};
use crate::http::address::{ClientAddress, TrustedProxies};
use crate::http::listen::Peer;
use crate::http::refusal::Refusal;
use tracing::Instrument as _;

/// Requests that were answered, by `route`, `method` and `status`; `gone`: the client didn't wait.
pub const REQUESTS: &str = "tideline_http_requests_total";
/// Seconds until an answer began, by `route`.
pub const REQUEST_SECONDS: &str = "tideline_http_request_seconds";
/// Requests that wait for the beginning of an answer.
pub const IN_FLIGHT: &str = "tideline_http_requests_in_flight";
/// Requests that were refused by a bound, by `why`: `too_many`, `too_long`.
pub const REFUSED: &str = "tideline_http_requests_refused_total";
/// Handlers that panicked, by `route`.
pub const PANICS: &str = "tideline_http_panics_total";

/// What stands for the route of a path that has none: paths themselves are never told.
const NO_ROUTE: &str = "none";

/// What the layer needs.
#[derive(Debug, Clone)]
pub(super) struct Metering {
    pub(super) proxies: Arc<TrustedProxies>,
    pub(super) slow_after: Duration,
}

/// A request that is under way; counted when it is over, however it ends.
struct Underway {
    route: String,
    method: &'static str,
    since: Instant,
    status: Option<u16>,
}

impl Underway {
    fn begin(request: &Request) -> Self {
        gauge!(IN_FLIGHT).increment(1.0);
        let route = route(request);
        Self { route, method: method_name(request.method()), since: Instant::now(), status: None }
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        gauge!(IN_FLIGHT).decrement(1.0);
        let status = self.status.map_or_else(|| "gone".to_owned(), |status| status.to_string());
        counter!(REQUESTS, "route" => self.route.clone(), "method" => self.method, "status" => status)
            .increment(1);
        histogram!(REQUEST_SECONDS, "route" => self.route.clone()).record(self.since.elapsed());
    }
}

fn route(request: &Request) -> String {
    let route = request.extensions().get::<MatchedPath>();
    route.map_or_else(|| NO_ROUTE.to_owned(), |route| route.as_str().to_owned())
}

/// Anybody can make up methods.
fn method_name(method: &Method) -> &'static str {
    let known = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
    known.into_iter().find(|known| method == known).unwrap_or("other")
}

/// Names a request, says whom it is from, counts it, and tells if it was slow.
pub(super) async fn meter(State(metering): State<Metering>, mut request: Request, next: Next) -> Response {
    let id = RequestId::of(request.headers());
    let mut underway = Underway::begin(&request);
    let peer = request.extensions().get::<Peer>().map(|peer| peer.0.ip());
    if let Some(peer) = peer {
        let client = ClientAddress(metering.proxies.client(peer, request.headers()));
        request.extensions_mut().insert(client);
    }
    request.extensions_mut().insert(id.clone());
    let span =
        tracing::info_span!("request", id = id.as_str(), route = underway.route, method = underway.method);
    let mut response = next.run(request).instrument(span).await;
    underway.status = Some(response.status().as_u16());
    let took = underway.since.elapsed();
    if took > metering.slow_after {
        tracing::warn!(
            route = underway.route,
            method = underway.method,
            status = response.status().as_u16(),
            ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            id = id.as_str(),
            "a slow request"
        );
    }
    response.headers_mut().insert(HEADER, id.header());
    response
}

/// Answers for a handler that panicked.
pub(super) async fn catch_panic(request: Request, next: Next) -> Response {
    let route = route(&request);
    match AssertUnwindSafe(next.run(request)).catch_unwind().await {
        Ok(response) => response,
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
            tracing::error!(route, text, "a handler panicked");
            counter!(PANICS, "route" => route).increment(1);
            Refusal::broken().into_response()
        }
    }
}
