//! The things that all crates of Tideline speak of: errors, buckets, ids, and what an archive is asked. No I/O and no
//! clock.
//!
//! Of the crate `tideline`, which users import, these are the modules `error`, `bucket` and `ids`.
//!
//! What the pages don't show (`doc(hidden)`) is for the crates of this workspace: it may change with any release.

pub mod archive;
pub mod bucket;
pub mod error;
pub mod ids;

pub use error::{Error, ErrorKind, Result};
