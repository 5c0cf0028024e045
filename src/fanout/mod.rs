//! What crosses buckets: the journal and who carries it out. A write that has consequences elsewhere leaves an entry
//! in its bucket's journal; the instance that accepted it runs it at once, strikes it when what it did is on
//! replicas, and any other instance finishes what it left.
//!
//! Invariants kept here: an entry is struck, and its checkpoint moves, only after a fence over all that was done for
//! it; an executor rereads the truth, so one that is late or doubled does nothing wrong.

mod deliver;
mod entry;
mod executor;
mod lease;
mod progress;
mod riders;
mod round;
mod scan;

pub(crate) use entry::{Entry, Recipients, Reference, Task};
pub use executor::FanoutState;
pub(crate) use executor::{Ended, Tasks, accept, add, journal_full, reserve, state};
pub(crate) use lease::{IMPORT, living};
pub(crate) use lease::{begin as begin_lease, begin_import, end as end_lease, end_import, hold_for_import};
pub(crate) use progress::Reporter;
pub use progress::{Delivery, DeliveryProgress};
pub(crate) use round::{Round, Visit, buckets_done, move_checkpoint};
pub(crate) use scan::{claim, entries, journal_depth, keep_scanning, lengths};
