//! Whether a server is there, as far as was seen, and who doesn't wait for one that isn't.
//!
//! Callers wait for a server until their deadline: it may come back, or another one take its place. Work beside them,
//! for which nobody waits, would fill every queue that way. It leaves what lies on a server that is away, and comes
//! back.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::wire::{Reply, WireError};
use tideline_model::error::ErrorKind;

/// A server that has refused to work, or a slot of it, is left alone for so long.
const REFUSAL: Duration = Duration::from_secs(1);
/// Codes of errors by which a server says that it can't work now, though it answers.
const REFUSALS: [&str; 7] = ["OOM", "MISCONF", "LOADING", "NOREPLICAS", "CLUSTERDOWN", "MASTERDOWN", "BUSY"];

tokio::task_local! {
    static IMPATIENT: ();
}

/// Runs work that doesn't wait for servers that are away: what it sends to one that is known to be silent fails at
/// once, and what it sends to another one fails once that turns out to be. Futures that it spawns wait again.
#[doc(hidden)]
pub async fn impatiently<F: Future>(work: F) -> F::Output {
    IMPATIENT.scope((), work).await
}

/// Whether what runs now does not wait for servers that are away.
#[doc(hidden)]
pub fn is_impatient() -> bool {
    IMPATIENT.try_with(|()| ()).is_ok()
}

/// Whether a server is there.
#[derive(Debug, Default)]
pub(crate) struct Presence {
    /// It has let somebody wait in vain, or could not be reached, and has said nothing since.
    is_silent: AtomicBool,
    /// When it last answered that it can't work now.
    refused: Mutex<Option<Instant>>,
    /// It answers, and its last fence failed: whether what it says will last, nobody can say.
    cannot_vouch: AtomicBool,
    /// Slots of it that move, and when somebody last gave up there because keys were on both sides.
    half_moved: Mutex<HashMap<u16, Instant>>,
}

impl Presence {
    /// Notes how a talk with the server ended.
    pub(super) fn note<T>(&self, outcome: &Result<T, WireError>) {
        match outcome {
            // Read first: this happens with each pipeline, and the line is shared by all who send.
            Ok(_) if self.is_silent() => self.is_silent.store(false, Ordering::Relaxed),
            Err(WireError::Timeout | WireError::NotSent(_)) => self.is_silent.store(true, Ordering::Relaxed),
            // Who breaks a connection off, or turns us away, is there.
            Ok(_) | Err(WireError::Dropped(_) | WireError::Refused(_)) => {}
        }
    }

    /// Notes whether one of these replies says that the server can't work now.
    pub(super) fn note_refusals(&self, replies: &[Reply]) {
        let is_refusal = |reply: &Reply| match reply.error() {
            Some((code, _)) => REFUSALS.contains(&code),
            None => false,
        };
        if replies.iter().any(is_refusal) {
            *self.refused() = Some(Instant::now());
        }
    }

    /// Notes slots where somebody has found keys on both sides for longer than it waits.
    pub(super) fn note_half_moved(&self, slot: u16) {
        let mut slots = self.half_moved();
        slots.retain(|_, at| at.elapsed() < REFUSAL);
        slots.insert(slot, Instant::now());
    }

    /// Whether it makes no sense now to send a slot what needs several of its keys.
    pub(super) fn is_half_moved(&self, slot: u16) -> bool {
        self.half_moved().get(&slot).is_some_and(|at| at.elapsed() < REFUSAL)
    }

    fn half_moved(&self) -> MutexGuard<'_, HashMap<u16, Instant>> {
        self.half_moved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refused(&self) -> MutexGuard<'_, Option<Instant>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it was silent when somebody last needed an answer.
    pub(super) fn is_silent(&self) -> bool {
        self.is_silent.load(Ordering::Relaxed)
    }

    /// Tells people why it makes no sense to give it work now, or why that comes to no end.
    pub(super) fn absence(&self) -> Option<&'static str> {
        match (self.is_silent(), self.is_away()) {
            (true, _) => Some(
                "it does not answer: what lies there waits for it, all else goes on; look whether it runs, and can be \
                 reached from here",
            ),
            (_, true) => Some(
                "it answers that it can't work now: what lies there waits, all else goes on; look at its memory \
                 (maxmemory), its disk, a script that runs there, and its log",
            ),
            _ if self.cannot_vouch() => Some(
                "it works, and nobody can say whether what it acknowledges will last: what has to waits; look whether \
                 its replicas run and are in step",
            ),
            _ if self.half_moved().values().any(|at| at.elapsed() < REFUSAL) => Some(
                "keys of a slot that moves are on both sides: what needs several of them waits, all else goes on; look \
                 whether somebody ends that move (`redis-cli --cluster fix` does)",
            ),
            _ => None,
        }
    }

    /// Notes how a fence ended.
    pub(super) fn note_fence<T>(&self, outcome: &tideline_model::Result<T>) {
        let cannot_vouch = outcome.as_ref().is_err_and(|e| e.kind() == ErrorKind::Unavailable);
        self.cannot_vouch.store(cannot_vouch, Ordering::Relaxed);
    }

    /// Whether its last fence failed: a replica is silent, or missing where there has to be one.
    pub(super) fn cannot_vouch(&self) -> bool {
        self.cannot_vouch.load(Ordering::Relaxed)
    }

    /// Whether it makes no sense to give it work now.
    pub(super) fn is_away(&self) -> bool {
        self.is_silent() || self.refused().is_some_and(|at| at.elapsed() < REFUSAL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tideline_model::error::Error;

    #[test]
    fn a_server_is_away_until_it_says_something() {
        let presence = Presence::default();
        for silence in [WireError::Timeout, WireError::NotSent("no route".into())] {
            presence.note::<()>(&Err(silence));
            assert!(presence.is_silent() && presence.is_away());
            // Whoever turns up and hangs up has not worked yet.
            presence.note::<()>(&Err(WireError::Dropped("closed".into())));
            assert!(presence.is_silent());
            presence.note(&Ok(()));
            assert!(!presence.is_silent() && !presence.is_away());
        }
    }

    #[test]
    fn who_has_no_memory_left_is_away_though_it_answers() {
        let presence = Presence::default();
        presence.note_refusals(&[Reply::text_of("1"), Reply::server_error("WRONGTYPE x")]);
        assert!(!presence.is_away());
        presence.note_refusals(&[Reply::text_of("1"), Reply::server_error("OOM command not allowed")]);
        assert!(presence.is_away() && !presence.is_silent());
    }

    #[test]
    fn a_slot_that_stands_half_way_keeps_its_server_and_the_other_slots() {
        let presence = Presence::default();
        presence.note_half_moved(7);
        assert!(presence.is_half_moved(7) && !presence.is_half_moved(8) && !presence.is_away());
        assert!(presence.absence().is_some());
    }

    #[test]
    fn whose_fence_fails_cannot_vouch_until_one_succeeds_or_it_is_another_server() {
        for end in [Ok(()), Err(Error::new(ErrorKind::Conflict, "failed over"))] {
            let presence = Presence::default();
            presence.note_fence::<()>(&Err(Error::unavailable("0 of 1 replicas answered")));
            assert!(presence.cannot_vouch() && !presence.is_away());
            presence.note::<()>(&Ok(()));
            assert!(presence.cannot_vouch(), "that it answers says nothing of its replicas");
            presence.note_fence(&end);
            assert!(!presence.cannot_vouch());
        }
    }

    #[tokio::test]
    async fn impatience_ends_with_the_work_and_is_not_inherited() {
        assert!(!is_impatient());
        impatiently(async {
            assert!(is_impatient());
            assert!(!tokio::spawn(async { is_impatient() }).await.unwrap());
        })
        .await;
        assert!(!is_impatient());
    }
}
