//! Leases: imports beside engines, the living and the dead, while the clock of the leases' server is set by hours.

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;

use super::{Stage, pause};
use crate::error::{ErrorKind, Result};
use crate::post::Draft;
use crate::simulation::instances::{importing, instance, starting};
use crate::simulation::truth;
use crate::simulation::world::{HOUR_MS, world};

/// Longer than a lease lasts.
const LONG_MS: u64 = 300;

fn set_clock(ahead_ms: i64) {
    world(|w| w.nodes[0].clock_ahead_ms = ahead_ms);
}

/// An instance dies. What it was about to send may still arrive.
async fn kill(number: usize) {
    world(|w| w.kill(number));
    pause(LONG_MS).await;
}

fn is_refused<T>(outcome: &Result<T>, what: &str) {
    if !outcome.as_ref().is_err_and(|e| e.kind() == ErrorKind::Conflict) {
        let said = outcome.as_ref().err();
        world(|w| w.violated(format!("{what}: {said:?}")));
    }
}

/// H82: an engine lives, and an import wants to begin; an import lives, and an engine wants to start. Then those that
/// lived were killed. Meanwhile the clock goes by hours.
pub(in crate::simulation) fn import_beside_engines() -> LocalBoxFuture<'static, ()> {
    async {
        for ahead_ms in [HOUR_MS, -HOUR_MS] {
            set_clock(0);
            let (serving, engine) = instance().await;
            set_clock(ahead_ms);
            is_refused(&importing().await.1, "an import began beside an engine");
            pause(LONG_MS).await;
            if engine.graph().journal.tasks.is_stopping() {
                world(|w| w.violated("an engine gave way to an import that was refused"));
            }
            kill(serving).await;
            set_clock(0);
            let (number, import) = importing().await;
            if let Err(e) = &import {
                world(|w| w.violated(format!("a dead engine holds an import up: {e:?}")));
            }
            set_clock(ahead_ms);
            pause(LONG_MS).await;
            is_refused(&starting().await.1, "an engine started beside an import");
            kill(number).await;
            set_clock(0);
            let (number, started) = starting().await;
            if let Err(e) = &started {
                world(|w| w.violated(format!("a dead import holds an engine up: {e:?}")));
            }
            kill(number).await;
        }
    }
    .boxed_local()
}

/// H113: the leases' server is silent, and replies of a living one are lost: what X has posted stands in its journal,
/// and nobody knows of it.
pub(in crate::simulation) fn posted_while_the_leases_are_away() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        stage.follow(0, reader, author).await;
        stage.home_of(reader).await;
        world(|w| {
            w.nodes[0].is_silent = true;
            w.faults.lost = 1_000;
        });
        while world(|w| truth::journal_entries(w)) == 0 {
            drop(stage.engines[0].publish(author, &Draft::text("x")).await);
        }
        // Both scans that find it end before the leases' server is back.
        stage.settled().await;
        world(|w| w.nodes[0].is_silent = false);
        stage.ends_well().await;
    }
    .boxed_local()
}
