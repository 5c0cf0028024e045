//! The router's metrics: every name in one place. docs/metrics.md lists them with their units.

use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

use super::verdict::Cause;
use super::wire::NodeAddr;

/// Handles of one node's metrics, made once: looking them up for each pipeline would cost more than sending it.
pub(crate) struct NodeMeters {
    pub(crate) commands: Counter,
    pub(crate) batches: Counter,
    pub(crate) batch_seconds: Histogram,
    pub(crate) in_flight: Gauge,
    pub(crate) connects: Counter,
    pub(crate) connect_failures: Counter,
    /// Pipelines that found no room below the bound before their deadline.
    pub(crate) overloads: Counter,
    retries: [Counter; Cause::ALL.len()],
}

impl NodeMeters {
    pub(crate) fn new(addr: &NodeAddr) -> Self {
        let node = addr.to_string();
        Self {
            commands: counter!("tideline_redis_commands_total", "node" => node.clone()),
            batches: counter!("tideline_redis_batches_total", "node" => node.clone()),
            batch_seconds: histogram!("tideline_redis_batch_seconds", "node" => node.clone()),
            in_flight: gauge!("tideline_redis_in_flight_commands", "node" => node.clone()),
            connects: counter!("tideline_redis_connects_total", "node" => node.clone()),
            connect_failures: counter!("tideline_redis_connect_failures_total", "node" => node.clone()),
            overloads: counter!("tideline_redis_overloads_total", "node" => node.clone()),
            retries: Cause::ALL.map(
                |c| counter!("tideline_redis_retries_total", "node" => node.clone(), "cause" => c.label()),
            ),
        }
    }

    /// Commands that a reply left unfinished, and pipelines that got none; redirects are `moved` and `ask`.
    pub(crate) fn retry(&self, cause: Cause) {
        self.retries[cause as usize].increment(1);
    }
}

/// Commands for whose slot the map names no node.
pub(crate) fn unserved(commands: usize) {
    counter!("tideline_redis_retries_total", "node" => "none", "cause" => Cause::Unserved.label())
        .increment(commands as u64);
}

/// Counts a look at the slot map, by how it ended.
pub(crate) fn refresh(outcome: &'static str) {
    counter!("tideline_slot_map_refreshes_total", "outcome" => outcome).increment(1);
}

/// A primary restarted in place.
pub(crate) fn restarted(addr: &NodeAddr) {
    counter!("tideline_primary_restarts_total", "node" => addr.to_string()).increment(1);
}

/// Counts a fence's round at one node, by how it ended.
pub(crate) fn fence_round(outcome: &'static str) {
    counter!("tideline_fence_rounds_total", "outcome" => outcome).increment(1);
}

/// Somebody waits for a fence, until this is dropped.
pub(crate) struct FenceWaiting(Gauge);

impl FenceWaiting {
    pub(crate) fn begin() -> Self {
        let waiting = gauge!("tideline_fences_waiting");
        waiting.increment(1.0);
        Self(waiting)
    }
}

impl Drop for FenceWaiting {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

/// Notes how far a node's clock is from the median of the primaries' clocks.
pub(crate) fn clock_skew(addr: &NodeAddr, seconds: f64) {
    gauge!("tideline_redis_clock_skew_seconds", "node" => addr.to_string()).set(seconds);
}

/// Notes how far this instance's own wall clock is from the median of the primaries' clocks.
pub(crate) fn own_clock_skew(seconds: f64) {
    gauge!("tideline_clock_skew_seconds").set(seconds);
}
