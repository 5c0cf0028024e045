//! Settings of a router, with the one place where each default stands.

use std::time::Duration;

use super::wire::TlsFiles;
use tideline_model::error::{Error, Result};

/// A rule for fences at a primary that should have replicas and has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Replicas {
    /// The cluster runs without replicas on purpose: nothing to wait for, fences are skipped.
    Absent,
    /// Go on without them, and count it: availability before durability.
    #[default]
    Preferred,
    /// Hold: a fence fails until a replica is back. Durability before availability.
    Required,
}

impl Replicas {
    /// All of them, with the names by which they are written down.
    #[doc(hidden)]
    pub const NAMED: [(&str, Self); 3] =
        [("absent", Self::Absent), ("preferred", Self::Preferred), ("required", Self::Required)];
}

/// Settings of a [`Router`](super::Router). Every duration and bound has its reason beside it.
#[derive(Debug, Clone)]
pub struct RouterSettings {
    /// Certificates of `rediss://` connections.
    pub tls: TlsFiles,
    /// Connections per node that carry commands. One is fastest on few cores (its commands leave together);
    /// more help when a single connection's loops saturate a core of the client.
    pub connections_per_node: usize,
    /// Longest time to open a connection.
    pub connect_timeout: Duration,
    /// Longest wait for the replies of one pipeline. Lower: a frozen node is noticed sooner. Higher: a node that
    /// pauses (fork, swap) is not mistaken for a dead one.
    pub response_timeout: Duration,
    /// After this long no new try is made; one under way may last a connection's and a response's timeout more.
    /// It should outlast a failover: the cluster's `cluster-node-timeout` (the servers' default is 15 s) and an
    /// election of a second or two.
    pub deadline: Duration,
    /// Commands in one pipeline. Redis reads 16 KiB at a time: longer ones gain nothing.
    pub pipeline_length: usize,
    /// Commands under way at one node, over all callers. Beyond it callers wait, at most for their deadline.
    pub in_flight_per_node: usize,
    /// First and longest pause between two tries; each is drawn at random from its upper half.
    pub backoff: (Duration, Duration),
    /// The time between two looks at the slot map without any reason.
    pub refresh_period: Duration,
    /// The rule for fences without replicas. Of an engine it is the tenant's (`TenantSettings`).
    pub replicas: Replicas,
    /// Longest wait for replicas in one fence; once more for those that came back since the last look at the slot map.
    pub fence_timeout: Duration,
}

impl Default for RouterSettings {
    fn default() -> Self {
        Self {
            tls: TlsFiles::default(),
            connections_per_node: 1,
            connect_timeout: Duration::from_millis(1_000),
            response_timeout: Duration::from_millis(1_000),
            deadline: Duration::from_secs(20),
            pipeline_length: 500,
            in_flight_per_node: 20_000,
            backoff: (Duration::from_millis(2), Duration::from_millis(200)),
            refresh_period: Duration::from_secs(5),
            replicas: Replicas::default(),
            fence_timeout: Duration::from_millis(500),
        }
    }
}

impl RouterSettings {
    /// Checks every bound, and those that must fit together.
    pub(crate) fn check(&self) -> Result<()> {
        match self.broken_rule() {
            Some(rule) => Err(Error::invalid(format!("router settings: {rule}; they are {self:?}"))),
            None => Ok(()),
        }
    }

    /// The first bound that isn't kept; its text names the settings concerned.
    #[doc(hidden)]
    pub fn broken_rule(&self) -> Option<&'static str> {
        let rules = [
            ((1..=64).contains(&self.connections_per_node), "connections_per_node must be 1 to 64"),
            ((1..=10_000).contains(&self.pipeline_length), "pipeline_length must be 1 to 10,000"),
            (
                self.in_flight_per_node >= self.pipeline_length && self.in_flight_per_node <= 1_000_000,
                "in_flight_per_node must hold one pipeline (pipeline_length) and be at most 1,000,000",
            ),
            (!self.connect_timeout.is_zero(), "connect_timeout must not be zero"),
            (!self.response_timeout.is_zero(), "response_timeout must not be zero"),
            (self.response_timeout < self.deadline, "deadline must be longer than response_timeout"),
            (
                !self.backoff.0.is_zero() && self.backoff.0 <= self.backoff.1,
                "backoff must run from above 0 upwards",
            ),
            (self.backoff.1 < self.deadline, "the longest backoff must be below deadline"),
            (!self.refresh_period.is_zero(), "refresh_period must not be zero"),
            (
                !self.fence_timeout.is_zero() && self.fence_timeout < self.response_timeout,
                "fence_timeout must be above zero and below response_timeout",
            ),
        ];
        rules.iter().find(|(holds, _)| !holds).map(|(_, rule)| *rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_fit_together() {
        RouterSettings::default().check().unwrap();
    }

    #[test]
    fn refuses_settings_that_do_not_fit_together() {
        let base = RouterSettings::default;
        let wrong = [
            RouterSettings { connections_per_node: 0, ..base() },
            RouterSettings { in_flight_per_node: 100, ..base() },
            RouterSettings { deadline: Duration::from_millis(500), ..base() },
            RouterSettings { backoff: (Duration::from_secs(2), Duration::from_secs(1)), ..base() },
            RouterSettings { fence_timeout: Duration::from_secs(2), ..base() },
        ];
        for settings in wrong {
            assert_eq!(settings.check().unwrap_err().kind(), tideline_model::ErrorKind::Invalid);
        }
    }
}
