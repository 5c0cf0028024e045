//! How often readers read, and what their pages found in the caches: what a pull costs depends on both.

use super::outcome::Row;
use crate::scenario::Loop;

/// Said once below all figures of a closed loop.
pub(crate) const CAVEAT: &str = "In a closed loop readers come as fast as they are answered; real ones come less often, find less in the caches, \
     and then a pull costs more and a page takes less: an open loop with your own rates tells (loop = \"open\").";

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

/// What has to be known of such a loop.
pub(crate) fn caveat(kind: Loop) -> Option<&'static str> {
    (kind == Loop::Closed).then_some(CAVEAT)
}
