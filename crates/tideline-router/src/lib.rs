//! Talking to a Redis Cluster; of the crate `tideline`, which users import, this is the module `cluster`.
//!
//! Here live the connections, the slot map, the router and the fence. What commands *mean* lives above:
//! nothing here knows a function, or a key but the fence's. Only `wire` names the Redis client crate.
//!
//! Invariants kept here: a command is repeated alone, never with its pipeline; what touches undeclared keys never
//! goes with ASKING; commands of an ordered group never overtake each other; every wait ends at a deadline.
//!
//! What the pages don't show (`doc(hidden)`) is for the crates of this workspace: it may change with any release.

mod batch;
mod clock;
mod epoch;
mod facts;
mod fence;
mod fence_again;
#[doc(hidden)]
pub mod keys;
mod library;
mod load;
mod map_outage;
mod meters;
mod node;
mod presence;
mod program;
mod refresh;
mod router;
mod run;
mod seed;
mod settings;
mod tenure;
mod told_clocks;
mod topology;
mod verdict;
mod view;
#[doc(hidden)]
pub mod wire;

pub use batch::{Answer, Batch, Request};
pub use epoch::Epoch;
pub use facts::{Finding, ListpackLimits, Severity, Version};
pub use fence::{FenceOutcome, TouchedServers};
pub use library::Library;
pub use program::{Allocator, ServerProgram, describe_programs};
pub use router::Router;
pub use seed::Seed;
pub use settings::{Replicas, RouterSettings};
pub use wire::{Command, NodeAddr, Reply, TlsFiles, ToArg};

pub use {
    batch::Traits,
    fence::expect_a_fence,
    fence_again::FenceTries,
    presence::{impatiently, is_impatient},
};
