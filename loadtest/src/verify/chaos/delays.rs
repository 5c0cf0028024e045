//! A server that is slow: a proxy before its port passes on late what either side says.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

const LOOPBACK: &str = "127.0.0.1:";

/// A proxy before a server of this machine.
#[derive(Debug)]
pub(crate) struct Delays {
    url: String,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    late_ms: AtomicU64,
    /// How often something was late.
    passed_late: AtomicU64,
}

impl Delays {
    /// Before the server at `postgres://user:password@127.0.0.1:port/database`.
    pub(crate) async fn before(url: &str) -> anyhow::Result<Self> {
        let (user, rest) = url.rsplit_once(LOOPBACK).context("a server of this machine")?;
        let (port, database) = rest.split_once('/').context("a database")?;
        let listener = TcpListener::bind((LOOPBACK.trim_end_matches(':'), 0)).await?;
        let own = listener.local_addr()?.port();
        let (state, port) = (Arc::new(State::default()), port.parse()?);
        tokio::spawn(take_in(listener, port, state.clone()));
        Ok(Self { url: format!("{user}{LOOPBACK}{own}/{database}"), state })
    }

    /// Where clients connect.
    pub(crate) fn url(&self) -> &String {
        &self.url
    }

    /// From now on each piece of what is said is so late.
    pub(crate) fn set(&self, late: Duration) {
        self.state.late_ms.store(u64::try_from(late.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// How often something was late so far.
    pub(crate) fn passed_late(&self) -> u64 {
        self.state.passed_late.load(Ordering::Relaxed)
    }
}

async fn take_in(listener: TcpListener, port: u16, state: Arc<State>) {
    while let Ok((stream, _)) = listener.accept().await {
        let state = state.clone();
        tokio::spawn(async move {
            // Who connects to a server that isn't there is cut off.
            let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await else { return };
            let ((near, near_end), (far, far_end)) = (stream.into_split(), server.into_split());
            tokio::select! {
                () = pass_on(near, far_end, &state) => {}
                () = pass_on(far, near_end, &state) => {}
            }
        });
    }
}

async fn pass_on(mut source: OwnedReadHalf, mut target: OwnedWriteHalf, state: &State) {
    let mut bytes = vec![0; 16 * 1024];
    while let Ok(many @ 1..) = source.read(&mut bytes).await {
        let late_ms = state.late_ms.load(Ordering::Relaxed);
        if late_ms > 0 {
            sleep(Duration::from_millis(late_ms)).await;
            state.passed_late.fetch_add(1, Ordering::Relaxed);
        }
        if target.write_all(&bytes[..many]).await.is_err() {
            return;
        }
    }
}
