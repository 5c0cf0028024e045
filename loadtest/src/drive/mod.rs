//! Putting load on: an open loop, in which each operation leaves when it is due, and a closed one, in which users take
//! the next operation when the last one is answered.

mod closed;
mod open;

use std::time::Instant;

pub(crate) use closed::closed;
pub(crate) use open::{OVERDUE, Punctuality, open};

/// Does operations, and counts what becomes of them.
pub(crate) trait Perform<T>: Send + Sync + 'static {
    /// Does it; `due` is where its latency begins. Ends in bounded time.
    fn perform(&self, operation: T, due: Instant) -> impl Future<Output = ()> + Send;

    /// It was not sent: too many were under way, or it was overdue.
    fn dropped(&self, operation: &T);
}
