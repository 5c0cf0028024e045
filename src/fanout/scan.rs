//! Searching the journals for work that somebody left: an instance that died, or a write of ours whose reply was lost.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};

use super::entry::Entry;
use super::executor::{accept, reserve};
use super::lease::living;
use super::riders;
use crate::bucket::{Bucket, mix64};
use crate::cluster::{Answer, Command, Reply, Request};
use crate::context::Context;
use crate::error::Result;
use crate::functions::{self, Mark};
use crate::meters;

/// Entries asked for at once.
const SCAN_COUNT: u32 = 256;
/// Every so many scans an instance looks at all buckets: its own entries may stand anywhere.
const ALL_EVERY: u64 = 8;

/// Scans until the engine is gone or stopped.
pub(crate) async fn keep_scanning(context: Weak<Context>) {
    let mut absent = HashMap::new();
    for round in 1u64.. {
        let Some(period) = context.upgrade().map(|c| c.settings.scan_period) else { return };
        tokio::time::sleep(period).await;
        let Some(context) = context.upgrade() else { return };
        if context.tasks.is_stopping() {
            return;
        }
        // What could not be sent, or waits for a fan-out that hangs.
        riders::send_all(&context);
        if let Err(e) = scan(&context, round, &mut absent).await {
            tracing::warn!("searching the journals failed: {e}");
        }
    }
}

/// One scan. `absent`: since which round an owner has been seen without a lease.
async fn scan(context: &Arc<Context>, round: u64, absent: &mut HashMap<Mark, u64>) -> Result<()> {
    let mut living = living(context).await?;
    living.insert(context.instance);
    context.traffic.instances_are(living.len());
    let all = round.is_multiple_of(ALL_EVERY);
    let buckets: Vec<Bucket> =
        context.keys().buckets().all().filter(|b| all || is_ours(&living, context.instance, *b)).collect();
    let mut depth = 0;
    let mut seen: HashSet<Mark> = HashSet::new();
    for (bucket, length) in lengths(context, &buckets).await {
        // A dead node keeps its own buckets waiting, not those of the others.
        let Ok(length) = length else { continue };
        depth += length;
        if length == 0 {
            continue;
        }
        let mine = is_ours(&living, context.instance, bucket);
        let Ok(entries) = entries(context, bucket).await else { continue };
        for entry in entries {
            if context.tasks.knows(bucket, entry.id) || context.tasks.is_stopping() {
                continue;
            }
            let is_own = entry.owner == context.instance;
            if !is_own {
                if !mine || living.contains(&entry.owner) {
                    continue;
                }
                seen.insert(entry.owner);
                if *absent.entry(entry.owner).or_insert(round) == round {
                    continue;
                }
            }
            // What finds no room is left for the next look.
            let Ok(_place) = reserve(context, 1) else { continue };
            if is_own {
                meters::task_recovered("own");
                accept(context, entry);
            } else if let Err(e) = claim(context, entry).await {
                tracing::debug!("an entry of bucket {bucket} could not be claimed: {e}");
            }
        }
    }
    absent.retain(|owner, _| seen.contains(owner));
    if !all {
        meters::journal_depth(depth);
    }
    Ok(())
}

/// Which instance searches a bucket: the living one whose name and bucket mix highest.
fn is_ours(living: &HashSet<Mark>, instance: Mark, bucket: Bucket) -> bool {
    let weight = |name: &Mark| mix64(u64::from_be_bytes(*name) ^ mix64(u64::from(bucket.index())));
    living.iter().max_by_key(|name| (weight(name), **name)).is_none_or(|name| *name == instance)
}

/// How many entries the journals of these buckets hold.
pub(crate) async fn lengths(context: &Context, buckets: &[Bucket]) -> Vec<(Bucket, Result<u64>)> {
    let request = |bucket: &Bucket| {
        let command = Command::new("HLEN").arg(&context.keys().journal(*bucket));
        Request::read(context.keys().buckets().slot(*bucket), command)
    };
    let answers = context.router().run(buckets.iter().map(request).collect()).await;
    let length = |answer: Result<Answer>| answer?.ok()?.count();
    buckets.iter().zip(answers).map(|(bucket, answer)| (*bucket, length(answer))).collect()
}

/// How many entries all journals hold.
pub(crate) async fn journal_depth(context: &Context) -> Result<u64> {
    let buckets: Vec<Bucket> = context.keys().buckets().all().collect();
    lengths(context, &buckets).await.into_iter().map(|(_, length)| length).sum()
}

/// What stands in a bucket's journal; entries that come meanwhile may be missed, the next scan finds them.
pub(crate) async fn entries(context: &Context, bucket: Bucket) -> Result<Vec<Entry>> {
    let slot = context.keys().buckets().slot(bucket);
    let mut entries = Vec::new();
    let mut cursor = "0".to_owned();
    // A hash of so many entries is gone through in fewer calls than this.
    for _ in 0..=context.settings.journal_max {
        let command = Command::new("HSCAN").arg(&context.keys().journal(bucket)).arg(&*cursor);
        let command = command.arg("COUNT").arg(SCAN_COUNT);
        let page = context.router().call(Request::read(slot, command)).await?.into_array()?;
        let mut page = page.into_iter();
        cursor = page.next().map(|c| c.text().map(str::to_owned)).transpose()?.unwrap_or_else(|| "0".into());
        let flat = page.next().map(Reply::into_array).transpose()?.unwrap_or_default();
        for pair in flat.chunks_exact(2) {
            match Entry::parse(bucket, pair[0].bytes()?, pair[1].bytes()?) {
                Ok(entry) => entries.push(entry),
                // A later release's, most likely: its instances carry it out.
                Err(e) => tracing::warn!("{e}"),
            }
        }
        if cursor == "0" {
            break;
        }
    }
    Ok(entries)
}

/// Takes an entry over, if its owner has it still, and runs it.
pub(crate) async fn claim(context: &Arc<Context>, entry: Entry) -> Result<()> {
    let journal = context.keys().journal(entry.bucket);
    let command = functions::journal_claim(journal, &entry.id, &entry.owner, &context.instance);
    let slot = context.keys().buckets().slot(entry.bucket);
    let value = context.router().call(Request::write(slot, command)).await?;
    if !value.is_nil() {
        meters::task_recovered("claimed");
        accept(context, Entry::parse(entry.bucket, &entry.id, value.bytes()?)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bucket_is_searched_by_exactly_one_of_the_living() {
        let living: HashSet<Mark> = (0u64..5).map(|i| mix64(i).to_be_bytes()).collect();
        let mut shares = HashMap::<Mark, u32>::new();
        for bucket in (0..1024).map(Bucket) {
            let mut of = living.iter().filter(|name| is_ours(&living, **name, bucket));
            *shares.entry(*of.next().unwrap()).or_default() += 1;
            assert!(of.next().is_none());
        }
        assert!(shares.values().all(|n| *n > 100), "{shares:?}");
    }
}
