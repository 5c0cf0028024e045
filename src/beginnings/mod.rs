//! Accounts and hashtags by the beginnings of their names, as somebody types them: lists of who is called so, one for
//! each beginning, in the bucket of its hash.
//!
//! All of them are derived, and hints: of an account its record and profile say how it is called, and whoever reads a
//! list asks them. A list keeps [`LISTED_MAX`] names, those with most followers (or posts), and of equals who came
//! last. Whole logins are found by their claims, not here.
//!
//! Invariants kept here: whoever changes a name has first noted a task that lists it (`job`), so a name that was
//! acknowledged is listed, whoever dies; nobody is shown who isn't called so now.

mod find;
mod grown;
mod job;
mod letters;
mod list;

pub(crate) use find::{ListedName, drop_needless, listed};
pub(crate) use grown::{GrownAccounts, NameRanks};
#[cfg(feature = "registration")]
pub(crate) use job::words_of;
pub(crate) use job::{NameTask, missing_from};
#[cfg(feature = "registration")]
pub(crate) use letters::TypedName;
pub(crate) use letters::{Beginning, beginning_of};
pub(crate) use list::list_hashtag;

/// Names on one list.
pub(crate) const LISTED_MAX: usize = 100;
