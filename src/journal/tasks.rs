//! The work that an instance has to do: a bound on it, and what waits apart from it.

use std::collections::HashMap;
use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, watch};

use super::Journal;
use super::entry::JournalEntry;
use super::job::{Pool, Task};
use super::lease::Lease;
use super::left::BucketSet;
use super::progress::{Delivery, Reporter};
use super::riders::{self, Riders};
use super::waiting::ParkedEntries;
use crate::bucket::Bucket;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::AccountId;
use crate::nonce::Nonce;

/// Fan-outs over all buckets at once; each of them keeps every node busy.
const LARGE_AT_ONCE: usize = 4;
/// Changes of mode and burials at once: nobody waits for one, and posts don't wait behind them.
const SLOW_AT_ONCE: usize = 4;
/// Tasks for the archive at once: two calls' worth, for they go together.
const ARCHIVE_AT_ONCE: usize = 128;
/// The pause before a task that makes others looks again whether there is room.
const ROOM_PAUSE: Duration = Duration::from_millis(20);

/// Tasks of this instance.
#[derive(Debug)]
pub(crate) struct Tasks {
    known: Mutex<KnownEntries>,
    most: usize,
    small: Semaphore,
    large: Semaphore,
    slow: Semaphore,
    archive: Semaphore,
    /// Entries that were put aside come back a few at a time, so that they leave room for fresh ones.
    pub(super) resuming: Arc<Semaphore>,
    pub(super) lease: Lease,
    /// Entries of ours that wait for servers that are away.
    pub(super) parked: ParkedEntries,
    /// What goes along with deliveries.
    pub(crate) riders: Riders,
    /// Nothing new is begun any more.
    pub(super) is_stopping: watch::Sender<bool>,
    /// Whoever does something beside the calls has a receiver.
    pub(super) beside: watch::Sender<()>,
    has_ended: Notify,
}

/// Entries that wait or are under way here, and places for those that are about to be accepted.
///
/// What an entry that is under way leaves to do itself (a pair that turns a request into a follow) needs no place: it
/// ends right after.
#[derive(Debug, Default)]
struct KnownEntries {
    entries: HashMap<EntryKey, HeldEntry>,
    reserved: usize,
    /// Places that are taken or reserved, by who added what takes them; and who is about to add something.
    of: HashMap<AccountId, usize>,
    adding: HashMap<AccountId, usize>,
    /// Entries that take no place: their journals' server is away, so what they have done can't be written there. No
    /// more of these come once it is, for nothing can be accepted there.
    shelved: usize,
    /// Whom to tell how far entries are that were put aside, as long as somebody wants to know; and whether what is
    /// done of them lacks replicas.
    watched: HashMap<EntryKey, (Reporter, bool)>,
}

/// A journal's bucket, and an entry in it.
pub(super) type EntryKey = (Bucket, Nonce);

#[derive(Debug)]
struct HeldEntry {
    task: Task,
    reporter: Reporter,
    is_shelved: bool,
    /// Whose place it takes, if whoever left it has added something.
    of: Option<AccountId>,
}

impl KnownEntries {
    fn taken(&self) -> usize {
        self.entries.len() - self.shelved
    }

    fn remove(&mut self, key: EntryKey) -> Option<HeldEntry> {
        let held = self.entries.remove(&key)?;
        match held.is_shelved {
            true => self.shelved -= 1,
            false => self.give_back(held.of, 1),
        }
        Some(held)
    }

    fn give_back(&mut self, of: Option<AccountId>, places: usize) {
        of.into_iter().for_each(|account| subtract(&mut self.of, account, places));
    }
}

/// Places among the tasks, taken before a write is accepted; given back when it is dropped, by when the tasks that they
/// were for are known.
#[derive(Debug)]
pub(crate) struct ReservedPlaces<'a> {
    tasks: &'a Tasks,
    places: usize,
    /// Who adds something, if anybody does.
    whose: Option<AccountId>,
}

impl Drop for ReservedPlaces<'_> {
    fn drop(&mut self) {
        let mut known = self.tasks.known();
        known.reserved -= self.places;
        known.give_back(self.whose, self.places);
        self.whose.into_iter().for_each(|account| subtract(&mut known.adding, account, 1));
    }
}

/// Takes so many off an account's count; whoever has none needs no count.
fn subtract(counts: &mut HashMap<AccountId, usize>, account: AccountId, many: usize) {
    if let Occupied(mut count) = counts.entry(account) {
        *count.get_mut() -= many.min(*count.get());
        if *count.get() == 0 {
            count.remove();
        }
    }
}

impl Tasks {
    pub(crate) fn new(settings: &crate::settings::EngineSettings) -> Self {
        Self {
            known: Mutex::default(),
            most: settings.tasks_max,
            small: Semaphore::new(settings.tasks_at_once),
            large: Semaphore::new(LARGE_AT_ONCE),
            slow: Semaphore::new(SLOW_AT_ONCE),
            archive: Semaphore::new(ARCHIVE_AT_ONCE),
            resuming: Arc::new(Semaphore::new(settings.tasks_at_once.div_ceil(2))),
            parked: ParkedEntries::default(),
            lease: Lease::default(),
            riders: Riders::default(),
            is_stopping: watch::Sender::new(false),
            beside: watch::Sender::default(),
            has_ended: Notify::new(),
        }
    }

    fn known(&self) -> MutexGuard<'_, KnownEntries> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reserve(&self, places: usize, whose: Option<AccountId>) -> Result<ReservedPlaces<'_>> {
        if self.is_stopping() {
            return Err(Error::unavailable("this instance is shutting down, or has given way to an import"));
        }
        let mut known = self.known();
        let taken = known.taken() + known.reserved;
        if taken + places > self.most {
            return Err(Error::new(
                ErrorKind::Overloaded,
                format!(
                    "{taken} of {} places for fan-outs and other tasks are taken in this instance (tasks_max); slow \
                     down",
                    self.most
                ),
            ));
        }
        let whose = whose.filter(|_| places > 0);
        if let Some(account) = whose {
            let of = known.of.get(&account).copied().unwrap_or(0);
            // H161: nobody has more of them than are free for all others.
            if of + places > self.most - taken {
                let text = format!(
                    "account {account} has {of} of {} places for fan-outs and other tasks in this instance \
                     (tasks_max), and {} are free. One account may take no more than are free for all others: \
                     try again when some of its tasks are done",
                    self.most,
                    self.most - taken
                );
                return Err(Error::new(ErrorKind::Overloaded, text));
            }
            *known.of.entry(account).or_default() += places;
            *known.adding.entry(account).or_default() += 1;
        }
        known.reserved += places;
        Ok(ReservedPlaces { tasks: self, places, whose })
    }

    /// An entry is being run from now on; an error: it is already, and that tells how far it is. Of one that was put
    /// aside here, and is watched, also tells whether what is done of it lacks replicas.
    pub(super) fn begin(&self, key: EntryKey, task: Task) -> Result<(Reporter, Option<bool>), Delivery> {
        let mut known = self.known();
        let watched = known.watched.remove(&key);
        // Of a block's task the actor is who was blocked, and has added nothing.
        let whose = Some(task.actor()).filter(|actor| known.adding.contains_key(actor));
        let KnownEntries { entries, of, .. } = &mut *known;
        match entries.entry(key) {
            Occupied(held) => Err(held.get().reporter.follow()),
            Vacant(place) => {
                whose.into_iter().for_each(|account| *of.entry(account).or_default() += 1);
                let (reporter, lacks_replicas) = watched
                    .map_or_else(|| (Reporter::new(), None), |(reporter, lacks)| (reporter, Some(lacks)));
                reporter.held_up(false);
                place.insert(HeldEntry { task, reporter: reporter.clone(), is_shelved: false, of: whose });
                Ok((reporter, lacks_replicas))
            }
        }
    }

    /// An entry needs no more attention here.
    pub(super) fn end(&self, key: EntryKey) {
        self.known().remove(key);
        self.has_ended.notify_waiters();
    }

    /// An entry waits in its journal for these buckets.
    pub(super) fn park(&self, entry: &JournalEntry, awaited: &BucketSet) {
        let key = (entry.bucket, entry.id);
        let mut known = self.known();
        if let Some(held) = known.remove(key)
            && held.reporter.is_watched()
        {
            held.reporter.held_up(true);
            known.watched.insert(key, (held.reporter, entry.lacks_replicas));
        }
        drop(known);
        // Only now: who looks for what is parked would pass by an entry that is known.
        self.parked.add(entry.bucket, awaited);
        self.has_ended.notify_waiters();
    }

    /// An entry can't be put aside though a server is away: it takes no place any more.
    pub(super) fn shelve(&self, key: EntryKey) {
        let mut known = self.known();
        let Some(held) = known.entries.get_mut(&key) else { return };
        if !std::mem::replace(&mut held.is_shelved, true) {
            let of = held.of;
            known.shelved += 1;
            known.give_back(of, 1);
        }
    }

    /// Forgets whom nobody asks about any more.
    pub(super) fn forget_unwatched(&self) {
        self.known().watched.retain(|_, (reporter, _)| reporter.is_watched());
    }

    /// Entries that were put aside here, and are watched.
    pub(super) fn watched(&self) -> Vec<EntryKey> {
        self.known().watched.keys().copied().collect()
    }

    /// Tells those who wait for one of these entries that it is ours no more: it does not stand among those that were
    /// found in its journal since, or another instance has taken it over (H111).
    pub(super) fn forget_lost<'k>(
        &self,
        watched: impl Iterator<Item = &'k EntryKey>,
        found: &[JournalEntry],
        instance: Nonce,
    ) {
        let is_ours = |key: &EntryKey| found.iter().any(|entry| entry.id == key.1 && entry.owner == instance);
        let mut known = self.known();
        for lost in watched.filter(|key| !is_ours(key)) {
            known.watched.remove(lost);
        }
    }

    /// The number of tasks that are left if this instance ends now.
    pub(crate) fn left(&self) -> usize {
        self.len() + self.parked.count()
    }

    /// The number of tasks that wait or are under way.
    pub(crate) fn len(&self) -> usize {
        self.known().entries.len()
    }

    pub(crate) fn knows(&self, bucket: Bucket, id: Nonce) -> bool {
        self.known().entries.contains_key(&(bucket, id))
    }

    /// The progress of a task, if such a one is being run here.
    pub(crate) fn running(&self, is_it: impl Fn(&Task) -> bool) -> Option<Delivery> {
        let known = self.known();
        known.entries.values().find(|held| is_it(&held.task)).map(|held| held.reporter.follow())
    }

    pub(super) fn permits(&self, pool: Pool) -> &Semaphore {
        match pool {
            Pool::Small => &self.small,
            Pool::Large => &self.large,
            Pool::Slow => &self.slow,
            Pool::Archive => &self.archive,
        }
    }

    /// Instances that serve the tenant, as far as this one knows; this one among them.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(crate) fn instances(&self) -> f64 {
        self.lease.instances() as f64
    }

    pub(crate) fn is_stopping(&self) -> bool {
        *self.is_stopping.borrow()
    }

    /// From now on nothing new is begun, and what fails is left to others.
    pub(crate) fn stop(&self) {
        self.is_stopping.send_replace(true);
        // What waits in a journal now is run by others.
        self.known().watched.clear();
        self.has_ended.notify_waiters();
    }

    /// Sleeps for so long, or until nothing new is to be begun.
    pub(super) async fn pause(&self, time: Duration) {
        let mut stopping = self.is_stopping.subscribe();
        let _ = tokio::time::timeout(time, stopping.wait_for(|is_stopping| *is_stopping)).await;
    }

    /// Waits while so much is under way that whoever makes more should pause.
    pub(crate) async fn room(&self) {
        while self.known().taken() * 2 > self.most && !self.is_stopping() {
            self.pause(ROOM_PAUSE).await;
        }
    }

    /// Waits until nothing is under way.
    pub(crate) async fn ended(&self, journal: &Arc<Journal>) {
        loop {
            let ended = self.has_ended.notified();
            if self.len() == 0 {
                return;
            }
            riders::send_all(journal);
            // Another look now and then: a task that ended between the look and the wait has notified nobody.
            let _ = tokio::time::timeout(Duration::from_millis(50), ended).await;
        }
    }
}

/// Makes sure that there is room for so many tasks before a write that leaves them is accepted. For whoever adds
/// something [`reserve_for`] does.
pub(crate) fn reserve(journal: &Journal, places: usize) -> Result<ReservedPlaces<'_>> {
    journal.tasks.reserve(places, None)
}

/// Makes sure that there is room for so many tasks of somebody who adds something, of whom there may be too much
/// already.
pub(crate) fn reserve_for(
    journal: &Journal,
    account: AccountId,
    places: usize,
) -> Result<ReservedPlaces<'_>> {
    journal.tasks.reserve(places, Some(account))
}
