//! Counts of how often authors are pulled, and how often anybody reads, as this instance sees it: kept in memory, taken
//! away once a minute.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::ids::{AccountId, IdMap};

/// Authors whose pulls are counted between two looks; more of them wait for the next.
const AUTHORS_MAX: usize = 10_000;
/// Reads of one reader a day, until a whole day has been seen: people come back about so often.
const READS_GUESSED: f64 = 20.0;
/// Readers that a day's figure must come from.
const READERS_LEAST: u64 = 100;

/// Traffic that this instance has seen.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pulls: Mutex<IdMap<AccountId, u64>>,
    /// Since the day began, or this instance did.
    reads: AtomicU64,
    /// Of these, reads that were a reader's first of the day.
    first_reads: AtomicU64,
    days: Mutex<WholeDays>,
}

/// Counts of whole days.
#[derive(Debug, Default)]
struct WholeDays {
    /// The day that is being counted.
    counted: Option<u32>,
    /// The one in which this instance began: a part of it is missing.
    first: Option<u32>,
    /// Reads of a reader, on the last whole day with enough of them.
    reads_per_reader: Option<f64>,
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

    /// It is this day: what was counted of the one before is its figure, if all of it was seen.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(crate) fn turn(&self, today: u32) {
        let mut days = self.days.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(counted) = days.counted.replace(today).filter(|day| *day != today) else {
            days.first = days.first.or(Some(today));
            return;
        };
        let (reads, readers) =
            (self.reads.swap(0, Ordering::Relaxed), self.first_reads.swap(0, Ordering::Relaxed));
        if days.first != Some(counted) && readers >= READERS_LEAST {
            days.reads_per_reader = Some(reads as f64 / readers as f64);
        }
    }

    /// The number of times that somebody who reads at all reads on a day.
    pub(crate) fn reads_per_reader(&self) -> f64 {
        let days = self.days.lock().unwrap_or_else(PoisonError::into_inner);
        days.reads_per_reader.unwrap_or(READS_GUESSED)
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
    fn only_whole_days_with_enough_readers_are_believed() {
        let traffic = Traffic::default();
        let day = |reads: u64, readers: u64, next| {
            (0..reads).for_each(|_| traffic.read(std::iter::empty()));
            (0..readers).for_each(|_| traffic.first_read());
            traffic.turn(next);
            traffic.reads_per_reader()
        };
        let guessed = |figure: f64| (figure - READS_GUESSED).abs() < 1e-9;
        traffic.turn(7);
        assert!(guessed(day(100, 100, 7)), "the day isn't over");
        assert!(guessed(day(100, 100, 8)), "of the first day a part was missed");
        assert!(guessed(day(990, 99, 9)), "too few readers");
        assert!((day(300, 100, 10) - 3.0).abs() < 1e-9);
        assert!((day(990, 99, 11) - 3.0).abs() < 1e-9, "the last good figure stays");
    }
}
