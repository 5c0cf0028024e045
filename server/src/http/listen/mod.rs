//! Listeners and their connections, from the first byte to the last.
//!
//! Here: how many connections there are, how long one may take to ask, how all of them end. What is done with a request
//! is said by the layers, and by the routes in them.

mod connection;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use self::connection::Connection;
use super::shutdown::Shutdown;

/// A pause while no connection can be accepted, as with too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// The other end of a connection: an extension of every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// A port that is listened at, with TLS or without.
#[expect(missing_debug_implementations, reason = "what accepts TLS has none")]
pub struct Listener {
    tcp: TcpListener,
    tls: Option<TlsAcceptor>,
}

impl Listener {
    /// Listens at an address; at port 0 at one that is free.
    ///
    /// # Errors
    ///
    /// The address cannot be had.
    pub async fn bind(address: SocketAddr, tls: Option<TlsAcceptor>) -> io::Result<Self> {
        Ok(Self { tcp: TcpListener::bind(address).await?, tls })
    }

    /// The address, with the port that it has.
    ///
    /// # Errors
    ///
    /// Those of the operating system.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }
}

/// Bounds of listeners and their connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenerLimits {
    /// Connections at a time, of all listeners; further ones wait until one ends.
    pub connections_max: usize,
    /// Bytes of a request's head; what is longer is refused with 431.
    pub head_max: usize,
    /// Longest time to send a head, and to be silent between two requests.
    pub head_time: Duration,
    /// How long requests may go on once the server goes down.
    pub drain_time: Duration,
}

impl Default for ListenerLimits {
    fn default() -> Self {
        Self {
            connections_max: 10_000,
            head_max: 16 * 1024,
            head_time: Duration::from_secs(60),
            drain_time: Duration::from_secs(10),
        }
    }
}

/// Serves until `shutdown` begins and all that is under way has ended, or was cut off after its time. Gives the number
/// of connections that were cut off.
///
/// Once it begins nothing is accepted, connections without a request end at once, and others with their answer.
/// Dropping the future cuts off everything.
pub async fn serve(
    listeners: Vec<Listener>,
    router: Router,
    shutdown: &Shutdown,
    limits: ListenerLimits,
) -> usize {
    let bound = Arc::new(Semaphore::new(limits.connections_max.clamp(1, Semaphore::MAX_PERMITS)));
    let mut accepting = JoinSet::new();
    for listener in listeners {
        let (bound, shutdown) = (bound.clone(), shutdown.clone());
        let connection = Connection::new(router.clone(), listener.tls, shutdown.clone(), limits);
        accepting.spawn(async move {
            let mut open = JoinSet::new();
            tokio::select! {
                () = shutdown.begun() => {}
                () = accept_all(listener.tcp, &bound, &connection, &mut open) => {}
            }
            open
        });
    }
    let mut all = Vec::new();
    while let Some(open) = accepting.join_next().await {
        match open {
            Ok(open) => all.push(open),
            Err(error) => tracing::error!(%error, "a listener has ended"),
        }
    }
    let drained = async {
        for open in &mut all {
            while open.join_next().await.is_some() {}
        }
    };
    let _ = timeout(limits.drain_time, drained).await;
    all.iter().map(JoinSet::len).sum()
}

/// Accepts for ever. Connections that have ended are forgotten as others come.
async fn accept_all(
    tcp: TcpListener,
    bound: &Arc<Semaphore>,
    connection: &Connection,
    open: &mut JoinSet<()>,
) {
    // It is never closed.
    while let Ok(permit) = bound.clone().acquire_owned().await {
        while open.try_join_next().is_some() {}
        match tcp.accept().await {
            Ok((stream, peer)) => {
                let connection = connection.clone();
                open.spawn(async move {
                    connection.run(stream, Peer(peer)).await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "no connection can be accepted");
                sleep(PAUSE).await;
            }
        }
    }
}
