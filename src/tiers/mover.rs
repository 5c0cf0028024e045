//! Moving what is due, again and again. Several instances may: of two that are at one account, one comes to nothing.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use futures::future::join;
use futures::stream::{self, StreamExt as _};
use tokio::time::{Instant, sleep_until};

use super::begin::Tiers;
use super::finish::MovedPosts;
use super::named::bucket_of;
use super::store::DueAccount;
use crate::archive::POSTS_MAX;
use crate::cluster::{Command, Request};
use crate::error::Result;
use crate::functions::{ArchiveMove, MOVED_MAX};
use crate::ids::{AccountId, PostId};
use crate::post::{NamedList, PostRef};
use crate::stored::AgendaEntry;
use crate::tenant::Tenant;

/// Entries of one bucket's agenda at once.
const OF_A_BUCKET: usize = 64;
/// After how long somebody else cuts a list that nobody has ended to cut, besides the time that the archive needs.
const CUT_FOR: Duration = Duration::from_secs(60);
/// Lists cut at the same time: most of it they wait for what the archive has stored to settle.
const LISTS_AT_ONCE: usize = 512;
/// Accounts of one call of the archive: as many as have room in it with all that each may bring.
const ACCOUNTS_AT_ONCE: usize = POSTS_MAX / (MOVED_MAX + OF_A_BUCKET);
/// Moves that wait to be settled, at most.
const WAITING_MAX: usize = 4_096;

/// What agendas name besides posts that move.
pub(crate) trait AgendaWork: Sync {
    /// Takes away what is left of a deleted account: these posts, which may be in memory, and those that the archive
    /// has.
    fn bury(&self, account: AccountId, posts: &[PostId]) -> impl Future<Output = Result<()>> + Send;

    /// Has posts leave a list that is too long.
    fn cut(&self, list: NamedList) -> impl Future<Output = Result<()>> + Send;
}

/// What a round has met so far.
#[derive(Debug, Default)]
pub(super) struct MoveRound {
    /// Those whose buckets go by another decision. H179: a later round goes by what is decided then.
    pub(super) refused: BTreeSet<AccountId>,
    /// Those that were deleted, with posts of which something may be left.
    pub(super) deleted: Vec<DueAccount>,
}

/// Moves all that is due by now; nothing where the tenant has no archive. H178: by one moment, so it comes to an end
/// whatever is put off meanwhile.
pub(crate) async fn move_all(tenant: &Tenant, work: &impl AgendaWork) -> Result<MovedPosts> {
    let mut moved = MovedPosts::default();
    let Some(tiers) = Tiers::of(tenant)? else { return Ok(moved) };
    let (settles_within, now_ms) = (tiers.archive.settles_within(), tenant.router().now_ms());
    let mut waiting: VecDeque<(Instant, Vec<ArchiveMove>)> = VecDeque::new();
    let (mut round, mut lists) = (MoveRound::default(), BTreeSet::new());
    let failure = loop {
        let Due { mut accounts, mut unsettled, lists: due_lists } = tiers.due(now_ms).await?;
        tiers.put_off(&due_lists).await?;
        lists.extend(due_lists);
        accounts.retain(|due| !round.refused.contains(&due.account));
        unsettled.retain(|account| !round.refused.contains(account));
        let is_last = accounts.is_empty() && unsettled.is_empty();
        // Before anything moves: an archive that has lost something takes nothing of these accounts.
        if let Err(e) = tiers.settle(&unsettled, now_ms, work, &mut round).await {
            break Some(e);
        }
        let mut failure = None;
        for some in accounts.chunks(ACCOUNTS_AT_ONCE) {
            match tiers.store(some.to_vec(), &mut round).await {
                Ok(stored) => waiting.push_back((Instant::now() + settles_within, stored)),
                Err(e) => {
                    failure = Some(e);
                    break;
                }
            }
            tiers.finish_settled(&mut waiting, false, &mut moved).await?;
        }
        if failure.is_none() {
            failure = tiers.bury_deleted(work, &mut round).await.err();
        }
        if is_last || failure.is_some() {
            break failure;
        }
    };
    // Also where something has failed: what was stored needs nobody else.
    let (finished, cut) =
        join(tiers.finish_settled(&mut waiting, true, &mut moved), tiers.cut_all(&lists, work)).await;
    failure.map_or(finished.and(cut).map(|()| moved), Err)
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

/// What is due, by the agendas of all buckets.
#[derive(Debug, Default)]
struct Due {
    /// Accounts with posts that are looked at.
    accounts: Vec<DueAccount>,
    /// Accounts of which the archive may have lost what it had forgotten.
    unsettled: Vec<AccountId>,
    /// Lists that are too long.
    lists: Vec<NamedList>,
}

impl Tiers<'_> {
    /// Ends moves that have settled, or, waiting for them, all.
    async fn finish_settled(
        &self,
        waiting: &mut VecDeque<(Instant, Vec<ArchiveMove>)>,
        all: bool,
        moved: &mut MovedPosts,
    ) -> Result<()> {
        while let Some((settled, moves)) = next(waiting, all) {
            sleep_until(settled).await;
            moved.add(self.finish(moves).await?);
        }
        Ok(())
    }

    /// Has taken away what is left of posts of deleted accounts, and looks at these no more. H188: a deletion that
    /// broke off once the archive had forgotten the post has left it in memory, where no burial finds it.
    async fn bury_deleted(&self, work: &impl AgendaWork, round: &mut MoveRound) -> Result<()> {
        for due in std::mem::take(&mut round.deleted) {
            work.bury(due.account, &due.warm).await?;
            let post = |id: &PostId| AgendaEntry::Post(PostRef { id: *id, author: due.account });
            self.strike(due.account, due.warm.iter().map(post)).await?;
        }
        Ok(())
    }

    /// Leaves lists to others for a while, if this instance doesn't come to it.
    async fn put_off(&self, lists: &[NamedList]) -> Result<()> {
        let at = self.after(CUT_FOR + 2 * self.archive.settles_within());
        let note = |list: &NamedList| {
            let (slot, agenda) = self.agenda_of(*list);
            let note =
                Command::new("ZADD").arg(&agenda).arg("XX").arg(at).arg(&AgendaEntry::List(*list).to_bytes());
            Request::write(slot, note)
        };
        for answer in self.tenant.run_all(lists.iter().map(note).collect()).await? {
            answer.ok()?;
        }
        Ok(())
    }

    /// Cuts lists, and looks at them no more until somebody notes them again. The first failure, once all were tried.
    async fn cut_all(&self, lists: &BTreeSet<NamedList>, work: &impl AgendaWork) -> Result<()> {
        let mut cut = stream::iter(lists.iter().copied().collect::<Vec<_>>())
            .map(|list| self.cut_one(list, work))
            .buffer_unordered(LISTS_AT_ONCE);
        let mut all = Ok(());
        while let Some(outcome) = cut.next().await {
            all = all.and(outcome);
        }
        all
    }

    async fn cut_one(&self, list: NamedList, work: &impl AgendaWork) -> Result<()> {
        work.cut(list).await?;
        let (slot, agenda) = self.agenda_of(list);
        let strike = Command::new("ZREM").arg(&agenda).arg(&AgendaEntry::List(list).to_bytes());
        self.tenant.router().call(Request::write(slot, strike)).await.map(drop)
    }

    fn agenda_of(&self, list: NamedList) -> (u16, Vec<u8>) {
        let (keys, bucket) = (self.tenant.keys(), bucket_of(self.tenant, list));
        (keys.buckets().slot(bucket), keys.agenda(bucket))
    }

    /// Strikes entries of an account's agenda that was deleted: nobody writes new ones.
    pub(super) async fn strike(
        &self,
        account: AccountId,
        entries: impl IntoIterator<Item = AgendaEntry>,
    ) -> Result<()> {
        let entries: Vec<Vec<u8>> = entries.into_iter().map(AgendaEntry::to_bytes).collect();
        let agenda = self.tenant.keys().agenda(self.tenant.bucket(account));
        let strike = Command::new("ZREM").arg(&agenda).args(&entries);
        self.tenant.router().call(Request::write(self.tenant.slot(account), strike)).await.map(drop)
    }

    async fn due(&self, now_ms: u64) -> Result<Due> {
        let keys = self.tenant.keys();
        let range = |bucket| {
            let range = Command::new("ZRANGEBYSCORE").arg(&keys.agenda(bucket)).arg("-inf").arg(now_ms);
            Request::read(keys.buckets().slot(bucket), range.arg("LIMIT").arg("0").arg(OF_A_BUCKET))
        };
        let mut due = BTreeMap::<AccountId, Vec<PostId>>::new();
        let (mut unsettled, mut lists) = (Vec::new(), Vec::new());
        for answer in self.tenant.router().run(keys.buckets().all().map(range).collect()).await {
            // A bucket whose server is away has its turn later.
            let Ok(entries) = answer.and_then(|answer| answer.ok()?.into_array()) else { continue };
            for entry in entries {
                match AgendaEntry::parse(entry.bytes()?) {
                    Some(AgendaEntry::Account(account)) => drop(due.entry(account).or_default()),
                    Some(AgendaEntry::Post(post)) => due.entry(post.author).or_default().push(post.id),
                    Some(AgendaEntry::Unsettled(account)) => unsettled.push(account),
                    Some(AgendaEntry::List(list)) => lists.push(list),
                    // Of a later release, say: it keeps nothing else from moving.
                    None => {}
                }
            }
        }
        let accounts = due.into_iter().map(|(account, warm)| DueAccount { account, warm }).collect();
        Ok(Due { accounts, unsettled, lists })
    }
}
