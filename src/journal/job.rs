//! Kinds of tasks. The journal keeps tasks, runs and strikes them, and knows none of their kinds: each is one file in
//! the folder that owns its matter, and is registered in `engine/jobs.rs`.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::arguments::{ArgumentReader, Arguments};
use super::entry::JournalEntry;
use super::matter::Matter;
use super::progress::Reporter;
use crate::bucket::{Bucket, Buckets};
use crate::cluster::TouchedServers;
use crate::error::{Error, Result};
use crate::functions::{DeliveryRates, FanoutFacts};
use crate::ids::{AccountId, PostId};
use crate::nonce::Nonce;

/// A kind of task: something to be looked at again.
///
/// A new one is a file with this, passed on by the `mod.rs` above it, a line in `engine/jobs.rs` (and one in the tests
/// there), and a row or word in docs/abuse.md, design.md, metrics.md and fsck.md; what puts something else in line than
/// those before it adds a [`Matter`]; what a post leaves is listed in `tasks_about`; one whose arguments begin with a
/// post has its letter in `journal.lua`, too, which finds whose an entry is. Instances of the release before can't read
/// its entries: they warn, and leave them alone.
pub(crate) trait Job: Copy + fmt::Debug + Send + Sync + 'static {
    /// The service that it needs to run.
    type Service: Send + Sync + 'static;

    /// The letter that stands for it in an entry. Instances of other releases read it.
    const LETTER: u8;
    /// Its name in metrics and messages.
    const LABEL: &'static str;
    /// Whether something else than a checkpoint stands behind its arguments; an entry is refused unless
    /// [`is_payload`](Self::is_payload) says that it can be read.
    const HAS_PAYLOAD: bool = false;
    /// Whether it changes nothing in the buckets that it [needs](Self::needs), and its checkpoint says which others it
    /// waits for. Else, after an error, it may wait for any server that is away.
    const WAITS_FOR_NAMED: bool = false;
    /// Whether nothing of it can be done while the archive is away.
    const NEEDS_ARCHIVE: bool = false;
    /// Whether it is over in a moment, whoever it is about: a call may wait for it.
    const IS_QUICK: bool = true;

    /// Gives its arguments, as they are stored: as many bytes as [`Arguments`] takes. Where a publish, an edit or a
    /// deletion leaves it they begin with the post and its author, which the function writes itself.
    fn arguments(&self) -> Arguments;
    /// Reads them.
    fn read(arguments: &mut ArgumentReader<'_>) -> Option<Self>;
    /// Whether this can stand behind its arguments.
    fn is_payload(_: &[u8]) -> bool {
        false
    }

    /// The account whose change has left it.
    fn actor(&self) -> AccountId;
    /// Buckets without which nothing of it can be done, as far as it names them.
    fn needs(&self, buckets: Buckets) -> Vec<Bucket> {
        vec![buckets.of_account(self.actor().get())]
    }
    /// The matters that it puts in line.
    fn matters(&self) -> Vec<Matter>;
    /// Says in words what it does.
    fn describe(&self) -> String;

    /// Says beside how many others it runs: [`Slow`](Pool::Slow) if nobody waits for it and it goes through many
    /// accounts.
    fn pool(&self, _: &Self::Service) -> Result<Pool> {
        Ok(Pool::Small)
    }
    /// Looks at what is so now, and does what is left to do. May run any number of times, and beside itself.
    fn run(
        self,
        service: &Arc<Self::Service>,
        run: &mut Run<'_>,
    ) -> impl Future<Output = Result<RunOutcome>> + Send;
}

/// Tasks that take places from one another while they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pool {
    Small,
    /// Fan-outs over all buckets.
    Large,
    /// Changes of mode and burials: nobody waits for one, and posts don't wait behind them.
    Slow,
    /// What only waits for the archive: whatever that is up to, nothing else waits behind it.
    Archive,
}

/// One run of a task.
pub(crate) struct Run<'a> {
    /// Its entry; its checkpoint may move.
    pub(crate) entry: &'a mut JournalEntry,
    pub(crate) reporter: &'a Reporter,
    pub(crate) pool: Pool,
    /// What was done for it, so far: all of it is fenced before the entry is struck.
    pub(crate) touched: TouchedServers,
}

/// The outcome of a task's run.
pub(crate) enum RunOutcome {
    /// All is done: the executor fences what it touched, then strikes the entry.
    Done,
    /// Its last call has struck it, in the slot that this call wrote to; all before was fenced.
    Struck,
    /// All is done and fenced: its strike waits in `riders`, to go along with another call.
    Riding,
    /// Not yet: something that it needs is not ready.
    Later,
}

/// A kind of task: what the journal asks of any, and of a task by its arguments.
pub(crate) trait Kind: Sync {
    fn letter(&self) -> u8;
    fn label(&self) -> &'static str;
    fn has_payload(&self) -> bool;
    fn is_payload(&self, bytes: &[u8]) -> bool;
    fn waits_for_named(&self) -> bool;
    fn needs_archive(&self) -> bool;
    fn is_quick(&self) -> bool;
    fn read(&'static self, arguments: &[u8]) -> Option<Task>;
    fn actor(&self, task: &Task) -> AccountId;
    fn needs(&self, task: &Task, buckets: Buckets) -> Vec<Bucket>;
    fn matters(&self, task: &Task) -> Vec<Matter>;
    fn describe(&self, task: &Task) -> String;
    fn show(&self, task: &Task, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

struct KindOf<J>(PhantomData<fn() -> J>);

/// A kind, for the list of all.
pub(crate) fn kind<J: Job>() -> &'static dyn Kind {
    const { &KindOf::<J>(PhantomData) }
}

impl<J: Job> KindOf<J> {
    fn of(task: &Task) -> J {
        J::read(&mut ArgumentReader(task.arguments.stored())).expect("what was read once can be read again")
    }
}

impl<J: Job> Kind for KindOf<J> {
    fn letter(&self) -> u8 {
        J::LETTER
    }

    fn label(&self) -> &'static str {
        J::LABEL
    }

    fn has_payload(&self) -> bool {
        J::HAS_PAYLOAD
    }

    fn is_payload(&self, bytes: &[u8]) -> bool {
        J::is_payload(bytes)
    }

    fn waits_for_named(&self) -> bool {
        J::WAITS_FOR_NAMED
    }

    fn needs_archive(&self) -> bool {
        J::NEEDS_ARCHIVE
    }

    fn is_quick(&self) -> bool {
        J::IS_QUICK
    }

    fn read(&'static self, arguments: &[u8]) -> Option<Task> {
        J::read(&mut ArgumentReader(arguments)).map(Task::from)
    }

    fn actor(&self, task: &Task) -> AccountId {
        Self::of(task).actor()
    }

    fn needs(&self, task: &Task, buckets: Buckets) -> Vec<Bucket> {
        Self::of(task).needs(buckets)
    }

    fn matters(&self, task: &Task) -> Vec<Matter> {
        Self::of(task).matters()
    }

    fn describe(&self, task: &Task) -> String {
        Self::of(task).describe()
    }

    fn show(&self, task: &Task, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&Self::of(task), f)
    }
}

impl fmt::Debug for dyn Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// A task of any kind.
#[derive(Clone, Copy)]
pub(crate) struct Task {
    kind: &'static dyn Kind,
    arguments: Arguments,
}

impl<J: Job> From<J> for Task {
    fn from(job: J) -> Self {
        Self { kind: kind::<J>(), arguments: job.arguments() }
    }
}

impl PartialEq for Task {
    fn eq(&self, other: &Self) -> bool {
        self.kind.letter() == other.kind.letter() && self.arguments == other.arguments
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.show(self, f)
    }
}

impl Task {
    /// The task, if it is of this kind.
    pub(crate) fn as_a<J: Job>(&self) -> Option<J> {
        self.is_a::<J>().then(|| KindOf::<J>::of(self))
    }

    pub(crate) fn is_a<J: Job>(&self) -> bool {
        self.kind.letter() == J::LETTER
    }

    pub(crate) fn kind(&self) -> &'static dyn Kind {
        self.kind
    }

    /// Its name in metrics and messages.
    pub(crate) fn label(&self) -> &'static str {
        self.kind.label()
    }

    /// The account whose change has left it.
    pub(crate) fn actor(&self) -> AccountId {
        self.kind.actor(self)
    }

    /// Buckets without which nothing of it can be done, as far as it names them.
    pub(crate) fn needs(&self, buckets: Buckets) -> Vec<Bucket> {
        self.kind.needs(self, buckets)
    }

    /// The matters that it puts in line.
    pub(crate) fn matters(&self) -> Vec<Matter> {
        self.kind.matters(self)
    }

    /// Whether it names an account.
    pub(crate) fn concerns(&self, account: AccountId) -> bool {
        self.actor() == account || self.matters().iter().any(|matter| matter.concerns(account))
    }

    /// Whether it names a post.
    pub(crate) fn is_about(&self, post: PostId) -> bool {
        self.matters().iter().any(|matter| matter.is_about(post))
    }

    /// Says in words what it does.
    pub(crate) fn describe(&self) -> String {
        self.kind.describe(self)
    }

    /// Its letter, and what follows post and author in an entry about a post.
    pub(crate) fn tail(&self) -> (u8, Vec<u8>) {
        let arguments = self.arguments.stored();
        debug_assert!(arguments.len() >= 16, "{self:?} begins with no post and its author");
        (self.kind.letter(), arguments.get(16..).unwrap_or_default().to_vec())
    }

    /// An entry's value, for an owner who begins with it.
    pub(crate) fn stored(&self, owner: &Nonce) -> Vec<u8> {
        let mut stored = Vec::with_capacity(self.stored_len());
        stored.extend(owner);
        stored.push(self.kind.letter());
        stored.extend(self.arguments.stored());
        stored
    }

    /// Length of an entry's value before its checkpoint.
    pub(crate) fn stored_len(&self) -> usize {
        9 + self.arguments.stored().len()
    }
}

/// A kind, and what it runs on.
trait KindHandler: Send + Sync {
    fn kind(&self) -> &'static dyn Kind;
    fn pool(&self, task: &Task) -> Result<Pool>;
    fn run<'r>(&'r self, run: &'r mut Run<'_>) -> BoxFuture<'r, Result<RunOutcome>>;
}

struct BoundJob<J: Job>(Arc<J::Service>);

impl<J: Job> KindHandler for BoundJob<J> {
    fn kind(&self) -> &'static dyn Kind {
        kind::<J>()
    }

    fn pool(&self, task: &Task) -> Result<Pool> {
        KindOf::<J>::of(task).pool(&self.0)
    }

    fn run<'r>(&'r self, run: &'r mut Run<'_>) -> BoxFuture<'r, Result<RunOutcome>> {
        KindOf::<J>::of(&run.entry.task).run(&self.0, run).boxed()
    }
}

/// A watcher, told what a fan-out to all followers has found out, once its entry is struck.
pub(crate) trait FanoutWatcher: Send + Sync {
    fn struck(&self, author: AccountId, facts: FanoutFacts, rates: DeliveryRates);
}

/// Handlers of tasks, by their kinds.
pub(crate) struct Handlers {
    all: Vec<Box<dyn KindHandler>>,
    watcher: Box<dyn FanoutWatcher>,
}

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all.iter().map(|handler| handler.kind().label())).finish()
    }
}

impl Handlers {
    pub(crate) fn new(watcher: impl FanoutWatcher + 'static) -> Self {
        Self { all: Vec::new(), watcher: Box::new(watcher) }
    }

    /// Adds a kind, and what its tasks run on.
    pub(crate) fn with<J: Job>(mut self, service: &Arc<J::Service>) -> Self {
        self.all.push(Box::new(BoundJob::<J>(service.clone())));
        self
    }

    pub(super) fn kinds(&self) -> Vec<&'static dyn Kind> {
        self.all.iter().map(|handler| handler.kind()).collect()
    }

    fn of(&self, task: &Task) -> Result<&dyn KindHandler> {
        let handler = self.all.iter().find(|handler| handler.kind().letter() == task.kind.letter());
        let missing = || Error::internal(format!("nobody carries out tasks of the kind {}", task.label()));
        Ok(&**handler.ok_or_else(missing)?)
    }

    pub(super) fn pool(&self, task: &Task) -> Result<Pool> {
        self.of(task)?.pool(task)
    }

    pub(super) async fn run(&self, run: &mut Run<'_>) -> Result<RunOutcome> {
        self.of(&run.entry.task)?.run(run).await
    }

    pub(super) fn struck(&self, author: AccountId, facts: FanoutFacts, rates: DeliveryRates) {
        self.watcher.struck(author, facts, rates);
    }
}
