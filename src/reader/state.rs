//! The state that a page depends on besides posts: whom the reader follows, mutes, blocks, and whom it must pull. Kept
//! under two random stamps that every change renews: while both are the same, nothing has changed.

use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join;
use tokio::time::Instant;

use super::Readers;
use super::mark::is_new_mark;
use super::mute::MuteTerms;
use crate::account::Account;
use crate::cluster::{Answer, Command, Epoch, Reply, Request};
use crate::document::{IdList, OF_PAGES, WantedLanguages};
use crate::error::{Error, ErrorKind, Result};
use crate::fields::RecordField;
use crate::functions::{maybe_nonce, read_nonce};
use crate::ids::AccountId;
use crate::keys::OwnKey;
use crate::nonce::Nonce;
use crate::post::Post;
use crate::tenant::{Answers, Tenant, changed_always, no_account};

/// Tries to read a state between two changes of it.
const TRIES_MAX: usize = 16;
/// The first byte of what an account remarks on another one, in the form that this release knows.
const REMARK_FORM: u8 = 1;
/// The time by which whoever has set a mark, or is about to take it away, is done with that, usually within
/// milliseconds.
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
    let command = command.args([
        RecordField::GRAPH_STAMP,
        RecordField::MARKS_STAMP,
        RecordField::TIES_STAMP,
        RecordField::LAST_READ_DAY,
    ]);
    Request::read(tenant.slot(reader), command)
}

/// Reads what [`stamps_request`] was answered.
pub(crate) fn read_stamps(reader: AccountId, answer: Answer) -> Result<Stamps> {
    let epoch = answer.epoch.clone();
    let [graph, marks, ties, day] = answer.ok()?.into_values()?;
    if graph.is_nil() || marks.is_nil() {
        return Err(no_account(reader));
    }
    let day = day.int().ok().and_then(|day| u32::try_from(day).ok());
    Ok(Stamps {
        graph: read_nonce(&graph)?,
        marks: read_nonce(&marks)?,
        ties: maybe_nonce(&ties)?,
        day,
        epoch,
    })
}

/// A reader as a read finds it: its stamps, and what stands under them or later ones.
#[derive(Debug, Clone)]
pub(crate) struct CurrentReader {
    pub(crate) stamps: Stamps,
    pub(crate) state: Arc<ReaderState>,
}

impl CurrentReader {
    /// Of a guest, which follows nobody: nothing is asked for that.
    fn nobodys(readers: &Readers) -> Self {
        let (graph, marks) = Default::default();
        let epoch = readers.tenant.router().epoch_named("");
        let state = ReaderState::under(graph, marks, SaidOfOthers::default(), Default::default());
        Self { stamps: Stamps { graph, marks, ties: None, day: None, epoch }, state: Arc::new(state) }
    }
}

/// A reader's state: whom it follows, mutes, blocks and pulls, as of its stamps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReaderState {
    graph: Nonce,
    marks: Nonce,
    /// When we came to know of this marks stamp.
    marks_known: Instant,
    said: SaidOfOthers,
    /// Those it follows with a pull mark; sorted.
    pub(crate) pulled: Arc<[u64]>,
    /// Those of them that are still to be asked whether they are locked.
    unasked: Arc<[u64]>,
}

/// A reader's word on others, as of its graph stamp. Each list is sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct SaidOfOthers {
    following: Arc<[u64]>,
    /// Without those that had ended when it was read.
    mutes: Arc<[u64]>,
    blocks: Arc<[u64]>,
    hidden_reposts: Arc<[u64]>,
    /// When mutes end (ms), and whose; the next one first.
    mute_ends: Arc<[(u64, u64)]>,
    /// Of whom the reader is told what they do, also while it mutes them.
    heard_of: Arc<[u64]>,
    /// Whose posts stay out of its home, and of which conversations it is told nothing.
    by_documents: [Arc<[u64]>; 2],
    /// In which languages it reads whom it follows.
    languages: Arc<WantedLanguages>,
}

impl ReaderState {
    /// One that we have come to know of now.
    fn under(graph: Nonce, marks: Nonce, said: SaidOfOthers, [pulled, unasked]: [Arc<[u64]>; 2]) -> Self {
        Self { graph, marks, marks_known: Instant::now(), said, pulled, unasked }
    }

    /// The remark of an account on another one, as it is stored.
    pub(crate) fn remark(says: &[u8]) -> Vec<u8> {
        [&[REMARK_FORM], says].concat()
    }

    /// Reads what a stored remark says; `None`: it is of a form that this release doesn't know.
    pub(crate) fn remarked(stored: &[u8]) -> Option<&[u8]> {
        stored.strip_prefix(&[REMARK_FORM])
    }

    /// The state at the time that it asks for, if mutes have ended by then. Few have any that end.
    fn as_of(&self, now_ms: impl FnOnce() -> u64) -> Option<Self> {
        let (first, _) = self.said.mute_ends.first()?;
        let now_ms = now_ms();
        if *first > now_ms {
            return None;
        }
        let ends = &self.said.mute_ends;
        let (ended, open) = ends.split_at(ends.partition_point(|(end, _)| *end <= now_ms));
        let is_muted = |account: &u64| !ended.iter().any(|(_, of)| of == account);
        let mutes = self.said.mutes.iter().copied().filter(is_muted).collect();
        let said = SaidOfOthers { mutes, mute_ends: open.into(), ..self.said.clone() };
        Some(Self { said, ..self.clone() })
    }

    pub(crate) fn is_of(&self, stamps: &Stamps) -> bool {
        self.stamps() == (stamps.graph, stamps.marks)
    }

    pub(crate) fn stamps(&self) -> (Nonce, Nonce) {
        (self.graph, self.marks)
    }

    /// The state once the reader follows another account, with a mark.
    pub(crate) fn followed(&self, author: AccountId, [graph, marks]: [Nonce; 2], is_new: bool) -> Self {
        let said = SaidOfOthers { following: with(&self.said.following, author.get()), ..self.said.clone() };
        let pulled = with(&self.pulled, author.get());
        let unasked = if is_new { with(&self.unasked, author.get()) } else { self.unasked.clone() };
        Self { graph, marks, marks_known: Instant::now(), said, pulled, unasked }
    }

    /// The state once a mark is gone.
    pub(crate) fn completed(&self, author: AccountId, marks: Nonce) -> Self {
        let left = |all: &[u64]| all.iter().copied().filter(|other| *other != author.get()).collect();
        let (pulled, unasked) = (left(&self.pulled), left(&self.unasked));
        Self { marks, marks_known: Instant::now(), pulled, unasked, ..self.clone() }
    }

    /// Whether its marks have been the same for so long that nobody is at them: what stands there stays.
    pub(crate) fn marks_rest(&self) -> bool {
        self.marks_known.elapsed() >= MARKS_REST
    }

    /// The accounts that the reader follows; sorted.
    pub(crate) fn following(&self) -> &[u64] {
        &self.said.following
    }

    pub(crate) fn follows(&self, account: u64) -> bool {
        self.said.following.binary_search(&account).is_ok()
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
        self.said.mutes.binary_search(&account).is_ok()
    }

    /// Whether the reader wants to be told nothing of what that account does.
    pub(crate) fn silences(&self, account: u64) -> bool {
        self.mutes(account) && self.said.heard_of.binary_search(&account).is_err()
    }

    /// Whether reposts of that account stay out of the reader's home.
    pub(crate) fn hides_reposts(&self, account: u64) -> bool {
        self.said.hidden_reposts.binary_search(&account).is_ok()
    }

    /// Whether posts of that account stay out of the reader's home.
    pub(crate) fn leaves_out(&self, account: u64) -> bool {
        let [left_out, _] = &self.said.by_documents;
        left_out.binary_search(&account).is_ok()
    }

    /// Whether the reader wants this post of that account at home, in the language that it is in.
    pub(crate) fn wants_language(&self, account: u64, post: &Post) -> bool {
        let wanted = &self.said.languages;
        wanted.is_empty() || wanted.want(account, post.header().language())
    }

    /// Whether the reader wants to be told nothing of the conversation that this post began.
    pub(crate) fn mutes_conversation(&self, root: u64) -> bool {
        let [_, muted] = &self.said.by_documents;
        muted.binary_search(&root).is_ok()
    }

    pub(crate) fn blocks(&self, account: u64) -> bool {
        self.said.blocks.binary_search(&account).is_ok()
    }

    /// The accounts that a read of the home pulls.
    pub(crate) fn to_pull(&self) -> impl Iterator<Item = AccountId> + '_ {
        self.pulled.iter().filter_map(|a| AccountId::new(*a).ok())
    }
}

impl Readers {
    /// A reader's state as of now, if it is remembered.
    pub(crate) fn state(&self, reader: AccountId) -> Option<Arc<ReaderState>> {
        let known = self.states.get(&reader)?;
        // H148: no stamp says that a mute has ended.
        let Some(now) = known.as_of(|| self.tenant.router().now_ms()) else { return Some(known) };
        let now = Arc::new(now);
        self.remember(reader, now.clone());
        Some(now)
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

/// Reads a reader's state anew; what `known` has under the same graph stamp is kept. Boxed where pages are read: few
/// need it, and all would carry its size with them.
pub(crate) async fn load_state(
    tenant: &Tenant,
    reader: AccountId,
    known: Option<&ReaderState>,
) -> Result<Arc<ReaderState>> {
    for _ in 0..TRIES_MAX {
        let before = stamps(tenant, reader).await?;
        let [mut pulled, mut unasked] = pull_marks(tenant, reader).await?;
        let said = match known {
            Some(known) if known.graph == before.graph => known.said.clone(),
            _ => said(tenant, reader).await?,
        };
        // Who unfollows takes the mark away; one that is left over says nothing.
        for of in [&mut pulled, &mut unasked] {
            of.retain(|author| said.following.binary_search(author).is_ok());
        }
        // Equal stamps before and after, from the same life of the same server: nothing changed between.
        let after = stamps(tenant, reader).await?;
        let is_same =
            before.epoch == after.epoch && (before.graph, before.marks) == (after.graph, after.marks);
        // H30: what was read between other stamps is of two times.
        if is_same {
            let marked = [pulled, unasked].map(Arc::from);
            let state = ReaderState::under(before.graph, before.marks, said, marked);
            return Ok(Arc::new(state.as_of(|| tenant.router().now_ms()).unwrap_or(state)));
        }
    }
    Err(changed_always(ErrorKind::Unavailable, format_args!("account {reader}")))
}

/// The accounts that a reader has a mark of, and those of which it has a new one; sorted.
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
pub(crate) async fn current(readers: &Readers, reader: AccountId) -> Result<CurrentReader> {
    if reader.is_nobody() {
        return Ok(CurrentReader::nobodys(readers));
    }
    // By the stamps as they are now and not by time: another instance may have changed it a moment ago.
    let stamps = stamps(&readers.tenant, reader).await?;
    let known = readers.state(reader);
    if let Some(state) = known.filter(|state| state.is_of(&stamps)) {
        return Ok(CurrentReader { stamps, state });
    }
    let state = Box::pin(load_state(&readers.tenant, reader, None)).await?;
    readers.remember(reader, state.clone());
    Ok(CurrentReader { stamps, state })
}

/// A reader's stamps as they are now.
pub(crate) async fn stamps(tenant: &Tenant, reader: AccountId) -> Result<Stamps> {
    read_stamps(reader, tenant.router().ask(stamps_request(tenant, reader)).await?)
}

async fn said(tenant: &Tenant, reader: AccountId) -> Result<SaidOfOthers> {
    let sets = [tenant.following(reader)?, tenant.mutes(reader)?, tenant.blocks(reader)?];
    let sets = [&sets[0], &sets[1], &sets[2]];
    let remarks = [("HKEYS", OwnKey::HiddenReposts), ("HGETALL", OwnKey::MuteEnds)].map(|(all, own)| {
        let command = Command::new(all).arg(&tenant.keys().own(own, reader));
        Request::read(tenant.slot(reader), command)
    });
    let documents = Command::new("HMGET").arg(&tenant.keys().own(OwnKey::Documents, reader)).args(OF_PAGES);
    let documents = Request::read(tenant.slot(reader), documents);
    let remarks = Answers::of(tenant, remarks.into_iter().chain([documents]).collect());
    let (members, mut remarks) = try_join(tenant.sets().members_of(&sets), remarks).await?;
    let (hidden, ends) = (remarks.next()?.into_array()?, remarks.next()?.into_array()?);
    let [left_out, muted, languages] = remarks.next()?.into_values()?;
    let languages = Arc::new(WantedLanguages::of_stored(&languages)?);
    let by_documents = [IdList::sorted_of(&left_out)?.into(), IdList::sorted_of(&muted)?.into()];
    let id = |field: &Reply| Ok::<_, Error>(AccountId::from_bytes(field.bytes()?)?.get());
    let mut hidden_reposts: Vec<u64> = hidden.iter().map(id).collect::<Result<_>>()?;
    hidden_reposts.sort_unstable();
    let (mut mute_ends, mut heard_of) = (Vec::new(), Vec::new());
    for [whose, remark] in ends.as_chunks::<2>().0 {
        let (whose, terms) = (id(whose)?, MuteTerms::of_remark(remark.bytes()?));
        mute_ends.extend(terms.until.map(|end| (end, whose)));
        heard_of.extend(terms.is_told.then_some(whose));
    }
    mute_ends.sort_unstable();
    heard_of.sort_unstable();
    let mut sorted = members.into_iter().map(|ids| {
        let mut ids: Vec<u64> = ids.into_iter().map(AccountId::get).collect();
        ids.sort_unstable();
        ids.dedup();
        Arc::from(ids)
    });
    let mut next = || sorted.next().unwrap_or_default();
    let (hidden_reposts, mute_ends, heard_of) = (hidden_reposts.into(), mute_ends.into(), heard_of.into());
    let (following, mutes, blocks) = (next(), next(), next());
    Ok(SaidOfOthers {
        following,
        mutes,
        blocks,
        hidden_reposts,
        mute_ends,
        heard_of,
        by_documents,
        languages,
    })
}

#[cfg(test)]
mod tests;

#[cfg(test)]
impl ReaderState {
    /// A state for tests of what is decided by it. Each list must be sorted.
    pub(crate) fn of(following: &[u64], mutes: &[u64], blocks: &[u64]) -> Self {
        let [following, mutes, blocks] = [following, mutes, blocks].map(Arc::from);
        let said = SaidOfOthers { following, mutes, blocks, ..SaidOfOthers::default() };
        let (graph, marks) = Default::default();
        Self::under(graph, marks, said, Default::default())
    }

    fn saying(self, said: impl FnOnce(SaidOfOthers) -> SaidOfOthers) -> Self {
        Self { said: said(self.said), ..self }
    }

    /// The state without reposts of these, and with mutes that end then; both sorted.
    pub(crate) fn remarking(self, hidden_reposts: &[u64], mute_ends: &[(u64, u64)]) -> Self {
        let (hidden_reposts, mute_ends) = (hidden_reposts.into(), mute_ends.into());
        self.saying(|said| SaidOfOthers { hidden_reposts, mute_ends, ..said })
    }

    /// The state that is told what these do though it may mute them; sorted.
    pub(crate) fn hearing_of(self, accounts: &[u64]) -> Self {
        self.saying(|said| SaidOfOthers { heard_of: accounts.into(), ..said })
    }

    /// The state that reads that account in these languages.
    pub(crate) fn reading(self, account: AccountId, languages: &[&str]) -> Self {
        let languages: Vec<String> = languages.iter().map(|language| (*language).to_owned()).collect();
        let mut wanted = WantedLanguages::clone(&self.said.languages);
        wanted.set(account, &languages).unwrap();
        self.saying(|said| SaidOfOthers { languages: Arc::new(wanted), ..said })
    }

    /// The state without posts of these at home; sorted.
    pub(crate) fn leaving_out(self, accounts: &[u64]) -> Self {
        self.saying(|said| {
            let [_, muted] = said.by_documents;
            SaidOfOthers { by_documents: [accounts.into(), muted], ..said }
        })
    }
}
