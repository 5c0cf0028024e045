//! A request to follow, brought in line with what its author says: it becomes a follow, is withdrawn, or is listed
//! among those that wait for an answer.

use std::sync::Arc;

use super::decide::{FollowRequestFacts, RequestStep};
use super::wanted;
use crate::account::Account;
use crate::cluster::{Command, Epoch, Request, TouchedServers};
use crate::error::{ErrorKind, Result};
use crate::functions::{self, maybe_nonce};
use crate::graph::Graph;
use crate::graph::change::apply;
use crate::graph::request::approved;
use crate::graph::toggles::{follow_intent, requested, requested_request, unfollow_intent};
use crate::ids::AccountId;
use crate::journal::RunOutcome;
use crate::nonce::Nonce;
use crate::tenant::Tenant;

/// R doesn't follow X: perhaps it has asked to, and perhaps X has said yes.
pub(super) async fn settle_request(
    graph: &Arc<Graph>,
    reader: AccountId,
    author: AccountId,
    touched: &mut TouchedServers,
) -> Result<RunOutcome> {
    let tenant = &graph.tenant;
    let Some(request) = asked(tenant, reader, author, touched).await? else {
        finish_request(tenant, reader, author, touched).await?;
        return Ok(RunOutcome::Done);
    };
    let mut facts = FollowRequestFacts::new(request);
    // X's last word, and all that denies R the follow.
    let (mut said, mut denied) = (TouchedServers::new(), TouchedServers::new());
    loop {
        match facts.step() {
            RequestStep::AskAuthor => {
                facts.is_wanted = Some(wanted(tenant, reader, author, &mut said).await?.is_some());
            }
            RequestStep::AskApproval => {
                said = TouchedServers::new();
                facts.approval = Some(approved(tenant, author, reader, &mut said).await?);
                denied.extend(&said);
            }
            RequestStep::AskLock => {
                said = TouchedServers::new();
                facts.is_open = Some(is_open(tenant, author, &mut said).await?);
                denied.extend(&said);
            }
            RequestStep::Fence => {
                tenant.router().fence(&said).await?;
                facts.lasts = true;
            }
            RequestStep::Withdraw => {
                withdraw(graph, reader, author, request).await?;
                return Ok(RunOutcome::Done);
            }
            RequestStep::Follow { is_approved } => {
                return match follow_requested(graph, reader, author, (request, is_approved)).await {
                    Ok(_) => Ok(RunOutcome::Done),
                    // It follows as many as it may, or may not follow (any more): asking again later is its affair.
                    Err(e) if matches!(e.kind(), ErrorKind::Invalid | ErrorKind::NotFound) => {
                        withdraw(graph, reader, author, request).await.map(|_| RunOutcome::Done)
                    }
                    Err(e) => Err(e),
                };
            }
            RequestStep::List => {
                list(tenant, reader, author, &request, touched).await?;
                (facts.is_listed, facts.is_open) = (true, None);
            }
            RequestStep::Tidy => {
                // H122: a primary that was replaced says what was, also that nobody has said yes, and that X is locked.
                touched.extend(&denied);
                // It may have been taken back, and that settled, before we wrote.
                finish_request(tenant, reader, author, touched).await?;
                let now = asked(tenant, reader, author, touched).await?;
                facts.is_newer = Some(now.is_some_and(|now| now != request));
            }
            RequestStep::Done => return Ok(RunOutcome::Done),
            RequestStep::Later => return Ok(RunOutcome::Later),
        }
    }
}

/// Has R follow, if that still is its request.
async fn follow_requested(
    graph: &Arc<Graph>,
    reader: AccountId,
    author: AccountId,
    (request, is_approved): (Nonce, bool),
) -> Result<Epoch> {
    apply(graph, reader, || {
        Box::pin(async {
            if requested(&graph.tenant, reader, author).await? != Some(request) {
                return Ok(None);
            }
            let mut intent = follow_intent(&graph.tenant, reader, author, is_approved)?;
            intent.request = Some((author, Some(request), None));
            Ok(Some(intent))
        })
    })
    .await
}

/// Has X's list of who waits name that request, and notes it there.
async fn list(
    tenant: &Tenant,
    reader: AccountId,
    author: AccountId,
    request: &Nonce,
    touched: &mut TouchedServers,
) -> Result<()> {
    let keys = tenant.keys();
    let of =
        [keys.waiting(author), keys.notes(tenant.bucket(author)), keys.inbox(author), keys.account(author)];
    let is_told = tenant.settings.keeps_notifications;
    // H127: noted by the same function: a copy that comes when all is settled is looked at once more.
    let set = functions::waiting_set(&of, (reader, author), request, is_told, tenant.router().now_ms());
    let answer = tenant.router().ask(Request::write(tenant.slot(author), set)).await?;
    touched.add(&answer);
    answer.ok().map(drop)
}

/// Whether an account is there, and not locked. `said`: whose word that is.
async fn is_open(tenant: &Tenant, author: AccountId, said: &mut TouchedServers) -> Result<bool> {
    let answer = tenant.router().ask(tenant.account_request(author)).await?;
    said.add(&answer);
    Ok(Account::parse(author, answer.ok()?)?.is_some_and(|card| card.needs_no_requests()))
}

/// Takes a request back, if it is still that one.
async fn withdraw(graph: &Arc<Graph>, reader: AccountId, author: AccountId, request: Nonce) -> Result<Epoch> {
    apply(graph, reader, || {
        Box::pin(async {
            let is_same = requested(&graph.tenant, reader, author).await? == Some(request);
            is_same.then(|| unfollow_intent(&graph.tenant, reader, author)).transpose()
        })
    })
    .await
}

/// R's request, and whose word that is: a primary that was replaced says what was asked before, and X's list is left as
/// it is by that alone (H94). So it must be true when the entry is struck.
async fn asked(
    tenant: &Tenant,
    reader: AccountId,
    author: AccountId,
    touched: &mut TouchedServers,
) -> Result<Option<Nonce>> {
    let answer = tenant.router().ask(requested_request(tenant, reader, author)).await?;
    // H94: one that was replaced says what was.
    touched.add(&answer);
    maybe_nonce(&answer.ok()?)
}

/// Whether X's list of who waits doesn't say what R has asked; if it does, that lasts.
pub(in crate::graph) async fn is_listed_wrongly(
    tenant: &Tenant,
    reader: AccountId,
    author: AccountId,
) -> Result<bool> {
    let get = Command::new("HGET").arg(&tenant.keys().waiting(author)).arg(&reader.to_bytes());
    let listed = maybe_nonce(&tenant.router().call(Request::read(tenant.slot(author), get)).await?)?;
    let mut said = TouchedServers::new();
    let is_wrong = asked(tenant, reader, author, &mut said).await? != listed;
    tenant.router().fence(&said).await?;
    Ok(is_wrong)
}

/// R no longer asks: X's list needn't hold it, nor what X said to it.
pub(super) async fn finish_request(
    tenant: &Tenant,
    reader: AccountId,
    author: AccountId,
    touched: &mut TouchedServers,
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
