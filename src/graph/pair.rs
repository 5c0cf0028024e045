//! `pair`: bringing what is derived from "R follows X" in line with it: R's edge among X's followers, R's pull mark.
//!
//! A follow is acknowledged with a pull mark: from then on R sees X's posts by pulling them, which is always right.
//! [Completion](complete) takes the mark away once pushing works.

mod asked;
mod decide;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quick_cache::sync::Cache;
use tokio::time::Instant;

use self::asked::{finish_request, settle_request};
use self::decide::{
    AuthorWord, CompletionFacts, CompletionStep, EdgeFacts, FollowFacts, FollowStep, RemovalFacts,
    RemovalStep,
};
use super::complete::{CompletionOutcome, Follow, complete, complete_at_once, look_at};
use super::followers::note as note_followers;
use super::new_mark::{confirm, end_unapproved, no_tree};
use super::request::approved;
use super::told::tell_follow;
use super::unwanted::end_unwanted;
use crate::account::Account;
use crate::cluster::{Request, TouchedServers};
use crate::error::{Error, Result};
use crate::functions::{self, PairAnswer, SettleAnswer};
use crate::graph::Graph;
use crate::ids::AccountId;
use crate::journal::RunOutcome;
use crate::meters;
use crate::nonce::Nonce;
use crate::reader::is_new_mark;
use crate::tenant::Tenant;

pub(super) use self::asked::is_listed_wrongly;

/// A fill that is seen with the same nonce for so long has come to a halt.
const FILL_PATIENCE: Duration = Duration::from_secs(10);
/// Fills under way that are remembered.
const FILLS_SEEN: usize = 10_000;

/// Looks at whether one follows the other, and does what is left to do.
pub(crate) async fn settle_pair(
    graph: &Arc<Graph>,
    reader: AccountId,
    author: AccountId,
    may_drop: bool,
    touched: &mut TouchedServers,
) -> Result<RunOutcome> {
    let ended = settle_edge(graph, reader, author, may_drop, touched).await?;
    if matches!(ended, RunOutcome::Done) {
        // Before the entry is struck: then somebody counts, whoever dies.
        note_followers(graph, author, touched).await?;
    }
    Ok(ended)
}

/// Settles a follow that was made just now, in fewer calls if all about it is small. `entry`: what is done with
/// that.
pub(crate) async fn settle_follow(
    graph: &Arc<Graph>,
    entry: Nonce,
    author: AccountId,
    follow: &Follow,
    may_drop: bool,
    touched: &mut TouchedServers,
) -> Result<RunOutcome> {
    match complete_at_once(graph, author, follow, may_drop, entry, touched).await? {
        // One thing after another: a look tells what it is by now.
        None => settle_pair(graph, follow.reader, author, may_drop, touched).await,
        // Whoever came or went is counted: `join` did that.
        Some(CompletionOutcome::Settled(settled)) if matches!(settled[..], [(_, SettleAnswer::Done(_))]) => {
            Ok(RunOutcome::Struck)
        }
        Some(completed) => came_of(graph, author, follow, completed, touched).await,
    }
}

async fn settle_edge(
    graph: &Arc<Graph>,
    reader: AccountId,
    author: AccountId,
    may_drop: bool,
    touched: &mut TouchedServers,
) -> Result<RunOutcome> {
    let tenant = &graph.tenant;
    let (since, mark, floor) = match look(tenant, reader, author, 0, touched).await? {
        PairAnswer::Following { since, mark, floor } => (since, mark, floor),
        PairAnswer::Not(tick) if remove_edge(tenant, reader, author, tick, touched).await? => {
            return settle_request(graph, reader, author, touched).await;
        }
        PairAnswer::Not(_) => return Ok(RunOutcome::Later),
        PairAnswer::Tree(_) => return Err(no_tree()),
    };
    let mut facts = FollowFacts { mark, author: None, is_approved: None };
    loop {
        match facts.step() {
            FollowStep::AskAuthor => facts.author = Some(word(tenant, reader, author, touched).await?),
            FollowStep::AskApproval => {
                facts.is_approved = Some(approved(tenant, author, reader, touched).await?.is_some());
            }
            FollowStep::EndUnwanted => {
                end_unwanted(graph, reader, author, Some(since)).await?;
                // Whatever came of it: the next look takes the edge off, or finds the follow wanted after all.
                return Ok(RunOutcome::Later);
            }
            FollowStep::EndUnapproved(mark) => {
                return end_unapproved(graph, reader, author, (since, mark)).await;
            }
            FollowStep::Complete(mark) => {
                let follow = Follow { reader, since, mark, floor };
                // H289: of a follow that is listed X has heard, though its mark goes only now.
                let is_news = is_new_mark(&mark)
                    || approved(tenant, author, reader, touched).await?.is_some()
                    || !is_listed(tenant, author, (reader, since), touched).await?;
                if is_news {
                    tell_follow(tenant, author, (reader, since), touched).await?;
                }
                let completed =
                    complete(graph, author, std::slice::from_ref(&follow), (may_drop, false), touched)
                        .await?;
                let ended = came_of(graph, author, &follow, completed, touched).await?;
                finish_request(tenant, reader, author, touched).await?;
                return Ok(ended);
            }
            FollowStep::Tidy => {
                finish_request(tenant, reader, author, touched).await?;
                return Ok(RunOutcome::Done);
            }
        }
    }
}

/// Whether X's followers name R, by that follow or a later one.
async fn is_listed(
    tenant: &Tenant,
    author: AccountId,
    (reader, since): (AccountId, f64),
    touched: &mut TouchedServers,
) -> Result<bool> {
    let asked = [(tenant.followers(author)?, reader)];
    let scores = tenant.sets().scores_said(&asked, touched).await?;
    Ok(scores.first().copied().flatten().is_some_and(|score| score >= since))
}

/// R doesn't follow X, as of that tick of its bucket: takes its edge off. False: by now it follows.
async fn remove_edge(
    tenant: &Tenant,
    reader: AccountId,
    author: AccountId,
    tick: u64,
    touched: &mut TouchedServers,
) -> Result<bool> {
    let mut facts = RemovalFacts::new(tick);
    loop {
        match facts.step() {
            RemovalStep::Fence => {
                tenant.router().fence(touched).await?;
                facts.lasts = true;
            }
            RemovalStep::RemoveBelow(tick) => {
                #[expect(clippy::cast_precision_loss, reason = "ticks are below 2^53")]
                let removed = tenant.followers(author)?.remove_below(&[(reader, tick as f64)]).await?;
                touched.extend(&removed.touched);
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a tick is a score of edges"
                )]
                let kept = removed.kept.map(|kept| kept as u64);
                facts.edge = kept.map_or(EdgeFacts::Gone, EdgeFacts::Kept);
            }
            RemovalStep::LookAbove(score) => match look(tenant, reader, author, score, touched).await? {
                PairAnswer::Following { .. } => facts.edge = EdgeFacts::Wanted,
                PairAnswer::Not(above) => facts = facts.again(above),
                PairAnswer::Tree(_) => return Err(no_tree()),
            },
            RemovalStep::Done => return Ok(true),
            RemovalStep::Later => return Ok(false),
        }
    }
}

/// Tells what an author says of a reader. `said`: whose word that is.
async fn word(
    tenant: &Tenant,
    reader: AccountId,
    author: AccountId,
    said: &mut TouchedServers,
) -> Result<AuthorWord> {
    Ok(match wanted(tenant, reader, author, said).await? {
        None => AuthorWord::Unwanted,
        Some(card) if card.is_locked => AuthorWord::Locked,
        Some(_) => AuthorWord::Open,
    })
}

/// An author that is there and doesn't block the reader. `said`: whose word that is. It is noted before the block is
/// read, so a fence over it covers both.
pub(super) async fn wanted(
    tenant: &Tenant,
    reader: AccountId,
    author: AccountId,
    said: &mut TouchedServers,
) -> Result<Option<Account>> {
    let answer = tenant.router().ask(tenant.account_request(author)).await?;
    said.add(&answer);
    let Some(card) = Account::parse(author, answer.ok()?)?.filter(Account::is_there) else { return Ok(None) };
    Ok(if tenant.is_blocked(author, reader).await? { None } else { Some(card) })
}

/// Does what is left to do once one follow was to be completed.
async fn came_of(
    graph: &Graph,
    author: AccountId,
    follow: &Follow,
    completed: CompletionOutcome,
    touched: &mut TouchedServers,
) -> Result<RunOutcome> {
    let tenant = &graph.tenant;
    let &Follow { reader, ref mark, .. } = follow;
    let mut facts = CompletionFacts { completed, still_follows: None };
    loop {
        match facts.step() {
            CompletionStep::LookAgain => {
                let seen = look(tenant, reader, author, 0, touched).await?;
                facts.still_follows = Some(matches!(seen, PairAnswer::Following { .. }));
            }
            CompletionStep::Confirm => {
                let is_same = confirm(tenant, reader, author, mark, touched).await?;
                return Ok(if is_same { RunOutcome::Done } else { RunOutcome::Later });
            }
            CompletionStep::ConfirmAndWait(nonce) => {
                confirm(tenant, reader, author, mark, touched).await?;
                return wait_for_fill(graph, reader, nonce).await;
            }
            CompletionStep::Done => return Ok(RunOutcome::Done),
            CompletionStep::Later => return Ok(RunOutcome::Later),
        }
    }
}

async fn look(
    tenant: &Tenant,
    reader: AccountId,
    author: AccountId,
    above: u64,
    touched: &mut TouchedServers,
) -> Result<PairAnswer> {
    let mut looks = look_at(tenant, author, &[reader], above, touched).await?;
    looks.pop().map(|(_, look)| look).ok_or_else(|| Error::internal("a look at a pair saw nothing"))
}

/// The home is being filled. A fill that has come to a halt is ended: the next read begins another.
async fn wait_for_fill(graph: &Graph, reader: AccountId, nonce: Nonce) -> Result<RunOutcome> {
    let tenant = &graph.tenant;
    if graph.fills_seen.is_stale(reader, nonce) {
        // H9: only with that nonce: another fill may have begun since.
        let command = functions::home_drop(tenant.keys().home(reader), &nonce);
        tenant.router().call(Request::write(tenant.slot(reader), command)).await?;
        meters::fill("ended");
    }
    Ok(RunOutcome::Later)
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
