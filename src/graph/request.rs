//! Locked accounts: requests to follow them, and their answers.
//!
//! The follower's bucket holds what it has requested, the locked account's whom it has approved, both with the same
//! random bytes: an approval counts for the very request that it was given for. The list of those who wait is derived.

use std::sync::Arc;

use super::toggles::{requested, unfollow_intent};
use crate::cluster::{Command, Epoch, Reply, Request};
use crate::context::Context;
use crate::error::{Error, ErrorKind, Result};
use crate::fanout::{Entry, Task, accept, note, reserve};
use crate::functions::{self, mark};
use crate::ids::AccountId;

/// Requests listed at once.
const WAITING_MAX: u32 = 1_000;

/// Who waits for `account`'s answer; up to a thousand, in no order.
pub(crate) async fn waiting(context: &Context, account: AccountId) -> Result<Vec<AccountId>> {
    let key = context.keys().waiting(account);
    let command = Command::new("HRANDFIELD").arg(&key).arg(WAITING_MAX);
    let reply = context.router().call(Request::read(context.slot(account), command)).await?;
    reply.into_array()?.iter().map(|id| AccountId::from_bytes(id.bytes()?)).collect()
}

/// Approves the request that `requester` has made.
pub(crate) async fn approve(
    context: &Arc<Context>,
    account: AccountId,
    requester: AccountId,
) -> Result<Option<Epoch>> {
    let _place = reserve(context)?;
    let Some(request) = requested(context, requester, account).await? else {
        let known = context.following(requester)?.score(&account).await?.is_some();
        return if known { Ok(None) } else { Err(no_request(account, requester)) };
    };
    let bucket = context.bucket(account);
    let task = Task::Pair { reader: requester, author: account, may_drop: true };
    let entry = Entry::new(bucket, context.instance, task);
    // The entry first: an approval without it would wait for the next look at this pair.
    note(context, &entry).await?;
    let set =
        Command::new("HSET").arg(&context.keys().approved(account)).arg(&requester.to_bytes()).arg(&request);
    let answer = context.router().ask(Request::write(context.slot(account), set)).await?;
    let epoch = answer.epoch.clone();
    answer.ok()?;
    drop(accept(context, entry));
    Ok(Some(epoch))
}

/// Turns the request that `requester` has made down.
pub(crate) async fn reject(
    context: &Arc<Context>,
    account: AccountId,
    requester: AccountId,
) -> Result<Option<Epoch>> {
    let _place = reserve(context)?;
    super::change::apply(context, requester, || {
        Box::pin(async {
            if requested(context, requester, account).await?.is_none() {
                return Ok(None);
            }
            unfollow_intent(context, requester, account).map(Some)
        })
    })
    .await
}

fn no_request(account: AccountId, requester: AccountId) -> Error {
    let text =
        format!("account {requester} has not asked to follow account {account}, or has taken that back");
    Error::new(ErrorKind::NotFound, text)
}

/// What `account` has approved of `requester`.
pub(super) async fn approved(
    context: &Context,
    account: AccountId,
    requester: AccountId,
) -> Result<Option<functions::Mark>> {
    let command = Command::new("HGET").arg(&context.keys().approved(account)).arg(&requester.to_bytes());
    let reply: Reply = context.router().call(Request::read(context.slot(account), command)).await?;
    if reply.is_nil() { Ok(None) } else { mark(&reply).map(Some) }
}
