//! Connections to one server, shared by whoever asks.

use std::io::{Error, ErrorKind};
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;

use super::connection::{Answer, Connection};
use super::request::Ask;

/// A request is given up after so long.
const ANSWER_MAX: Duration = Duration::from_secs(40);
/// A connection that was silent for so long is left: servers close those that say nothing.
const IDLE_MAX: Duration = Duration::from_secs(20);

/// So many connections, and no more; whoever finds none waits.
#[derive(Debug)]
pub(crate) struct Clients {
    to: Mutex<Address>,
    idle: Mutex<Vec<Connection>>,
    permits: Semaphore,
}

/// Where a server is now.
#[derive(Debug, Clone, Copy)]
struct Address {
    at: SocketAddr,
    generation: u64,
}

impl Clients {
    pub(crate) fn new(at: SocketAddr, connections: usize) -> Self {
        let to = Mutex::new(Address { at, generation: 0 });
        Self { to, idle: Mutex::default(), permits: Semaphore::new(connections) }
    }

    /// The server is another one from now on.
    pub(crate) fn moved(&self, at: SocketAddr) {
        let mut to = lock(&self.to);
        *to = Address { at, generation: to.generation + 1 };
    }

    /// Where the server is.
    pub(crate) fn address(&self) -> SocketAddr {
        lock(&self.to).at
    }

    /// Asks; fails, if no whole answer came: what was asked may have been done or not.
    pub(crate) async fn ask(&self, ask: &Ask<'_>) -> Result<Answer, Error> {
        self.send(&ask.bytes()).await
    }

    /// The same with a request that is written already.
    pub(crate) async fn send(&self, request: &[u8]) -> Result<Answer, Error> {
        self.exchange(self.connection(), request).await
    }

    /// The same on a connection that was never used: an end of it is no end of silence.
    pub(crate) async fn send_anew(&self, request: &[u8]) -> Result<Answer, Error> {
        let Address { at, generation } = *lock(&self.to);
        self.exchange(Connection::open(at, generation), request).await
    }

    async fn exchange(
        &self,
        connection: impl Future<Output = Result<Connection, Error>>,
        request: &[u8],
    ) -> Result<Answer, Error> {
        let _permit = self.permits.acquire().await.map_err(Error::other)?;
        let answered = tokio::time::timeout(ANSWER_MAX, async { connection.await?.ask(request).await });
        let silent = |_| Error::new(ErrorKind::TimedOut, format!("no answer in {ANSWER_MAX:?}"));
        let (answer, again) = answered.await.map_err(silent)??;
        lock(&self.idle).extend(again);
        Ok(answer)
    }

    async fn connection(&self) -> Result<Connection, Error> {
        let Address { at, generation } = *lock(&self.to);
        {
            let mut idle = lock(&self.idle);
            while let Some(connection) = idle.pop() {
                if connection.generation == generation && connection.used.elapsed() < IDLE_MAX {
                    return Ok(connection);
                }
            }
        }
        Connection::open(at, generation).await
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
