//! Follow, unfollow, mute, block, hide, remark: what an account switches on and off.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::change::{ChangeIntent, OwnCell, WantedEdge, apply, apply_after, apply_known};
use super::jobs::PairTask;
use super::relations::follows_or_asks;
use super::unwanted::end_of_blocked;
use crate::change::{SetBound, Tries};
use crate::cluster::{Command, Epoch, Request};
use crate::error::{Error, ErrorCode, Result};
use crate::fields::RecordField;
use crate::functions::maybe_nonce;
use crate::graph::Graph;
use crate::ids::AccountId;
use crate::journal::{reserve, reserve_for};
use crate::keys::OwnKey;
use crate::limits::OWN_FOLLOWING_MAX;
use crate::meters;
use crate::nonce::{Nonce, draw};
use crate::reader::{MuteTerms, ReaderState};
use crate::sharded::SortedSet;
use crate::tenant::Tenant;

/// The outcome of a follow.
///
/// Its author's posts show from then on. The author's list and number of followers have it a moment later; an account
/// that is locked before that has a request instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FollowOutcome {
    /// It follows now, or did already.
    Following,
    /// The account is locked: it waits for its approval.
    Requested,
}

/// Longest private note, in bytes.
const NOTE_BYTES_MAX: usize = 2_000;
/// Accounts that an account may have notes on.
const NOTES_MAX: u32 = 2_000;
/// Mutes that have ended and are taken away in one change.
const ENDED_AT_ONCE: usize = 32;

/// A switch of an account about another one, besides following it.
pub(crate) enum Toggle {
    Mute(MuteTerms),
    Block,
    Hide,
    /// Its reposts stay out of one's home.
    HideReposts,
    /// What it is. Private: it is shown to nobody else, nor in a log.
    Note(Box<str>),
}

impl Toggle {
    fn label(&self, on: bool) -> &'static str {
        match (self, on) {
            (Self::Mute(MuteTerms { until: None, .. }), true) => "mute",
            (Self::Mute(MuteTerms { until: Some(_), .. }), true) => "mute_for",
            (Self::Mute(_), false) => "unmute",
            (Self::Block, true) => "block",
            (Self::Block, false) => "unblock",
            (Self::Hide, true) => "hide",
            (Self::Hide, false) => "unhide",
            (Self::HideReposts, true) => "hide_reposts",
            (Self::HideReposts, false) => "show_reposts",
            (Self::Note(_), true) => "note",
            (Self::Note(_), false) => "unnote",
        }
    }
}

/// Of somebody who wants what is so already. It renews the stamps all the same: who has looked before and wants the
/// opposite looks again, and a copy of such a change that lies in a frozen server's socket is void.
pub(super) fn nothing_left() -> Option<ChangeIntent> {
    // H55. H209: it counts against no limit.
    Some(ChangeIntent::default())
}

fn distinct(a: AccountId, b: AccountId) -> Result<()> {
    if a == b {
        return Err(Error::invalid(format!(
            "account {a} cannot follow, mute, block, hide from or remark on itself"
        )));
    }
    Ok(())
}

pub(super) fn following_edge(
    tenant: &Tenant,
    reader: AccountId,
    author: AccountId,
    is_put: bool,
) -> Result<WantedEdge> {
    Ok(WantedEdge {
        set: tenant.following(reader)?,
        is_put,
        member: author,
        bound: following_bound(tenant.settings.following_max),
        count_field: RecordField::FOLLOWING,
    })
}

/// The bound on how many an account follows.
pub(crate) fn following_bound(most: u32) -> SetBound {
    SetBound { most, verb: "follows", noun: "" }
}

/// The intent of a follow that may be made. `is_asked`: its author has said yes to it. Else it was open a moment ago,
/// and is asked again.
pub(super) fn follow_intent(
    tenant: &Tenant,
    reader: AccountId,
    author: AccountId,
    is_asked: bool,
) -> Result<ChangeIntent> {
    Ok(ChangeIntent {
        edges: vec![following_edge(tenant, reader, author, true)?],
        // H14: with the follow, in one function: whatever becomes of the rest, the next read pulls the author.
        marked: vec![(author, !is_asked)],
        request: Some((author, None, None)),
        tasks: vec![PairTask { reader, author, may_drop: true }.into()],
        counts: !is_asked,
        ..ChangeIntent::default()
    })
}

pub(super) fn unfollow_intent(tenant: &Tenant, reader: AccountId, author: AccountId) -> Result<ChangeIntent> {
    Ok(ChangeIntent {
        edges: vec![following_edge(tenant, reader, author, false)?],
        // H149: what is said of a follow goes with it, or the next one begins without reposts.
        cells: [OwnKey::Marks, OwnKey::HiddenReposts]
            .map(|own| OwnCell::gone(tenant.keys().own(own, reader), author))
            .into(),
        request: Some((author, None, None)),
        // The home stays as it is: reads leave out whom its reader doesn't follow.
        tasks: vec![PairTask { reader, author, may_drop: false }.into()],
        ..ChangeIntent::default()
    })
}

/// Follows, or asks to.
pub(crate) async fn follow(
    graph: &Arc<Graph>,
    reader: AccountId,
    author: AccountId,
) -> Result<(FollowOutcome, Epoch)> {
    let tenant = &graph.tenant;
    distinct(reader, author)?;
    let _place = reserve_for(&graph.journal, reader, 1)?;
    let card = tenant.known_to_others(author).await?.no_chat()?;
    if !card.is_active() {
        return Err(Error::new(
            ErrorCode::NotActive,
            format!("account {author} is {}: it cannot be followed", card.state),
        ));
    }
    // Told at once, for whoever asks. It may block, or be locked, before the follow is written: so its side looks
    // again after that (H24, H85).
    if card.blocks > 0 && tenant.is_blocked(author, reader).await? {
        return Err(Error::new(ErrorCode::Blocked, format!("account {author} blocks account {reader}")));
    }
    let mut tries = Tries::between_splits(reader);
    if !card.is_locked
        && let Some(epoch) = follow_known(graph, reader, author, &mut tries).await?
    {
        meters::graph_change("follow");
        return Ok((FollowOutcome::Following, epoch));
    }
    let following = tenant.following(reader)?;
    let is_requested = AtomicBool::new(false);
    let epoch = apply_after(graph, reader, &mut tries, || {
        Box::pin(async {
            is_requested.store(false, Ordering::Relaxed);
            // In its own bucket, under the stamp that is compared: no block of its own comes between.
            if tenant.is_blocked(reader, author).await? {
                let text = format!("account {reader} blocks account {author}: unblock it first");
                return Err(Error::new(ErrorCode::Blocked, text));
            }
            if following.score(&author).await?.is_some() {
                return Ok(nothing_left());
            }
            if !card.is_locked {
                return follow_intent(tenant, reader, author, false).map(Some);
            }
            is_requested.store(true, Ordering::Relaxed);
            if requested(tenant, reader, author).await?.is_some() {
                return Ok(nothing_left());
            }
            has_room(tenant, author).await?;
            Ok(Some(ChangeIntent {
                request: Some((author, None, Some(draw()))),
                tasks: vec![PairTask { reader, author, may_drop: true }.into()],
                counts: true,
                ..ChangeIntent::default()
            }))
        })
    })
    .await?;
    meters::graph_change("follow");
    let followed =
        if is_requested.into_inner() { FollowOutcome::Requested } else { FollowOutcome::Following };
    Ok((followed, epoch))
}

/// Follows, if what this instance remembers of the reader says that it may: the change compares whether it is still so.
async fn follow_known(
    graph: &Arc<Graph>,
    reader: AccountId,
    author: AccountId,
    tries: &mut Tries,
) -> Result<Option<Epoch>> {
    match graph.readers.state(reader) {
        Some(known) if !known.blocks(author.get()) && !known.follows(author.get()) => {
            apply_known(graph, reader, &known, follow_intent(&graph.tenant, reader, author, false)?, tries)
                .await
        }
        _ => Ok(None),
    }
}

/// Asks what `reader`'s request to follow `author` is.
pub(super) fn requested_request(tenant: &Tenant, reader: AccountId, author: AccountId) -> Request {
    let command = Command::new("HGET").arg(&tenant.keys().requested(reader)).arg(&author.to_bytes());
    Request::read(tenant.slot(reader), command)
}

/// The request of `reader` to follow `author`, if there is one.
pub(super) async fn requested(
    tenant: &Tenant,
    reader: AccountId,
    author: AccountId,
) -> Result<Option<Nonce>> {
    maybe_nonce(&tenant.router().call(requested_request(tenant, reader, author)).await?)
}

/// Whether one more may wait for a locked account's answer. Those under way are not counted, so it may be a few more.
async fn has_room(tenant: &Tenant, author: AccountId) -> Result<()> {
    let waiting = Command::new("HLEN").arg(&tenant.keys().waiting(author));
    let waiting = tenant.router().call(Request::read(tenant.slot(author), waiting)).await?.count()?;
    if waiting < u64::from(tenant.settings.requests_max) {
        return Ok(());
    }
    let text = format!(
        "account {author} has {waiting} requests to answer, which is the limit; ask again once it has answered some"
    );
    Err(Error::new(ErrorCode::LimitReached, text))
}

/// Unfollows, or takes a request back.
pub(crate) async fn unfollow(graph: &Arc<Graph>, reader: AccountId, author: AccountId) -> Result<Epoch> {
    let tenant = &graph.tenant;
    distinct(reader, author)?;
    let _place = reserve(&graph.journal, 1)?;
    let following = tenant.following(reader)?;
    meters::graph_change("unfollow");
    apply(graph, reader, || {
        Box::pin(async {
            // First the request: an approval may turn it into a follow between these two looks. What turns a follow
            // into a request renews the stamp that is compared.
            let is_unasked = async || requested(tenant, reader, author).await.map(|asked| asked.is_none());
            let follows_not = async || following.score(&author).await.map(|since| since.is_none());
            let is_nothing = is_unasked().await? && follows_not().await?;
            if is_nothing {
                return Ok(nothing_left());
            }
            unfollow_intent(tenant, reader, author).map(Some)
        })
    })
    .await
}

/// Switches something on or off that one account says of another.
pub(crate) async fn toggle(
    graph: &Arc<Graph>,
    account: AccountId,
    other: AccountId,
    what: Toggle,
    on: bool,
) -> Result<Epoch> {
    distinct(account, other)?;
    if let Toggle::Note(text) = &what
        && text.len() > NOTE_BYTES_MAX
    {
        return Err(Error::out_of_range(format!("a note of {} bytes: at most {NOTE_BYTES_MAX}", text.len())));
    }
    // A block ends follows both ways, and what takes it back sees to that.
    let places = if matches!(what, Toggle::Block) { 2 } else { 0 };
    let _places = reserve(&graph.journal, places)?;
    // A mute of somebody who is gone can be taken back all the same.
    if on {
        graph.tenant.known_to_others(other).await?;
    }
    meters::graph_change(what.label(on));
    if matches!(what, Toggle::Mute(_)) {
        end_mutes(graph, account).await?;
    }
    if matches!(what, Toggle::Block) && !on {
        // H288
        end_of_blocked(graph, account, other).await?;
    }
    let (said, what) = (DirectedPair { tenant: &graph.tenant, account, other }, &what);
    apply(graph, account, || {
        Box::pin(async move {
            match what {
                Toggle::Mute(terms) => said.mute(on, *terms).await,
                Toggle::Block => said.block(on).await,
                Toggle::Hide => {
                    said.edge(graph.tenant.hides(account)?, on, ("hides from", RecordField::HIDES)).await
                }
                Toggle::HideReposts => said.hide_reposts(on).await,
                Toggle::Note(text) => {
                    let note = on.then(|| ReaderState::remark(text.as_bytes()));
                    let bound = SetBound { most: NOTES_MAX, verb: "has notes on", noun: " accounts" };
                    said.remark(OwnKey::Notes, note, bound).await
                }
            }
        })
    })
    .await
}

/// The words for a bound, and where the record keeps the size of the set, or ''.
type BoundWords = (&'static str, &'static str);

/// One account that says something of another one. What is decided was read under the stamp that the change compares.
#[derive(Clone, Copy)]
struct DirectedPair<'t> {
    tenant: &'t Tenant,
    account: AccountId,
    other: AccountId,
}

impl DirectedPair<'_> {
    fn restriction(self, set: SortedSet<AccountId>, on: bool, (verb, count_field): BoundWords) -> WantedEdge {
        let bound = SetBound { most: self.tenant.settings.restrictions_max, verb, noun: "" };
        WantedEdge { set, is_put: on, member: self.other, bound, count_field }
    }

    /// The intent of a change that is an edge, and nothing else.
    async fn edge(
        self,
        set: SortedSet<AccountId>,
        on: bool,
        said: BoundWords,
    ) -> Result<Option<ChangeIntent>> {
        if set.score(&self.other).await?.is_some() == on {
            return Ok(nothing_left());
        }
        Ok(Some(ChangeIntent { edges: vec![self.restriction(set, on, said)], ..ChangeIntent::default() }))
    }

    async fn block(self, on: bool) -> Result<Option<ChangeIntent>> {
        let Self { tenant, account, other } = self;
        let (set, said) = (tenant.blocks(account)?, ("blocks", RecordField::BLOCKS));
        if !on || set.score(&other).await?.is_some() {
            return self.edge(set, on, said).await;
        }
        // Its own follow ends with the block. The other one lies in another bucket: its pair finds that it is unwanted.
        let mut intent = unfollow_intent(tenant, account, other)?;
        intent.edges.insert(0, self.restriction(set, on, said));
        intent.tasks.push(PairTask { reader: other, author: account, may_drop: false }.into());
        Ok(Some(intent))
    }

    async fn mute(self, on: bool, terms: MuteTerms) -> Result<Option<ChangeIntent>> {
        let (set, ends) = (self.tenant.mutes(self.account)?, OwnKey::MuteEnds);
        let end = terms.to_remark().filter(|_| on);
        let before = self.remarked(ends).await?;
        if set.score(&self.other).await?.is_some() == on && before == end {
            return Ok(nothing_left());
        }
        let most = self.tenant.settings.restrictions_max;
        let bound = SetBound {
            most,
            verb: "mutes",
            noun: " accounts for a while, or with their notifications left,",
        };
        // H147: a mute without an end takes the end of an earlier one away; what is said of it goes the same way.
        let cells = vec![self.cell(ends, end, before.is_none().then_some(bound))];
        let edges = vec![self.restriction(set, on, ("mutes", ""))];
        Ok(Some(ChangeIntent { edges, cells, ..ChangeIntent::default() }))
    }

    async fn hide_reposts(self, on: bool) -> Result<Option<ChangeIntent>> {
        let Self { tenant, account, other } = self;
        if on && follows_or_asks(tenant, account, &[other]).await? != [true] {
            let text = format!("account {account} doesn't follow account {other}: it has no reposts to hide");
            return Err(Error::invalid(text));
        }
        // Only of whom it follows, however many it may.
        let most = OWN_FOLLOWING_MAX.max(tenant.settings.following_max);
        let bound = SetBound { most, verb: "hides reposts of", noun: " accounts" };
        if self.remarked(OwnKey::HiddenReposts).await?.is_some() == on {
            return Ok(nothing_left());
        }
        // Random bytes: who drops what nothing is said of any more drops no other one.
        let says = on.then(|| ReaderState::remark(&draw()));
        self.remark(OwnKey::HiddenReposts, says, bound).await
    }

    /// The intent of a change that is a remark, and nothing else.
    async fn remark(
        self,
        own: OwnKey,
        says: Option<Vec<u8>>,
        bound: SetBound,
    ) -> Result<Option<ChangeIntent>> {
        let before = self.remarked(own).await?;
        if before == says {
            return Ok(nothing_left());
        }
        let cells = vec![self.cell(own, says, before.is_none().then_some(bound))];
        Ok(Some(ChangeIntent { cells, ..ChangeIntent::default() }))
    }

    fn cell(self, own: OwnKey, becomes: Option<Vec<u8>>, bound: Option<SetBound>) -> OwnCell {
        OwnCell { becomes, bound, ..OwnCell::gone(self.tenant.keys().own(own, self.account), self.other) }
    }

    async fn remarked(self, own: OwnKey) -> Result<Option<Vec<u8>>> {
        let (tenant, account) = (self.tenant, self.account);
        let command = Command::new("HGET").arg(&tenant.keys().own(own, account)).arg(&self.other.to_bytes());
        let stored = tenant.router().call(Request::read(tenant.slot(account), command)).await?;
        if stored.is_nil() { Ok(None) } else { Ok(Some(stored.bytes()?.to_vec())) }
    }
}

/// Takes mutes of an account away that have ended, some at once: they count as mutes until then, and hide nothing.
async fn end_mutes(graph: &Arc<Graph>, account: AccountId) -> Result<()> {
    let tenant = &graph.tenant;
    let key = tenant.keys().own(OwnKey::MuteEnds, account);
    let ended = async || {
        let command = Command::new("HGETALL").arg(&key);
        let ends = tenant.router().call(Request::read(tenant.slot(account), command)).await?.into_array()?;
        let (now, mut ended) = (tenant.router().now_ms(), Vec::new());
        for [whose, end] in ends.as_chunks::<2>().0 {
            if MuteTerms::of_remark(end.bytes()?).until.is_some_and(|end| end <= now) {
                ended.push(AccountId::from_bytes(whose.bytes()?)?);
            }
        }
        ended.truncate(ENDED_AT_ONCE);
        Ok::<_, Error>(ended)
    };
    if ended().await?.is_empty() {
        return Ok(());
    }
    apply(graph, account, || {
        Box::pin(async {
            let mut intent = ChangeIntent::default();
            // Under the stamp: one that was muted anew since stays.
            for other in ended().await? {
                let saying = DirectedPair { tenant: &graph.tenant, account, other };
                intent.edges.push(saying.restriction(tenant.mutes(account)?, false, ("mutes", "")));
                intent.cells.push(saying.cell(OwnKey::MuteEnds, None, None));
            }
            Ok(Some(intent))
        })
    })
    .await
    .map(drop)
}
