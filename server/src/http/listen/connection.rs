//! One connection.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::patience::PatientStream;
use super::{ListenerLimits, Peer};
use crate::http::shutdown::Shutdown;
use crate::http::tls::Tls;

/// Longest time to agree on TLS.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);
/// The least that hyper takes as a bound on what it reads at a time.
const HEAD_MIN: usize = 8 * 1024;

/// Parts that every connection of a listener is served with.
#[derive(Clone)]
pub(super) struct Connection {
    router: Router,
    tls: Option<Tls>,
    shutdown: Shutdown,
    limits: Arc<ListenerLimits>,
}

impl Connection {
    pub(super) fn new(
        router: Router,
        tls: Option<Tls>,
        shutdown: Shutdown,
        limits: Arc<ListenerLimits>,
    ) -> Self {
        Self { router, tls, shutdown, limits }
    }

    /// Serves a connection to its end.
    pub(super) async fn run(self, stream: TcpStream, peer: Peer) {
        // Answers are written whole: waiting for more of them helps nobody.
        let _ = stream.set_nodelay(true);
        let stream = PatientStream::new(stream, self.limits.write_time);
        let Some(tls) = &self.tls else { return self.answer(stream, peer).await };
        match timeout(HANDSHAKE_TIME, tls.acceptor().accept(stream)).await {
            Ok(Ok(stream)) => self.answer(stream, peer).await,
            Ok(Err(error)) => tracing::debug!(%error, "no TLS with a client"),
            Err(_) => tracing::debug!("a client took too long for TLS"),
        }
    }

    async fn answer(&self, stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, peer: Peer) {
        let router = TowerToHyperService::new(self.router.clone());
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(peer);
            hyper::service::Service::call(&router, request.map(Body::new))
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.head_time)
            .max_buf_size(self.limits.head_max.max(HEAD_MIN))
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        let mut connection = pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = self.shutdown.begun() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection broke off");
        }
    }
}
