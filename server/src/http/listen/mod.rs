//! Listeners and their connections, from the first byte to the last.
//!
//! Here: how many connections there are, in all and from one address, how long one may take to ask, and to take what it
//! is answered, how all of them end. What is done with a request
//! is said by the layers, and by the routes in them.

mod connection;
mod patience;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use metrics::counter;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use self::connection::Connection;
use super::address::Network;
use super::crowd::Crowd;
use super::shutdown::Shutdown;
use super::tls::Tls;

/// Connections that were cut off, by `why`: `too_many` from one address, `unread`.
pub const CONNECTIONS_CUT: &str = "tideline_http_connections_cut_total";

/// A pause while no connection can be accepted, as with too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// The other end of a connection: an extension of every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// A port that is listened at, with TLS or without.
#[derive(Debug)]
pub struct Listener {
    tcp: TcpListener,
    tls: Option<Tls>,
}

impl Listener {
    /// Listens at an address; at port 0 at one that is free.
    ///
    /// # Errors
    ///
    /// The address cannot be had.
    pub async fn bind(address: SocketAddr, tls: Option<Tls>) -> io::Result<Self> {
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenerLimits {
    /// Connections at a time, of all listeners; further ones wait until one ends.
    pub connections_max: usize,
    /// Of these, connections from one address (of IPv6: that begin with the same half); further ones are closed.
    pub address_connections_max: usize,
    /// From where any number may come: this machine, proxies.
    pub exempt: Vec<Network>,
    /// Bytes of a request's head; what is longer is refused with 431.
    pub head_max: usize,
    /// Longest time to send a head, and to be silent between two requests.
    pub head_time: Duration,
    /// Longest time in which a client takes 16 KiB of what it is answered, or all of it; then its connection is cut
    /// off.
    pub write_time: Duration,
    /// How long requests may go on once the server goes down.
    pub drain_time: Duration,
}

impl Default for ListenerLimits {
    fn default() -> Self {
        Self {
            connections_max: 10_000,
            address_connections_max: 256,
            exempt: Vec::new(),
            head_max: 16 * 1024,
            head_time: Duration::from_secs(60),
            write_time: Duration::from_secs(30),
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
    let drain_time = limits.drain_time;
    let doors = Arc::new(Doors {
        all: Arc::new(Semaphore::new(limits.connections_max.clamp(1, Semaphore::MAX_PERMITS))),
        of_addresses: Crowd::new(
            limits.address_connections_max,
            ("connections", "address_connections_max"),
            limits.exempt.clone(),
        ),
    });
    let (limits, mut accepting) = (Arc::new(limits), JoinSet::new());
    for Listener { tcp, tls } in listeners {
        let (doors, shutdown) = (doors.clone(), shutdown.clone());
        let connection = Connection::new(router.clone(), tls.clone(), shutdown.clone(), limits.clone());
        accepting.spawn(async move {
            let mut open = JoinSet::new();
            let renewing = async {
                match &tls {
                    Some(tls) => tls.renew_for_ever().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = shutdown.begun() => {}
                () = renewing => {}
                () = accept_all(tcp, &doors, &connection, &mut open) => {}
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
    let _ = timeout(drain_time, drained).await;
    all.iter().map(JoinSet::len).sum()
}

/// Bounds on the connections of all listeners together.
struct Doors {
    all: Arc<Semaphore>,
    of_addresses: Arc<Crowd>,
}

/// Accepts for ever. Connections that have ended are forgotten as others come.
async fn accept_all(tcp: TcpListener, doors: &Doors, connection: &Connection, open: &mut JoinSet<()>) {
    // It is never closed.
    while let Ok(permit) = doors.all.clone().acquire_owned().await {
        while open.try_join_next().is_some() {}
        match tcp.accept().await {
            Ok((stream, peer)) => {
                let Some(place) = doors.of_addresses.enter(peer.ip()) else {
                    // Nothing is said to it: whoever doesn't read would be waited for.
                    doors.of_addresses.tell(peer.ip());
                    counter!(CONNECTIONS_CUT, "why" => "too_many").increment(1);
                    continue;
                };
                let connection = connection.clone();
                open.spawn(async move {
                    connection.run(stream, Peer(peer)).await;
                    drop((place, permit));
                });
            }
            Err(error) => {
                tracing::warn!(%error, "no connection can be accepted");
                sleep(PAUSE).await;
            }
        }
    }
}
