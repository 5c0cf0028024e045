//! Tideline: sharded sorted sets and hybrid push/pull home timelines on Redis Cluster.

pub mod cluster;
pub mod error;
pub use error::{Error, ErrorKind};
