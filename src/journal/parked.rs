//! Entries that wait for servers that are away, or for slots whose move goes on. Such an entry is what stands in its
//! journal, with what is done, and nothing here: neither a place among the tasks nor memory. Of all of them together is
//! remembered in which journals they stand, and for which buckets they wait; when one of these can be reached again,
//! they are found and run, a few at a time. So are those that wait for the archive, which some of them try now
//! and then.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;

use super::Journal;
use super::beside::Recurring;
use super::checkpoint::write_checkpoint;
use super::entry::JournalEntry;
use super::executor::resume;
use super::left::{AcknowledgedBuckets, BucketSet, checkpoint_of, left_by};
use super::scan::entries;
use super::tasks::{ReservedPlaces, reserve};
use super::waiting::{DueJournals, FoundEntries};
use crate::bucket::Bucket;
use crate::cluster::impatiently;
use crate::error::{Error, ErrorCode, ErrorKind};
use crate::meters;
use crate::tenant::Tenant;

/// The number of looks within a scan's period at whether somebody is back.
const LOOKS_PER_SCAN: u32 = 8;
/// The pause between two looks at whether there is room again for what comes back.
const ROOM_PAUSE: Duration = Duration::from_millis(100);
/// The pause before a task that is held up looks again whether it may go on.
const HELD_UP_PAUSE: Duration = Duration::from_secs(1);

fn is_away(tenant: &Tenant, bucket: Bucket) -> bool {
    tenant.router().is_away(tenant.keys().buckets().slot(bucket))
}

fn is_held_up(tenant: &Tenant, bucket: Bucket) -> bool {
    tenant.router().is_held_up(tenant.keys().buckets().slot(bucket))
}

/// Whether its server is away, or its keys are on both sides of a move.
fn is_out_of_reach(tenant: &Tenant, bucket: Bucket) -> bool {
    is_away(tenant, bucket) || tenant.router().is_half_moved(tenant.keys().buckets().slot(bucket))
}

/// The buckets without which an entry can't go on now, as far as it says. Where some of what a round has left can be
/// reached, or fenced, it can.
fn missing(tenant: &Tenant, entry: &JournalEntry) -> BucketSet {
    let Some((mut left, unfenced)) = left_by(&entry.checkpoint) else {
        // There it changes nothing.
        let is_missing = match entry.task.kind().waits_for_named() {
            true => is_out_of_reach,
            false => is_held_up,
        };
        let needed = entry.task.needs(tenant.keys().buckets()).into_iter();
        return needed.filter(|bucket| is_missing(tenant, *bucket)).collect();
    };
    unfenced.iter().for_each(|(_, buckets)| left.extend(buckets));
    entry.unfenced.iter().for_each(|(_, buckets)| left.extend(buckets));
    if left.iter().all(|bucket| is_held_up(tenant, bucket)) { left } else { BucketSet::default() }
}

impl FoundEntries {
    /// Adds one if it waits for a server that is away, a slot, or the archive. Else it can be run.
    pub(super) fn waits(&mut self, journal: &Journal, entry: &JournalEntry) -> bool {
        let missing = missing(&journal.tenant, entry);
        let waits = !missing.is_empty() || waits_for_archive(journal, entry);
        self.waiting += usize::from(waits);
        self.awaited.extend(&missing);
        waits
    }

    /// Adds one that waits for nothing but a place.
    pub(super) fn waits_for_room(&mut self) {
        self.waiting += 1;
        self.is_ready = true;
    }
}

/// Whether it waits for the archive, which some have found away a moment ago.
fn waits_for_archive(journal: &Journal, entry: &JournalEntry) -> bool {
    entry.task.kind().needs_archive() && journal.tasks.parked.is_archive_away()
}

/// Puts an entry aside whose run has failed, if a server is away: what is done stands in its journal.
pub(super) async fn park(journal: &Journal, entry: &mut JournalEntry, why: &Error) -> bool {
    let tenant = &journal.tenant;
    if journal.tasks.is_stopping() {
        return false;
    }
    let mut awaited = missing(tenant, entry);
    // That somebody was faster has nothing to do with who is away.
    let may_wait = !entry.task.kind().waits_for_named() && why.kind() != ErrorKind::Conflict;
    let is_archive = why.code() == ErrorCode::ArchiveAway;
    if is_archive {
        journal.tasks.parked.waits_for_archive(entry.task.kind().needs_archive());
    } else if awaited.is_empty() && may_wait {
        // It doesn't say all that it needs.
        awaited = tenant.keys().buckets().all().filter(|bucket| is_held_up(tenant, *bucket)).collect();
    }
    if awaited.is_empty() && !is_archive {
        return false;
    }
    if let Some((left, _)) = left_by(&entry.checkpoint) {
        let named = |(epoch, buckets): &AcknowledgedBuckets| (epoch.name(), buckets.clone());
        // H114: whoever goes on must know what was acknowledged and nobody vouches for.
        let unfenced: Vec<_> = entry.unfenced.iter().map(named).collect();
        if let Err(e) = write_checkpoint(tenant, entry, &checkpoint_of(&left, &unfenced)).await {
            tracing::debug!("what {:?} has left could not be written: {e}", entry.task);
            return false;
        }
    }
    journal.tasks.park(entry, &awaited);
    true
}

/// An entry that could not be put aside, because its own journal's server is away: it takes no place, and waits for
/// that server.
pub(super) async fn wait_if_held_up(journal: &Journal, entry: &JournalEntry) {
    while !journal.tasks.is_stopping() && is_away(&journal.tenant, entry.bucket) {
        journal.tasks.shelve((entry.bucket, entry.id));
        journal.tasks.pause(HELD_UP_PAUSE).await;
    }
}

/// Questions to servers that could not be fenced, or are silent, whether that is over. Apart from what resumes: that
/// may wait for places of tasks which wait for such a fence.
#[derive(Debug)]
pub(crate) struct AwayServerQuestions;

impl Recurring for AwayServerQuestions {
    type Owner = Journal;

    fn pause(&mut self, journal: &Journal) -> Duration {
        journal.tenant.settings.scan_period / LOOKS_PER_SCAN
    }

    async fn round(&mut self, journal: &Arc<Journal>) {
        // Also while nothing waits: until one of them succeeds nobody else tries.
        journal.tenant.router().fence_again_who_could_not();
        if journal.tasks.parked.count() > 0 {
            journal.tenant.router().probe_silent();
        }
    }
}

/// Looks for what was put aside and can be run again.
#[derive(Debug, Default)]
pub(crate) struct ParkedTaskLooks {
    /// How many there were at the last look.
    before: usize,
}

impl Recurring for ParkedTaskLooks {
    type Owner = Journal;

    fn pause(&mut self, journal: &Journal) -> Duration {
        journal.tenant.settings.scan_period / LOOKS_PER_SCAN
    }

    async fn round(&mut self, journal: &Arc<Journal>) {
        let count = journal.tasks.parked.count();
        tell(self.before, count);
        self.before = count;
        if count > 0 {
            journal.tasks.forget_unwatched();
            let due = journal.tasks.parked.take_due(|bucket| is_held_up(&journal.tenant, bucket));
            impatiently(look_through(journal, &due)).await;
        }
    }
}

fn tell(before: usize, count: usize) {
    if before != count {
        meters::tasks_parked(count);
    }
    if before == 0 && count > 0 {
        tracing::warn!(
            "servers are away (silent, out of memory, or without the replicas that they should have), or the archive \
             is, or slots stand half-way between two: {count} tasks that need them wait in their journals; all else \
             goes on"
        );
    } else if before > 0 && count == 0 {
        tracing::info!("no task waits any more for a server that is away, or a slot");
    }
}

/// Runs the entries that stand in journals and wait for nothing any more. It ends where a server is away again that was
/// back: one out of memory is asked with a few of them, not with all.
async fn look_through(journal: &Arc<Journal>, due: &DueJournals) {
    let tenant = &journal.tenant;
    let parked = &journal.tasks.parked;
    for bucket in &due.journals {
        // Before the journal is read: what is put aside meanwhile is counted beside.
        let before = parked.take(*bucket);
        // H111: before it is read, too: what is put aside after that isn't lost because it was not found.
        let watched = journal.tasks.watched();
        let found = match is_away(tenant, *bucket) {
            true => None,
            false => entries(journal, *bucket).await.ok(),
        };
        let Some(found) = found else {
            parked.put(*bucket, before.max(1), &[*bucket].into_iter().collect());
            continue;
        };
        let of_it = watched.iter().filter(|(of, _)| of == bucket);
        journal.tasks.forget_lost(of_it, &found, tenant.instance);
        let (mut left, mut awaited) = (0, BucketSet::default());
        for entry in found {
            if entry.owner != tenant.instance || journal.tasks.knows(*bucket, entry.id) {
                continue;
            }
            if waits_for_archive(journal, &entry) {
                left += 1;
                continue;
            }
            let missing = missing(tenant, &entry);
            if missing.is_empty() {
                let Some((permit, _place)) = room(journal).await else { return };
                meters::task_recovered("parked");
                resume(journal, &entry, Some(permit));
                continue;
            }
            if missing.iter().any(|away| due.back.contains(away)) {
                return parked.put(*bucket, before.max(1), &due.back);
            }
            left += 1;
            awaited.extend(&missing);
        }
        parked.put(*bucket, left, &awaited);
    }
}

/// Waits until there is room for one more that comes back; `None`: this instance is stopping.
async fn room(journal: &Journal) -> Option<(OwnedSemaphorePermit, ReservedPlaces<'_>)> {
    // Before the place: what waits for its turn must not take one from users' own tasks.
    let permit = journal.tasks.resuming.clone().acquire_owned().await.ok()?;
    loop {
        if let Ok(place) = reserve(journal, 1) {
            return Some((permit, place));
        }
        if journal.tasks.is_stopping() {
            return None;
        }
        journal.tasks.pause(ROOM_PAUSE).await;
    }
}
