//! Facts that were found out about a node, once.

use std::collections::HashMap;

use super::view::NodeView;

/// Facts found out about a node.
pub(super) enum Facts {
    /// Its process does not run.
    Stopped,
    /// It runs and does not answer, for this reason.
    Silent(String),
    /// It reads its data.
    Loading,
    /// It answers.
    Live(Box<Live>),
}

/// Facts that an answering node tells.
pub(super) struct Live {
    /// `cluster_state:ok`.
    pub(super) is_ok: bool,
    pub(super) view: NodeView,
    /// INFO's sections server, persistence, replication and memory.
    pub(super) info: HashMap<String, String>,
}

impl Facts {
    pub(super) fn live(&self) -> Option<&Live> {
        match self {
            Self::Live(live) => Some(live),
            _ => None,
        }
    }
}

impl Live {
    pub(super) fn field(&self, name: &str) -> &str {
        self.info.get(name).map_or("", String::as_str)
    }

    /// Whether this node shares the slots, in its own eyes.
    pub(super) fn is_primary(&self) -> bool {
        self.view.me.is_primary
    }

    /// The newest epoch at which a node that it knows has got its slots.
    pub(super) fn newest_epoch(&self) -> u64 {
        self.view.others.iter().map(|peer| peer.epoch).fold(self.view.me.epoch, u64::max)
    }

    /// For a replica: the port of its primary.
    pub(super) fn primary_port(&self) -> Option<u16> {
        // Another node has no such line.
        self.field("master_port").parse().ok()
    }

    /// For a replica: whether it holds its primary's data and follows it.
    pub(super) fn is_in_sync(&self) -> bool {
        self.field("master_link_status") == "up" && self.field("master_sync_in_progress") == "0"
    }

    /// For a primary: how much it has written to its replicas, ever.
    pub(super) fn written(&self) -> u64 {
        self.field("master_repl_offset").parse().unwrap_or(0)
    }

    /// For a primary: how much of that each of its replicas has said to have.
    pub(super) fn replicas_written(&self) -> impl Iterator<Item = u64> {
        let replicas =
            self.info.iter().filter(|(key, line)| key.starts_with("slave") && line.contains("offset="));
        replicas.map(|(_, line)| {
            let said = line.split(',').find_map(|part| part.strip_prefix("offset="));
            said.and_then(|offset| offset.parse().ok()).unwrap_or(0)
        })
    }

    /// For a primary: whether the replica with that port is being fed.
    pub(super) fn feeds(&self, port: u16) -> bool {
        let port = format!("port={port},");
        self.info.iter().any(|(key, line)| {
            key.starts_with("slave") && line.contains(&port) && line.contains("state=online")
        })
    }
}
