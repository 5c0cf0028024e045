//! How long a call may take until it counts as stuck.

use std::time::{Duration, Instant};

/// So many times as long for all of it, however often it was begun anew.
const TIMES_MAX: u32 = 10;
/// How long an archive may say that it lacks what it once had, where nobody writes that again.
const LOST_MAX: Duration = Duration::from_secs(10);

/// How long somebody waits for one thing.
#[derive(Debug)]
pub(super) struct Patience {
    most: Duration,
    began: Instant,
    since: Instant,
    lost_since: Option<Instant>,
}

impl Patience {
    pub(super) fn of(most: Duration) -> Self {
        let now = Instant::now();
        Self { most, began: now, since: now, lost_since: None }
    }

    /// There is a reason to wait that isn't the callee's.
    pub(super) fn begin_anew(&mut self) {
        self.since = Instant::now();
    }

    /// How long it was waited, and for what.
    pub(super) fn told(&self) -> String {
        let waited = self.began.elapsed().as_secs_f64();
        let why = if self.lost_since.is_some() { ", and is said to be lost for good" } else { "" };
        format!("within {waited:.0} s{why}")
    }

    /// What is asked for is lost for good.
    pub(super) fn note_loss(&mut self) {
        self.lost_since.get_or_insert_with(Instant::now);
    }

    pub(super) fn is_over(&self) -> bool {
        self.since.elapsed() > self.most
            || self.began.elapsed() > self.most * TIMES_MAX
            || self.lost_since.is_some_and(|since| since.elapsed() > LOST_MAX)
    }
}
