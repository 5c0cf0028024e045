//! Going through all keys of the tenant, a small step at a time: nobody waits for it.

use std::collections::HashSet;
use std::time::Duration;

use super::key::{bucket_of, pattern};
use crate::bucket::Bucket;
use crate::cluster::{Command, NodeAddr};
use crate::error::{Error, Result};
use crate::tenant::{Tenant, scan_parts};

/// Keys of a server that one step passes.
const KEYS_PER_STEP: u32 = 500;
/// Steps in a row that may fail, and the pause after each: a failover takes less.
const FAILURES_MAX: u32 = 40;
const PAUSE: Duration = Duration::from_millis(500);

/// A walk through some buckets: server after server. A server that fails, or gives buckets away meanwhile, is gone
/// through again for what is still open.
#[derive(Debug)]
pub(crate) struct KeyWalk {
    open: HashSet<Bucket>,
    at: Option<KeyWalkPosition>,
    failures: u32,
}

/// The position of the walk.
#[derive(Debug)]
struct KeyWalkPosition {
    node: NodeAddr,
    cursor: String,
    buckets: HashSet<Bucket>,
}

impl KeyWalk {
    pub(crate) fn new(buckets: impl Iterator<Item = Bucket>) -> Self {
        Self { open: buckets.collect(), at: None, failures: 0 }
    }

    /// The next keys of its buckets, often none; `None`: that was all. A key may come twice.
    pub(crate) async fn step(&mut self, tenant: &Tenant) -> Result<Option<Vec<Vec<u8>>>> {
        loop {
            if self.open.is_empty() {
                return Ok(None);
            }
            match self.try_step(tenant).await {
                Ok(keys) => {
                    self.failures = 0;
                    return Ok(Some(keys));
                }
                // What trying again does not mend, a right that is missing say, is told at once.
                Err(e) if self.failures >= FAILURES_MAX || !e.kind().is_retryable() => return Err(e),
                Err(e) => {
                    tracing::debug!("a step through the keys failed: {e}");
                    self.failures += 1;
                    self.at = None;
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn try_step(&mut self, tenant: &Tenant) -> Result<Vec<Vec<u8>>> {
        let (router, keys) = (tenant.router(), tenant.keys());
        let owner = |bucket: &Bucket| router.owner(keys.buckets().slot(*bucket));
        let at = match &mut self.at {
            Some(at) => at,
            none => {
                let first = self.open.iter().min().and_then(owner);
                let node = first.ok_or_else(|| Error::unavailable("a slot that nobody serves"))?;
                let buckets =
                    self.open.iter().filter(|b| owner(b).as_ref() == Some(&node)).copied().collect();
                none.insert(KeyWalkPosition { node, cursor: "0".into(), buckets })
            }
        };
        let scan = Command::new("SCAN").arg(&*at.cursor).arg("MATCH").arg(pattern(keys.prefix()));
        let page = router.ask_node(&at.node, scan.arg("COUNT").arg(KEYS_PER_STEP)).await?;
        let (next, found) = scan_parts(page)?;
        let mut met = Vec::new();
        for key in found {
            let key = key.bytes()?.to_vec();
            // Keys of no bucket come with those of the first.
            let bucket = bucket_of(keys, &key).unwrap_or(Bucket(0));
            if at.buckets.contains(&bucket)
                || bucket_of(keys, &key).is_none() && self.open.contains(&Bucket(0))
            {
                met.push(key);
            }
        }
        if let Some(next) = next {
            at.cursor = next;
        } else if let Some(KeyWalkPosition { node, buckets, .. }) = self.at.take() {
            self.open.retain(|bucket| !(buckets.contains(bucket) && owner(bucket).as_ref() == Some(&node)));
        }
        Ok(met)
    }
}

/// About how many keys all servers have, of all tenants.
pub(super) async fn keys_of_all(tenant: &Tenant) -> u64 {
    let sizes = tenant.router().ask_primaries(&Command::new("DBSIZE")).await;
    sizes.into_iter().filter_map(|(_, size)| size.ok()?.count().ok()).sum()
}
