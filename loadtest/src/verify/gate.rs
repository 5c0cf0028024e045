//! What lets work and faults meet: the steps of a round come in portions, one more with each fault that the round has
//! to have. By the clock a fast machine was done before anything went wrong.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::watch;

use super::args::Chaos;

/// How far the faults of a round are, and its work.
#[derive(Debug)]
pub(crate) struct Gate {
    /// Steps of the round.
    steps: usize,
    /// Portions that come with the faults that it has to have.
    faults: usize,
    /// Portions that may be begun besides the first one.
    admitted: watch::Sender<usize>,
    is_over: watch::Sender<bool>,
}

impl Gate {
    pub(crate) fn new(steps: usize, faults: usize) -> Arc<Self> {
        Arc::new(Self { steps, faults, admitted: watch::Sender::new(0), is_over: watch::Sender::new(false) })
    }

    /// Nothing goes wrong: nothing is held back.
    pub(crate) fn open() -> Arc<Self> {
        Self::new(1, 0)
    }

    /// Waits until the step with that number may begin. It goes by the plan: a step waits for none that comes after it
    /// there, so those of a portion can always be carried out.
    pub(crate) async fn begin(&self, number: usize) {
        let portion = number * (self.faults + 1) / self.steps;
        // It ends with an error only without a sender, and here is one.
        let _ = self.admitted.subscribe().wait_for(|admitted| *admitted >= portion.min(self.faults)).await;
    }

    /// The next portion may begin.
    pub(crate) fn admit(&self) {
        self.admitted.send_modify(|admitted| *admitted += 1);
    }

    /// All may begin: so many faults won't come any more.
    pub(crate) fn admit_all(&self) {
        self.admitted.send_modify(|admitted| *admitted = (*admitted).max(self.faults));
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
    kinds.iter().collect::<BTreeSet<_>>().into_iter().map(|kind| kind.portions()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    #[tokio::test]
    async fn a_portion_of_the_steps_comes_with_each_fault() {
        let gate = Gate::new(9, 2);
        let may_begin = |number| gate.begin(number).now_or_never().is_some();
        assert_eq!([0, 2, 3, 5, 6, 8, 100].map(may_begin), [true, true, false, false, false, false, false]);
        gate.admit();
        assert_eq!([2, 3, 5, 6, 8].map(may_begin), [true, true, true, false, false]);
        gate.admit_all();
        assert_eq!([8, 100].map(may_begin), [true, true]);
        assert!((0..100).all(|number| Gate::open().begin(number).now_or_never().is_some()));
        assert!(gate.over().now_or_never().is_none() && !gate.is_over());
        gate.end();
        assert!(gate.over().now_or_never().is_some() && gate.is_over());
    }
}
