//! Bounds on how many requests are under way at a time, and on how long one may be.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use axum::body::HttpBody as _;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use metrics::counter;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tracing::Instrument as _;

use super::meter::REFUSED;
use crate::http::address::{ClientAddress, Network, TrustedProxies};
use crate::http::crowd::{Crowd, CrowdPlace};
use crate::http::listen::Peer;
use crate::http::refusal::Refusal;

/// Interval at which the end of all requests is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Requests that are under way, and that may outlive their connections.
#[derive(Debug, Clone)]
pub struct RequestsUnderWay {
    places: Arc<Semaphore>,
    all: usize,
}

impl RequestsUnderWay {
    pub(super) fn new(at_once: usize) -> Self {
        let all = at_once.clamp(1, Semaphore::MAX_PERMITS);
        Self { places: Arc::new(Semaphore::new(all)), all }
    }

    /// Waits until there are none.
    pub async fn ended(&self) {
        while self.places.available_permits() < self.all {
            sleep(LOOK_EVERY).await;
        }
    }
}

/// The bounds.
#[derive(Debug, Clone)]
pub(super) struct RequestBounds {
    pub(super) under_way: RequestsUnderWay,
    /// Of these, those that come with a body: somebody who sends one byte after the other keeps nobody from reading.
    pub(super) with_bodies: Arc<Semaphore>,
    /// And each client's part of these.
    pub(super) of_clients: Arc<Crowd>,
    /// Where those come from who may have any number of them.
    pub(super) exempt: Arc<[Network]>,
    pub(super) time: Duration,
}

impl RequestBounds {
    /// A place for a request that comes with a body, of all and of its client's; `None`: one of these is full.
    fn place_for_body(&self, request: &Request) -> Option<(OwnedSemaphorePermit, Option<CrowdPlace>)> {
        let peer = request.extensions().get::<Peer>().map(|peer| peer.0.ip());
        let is_exempt =
            peer.is_some_and(|peer| TrustedProxies::is_exempt(&self.exempt, peer, request.headers()));
        // One that came by no listener has no address.
        let of_client = match request.extensions().get::<ClientAddress>().filter(|_| !is_exempt) {
            Some(client) => {
                let place = self.of_clients.enter(client.0);
                if place.is_none() {
                    self.of_clients.tell(client.0);
                }
                Some(place?)
            }
            None => None,
        };
        Some((self.with_bodies.clone().try_acquire_owned().ok()?, of_client))
    }
}

/// Refuses what is too much. A request counts until its answer begins: how long somebody reads has no bound but that on
/// connections.
///
/// What may write runs by itself, and goes on when its client has gone or its time is up: half of it would stay, and
/// nobody would come for the rest. Who has chosen another password is logged out elsewhere, also if the page was shut.
pub(super) async fn bound(State(bounds): State<RequestBounds>, request: Request, next: Next) -> Response {
    let Ok(place) = bounds.under_way.places.clone().try_acquire_owned() else {
        counter!(REFUSED, "why" => "too_many").increment(1);
        return Refusal::try_again().into_response();
    };
    let with_body = match request.body().is_end_stream() {
        true => None,
        false => match bounds.place_for_body(&request) {
            Some(place) => Some(place),
            None => {
                counter!(REFUSED, "why" => "too_many").increment(1);
                return Refusal::try_again().into_response();
            }
        },
    };
    let may_write = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    // A body that never ends ends here.
    let most = if may_write { bounds.time * 2 } else { bounds.time };
    let answered = async move {
        let _places = (place, with_body);
        timeout(most, next.run(request)).await.ok()
    };
    let answered = async {
        match may_write {
            false => answered.await,
            true => match tokio::spawn(answered.in_current_span()).await {
                Ok(response) => response,
                Err(e) => match e.try_into_panic() {
                    Ok(panic) => resume_unwind(panic),
                    // The runtime ends.
                    Err(_) => None,
                },
            },
        }
    };
    if let Ok(Some(response)) = timeout(bounds.time, answered).await {
        return response;
    }
    counter!(REFUSED, "why" => "too_long").increment(1);
    // What it wrote until then stays.
    let refusal = if may_write { Refusal::unknown() } else { Refusal::try_again() };
    refusal.into_response()
}
