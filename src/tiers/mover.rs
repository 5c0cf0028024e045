//! Moving what is due, again and again. Several instances may: of two that are at one account, one comes to nothing.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::begin::Tiers;
use super::finish::MovedPosts;
use super::store::DueAccount;
use crate::archive::POSTS_MAX;
use crate::cluster::{Command, Request};
use crate::error::Result;
use crate::functions::{ArchiveMove, MOVED_MAX};
use crate::ids::{AccountId, PostId};
use crate::journal::{Journal, Recurring};
use crate::tenant::Tenant;

/// How often somebody looks what is due.
const PERIOD: Duration = Duration::from_secs(10);
/// Entries of one bucket's agenda at once.
const OF_A_BUCKET: usize = 64;
/// Accounts of one call of the archive: as many as have room in it with all that each may bring.
const ACCOUNTS_AT_ONCE: usize = POSTS_MAX / (MOVED_MAX + OF_A_BUCKET);
/// Moves that wait to be settled, at most.
const WAITING_MAX: usize = 4_096;

/// Rounds in which posts that are due leave memory.
#[derive(Debug)]
pub(crate) struct ArchiveMoves;

impl Recurring for ArchiveMoves {
    type Owner = Journal;

    /// Not all instances at once.
    fn pause(&mut self, journal: &Journal) -> Duration {
        PERIOD.mul_f64(0.5 + f64::from(journal.instance[0]) / 255.0)
    }

    async fn round(&mut self, journal: &Arc<Journal>) {
        if let Err(e) = move_all(journal).await {
            tracing::warn!("posts that are due could not be moved to the archive: {e}");
        }
    }
}

/// Moves all that is due by now; nothing where the tenant has no archive. H178: by one moment, so it comes to an end
/// whatever is put off meanwhile.
pub(crate) async fn move_all(tenant: &Tenant) -> Result<MovedPosts> {
    let mut moved = MovedPosts::default();
    let Some(tiers) = Tiers::of(tenant)? else { return Ok(moved) };
    let (settles_within, now_ms) = (tiers.archive.settles_within(), tenant.router().now_ms());
    let mut waiting: VecDeque<(Instant, Vec<ArchiveMove>)> = VecDeque::new();
    let mut refused = BTreeSet::new();
    loop {
        let mut due = tiers.due(now_ms).await?;
        // H179: a later round goes by what is decided then.
        due.retain(|due| !refused.contains(&due.account));
        let is_last = due.is_empty();
        for some in due.chunks(ACCOUNTS_AT_ONCE) {
            let stored = tiers.store(some.to_vec(), &mut refused).await?;
            waiting.push_back((Instant::now() + settles_within, stored));
            while let Some((settled, moves)) = next(&mut waiting, false) {
                sleep_until(settled).await;
                moved.add(tiers.finish(moves).await?);
            }
        }
        while let Some((settled, moves)) = next(&mut waiting, is_last) {
            sleep_until(settled).await;
            moved.add(tiers.finish(moves).await?);
        }
        if is_last {
            return Ok(moved);
        }
    }
}

/// What is settled by now, or has to be waited for.
fn next(
    waiting: &mut VecDeque<(Instant, Vec<ArchiveMove>)>,
    all: bool,
) -> Option<(Instant, Vec<ArchiveMove>)> {
    let is_full = waiting.iter().map(|(_, moves)| moves.len()).sum::<usize>() >= WAITING_MAX;
    let is_next = all || is_full || waiting.front().is_some_and(|(settled, _)| *settled <= Instant::now());
    if is_next { waiting.pop_front() } else { None }
}

impl Tiers<'_> {
    /// Accounts with posts that are due, by the agendas of all buckets.
    async fn due(&self, now_ms: u64) -> Result<Vec<DueAccount>> {
        let keys = self.tenant.keys();
        let range = |bucket| {
            let range = Command::new("ZRANGEBYSCORE").arg(&keys.agenda(bucket)).arg("-inf").arg(now_ms);
            Request::read(keys.buckets().slot(bucket), range.arg("LIMIT").arg("0").arg(OF_A_BUCKET))
        };
        let mut due: BTreeMap<AccountId, Vec<PostId>> = BTreeMap::new();
        for answer in self.tenant.router().run(keys.buckets().all().map(range).collect()).await {
            // A bucket whose server is away has its turn later.
            let Ok(entries) = answer.and_then(|answer| answer.ok()?.into_array()) else { continue };
            for entry in entries {
                match entry.bytes()? {
                    account if account.len() == 8 => {
                        due.entry(AccountId::from_bytes(account)?).or_default();
                    }
                    post => {
                        let Some((id, account)) = post.split_first_chunk::<8>() else { continue };
                        let id = PostId::from_u64(u64::from_be_bytes(*id))?;
                        due.entry(AccountId::from_bytes(account)?).or_default().push(id);
                    }
                }
            }
        }
        Ok(due.into_iter().map(|(account, warm)| DueAccount { account, warm }).collect())
    }
}
