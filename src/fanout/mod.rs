//! What crosses buckets: the journal and who carries it out. A write that has consequences elsewhere leaves an entry
//! in its bucket's journal; the instance that accepted it runs it at once, strikes it when what it did is on
//! replicas, and any other instance finishes what it left.
//!
//! Invariants kept here: an entry is struck, and its checkpoint moves, only after a fence over all that was done for
//! it; an executor rereads the truth, so one that is late or doubled does nothing wrong; who waits for a server that is
//! away is an entry in a journal and nothing else.

mod deliver;
mod entry;
mod executor;
mod lease;
mod ledger;
mod left;
mod living;
mod named;
mod parked;
mod progress;
mod riders;
mod round;
mod scan;
mod tasks;

pub(crate) use entry::{Entry, Recipients, Reference, Task};
pub use executor::FanoutState;
pub(crate) use executor::{Ended, accept, add, journal_full, state};
pub(crate) use lease::{IMPORT, living, surely_living};
pub(crate) use lease::{begin as begin_lease, begin_import, end as end_lease, end_import, hold_for_import};
pub(crate) use ledger::Ledger;
pub(crate) use left::Part;
pub(crate) use parked::{keep_asking, keep_resuming};
pub(crate) use progress::Reporter;
pub use progress::{Delivery, DeliveryProgress};
pub(crate) use round::{Round, Visit, move_checkpoint};
pub(crate) use scan::{claim, entries, journal_depth, journal_depths, keep_scanning, lengths, own_buckets};
pub(crate) use tasks::{Tasks, reserve};
