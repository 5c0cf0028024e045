//! Follow, unfollow, mute, block, hide: what an account switches on and off.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::change::{Intent, OwnCell, Wanted, apply, apply_known};
use super::jobs::PairTask;
use super::pair::wanted;
use crate::change::Bound;
use crate::cluster::{Command, Epoch, Request, Touched};
use crate::error::{Error, ErrorCode, ErrorKind, Result};
use crate::functions::maybe_nonce;
use crate::graph::Graph;
use crate::ids::AccountId;
use crate::journal::reserve;
use crate::meters;
use crate::nonce::{Nonce, draw};
use crate::tenant::Tenant;

/// What came of a follow.
///
/// It counts from when the author's side has it, a moment later. An account that is locked before that has a request
/// instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Followed {
    /// It follows now, or did already.
    Following,
    /// The account is locked: it waits for its approval.
    Requested,
}

/// What an account can switch on and off about another, besides following it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Toggle {
    Mute,
    Block,
    Hide,
}

impl Toggle {
    pub(crate) fn label(self, on: bool) -> &'static str {
        match (self, on) {
            (Self::Mute, true) => "mute",
            (Self::Mute, false) => "unmute",
            (Self::Block, true) => "block",
            (Self::Block, false) => "unblock",
            (Self::Hide, true) => "hide",
            (Self::Hide, false) => "unhide",
        }
    }
}

/// Of somebody who wants what is so already. It renews the stamps all the same: who has looked before and wants the
/// opposite looks again, and a copy of such a change that lies in a frozen server's socket is void.
pub(super) fn nothing_left() -> Option<Intent> {
    // H55
    Some(Intent::default())
}

fn distinct(a: AccountId, b: AccountId) -> Result<()> {
    if a == b {
        return Err(Error::invalid(format!("account {a} cannot follow, mute, block or hide from itself")));
    }
    Ok(())
}

pub(super) fn following_edge(
    tenant: &Tenant,
    reader: AccountId,
    author: AccountId,
    is_put: bool,
) -> Result<Wanted> {
    Ok(Wanted {
        set: tenant.following(reader)?,
        is_put,
        member: author,
        bound: Bound { most: tenant.settings.following_max, verb: "follows", noun: "" },
        count_field: "nf",
    })
}

/// The intent of a follow that may be made. `is_asked`: its author has said yes to it. Else it was open a moment ago,
/// and is asked again.
pub(super) fn follow_intent(
    tenant: &Tenant,
    reader: AccountId,
    author: AccountId,
    is_asked: bool,
) -> Result<Intent> {
    Ok(Intent {
        edges: vec![following_edge(tenant, reader, author, true)?],
        // H14: with the follow, in one function: whatever becomes of the rest, the next read pulls the author.
        marked: vec![(author, !is_asked)],
        request: Some((author, None, None)),
        tasks: vec![PairTask { reader, author, may_drop: true }.into()],
        ..Intent::default()
    })
}

pub(super) fn unfollow_intent(tenant: &Tenant, reader: AccountId, author: AccountId) -> Result<Intent> {
    Ok(Intent {
        edges: vec![following_edge(tenant, reader, author, false)?],
        cells: vec![OwnCell::gone(tenant.keys().marks(reader), author)],
        request: Some((author, None, None)),
        // The home stays as it is: reads leave out whom its reader doesn't follow.
        tasks: vec![PairTask { reader, author, may_drop: false }.into()],
        ..Intent::default()
    })
}

/// Follows, or asks to.
pub(crate) async fn follow(
    graph: &Arc<Graph>,
    reader: AccountId,
    author: AccountId,
) -> Result<(Followed, Epoch)> {
    distinct(reader, author)?;
    let _place = reserve(&graph.journal, 1)?;
    let card = graph.existing(author).await?;
    if !card.is_active() {
        return Err(Error::new(
            ErrorCode::NotActive,
            format!("account {author} is {:?}: it cannot be followed", card.state),
        ));
    }
    // Told at once, for whoever asks. It may block, or be locked, before the follow is written: so its side looks
    // again after that (H24, H85).
    if card.blocks > 0 && graph.is_blocked(author, reader).await? {
        return Err(Error::new(ErrorCode::Blocked, format!("account {author} blocks account {reader}")));
    }
    if !card.is_locked
        && let Some(epoch) = follow_known(graph, reader, author).await?
    {
        meters::graph_change("follow");
        return Ok((Followed::Following, epoch));
    }
    let following = graph.following(reader)?;
    let is_requested = AtomicBool::new(false);
    let epoch = apply(graph, reader, || {
        Box::pin(async {
            is_requested.store(false, Ordering::Relaxed);
            // In its own bucket, under the stamp that is compared: no block of its own comes between.
            if graph.is_blocked(reader, author).await? {
                let text = format!("account {reader} blocks account {author}: unblock it first");
                return Err(Error::new(ErrorCode::Blocked, text));
            }
            if following.score(&author).await?.is_some() {
                return Ok(nothing_left());
            }
            if !card.is_locked {
                return follow_intent(graph, reader, author, false).map(Some);
            }
            is_requested.store(true, Ordering::Relaxed);
            if requested(graph, reader, author).await?.is_some() {
                return Ok(nothing_left());
            }
            has_room(graph, author).await?;
            Ok(Some(Intent {
                request: Some((author, None, Some(draw()))),
                tasks: vec![PairTask { reader, author, may_drop: true }.into()],
                ..Intent::default()
            }))
        })
    })
    .await?;
    meters::graph_change("follow");
    let followed = if is_requested.into_inner() { Followed::Requested } else { Followed::Following };
    Ok((followed, epoch))
}

/// Follows, if what this instance remembers of the reader says that it may: the change compares whether it is still so.
async fn follow_known(graph: &Arc<Graph>, reader: AccountId, author: AccountId) -> Result<Option<Epoch>> {
    match graph.readers.state(reader) {
        Some(known) if !known.blocks(author.get()) && !known.follows(author.get()) => {
            apply_known(graph, reader, &known, follow_intent(graph, reader, author, false)?).await
        }
        _ => Ok(None),
    }
}

/// Asks what `reader`'s request to follow `author` is.
pub(super) fn requested_request(tenant: &Tenant, reader: AccountId, author: AccountId) -> Request {
    let command = Command::new("HGET").arg(&tenant.keys().requested(reader)).arg(&author.to_bytes());
    Request::read(tenant.slot(reader), command)
}

/// What `reader`'s request to follow `author` is, if there is one.
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
    Err(Error::new(ErrorKind::Overloaded, text))
}

/// Unfollows, or takes a request back.
pub(crate) async fn unfollow(graph: &Arc<Graph>, reader: AccountId, author: AccountId) -> Result<Epoch> {
    distinct(reader, author)?;
    let _place = reserve(&graph.journal, 1)?;
    let following = graph.following(reader)?;
    meters::graph_change("unfollow");
    apply(graph, reader, || {
        Box::pin(async {
            // First the request: an approval may turn it into a follow between these two looks, never back.
            let is_unasked = async || requested(graph, reader, author).await.map(|asked| asked.is_none());
            let follows_not = async || following.score(&author).await.map(|since| since.is_none());
            let is_nothing = is_unasked().await? && follows_not().await?;
            if is_nothing {
                return Ok(nothing_left());
            }
            unfollow_intent(graph, reader, author).map(Some)
        })
    })
    .await
}

/// Ends the follow with this score, if its author still doesn't want it.
pub(super) async fn end_unwanted(
    graph: &Arc<Graph>,
    reader: AccountId,
    author: AccountId,
    since: f64,
) -> Result<Epoch> {
    let following = graph.following(reader)?;
    apply(graph, reader, || {
        Box::pin(async {
            let now = following.score(&author).await?;
            let is_same = now.is_some_and(|now| now.to_bits() == since.to_bits());
            let mut said = Touched::new();
            // H20: unblocked, R may have followed again. Read under the stamp that is compared: a follow that was
            // acknowledged since has renewed it.
            if !is_same || wanted(graph, reader, author, &mut said).await?.is_some() {
                return Ok(None);
            }
            // H52: that it is unwanted must last: else a failover takes the block back, and the follow is gone all the
            // same.
            graph.router().fence(&said).await?;
            unfollow_intent(graph, reader, author).map(Some)
        })
    })
    .await
}

/// Switches a mute, block or hide on or off.
pub(crate) async fn toggle(
    graph: &Arc<Graph>,
    account: AccountId,
    other: AccountId,
    what: Toggle,
    on: bool,
) -> Result<Epoch> {
    distinct(account, other)?;
    // A block ends follows both ways.
    let places = if what == Toggle::Block && on { 2 } else { 0 };
    let _places = reserve(&graph.journal, places)?;
    // A mute of somebody who is gone can be taken back all the same.
    if on {
        graph.existing(other).await?;
    }
    let (set, count_field) = match what {
        Toggle::Mute => (graph.mutes(account)?, ""),
        Toggle::Block => (graph.blocks(account)?, "nb"),
        Toggle::Hide => (graph.hides(account)?, "nh"),
    };
    meters::graph_change(what.label(on));
    apply(graph, account, || {
        Box::pin(async {
            if set.score(&other).await?.is_some() == on {
                return Ok(nothing_left());
            }
            let verb = match what {
                Toggle::Mute => "mutes",
                Toggle::Block => "blocks",
                Toggle::Hide => "hides from",
            };
            let bound = Bound { most: graph.settings.restrictions_max, verb, noun: "" };
            let edge = Wanted { set: set.clone(), is_put: on, member: other, bound, count_field };
            let mut intent = Intent { edges: vec![edge], ..Intent::default() };
            if what == Toggle::Block && on {
                // Its own follow ends with the block. The other one lies in another bucket: its pair finds that it is
                // unwanted.
                intent.edges.push(following_edge(graph, account, other, false)?);
                intent.cells.push(OwnCell::gone(graph.keys().marks(account), other));
                intent.request = Some((other, None, None));
                intent.tasks = vec![
                    PairTask { reader: account, author: other, may_drop: false }.into(),
                    PairTask { reader: other, author: account, may_drop: false }.into(),
                ];
            }
            Ok(Some(intent))
        })
    })
    .await
}
