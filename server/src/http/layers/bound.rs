//! Bounds on how many requests are under way at a time, and on how long one may be.

use std::sync::Arc;
use std::time::Duration;

use axum::body::HttpBody as _;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use metrics::counter;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::meter::REFUSED;
use crate::http::refusal::Refusal;

/// The bounds.
#[derive(Debug, Clone)]
pub(super) struct RequestBounds {
    pub(super) under_way: Arc<Semaphore>,
    /// Of these, those that come with a body: somebody who sends one byte after the other keeps nobody from reading.
    pub(super) with_bodies: Arc<Semaphore>,
    pub(super) time: Duration,
}

/// Refuses what is too much. A request counts until its answer begins: how long somebody reads has no bound but that on
/// connections.
pub(super) async fn bound(State(bounds): State<RequestBounds>, request: Request, next: Next) -> Response {
    let Ok(_permit) = bounds.under_way.try_acquire() else {
        counter!(REFUSED, "why" => "too_many").increment(1);
        return Refusal::try_again().into_response();
    };
    let _with_body = match request.body().is_end_stream() {
        true => None,
        false => match bounds.with_bodies.try_acquire() {
            Ok(permit) => Some(permit),
            Err(_) => {
                counter!(REFUSED, "why" => "too_many").increment(1);
                return Refusal::try_again().into_response();
            }
        },
    };
    let may_write = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    match timeout(bounds.time, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            counter!(REFUSED, "why" => "too_long").increment(1);
            // What it wrote until then stays.
            let refusal = if may_write { Refusal::unknown() } else { Refusal::try_again() };
            refusal.into_response()
        }
    }
}
