//! The values under keys, read: posts, accounts' records, profiles, entries of homes.

mod account;
mod agenda;
mod archived;
mod home;
mod post;
mod public;
mod telling;

pub(crate) use account::profile_of;
/// The top bit of an id in an outbox: its post was deleted.
pub(crate) const DELETED: u64 = 1 << 63;

pub(crate) use agenda::AgendaEntry;
pub(crate) use archived::{ArchiveFloor, behind};
pub(crate) use home::{HOME_ENTRY_LEN, home_entry};
pub(crate) use post::{LeftOutCounter, StoredPost, Unreadable, is_of_another_type, unless_of_another_type};
pub(crate) use public::{PUBLIC_ENTRY_LEN, public_entries};
pub(crate) use telling::RareTelling;
