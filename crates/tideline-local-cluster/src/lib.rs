//! Real servers on loopback, for trying Tideline out and for tests: a Redis Cluster, and PostgreSQL for the archive.
//!
//! Here lives everything between "which servers, where" and "every slot is served": finding the server
//! program, ports, configuration, processes, joining and mending. What runs *on* a cluster does not.
//!
//! Three rules hold in this folder:
//! - A signal goes only to a process that was just seen to be the server of the node's own directory.
//! - What to do next is decided by `plan` and `health` from gathered facts, without I/O; the same
//!   decisions form a new cluster and mend a broken one.
//! - Nothing of a cluster without a directory of its own survives the process that started it, however that ends.
//!
//! ```no_run
//! use tideline_local_cluster::{ClusterSpec, LocalCluster};
//!
//! # async fn example() -> tideline_model::Result<()> {
//! let cluster = LocalCluster::up(ClusterSpec::ephemeral().replicas(1)).await?;
//! println!("{:?}", cluster.urls());
//! cluster.down().await
//! # }
//! ```

mod admin;
mod binary;
mod cluster;
mod conf;
mod down;
mod facts;
mod health;
mod home;
mod keeper;
mod mend;
mod moves;
mod node;
mod plan;
mod ports;
mod postgres;
mod preload;
mod process;
mod progress;
mod slots;
mod spec;
mod start;
mod status;
mod view;

pub use cluster::LocalCluster;
pub use health::Problem;
pub use node::LocalNode;
pub use postgres::{LocalPostgres, PostgresCopy};
pub use progress::Progress;
pub use spec::{ClusterSpec, TlsServerFiles};
pub use status::{ClusterStatus, NodeStatus};
