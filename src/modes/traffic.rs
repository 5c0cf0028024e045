//! How often authors are pulled, and how often anybody reads, as this instance sees it: counted in memory, taken away once a
//! minute.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::ids::{AccountId, IdMap};

/// Authors whose pulls are counted between two looks; more of them wait for the next.
const AUTHORS_MAX: usize = 10_000;
/// Reads of one reader a day, until a day has been seen: people come back about so often.
const READS_GUESSED: f64 = 20.0;
/// Readers that a day's figure must come from.
const READERS_LEAST: u64 = 100;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What this instance has seen.
#[derive(Debug)]
pub(crate) struct Traffic {
    since: Instant,
    pulls: Mutex<IdMap<AccountId, u64>>,
    reads: AtomicU64,
    /// Reads here that were a reader's first of a day.
    first_reads: AtomicU64,
}

impl Default for Traffic {
    fn default() -> Self {
        Self {
            since: Instant::now(),
            pulls: Mutex::default(),
            reads: AtomicU64::new(0),
            first_reads: AtomicU64::new(0),
        }
    }
}

impl Traffic {
    fn pulls(&self) -> MutexGuard<'_, IdMap<AccountId, u64>> {
        self.pulls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A home was read, and these authors were pulled for it.
    pub(crate) fn read(&self, pulled: impl Iterator<Item = AccountId>) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let mut pulled = pulled.peekable();
        if pulled.peek().is_none() {
            return;
        }
        let mut pulls = self.pulls();
        for author in pulled {
            if let Some(count) = pulls.get_mut(&author) {
                *count += 1;
            } else if pulls.len() < AUTHORS_MAX {
                pulls.insert(author, 1);
            }
        }
    }

    /// A reader's first read of a day was noted.
    pub(crate) fn first_read(&self) {
        self.first_reads.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes what was counted since the last time.
    pub(crate) fn take_pulls(&self) -> Vec<(AccountId, u64)> {
        std::mem::take(&mut *self.pulls()).into_iter().collect()
    }

    /// How often somebody who reads at all reads on a day.
    pub(crate) fn reads_per_reader(&self) -> f64 {
        self.reads_per_reader_in(self.since.elapsed())
    }

    /// A count of less than a day is no rate of a day: an instance that has just started would take everybody for somebody
    /// who hardly ever reads, and have all who post pulled.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn reads_per_reader_in(&self, seen: Duration) -> f64 {
        let readers = self.first_reads.load(Ordering::Relaxed);
        if readers < READERS_LEAST || seen < DAY {
            return READS_GUESSED;
        }
        self.reads.load(Ordering::Relaxed) as f64 / readers as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pulls_are_counted_and_taken_once() {
        let traffic = Traffic::default();
        let of = |id| AccountId::new(id).unwrap();
        traffic.read([of(1), of(2)].into_iter());
        traffic.read([of(2)].into_iter());
        let mut taken = traffic.take_pulls();
        taken.sort_unstable();
        assert_eq!(taken, [(of(1), 1), (of(2), 2)]);
        assert!(traffic.take_pulls().is_empty());
    }

    #[test]
    fn the_figure_of_few_readers_is_not_believed() {
        let traffic = Traffic::default();
        let read = || traffic.read(std::iter::empty());
        (0..300).for_each(|_| read());
        assert!((traffic.reads_per_reader_in(DAY) - READS_GUESSED).abs() < 1e-9);
        (0..100).for_each(|_| traffic.first_read());
        assert!((traffic.reads_per_reader_in(DAY) - 3.0).abs() < 1e-9);
    }

    /// An instance in its first minutes has seen each reader once or twice, while posts were already reckoned up to a day: the
    /// cost model took everybody for read too seldom to be pushed.
    #[test]
    fn the_figure_of_less_than_a_day_is_not_believed() {
        let traffic = Traffic::default();
        (0..100).for_each(|_| traffic.first_read());
        (0..150).for_each(|_| traffic.read(std::iter::empty()));
        assert!((traffic.reads_per_reader() - READS_GUESSED).abs() < 1e-9);
    }
}
