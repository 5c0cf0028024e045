//! What lets work and faults meet: the steps of a round come in portions, one more with each fault that the round has
//! to have. By the clock a fast machine was done before anything went wrong.
//!
//! Some are kept until all these faults have met work: one that came to nothing on a busy machine is tried again, and
//! took the portions of those after it (seed 8: an archive's server was to forget what it had acknowledged, in
//! fourteen tries, and nothing was left for its death).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::watch;

use super::args::Chaos;

/// Portions that come once all faults have met work, or where one can't for want of it.
const KEPT: usize = 2;

/// How far the faults of a round are, and its work.
#[derive(Debug)]
pub(crate) struct Gate {
    /// Steps of the round.
    steps: usize,
    /// Portions but for the first one, those that are kept among them.
    portions: usize,
    /// Those of faults that have not met work yet.
    awaited: AtomicUsize,
    /// Portions that may be begun besides the first one.
    admitted: watch::Sender<usize>,
    is_over: watch::Sender<bool>,
}

impl Gate {
    /// So many portions come with the faults of the round.
    pub(crate) fn new(steps: usize, faults: usize) -> Arc<Self> {
        Arc::new(Self {
            steps,
            portions: if faults == 0 { 0 } else { faults + KEPT },
            awaited: AtomicUsize::new(faults),
            admitted: watch::Sender::new(0),
            is_over: watch::Sender::new(false),
        })
    }

    /// Nothing goes wrong: nothing is held back.
    pub(crate) fn open() -> Arc<Self> {
        Self::new(1, 0)
    }

    /// Waits until the step with that number may begin. It goes by the plan: a step waits for none that comes after it
    /// there, so those of a portion can always be carried out.
    pub(crate) async fn begin(&self, number: usize) {
        let portion = number * (self.portions + 1) / self.steps;
        // It ends with an error only without a sender, and here is one.
        let _ = self.admitted.subscribe().wait_for(|admitted| *admitted >= portion.min(self.portions)).await;
    }

    /// The next portion may begin.
    pub(crate) fn admit(&self) {
        self.admitted.send_modify(|admitted| *admitted += 1);
    }

    /// A fault with so many portions has met work. After the last one all may begin.
    pub(crate) fn met(&self, portions: usize) {
        if self.awaited.fetch_sub(portions, Ordering::Relaxed) == portions {
            self.admit_all();
        }
    }

    /// All may begin: so many faults won't come any more.
    pub(crate) fn admit_all(&self) {
        self.admitted.send_modify(|admitted| *admitted = (*admitted).max(self.portions));
    }

    /// The work is done.
    pub(crate) fn end(&self) {
        self.is_over.send_replace(true);
    }

    /// Waits until the work is done.
    pub(crate) async fn over(&self) {
        let _ = self.is_over.subscribe().wait_for(|is_over| *is_over).await;
    }

    pub(crate) fn is_over(&self) -> bool {
        *self.is_over.borrow()
    }
}

/// How many portions come with the faults that a round with these kinds has to have: one fault of each.
pub(crate) fn portions(kinds: &[Chaos]) -> usize {
    kinds.iter().map(|kind| kind.portions()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    /// Not as a task: that would have to yield in between.
    #[test]
    fn a_portion_of_the_steps_comes_with_each_fault() {
        // Five portions of three: two of these are kept.
        let gate = Gate::new(15, 2);
        let begun = || (0..100).filter(|number| gate.begin(*number).now_or_never().is_some()).count();
        assert_eq!(begun(), 3);
        gate.admit();
        assert_eq!(begun(), 6);
        gate.met(1);
        gate.admit();
        assert_eq!(begun(), 9);
        gate.met(1);
        assert_eq!(begun(), 100);
        assert!((0..100).all(|number| Gate::open().begin(number).now_or_never().is_some()));
        assert!(gate.over().now_or_never().is_none() && !gate.is_over());
        gate.end();
        assert!(gate.over().now_or_never().is_some() && gate.is_over());
    }
}
