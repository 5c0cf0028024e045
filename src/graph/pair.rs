//! `pair`: bringing what is derived from "R follows X" in line with it: R's edge among X's followers, R's pull mark.
//!
//! A follow is acknowledged with a pull mark: from then on R sees X's posts by pulling them, which is always right.
//! [Completion](complete) takes the mark away once pushing works.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quick_cache::sync::Cache;
use tokio::time::Instant;

use super::complete::{Completed, Follow, complete, complete_at_once, look_at};
use super::followers::note as note_followers;
use super::new_mark::{confirm, end_unapproved, no_tree};
use super::request::approved;
use super::toggles::{end_unwanted, follow_intent, requested, requested_request};
use crate::account::Account;
use crate::cluster::{Command, Request, Touched};
use crate::error::{Error, ErrorKind, Result};
use crate::functions::{self, Look, Settled, maybe_nonce};
use crate::graph::Graph;
use crate::ids::AccountId;
use crate::journal::Ended;
use crate::meters;
use crate::nonce::Nonce;
use crate::reader::is_new_mark;
use crate::tenant::Tenant;

/// A fill that is seen with the same nonce for so long has come to a halt.
const FILL_PATIENCE: Duration = Duration::from_secs(10);
/// Tries to take an edge off that turns out to be newer than the look at its follow.
const REMOVALS_MAX: usize = 3;
/// Fills under way that are remembered.
const FILLS_SEEN: usize = 10_000;

/// Looks at whether one follows the other, and does what is left to do.
pub(crate) async fn settle_pair(
    graph: &Arc<Graph>,
    reader: AccountId,
    author: AccountId,
    may_drop: bool,
    touched: &mut Touched,
) -> Result<Ended> {
    let ended = settle_edge(graph, reader, author, may_drop, touched).await?;
    if matches!(ended, Ended::Done) {
        note_followers(graph, author, touched).await?;
    }
    Ok(ended)
}

/// The same for a follow that was made just now, in fewer calls if all about it is small. `entry`: what is done with
/// that.
pub(crate) async fn settle_follow(
    graph: &Arc<Graph>,
    entry: Nonce,
    author: AccountId,
    follow: &Follow,
    may_drop: bool,
    touched: &mut Touched,
) -> Result<Ended> {
    match complete_at_once(graph, author, follow, may_drop, entry, touched).await? {
        // One thing after another: a look tells what it is by now.
        None => settle_pair(graph, follow.reader, author, may_drop, touched).await,
        Some(Completed::Settled(settled)) if matches!(settled[..], [(_, Settled::Done(_))]) => {
            Ok(Ended::Struck)
        }
        Some(completed) => came_of(graph, author, follow, completed, touched).await,
    }
}

async fn settle_edge(
    graph: &Arc<Graph>,
    reader: AccountId,
    author: AccountId,
    may_drop: bool,
    touched: &mut Touched,
) -> Result<Ended> {
    match look(graph, reader, author, 0, touched).await? {
        Look::Following { since, mark, floor } => {
            let card = wanted(graph, reader, author, touched).await?;
            if card.is_none() {
                end_unwanted(graph, reader, author, since).await?;
                // Whatever came of it: the next look takes the edge off, or finds the follow wanted after all.
                return Ok(Ended::Later);
            }
            let Some(mark) = mark else {
                finish_request(graph, reader, author, touched).await?;
                return Ok(Ended::Done);
            };
            // H85: it may have been locked between the decision to follow and the follow.
            let is_locked = card.is_some_and(|card| card.is_locked);
            if is_locked && is_new_mark(&mark) && approved(graph, author, reader, touched).await?.is_none() {
                return end_unapproved(graph, reader, author, (since, mark)).await;
            }
            let follow = Follow { reader, since, mark, floor };
            let completed =
                complete(graph, author, std::slice::from_ref(&follow), (may_drop, false), touched).await?;
            let ended = came_of(graph, author, &follow, completed, touched).await?;
            finish_request(graph, reader, author, touched).await?;
            Ok(ended)
        }
        Look::Not(stamp) => {
            if !remove_edge(graph, reader, author, stamp, touched).await? {
                return Ok(Ended::Later);
            }
            settle_request(graph, reader, author, touched).await
        }
        Look::Tree(_) => Err(no_tree()),
    }
}

/// R doesn't follow X, as of that stamp of its bucket: takes its edge off. False: by now it follows.
async fn remove_edge(
    graph: &Graph,
    reader: AccountId,
    author: AccountId,
    mut stamp: u64,
    touched: &mut Touched,
) -> Result<bool> {
    for _ in 0..REMOVALS_MAX {
        // That R doesn't follow must last before the edge goes: else R follows again, without an edge.
        graph.router().fence(touched).await?;
        #[expect(clippy::cast_precision_loss, reason = "stamps are below 2^53")]
        let removed = graph.followers(author)?.remove_below(&[(reader, stamp as f64)]).await?;
        touched.extend(&removed.touched);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a stamp is a score of edges"
        )]
        let kept = removed.kept.map(|kept| kept as u64);
        let Some(kept) = kept else { return Ok(true) };
        // It is of a newer follow; or of one that R's server has lost, and its clock is behind (H86). Raised above that
        // one, it tells which.
        match look(graph, reader, author, kept, touched).await? {
            Look::Following { .. } => return Ok(false),
            Look::Not(above) => stamp = above,
            Look::Tree(_) => return Err(no_tree()),
        }
    }
    // It follows and unfollows all the time.
    Ok(false)
}

/// An author that is there and doesn't block the reader. `said`: whose word that is. It is noted before the block is
/// read, so a fence over it covers both.
pub(super) async fn wanted(
    tenant: &Tenant,
    reader: AccountId,
    author: AccountId,
    said: &mut Touched,
) -> Result<Option<Account>> {
    let answer = tenant.router().ask(tenant.account_request(author)).await?;
    said.add(&answer);
    let Some(card) = Account::parse(author, answer.ok()?)?.filter(Account::is_there) else { return Ok(None) };
    Ok(if tenant.is_blocked(author, reader).await? { None } else { Some(card) })
}

/// What is left to do once one follow was to be completed.
async fn came_of(
    graph: &Graph,
    author: AccountId,
    follow: &Follow,
    completed: Completed,
    touched: &mut Touched,
) -> Result<Ended> {
    let reader = follow.reader;
    let stays = match completed {
        // Its deletion may have turned all followers away before our edge was written.
        Completed::AuthorGone => return Ok(Ended::Later),
        // An unfollow may have been settled before our edge was written: then it must be looked at again.
        Completed::Pulled => match look(graph, reader, author, 0, touched).await? {
            Look::Following { .. } => true,
            _ => return Ok(Ended::Later),
        },
        Completed::Settled(settled) => match settled.first() {
            Some((_, Settled::Busy(nonce))) => {
                // However long the fill takes, its author has let it follow.
                confirm(graph, reader, author, &follow.mark, touched).await?;
                return wait_for_fill(graph, reader, *nonce).await;
            }
            Some((_, Settled::Changed | Settled::NoEdge)) => return Ok(Ended::Later),
            Some((_, Settled::Left)) => true,
            _ => false,
        },
    };
    let is_done = !stays || confirm(graph, reader, author, &follow.mark, touched).await?;
    Ok(if is_done { Ended::Done } else { Ended::Later })
}

async fn look(
    graph: &Graph,
    reader: AccountId,
    author: AccountId,
    above: u64,
    touched: &mut Touched,
) -> Result<Look> {
    let mut looks = look_at(graph, author, &[reader], above, touched).await?;
    looks.pop().map(|(_, look)| look).ok_or_else(|| Error::internal("a look at a pair saw nothing"))
}

/// The home is being filled. A fill that has come to a halt is ended: the next read begins another.
async fn wait_for_fill(graph: &Graph, reader: AccountId, nonce: Nonce) -> Result<Ended> {
    if graph.fills_seen.is_stale(reader, nonce) {
        let command = functions::home_drop(graph.keys().home(reader), &nonce);
        graph.router().call(Request::write(graph.slot(reader), command)).await?;
        meters::fill("ended");
    }
    Ok(Ended::Later)
}

/// Fills that were seen under way, and since when.
#[derive(Debug)]
pub(crate) struct FillsSeen(Cache<AccountId, Arc<Mutex<(Nonce, Instant)>>>);

impl FillsSeen {
    pub(crate) fn new() -> Self {
        Self(Cache::new(FILLS_SEEN))
    }

    fn is_stale(&self, reader: AccountId, nonce: Nonce) -> bool {
        let seen = match self.0.get(&reader) {
            Some(seen) => seen,
            None => {
                let seen = Arc::new(Mutex::new((nonce, Instant::now())));
                self.0.insert(reader, seen.clone());
                seen
            }
        };
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.0 != nonce {
            *seen = (nonce, Instant::now());
        }
        seen.1.elapsed() >= FILL_PATIENCE
    }
}

/// R doesn't follow X: perhaps it has asked to, and perhaps X has said yes.
async fn settle_request(
    graph: &Arc<Graph>,
    reader: AccountId,
    author: AccountId,
    touched: &mut Touched,
) -> Result<Ended> {
    let keys = graph.keys();
    let Some(request) = asked(graph, reader, author, touched).await? else {
        finish_request(graph, reader, author, touched).await?;
        return Ok(Ended::Done);
    };
    let mut said = Touched::new();
    if wanted(graph, reader, author, &mut said).await?.is_none() {
        // As for a follow: that it is unwanted must last.
        graph.router().fence(&said).await?;
        return withdraw(graph, reader, author, request).await;
    }
    let mut said = Touched::new();
    let approval = approved(graph, author, reader, &mut said).await?;
    // H22: not for another request, since taken back.
    let is_approved = approval == Some(request);
    if is_approved {
        // As for a follow that ends: what it begins by must last.
        graph.router().fence(&said).await?;
    }
    // H122: nobody has said yes, and it is locked: if a primary that was replaced says so, that goes for what was.
    let mut denied = if is_approved { Touched::new() } else { said };
    if is_approved || needs_no_answer(graph, author, &mut denied).await? {
        let made = super::change::apply(graph, reader, || {
            Box::pin(async {
                if requested(graph, reader, author).await? != Some(request) {
                    return Ok(None);
                }
                let mut intent = follow_intent(graph, reader, author, is_approved)?;
                intent.request = Some((author, Some(request), None));
                Ok(Some(intent))
            })
        })
        .await;
        return match made {
            Ok(_) => Ok(Ended::Done),
            // It follows as many as it may, or may not follow (any more): asking again later is its affair.
            Err(e) if matches!(e.kind(), ErrorKind::Invalid | ErrorKind::NotFound) => {
                withdraw(graph, reader, author, request).await
            }
            Err(e) => Err(e),
        };
    }
    let of = [keys.waiting(author), keys.notes(graph.bucket(author))];
    let set = functions::waiting_set(&of, (reader, author), &request, graph.router().now_ms());
    let answer = graph.router().ask(Request::write(graph.slot(author), set)).await?;
    touched.add(&answer);
    answer.ok()?;
    // After that: who unlocks goes through those that are listed.
    if needs_no_answer(graph, author, &mut denied).await? {
        return Ok(Ended::Later);
    }
    touched.extend(&denied);
    // It may have been taken back, and that settled, before we wrote.
    finish_request(graph, reader, author, touched).await?;
    // Then another one made, and that listed: ours has come over it.
    let newer = asked(graph, reader, author, touched).await?.filter(|now| *now != request);
    Ok(if newer.is_some() { Ended::Later } else { Ended::Done })
}

/// Whether an account is locked no more, on replicas too: what was asked of it while it was needs no answer. `denied`:
/// whose word it is that it does.
async fn needs_no_answer(tenant: &Tenant, author: AccountId, denied: &mut Touched) -> Result<bool> {
    let answer = tenant.router().ask(tenant.account_request(author)).await?;
    let mut said = Touched::new();
    said.add(&answer);
    let is_open =
        Account::parse(author, answer.ok()?)?.is_some_and(|card| card.is_there() && !card.is_locked);
    match is_open {
        true => tenant.router().fence(&said).await.map(drop)?,
        false => denied.extend(&said),
    }
    Ok(is_open)
}

/// Takes a request back, if it is still that one.
async fn withdraw(graph: &Arc<Graph>, reader: AccountId, author: AccountId, request: Nonce) -> Result<Ended> {
    super::change::apply(graph, reader, || {
        Box::pin(async {
            let is_same = requested(graph, reader, author).await? == Some(request);
            is_same.then(|| super::toggles::unfollow_intent(graph, reader, author)).transpose()
        })
    })
    .await?;
    Ok(Ended::Done)
}

/// What R's request is, and whose word that is: a primary that was replaced says what was asked before, and X's list is
/// left as it is by that alone (H94). So it must be true when the entry is struck.
async fn asked(
    tenant: &Tenant,
    reader: AccountId,
    author: AccountId,
    touched: &mut Touched,
) -> Result<Option<Nonce>> {
    let answer = tenant.router().ask(requested_request(tenant, reader, author)).await?;
    // H94: one that was replaced says what was.
    touched.add(&answer);
    maybe_nonce(&answer.ok()?)
}

/// Whether X's list of who waits doesn't say what R has asked; if it does, that lasts.
pub(super) async fn is_listed_wrongly(tenant: &Tenant, reader: AccountId, author: AccountId) -> Result<bool> {
    let get = Command::new("HGET").arg(&tenant.keys().waiting(author)).arg(&reader.to_bytes());
    let listed = maybe_nonce(&tenant.router().call(Request::read(tenant.slot(author), get)).await?)?;
    let mut said = Touched::new();
    let is_wrong = asked(tenant, reader, author, &mut said).await? != listed;
    tenant.router().fence(&said).await?;
    Ok(is_wrong)
}

/// R no longer asks: X's list needn't hold it, nor what X said to it.
async fn finish_request(
    tenant: &Tenant,
    reader: AccountId,
    author: AccountId,
    touched: &mut Touched,
) -> Result<()> {
    let keys = tenant.keys();
    for hash in [keys.waiting(author), keys.approved(author)] {
        let get = Command::new("HGET").arg(&hash).arg(&reader.to_bytes());
        // Seen gone, by us or by whoever tried before: that must last as well.
        let answer = tenant.router().ask(Request::read(tenant.slot(author), get)).await?;
        touched.add(&answer);
        let value = answer.ok()?;
        if value.is_nil() {
            continue;
        }
        // A newer request may have come since: only what was seen goes, if nothing is asked now.
        if asked(tenant, reader, author, touched).await?.as_ref().map(Nonce::as_slice) == Some(value.bytes()?)
        {
            continue;
        }
        let command = functions::field_drop(hash, &reader.to_bytes(), value.bytes()?);
        let answer = tenant.router().ask(Request::write(tenant.slot(author), command)).await?;
        touched.add(&answer);
        answer.ok()?;
    }
    Ok(())
}
