//! What a page depends on besides posts: whom the reader follows, mutes, blocks, and whom it must pull. Kept under
//! two random stamps that every change renews: while both are the same, nothing has changed.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Readers;
use super::mark::is_new_mark;
use crate::account::Account;
use crate::cluster::{Answer, Command, Epoch, Request};
use crate::error::{Error, Result};
use crate::functions::{maybe_nonce, read_nonce};
use crate::ids::AccountId;
use crate::nonce::Nonce;
use crate::tenant::{Tenant, no_account};

/// Tries to read a state between two changes of it.
const TRIES_MAX: usize = 16;
/// Whoever has set a mark, or is about to take it away, is done with that by then, usually within milliseconds.
const MARKS_REST: Duration = Duration::from_secs(2);

/// The stamps of a reader, what else its record tells a read, and who told it.
#[derive(Debug, Clone)]
pub(crate) struct Stamps {
    pub(crate) graph: Nonce,
    pub(crate) marks: Nonce,
    /// Renewed with what it likes, has bookmarked and reposted; `None`: it never has.
    pub(crate) ties: Option<Nonce>,
    /// Day of the last read that was noted.
    pub(crate) day: Option<u32>,
    pub(crate) epoch: Epoch,
}

/// Asks for a reader's stamps.
pub(crate) fn stamps_request(tenant: &Tenant, reader: AccountId) -> Request {
    let command = Command::new("HMGET").arg(&tenant.keys().account(reader));
    Request::read(tenant.slot(reader), command.arg("g").arg("t").arg("i").arg("d"))
}

/// Reads what [`stamps_request`] was answered.
pub(crate) fn read_stamps(reader: AccountId, answer: Answer) -> Result<Stamps> {
    let epoch = answer.epoch.clone();
    let fields = answer.ok()?.into_array()?;
    let [graph, marks, ties, day] = fields.as_slice() else {
        return Err(Error::internal("four fields were asked for"));
    };
    if graph.is_nil() || marks.is_nil() {
        return Err(no_account(reader));
    }
    let day = day.int().ok().and_then(|day| u32::try_from(day).ok());
    Ok(Stamps { graph: read_nonce(graph)?, marks: read_nonce(marks)?, ties: maybe_nonce(ties)?, day, epoch })
}

/// A reader as a read finds it: its stamps, and what stands under them or later ones.
#[derive(Debug, Clone)]
pub(crate) struct Current {
    pub(crate) stamps: Stamps,
    pub(crate) state: Arc<ReaderState>,
}

impl Current {
    /// Of a guest, which follows nobody: nothing is asked for that.
    fn nobodys(readers: &Readers) -> Self {
        let (graph, marks) = Default::default();
        let epoch = readers.router().epoch_named("");
        let none = || Arc::from([]);
        let (following, mutes, blocks, pulled, unasked) = (none(), none(), none(), none(), none());
        let marks_known = Instant::now();
        let state = ReaderState { graph, marks, marks_known, following, mutes, blocks, pulled, unasked };
        Self { stamps: Stamps { graph, marks, ties: None, day: None, epoch }, state: Arc::new(state) }
    }
}

/// What a reader follows, mutes, blocks and pulls, as of its stamps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReaderState {
    graph: Nonce,
    marks: Nonce,
    /// When we came to know of this marks stamp.
    marks_known: Instant,
    /// Each sorted.
    pub(crate) following: Arc<[u64]>,
    pub(crate) mutes: Arc<[u64]>,
    pub(crate) blocks: Arc<[u64]>,
    /// Those it follows with a pull mark.
    pub(crate) pulled: Arc<[u64]>,
    /// Those of them that are still to be asked whether they are locked.
    unasked: Arc<[u64]>,
}

impl ReaderState {
    pub(crate) fn is_of(&self, stamps: &Stamps) -> bool {
        self.stamps() == (stamps.graph, stamps.marks)
    }

    pub(crate) fn stamps(&self) -> (Nonce, Nonce) {
        (self.graph, self.marks)
    }

    /// What it is once the reader follows another account, with a mark.
    pub(crate) fn followed(&self, author: AccountId, [graph, marks]: [Nonce; 2], is_new: bool) -> Self {
        let following = with(&self.following, author.get());
        let pulled = with(&self.pulled, author.get());
        let unasked = if is_new { with(&self.unasked, author.get()) } else { self.unasked.clone() };
        Self { graph, marks, marks_known: Instant::now(), following, pulled, unasked, ..self.clone() }
    }

    /// What it is once a mark is gone.
    pub(crate) fn completed(&self, author: AccountId, marks: Nonce) -> Self {
        let left = |all: &[u64]| all.iter().copied().filter(|other| *other != author.get()).collect();
        let (pulled, unasked) = (left(&self.pulled), left(&self.unasked));
        Self { marks, marks_known: Instant::now(), pulled, unasked, ..self.clone() }
    }

    /// Whether its marks have been the same for so long that nobody is at them: what stands there stays.
    pub(crate) fn marks_rest(&self) -> bool {
        self.marks_known.elapsed() >= MARKS_REST
    }

    pub(crate) fn follows(&self, account: u64) -> bool {
        self.following.binary_search(&account).is_ok()
    }

    /// Whether what an account says to its followers is for this reader too. A follow that a locked account has not
    /// been asked about yet may become a request.
    pub(crate) fn is_let_in(&self, by: &Account) -> bool {
        let id = by.id.get();
        // H85: it may have been locked before the follow was written, and never have let this reader in.
        let is_unasked = by.is_locked && self.unasked.binary_search(&id).is_ok();
        self.follows(id) && !is_unasked
    }

    pub(crate) fn mutes(&self, account: u64) -> bool {
        self.mutes.binary_search(&account).is_ok()
    }

    pub(crate) fn blocks(&self, account: u64) -> bool {
        self.blocks.binary_search(&account).is_ok()
    }

    /// Whom a read of the home pulls.
    pub(crate) fn to_pull(&self) -> impl Iterator<Item = AccountId> + '_ {
        self.pulled.iter().filter_map(|a| AccountId::new(*a).ok())
    }
}

impl Readers {
    /// A reader's state, if it is remembered.
    pub(crate) fn state(&self, reader: AccountId) -> Option<Arc<ReaderState>> {
        self.states.get(&reader)
    }

    /// Remembers a reader's state.
    pub(crate) fn remember(&self, reader: AccountId, state: Arc<ReaderState>) {
        self.states.insert(reader, state);
    }

    /// Our own change of a reader: what was known under the stamps until then, we know under those since.
    pub(crate) fn renew_state(
        &self,
        reader: AccountId,
        until_then: (Nonce, Nonce),
        then: impl FnOnce(&ReaderState) -> ReaderState,
    ) {
        let Some(known) = self.state(reader) else { return };
        // Of other stamps, somebody else has changed what is known here.
        if known.stamps() == until_then {
            self.remember(reader, Arc::new(then(&known)));
        }
    }
}

/// Sorted accounts, and one more.
fn with(accounts: &[u64], account: u64) -> Arc<[u64]> {
    let Err(place) = accounts.binary_search(&account) else { return accounts.into() };
    let (below, above) = accounts.split_at(place);
    below.iter().copied().chain([account]).chain(above.iter().copied()).collect()
}

/// Reads a reader's state anew; what `known` has under the same graph stamp is kept.
pub(crate) async fn load_state(
    tenant: &Tenant,
    reader: AccountId,
    known: Option<&ReaderState>,
) -> Result<Arc<ReaderState>> {
    for _ in 0..TRIES_MAX {
        let before = stamps(tenant, reader).await?;
        let [mut pulled, mut unasked] = pull_marks(tenant, reader).await?;
        let [following, mutes, blocks] = match known {
            Some(known) if known.graph == before.graph => {
                [known.following.clone(), known.mutes.clone(), known.blocks.clone()]
            }
            _ => graph(tenant, reader).await?,
        };
        // Who unfollows takes the mark away; one that is left over says nothing.
        for of in [&mut pulled, &mut unasked] {
            of.retain(|author| following.binary_search(author).is_ok());
        }
        // Equal stamps before and after, from the same life of the same server: nothing changed between.
        let after = stamps(tenant, reader).await?;
        let is_same =
            before.epoch == after.epoch && (before.graph, before.marks) == (after.graph, after.marks);
        // H30: what was read between other stamps is of two times.
        if is_same {
            let (graph, marks) = (before.graph, before.marks);
            let (marks_known, pulled, unasked) = (Instant::now(), pulled.into(), unasked.into());
            let state = ReaderState { graph, marks, marks_known, following, mutes, blocks, pulled, unasked };
            return Ok(Arc::new(state));
        }
    }
    Err(Error::unavailable(format!("account {reader} is being changed at this moment; try again")))
}

/// Whom a reader has a mark of, and of whom a new one; sorted.
async fn pull_marks(tenant: &Tenant, reader: AccountId) -> Result<[Vec<u64>; 2]> {
    let command = Command::new("HGETALL").arg(&tenant.keys().marks(reader));
    let marks = tenant.router().call(Request::read(tenant.slot(reader), command)).await?.into_array()?;
    let (pairs, _) = marks.as_chunks::<2>();
    let (mut pulled, mut unasked) = (Vec::with_capacity(pairs.len()), Vec::new());
    for [author, of] in pairs {
        let author = AccountId::from_bytes(author.bytes()?)?.get();
        pulled.push(author);
        // One that can't be read isn't new.
        if read_nonce(of).is_ok_and(|mark| is_new_mark(&mark)) {
            unasked.push(author);
        }
    }
    pulled.sort_unstable();
    unasked.sort_unstable();
    Ok([pulled, unasked])
}

/// A reader as it is now: with the state that is remembered, if the stamps say so.
pub(crate) async fn current(readers: &Readers, reader: AccountId) -> Result<Current> {
    if reader.is_nobody() {
        return Ok(Current::nobodys(readers));
    }
    // By the stamps as they are now and not by time: another instance may have changed it a moment ago.
    let stamps = stamps(readers, reader).await?;
    let known = readers.state(reader);
    if let Some(state) = known.filter(|state| state.is_of(&stamps)) {
        return Ok(Current { stamps, state });
    }
    let state = load_state(readers, reader, None).await?;
    readers.remember(reader, state.clone());
    Ok(Current { stamps, state })
}

/// A reader's stamps as they are now.
pub(crate) async fn stamps(tenant: &Tenant, reader: AccountId) -> Result<Stamps> {
    read_stamps(reader, tenant.router().ask(stamps_request(tenant, reader)).await?)
}

async fn graph(tenant: &Tenant, reader: AccountId) -> Result<[Arc<[u64]>; 3]> {
    let sets = [tenant.following(reader)?, tenant.mutes(reader)?, tenant.blocks(reader)?];
    let members = tenant.sets().members_of(&[&sets[0], &sets[1], &sets[2]]).await?;
    let mut sorted = members.into_iter().map(|ids| {
        let mut ids: Vec<u64> = ids.into_iter().map(AccountId::get).collect();
        ids.sort_unstable();
        ids.dedup();
        Arc::from(ids)
    });
    let mut next = || sorted.next().unwrap_or_default();
    Ok([next(), next(), next()])
}

#[cfg(test)]
impl ReaderState {
    /// A state for tests of what is decided by it. Each list must be sorted.
    pub(crate) fn of(following: &[u64], mutes: &[u64], blocks: &[u64]) -> Self {
        let (graph, marks) = Default::default();
        let [following, mutes, blocks] = [following, mutes, blocks].map(Arc::from);
        let marks_known = Instant::now();
        let (pulled, unasked) = Default::default();
        Self { graph, marks, marks_known, following, mutes, blocks, pulled, unasked }
    }
}
