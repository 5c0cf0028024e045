//! Work that crosses buckets: the journal and who carries it out. A write that has consequences elsewhere leaves an
//! entry in its bucket's journal; the instance that accepted it runs it at once, strikes it when what it did is on
//! replicas, and any other instance finishes what it left. Which kinds of tasks there are nobody here knows: `job` says
//! what one is, and `engine/jobs.rs` lists them.
//!
//! Invariants kept here: an entry is struck, and its checkpoint moves, only after a fence over all that was done for
//! it; an executor rereads the truth, so one that is late or doubled does nothing wrong; who waits for a server that is
//! away is an entry in a journal and nothing else.

mod arguments;
mod beside;
mod checkpoint;
mod entry;
mod executor;
mod job;
mod lease;
mod left;
mod living;
mod matter;
mod parked;
mod progress;
mod riders;
mod scan;
mod settling;
mod tasks;
mod waiting;

use std::sync::{Arc, OnceLock, Weak};

pub(crate) use arguments::{ArgumentReader, Arguments};
pub(crate) use beside::Recurring;
pub(crate) use checkpoint::{move_checkpoint, told_in_time, write_checkpoint};
pub(crate) use entry::{Hint, JournalEntry};
#[cfg(feature = "registration")]
pub(crate) use executor::noted_before;
pub(crate) use executor::{accept, add, journal_full};
#[cfg(test)]
pub(crate) use job::kind;
pub(crate) use job::{FanoutWatcher, Handlers, Job, Kind, Pool, Run, RunOutcome, Task};
pub(crate) use lease::{IMPORT, living, surely_living};
pub(crate) use lease::{
    begin as begin_lease, begin_import, end as end_lease, end_import, hold_alone, hold_for_import,
};
pub(crate) use left::{AcknowledgedBuckets, BucketSet, RoundPart, VisitedBuckets, left_by};
pub(crate) use matter::Matter;
pub(crate) use parked::{AwayServerQuestions, ParkedTaskLooks};
pub(crate) use progress::Reporter;
pub use progress::{Delivery, DeliveryProgress};
pub(crate) use riders::{SmallFanout, Strike, arrived, send_all};
pub(crate) use scan::{JournalScans, drained, entries, journal_depths, lengths, own_buckets, take_over};
pub(crate) use settling::settled;
pub(crate) use tasks::{Tasks, reserve, reserve_for};

use crate::bucket::Bucket;
use crate::error::Result;
use crate::tenant::Tenant;

/// The journals of a tenant, as an instance works on them.
#[derive(Debug)]
pub(crate) struct Journal {
    pub(crate) tenant: Arc<Tenant>,
    pub(crate) tasks: Tasks,
    /// Set once all that tasks run on is there. Whoever serves keeps the handlers, and each task that runs: they keep
    /// the journal.
    kinds: OnceLock<(Vec<&'static dyn Kind>, Weak<Handlers>)>,
}

impl Journal {
    pub(crate) fn new(tenant: Arc<Tenant>) -> Arc<Self> {
        let tasks = Tasks::new(&tenant.settings);
        Arc::new(Self { tenant, tasks, kinds: OnceLock::new() })
    }

    /// Has its tasks carried out by these, as long as somebody keeps them.
    pub(crate) fn carried_out_by(&self, handlers: Handlers) -> Arc<Handlers> {
        let handlers = Arc::new(handlers);
        let is_first = self.kinds.set((handlers.kinds(), Arc::downgrade(&handlers))).is_ok();
        assert!(is_first, "a journal gets its handlers once");
        handlers
    }

    fn handlers(&self) -> Option<Arc<Handlers>> {
        self.kinds.get()?.1.upgrade()
    }

    /// Reads what stands in a bucket's journal.
    pub(crate) fn parse(&self, bucket: Bucket, id: &[u8], value: &[u8]) -> Result<JournalEntry> {
        let kinds = self.kinds.get().map(|(kinds, _)| &**kinds).unwrap_or_default();
        JournalEntry::parse(kinds, bucket, id, value)
    }
}
