//! Deleting an account with all its traces: what it follows and who follows it, its posts, its home.

use std::sync::Arc;

use futures::stream::{self, StreamExt as _, TryStreamExt as _};

use super::toggles::unfollow;
use crate::account::AccountState;
use crate::cluster::{Command, Reply, Request, Touched};
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
    let is_deleted = context.account(account).await?.is_some_and(|a| a.state == AccountState::Deleted);
    if !is_deleted {
        // The deletion was lost together with whoever wrote it, or never made.
        return Ok(Ended::Done);
    }
    let followed = context.sets().members_of(&[&context.following(account)?]).await?;
    for author in followed.into_iter().flatten() {
        ignore_missing(unfollow(context, account, author).await)?;
    }
    let followers = context.followers(account)?;
    let mut next = Some(Checkpoint::START);
    while let Some(from) = next {
        let page = followers.walk(from).await?;
        stream::iter(page.entries)
            .map(|(reader, _)| async move { ignore_missing(unfollow(context, reader, account).await) })
            .buffer_unordered(AT_ONCE)
            .try_collect::<()>()
            .await?;
        next = page.next;
    }
    posts(context, account).await?;
    sets(context, account, &followers).await?;
    touched.extend(&Touched::new());
    Ok(Ended::Done)
}

fn ignore_missing<T>(outcome: Result<T>) -> Result<()> {
    match outcome {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// Deletes all posts, the oldest first; the outbox goes last, so that another run finds what is left.
async fn posts(context: &Context, account: AccountId) -> Result<()> {
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
        let unlink = |id: PostId| Request::write(slot, Command::new("UNLINK").arg(&context.keys().post(id)));
        context.run_all(elements.iter().filter_map(id).map(unlink).collect()).await?;
    }
}

/// Only while the record says "deleted": an executor that stalled must not harm anybody.
async fn bury_keys(context: &Context, slot: u16, keys: &[Vec<u8>], all: bool) -> Result<()> {
    let buried = context.router().call(Request::write(slot, functions::account_bury(keys, all))).await?;
    match buried.count()? {
        1 => Ok(()),
        _ => Err(Error::new(ErrorKind::Conflict, "an account that is being deleted is deleted no more")),
    }
}

/// Drops the keys of the account itself, and what is empty by now of its followers in other buckets.
async fn sets(context: &Context, account: AccountId, followers: &SortedSet<AccountId>) -> Result<()> {
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
        bury_keys(context, slot, &all, true).await?;
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
