//! Layers around all routes, from outside to inside: the path without a slash at its end; request ids, metrics and the
//! slow log; who may read answers in a browser; compression; panics; the bounds on requests; paths that are no text.
//!
//! Not here: what is per route (rate limits, tokens).

mod bound;
mod cors;
mod meter;
mod request_id;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{Method, StatusCode};
use axum::middleware::{from_fn, from_fn_with_state};
use tokio::sync::Semaphore;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{DefaultPredicate, NotForContentType, Predicate as _};
use tower_http::normalize_path::NormalizePath;

use super::address::{Network, TrustedProxies};
use super::crowd::Crowd;
use super::health::Readiness;
use super::path;
use super::refusal::Refusal;
pub use bound::RequestsUnderWay;
pub use meter::{IN_FLIGHT, PANICS, REFUSED, REQUEST_SECONDS, REQUESTS};
pub use request_id::RequestId;

/// So much of all requests may be those of one client that come with bodies: a few that send theirs one byte after the
/// other keep nobody from writing.
const OF_CLIENT_PART: usize = 16;
/// And at least so many, however few there may be of all.
const OF_CLIENT_MIN: usize = 8;

/// Settings of the layers.
#[derive(Debug, Clone)]
pub struct Layers {
    /// Proxies that say for whom they speak.
    pub trusted_proxies: TrustedProxies,
    /// Requests at a time; further ones are refused with 503.
    pub requests_max: usize,
    /// Where those connect from who may have any number of them, beside this machine; whoever speaks for somebody else
    /// may not.
    pub exempt: Vec<Network>,
    /// Longest time until a request is answered, its body included; then it is refused with 503.
    pub request_time: Duration,
    /// What takes longer is written to the log.
    pub slow_after: Duration,
}

impl Default for Layers {
    fn default() -> Self {
        Self {
            trusted_proxies: TrustedProxies::default(),
            requests_max: 1_000,
            exempt: Vec::new(),
            request_time: Duration::from_secs(30),
            slow_after: Duration::from_millis(500),
        }
    }
}

impl Layers {
    /// Puts all layers around routes, and `/health` and `/ready` beside these: those are answered however much is under
    /// way. What has no route is a 404, in JSON. Gives what is under way then, too.
    pub fn around(self, routes: Router, readiness: Readiness) -> (Router, RequestsUnderWay) {
        let requests_max = self.requests_max.clamp(1, Semaphore::MAX_PERMITS);
        let under_way = RequestsUnderWay::new(requests_max);
        let bounds = bound::RequestBounds {
            under_way: under_way.clone(),
            with_bodies: Arc::new(Semaphore::new(requests_max.div_ceil(2))),
            of_clients: Crowd::new(
                (requests_max / OF_CLIENT_PART).max(OF_CLIENT_MIN),
                ("requests with bodies under way", "requests_max"),
                Vec::new(),
            ),
            exempt: self.exempt.into_iter().chain(Network::loopback()).collect(),
            time: self.request_time,
        };
        let meter = meter::Metering {
            proxies: Arc::new(self.trusted_proxies),
            slow_after: self.slow_after,
            is_told: Arc::default(),
        };
        let routes = routes
            .fallback(async || Refusal::new(StatusCode::NOT_FOUND, "There is no such path"))
            // Which it takes only the router knows: it says so in a header, outside of all layers.
            .method_not_allowed_fallback(async |method: Method| {
                let why = format!("This path does not take {method}: the header Allow says what it takes");
                Refusal::new(StatusCode::METHOD_NOT_ALLOWED, why)
            })
            // Put on at once, here and below: each one by itself would have every request copy its route once more.
            .layer((from_fn_with_state(bounds, bound::bound), from_fn(path::readable)))
            .merge(readiness.routes())
            .layer((
                from_fn_with_state(meter, meter::meter),
                from_fn(cors::cors),
                // Pages carry a form's sign beside what the request says: how well they compress would tell of it.
                CompressionLayer::new()
                    .compress_when(DefaultPredicate::new().and(NotForContentType::const_new("text/html"))),
                from_fn(meter::catch_panic),
            ));
        // A router looks for its route before its own layers see a request: the slash has to go before that.
        (Router::new().fallback_service(NormalizePath::trim_trailing_slash(routes)), under_way)
    }
}
