//! Whether the process lives, and whether requests should be sent to it.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures::future::BoxFuture;
use tokio::sync::Mutex;

use super::shutdown::Shutdown;

/// The time that an answer counts: whoever asks more often costs nothing.
const KNOWN_FOR: Duration = Duration::from_secs(1);
/// The longest wait for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(5);

type ReadinessProbe = Box<dyn Fn() -> BoxFuture<'static, bool> + Send + Sync>;

/// Whether requests should be sent here: not while the server goes down, nor while what it stands on is ill.
#[derive(Clone)]
pub struct Readiness {
    shutdown: Shutdown,
    probe: Arc<ReadinessProbe>,
    known: Arc<Mutex<Option<(Instant, bool)>>>,
}

impl Readiness {
    /// One that asks `probe`, once a second at most, whether all is well.
    pub fn new<F>(shutdown: Shutdown, probe: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = bool> + Send + 'static,
    {
        let probe: ReadinessProbe = Box::new(move || Box::pin(probe()));
        Self { shutdown, probe: Arc::new(probe), known: Arc::default() }
    }

    /// Tells whether they should.
    pub async fn is_ready(&self) -> bool {
        if self.shutdown.has_begun() {
            return false;
        }
        let mut known = self.known.lock().await;
        if let Some((since, is_well)) = *known
            && since.elapsed() < KNOWN_FOR
        {
            return is_well;
        }
        let is_well = tokio::time::timeout(ANSWER_MAX, (self.probe)()).await.unwrap_or(false);
        *known = Some((Instant::now(), is_well));
        is_well
    }

    /// The routes `/health`, which is well as long as somebody answers, and `/ready`.
    pub fn routes(self) -> Router {
        Router::new().route("/health", get(async || "OK")).route("/ready", get(ready)).with_state(self)
    }
}

impl fmt::Debug for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readiness").field("shutdown", &self.shutdown).finish_non_exhaustive()
    }
}

async fn ready(State(readiness): State<Readiness>) -> Response {
    if readiness.is_ready().await {
        "OK".into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not ready").into_response()
    }
}
