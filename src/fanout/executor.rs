//! Carrying out journal entries: bounded, the small ones beside the large ones, again until they succeed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::OwnedSemaphorePermit;
use tracing::Instrument as _;

use super::deliver;
use super::entry::{Entry, Task};
use super::ledger::Ledger;
use super::parked;
use super::progress::{Delivery, DeliveryProgress, Reporter};
use super::riders::{self, Strike, UnderWay};
use super::tasks::reserve;
use crate::bucket::Bucket;
use crate::cluster::{Command, FenceOutcome, Request, Touched, impatiently};
use crate::context::Context;
use crate::error::{Error, ErrorKind, Result};
use crate::functions::{self, FanoutFacts, Rates};
use crate::ids::{AccountId, PostId};
use crate::tenant::Tenant;
use crate::{graph, meters, modes, rules};

/// First and longest pause before an entry that failed is tried again.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(2));
/// Longest pause where trying again cannot help by itself.
const BACKOFF_STUCK: Duration = Duration::from_secs(60);

/// A task that fails for so long is worth a warning.
const PATIENCE: Duration = Duration::from_secs(30);

/// Writes an entry into its journal.
async fn note(tenant: &Tenant, entry: &Entry) -> Result<()> {
    let value = entry.stored();
    let journal = tenant.keys().journal(entry.bucket);
    let most = tenant.settings.journal_max;
    let command = functions::journal_add(journal, most, [(entry.id.as_slice(), value.as_slice())]);
    let slot = tenant.keys().buckets().slot(entry.bucket);
    let reply = tenant.router().call(Request::write(slot, command)).await?;
    if functions::parse_added(reply)? { Ok(()) } else { Err(journal_full(tenant)) }
}

/// The error for a write that found no room in the journal.
pub(crate) fn journal_full(tenant: &Tenant) -> Error {
    let most = tenant.settings.journal_max;
    Error::new(
        ErrorKind::Overloaded,
        format!("{most} tasks of this bucket wait to be carried out; slow down"),
    )
}

/// Has something looked at, by us or by whoever finishes what we leave.
pub(crate) async fn add(context: &Arc<Context>, bucket: Bucket, task: Task) -> Result<Delivery> {
    let _place = reserve(context, 1)?;
    let entry = Entry::new(bucket, context.instance, task);
    note(context, &entry).await?;
    Ok(accept(context, entry))
}

/// Where the fan-out of a post is.
#[derive(Debug, Clone)]
pub enum FanoutState {
    /// This instance runs it.
    Here(Delivery),
    /// Another instance does, or will when it finds it; or what is left of it waits for a server that is away.
    Elsewhere,
    /// There is none (any more): all homes have it, or nobody was to.
    Done,
}

/// Where the fan-out of a post is.
pub(crate) async fn state(context: &Context, post: PostId) -> Result<FanoutState> {
    if let Some(delivery) = context.tasks.delivery_of(post) {
        return Ok(FanoutState::Here(delivery));
    }
    let entries = super::scan::entries(context, post.bucket(context.keys().buckets())).await?;
    let is_open = entries.iter().any(|e| matches!(e.task, Task::Deliver { post: id, .. } if id == post));
    Ok(if is_open { FanoutState::Elsewhere } else { FanoutState::Done })
}

/// Runs an entry that stands in the journal.
pub(crate) fn accept(context: &Arc<Context>, entry: Entry) -> Delivery {
    let reporter = match context.tasks.begin((entry.bucket, entry.id), entry.task) {
        Ok((reporter, _)) => reporter,
        // Somebody here runs it already.
        Err(delivery) => return delivery,
    };
    let delivery = reporter.follow();
    let context = context.clone();
    tokio::spawn(async move { carry_out(&context, entry, &reporter).await });
    delivery
}

/// Runs an entry of ours that was found in its journal, as it stands there now: what was found may have been run, and put
/// aside again, since it was read. `permit`: given back when it ends.
pub(super) fn resume(context: &Arc<Context>, found: &Entry, permit: Option<OwnedSemaphorePermit>) {
    let key = (found.bucket, found.id);
    let Ok((reporter, lacks_replicas)) = context.tasks.begin(key, found.task) else { return };
    let context = context.clone();
    tokio::spawn(async move {
        let _permit = permit;
        match impatiently(super::scan::entry(&context, key.0, key.1)).await {
            Ok(Some(mut entry)) if entry.owner == context.instance => {
                entry.lacks_replicas = lacks_replicas.unwrap_or(entry.lacks_replicas);
                carry_out(&context, entry, &reporter).await;
            }
            // Struck, or claimed by somebody else.
            Ok(_) => context.tasks.end(key),
            Err(e) => {
                tracing::debug!("an entry of bucket {} could not be read again: {e}", key.0);
                context.tasks.end(key);
                context.tasks.parked.add(key.0, &[key.0].into_iter().collect());
            }
        }
    });
}

/// Runs an entry until it needs no more attention here, or is put aside.
async fn carry_out(context: &Arc<Context>, entry: Entry, reporter: &Reporter) {
    let key = (entry.bucket, entry.id);
    let span = tracing::debug_span!("task", kind = entry.task.label(), bucket = %entry.bucket);
    if run_until_done(context, entry, reporter).instrument(span).await {
        context.tasks.end(key);
    }
}

/// Whether the entry needs no more attention: it was struck, or is left to others. Else it waits for its strike, or for
/// servers that are away.
async fn run_until_done(context: &Arc<Context>, mut entry: Entry, reporter: &Reporter) -> bool {
    let mut wait = BACKOFF.0;
    let started = Instant::now();
    let mut is_told = false;
    loop {
        let error = match impatiently(run(context, &mut entry, reporter)).await {
            Ok(Ended::Done | Ended::Struck) => {
                reporter.done();
                return true;
            }
            Ok(Ended::Riding) => return false,
            Ok(Ended::Later) => None,
            Err(e) => Some(e),
        };
        let is_stuck = error.as_ref().is_some_and(|e| !e.kind().is_retryable());
        if let Some(e) = &error
            && !is_stuck
            && impatiently(parked::park(context, &mut entry, e)).await
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
        if !context.tasks.is_stopping() {
            context.tasks.pause(wait).await;
            parked::wait_if_held_up(context, &entry).await;
        }
        if context.tasks.is_stopping() {
            return true;
        }
        wait = longer(wait, is_stuck);
    }
}

fn warn_of(entry: &Entry, is_stuck: bool, e: &Error) {
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

/// How a run of a task ended.
pub(crate) enum Ended {
    /// It may be struck.
    Done,
    /// It was struck with the last of what was to be done.
    Struck,
    /// The same, and that goes along with something else.
    Riding,
    /// Not yet: something that it needs is not ready.
    Later,
}

async fn run(context: &Arc<Context>, entry: &mut Entry, reporter: &Reporter) -> Result<Ended> {
    let is_large = match entry.task {
        Task::Deliver { author, .. } => context.followers(author)?.is_known_spread(),
        _ => false,
    };
    let permits = match entry.task {
        Task::Bury { .. } | Task::Mode { .. } | Task::Unlock { .. } => &context.tasks.slow,
        _ if is_large => &context.tasks.large,
        _ => &context.tasks.small,
    };
    let _permit = permits.acquire().await.map_err(|e| Error::internal(e.to_string()))?;
    let mut touched = Touched::new();
    let ended = match entry.task {
        Task::Deliver { post, author } => {
            // A large one takes nobody along: nothing has to wait for it.
            let _under_way = (!is_large).then(|| UnderWay::begin(context));
            let facts = run_delivery(context, entry, (post, author), reporter).await?;
            context.tasks.riders.strike(context, Strike { entry: entry.clone(), facts, is_told: false });
            if is_large {
                riders::send_all(context);
            }
            return Ok(Ended::Riding);
        }
        Task::Pair { reader, author, may_drop } => match entry.follow.take() {
            Some((follow, said)) => {
                // As after a look: that it follows must last before what is derived from it counts for good.
                if rules::holds("fence_follow") {
                    touched.add_epoch(&said);
                }
                graph::settle_follow(context, entry.id, author, &follow, may_drop, &mut touched).await?
            }
            None => graph::settle_pair(context, reader, author, may_drop, &mut touched).await?,
        },
        Task::Refer { post, author, to } => {
            graph::settle_reference(context, post, author, to, &mut touched).await?
        }
        Task::List { post, author } => {
            graph::settle_lists(context, post, author, &entry.lists, &mut touched).await?
        }
        Task::Tie { account, post } => graph::settle_tie(context, account, post, &mut touched).await?,
        Task::Unlist { post, .. } => {
            graph::drop_lists(context, &[post], &mut touched).await?;
            Ended::Done
        }
        Task::Bury { account } => graph::bury(context, account, &mut touched).await?,
        Task::Unlock { account } => graph::unlock(context, account, &mut touched).await?,
        Task::Mode { author, random } => {
            modes::settle(context, entry, author, random, reporter, &mut touched).await?
        }
    };
    if let Ended::Done = ended {
        fence_strike(context, entry, reporter, &touched).await?;
        let slot = context.keys().buckets().slot(entry.bucket);
        let command = strike_command(context, entry, None);
        context.router().call(Request::write(slot, command)).await?;
    }
    Ok(ended)
}

/// Delivers a post, up to where its entry may be struck. Gives what it found out, if it went to all followers. After an
/// error the entry says what is left; all else lasts.
async fn run_delivery(
    context: &Arc<Context>,
    entry: &mut Entry,
    (post, author): (PostId, AccountId),
    reporter: &Reporter,
) -> Result<Option<FanoutFacts>> {
    if entry.checkpoint.is_empty() {
        reporter.restart();
    }
    let mut ledger = Ledger::open(context, entry).await;
    let counts = match deliver::run(context, entry, post, author, reporter, &mut ledger).await {
        Ok(counts) => counts,
        Err(e) => {
            ledger.keep(entry);
            return Err(e);
        }
    };
    // H31; H75: what is not left is never looked at again.
    let is_fenced = rules::holds(if ledger.has_left() { "fence_left" } else { "fence_strike" });
    if is_fenced {
        ledger.fence(context).await;
    } else {
        ledger.trust();
    }
    ledger.close(entry)?;
    if is_fenced {
        reporter.fenced(entry.is_replicated(context.router().replicas()));
    }
    reporter.done();
    let DeliveryProgress { delivered, skipped, .. } = reporter.progress();
    let (now_ms, every_ms) = (context.router().now_ms(), context.judge.every_ms());
    // Followers as of now: the only cheap moment to count those of a spread set.
    Ok(counts.then_some(FanoutFacts { delivered, skipped, now_ms, every_ms }))
}

/// What was done must be on replicas before the entry goes; where a server has none, as the setting says.
async fn fence_strike(tenant: &Tenant, entry: &Entry, reporter: &Reporter, touched: &Touched) -> Result<()> {
    if rules::holds("fence_strike") {
        let fenced = tenant.router().fence(touched).await?;
        let is_replicated = entry.is_replicated(tenant.router().replicas());
        reporter.fenced(fenced == FenceOutcome::Replicated && is_replicated);
    }
    Ok(())
}

/// Takes a finished entry out of its journal.
pub(super) fn strike_command(tenant: &Tenant, entry: &Entry, facts: Option<FanoutFacts>) -> Command {
    let record = |author| tenant.keys().account(author);
    let facts = match entry.task {
        Task::Deliver { author, .. } => facts.map(|facts| (record(author), facts)),
        _ => None,
    };
    functions::journal_strike(tenant.keys().journal(entry.bucket), &entry.id, facts)
}

/// A fan-out's entry is struck; perhaps its author is to be pulled from now on.
pub(super) fn struck(
    context: &Arc<Context>,
    entry: &Entry,
    facts: Option<FanoutFacts>,
    rates: Option<Rates>,
) {
    context.tasks.end((entry.bucket, entry.id));
    if let (Task::Deliver { author, .. }, Some(facts), Some(rates)) = (entry.task, facts, rates) {
        let followers = (facts.delivered + facts.skipped, facts.delivered);
        modes::decide(context, author, rates, followers);
    }
}
