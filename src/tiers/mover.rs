//! Moving what is due, again and again. Several instances may: of two that are at one account, one comes to nothing.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures::future::join;
use futures::stream::StreamExt as _;
use tokio::time::{Instant, sleep_until};

use super::begin::Tiers;
use super::due::{DueAccount, OF_A_BUCKET};
use super::finish::MovedPosts;
use super::named::bucket_of;
use super::settle::SeenForgotten;
use crate::archive::POSTS_MAX;
use crate::cluster::{Command, Request};
use crate::error::{Error, ErrorCode, Result};
use crate::functions::{ArchiveMove, MOVED_MAX};
use crate::ids::{AccountId, PostId};
use crate::post::{NamedList, PostRef};
use crate::stored::AgendaEntry;
use crate::tenant::Tenant;

/// After how long of moving posts is looked what else is due.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// After how long somebody else cuts a list that nobody has ended to cut, besides the time that the archive needs.
const CUT_FOR: Duration = Duration::from_secs(60);
/// Lists cut at the same time: most of it they wait for what the archive has stored to settle.
const LISTS_AT_ONCE: usize = 512;
/// Accounts of one call of the archive: as many as have room in it with all that each may bring.
const ACCOUNTS_AT_ONCE: usize = POSTS_MAX / (MOVED_MAX + OF_A_BUCKET);
/// Moves that wait to be settled, at most.
const WAITING_MAX: usize = 8_192;

/// Work that agendas name besides posts that move.
pub(crate) trait AgendaWork: Sync {
    /// Takes away what is left of a deleted account: these posts, which may be in memory, and those that the archive
    /// has.
    fn bury(&self, account: AccountId, posts: &[PostId]) -> impl Future<Output = Result<()>> + Send;

    /// Has posts leave a list that is too long.
    fn cut(&self, list: NamedList) -> impl Future<Output = Result<ListCut>> + Send;
}

/// The outcome of a list's turn to be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListCut {
    Done,
    /// Its turn has ended.
    HasMore,
    /// Something has kept posts from leaving it.
    Kept,
}

/// A round of moves.
#[derive(Debug)]
pub(super) struct MoveRound<'a> {
    /// What was due then is of it.
    due_ms: u64,
    /// Those that have their turn in a later round. H179: their buckets go by another decision. H230: or something that
    /// they need fails. H241: or somebody else is at them.
    pub(super) refused: BTreeSet<AccountId>,
    /// Those that were deleted, with posts of which something may be left.
    pub(super) deleted: Vec<DueAccount>,
    /// Lists that are being cut, or that something keeps.
    pub(super) lists: &'a ListsMet,
    /// Those whose notes of what the archive was to forget it has looked at.
    pub(super) noted: BTreeSet<AccountId>,
    /// What the archive has said, and by when that has settled.
    waiting: VecDeque<(Instant, UnsettledChange)>,
    /// Accounts with moves among these.
    pub(super) moving: BTreeSet<AccountId>,
    moved: MovedPosts,
    failure: Option<Error>,
}

/// Lists that a round has met, and looks at no more for now.
#[derive(Debug, Default)]
pub(super) struct ListsMet(Mutex<BTreeSet<NamedList>>);

impl ListsMet {
    fn all(&self) -> MutexGuard<'_, BTreeSet<NamedList>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn has(&self, list: NamedList) -> bool {
        self.all().contains(&list)
    }
}

impl<'a> MoveRound<'a> {
    fn new(due_ms: u64, lists: &'a ListsMet) -> Self {
        Self {
            due_ms,
            refused: BTreeSet::new(),
            deleted: Vec::new(),
            lists,
            noted: BTreeSet::new(),
            waiting: VecDeque::new(),
            moving: BTreeSet::new(),
            moved: MovedPosts::default(),
            failure: None,
        }
    }

    /// The time up to which accounts' notes are of this round.
    #[expect(clippy::cast_precision_loss, reason = "milliseconds are below 2^53")]
    pub(super) fn upto_ms(&self) -> f64 {
        self.due_ms as f64
    }

    /// Passes these accounts over, which something has failed for. Tells whether it goes on with others: not where the
    /// archive fails, which all of them need.
    pub(super) fn fails(&mut self, failure: Error, accounts: impl IntoIterator<Item = AccountId>) -> bool {
        self.refused.extend(accounts);
        let goes_on = failure.code() != ErrorCode::ArchiveAway;
        self.failure.get_or_insert(failure);
        goes_on
    }

    /// Notes what the archive has just said, and needs so long to settle.
    pub(super) fn waits(&mut self, time: Duration, what: UnsettledChange) {
        if let UnsettledChange::Moves(moves) = &what {
            self.moving.extend(moves.iter().map(|plan| plan.account));
        }
        if what.len() > 0 {
            self.waiting.push_back((Instant::now() + time, what));
        }
    }

    /// Takes the next change that is settled by now, or, `all`, has to be waited for.
    fn next_settled(&mut self, all: bool) -> Option<(Instant, UnsettledChange)> {
        let is_full = self.waiting.iter().map(|(_, what)| what.len()).sum::<usize>() >= WAITING_MAX;
        let is_settled = |(settled, _): &(Instant, UnsettledChange)| *settled <= Instant::now();
        if all || is_full || self.waiting.front().is_some_and(is_settled) {
            self.waiting.pop_front()
        } else {
            None
        }
    }
}

/// A change that an archive has confirmed, and may lose yet.
#[derive(Debug)]
pub(super) enum UnsettledChange {
    /// It has what these move.
    Moves(Vec<ArchiveMove>),
    /// It has forgotten this.
    Forgotten(Vec<SeenForgotten>),
}

impl UnsettledChange {
    fn len(&self) -> usize {
        match self {
            Self::Moves(moves) => moves.len(),
            Self::Forgotten(seen) => seen.len(),
        }
    }
}

/// Moves what was due at that moment, of each account as much as has room in a move; nothing where the tenant has no
/// archive. What fails is passed over, and has its turn in another round; the first failure is told in the end.
pub(crate) async fn move_all(tenant: &Tenant, work: &impl AgendaWork, due_ms: u64) -> Result<MovedPosts> {
    let Some(tiers) = Tiers::of(tenant)? else { return Ok(MovedPosts::default()) };
    let (to_cut, lists) = unbounded();
    let met = ListsMet::default();
    let posts = async {
        let to_cut = to_cut;
        let mut round = MoveRound::new(due_ms, &met);
        // H178: by one moment, so it comes to an end whatever is put off meanwhile.
        while tiers.move_some(work, &mut round, &to_cut).await {}
        // Also where something has failed: what was stored needs nobody else.
        if let Err(e) = tiers.finish_settled(&mut round, true).await {
            round.fails(e, []);
        }
        round.failure.map_or(Ok(round.moved), Err)
    };
    // H232: beside it, since a round of a large tenant that is new to its archive takes hours.
    let (moved, cut) = join(posts, tiers.cut_all(lists, work, &met)).await;
    // H238: that a server failed over is nothing that who calls has done, nor could mend.
    let of_nobody =
        |e: Error| Error::unavailable(format!("not all that is due has moved, a later round goes on: {e}"));
    let told = |e: Error| if e.is_of_fence() { of_nobody(e) } else { e };
    let with = |moved| cut.map(|has_long_lists| MovedPosts { has_long_lists, ..moved });
    moved.and_then(with).map_err(told)
}

impl Tiers<'_> {
    /// Looks once what is due, and moves some of it. Tells whether there is more.
    async fn move_some(
        &self,
        work: &impl AgendaWork,
        round: &mut MoveRound<'_>,
        to_cut: &UnboundedSender<NamedList>,
    ) -> bool {
        let (looked, mut due) = (Instant::now(), self.due(round).await);
        self.hand_over(&due.lists, round, to_cut).await;
        // Before anything moves: an archive that has lost something takes nothing of these accounts.
        for unsettled in self.by_server(due.unsettled.iter().copied(), |(account, _)| *account) {
            if let Err(e) = self.settle(&unsettled, self.tenant.router().now_ms(), work, round).await
                && !round.fails(e, unsettled.into_iter().map(|(account, _)| account))
            {
                return false;
            }
        }
        let mut accounts = due.accounts();
        accounts.retain(|due| !round.refused.contains(&due.account));
        // H230: one server that can't take part keeps nobody's posts in memory that lie elsewhere.
        'accounts: for of_server in self.by_server(accounts, |due| due.account) {
            for some in of_server.chunks(ACCOUNTS_AT_ONCE) {
                // H232: what else is due by now has its turn.
                if looked.elapsed() >= LOOK_EVERY {
                    break 'accounts;
                }
                let mut stored = Vec::new();
                let ended = self.store(some.to_vec(), &mut stored, round).await;
                round.waits(self.archive.settles_within(), UnsettledChange::Moves(stored));
                if let Err(e) = ended {
                    if !round.fails(e, of_server.iter().map(|due| due.account)) {
                        return false;
                    }
                    break;
                }
                if let Err(e) = self.finish_settled(round, false).await
                    && !round.fails(e, [])
                {
                    return false;
                }
            }
        }
        // H241: what waits for these moves has its turn in the next round.
        round.moved.has_more |= due.is_held_up;
        round.moved.has_skipped |= due.has_skipped;
        self.bury_deleted(work, round).await && due.is_of_the_round
    }

    /// Puts those of one server together: what one of them needs, all do.
    fn by_server<T>(&self, all: impl IntoIterator<Item = T>, of: impl Fn(&T) -> AccountId) -> Vec<Vec<T>> {
        let mut servers = BTreeMap::<u16, Vec<T>>::new();
        for one in all {
            let server = self.tenant.router().node_number(self.tenant.slot(of(&one)));
            servers.entry(server).or_default().push(one);
        }
        servers.into_values().collect()
    }

    /// Ends moves that have settled, or, waiting for them, all.
    async fn finish_settled(&self, round: &mut MoveRound<'_>, all: bool) -> Result<()> {
        while let Some((settled, what)) = round.next_settled(all) {
            sleep_until(settled).await;
            match what {
                UnsettledChange::Moves(moves) => {
                    round.moving.retain(|account| moves.iter().all(|plan| plan.account != *account));
                    round.moved.add(self.finish(moves).await?);
                }
                UnsettledChange::Forgotten(seen) => self.strike_forgotten(seen).await?,
            }
        }
        Ok(())
    }

    /// Has taken away what is left of posts of deleted accounts, and looks at these no more. H188: a deletion that
    /// broke off once the archive had forgotten the post has left it in memory, where no burial finds it.
    /// Tells whether the round goes on.
    async fn bury_deleted(&self, work: &impl AgendaWork, round: &mut MoveRound<'_>) -> bool {
        for due in std::mem::take(&mut round.deleted) {
            if let Err(e) = self.bury(&due, work).await
                && !round.fails(e, [due.account])
            {
                return false;
            }
        }
        true
    }

    async fn bury(&self, due: &DueAccount, work: &impl AgendaWork) -> Result<()> {
        work.bury(due.account, &due.warm).await?;
        let post = |id: &PostId| AgendaEntry::Post(PostRef { id: *id, author: due.account });
        self.strike(due.account, due.warm.iter().map(post)).await
    }

    /// Has lists cut, once others leave them to this instance for a while.
    async fn hand_over(
        &self,
        lists: &[NamedList],
        round: &mut MoveRound<'_>,
        to_cut: &UnboundedSender<NamedList>,
    ) {
        let at = self.after(CUT_FOR + 2 * self.archive.settles_within());
        let note = |list: &NamedList| {
            let (slot, agenda) = self.agenda_of(*list);
            let note =
                Command::new("ZADD").arg(&agenda).arg("XX").arg(at).arg(&AgendaEntry::List(*list).to_bytes());
            Request::write(slot, note)
        };
        round.lists.all().extend(lists);
        let answers = self.tenant.router().run(lists.iter().map(note).collect()).await;
        for (list, answer) in lists.iter().zip(answers) {
            match answer.and_then(|answer| answer.ok().map(drop)) {
                // Whoever has ended to cut doesn't listen.
                Ok(()) => drop(to_cut.unbounded_send(*list)),
                // H234: where memory is full no list can say what it lacks; posts leave all the same.
                Err(e) => drop(round.fails(e, [])),
            }
        }
    }

    /// Cuts lists as they come. Tells whether there is more that should leave; the first failure, once all were tried.
    async fn cut_all(
        &self,
        lists: UnboundedReceiver<NamedList>,
        work: &impl AgendaWork,
        met: &ListsMet,
    ) -> Result<bool> {
        let one = async |list| (list, self.cut_one(list, work).await);
        let mut cut = lists.map(one).buffer_unordered(LISTS_AT_ONCE);
        let mut all = Ok(false);
        while let Some((list, outcome)) = cut.next().await {
            // H293: also a round that takes hours meets it again.
            if matches!(outcome, Ok(true)) {
                met.all().remove(&list);
            }
            all = all.and_then(|more| Ok(outcome? || more));
        }
        all
    }

    /// Cuts one. Tells whether it has more that should leave.
    async fn cut_one(&self, list: NamedList, work: &impl AgendaWork) -> Result<bool> {
        let (slot, agenda) = self.agenda_of(list);
        let entry = AgendaEntry::List(list).to_bytes();
        let outcome = work.cut(list).await?;
        let note = match outcome {
            ListCut::Done => Command::new("ZREM").arg(&agenda).arg(&entry),
            // H293: or it could grow faster than it is looked at.
            ListCut::HasMore => {
                Command::new("ZADD").arg(&agenda).arg("XX").arg(self.after(Duration::ZERO)).arg(&entry)
            }
            // H231: one that is too long still is looked at again, though nobody notes it.
            ListCut::Kept => return Ok(false),
        };
        self.tenant.router().call(Request::write(slot, note)).await?;
        Ok(outcome == ListCut::HasMore)
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
}
