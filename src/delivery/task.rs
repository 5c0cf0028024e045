//! The task of a post that may not be in all homes yet, and where it is.

use std::sync::Arc;

use super::deliver;
use super::ledger::Ledger;
use crate::error::Result;
use crate::functions::FanoutFacts;
use crate::ids::{AccountId, PostId};
use crate::journal::{
    ArgumentReader, Arguments, Delivery, DeliveryProgress, Job, Journal, JournalEntry, Matter, Pool,
    Reporter, Run, RunOutcome, SmallFanout, Strike, Task, entries, send_all,
};
use crate::post::PostRef;

/// A post may not be in all homes yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeliverTask {
    pub(crate) post: PostRef,
}

impl Job for DeliverTask {
    type Service = Journal;

    const LETTER: u8 = b'D';
    const LABEL: &'static str = "deliver";
    // A delivery changes nothing at its author's, and notes the buckets that it has left.
    const WAITS_FOR_NAMED: bool = true;
    // All followers.
    const IS_QUICK: bool = false;

    fn arguments(&self) -> Arguments {
        Arguments::default().post_ref(self.post)
    }

    fn read(arguments: &mut ArgumentReader<'_>) -> Option<Self> {
        Some(Self { post: arguments.post_ref()? })
    }

    fn actor(&self) -> AccountId {
        self.post.author
    }

    fn matters(&self) -> Vec<Matter> {
        vec![Matter::Delivery(self.post)]
    }

    fn describe(&self) -> String {
        format!("deliver post {} of {} to its followers", self.post.id, self.post.author)
    }

    fn pool(&self, journal: &Journal) -> Result<Pool> {
        let is_large = journal.tenant.followers(self.post.author)?.is_known_spread();
        Ok(if is_large { Pool::Large } else { Pool::Small })
    }

    async fn run(self, journal: &Arc<Journal>, run: &mut Run<'_>) -> Result<RunOutcome> {
        let is_large = run.pool == Pool::Large;
        // A large one takes nobody along: nothing has to wait for it.
        let _under_way = (!is_large).then(|| SmallFanout::begin(journal));
        let facts = run_delivery(journal, run.entry, self.post, run.reporter).await?;
        let facts = facts.map(|facts| (self.post.author, facts));
        journal
            .tasks
            .riders
            .strike(&journal.tenant, Strike { entry: run.entry.clone(), facts, is_told: false });
        if is_large {
            send_all(journal);
        }
        Ok(RunOutcome::Riding)
    }
}

/// Delivers a post, up to where its entry may be struck. Gives what it found out, if it went to all followers. After an
/// error the entry says what is left; all else lasts.
async fn run_delivery(
    journal: &Arc<Journal>,
    entry: &mut JournalEntry,
    post: PostRef,
    reporter: &Reporter,
) -> Result<Option<FanoutFacts>> {
    let tenant = &journal.tenant;
    if entry.checkpoint.is_empty() {
        reporter.restart();
    }
    // Before the delivery: what an earlier run had done and its servers have lost is left again (H76).
    let mut ledger = Ledger::open(tenant, entry).await;
    let counts = match deliver::run(journal, entry, post, reporter, &mut ledger).await {
        Ok(counts) => counts,
        Err(e) => {
            ledger.keep(entry);
            return Err(e);
        }
    };
    // H31; H75: what is not left is never looked at again.
    ledger.fence(tenant).await;
    ledger.close(entry)?;
    // H146: also of what earlier runs have fenced, here or elsewhere: the entry says what they went on without.
    reporter.fenced(entry.is_replicated(tenant.router().replicas()));
    reporter.done();
    let DeliveryProgress { delivered, skipped, .. } = reporter.progress();
    let every = tenant.settings.modes.decide_every.as_millis();
    let (now_ms, every_ms) = (tenant.router().now_ms(), u64::try_from(every).unwrap_or(u64::MAX));
    // Followers as of now: the only cheap moment to count those of a spread set.
    Ok(counts.then_some(FanoutFacts { delivered, skipped, now_ms, every_ms }))
}

/// The state of a post's fan-out.
#[derive(Debug, Clone)]
pub enum FanoutState {
    /// This instance runs it.
    Here(Delivery),
    /// Another instance does, or will when it finds it; or what is left of it waits for a server that is away.
    Elsewhere,
    /// There is none (any more): all homes have it, or nobody was to.
    Done,
}

/// The state of a post's fan-out.
pub(crate) async fn state(journal: &Journal, post: PostId) -> Result<FanoutState> {
    // Here first: what is struck between the two looks stands nowhere any more, and is done.
    if let Some(delivery) = journal.tasks.running(|task| delivers(task, post)) {
        return Ok(FanoutState::Here(delivery));
    }
    let entries = entries(journal, post.bucket(journal.tenant.keys().buckets())).await?;
    let is_open = entries.iter().any(|entry| delivers(&entry.task, post));
    Ok(if is_open { FanoutState::Elsewhere } else { FanoutState::Done })
}

fn delivers(task: &Task, post: PostId) -> bool {
    task.as_a::<DeliverTask>().is_some_and(|task| task.post.id == post)
}
