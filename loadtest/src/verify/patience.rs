//! How long a call may take until it counts as stuck.

use std::time::{Duration, Instant};

/// So many times as long for all of it, however often it was begun anew.
const TIMES_MAX: u32 = 10;

/// How long somebody waits for one thing.
#[derive(Debug)]
pub(super) struct Patience {
    most: Duration,
    began: Instant,
    since: Instant,
}

impl Patience {
    pub(super) fn of(most: Duration) -> Self {
        let now = Instant::now();
        Self { most, began: now, since: now }
    }

    /// There is a reason to wait that isn't the callee's.
    pub(super) fn begin_anew(&mut self) {
        self.since = Instant::now();
    }

    pub(super) fn is_over(&self) -> bool {
        self.since.elapsed() > self.most || self.began.elapsed() > self.most * TIMES_MAX
    }
}
