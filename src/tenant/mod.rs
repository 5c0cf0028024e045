//! The tenant as all parts of an engine share it ([`Tenant`]), and what an instance knows of what the tenant has
//! decided: one whose own settings differ says so and goes by the tenant's.

mod answers;
mod archived;
mod counters;
mod handle;
mod known;
mod limits;
mod posts;

pub(crate) use answers::{Answers, Scan, scan_parts};
pub(crate) use archived::{LeftPost, MissingPost, Untold, archive_away, as_away, unread};
#[cfg(feature = "registration")]
pub(crate) use handle::not_known_to_last;
pub(crate) use handle::{Tenant, account_changed_always, changed_always, no_account, no_post};
pub(crate) use known::{KnownDecision, RecordLooks, known_to_a_tool, known_to_an_instance};
pub(crate) use limits::Refusals;
