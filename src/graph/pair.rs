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
use super::request::approved;
use super::toggles::{end_unwanted, follow_intent, is_wanted, requested};
use crate::account::Account;
use crate::cluster::{Command, Request, Touched};
use crate::context::Context;
use crate::error::{Error, ErrorKind, Result};
use crate::fanout::Ended;
use crate::functions::{self, Look, Mark, Settled};
use crate::ids::AccountId;
use crate::meters;
use crate::rules;

/// A fill that is seen with the same nonce for so long has come to a halt.
const FILL_PATIENCE: Duration = Duration::from_secs(10);
/// Fills under way that are remembered.
const FILLS_SEEN: usize = 10_000;

/// Looks at whether one follows the other, and does what is left to do.
pub(crate) async fn settle_pair(
    context: &Arc<Context>,
    reader: AccountId,
    author: AccountId,
    may_drop: bool,
    touched: &mut Touched,
) -> Result<Ended> {
    let ended = settle_edge(context, reader, author, may_drop, touched).await?;
    if matches!(ended, Ended::Done) {
        note_followers(context, author, touched).await?;
    }
    Ok(ended)
}

/// The same for a follow that was made just now, in fewer calls if all about it is small. `entry`: what is done with that.
pub(crate) async fn settle_follow(
    context: &Arc<Context>,
    entry: Mark,
    author: AccountId,
    follow: &Follow,
    may_drop: bool,
    touched: &mut Touched,
) -> Result<Ended> {
    let completed = match rules::takes_short_cuts() {
        true => complete_at_once(context, author, follow, may_drop, entry, touched).await?,
        false => None,
    };
    match completed {
        // One thing after another: a look tells what it is by now.
        None => settle_pair(context, follow.reader, author, may_drop, touched).await,
        Some(Completed::Settled(settled)) if matches!(settled[..], [(_, Settled::Done(_))]) => {
            Ok(Ended::Struck)
        }
        Some(completed) => came_of(context, follow.reader, author, completed, touched).await,
    }
}

async fn settle_edge(
    context: &Arc<Context>,
    reader: AccountId,
    author: AccountId,
    may_drop: bool,
    touched: &mut Touched,
) -> Result<Ended> {
    match look(context, reader, author, touched).await? {
        Look::Following { since, mark, floor } => {
            if rules::holds("block_read_again") && !is_wanted(context, reader, author, touched).await? {
                end_unwanted(context, reader, author, since).await?;
                // Whatever came of it: the next look takes the edge off, or finds the follow wanted after all.
                return Ok(Ended::Later);
            }
            let Some(mark) = mark else {
                finish_request(context, reader, author, touched).await?;
                return Ok(Ended::Done);
            };
            let follow = Follow { reader, since, mark, floor };
            let completed = complete(context, author, &[follow], (may_drop, false), touched).await?;
            let ended = came_of(context, reader, author, completed, touched).await?;
            finish_request(context, reader, author, touched).await?;
            Ok(ended)
        }
        Look::Not(stamp) => {
            // That R doesn't follow must last before the edge goes: else R follows again, without an edge.
            if rules::holds("fence_edge") {
                context.router().fence(touched).await?;
            }
            #[expect(clippy::cast_precision_loss, reason = "stamps are below 2^53")]
            let removed = context.followers(author)?.remove_below(&[(reader, stamp as f64)]).await?;
            touched.extend(&removed.touched);
            settle_request(context, reader, author, touched).await
        }
        Look::Tree(_) => Err(Error::internal("the look at a pair went on with a tree")),
    }
}

/// What is left to do once one follow was to be completed.
async fn came_of(
    context: &Context,
    reader: AccountId,
    author: AccountId,
    completed: Completed,
    touched: &mut Touched,
) -> Result<Ended> {
    match completed {
        // Its deletion may have turned all followers away before our edge was written.
        Completed::AuthorGone => Ok(Ended::Later),
        // An unfollow may have been settled before our edge was written: then it must be looked at again.
        Completed::Pulled => match look(context, reader, author, touched).await? {
            Look::Following { .. } => Ok(Ended::Done),
            _ => Ok(Ended::Later),
        },
        Completed::Settled(settled) => match settled.first() {
            Some((_, Settled::Busy(nonce))) => wait_for_fill(context, reader, *nonce).await,
            Some((_, Settled::Changed | Settled::NoEdge)) => Ok(Ended::Later),
            _ => Ok(Ended::Done),
        },
    }
}

async fn look(
    context: &Context,
    reader: AccountId,
    author: AccountId,
    touched: &mut Touched,
) -> Result<Look> {
    let mut looks = look_at(context, author, &[reader], touched).await?;
    looks.pop().map(|(_, look)| look).ok_or_else(|| Error::internal("a look at a pair saw nothing"))
}

/// The home is being filled. A fill that has come to a halt is ended: the next read begins another.
async fn wait_for_fill(context: &Context, reader: AccountId, nonce: Mark) -> Result<Ended> {
    if context.fills_seen.is_stale(reader, nonce) {
        let command = functions::home_drop(context.keys().home(reader), &nonce);
        context.router().call(Request::write(context.slot(reader), command)).await?;
        meters::fill("ended");
    }
    Ok(Ended::Later)
}

/// Fills that were seen under way, and since when.
#[derive(Debug)]
pub(crate) struct FillsSeen(Cache<AccountId, Arc<Mutex<(Mark, Instant)>>>);

impl FillsSeen {
    pub(crate) fn new() -> Self {
        Self(Cache::new(FILLS_SEEN))
    }

    fn is_stale(&self, reader: AccountId, nonce: Mark) -> bool {
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
        seen.1.elapsed() >= rules::size(FILL_PATIENCE, Duration::from_millis(300))
    }
}

/// R doesn't follow X: perhaps it has asked to, and perhaps X has said yes.
async fn settle_request(
    context: &Arc<Context>,
    reader: AccountId,
    author: AccountId,
    touched: &mut Touched,
) -> Result<Ended> {
    let keys = context.keys();
    let Some(request) = requested(context, reader, author).await? else {
        finish_request(context, reader, author, touched).await?;
        return Ok(Ended::Done);
    };
    let mut said = Touched::new();
    if !is_wanted(context, reader, author, &mut said).await? {
        // As for a follow: that it is unwanted must last.
        context.router().fence(&said).await?;
        return withdraw(context, reader, author, request).await;
    }
    let approval = approved(context, author, reader).await?;
    let is_approved = approval == Some(request) || approval.is_some() && !rules::holds("same_request");
    if is_approved || needs_no_answer(context, author).await? {
        let made = super::change::apply(context, reader, || {
            Box::pin(async {
                if requested(context, reader, author).await? != Some(request) {
                    return Ok(None);
                }
                let mut intent = follow_intent(context, reader, author)?;
                intent.request = Some((author, Some(request), None));
                Ok(Some(intent))
            })
        })
        .await;
        return match made {
            Ok(_) => Ok(Ended::Done),
            // It follows as many as it may, or may not follow (any more): asking again later is its affair.
            Err(e) if matches!(e.kind(), ErrorKind::Invalid | ErrorKind::NotFound) => {
                withdraw(context, reader, author, request).await
            }
            Err(e) => Err(e),
        };
    }
    let set = Command::new("HSET").arg(&keys.waiting(author)).arg(&reader.to_bytes()).arg(&request);
    let answer = context.router().ask(Request::write(context.slot(author), set)).await?;
    touched.add(&answer);
    answer.ok()?;
    // After that: who unlocks goes through those that are listed.
    if needs_no_answer(context, author).await? {
        return Ok(Ended::Later);
    }
    // It may have been taken back, and that settled, before we wrote.
    finish_request(context, reader, author, touched).await?;
    // Then another one made, and that listed: ours has come over it.
    let newer = requested(context, reader, author).await?.filter(|now| *now != request);
    Ok(if newer.is_some() && rules::holds("newer_request") { Ended::Later } else { Ended::Done })
}

/// Whether an account is locked no more, on replicas too: what was asked of it while it was needs no answer.
async fn needs_no_answer(context: &Context, author: AccountId) -> Result<bool> {
    let answer = context.router().ask(context.account_request(author)).await?;
    let mut said = Touched::new();
    said.add(&answer);
    let is_open =
        Account::parse(author, answer.ok()?)?.is_some_and(|card| card.is_there() && !card.is_locked);
    if is_open {
        context.router().fence(&said).await?;
    }
    Ok(is_open)
}

/// Takes a request back, if it is still that one.
async fn withdraw(
    context: &Arc<Context>,
    reader: AccountId,
    author: AccountId,
    request: Mark,
) -> Result<Ended> {
    super::change::apply(context, reader, || {
        Box::pin(async {
            let is_same = requested(context, reader, author).await? == Some(request);
            is_same.then(|| super::toggles::unfollow_intent(context, reader, author)).transpose()
        })
    })
    .await?;
    Ok(Ended::Done)
}

/// R no longer asks: X's list needn't hold it, nor what X said to it.
async fn finish_request(
    context: &Context,
    reader: AccountId,
    author: AccountId,
    touched: &mut Touched,
) -> Result<()> {
    let keys = context.keys();
    for hash in [keys.waiting(author), keys.approved(author)] {
        let get = Command::new("HGET").arg(&hash).arg(&reader.to_bytes());
        // Seen gone, by us or by whoever tried before: that must last as well.
        let answer = context.router().ask(Request::read(context.slot(author), get)).await?;
        touched.add(&answer);
        let value = answer.ok()?;
        if value.is_nil() {
            continue;
        }
        // A newer request may have come since: only what was seen goes, if nothing is asked now.
        if requested(context, reader, author).await?.as_ref().map(Mark::as_slice) == Some(value.bytes()?) {
            continue;
        }
        let command = functions::field_drop(hash, &reader.to_bytes(), value.bytes()?);
        let answer = context.router().ask(Request::write(context.slot(author), command)).await?;
        touched.add(&answer);
        answer.ok()?;
    }
    Ok(())
}
