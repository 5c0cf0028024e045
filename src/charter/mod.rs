//! A tenant's record, under slot 0: how its data is laid out, and what the tenant has decided, the settings under which
//! anything of its data is taken away for good.
//!
//! They are the tenant's, not an instance's: they stand in its record, with a number, and in a key of each bucket, so
//! that functions which remove compare their caller's decision with that of their own bucket. Here lives the layout
//! (`layout`), what a decision is, and a change of it (`decision`, `change`, pure), where it stands (`record`), and
//! what becomes of a record that is gone (`lost`). What an instance knows of it: `tenant`. What a decision would
//! remove, and the command's part: `engine/decide.rs`.
//!
//! Invariants kept here: a decision only ever gives way to one with a higher number, which no bucket knows yet; and
//! nobody decides by the way but who begins a tenant, in the step that begins it.

mod change;
mod decision;
mod layout;
mod lost;
mod record;

pub use change::TenantChange;
pub use decision::{Decision, TenantArchive, TenantSettings};
pub use layout::FORMAT;
pub(crate) use layout::{NewTenantRule, charter};
pub(crate) use lost::{check_change, other_decision, restore};
pub(crate) use record::{
    drawn_archive, found, has_notifications, note_notifications, remind_buckets, tell_buckets,
    tell_what_stands, told, write,
};
