//! Carrying out journal entries: bounded, the small ones beside the large ones, again until they succeed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::OwnedSemaphorePermit;
use tracing::Instrument as _;

use super::Journal;
use super::entry::JournalEntry;
use super::job::{Handlers, Run, RunOutcome, Task};
use super::parked;
use super::progress::{Delivery, Reporter};
use super::settling;
use super::tasks::reserve;
use crate::bucket::Bucket;
use crate::cluster::{Command, FenceOutcome, Request, TouchedServers, impatiently};
use crate::error::{Error, ErrorKind, Result};
use crate::functions::{self, DeliveryRates, FanoutFacts};
use crate::ids::AccountId;
use crate::meters;
use crate::tenant::Tenant;

/// First and longest pause before an entry that failed is tried again.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(2));
/// Longest pause where trying again cannot help by itself.
const BACKOFF_STUCK: Duration = Duration::from_secs(60);

/// A task that fails for so long is worth a warning.
const PATIENCE: Duration = Duration::from_secs(30);

/// Writes an entry into its journal.
async fn note(tenant: &Tenant, entry: &JournalEntry) -> Result<()> {
    let value = entry.stored();
    let key = tenant.keys().journal(entry.bucket);
    let most = tenant.settings.journal_max;
    let command = functions::journal_add(key, most, [(entry.id.as_slice(), value.as_slice())]);
    let slot = tenant.keys().buckets().slot(entry.bucket);
    let reply = tenant.router().call(Request::write(slot, command)).await?;
    if functions::parse_added(reply)? { Ok(()) } else { Err(journal_full(tenant)) }
}

/// The error for a write that found no room in the journal.
pub(crate) fn journal_full(tenant: &Tenant) -> Error {
    let most = tenant.settings.journal_max;
    Error::new(
        ErrorKind::Overloaded,
        format!(
            "tasks of this bucket wait to be carried out: all that may (journal_max is {most}), or more than half as \
             many, some of them this account's; slow down"
        ),
    )
}

/// Has something looked at, by us or by whoever finishes what we leave.
pub(crate) async fn add(journal: &Arc<Journal>, bucket: Bucket, task: impl Into<Task>) -> Result<Delivery> {
    let _place = reserve(journal, 1)?;
    let entry = JournalEntry::new(bucket, journal.tenant.instance, task);
    note(&journal.tenant, &entry).await?;
    Ok(accept(journal, entry))
}

/// Makes a change that a task has to look at: whoever dies after it has left that task, which comes first.
#[cfg(feature = "registration")]
pub(crate) async fn noted_before<T>(
    journal: &Arc<Journal>,
    bucket: Bucket,
    task: impl Into<Task>,
    change: impl Future<Output = Result<T>>,
) -> Result<T> {
    let _place = reserve(journal, 1)?;
    let ahead = JournalEntry::new(bucket, journal.tenant.instance, task);
    let key = (ahead.bucket, ahead.id);
    let Ok((reporter, _)) = journal.tasks.begin(key, ahead.task) else {
        return Err(Error::internal("a new entry is being run already"));
    };
    // Held from here on: nobody of this instance runs it before the change is made.
    let held = HeldUntilChanged { journal, key: Some(key) };
    // H262: before it, or whoever dies behind it has left nobody to look.
    note(&journal.tenant, &ahead).await?;
    let changed = change.await;
    // Also after an error: what was changed, if anything, is what the task looks at.
    held.run(ahead, reporter);
    changed
}

/// An entry that stands in its journal, or is about to, and isn't to be run yet. Whoever is dropped with it leaves it
/// to who looks through the journals.
#[cfg(feature = "registration")]
struct HeldUntilChanged<'a> {
    journal: &'a Arc<Journal>,
    key: Option<super::tasks::EntryKey>,
}

#[cfg(feature = "registration")]
impl HeldUntilChanged<'_> {
    fn run(mut self, entry: JournalEntry, reporter: Reporter) {
        settling::leave(&entry.task, || reporter.follow());
        // Without handlers the engine is gone: others find it.
        let Some(handlers) = self.journal.handlers() else { return };
        let (journal, _) = (self.journal.clone(), self.key.take());
        tokio::spawn(async move { carry_out(&journal, &handlers, entry, &reporter).await });
    }
}

#[cfg(feature = "registration")]
impl Drop for HeldUntilChanged<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            self.journal.tasks.end(key);
        }
    }
}

/// Runs an entry that stands in the journal.
pub(crate) fn accept(journal: &Arc<Journal>, entry: JournalEntry) -> Delivery {
    let reporter = match journal.tasks.begin((entry.bucket, entry.id), entry.task) {
        Ok((reporter, _)) => reporter,
        // Somebody here runs it already.
        Err(delivery) => return delivery,
    };
    let delivery = reporter.follow();
    settling::leave(&entry.task, || delivery.clone());
    let Some(handlers) = journal.handlers() else {
        // The engine is gone: others find it.
        journal.tasks.end((entry.bucket, entry.id));
        return delivery;
    };
    let journal = journal.clone();
    tokio::spawn(async move { carry_out(&journal, &handlers, entry, &reporter).await });
    delivery
}

/// Runs an entry of ours that was found in its journal, as it stands there now: what was found may have been run, and
/// put aside again, since it was read. `permit`: given back when it ends.
pub(super) fn resume(journal: &Arc<Journal>, found: &JournalEntry, permit: Option<OwnedSemaphorePermit>) {
    let key = (found.bucket, found.id);
    let Ok((reporter, lacks_replicas)) = journal.tasks.begin(key, found.task) else { return };
    let Some(handlers) = journal.handlers() else { return journal.tasks.end(key) };
    let journal = journal.clone();
    tokio::spawn(async move {
        let _permit = permit;
        match impatiently(super::scan::entry(&journal, key.0, key.1)).await {
            Ok(Some(mut entry)) if entry.owner == journal.tenant.instance => {
                entry.lacks_replicas = lacks_replicas.unwrap_or(entry.lacks_replicas);
                carry_out(&journal, &handlers, entry, &reporter).await;
            }
            // Struck, or taken over by somebody else.
            Ok(_) => journal.tasks.end(key),
            Err(e) => {
                tracing::debug!("an entry of bucket {} could not be read again: {e}", key.0);
                journal.tasks.end(key);
                journal.tasks.parked.add(key.0, &[key.0].into_iter().collect());
            }
        }
    });
}

/// Runs an entry until it needs no more attention here, or is put aside.
async fn carry_out(journal: &Arc<Journal>, handlers: &Handlers, entry: JournalEntry, reporter: &Reporter) {
    let key = (entry.bucket, entry.id);
    let span = tracing::debug_span!("task", kind = entry.task.label(), bucket = %entry.bucket);
    if run_until_done(journal, handlers, entry, reporter).instrument(span).await {
        journal.tasks.end(key);
    }
}

/// Whether the entry needs no more attention: it was struck, or is left to others. Else it waits for its strike, or for
/// servers that are away.
async fn run_until_done(
    journal: &Arc<Journal>,
    handlers: &Handlers,
    mut entry: JournalEntry,
    reporter: &Reporter,
) -> bool {
    let mut wait = BACKOFF.0;
    let started = Instant::now();
    let mut is_told = false;
    loop {
        let error = match impatiently(run(journal, handlers, &mut entry, reporter)).await {
            Ok(RunOutcome::Done | RunOutcome::Struck) => {
                reporter.done();
                return true;
            }
            Ok(RunOutcome::Riding) => return false,
            Ok(RunOutcome::Later) => None,
            Err(e) => Some(e),
        };
        let is_stuck = error.as_ref().is_some_and(|e| !e.kind().is_retryable());
        if let Some(e) = &error
            && !is_stuck
            && impatiently(parked::park(journal, &mut entry, e)).await
        {
            tracing::debug!("task {:?} waits in its journal: {e}", entry.task);
            return false;
        }
        match error {
            None => {}
            // In a failover all tasks under way fail, again and again: what goes by itself is no warning.
            Some(e) if is_told || (!is_stuck && started.elapsed() < PATIENCE) => {
                tracing::debug!("task {:?} again: {e}", entry.task);
            }
            Some(e) => {
                is_told = true;
                warn_of(&entry, is_stuck, &e);
            }
        }
        meters::task_retried(entry.task.label());
        if !journal.tasks.is_stopping() {
            journal.tasks.pause(wait).await;
            parked::wait_if_held_up(journal, &entry).await;
        }
        if journal.tasks.is_stopping() {
            // It stands in its journal: whoever finds it there goes on.
            return true;
        }
        wait = longer(wait, is_stuck);
    }
}

fn warn_of(entry: &JournalEntry, is_stuck: bool, e: &Error) {
    if is_stuck {
        meters::task_stuck(entry.task.label());
    }
    tracing::warn!(
        "task {:?} of bucket {} fails: {e}. It stays in the journal and is tried again, at least every \
         {BACKOFF_STUCK:?}; nothing is lost. If that goes on, see to what the error names (rights, a key \
         of another type, a newer release's data); `tideline inspect` shows the task",
        entry.task,
        entry.bucket
    );
}

/// The pause after this one.
fn longer(wait: Duration, is_stuck: bool) -> Duration {
    (wait * 2).min(if is_stuck { BACKOFF_STUCK } else { BACKOFF.1 })
}

async fn run(
    journal: &Arc<Journal>,
    handlers: &Handlers,
    entry: &mut JournalEntry,
    reporter: &Reporter,
) -> Result<RunOutcome> {
    let tenant = &journal.tenant;
    let pool = handlers.pool(&entry.task)?;
    let _permit = journal.tasks.permits(pool).acquire().await.map_err(|e| Error::internal(e.to_string()))?;
    let mut run = Run { entry, reporter, pool, touched: TouchedServers::new() };
    let ended = handlers.run(&mut run).await?;
    let touched = run.touched;
    if let RunOutcome::Done = ended {
        fence_strike(tenant, entry, reporter, &touched).await?;
        let slot = tenant.keys().buckets().slot(entry.bucket);
        let command = strike_command(tenant, entry, None);
        tenant.router().call(Request::write(slot, command)).await?;
    }
    Ok(ended)
}

/// Makes sure that what was done is on replicas before the entry goes; where a server has none, as the setting says.
async fn fence_strike(
    tenant: &Tenant,
    entry: &JournalEntry,
    reporter: &Reporter,
    touched: &TouchedServers,
) -> Result<()> {
    // H31: struck, nobody repeats what a failover takes back.
    let fenced = tenant.router().fence(touched).await?;
    let is_replicated = entry.is_replicated(tenant.router().replicas());
    reporter.fenced(fenced == FenceOutcome::Replicated && is_replicated);
    Ok(())
}

/// Takes a finished entry out of its journal; where it was a fan-out, its author's record gets the facts.
pub(super) fn strike_command(
    tenant: &Tenant,
    entry: &JournalEntry,
    facts: Option<(AccountId, FanoutFacts)>,
) -> Command {
    let facts = facts.map(|(author, facts)| (tenant.keys().account(author), facts));
    functions::journal_strike(tenant.keys().journal(entry.bucket), &entry.id, facts)
}

/// An entry is struck that was done before. Of a fan-out to all followers its facts are told.
pub(super) fn struck(
    journal: &Journal,
    entry: &JournalEntry,
    facts: Option<(AccountId, FanoutFacts)>,
    rates: Option<DeliveryRates>,
) {
    journal.tasks.end((entry.bucket, entry.id));
    if let (Some((author, facts)), Some(rates), Some(handlers)) = (facts, rates, journal.handlers()) {
        handlers.struck(author, facts, rates);
    }
}
