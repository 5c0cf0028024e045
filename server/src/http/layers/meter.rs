//! Metrics of every request, and the log of slow ones; and what becomes of a handler that panics.

use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, Method};
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

/// Stand-in for the route of a path that has none: paths themselves are never told.
const NO_ROUTE: &str = "none";

/// Parts that the layer needs.
#[derive(Debug, Clone)]
pub(super) struct Metering {
    pub(super) proxies: Arc<TrustedProxies>,
    pub(super) slow_after: Duration,
    /// Whether somebody was told of a proxy that isn't trusted.
    pub(super) is_told: Arc<AtomicBool>,
}

impl Metering {
    /// The client that a request comes from. What somebody forwards who isn't trusted says nothing; that is told once,
    /// since it may be a proxy of whoever runs this, and then all who come by it count as one.
    fn client(&self, peer: IpAddr, headers: &HeaderMap) -> ClientAddress {
        let is_unheard = !TrustedProxies::is_direct(headers) && !self.proxies.trusts(peer);
        if is_unheard && !self.is_told.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                %peer,
                "requests carry X-Forwarded-For, and who sends them is not among `trusted_proxies` under [server]: \
                 whoever comes by it has its address, for limits too; name it there if it is a proxy of yours. This \
                 is told once"
            );
        }
        ClientAddress(self.proxies.client(peer, headers))
    }
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
        let client = metering.client(peer, request.headers());
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

/// Answers for a handler that panicked. How far it was nobody knows, so what changes something may be done.
pub(super) async fn catch_panic(request: Request, next: Next) -> Response {
    let (route, only_reads) = (route(&request), request.method().is_safe());
    match AssertUnwindSafe(next.run(request)).catch_unwind().await {
        Ok(response) => response,
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
            tracing::error!(route, text, "a handler panicked");
            counter!(PANICS, "route" => route).increment(1);
            let broken = Refusal::broken();
            if only_reads { broken.into_response() } else { broken.of_what_was_done().into_response() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_not_heard_is_told_of_once_and_who_is_never() {
        let proxies = Arc::new(TrustedProxies(vec!["10.0.0.0/8".parse().unwrap()]));
        let metering = Metering { proxies, slow_after: Duration::ZERO, is_told: Arc::default() };
        let forwarded = HeaderMap::from_iter([(
            axum::http::HeaderName::from_static("x-forwarded-for"),
            axum::http::HeaderValue::from_static("1.2.3.4"),
        )]);
        let seen = |peer: &str, headers: &HeaderMap| {
            let client = metering.client(peer.parse().unwrap(), headers).0.to_string();
            (client, metering.is_told.load(Ordering::Relaxed))
        };
        assert_eq!(seen("10.0.0.1", &forwarded), ("1.2.3.4".into(), false));
        assert_eq!(seen("11.0.0.1", &HeaderMap::new()), ("11.0.0.1".into(), false));
        assert_eq!(seen("11.0.0.1", &forwarded), ("11.0.0.1".into(), true));
        assert_eq!(seen("12.0.0.1", &forwarded), ("12.0.0.1".into(), true));
    }
}
