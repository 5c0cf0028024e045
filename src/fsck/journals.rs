//! Journals: entries that nobody carries out, leases that nobody can read; and which deviations an entry excuses, because
//! it is what puts them right.

use std::collections::HashMap;

use super::deviation::{Deviation, FindingKind};
use super::key::{list_of, owner_of};
use super::look::Seen;
use super::records::FOLLOWERS;
use crate::bucket::Bucket;
use crate::cluster::{Command, Request};
use crate::delivery::DeliverTask;
use crate::error::{Error, Result};
use crate::functions::lease_ttl;
use crate::graph::Graph;
use crate::graph::{BuryTask, ListTask, PairTask, ReferTask, TieTask, UnlistTask, UnlockTask};
use crate::ids::AccountId;
use crate::journal::{self, Journal, Task};
use crate::modes::ModeTask;
use crate::post::PostList;
use crate::tenant::Tenant;

/// Entries asked for at once.
const ENTRIES_AT_ONCE: u32 = 256;

/// What stands in a bucket's journal, as it stands there.
async fn stored(tenant: &Tenant, bucket: Bucket) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let (key, slot) = (tenant.keys().journal(bucket), tenant.keys().buckets().slot(bucket));
    let (mut entries, mut cursor) = (Vec::new(), "0".to_owned());
    // A hash of so many entries is gone through in fewer calls than this.
    for _ in 0..=tenant.settings.journal_max {
        let scan = Command::new("HSCAN").arg(&key).arg(&*cursor).arg("COUNT").arg(ENTRIES_AT_ONCE);
        let page = tenant.router().call(Request::read(slot, scan)).await?.into_array()?;
        let [next, pairs] =
            <[_; 2]>::try_from(page).map_err(|_| Error::internal("a scan gives two parts"))?;
        for pair in pairs.into_array()?.chunks_exact(2) {
            entries.push((pair[0].bytes()?.to_vec(), pair[1].bytes()?.to_vec()));
        }
        next.text()?.clone_into(&mut cursor);
        if cursor == "0" {
            break;
        }
    }
    Ok(entries)
}

/// Looks at a journal: entries of owners that don't live are searched for and claimed, unless nobody does that.
pub(super) async fn journal(graph: &Graph, bucket: Bucket) -> Result<Seen> {
    let entries = stored(graph, bucket).await?;
    if entries.is_empty() {
        return Ok(Seen::default());
    }
    let living = journal::living(&graph.journal).await?;
    let mut found = Vec::new();
    for (entry, value) in entries {
        let kind = match graph.journal.parse(bucket, &entry, &value) {
            Err(_) => FindingKind::EntryUnknown,
            Ok(parsed)
                if !living.contains(&parsed.owner) && !graph.journal.tasks.knows(bucket, parsed.id) =>
            {
                FindingKind::EntryStale
            }
            Ok(_) => continue,
        };
        found.push(Deviation::Journal { kind, bucket, entry, value });
    }
    Ok(Seen::of(found))
}

/// Looks at the leases. One that can't be read is nobody's; it only goes by itself if its time can be read.
pub(super) async fn living(tenant: &Tenant) -> Result<Seen> {
    let slot = tenant.keys().buckets().slot(Bucket(0));
    let all = tenant.router().call(Request::read(slot, Command::new("HGETALL").arg(&tenant.keys().living())));
    let all = all.await?.into_array()?;
    let mut found = Vec::new();
    for pair in all.chunks_exact(2) {
        let name = pair[0].bytes()?;
        if name.len() != 8 || lease_ttl(pair[1].bytes()?).is_none() {
            found.push(Deviation::Lease { name: name.into() });
        }
    }
    Ok(Seen::of(found))
}

/// All work that is under way.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    of_account: HashMap<AccountId, Vec<Task>>,
}

impl UnderWay {
    /// Reads all journals.
    pub(super) async fn read(journal: &Journal) -> Result<Self> {
        let buckets: Vec<Bucket> = journal.keys().buckets().all().collect();
        let mut under_way = Self::default();
        for (bucket, length) in journal::lengths(journal, &buckets).await {
            if length? == 0 {
                continue;
            }
            for (entry, value) in stored(journal, bucket).await? {
                if let Ok(entry) = journal.parse(bucket, &entry, &value) {
                    under_way.add(entry.task);
                }
            }
        }
        Ok(under_way)
    }

    fn add(&mut self, task: Task) {
        self.of_account.entry(task.actor()).or_default().push(task);
    }

    fn any(&self, account: AccountId, is_it: impl Fn(&Task) -> bool) -> bool {
        self.of_account.get(&account).is_some_and(|tasks| tasks.iter().any(is_it))
    }

    /// Whether an entry is under way that puts this right, or makes it look wrong.
    pub(super) fn excuses(&self, deviation: &Deviation) -> bool {
        let buried = |account| self.any(account, Task::is_a::<BuryTask>);
        let pair = |reader, author| {
            buried(reader)
                || buried(author)
                || self.any(reader, |task| task.as_a::<PairTask>().is_some_and(|of| of.author == author))
                || self.any(author, |task| task.is_a::<ModeTask>() || task.is_a::<UnlockTask>())
        };
        match deviation {
            Deviation::Edge { reader, author, .. }
            | Deviation::Nonce { reader, author, .. }
            | Deviation::Request { reader, author, .. } => pair(*reader, *author),
            Deviation::EntryMissing { reader, author, post } => {
                pair(*reader, *author)
                    || self.any(*author, |task| task.as_a::<DeliverTask>().is_some_and(|of| of.post == *post))
            }
            Deviation::Home { reader, .. } => buried(*reader),
            Deviation::ModeStuck { account, .. } => {
                buried(*account) || self.any(*account, Task::is_a::<ModeTask>)
            }
            // Whoever comes or goes is counted at the end of that.
            Deviation::Count { account, field: FOLLOWERS, .. } => {
                buried(*account)
                    || self.of_account.values().flatten().any(|task| changes_followers(task, *account))
            }
            Deviation::Count { account, .. } | Deviation::BurialStuck { account } => buried(*account),
            Deviation::Outbox { author, .. } => buried(*author),
            Deviation::Listing { post, author, to, .. } => {
                buried(*author)
                    || buried(to.author)
                    || self.of_account.values().flatten().any(|task| {
                        task.as_a::<ReferTask>().is_some_and(|of| of.post == *post && of.to.post == to.post)
                    })
            }
            Deviation::ListEntry { post, author, list, .. } => {
                buried(*author)
                    || matches!(list, PostList::Mentions(account) if buried(*account))
                    || self.any(*author, |task| task.as_a::<ListTask>().is_some_and(|of| of.post == *post))
            }
            Deviation::PostCount { author, .. } => buried(*author),
            Deviation::Tie { account, post, .. } => {
                buried(*account)
                    || buried(post.author)
                    || self.any(*account, |task| task.as_a::<TieTask>().is_some_and(|of| of.post == *post))
                    || self.any(post.author, |task| {
                        task.as_a::<UnlistTask>().is_some_and(|of| of.post == post.id)
                    })
            }
            Deviation::Reposted { account, .. } => buried(*account),
            Deviation::Set { kind: FindingKind::ListOrphaned, set, .. } => {
                let of = list_of(&set.name).map(|(post, _)| post);
                // Of a burial: whose the post was nobody knows any more.
                let drops = |task: &Task| {
                    task.is_a::<BuryTask>()
                        || task.as_a::<UnlistTask>().is_some_and(|task| Some(task.post) == of)
                };
                self.of_account.values().flatten().any(drops)
            }
            Deviation::Misplaced { set, .. } | Deviation::Set { set, .. } | Deviation::Piece { set, .. } => {
                owner_of(&set.name).is_some_and(|(owner, _)| buried(owner))
            }
            Deviation::Key { owner, .. } => owner.is_some_and(buried),
            Deviation::Claim { owner: account, .. } | Deviation::Names { account, .. } => buried(*account),
            Deviation::Journal { .. } | Deviation::Lease { .. } | Deviation::Unreadable { .. } => false,
        }
    }
}

/// Whether somebody may come to an account's followers by it, or go.
fn changes_followers(task: &Task, account: AccountId) -> bool {
    task.as_a::<PairTask>().is_some_and(|of| of.author == account)
        || task.as_a::<ModeTask>().is_some_and(|of| of.author == account)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::PostId;

    #[test]
    fn only_work_on_the_same_thing_excuses_it() {
        let id = |id| AccountId::new(id).unwrap();
        let post = |id| PostId::from_u64(id).unwrap();
        let missing =
            |reader, of| Deviation::EntryMissing { reader: id(reader), author: id(2), post: post(of) };
        let edge = |reader, author| {
            let kind = FindingKind::EdgeMissing;
            Deviation::Edge { kind, reader: id(reader), author: id(author), stamp: 0 }
        };
        let with = |task: Task| {
            let mut under_way = UnderWay::default();
            under_way.add(task);
            under_way
        };
        let delivery = with(DeliverTask { post: post(7), author: id(2) }.into());
        assert!(delivery.excuses(&missing(1, 7)) && !delivery.excuses(&missing(1, 8)));
        assert!(!delivery.excuses(&edge(1, 2)));
        let pair = with(PairTask { reader: id(1), author: id(2), may_drop: false }.into());
        assert!(pair.excuses(&edge(1, 2)) && !pair.excuses(&edge(2, 1)) && !pair.excuses(&edge(1, 3)));
        assert!(pair.excuses(&missing(1, 7)) && !pair.excuses(&missing(3, 7)));
        let mode = with(ModeTask { author: id(2), random: [0; 8] }.into());
        assert!(mode.excuses(&edge(9, 2)) && !mode.excuses(&edge(2, 9)));
        let bury = with(BuryTask { account: id(2) }.into());
        assert!(bury.excuses(&edge(9, 2)) && bury.excuses(&edge(2, 9)) && !bury.excuses(&edge(8, 9)));
    }
}
