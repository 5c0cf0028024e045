//! Locked accounts: requests to follow them, and their answers.
//!
//! The follower's bucket holds what it has requested, the locked account's whom it has approved, both with the same
//! random bytes: an approval counts for the very request that it was given for. The list of those who wait is derived.

use std::sync::Arc;

use super::change::graph_stamp;
use super::toggles::{requested, unfollow_intent};
use crate::cluster::{Command, Epoch, Reply, Request};
use crate::context::{Context, no_account};
use crate::error::{Error, ErrorKind, Result};
use crate::fanout::{Entry, Task, accept, journal_full, reserve};
use crate::functions::{self, Compared, mark};
use crate::ids::AccountId;

/// Tries of an approval between other changes of it.
const TRIES_MAX: usize = 16;
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
) -> Result<Epoch> {
    let keys = context.keys();
    let task = Task::Pair { reader: requester, author: account, may_drop: true };
    let mut lost = None;
    for _ in 0..TRIES_MAX {
        let _place = reserve(context, 1)?;
        let Some(request) = requested(context, requester, account).await? else {
            let (_, epoch) = graph_stamp(context, requester).await?;
            let follows = context.following(requester)?.score(&account).await?.is_some();
            return if follows { Ok(epoch) } else { Err(no_request(account, requester)) };
        };
        let before = approved(context, account, requester).await?;
        let entry = Entry::new(context.bucket(account), context.instance, task);
        let of = [keys.approved(account), keys.journal(entry.bucket), keys.account(account)];
        let most = context.settings.journal_max;
        let command = functions::approve(&of, requester, before, request, most, (&entry.id, &entry.stored()));
        let answer = match context.once(context.slot(account), command).await {
            Err(e) if e.kind() == ErrorKind::Unknown => {
                lost = Some(e);
                continue;
            }
            answer => answer?,
        };
        let epoch = answer.epoch.clone();
        match Compared::parse(answer.ok()?)? {
            Compared::Done => {
                drop(accept(context, entry));
                return Ok(epoch);
            }
            Compared::JournalFull => return Err(journal_full(context)),
            Compared::Changed => {}
            Compared::NoAccount => return Err(no_account(account)),
        }
    }
    Err(lost.unwrap_or_else(|| no_request(account, requester)))
}

/// Turns the request that `requester` has made down.
pub(crate) async fn reject(
    context: &Arc<Context>,
    account: AccountId,
    requester: AccountId,
) -> Result<Epoch> {
    let _place = reserve(context, 1)?;
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
