//! Small commands that can wait a little: watermarks that homes are due for, and strikes of fan-outs that are done.
//! Whoever sends deliveries next takes them along: alone each would cost a server and this instance a system call and
//! more.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::join_all;

use super::Journal;
use super::entry::JournalEntry;
use super::executor;
use crate::cluster::{Answer, Batch, Request, impatiently};
use crate::error::{Error, ErrorKind, Result};
use crate::functions::{self, FanoutFacts};
use crate::ids::AccountId;
use crate::meters;
use crate::tenant::Tenant;

/// Commands taken along in one batch.
const TAKEN_AT_ONCE: usize = 256;
/// Homes that wait for a watermark; a few bytes each.
const TIDIES_MAX: usize = 100_000;

/// A command that waits.
#[derive(Debug)]
pub(crate) enum Rider {
    /// A home is due for a watermark. A lost one does no harm for long: the next delivery that is due there brings it.
    Tidy(AccountId),
    /// All of a fan-out is on replicas. The entry counts as known here until it is struck.
    Strike(Box<Strike>),
}

/// An entry that may go.
#[derive(Debug)]
pub(crate) struct Strike {
    pub(crate) entry: JournalEntry,
    pub(crate) facts: Option<(AccountId, FanoutFacts)>,
    /// Whether somebody was told that it can't be struck.
    pub(crate) is_told: bool,
}

/// Riders that wait. Bounded: tidies by what is said here, strikes by the tasks that an instance may have.
#[derive(Debug, Default)]
pub(crate) struct Riders(Mutex<WaitingRiders>);

#[derive(Debug, Default)]
struct WaitingRiders {
    /// By the node that they go to, as far as was known when they came. A dead node's wait for it alone.
    riders: HashMap<u16, VecDeque<Rider>>,
    tidies: usize,
    /// Small fan-outs under way: the last one that ends sends what still waits.
    under_way: usize,
    is_sending: bool,
}

/// A small fan-out; it is over when this is dropped.
pub(crate) struct SmallFanout<'a>(&'a Arc<Journal>);

/// Everything that waits is being sent; over when this is dropped.
struct SendingRiders<'a>(&'a Journal);

impl Rider {
    fn slot(&self, tenant: &Tenant) -> u16 {
        match self {
            Self::Tidy(home) => tenant.slot(*home),
            Self::Strike(strike) => tenant.keys().buckets().slot(strike.entry.bucket),
        }
    }

    pub(crate) fn request(&self, tenant: &Tenant) -> Request {
        let command = match self {
            Self::Tidy(home) => functions::home_tidy(tenant.keys().home(*home), tenant.fit()),
            Self::Strike(strike) => {
                // H151: with its author's record it would wait for the slot's move. The next fan-out notes newer facts.
                let facts = strike.facts.filter(|_| !tenant.router().is_half_moved(self.slot(tenant)));
                executor::strike_command(tenant, &strike.entry, facts)
            }
        };
        Request::write(self.slot(tenant), command)
    }
}

impl WaitingRiders {
    /// The riders that go to the server at which that slot is.
    fn to(&mut self, tenant: &Tenant, slot: u16) -> &mut VecDeque<Rider> {
        self.riders.entry(tenant.router().node_number(slot)).or_default()
    }

    /// The newest ones.
    fn take(&mut self, node: u16, most: usize) -> Vec<Rider> {
        let Some(riders) = self.riders.get_mut(&node) else { return Vec::new() };
        let taken = Vec::from(riders.split_off(riders.len().saturating_sub(most)));
        self.tidies -= taken.iter().filter(|rider| matches!(rider, Rider::Tidy(_))).count();
        taken
    }
}

impl Riders {
    fn waiting(&self) -> MutexGuard<'_, WaitingRiders> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tidies that find no room are dropped: the next delivery that is due at that home brings it back.
    pub(crate) fn tidy(&self, tenant: &Tenant, homes: &[AccountId]) {
        if homes.is_empty() {
            return;
        }
        let mut waiting = self.waiting();
        let room = TIDIES_MAX.saturating_sub(waiting.tidies);
        meters::tidies_dropped(homes.len().saturating_sub(room));
        for home in homes.iter().take(room) {
            waiting.tidies += 1;
            waiting.to(tenant, tenant.slot(*home)).push_back(Rider::Tidy(*home));
        }
    }

    /// A tidy that a server has refused waits until everything else that goes there has been taken: that may be carried
    /// out.
    fn tidy_later(&self, tenant: &Tenant, home: AccountId) {
        let mut waiting = self.waiting();
        if waiting.tidies == TIDIES_MAX {
            meters::tidies_dropped(1);
            return;
        }
        waiting.tidies += 1;
        waiting.to(tenant, tenant.slot(home)).push_front(Rider::Tidy(home));
    }

    pub(crate) fn strike(&self, tenant: &Tenant, strike: Strike) {
        let rider = Rider::Strike(Box::new(strike));
        self.waiting().to(tenant, rider.slot(tenant)).push_back(rider);
    }

    /// Some that go to where the caller's own commands go: one node that is dead must not hold up who has nothing to do
    /// with it. `slots`: those of the caller.
    pub(crate) fn take_along(&self, tenant: &Tenant, slots: impl Iterator<Item = u16>) -> Vec<Rider> {
        let nodes = tenant.router().nodes_of(slots);
        let mut waiting = self.waiting();
        let mut taken = Vec::new();
        for node in nodes {
            let most = TAKEN_AT_ONCE - taken.len();
            taken.append(&mut waiting.take(node, most));
        }
        taken
    }

    /// The nodes for which something waits.
    fn nodes(&self) -> Vec<u16> {
        let mut waiting = self.waiting();
        waiting.riders.retain(|_, riders| !riders.is_empty());
        waiting.riders.keys().copied().collect()
    }
}

impl<'a> SmallFanout<'a> {
    pub(crate) fn begin(journal: &'a Arc<Journal>) -> Self {
        journal.tasks.riders.waiting().under_way += 1;
        Self(journal)
    }
}

impl Drop for SmallFanout<'_> {
    fn drop(&mut self) {
        let mut waiting = self.0.tasks.riders.waiting();
        waiting.under_way -= 1;
        // Nobody is left to take anything along.
        if waiting.under_way == 0 {
            drop(waiting);
            send_all(self.0);
        }
    }
}

impl Drop for SendingRiders<'_> {
    fn drop(&mut self) {
        self.0.tasks.riders.waiting().is_sending = false;
    }
}

/// Sends all that waits, beside: nobody has to wait for a node that is dead.
pub(crate) fn send_all(journal: &Arc<Journal>) {
    // A fan-out may be dropped together with its runtime.
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    let journal = journal.clone();
    // Not among what a stop ends (`Tasks::beside`): it waits until these strikes are sent.
    runtime.spawn(async move {
        if std::mem::replace(&mut journal.tasks.riders.waiting().is_sending, true) {
            return;
        }
        let _sending = SendingRiders(&journal);
        // What can't be sent waits again: a node's turn comes once. Who is silent gets none: the others' would come
        // only when its own is over.
        let nodes = journal.tasks.riders.nodes().into_iter();
        let nodes = nodes.filter(|node| !journal.tenant.router().is_silent(*node));
        impatiently(join_all(nodes.map(|node| send_to(&journal, node)))).await;
    });
}

async fn send_to(journal: &Arc<Journal>, node: u16) {
    loop {
        let riders = journal.tasks.riders.waiting().take(node, TAKEN_AT_ONCE);
        if riders.is_empty() {
            return;
        }
        let batch: Batch = riders.iter().map(|rider| rider.request(&journal.tenant)).collect();
        let answers = journal.tenant.router().run(batch).await;
        if !arrived(journal, riders, answers.into_iter()) {
            return;
        }
    }
}

/// Handles what became of riders that were sent. False: some wait again.
pub(crate) fn arrived(
    journal: &Arc<Journal>,
    riders: Vec<Rider>,
    answers: impl Iterator<Item = Result<Answer>>,
) -> bool {
    let tenant = &journal.tenant;
    let mut is_all = true;
    for (rider, answer) in riders.into_iter().zip(answers) {
        let mut strike = match rider {
            Rider::Strike(strike) => strike,
            // It may be the last for long that is due there, and until then the home has more than it should. One that
            // may have run is not sent again: as a rule it has.
            Rider::Tidy(home) => {
                let failed = |e: Error| e.kind().is_retryable() && e.kind() != ErrorKind::Unknown;
                if answer.and_then(Answer::ok).is_err_and(failed) {
                    is_all = false;
                    journal.tasks.riders.tidy_later(tenant, home);
                }
                continue;
            }
        };
        match answer.and_then(|answer| functions::parse_struck(answer.ok()?)) {
            Ok(rates) => executor::struck(journal, &strike.entry, strike.facts, rates),
            // Whoever sends something next tries again; the search of the journals does at the latest.
            Err(e) => {
                is_all = false;
                let slot = tenant.keys().buckets().slot(strike.entry.bucket);
                if tenant.router().is_away(slot) {
                    journal.tasks.shelve((strike.entry.bucket, strike.entry.id));
                }
                // That it is known to be half-way is forgotten before an idle instance sends this again.
                if tenant.router().is_half_moved(slot) {
                    strike.facts = None;
                }
                let task = strike.entry.task;
                if e.kind().is_retryable() || strike.is_told {
                    tracing::debug!("{task:?} is done, its entry is not struck yet: {e}");
                } else {
                    strike.is_told = true;
                    meters::task_stuck(task.label());
                    tracing::warn!(
                        "{task:?} is done, but its entry cannot be struck: {e}. It is tried again; see to what the \
                         error names (rights, a key of another type)"
                    );
                }
                journal.tasks.riders.strike(tenant, *strike);
            }
        }
    }
    is_all
}
