//! SIGINT and SIGTERM while a run has keys on a cluster of others. Before that, and on clusters of our own, they end
//! the process at once: our own servers end with it.

use std::process::ExitCode;
use std::sync::{LazyLock, Once, mpsc};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::deadline::Deadline;
use crate::leftover::{self, Leftover};

/// Connecting anew, and looking through all keys of the cluster, twice at least.
const REMOVING_MAX: Duration = Duration::from_secs(10 * 60);

static FIRST: LazyLock<watch::Sender<Option<Interrupt>>> = LazyLock::new(|| watch::Sender::new(None));

/// A signal that ended the run: the exit code by which a shell tells it of a process that it has killed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Interrupt(u8);

/// Has these keys removed also if the run is interrupted, until they are [forgotten](leftover::forget).
pub(crate) fn remove_too(keys: Leftover) {
    keys.note();
    listen();
}

/// Listens from now on: in a thread of its own, which works also while all others are busy, or ending. It does once
/// this returns: a run whose thread was late had written keys already, and its first signal killed it.
fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let (listening, is_listening) = mpsc::channel();
        std::thread::spawn(|| {
            let listen = || Builder::new_current_thread().enable_all().build()?.block_on(signals(listening));
            if let Err(error) = listen() {
                eprintln!("Note: if this run is interrupted, its keys stay: {error}");
            }
        });
        // One that can't listen has said so.
        let _ = is_listening.recv();
    });
}

/// The first signal ends the run, the second one the process.
async fn signals(listening: mpsc::Sender<()>) -> std::io::Result<()> {
    let (mut int, mut term) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    // Nobody is left who waits for it only if the run has ended.
    let _ = listening.send(());
    let mut next = async || {
        tokio::select! {
            _ = int.recv() => Interrupt(130),
            _ = term.recv() => Interrupt(143),
        }
    };
    let first = next().await;
    if leftover::of_now().is_some() {
        eprintln!(
            "Interrupted: the keys of this run are removed now. If that is interrupted too, they stay."
        );
    }
    FIRST.send_replace(Some(first));
    let second = next().await;
    leftover::tell();
    std::process::exit(second.0.into());
}

/// Waits for a signal that ends the run; for ever, if none comes.
pub(crate) async fn first() -> Interrupt {
    // The sender is a static: there always is one.
    let mut told = FIRST.subscribe();
    let first = told.wait_for(Option::is_some).await.ok().and_then(|first| *first);
    match first {
        Some(first) => first,
        None => std::future::pending().await,
    }
}

/// Removes the keys of a run, of which nothing is at work any more.
pub(crate) fn leave(by: Interrupt) -> ExitCode {
    if let Some(left) = leftover::of_now() {
        let removing = Deadline::after(REMOVING_MAX);
        let remove =
            || Runtime::new()?.block_on(removing.phase("removing the keys of this run", left.remove()));
        match remove() {
            Ok(removed) => {
                leftover::forget();
                eprintln!("{removed} keys are removed, no more are left.");
            }
            Err(error) => eprintln!("error: {error:#}"),
        }
    }
    ExitCode::from(by.0)
}
