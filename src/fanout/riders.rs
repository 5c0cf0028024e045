//! Small commands that can wait a little: watermarks that homes are due for, and strikes of fan-outs that are done. Whoever
//! sends deliveries next takes them along: alone each would cost a server and this instance a system call and more.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::entry::Entry;
use super::executor;
use crate::cluster::{Answer, Batch, Request};
use crate::context::Context;
use crate::error::Result;
use crate::functions::{self, FanoutFacts};
use crate::ids::AccountId;
use crate::meters;

/// Commands taken along in one batch.
pub(super) const TAKEN_AT_ONCE: usize = 256;
/// Homes that wait for a watermark; a few bytes each.
const TIDIES_MAX: usize = 100_000;

/// A command that waits.
#[derive(Debug)]
pub(super) enum Rider {
    /// A home is due for a watermark. A lost one does no harm.
    Tidy(AccountId),
    /// All of a fan-out is on replicas. The entry counts as known here until it is struck.
    Strike(Box<Entry>, Option<FanoutFacts>),
}

/// What waits. Bounded: tidies by what is said here, strikes by the tasks that an instance may have.
#[derive(Debug, Default)]
pub(super) struct Riders(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    riders: Vec<Rider>,
    /// Small fan-outs under way: the last one that ends sends what still waits.
    under_way: usize,
}

impl Rider {
    fn slot(&self, context: &Context) -> u16 {
        match self {
            Self::Tidy(home) => context.slot(*home),
            Self::Strike(entry, _) => context.keys().buckets().slot(entry.bucket),
        }
    }

    pub(super) fn request(&self, context: &Context) -> Request {
        let command = match self {
            Self::Tidy(home) => functions::home_tidy(context.keys().home(*home), context.fit()),
            Self::Strike(entry, facts) => executor::strike_command(context, entry, *facts),
        };
        Request::write(self.slot(context), command)
    }
}

impl Riders {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tidies that find no room are dropped: the next delivery that is due at that home brings it back.
    pub(super) fn tidy(&self, homes: &[AccountId]) {
        let mut waiting = self.waiting();
        let room = TIDIES_MAX.saturating_sub(waiting.riders.len());
        meters::tidies_dropped(homes.len().saturating_sub(room));
        waiting.riders.extend(homes.iter().take(room).copied().map(Rider::Tidy));
    }

    pub(super) fn add(&self, rider: Rider) {
        self.waiting().riders.push(rider);
    }

    /// A small fan-out begins.
    pub(super) fn begin(&self) {
        self.waiting().under_way += 1;
    }

    /// It is over. True: nobody is left to take anything along.
    pub(super) fn end(&self) -> bool {
        let mut waiting = self.waiting();
        waiting.under_way -= 1;
        waiting.under_way == 0
    }

    /// Some that go to where the caller's own commands go: one node that is dead must not hold up who has nothing to do
    /// with it. `slots`: those of the caller.
    pub(super) fn take_along(&self, context: &Context, slots: impl Iterator<Item = u16>) -> Vec<Rider> {
        let mut waiting = self.waiting();
        if waiting.riders.is_empty() {
            return Vec::new();
        }
        let nodes = context.router().nodes_of(slots);
        let from = waiting.riders.len().saturating_sub(TAKEN_AT_ONCE);
        let (taken, left): (Vec<Rider>, Vec<Rider>) = waiting
            .riders
            .drain(from..)
            .partition(|rider| nodes.contains(&context.router().node_number(rider.slot(context))));
        waiting.riders.extend(left);
        taken
    }

    fn take_all(&self) -> Vec<Rider> {
        std::mem::take(&mut self.waiting().riders)
    }
}

/// Sends all that waits.
pub(super) async fn send_all(context: &Arc<Context>) {
    let mut riders = context.tasks.riders.take_all();
    while !riders.is_empty() {
        let some = riders.split_off(riders.len().saturating_sub(TAKEN_AT_ONCE));
        let batch: Batch = some.iter().map(|rider| rider.request(context)).collect();
        let answers = context.router().run(batch).await;
        arrived(context, some, answers.into_iter());
    }
}

/// What became of riders that were sent.
pub(super) fn arrived(
    context: &Arc<Context>,
    riders: Vec<Rider>,
    answers: impl Iterator<Item = Result<Answer>>,
) {
    for (rider, answer) in riders.into_iter().zip(answers) {
        let Rider::Strike(entry, facts) = rider else { continue };
        match answer.and_then(|answer| functions::parse_struck(answer.ok()?)) {
            Ok(rates) => executor::struck(context, &entry, facts, rates),
            // Whoever sends something next tries again; the search of the journals does at the latest.
            Err(e) => {
                tracing::debug!("entry of {:?} is not struck yet: {e}", entry.task);
                context.tasks.riders.add(Rider::Strike(entry, facts));
            }
        }
    }
}
