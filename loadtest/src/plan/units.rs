//! What one of each thing costs: measured on this machine, or as it was measured for docs/benchmarks.md.

use std::path::Path;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

/// CPU time in microseconds and bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Units {
    /// Where they are from.
    pub(crate) source: String,
    /// CPU of the servers and of the client.
    pub(crate) publish_us: [f64; 2],
    pub(crate) delivery_us: [f64; 2],
    /// A follower who has no home.
    pub(crate) skipped_us: [f64; 2],
    /// A page of 20 with posts and authors.
    pub(crate) read_us: [f64; 2],
    /// One more pulled author of a page, from the cache.
    pub(crate) pull_us: [f64; 2],
    /// A look at an outbox that is in no cache.
    pub(crate) look_us: [f64; 2],
    /// A follow, its completion included.
    pub(crate) follow_us: [f64; 2],
    /// A follower of an account that becomes pulled, once.
    pub(crate) promote_us: [f64; 2],
    /// One guaranteed entry of a home, all of the home's own included.
    pub(crate) home_entry_bytes: f64,
    /// A follow on one of its two sides.
    pub(crate) edge_bytes: f64,
    pub(crate) mark_bytes: f64,
    pub(crate) account_bytes: f64,
    /// A post with its place in the outbox.
    pub(crate) post_bytes: f64,
    /// On the wire, as far as servers send and receive it.
    pub(crate) delivery_wire_bytes: f64,
    pub(crate) publish_wire_bytes: f64,
    pub(crate) read_wire_bytes: f64,
}

impl Default for Units {
    /// Two cores, Redis 7.0.15, three primaries, loopback: docs/benchmarks.md.
    fn default() -> Self {
        Self {
            source: "docs/benchmarks.md (2 cores, Redis 7.0.15, three primaries)".to_owned(),
            publish_us: [76.1, 49.8],
            delivery_us: [7.9, 1.3],
            skipped_us: [1.0, 0.6],
            read_us: [25.3, 47.4],
            pull_us: [0.0, 0.5],
            look_us: [4.0, 5.0],
            follow_us: [293.0, 109.0],
            promote_us: [6.6, 0.1],
            home_entry_bytes: 21.0,
            edge_bytes: 23.0,
            mark_bytes: 24.0,
            account_bytes: 250.0,
            post_bytes: 440.0,
            delivery_wire_bytes: 90.0,
            publish_wire_bytes: 900.0,
            read_wire_bytes: 1_300.0,
        }
    }
}

impl Units {
    /// Those that `loadtest scale --json FILE` has measured.
    pub(crate) fn read(file: &Path) -> anyhow::Result<Self> {
        #[derive(Deserialize)]
        struct Scale {
            units: Option<Units>,
        }
        let text =
            std::fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
        let scale: Scale = serde_json::from_str(&text)
            .with_context(|| format!("{} is no result of `loadtest scale --json`", file.display()))?;
        scale
            .units
            .with_context(|| format!("{} has no units: they were left out of that run", file.display()))
    }
}
