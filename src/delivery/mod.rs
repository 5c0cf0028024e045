//! Bringing posts to homes: a round through an author's followers, or to those whom a post names; and what becomes of
//! it when a server is away. Other rounds through followers (`modes`) go the same way.
//!
//! Invariant kept here: a home counts as reached only by a server that knows of the entry, and only once that lasts.

mod deliver;
mod ledger;
mod named;
mod recipients;
mod round;
mod task;

pub(crate) use ledger::Ledger;
pub(crate) use recipients::Recipients;
pub(crate) use round::{Round, Visit};
pub use task::FanoutState;
pub(crate) use task::{DeliverTask, state};
