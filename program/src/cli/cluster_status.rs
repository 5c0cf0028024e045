//! The table of `tideline cluster status`.

use std::fmt::Display;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{ContentArrangement, Table};
use tideline_local_cluster::{ClusterStatus, NodeStatus};

const COLUMNS: [&str; 8] = ["address", "role", "pid", "slots", "replica of", "link", "offset", "memory"];

/// The table, and below it what is wrong and what to do.
pub(crate) fn render(status: &ClusterStatus) -> String {
    let mut table = Table::new();
    table
        .load_style(UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(COLUMNS);
    table.add_rows(status.nodes.iter().map(row));
    let mut lines = vec![table.to_string()];
    lines.extend(status.problems.iter().map(|problem| format!("problem: {problem}")));
    lines.extend(status.notes.iter().map(|note| format!("note: {note}")));
    if status.is_healthy() {
        lines.push("healthy: every slot is served, every replica in sync".into());
    }
    lines.join("\n")
}

fn row(node: &NodeStatus) -> [String; 8] {
    let slots: Vec<String> =
        node.slots.iter().map(|range| format!("{}-{}", range.start(), range.end())).collect();
    [
        node.addr.to_string(),
        node.role.to_owned(),
        or_dash(node.pid),
        if slots.is_empty() { "-".to_owned() } else { slots.join(" ") },
        or_dash(node.replica_of),
        or_dash(node.link.as_ref()),
        or_dash(node.offset),
        or_dash(node.memory.as_ref()),
    ]
}

fn or_dash(value: Option<impl Display>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}
