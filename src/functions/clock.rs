//! Ids and ticks of a bucket.

use super::fcall;
use crate::bucket::Bucket;
use crate::cluster::{Batch, Request, Router};
use crate::error::{Error, Result};
use crate::ids::{PostId, sequences};
use crate::keys::Keyspace;

/// Most ids or ticks that one call takes.
const TAKE_MAX: u32 = 10_000;

/// Hands out post ids and ticks, each strictly above the last of its bucket, whoever asks and whatever clocks do.
#[derive(Debug, Clone)]
pub struct Clock {
    router: Router,
    keys: Keyspace,
}

impl Clock {
    /// The clocks of that keyspace's buckets.
    pub fn new(router: Router, keys: Keyspace) -> Self {
        Self { router, keys }
    }

    /// Takes `count` ids of a bucket, ascending: of now, by the median of the primaries' clocks, and above all before.
    /// A reply that got lost leaves a gap, never a double.
    pub async fn post_ids(&self, bucket: Bucket, count: u32) -> Result<Vec<PostId>> {
        let (buckets, unix_ms) = (self.keys.buckets(), self.router.now_ms());
        let per_ms = sequences(buckets);
        let command =
            fcall("clock_ids", &[self.keys.clock(bucket)]).arg(unix_ms).arg(per_ms).arg(check(count)?);
        let reply = self.router.call(Request::write(buckets.slot(bucket), command)).await?;
        let first = reply.into_array()?;
        let [ms, sequence] = first.as_slice() else {
            return Err(Error::internal("clock_ids answered something else than two numbers"));
        };
        let (ms, sequence) = (ms.count()?, sequence.count()?);
        let nth =
            |n: u64| PostId::new(buckets, bucket, ms + (sequence + n) / per_ms, (sequence + n) % per_ms);
        (0..u64::from(count)).map(nth).collect()
    }

    /// Takes `count` ticks of a bucket, ascending: milliseconds below 2^53, fit to be scores.
    pub async fn ticks(&self, bucket: Bucket, count: u32) -> Result<Vec<u64>> {
        let first = self.router.call(self.ticks_request(bucket, count)?).await?.count()?;
        Ok((first..).take(count as usize).collect())
    }

    /// Takes one tick of each bucket, all in one batch.
    pub async fn tick_each(&self, buckets: &[Bucket]) -> Result<Vec<u64>> {
        let batch: Batch = buckets.iter().map(|b| self.ticks_request(*b, 1)).collect::<Result<_>>()?;
        self.router.run(batch).await.into_iter().map(|answer| answer?.ok()?.count()).collect()
    }

    fn ticks_request(&self, bucket: Bucket, count: u32) -> Result<Request> {
        let command = fcall("clock_ticks", &[self.keys.clock(bucket)]).arg(check(count)?);
        let command = command.arg(self.router.now_ms());
        Ok(Request::write(self.keys.buckets().slot(bucket), command))
    }
}

fn check(count: u32) -> Result<u32> {
    if count == 0 || count > TAKE_MAX {
        return Err(Error::out_of_range(format!("ids to take: {count}; 1 to {TAKE_MAX} are allowed")));
    }
    Ok(count)
}
