//! Homes as the books keep them: a sorted set of post ids by time, cut after every delivery.

use tideline::cluster::{Batch, Command, Request};
use tideline::keys::slot_of_key;

use super::followers::home_key;
use super::system::Look;
use super::world::{old_entry, owner_id};
use crate::bench::Bench;

/// Homes filled in one batch.
const FILL_BATCH: usize = 300;

/// Makes homes of `cap` entries.
pub(crate) async fn fill(bench: &Bench, homes: u64, cap: u64) -> anyhow::Result<()> {
    let fills = (0..homes).map(|home| {
        let key = home_key(&bench.prefix, &owner_id(home)?.to_string());
        let mut add = Command::new("ZADD").arg(&key);
        // The newest first: each next one goes to the front, where Redis looks first.
        for entry in (0..cap).rev() {
            let (id, ms) = old_entry(home, entry);
            add.push(ms).push(id);
        }
        Ok(Request::write(slot_of_key(key.as_bytes()), add))
    });
    bench.run_all(fills, FILL_BATCH).await
}

/// What is in a home.
pub(crate) async fn look(bench: &Bench, home: u64, post_id: u64) -> anyhow::Result<Look> {
    let key = home_key(&bench.prefix, &owner_id(home)?.to_string());
    let slot = slot_of_key(key.as_bytes());
    let entries = bench.router.call(Request::read(slot, Command::new("ZCARD").arg(&key))).await?.count()?;
    let score = Command::new("ZSCORE").arg(&key).arg(post_id);
    let has_post = !bench.router.call(Request::read(slot, score)).await?.is_nil();
    Ok(Look { entries, has_post })
}

/// Adds one delivery: the post, then the cut.
pub(crate) fn deliver(batch: &mut Batch, home: &str, ms: u64, post_id: u64, cap: i64) {
    let slot = slot_of_key(home.as_bytes());
    batch.push(Request::write(slot, Command::new("ZADD").arg(home).arg(ms).arg(post_id)));
    let cut = Command::new("ZREMRANGEBYRANK").arg(home).arg(0_u64).arg(-cap - 1);
    batch.push(Request::write(slot, cut));
}
