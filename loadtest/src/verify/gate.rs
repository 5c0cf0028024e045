//! What lets work and faults meet: the steps of a round come in portions, one more with each fault that the round has to have.
//! By the clock a fast machine was done before anything went wrong.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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
    begun: AtomicU64,
    ended: AtomicU64,
}

/// A moment in a round's work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    begun: u64,
    ended: u64,
}

/// A step that is under way; over when it is dropped.
#[derive(Debug)]
pub(crate) struct UnderWay(Arc<Gate>);

impl Gate {
    pub(crate) fn new(steps: usize, faults: usize) -> Arc<Self> {
        Arc::new(Self {
            steps,
            faults,
            admitted: watch::Sender::new(0),
            is_over: watch::Sender::new(false),
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
        })
    }

    /// Nothing goes wrong: nothing is held back.
    pub(crate) fn open() -> Arc<Self> {
        Self::new(1, 0)
    }

    /// Waits until the step with that number may begin. It goes by the plan: a step waits for none that comes after it there, so
    /// those of a portion can always be carried out.
    pub(crate) async fn begin(self: &Arc<Self>, number: usize) -> UnderWay {
        let portion = number * (self.faults + 1) / self.steps;
        // It ends with an error only without a sender, and here is one.
        let _ = self.admitted.subscribe().wait_for(|admitted| *admitted >= portion.min(self.faults)).await;
        self.begun.fetch_add(1, Ordering::Relaxed);
        UnderWay(self.clone())
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

    pub(crate) fn now(&self) -> Moment {
        // What has ended first: a step that ends in between counts as under way.
        let ended = self.ended.load(Ordering::Relaxed);
        Moment { begun: self.begun.load(Ordering::Relaxed), ended }
    }

    /// Whether a step was under way at that moment, or has begun since.
    pub(crate) fn was_at_work(&self, since: Moment) -> bool {
        since.begun > since.ended || self.now().begun > since.begun
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Relaxed);
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
    }

    #[tokio::test]
    async fn a_fault_has_met_what_was_under_way_or_began_later() {
        let gate = Gate::open();
        let before = gate.now();
        assert!(!gate.was_at_work(before));
        let step = gate.begin(0).await;
        assert!(gate.was_at_work(before) && gate.was_at_work(gate.now()));
        drop(step);
        assert!(gate.was_at_work(before) && !gate.was_at_work(gate.now()));
        assert!(gate.over().now_or_never().is_none());
        gate.end();
        gate.over().await;
    }
}
