//! Talking to a Redis Cluster.
//!
//! Here live the connections, the slot map, the router and the fence. What commands *mean* lives above:
//! nothing here knows a key or a function. Only `wire` names the Redis client crate.

pub(crate) mod wire;

pub use wire::{Command, NodeAddr, Reply};
