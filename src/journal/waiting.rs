//! An instance's memory of its entries that wait: in which journals they stand, and for what.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::left::BucketSet;
use crate::bucket::Bucket;

/// After how long some of those that wait for the archive try it again.
const ARCHIVE_PAUSE: Duration = Duration::from_secs(3);

/// A memory of all entries that wait.
#[derive(Debug, Default)]
pub(super) struct ParkedEntries(Mutex<WaitingEntries>);

#[derive(Debug, Default)]
struct WaitingEntries {
    /// About how many stand in which journal.
    journals: HashMap<Bucket, usize>,
    /// Buckets that some of them wait for.
    awaited: BucketSet,
    /// Journals in which some wait for nothing but a place among those that come back.
    ready: BTreeSet<Bucket>,
    /// When the archive is tried again, if some wait for that.
    archive_at: Option<Instant>,
    /// The end of the time for which those wait that only bring something there. Others may lack what it has lost, or a
    /// place on one list: it may answer well.
    away_until: Option<Instant>,
}

impl ParkedEntries {
    fn waiting(&self) -> MutexGuard<'_, WaitingEntries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more in this journal, which waits for these buckets.
    pub(super) fn add(&self, journal: Bucket, awaited: &BucketSet) {
        self.put(journal, 1, awaited);
    }

    /// Some wait for the archive. `is_away`: it is what has failed.
    pub(super) fn waits_for_archive(&self, is_away: bool) {
        let (mut waiting, until) = (self.waiting(), Instant::now() + ARCHIVE_PAUSE);
        // Not put off by each: of many that fail one after the other some are always the last.
        waiting.archive_at.get_or_insert(until);
        if is_away {
            waiting.away_until = Some(until);
        }
    }

    pub(super) fn is_archive_away(&self) -> bool {
        self.waiting().away_until.is_some_and(|at| Instant::now() < at)
    }

    /// About how many stand in which journal now.
    pub(super) fn counts(&self) -> HashMap<Bucket, usize> {
        self.waiting().journals.clone()
    }

    /// A look at this journal has found these. `before`: the [counts](Self::counts) of when it began.
    pub(super) fn found(&self, journal: Bucket, before: &HashMap<Bucket, usize>, found: &FoundEntries) {
        let mut waiting = self.waiting();
        let of = |counts: &HashMap<Bucket, usize>| counts.get(&journal).copied().unwrap_or_default();
        let (now, before) = (of(&waiting.journals), of(before));
        // H221: what was put aside since then may not have stood there. Where somebody else counts there are fewer.
        if let Some(since) = now.checked_sub(before) {
            match found.waiting + since {
                0 => drop(waiting.journals.remove(&journal)),
                count => drop(waiting.journals.insert(journal, count)),
            }
        }
        waiting.awaited.extend(&found.awaited);
        if found.is_ready {
            waiting.ready.insert(journal);
        }
    }

    /// Whether a journal of so many entries holds nothing else.
    pub(super) fn is_all(&self, journal: Bucket, entries: u64) -> bool {
        self.waiting().journals.get(&journal).is_some_and(|count| *count as u64 >= entries)
    }

    /// About how many there are.
    pub(super) fn count(&self) -> usize {
        self.waiting().journals.values().sum()
    }

    /// Takes the number of those out that stand in a journal: it is counted anew.
    pub(super) fn take(&self, journal: Bucket) -> usize {
        self.waiting().journals.remove(&journal).unwrap_or_default()
    }

    /// So many of them stand there still, and wait for these buckets.
    pub(super) fn put(&self, journal: Bucket, count: usize, awaited: &BucketSet) {
        if count > 0 {
            let mut waiting = self.waiting();
            *waiting.journals.entry(journal).or_default() += count;
            waiting.awaited.extend(awaited);
        }
    }

    /// Takes out the journals that are due now that some buckets can be reached again. These buckets are awaited no
    /// more: who still waits for them says so again.
    pub(super) fn take_due(&self, is_away: impl Fn(Bucket) -> bool) -> DueJournals {
        let mut waiting = self.waiting();
        let (away, back): (Vec<Bucket>, Vec<Bucket>) =
            waiting.awaited.iter().partition(|bucket| is_away(*bucket));
        let mut journals = std::mem::take(&mut waiting.ready);
        let now = Instant::now();
        let tries_archive = waiting.archive_at.take_if(|at| now >= *at).is_some();
        if tries_archive {
            // Who only brings something there is passed over until then, and nobody else may wait for it.
            waiting.archive_at = waiting.away_until.filter(|until| now < *until);
        }
        if !back.is_empty() || tries_archive {
            waiting.awaited = away.into_iter().collect();
            journals.extend(waiting.journals.keys().copied());
        }
        DueJournals { journals, back: back.into_iter().collect() }
    }
}

/// Journals that are to be looked through, because some of what is awaited is back.
pub(super) struct DueJournals {
    pub(super) journals: BTreeSet<Bucket>,
    pub(super) back: BucketSet,
}

/// Entries of ours that a look at a journal has found, and nobody here runs.
#[derive(Debug, Default)]
pub(super) struct FoundEntries {
    pub(super) waiting: usize,
    pub(super) awaited: BucketSet,
    pub(super) is_ready: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(buckets: &[u16]) -> BucketSet {
        buckets.iter().map(|bucket| Bucket(*bucket)).collect()
    }

    #[test]
    fn journals_are_looked_through_once_somebody_is_back() {
        let parked = ParkedEntries::default();
        assert!(parked.take_due(|_| false).journals.is_empty());
        parked.add(Bucket(1), &set(&[8, 9]));
        parked.add(Bucket(1), &set(&[9]));
        parked.add(Bucket(2), &set(&[4]));
        assert_eq!(parked.count(), 3);
        assert!(parked.is_all(Bucket(1), 2) && !parked.is_all(Bucket(1), 3) && !parked.is_all(Bucket(3), 0));
        assert!(parked.take_due(|_| true).journals.is_empty());
        let due = parked.take_due(|bucket| bucket.index() > 5);
        assert_eq!(Vec::from_iter(due.journals), [Bucket(1), Bucket(2)]);
        assert_eq!(due.back, set(&[4]));
        // Once.
        assert!(parked.take_due(|bucket| bucket.index() > 5).journals.is_empty());
        assert_eq!(parked.take(Bucket(1)), 2);
        // Put aside again meanwhile: that counts, too.
        parked.add(Bucket(1), &set(&[4]));
        parked.put(Bucket(1), 1, &set(&[8]));
        assert_eq!(parked.count(), 3);
        assert_eq!(parked.take_due(|_| false).back, set(&[4, 8, 9]));
    }

    /// A late failure had its entries passed over by the look that an earlier one had asked for, and no other came.
    #[tokio::test(start_paused = true)]
    async fn who_waits_for_the_archive_is_looked_at_once_it_may_be_there() {
        let (parked, journal) = (ParkedEntries::default(), Bucket(1));
        let is_looked_at = || !parked.take_due(|_| false).journals.is_empty();
        parked.put(journal, 2, &BucketSet::default());
        parked.waits_for_archive(true);
        tokio::time::advance(ARCHIVE_PAUSE - Duration::from_millis(500)).await;
        parked.waits_for_archive(true);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(is_looked_at() && parked.is_archive_away() && !is_looked_at());
        tokio::time::advance(ARCHIVE_PAUSE).await;
        assert!(!parked.is_archive_away() && is_looked_at());
        // One list that takes no more keeps nobody else from the archive.
        parked.waits_for_archive(false);
        assert!(!parked.is_archive_away());
        tokio::time::advance(ARCHIVE_PAUSE).await;
        assert!(is_looked_at());
    }

    #[test]
    fn a_look_doesnt_forget_what_was_put_aside_since_it_began() {
        let parked = ParkedEntries::default();
        parked.add(Bucket(1), &set(&[8]));
        let before = parked.counts();
        parked.add(Bucket(1), &set(&[8]));
        parked.add(Bucket(2), &set(&[8]));
        // H221: when this look began one stood in the first journal, and none in the second.
        let one = FoundEntries { waiting: 1, awaited: set(&[8]), is_ready: false };
        parked.found(Bucket(1), &before, &one);
        parked.found(Bucket(2), &before, &FoundEntries::default());
        assert_eq!(parked.counts(), [(Bucket(1), 2), (Bucket(2), 1)].into());
        assert_eq!(Vec::from_iter(parked.take_due(|_| false).journals), [Bucket(1), Bucket(2)]);
    }

    #[test]
    fn what_is_found_beside_is_waited_for() {
        let parked = ParkedEntries::default();
        let nothing = parked.counts();
        parked.found(Bucket(1), &nothing, &FoundEntries { waiting: 1, awaited: set(&[8]), is_ready: false });
        assert!(parked.take_due(|_| true).journals.is_empty());
        assert_eq!(Vec::from_iter(parked.take_due(|_| false).journals), [Bucket(1)]);
        // It waits for nothing but a place.
        parked.found(Bucket(3), &nothing, &FoundEntries { waiting: 1, awaited: set(&[]), is_ready: true });
        assert_eq!(Vec::from_iter(parked.take_due(|_| true).journals), [Bucket(3)]);
        // Somebody else counts.
        let before = parked.counts();
        assert_eq!((parked.take(Bucket(1)), parked.take(Bucket(3))), (1, 1));
        parked.found(Bucket(3), &before, &FoundEntries { waiting: 1, awaited: set(&[]), is_ready: true });
        assert_eq!(parked.count(), 0);
        assert_eq!(Vec::from_iter(parked.take_due(|_| true).journals), [Bucket(3)]);
    }
}
