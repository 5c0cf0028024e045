//! Counters of all instances, by the hash of what is counted.

use std::time::Duration;

use super::Tenant;
use crate::cluster::{Command, Request};
use crate::error::Result;
use crate::functions::{counter_add, parse_counter};

impl Tenant {
    /// Counts so many more, and tells how many there are then. A counter that isn't there lasts so long from then on.
    pub(crate) async fn count_up(&self, hash: &[u8; 16], more: u32, lasts: Duration) -> Result<u64> {
        let keys = self.keys();
        let slot = keys.buckets().slot(keys.bucket_of_counter(hash));
        // Sent once: a copy would count twice, and a count that is lost does less harm.
        let answer = self.once(slot, counter_add(keys.counter(hash), more, lasts)).await?;
        parse_counter(&answer.ok()?)
    }

    /// The time that a counter lasts from now on; nothing: it isn't there.
    pub(crate) async fn counter_lasts(&self, hash: &[u8; 16]) -> Result<Duration> {
        let keys = self.keys();
        let slot = keys.buckets().slot(keys.bucket_of_counter(hash));
        let left = Command::new("PTTL").arg(&keys.counter(hash));
        let left = self.router().call(Request::read(slot, left)).await?.int()?;
        Ok(Duration::from_millis(u64::try_from(left).unwrap_or_default()))
    }
}
