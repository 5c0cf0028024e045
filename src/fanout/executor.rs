//! Carrying out journal entries: bounded, the small ones beside the large ones, again until they succeed.

use std::collections::HashMap;
use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, Semaphore, watch};
use tracing::Instrument as _;

use super::deliver;
use super::entry::{Entry, Task};
use super::lease::Lease;
use super::progress::{Delivery, DeliveryProgress, Reporter};
use super::riders::{self, Riders, Strike, UnderWay};
use crate::bucket::Bucket;
use crate::cluster::{Command, Request, Touched};
use crate::context::Context;
use crate::error::{Error, ErrorKind, Result};
use crate::functions::{self, FanoutFacts, Mark, Rates};
use crate::ids::{AccountId, PostId};
use crate::{graph, meters, modes, rules};

/// Fan-outs over all buckets at once; each of them keeps every node busy.
const LARGE_AT_ONCE: usize = 4;
/// Changes of mode and burials at once: nobody waits for one, and posts don't wait behind them.
const SLOW_AT_ONCE: usize = 4;
/// First and longest pause before an entry that failed is tried again.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(2));
/// How often a task that makes others looks whether there is room again.
const ROOM_PAUSE: Duration = Duration::from_millis(20);
/// Longest pause where trying again cannot help by itself.
const BACKOFF_STUCK: Duration = Duration::from_secs(60);

/// A task that fails for so long is worth a warning.
const PATIENCE: Duration = Duration::from_secs(30);

/// What this instance has to do.
#[derive(Debug)]
pub(crate) struct Tasks {
    known: Mutex<Known>,
    most: usize,
    small: Semaphore,
    large: Semaphore,
    slow: Semaphore,
    pub(super) lease: Lease,
    /// What goes along with deliveries.
    pub(super) riders: Riders,
    /// Nothing new is begun any more.
    is_stopping: watch::Sender<bool>,
    has_ended: Notify,
}

/// Entries that wait or are under way here, and places for those that are about to be accepted.
///
/// What an entry that is under way leaves to do itself (a pair that turns a request into a follow) needs no place: it
/// ends right after.
#[derive(Debug, Default)]
struct Known {
    entries: HashMap<(Bucket, Mark), (Task, Reporter)>,
    reserved: usize,
}

/// Places among the tasks, taken before a write is accepted; given back when it is dropped, by when the tasks that they
/// were for are known.
#[derive(Debug)]
pub(crate) struct Reserved<'a> {
    tasks: &'a Tasks,
    places: usize,
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.tasks.known().reserved -= self.places;
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
            lease: Lease::default(),
            riders: Riders::default(),
            is_stopping: watch::Sender::new(false),
            has_ended: Notify::new(),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reserve(&self, places: usize) -> Result<Reserved<'_>> {
        if self.is_stopping() {
            return Err(Error::unavailable("this instance is shutting down, or has given way to an import"));
        }
        let mut known = self.known();
        let taken = known.entries.len() + known.reserved;
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
        known.reserved += places;
        Ok(Reserved { tasks: self, places })
    }

    /// An entry needs no more attention here.
    fn end(&self, key: (Bucket, Mark)) {
        self.known().entries.remove(&key);
        self.has_ended.notify_waiters();
    }

    /// How many wait or are under way.
    pub(crate) fn len(&self) -> usize {
        self.known().entries.len()
    }

    pub(crate) fn knows(&self, bucket: Bucket, id: Mark) -> bool {
        self.known().entries.contains_key(&(bucket, id))
    }

    /// The fan-out of a post, if it is being run here.
    fn delivery_of(&self, post: PostId) -> Option<Delivery> {
        let is_it = |task: &Task| matches!(task, Task::Deliver { post: id, .. } if *id == post);
        self.known().entries.values().find(|(task, _)| is_it(task)).map(|(_, reporter)| reporter.follow())
    }

    pub(crate) fn is_stopping(&self) -> bool {
        *self.is_stopping.borrow()
    }

    /// From now on nothing new is begun, and what fails is left to others.
    pub(crate) fn stop(&self) {
        self.is_stopping.send_replace(true);
        self.has_ended.notify_waiters();
    }

    /// Sleeps for so long, or until nothing new is to be begun.
    async fn pause(&self, time: Duration) {
        let mut stopping = self.is_stopping.subscribe();
        let _ = tokio::time::timeout(time, stopping.wait_for(|is_stopping| *is_stopping)).await;
    }

    /// Waits while so much is under way that whoever makes more should pause.
    pub(crate) async fn room(&self) {
        while self.len() * 2 > self.most && !self.is_stopping() {
            self.pause(ROOM_PAUSE).await;
        }
    }

    /// Waits until nothing is under way.
    pub(crate) async fn ended(&self, context: &Arc<Context>) {
        loop {
            let ended = self.has_ended.notified();
            if self.len() == 0 {
                return;
            }
            riders::send_all(context);
            // Another look now and then: a task that ended between the look and the wait has notified nobody.
            let _ = tokio::time::timeout(Duration::from_millis(50), ended).await;
        }
    }
}

/// Makes sure that there is room for so many tasks before a write that leaves them is accepted.
pub(crate) fn reserve(context: &Context, places: usize) -> Result<Reserved<'_>> {
    context.tasks.reserve(places)
}

/// Writes an entry into its journal.
async fn note(context: &Context, entry: &Entry) -> Result<()> {
    let value = entry.stored();
    let journal = context.keys().journal(entry.bucket);
    let most = context.settings.journal_max;
    let command = functions::journal_add(journal, most, [(entry.id.as_slice(), value.as_slice())]);
    let slot = context.keys().buckets().slot(entry.bucket);
    let reply = context.router().call(Request::write(slot, command)).await?;
    if functions::parse_added(reply)? { Ok(()) } else { Err(journal_full(context)) }
}

/// The error for a write that found no room in the journal.
pub(crate) fn journal_full(context: &Context) -> Error {
    let most = context.settings.journal_max;
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
    /// Another instance does, or will when it finds it.
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
    let reporter = Reporter::new();
    let delivery = reporter.follow();
    match context.tasks.known().entries.entry((entry.bucket, entry.id)) {
        // Somebody here runs it already.
        Occupied(known) => return known.get().1.follow(),
        Vacant(place) => drop(place.insert((entry.task, reporter.clone()))),
    }
    let context = context.clone();
    tokio::spawn(async move {
        let key = (entry.bucket, entry.id);
        let span = tracing::debug_span!("task", kind = entry.task.label(), bucket = %entry.bucket);
        let is_struck = run_until_done(&context, entry, &reporter).instrument(span).await;
        if is_struck {
            context.tasks.end(key);
        }
    });
    delivery
}

/// Whether the entry needs no more attention: it was struck, or is left to others. Else it waits for its strike.
async fn run_until_done(context: &Arc<Context>, mut entry: Entry, reporter: &Reporter) -> bool {
    let mut wait = BACKOFF.0;
    let started = Instant::now();
    let mut is_told = false;
    loop {
        let error = match run(context, &mut entry, reporter).await {
            Ok(Ended::Done | Ended::Struck) => {
                reporter.done();
                return true;
            }
            Ok(Ended::Riding) => return false,
            Ok(Ended::Later) => None,
            Err(e) => Some(e),
        };
        let is_stuck = error.as_ref().is_some_and(|e| !e.kind().is_retryable());
        match error {
            None => {}
            // In a failover all tasks under way fail, again and again: what goes by itself is no warning.
            Some(e) if is_told || (!is_stuck && started.elapsed() < PATIENCE) => {
                tracing::debug!("task {:?} again: {e}", entry.task);
            }
            Some(e) => {
                is_told = true;
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
        }
        meters::task_retried(entry.task.label());
        if !context.tasks.is_stopping() {
            context.tasks.pause(wait).await;
        }
        if context.tasks.is_stopping() {
            return true;
        }
        wait = longer(wait, is_stuck);
    }
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
            let facts = run_delivery(context, entry, (post, author), reporter, &mut touched).await?;
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
            graph::drop_lists(context, &[post]).await?;
            Ended::Done
        }
        Task::Bury { account } => graph::bury(context, account, &mut touched).await?,
        Task::Unlock { account } => graph::unlock(context, account, &mut touched).await?,
        Task::Mode { author, random } => {
            modes::settle(context, entry, author, random, reporter, &mut touched).await?
        }
    };
    if let Ended::Done = ended {
        fence_strike(context, &touched).await?;
        let slot = context.keys().buckets().slot(entry.bucket);
        let command = strike_command(context, entry, None);
        context.router().call(Request::write(slot, command)).await?;
    }
    Ok(ended)
}

/// Delivers a post, up to where its entry may be struck. Gives what it found out, if it went to all followers.
async fn run_delivery(
    context: &Arc<Context>,
    entry: &mut Entry,
    (post, author): (PostId, AccountId),
    reporter: &Reporter,
    touched: &mut Touched,
) -> Result<Option<FanoutFacts>> {
    reporter.restart();
    let counts = deliver::run(context, entry, post, author, reporter, touched).await?;
    fence_strike(context, touched).await?;
    reporter.done();
    let DeliveryProgress { delivered, skipped, .. } = reporter.progress();
    let (now_ms, every_ms) = (context.router().now_ms(), context.judge.every_ms());
    // Followers as of now: the only cheap moment to count those of a spread set.
    Ok(counts.then_some(FanoutFacts { delivered, skipped, now_ms, every_ms }))
}

/// What was done must be on replicas before the entry goes.
async fn fence_strike(context: &Context, touched: &Touched) -> Result<()> {
    if rules::holds("fence_strike") { context.router().fence(touched).await } else { Ok(()) }
}

/// Takes a finished entry out of its journal.
pub(super) fn strike_command(context: &Context, entry: &Entry, facts: Option<FanoutFacts>) -> Command {
    let record = |author| context.keys().account(author);
    let facts = match entry.task {
        Task::Deliver { author, .. } => facts.map(|facts| (record(author), facts)),
        _ => None,
    };
    functions::journal_strike(context.keys().journal(entry.bucket), &entry.id, facts)
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
