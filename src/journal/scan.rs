//! Searching the journals for work that somebody left: an instance that died, or a write of ours whose reply was lost.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::Journal;
use super::beside::Recurring;
use super::entry::JournalEntry;
use super::executor::{accept, resume};
use super::lease::living_or_before;
use super::riders;
use super::tasks::reserve;
use super::waiting::FoundEntries;
use crate::bucket::{Bucket, mix64};
use crate::cluster::{Answer, Command, Request, impatiently};
use crate::error::{Error, Result};
use crate::functions;
use crate::meters;
use crate::nonce::Nonce;
use crate::tenant::{Scan, Tenant};

/// Entries asked for at once.
const SCAN_COUNT: u32 = 256;
/// Every so many scans an instance looks at all buckets: its own entries may stand anywhere.
const ALL_EVERY: u64 = 8;
/// The number of scans after which what the dead have left in a bucket that another instance searches is taken: that
/// one may be of an older release, which can't read it (H284), or find no room.
const LEFT_AFTER: u64 = 4 * ALL_EVERY;
/// The pause between two looks at whether journals are empty.
const DRAINED_PAUSE: Duration = Duration::from_millis(20);

/// Scans of the journals.
#[derive(Debug, Default)]
pub(crate) struct JournalScans {
    count: u64,
    absent: AbsentOwners,
}

/// Since which scan owners of entries have been seen without a lease: in buckets that this instance searches, and in
/// those of others.
#[derive(Debug, Default)]
struct AbsentOwners(HashMap<(Nonce, Searcher), u64>);

/// The searcher of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Searcher {
    Us,
    Another,
}

impl Recurring for JournalScans {
    type Owner = Journal;

    fn pause(&mut self, journal: &Journal) -> Duration {
        journal.tenant.settings.scan_period
    }

    async fn round(&mut self, journal: &Arc<Journal>) {
        self.count += 1;
        // What could not be sent, or waits for a fan-out that hangs.
        riders::send_all(journal);
        // Else one server that is away would keep the journals of all others from being searched.
        impatiently(scan(journal, self.count, &mut self.absent)).await;
    }
}

/// One scan.
async fn scan(journal: &Arc<Journal>, round: u64, absent: &mut AbsentOwners) {
    let tenant = &journal.tenant;
    let (living, is_old) = living_or_before(journal).await;
    // H113: while the leases' server is away, what lies elsewhere is still found.
    if !is_old {
        journal.tasks.lease.instances_are(living.len());
    }
    let all = round.is_multiple_of(ALL_EVERY);
    let buckets: Vec<Bucket> =
        tenant.keys().buckets().all().filter(|b| all || is_ours(&living, tenant.instance, *b)).collect();
    // Before the journals are read: what is put aside meanwhile stands there.
    let watched = if all { journal.tasks.watched() } else { Vec::new() };
    let before = journal.tasks.parked.counts();
    let watched_in = |bucket: Bucket| watched.iter().filter(move |(of, _)| *of == bucket);
    let mut depth = 0;
    let mut seen: HashSet<(Nonce, Searcher)> = HashSet::new();
    for (bucket, length) in lengths(tenant, &buckets).await {
        // A dead node keeps its own buckets waiting, not those of the others.
        let Ok(length) = length else { continue };
        depth += length;
        if length == 0 {
            journal.tasks.forget_lost(watched_in(bucket), &[], tenant.instance);
            journal.tasks.parked.found(bucket, &before, &FoundEntries::default());
            continue;
        }
        // What was put aside is known; now and then it is counted.
        if !all && journal.tasks.parked.is_all(bucket, length) {
            continue;
        }
        let searcher =
            if is_ours(&living, tenant.instance, bucket) { Searcher::Us } else { Searcher::Another };
        let Ok(entries) = entries(journal, bucket).await else { continue };
        journal.tasks.forget_lost(watched_in(bucket), &entries, tenant.instance);
        let mut found = FoundEntries::default();
        for entry in entries {
            if journal.tasks.knows(bucket, entry.id) || journal.tasks.is_stopping() {
                continue;
            }
            let is_own = entry.owner == tenant.instance;
            if is_own && found.waits(journal, &entry) {
                continue;
            }
            if !is_own {
                // Who lives was asked before this journal was read: whoever has begun since shows in the next round.
                if living.contains(&entry.owner) {
                    continue;
                }
                seen.insert((entry.owner, searcher));
                if !absent.were_before((entry.owner, searcher), round, is_old) {
                    continue;
                }
            }
            // What finds no room is left for the next look.
            let Ok(_place) = reserve(journal, 1) else { continue };
            if is_own {
                // Of those that wait for a server which they don't name all come back at once: fresh ones keep their
                // places.
                let Ok(permit) = journal.tasks.resuming.clone().try_acquire_owned() else {
                    found.waits_for_room();
                    continue;
                };
                // The reply to the write that left it was lost, or it was put aside and waits for nothing any more.
                meters::task_recovered("own");
                resume(journal, &entry, Some(permit));
            } else if let Err(e) = take_over(journal, entry).await {
                tracing::debug!("an entry of bucket {bucket} could not be taken over: {e}");
            }
        }
        journal.tasks.parked.found(bucket, &before, &found);
    }
    absent.forget_all_but(&seen, all);
    if !all {
        meters::journal_depth(depth);
    }
}

impl AbsentOwners {
    /// Whether an owner without a lease had none in an earlier round either; of buckets that another instance searches,
    /// for so long that it leaves them standing. An old look can't tell who has begun since: of whom it says nothing
    /// may live.
    fn were_before(&mut self, of: (Nonce, Searcher), round: u64, is_old: bool) -> bool {
        let since = match is_old {
            true => self.0.get(&of).copied(),
            false => Some(*self.0.entry(of).or_insert(round)),
        };
        let rounds = if of.1 == Searcher::Us { 1 } else { LEFT_AFTER };
        since.is_some_and(|since| since + rounds <= round)
    }

    /// Forgets whoever was not seen in a scan. Between two looks at all buckets nothing is seen of those of others.
    fn forget_all_but(&mut self, seen: &HashSet<(Nonce, Searcher)>, all: bool) {
        self.0.retain(|of, _| seen.contains(of) || of.1 == Searcher::Another && !all);
    }
}

/// Whether an instance searches a bucket: the living one whose name and bucket mix highest does.
fn is_ours(living: &HashSet<Nonce>, instance: Nonce, bucket: Bucket) -> bool {
    let weight = |name: &Nonce| mix64(u64::from_be_bytes(*name) ^ mix64(u64::from(bucket.index())));
    living.iter().max_by_key(|name| (weight(name), **name)).is_none_or(|name| *name == instance)
}

/// The buckets that this instance searches, by who is alive now.
pub(crate) async fn own_buckets(journal: &Journal) -> Vec<Bucket> {
    let (tenant, (living, _)) = (&journal.tenant, living_or_before(journal).await);
    tenant.keys().buckets().all().filter(|bucket| is_ours(&living, tenant.instance, *bucket)).collect()
}

/// The number of entries in the journal of each of these buckets.
pub(crate) async fn lengths(tenant: &Tenant, buckets: &[Bucket]) -> Vec<(Bucket, Result<u64>)> {
    let request = |bucket: &Bucket| {
        let command = Command::new("HLEN").arg(&tenant.keys().journal(*bucket));
        Request::read(tenant.keys().buckets().slot(*bucket), command)
    };
    let answers = tenant.router().run(buckets.iter().map(request).collect()).await;
    let length = |answer: Result<Answer>| answer?.ok()?.count();
    buckets.iter().zip(answers).map(|(bucket, answer)| (*bucket, length(answer))).collect()
}

/// The number of entries in each journal.
pub(crate) async fn journal_depths(tenant: &Tenant) -> Vec<Result<u64>> {
    let buckets: Vec<Bucket> = tenant.keys().buckets().all().collect();
    lengths(tenant, &buckets).await.into_iter().map(|(_, length)| length).collect()
}

/// The number of entries in all journals.
async fn journal_depth(tenant: &Tenant) -> Result<u64> {
    journal_depths(tenant).await.into_iter().sum()
}

/// Waits until no journal holds an entry.
pub(crate) async fn drained(journal: &Journal, deadline: Duration) -> Result<()> {
    let mut depth = None;
    let empty = async {
        loop {
            match journal_depth(&journal.tenant).await? {
                0 => return Ok(()),
                entries => depth = Some(entries),
            }
            sleep(DRAINED_PAUSE).await;
        }
    };
    timeout(deadline, empty).await.unwrap_or_else(|_| {
        let (tasks, deadline) = (&journal.tasks, deadline.as_millis());
        let held = match depth {
            Some(entries) => format!("were not empty within {deadline} ms, {entries} entries are left"),
            None => format!("could not be looked at within {deadline} ms"),
        };
        Err(Error::unavailable(format!(
            "the journals {held}; {} tasks are under way here, {} wait for servers that are away, for slots half-way \
             between two, or for the archive",
            tasks.len(),
            tasks.parked.count()
        )))
    })
}

/// An entry as it stands in its journal now, if it does.
pub(super) async fn entry(journal: &Journal, bucket: Bucket, id: Nonce) -> Result<Option<JournalEntry>> {
    let tenant = &journal.tenant;
    let slot = tenant.keys().buckets().slot(bucket);
    let command = Command::new("HGET").arg(&tenant.keys().journal(bucket)).arg(&id);
    let answer = tenant.router().ask(Request::read(slot, command)).await?;
    read(journal, bucket, &id, answer)
}

/// The entries in a bucket's journal; those that come meanwhile may be missed, the next scan finds them.
pub(crate) async fn entries(journal: &Journal, bucket: Bucket) -> Result<Vec<JournalEntry>> {
    let tenant = &journal.tenant;
    let (key, mut entries) = (tenant.keys().journal(bucket), Vec::new());
    // A hash of so many entries is gone through in fewer calls than this.
    let mut scan = Scan::new("HSCAN", &key).bounded(SCAN_COUNT, tenant.settings.journal_max + 1);
    while let Some(page) = scan.next(tenant).await? {
        for (id, value) in page {
            match journal.parse(bucket, &id, &value) {
                Ok(entry) => entries.push(entry),
                // A later release's, most likely: its instances carry it out.
                Err(e) => tracing::warn!("{e}"),
            }
        }
    }
    Ok(entries)
}

/// Takes an entry over, if its owner has it still, and runs it.
pub(crate) async fn take_over(journal: &Arc<Journal>, entry: JournalEntry) -> Result<()> {
    let tenant = &journal.tenant;
    let key = tenant.keys().journal(entry.bucket);
    // Compared with the owner: of several that search at once one gets it. An owner that was only slow goes on as
    // well, which does no harm: what it does is looked at anew each time.
    let command = functions::journal_take_over(key, &entry.id, &entry.owner, &tenant.instance);
    let slot = tenant.keys().buckets().slot(entry.bucket);
    let answer = tenant.router().ask(Request::write(slot, command)).await?;
    if let Some(entry) = read(journal, entry.bucket, &entry.id, answer)? {
        meters::task_recovered("claimed");
        accept(journal, entry);
    }
    Ok(())
}

/// An entry as its server has told it, if it stands there.
fn read(journal: &Journal, bucket: Bucket, id: &Nonce, answer: Answer) -> Result<Option<JournalEntry>> {
    let seen_in = Some(answer.epoch.clone());
    let value = answer.ok()?;
    if value.is_nil() {
        return Ok(None);
    }
    Ok(Some(JournalEntry { seen_in, ..journal.parse(bucket, id, value.bytes()?)? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_leave_standing_is_taken_late_and_never_by_an_old_look() {
        let (dead, other) = ([1; 8], [2; 8]);
        let mut absent = AbsentOwners::default();
        // One's own buckets: in the next scan, and by an old look only who was known before.
        assert!(!absent.were_before((dead, Searcher::Us), 5, false));
        assert!(absent.were_before((dead, Searcher::Us), 6, true));
        assert!(!absent.were_before((other, Searcher::Us), 6, true) && absent.0.len() == 1);
        // Others': after so many scans, also if an old look comes in between.
        assert!(!absent.were_before((dead, Searcher::Another), 8, false));
        for round in [16, 24, 32] {
            assert!(!absent.were_before((dead, Searcher::Another), round, round == 24), "{round}");
        }
        assert!(absent.were_before((dead, Searcher::Another), 8 + LEFT_AFTER, false));
        assert!(absent.were_before((dead, Searcher::Another), 8 + LEFT_AFTER, true));
        // Between two looks at all buckets only one's own are forgotten; at one, whoever was not seen.
        absent.forget_all_but(&HashSet::new(), false);
        assert_eq!(absent.0.keys().collect::<Vec<_>>(), [&(dead, Searcher::Another)]);
        absent.forget_all_but(&HashSet::new(), true);
        assert!(absent.0.is_empty());
    }

    #[test]
    fn each_bucket_is_searched_by_exactly_one_of_the_living() {
        let living: HashSet<Nonce> = (0u64..5).map(|i| mix64(i).to_be_bytes()).collect();
        let mut shares = HashMap::<Nonce, u32>::new();
        for bucket in (0..1024).map(Bucket) {
            let mut of = living.iter().filter(|name| is_ours(&living, **name, bucket));
            *shares.entry(*of.next().unwrap()).or_default() += 1;
            assert!(of.next().is_none());
        }
        assert!(shares.values().all(|n| *n > 100), "{shares:?}");
    }
}
