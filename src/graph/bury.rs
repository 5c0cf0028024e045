//! Deleting an account with all its traces: what it follows and who follows it, its posts, its home.

use std::sync::Arc;

use futures::stream::{self, StreamExt as _};

use super::toggles::unfollow;
use crate::account::{Account, AccountState};
use crate::cluster::{Command, Epoch, Reply, Request, Touched};
use crate::context::Context;
use crate::error::{Error, ErrorKind, Result};
use crate::fanout::Ended;
use crate::functions;
use crate::ids::{AccountId, PostId};
use crate::sharded::{Checkpoint, SortedSet};

/// Followers that are turned away at once.
const AT_ONCE: usize = 32;
/// Posts deleted in one batch, keys dropped in one call.
const BATCH: usize = 500;

/// Takes away what is left of an account whose record says "deleted".
pub(crate) async fn bury(context: &Arc<Context>, account: AccountId, touched: &mut Touched) -> Result<Ended> {
    let answer = context.router().ask(context.account_request(account)).await?;
    touched.add(&answer);
    let record = Account::parse(account, answer.ok()?)?;
    let is_deleted = record.is_some_and(|a| a.state == AccountState::Deleted);
    if !is_deleted {
        // The deletion was lost together with whoever wrote it, or never made.
        return Ok(Ended::Done);
    }
    let followed = context.sets().members_of(&[&context.following(account)?]).await?;
    // Others' follows end for it: that it is deleted must last.
    context.router().fence(touched).await?;
    let asked = requests(context, account).await?;
    for author in followed.into_iter().flatten().chain(asked) {
        note(touched, unfollow(context, account, author).await)?;
    }
    let followers = context.followers(account)?;
    let mut next = Some(Checkpoint::START);
    while let Some(from) = next {
        let page = followers.walk(from).await?;
        let mut turned_away = stream::iter(page.entries)
            .map(|(reader, _)| unfollow(context, reader, account))
            .buffer_unordered(AT_ONCE);
        while let Some(outcome) = turned_away.next().await {
            note(touched, outcome)?;
        }
        next = page.next;
    }
    posts(context, account, touched).await?;
    sets(context, account, &followers, touched).await?;
    Ok(Ended::Done)
}

/// Notes who acknowledged that; an account that is gone itself has nothing left to change.
fn note(touched: &mut Touched, outcome: Result<Epoch>) -> Result<()> {
    match outcome {
        Ok(epoch) => touched.add_epoch(&epoch),
        Err(e) if e.kind() == ErrorKind::NotFound => {}
        Err(e) => return Err(e),
    }
    Ok(())
}

/// Whom the account has asked to follow.
async fn requests(context: &Context, account: AccountId) -> Result<Vec<AccountId>> {
    let command = Command::new("HKEYS").arg(&context.keys().requested(account));
    let asked = context.router().call(Request::read(context.slot(account), command)).await?.into_array()?;
    asked.iter().map(|id| AccountId::from_bytes(id.bytes()?)).collect()
}

/// Deletes all posts, the oldest first; the outbox goes last, so that another run finds what is left.
async fn posts(context: &Context, account: AccountId, touched: &mut Touched) -> Result<()> {
    let (outbox, slot) = (context.keys().outbox(account), context.slot(account));
    let mut from = 0;
    loop {
        let range = Command::new("LRANGE").arg(&outbox).arg(from).arg(from + BATCH - 1);
        let elements = context.router().call(Request::read(slot, range)).await?.into_array()?;
        if elements.is_empty() {
            return Ok(());
        }
        from += elements.len();
        let id = |element: &Reply| {
            let bytes: [u8; 8] = element.bytes().ok()?.try_into().ok()?;
            PostId::from_u64(u64::from_be_bytes(bytes) & (u64::MAX >> 1)).ok()
        };
        let record = std::iter::once(context.keys().account(account));
        let posts = elements.iter().filter_map(id).map(|id| context.keys().post(id));
        bury_keys(context, slot, &record.chain(posts).collect::<Vec<_>>(), false, touched).await?;
    }
}

/// Only while the record says "deleted": an executor that stalled must not harm anybody.
async fn bury_keys(
    context: &Context,
    slot: u16,
    keys: &[Vec<u8>],
    all: bool,
    touched: &mut Touched,
) -> Result<()> {
    let answer = context.router().ask(Request::write(slot, functions::account_bury(keys, all))).await?;
    touched.add(&answer);
    match answer.ok()?.count()? {
        1 => Ok(()),
        _ => Err(Error::new(ErrorKind::Conflict, "an account that is being deleted is deleted no more")),
    }
}

/// Drops the keys of the account itself, and what is empty by now of its followers in other buckets.
async fn sets(
    context: &Context,
    account: AccountId,
    followers: &SortedSet<AccountId>,
    touched: &mut Touched,
) -> Result<()> {
    let keys = context.keys();
    let mut own = vec![
        keys.marks(account),
        keys.home(account),
        keys.outbox(account),
        keys.requested(account),
        keys.approved(account),
        keys.waiting(account),
    ];
    for set in [
        context.following(account)?,
        context.mutes(account)?,
        context.blocks(account)?,
        context.hides(account)?,
    ] {
        own.extend(set.keys_at_home().await?);
    }
    let slot = context.slot(account);
    for chunk in own.chunks(BATCH) {
        let all: Vec<Vec<u8>> = std::iter::once(keys.account(account)).chain(chunk.iter().cloned()).collect();
        bury_keys(context, slot, &all, true, touched).await?;
    }
    let days = Command::new("ZREM").arg(&keys.days(context.bucket(account))).arg(&account.to_bytes());
    context.router().call(Request::write(slot, days)).await?;
    if !followers.is_known_spread() {
        return Ok(());
    }
    // Pairs may still be on their way to take edges off; an empty tree that comes back is a few bytes.
    for bucket in keys.buckets().all() {
        if followers.part_members(bucket).await?.is_empty() {
            let unlink = Command::new("UNLINK").arg(&followers.part_root_key(bucket));
            context.router().call(Request::write(keys.buckets().slot(bucket), unlink)).await?;
        }
    }
    Ok(())
}
