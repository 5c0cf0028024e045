//! What a tenant has decided: the settings under which anything of its data is taken away for good.
//!
//! They are the tenant's, not an instance's: they stand in its record, with a number, and in a key of each bucket, so that
//! functions which remove compare their caller's decision with that of their own bucket. An instance whose own settings
//! differ says so and goes by the tenant's. Here lives what a decision is, and
//! a change of it (`decision`, `change`, pure), where it stands (`record`),
//! what an instance knows of it (`known`), and what becomes of a record that is gone (`lost`). What a decision would remove,
//! and the command's part: `engine/decide.rs`.
//!
//! Invariants kept here: a decision only ever gives way to one with a higher number, which no bucket knows yet; and nobody
//! decides by the way but who begins a tenant, in the step that begins it.

mod change;
mod decision;
mod handle;
mod known;
mod lost;
mod record;

pub use change::TenantChange;
pub use decision::{Decision, TenantSettings};
pub(crate) use handle::{Tenant, changed_always, no_account, no_post};
pub(crate) use known::{Known, RecordLooks, known_to_a_tool, known_to_an_instance};
pub(crate) use lost::{check_change, is_known, other_decision, record_is_gone, restore};
pub(crate) use record::{begin, tell_buckets, tell_what_stands, write};
