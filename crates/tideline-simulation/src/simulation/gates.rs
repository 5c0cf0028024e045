//! Gates: where a script stops the requests of an instance, does something else, and lets them go on.

use std::sync::{Arc, Mutex};

use tokio::sync::Semaphore;

use super::world::world;
use crate::cluster::Request;

/// At which point of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    /// Before it is executed.
    Before,
    /// When it has been executed; the reply waits.
    After,
    /// Before a fence.
    Fence,
    /// It goes on, and a copy of it stays here.
    Copied,
    /// The first one gets lost on its way: it stays here.
    Lost,
}

/// Stops what an instance sends.
#[derive(Debug, Clone)]
pub(super) struct Gate {
    by: usize,
    at: At,
    /// The command, or the function without its prefix; and what the first key begins with.
    what: &'static str,
    key: Vec<u8>,
    arrived: Arc<Semaphore>,
    opened: Arc<Semaphore>,
    caught: Arc<Mutex<Vec<Request>>>,
}

impl Gate {
    /// Closes the way of such requests of an instance.
    pub(super) fn close(by: usize, at: At, what: &'static str, key: &[u8]) -> Self {
        let [arrived, opened] = [0, 0].map(|permits| Arc::new(Semaphore::new(permits)));
        let caught = Arc::default();
        let gate = Self { by, at, what, key: key.to_vec(), arrived, opened, caught };
        world(|w| w.gates.push(gate.clone()));
        gate
    }

    /// Waits until a request has come to it.
    pub(super) async fn reached(&self) {
        let arrived = tokio::time::timeout(std::time::Duration::from_secs(20), self.arrived.acquire());
        match arrived.await {
            Ok(permit) => permit.expect("it stays open").forget(),
            Err(_) => panic!("no request {:?} {} of instance {} came", self.at, self.what, self.by),
        }
    }

    /// Stops nobody else; who stands there stays.
    pub(super) fn stop_no_more(&self) {
        world(|w| w.gates.retain(|gate| !Arc::ptr_eq(&gate.opened, &self.opened)));
    }

    /// Lets all go on.
    pub(super) fn open(&self) {
        self.stop_no_more();
        self.opened.add_permits(1_000);
    }

    /// What stayed here arrives now.
    pub(super) fn deliver(&self) {
        for request in self.caught.lock().expect("one thread").drain(..) {
            world(|w| {
                w.note(|| "LATE".into());
                let _ = w.execute(self.by, &request);
            });
        }
    }

    fn stops(&self, by: usize, at: At, request: Option<&Request>) -> bool {
        if (self.by, self.at) != (by, at) {
            return false;
        }
        let Some(request) = request else { return true };
        let words: Vec<&[u8]> = request.command.arguments().collect();
        let (name, key) = match words.as_slice() {
            [b"FCALL" | b"FCALL_RO", name, _, key, ..] => {
                (name.splitn(2, |byte| *byte == b'_').nth(1).unwrap_or_default(), *key)
            }
            [name, key, ..] => (*name, *key),
            _ => return false,
        };
        name == self.what.as_bytes() && key.starts_with(&self.key)
    }
}

/// Whether a request gets lost, or leaves a copy behind.
pub(super) fn is_lost(by: usize, request: &Request) -> bool {
    let of = |at: At| world(|w| w.gates.iter().find(|gate| gate.stops(by, at, Some(request))).cloned());
    if let Some(gate) = of(At::Copied) {
        gate.caught.lock().expect("one thread").push(request.clone());
    }
    let Some(gate) = of(At::Lost) else { return false };
    gate.caught.lock().expect("one thread").push(request.clone());
    gate.open();
    true
}

/// Waits at a gate, if one stands there.
pub(super) async fn pass(by: usize, at: At, request: Option<&Request>) {
    let gate = world(|w| w.gates.iter().find(|gate| gate.stops(by, at, request)).cloned());
    if let Some(gate) = gate {
        world(|w| w.note(|| format!("{by} stands {at:?} {}", gate.what)));
        gate.arrived.add_permits(1);
        gate.opened.acquire().await.expect("it stays open").forget();
    }
}
