//! Locked accounts: requests to follow them, and their answers.
//!
//! The follower's bucket holds what it has requested, the locked account's whom it has approved, both with the same
//! random bytes: an approval counts for the very request that it was given for. The list of those who wait is derived.

use std::sync::Arc;

use futures::stream::{self, StreamExt as _};

use super::change::graph_stamp;
use super::pair::settle_pair;
use super::toggles::{requested, unfollow_intent};
use crate::account::Account;
use crate::cluster::{Command, Epoch, Reply, Request, Touched};
use crate::context::{Context, no_account};
use crate::error::{Error, ErrorKind, Result};
use crate::fanout::{Ended, Entry, Task, accept, journal_full, reserve};
use crate::functions::{self, Compared, mark};
use crate::ids::AccountId;

/// Tries of an approval between other changes of it.
const TRIES_MAX: usize = 16;
/// Requests that an unlocked account has looked at: in one page, and at once.
const UNLOCKED_AT_ONCE: u32 = 128;
const UNLOCKED_SIDE_BY_SIDE: usize = 16;
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

/// Has all who wait for an account's answer looked at, unless it is locked: each look finds that none is needed. Whoever
/// asks from now on finds that too.
pub(crate) async fn unlock(
    context: &Arc<Context>,
    account: AccountId,
    touched: &mut Touched,
) -> Result<Ended> {
    let answer = context.router().ask(context.account_request(account)).await?;
    touched.add(&answer);
    let card = Account::parse(account, answer.ok()?)?;
    if card.is_none_or(|card| !card.is_there() || card.is_locked) {
        return Ok(Ended::Done);
    }
    let (key, mut cursor, mut ended) = (context.keys().waiting(account), "0".to_owned(), Ended::Done);
    // A hash of so many is gone through in fewer calls than this.
    for _ in 0..=2 * context.settings.requests_max {
        let scan = Command::new("HSCAN").arg(&key).arg(&*cursor).arg("COUNT").arg(UNLOCKED_AT_ONCE);
        let page = context.router().call(Request::read(context.slot(account), scan)).await?.into_array()?;
        let [next, pairs] =
            <[_; 2]>::try_from(page).map_err(|_| Error::internal("a scan gives two parts"))?;
        let requesters = pairs.into_array()?;
        let requesters = requesters.chunks_exact(2).map(|pair| AccountId::from_bytes(pair[0].bytes()?));
        let mut looks = stream::iter(requesters.collect::<Result<Vec<_>>>()?)
            .map(|requester| async move {
                // Each leaves a task: users' own must find room beside them.
                context.tasks.room().await;
                let mut touched = Touched::new();
                let ended = settle_pair(context, requester, account, true, &mut touched).await?;
                Ok::<_, Error>((ended, touched))
            })
            .buffer_unordered(UNLOCKED_SIDE_BY_SIDE);
        while let Some(look) = looks.next().await {
            let (one, said) = look?;
            touched.extend(&said);
            if matches!(one, Ended::Later) {
                ended = Ended::Later;
            }
        }
        next.text()?.clone_into(&mut cursor);
        if cursor == "0" {
            break;
        }
    }
    Ok(ended)
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
