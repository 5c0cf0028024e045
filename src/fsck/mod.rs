//! `fsck`: looks through all that is stored for what is out of step with what it is derived from, and puts it right.
//!
//! Every key is met by a walk over the servers (`walk`), and its spelling (`key`) says which of the `relations` have
//! something looked at there; what an archive holds by one through it (`archive_walk`). Each look reads without any
//! lock, so what it sees (`seen`) may be work in flight: it is only a suspicion. A deviation counts when the very same
//! one is seen again and again, and no journal holds an entry that is about to put it right (`work`). Repairs go the
//! engine's own ways.
//!
//! Invariants kept here: nothing is written but by a repair; a repair does nothing if what it is for has changed; every
//! step is bounded.

mod archive_walk;
mod ask;
mod key;
mod kind;
mod relations;
mod report;
mod seen;
mod walk;
mod work;

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt as _};

pub(crate) use key::list_named;
pub use kind::FindingKind;
pub use report::{ArchivedCount, Findings, FsckProgress, FsckReport};

use crate::bucket::Bucket;
use crate::error::{CallFuture, Error, ErrorCode, ErrorKind, Result};
use crate::graph::Graph;
use crate::ids::AccountId;
use crate::keys::OwnKey;
use crate::post::PostRef;
use crate::{journal, meters};
use archive_walk::ArchiveWalk;
pub(crate) use key::{KeyForm, form_of};
use seen::{Deviation, Observation, RepairMeans, Unit};
pub(crate) use walk::KeyWalk;
use work::WorkUnderWay;

/// Looks under way at once.
const LOOKS_AT_ONCE: usize = 32;
/// Repairs under way at once.
const REPAIRS_AT_ONCE: usize = 16;
/// Suspicions that are kept until they are looked at again.
const SUSPECTS_MAX: usize = 20_000;
/// Rounds in which what is under way may come to an end; afterwards nothing is known.
const ROUNDS_MAX: u32 = 30;
/// Repairs that may lead to others: a follow that was hidden by a wrong piece, say.
const REPAIRS_IN_A_ROW: usize = 4;
/// Longest time that the tasks of a repair may take.
const TASKS_MAX: Duration = Duration::from_secs(120);

/// Options of a run of fsck.
#[derive(Debug, Clone)]
pub struct FsckOptions {
    /// Also put right what is found.
    pub repair: bool,
    /// Repairing, also delete posts that can't be read, for good. Not while another release may have written them.
    pub drop_unreadable: bool,
    /// Repairing, also go by an archive that is older than memory, for good: what it lacks is lost. Only where no newer
    /// copy of it is left.
    pub accept_loss: bool,
    /// Look only at what the archive has to do with: where posts lie, how far the archive has got, what it holds.
    /// Nothing where the tenant has none.
    pub archive_only: bool,
    /// Only what lies in these buckets, and all that it leads to; `None`: everything.
    pub buckets: Option<RangeInclusive<u16>>,
    /// Between two looks at the same thing. Shorter: work that is slow may be taken for work that nobody does.
    pub pause: Duration,
}

impl Default for FsckOptions {
    fn default() -> Self {
        Self {
            repair: false,
            drop_unreadable: false,
            accept_loss: false,
            archive_only: false,
            buckets: None,
            pause: Duration::from_secs(2),
        }
    }
}

/// Deletions that were made once, and that memory has forgotten: made again, the way that the engine has.
pub(crate) trait Deletions: Sync {
    /// Deletes a post.
    fn delete_post(&self, post: PostRef) -> CallFuture<'_, ()>;

    /// Deletes an account.
    fn delete_account(&self, account: AccountId) -> CallFuture<'_, ()>;
}

/// Looks through the tenant.
pub(crate) async fn run(
    graph: &Arc<Graph>,
    options: &FsckOptions,
    deletions: &dyn Deletions,
    progress: &(dyn Fn(FsckProgress) + Sync),
) -> Result<FsckReport> {
    let tenant = &graph.tenant;
    if options.repair && graph.journal.tasks.is_stopping() {
        return Err(Error::unavailable(
            "this instance only observes, is shutting down, or has given way to an import: it repairs \
             nothing. Ask an instance that serves the tenant",
        ));
    }
    // Who has only just begun to look doesn't know yet who lives.
    if journal::surely_living(&graph.journal).await?.contains(journal::IMPORT) {
        let text = "an import fills this tenant: what it writes is out of step until it has finished";
        return Err(Error::new(ErrorKind::Conflict, text));
    }
    let buckets = tenant.keys().buckets();
    if let Some(wanted) = options.buckets.as_ref().filter(|wanted| *wanted.end() >= buckets.count()) {
        let (count, last) = (buckets.count(), buckets.count() - 1);
        let text = format!("buckets {wanted:?}: the tenant has only {count}, which are 0 to {last}");
        return Err(Error::invalid(text));
    }
    let wanted = |bucket: &Bucket| options.buckets.as_ref().is_none_or(|b| b.contains(&bucket.index()));
    let means = RepairMeans { options, deletions };
    let mut run = FsckRun { graph, options, means, suspects: HashSet::new(), report: FsckReport::default() };
    let mut walk = KeyWalk::new(buckets.all().filter(wanted));
    let of = walk::keys_of_all(tenant).await;
    while let Some(keys) = walk.step(tenant).await? {
        run.at_keys(keys).await?;
        progress(run.progress(of));
    }
    if tenant.archive()?.is_some() {
        let mut walk = ArchiveWalk::new(buckets.all().filter(wanted), !options.archive_only);
        while run.at_archive(&mut walk).await? {
            progress(run.progress(of));
        }
    }
    run.settle().await?;
    progress(run.progress(of));
    Ok(run.report)
}

struct FsckRun<'a> {
    graph: &'a Arc<Graph>,
    options: &'a FsckOptions,
    means: RepairMeans<'a>,
    suspects: HashSet<Deviation>,
    report: FsckReport,
}

impl FsckRun<'_> {
    fn progress(&self, of: u64) -> FsckProgress {
        let found = self.report.findings.values().map(|findings| findings.found).sum();
        let suspects = self.suspects.len() as u64;
        FsckProgress { keys: self.report.keys, of: of.max(self.report.keys), suspects, found }
    }

    /// Looks at what keys lead to that a step of a walk has met.
    async fn at_keys(&mut self, keys: Vec<Vec<u8>>) -> Result<()> {
        let tenant = &self.graph.tenant;
        self.report.keys += keys.len() as u64;
        let (mut units, mut outboxes) = (Vec::with_capacity(keys.len()), Vec::new());
        for key in keys {
            let form = form_of(tenant.keys(), &key);
            self.report.accounts += u64::from(matches!(form, KeyForm::Record(_)));
            if let KeyForm::Own(OwnKey::Outbox, account) = form {
                outboxes.push(account);
            }
            units.extend(match self.options.archive_only {
                true => relations::at_key_of_archive(form),
                false => relations::at_key(form, key),
            });
        }
        // Of all of them the archive is asked at once.
        units
            .extend(relations::at_outboxes(outboxes).filter(|_| tenant.archive().is_ok_and(|a| a.is_some())));
        self.look_at(units).await
    }

    /// Looks at the next page of the archive. False: that was all, or it doesn't tell.
    async fn at_archive(&mut self, walk: &mut ArchiveWalk) -> Result<bool> {
        let archived = self.report.archived.get_or_insert_default();
        let (units, count) = match walk.step(&self.graph.tenant).await {
            Ok(Some(step)) => step,
            Ok(None) => return Ok(false),
            Err(e) if e.code() == ErrorCode::ArchiveAway => {
                tracing::warn!("the archive was not gone through to its end: {e}");
                self.report.untold += 1;
                return Ok(false);
            }
            Err(e) => return Err(e),
        };
        archived.owners += count.owners;
        archived.posts += count.posts;
        archived.bytes += count.bytes;
        self.look_at(units).await?;
        Ok(true)
    }

    /// Looks at these things, and at what they lead to.
    async fn look_at(&mut self, units: Vec<Unit>) -> Result<()> {
        let seen = self.seen(units).await?;
        self.suspects.extend(seen);
        if self.suspects.len() > SUSPECTS_MAX { self.settle().await } else { Ok(()) }
    }

    async fn seen(&mut self, units: Vec<Unit>) -> Result<HashSet<Deviation>> {
        let mut known: HashSet<Unit> = units.iter().cloned().collect();
        let mut open: Vec<Unit> = known.iter().cloned().collect();
        let mut deviations = HashSet::new();
        while !open.is_empty() {
            let run = &*self;
            let looks = stream::iter(open.drain(..)).map(|unit| run.patient_look(unit));
            let seen: Vec<Result<Observation>> = looks.buffer_unordered(LOOKS_AT_ONCE).collect().await;
            for seen in seen {
                let seen = seen?;
                self.report.untold += seen.untold;
                deviations.extend(seen.deviations);
                open.extend(seen.units.into_iter().filter(|unit| known.insert(unit.clone())));
            }
        }
        Ok(deviations)
    }

    /// A cluster in a failover answers a little later.
    async fn patient_look(&self, unit: Unit) -> Result<Observation> {
        let mut tries = 0;
        loop {
            match relations::look(&self.graph.journal, &unit).await {
                Err(e) if e.kind().is_retryable() && tries < 4 => tries += 1,
                seen => return seen,
            }
        }
    }

    /// Looks at the suspects again, until each is found innocent or guilty; has these put right, if that is wanted.
    async fn settle(&mut self) -> Result<()> {
        let suspects = std::mem::take(&mut self.suspects);
        let mut confirmed = self.confirm(suspects).await?;
        for deviation in &confirmed {
            meters::fsck_finding(deviation.kind.label());
        }
        if !self.options.repair {
            confirmed.iter().for_each(|deviation| self.report.add(deviation, false));
            return Ok(());
        }
        for _ in 0..REPAIRS_IN_A_ROW {
            if confirmed.is_empty() {
                return Ok(());
            }
            let then = self.repair(confirmed).await?;
            let suspects = self.seen(then).await?;
            confirmed = self.confirm(suspects).await?;
        }
        confirmed.iter().for_each(|deviation| self.report.add(deviation, false));
        Ok(())
    }

    /// Finds the suspects that are still there after several looks, while no entry of a journal is about to change
    /// that.
    async fn confirm(&mut self, suspects: HashSet<Deviation>) -> Result<Vec<Deviation>> {
        // Looks in a row that have shown each, with nothing under way about it.
        let mut open: HashMap<Deviation, u32> =
            suspects.into_iter().map(|deviation| (deviation, 1)).collect();
        let mut confirmed = Vec::new();
        for _ in 0..ROUNDS_MAX {
            if open.is_empty() {
                break;
            }
            tokio::time::sleep(self.options.pause).await;
            let units: HashSet<Unit> = open.keys().map(|deviation| deviation.at.clone()).collect();
            let seen = self.seen(units.into_iter().collect()).await?;
            // After the look: an entry that was struck before it has been carried out before it.
            let under_way = WorkUnderWay::read(&self.graph.journal).await?;
            open.retain(|deviation, looks| {
                if !seen.contains(deviation) {
                    return false;
                }
                *looks = if under_way.has_any(&deviation.excused_by) { 0 } else { *looks + 1 };
                let is_sure = *looks >= deviation.kind.looks();
                if is_sure {
                    confirmed.push(deviation.clone());
                }
                !is_sure
            });
        }
        self.report.in_flight += open.len() as u64;
        Ok(confirmed)
    }

    /// Puts these right. Gives what should be looked at besides.
    async fn repair(&mut self, deviations: Vec<Deviation>) -> Result<Vec<Unit>> {
        let (graph, means) = (self.graph, self.means);
        let repairs = stream::iter(deviations.clone()).map(|deviation| async move {
            match relations::repair(graph, &deviation, means).await {
                Ok(units) => units,
                Err(e) => {
                    let (label, told) = (deviation.kind.label(), &deviation.told);
                    tracing::warn!("{label}: {told} could not be repaired: {e}");
                    Vec::new()
                }
            }
        });
        let then: Vec<Vec<Unit>> = repairs.buffer_unordered(REPAIRS_AT_ONCE).collect().await;
        // What they left to the journal is carried out by this instance.
        let mut open: HashSet<Deviation> = deviations.iter().cloned().collect();
        let until = tokio::time::Instant::now() + TASKS_MAX;
        let mut looks = 0;
        while !open.is_empty() && looks < 3 && tokio::time::Instant::now() < until {
            tokio::time::sleep(self.options.pause).await;
            let units: HashSet<Unit> = open.iter().map(|deviation| deviation.at.clone()).collect();
            let seen = self.seen(units.into_iter().collect()).await?;
            open.retain(|deviation| seen.contains(deviation));
            let under_way = WorkUnderWay::read(&self.graph.journal).await?;
            looks += u32::from(!open.iter().any(|deviation| under_way.has_any(&deviation.excused_by)));
        }
        for deviation in &deviations {
            let is_repaired = !open.contains(deviation);
            if is_repaired {
                meters::fsck_repair(deviation.kind.label());
            }
            self.report.add(deviation, is_repaired);
        }
        // What was hidden behind it shows now.
        let behind = deviations
            .iter()
            .filter(|deviation| !open.contains(*deviation))
            .map(|deviation| deviation.at.clone());
        Ok(then.into_iter().flatten().chain(behind).collect())
    }
}
