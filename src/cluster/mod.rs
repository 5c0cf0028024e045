//! Talking to a Redis Cluster.
//!
//! Here live the connections, the slot map, the router and the fence. What commands *mean* lives above:
//! nothing here knows a function, or a key but the fence's. Only `wire` names the Redis client crate.
//!
//! Invariants kept here: a command is repeated alone, never with its pipeline; what touches undeclared keys never
//! goes with ASKING; commands of an ordered group never overtake each other; every wait ends at a deadline.

mod batch;
mod clock;
mod epoch;
mod facts;
mod fence;
mod fence_again;
mod library;
mod load;
mod meters;
mod node;
mod presence;
mod refresh;
mod router;
mod run;
mod seed;
mod settings;
#[cfg(test)]
pub(crate) mod simulated;
mod tenure;
mod topology;
mod verdict;
mod view;
pub(crate) mod wire;

pub use batch::{Answer, Batch, Request};
pub use epoch::Epoch;
pub use facts::{Finding, ListpackLimits, Severity, Version};
#[cfg(test)]
pub(crate) use fence::expect_a_fence;
pub use fence::{FenceOutcome, Touched};
pub use library::Library;
pub(crate) use presence::impatiently;
#[cfg(test)]
pub(crate) use presence::is_impatient;
pub use router::Router;
pub use seed::Seed;
pub use settings::{Replicas, RouterSettings};
pub use wire::{Command, NodeAddr, Reply, TlsFiles, ToArg};
