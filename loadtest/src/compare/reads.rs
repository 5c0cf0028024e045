//! How often readers read, and what their pages found in the caches: what a pull costs depends on both.

use super::outcome::Row;
use crate::scenario::{Drive, Loop};

/// What each system's readers did.
pub(crate) fn told(rows: &[Row]) -> String {
    let of = |row: &Row| {
        let share =
            |share: Option<f64>| share.map_or("-".to_owned(), |share| format!("{:.0}", share * 100.0));
        let cached = [row.posts_cached, row.authors_cached, row.outboxes_cached].map(share).join("/");
        format!("{} {:.2} ({cached})", row.system.name(), row.reads_per_reader_second)
    };
    format!(
        "Reads of a reader in a second (% of posts/authors/outboxes that caches knew): {}",
        rows.iter().map(of).collect::<Vec<_>>().join(", ")
    )
}

/// What has to be known of a closed loop.
pub(crate) fn caveat(drive: &Drive) -> Option<String> {
    (drive.kind == Loop::Closed).then(|| {
        format!(
            "In a closed loop p50 and p99 are waiting times at saturation, with {} operations under way all the time; and readers come as \
             fast as they are answered, where real ones come less often and find less in the caches, so that a pull costs more. An open \
             loop with your own rates tells both (loop = \"open\").",
            drive.at_once
        )
    })
}
