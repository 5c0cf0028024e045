//! Tideline: sharded sorted sets and hybrid push/pull home timelines on Redis Cluster.

pub mod bucket;
pub mod cluster;
pub mod error;
pub mod ids;
pub mod keys;
pub mod local_cluster;
pub use error::{Error, ErrorKind, Result};
