//! Steps that end with a fence, done again while the fence fails.
//!
//! A failover between a step and its fence is nothing that a caller has done, nor anything that it could do better than
//! to call again. So whoever answers a caller does the step again itself. Journal entries need none of this: what fails
//! there is tried again anyhow, and until then no place is taken by it.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::fence::{FenceOutcome, TouchedServers};
use super::presence::is_impatient;
use super::router::Router;
use tideline_model::error::{Error, ErrorKind, Result};

/// First and longest pause before a step is done again.
const PAUSE: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(500));

/// Tries of one step and its fence, for as long as a command is tried.
#[doc(hidden)]
#[derive(Debug)]
pub struct FenceTries {
    until: Instant,
    pause: Duration,
}

impl FenceTries {
    /// Decides what to do after this error of the step, or of its fence. Ok: all of it again, after a pause that is
    /// over by now. Else the error to end with: never a fence's [`Conflict`](ErrorKind::Conflict).
    #[doc(hidden)]
    pub async fn after(&mut self, error: Error) -> Result<()> {
        // H90, H91, H92: what a fence fails for is done again, whoever calls.
        if !error.is_of_fence() || is_impatient() {
            return Err(error);
        }
        if Instant::now() + self.pause >= self.until {
            return Err(Error::unavailable(format!("given up after many tries: {error}")));
        }
        sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSE.1);
        Ok(())
    }
}

impl Router {
    /// For one step with its fence, from now on.
    #[doc(hidden)]
    pub fn fence_tries(&self) -> FenceTries {
        FenceTries { until: Instant::now() + self.settings().deadline, pause: PAUSE.0 }
    }

    /// A fence that is tried again while replicas don't answer: for as long as a command is tried, so that an election
    /// fits in. A server that is another one by now ends it at once: then the step has to be done again.
    #[doc(hidden)]
    pub async fn fence_patiently(&self, touched: &TouchedServers) -> Result<FenceOutcome> {
        let mut tries = self.fence_tries();
        loop {
            match self.fence(touched).await {
                Err(e) if e.kind() == ErrorKind::Unavailable => tries.after(e).await?,
                ended => return ended,
            }
        }
    }
}
