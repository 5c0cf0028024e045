//! Tests against a real Redis Cluster, which they start themselves on free loopback ports.
//!
//! One binary, so that most tests share one cluster: each has a key prefix of its own. Those that break a cluster
//! start their own. `TIDELINE_REDIS_SERVER` names another server binary than the one on the path.

#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "../support/bus.rs"]
mod bus;
mod harness;
#[path = "../support/program.rs"]
mod program;

mod access;
mod clock;
mod clocks;
mod engine;
mod faults;
mod fences;
mod frozen;
mod moves;
mod partitions;
mod programs;
mod router;
mod secrets;
mod sets;
#[path = "../support/skew.rs"]
mod skew;
#[path = "../support/sources.rs"]
mod sources;
mod spreading;
