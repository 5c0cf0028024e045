//! Archives for Tideline: where posts stand that have left memory.
//!
//! | archive | for | needs |
//! |---|---|---|
//! | [`SqliteArchive`] | one process; a file and nothing to install | a disk |
//! | [`PostgresArchive`] | any number of instances | PostgreSQL 13 or newer, or what speaks like it |
//!
//! Both keep the promises of [`Archive`], and the same tests hold them to it; [`copy()`] copies one into the other.
//! What is common to both is in `asked` (limits of a call), `rows` (numbers as SQL has them), `shares` (how many
//! readers one kind of question takes), `windows` (how far a search looks) and `migrations` (how tables come to be);
//! the rest of each stands in a folder of its own, because their SQL has little in common but its tables.
//!
//! ```
//! # async fn example() -> tideline_model::Result<()> {
//! use tideline_archive::{Archive as _, SqliteArchive};
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("posts.db");
//! let archive = SqliteArchive::open(&path).await?;
//! assert_eq!(archive.size().await?.posts, 0);
//! # Ok(())
//! # }
//! # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
//! ```

mod asked;
mod copy;
mod migrations;
mod postgres;
mod rows;
mod shares;
mod sqlite;
mod windows;

pub use copy::{ArchiveCopy, CopiedCount, copy};
pub use postgres::{PostgresArchive, PostgresSettings};
pub use sqlite::SqliteArchive;
pub use tideline_model::archive::Archive;
