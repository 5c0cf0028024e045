//! Text search: which posts have which words is known by the tenant's archive, if that was begun with search.
//!
//! Here: bringing the index in line with a post, as it is now (`settle`), by a task (`job`), or all of them on demand;
//! and asking it (`find`). Not here: what a word is (`post`), who may see a post that was found (`timeline`), how an
//! archive finds one.
//!
//! Invariant: a post is read after the version was that its index had, and that version is compared when the index is
//! changed. So it says of a post what was so after it was last changed by anybody: nothing is overwritten by what is
//! older, and nothing comes back that was taken out.

mod find;
mod job;
mod settle;

pub(crate) use find::{find, is_searched};
pub(crate) use job::{IndexTask, IndexTasks};
use settle::Indexer;
pub(crate) use settle::{POSTS_AT_ONCE, is_found_by_all, settle};
