//! Deleting a post that can't be read. What it refers to and which lists it is on nobody can know: what stands there
//! shows nothing, and fsck takes it off.

use std::sync::Arc;

use super::jobs::UnlistTask;
use crate::cluster::{Command, Epoch, Request};
use crate::error::{Error, ErrorKind, Result};
use crate::functions;
use crate::ids::{AccountId, PostId};
use crate::journal::{self, Journal};
use crate::post::PostRef;
use crate::search::{IndexTask, is_searched};
use crate::stored::Unreadable;

/// Drops it if it still is exactly that, has its author's outbox say so, and its own lists dropped. Gives who
/// acknowledged that; `None`: something else stands there by now.
pub(crate) async fn drop_unreadable(
    journal: &Arc<Journal>,
    post: PostId,
    unreadable: &Unreadable,
    author: Option<AccountId>,
) -> Result<Option<Epoch>> {
    let tenant = &journal.tenant;
    let (keys, buckets) = (tenant.keys(), tenant.keys().buckets());
    let (key, bucket) = (keys.post(post), post.bucket(buckets));
    let slot = buckets.slot(bucket);
    let drop = match unreadable.bytes() {
        Some(bytes) => functions::string_drop(key.clone(), bytes),
        // Of another type: no id is given twice while something stands there.
        None => Command::new("UNLINK").arg(&key),
    };
    let answer = tenant.router().ask(Request::write(slot, drop)).await?;
    let epoch = answer.epoch.clone();
    // An earlier sending may have dropped it.
    if answer.ok()?.int()? == 0 && tenant.posts().exists(post).await? {
        return Ok(None);
    }
    let Some(author) = author else { return Ok(Some(epoch)) };
    // No error from here on may say that nothing was done.
    let half_done = |e| {
        Error::new(
            ErrorKind::Unknown,
            format!(
                "post {post} is deleted, but its author's outbox or its lists may name it until fsck runs: {e}"
            ),
        )
    };
    told_to_others(journal, PostRef { id: post, author }).await.map(Some).map_err(half_done)
}

/// Has its author's outbox say that a post is gone, and drops its lists.
async fn told_to_others(journal: &Arc<Journal>, post: PostRef) -> Result<Epoch> {
    let tenant = &journal.tenant;
    let (keys, bucket) = (tenant.keys(), post.id.bucket(tenant.keys().buckets()));
    let of = [keys.post(post.id), keys.outbox(post.author), keys.account(post.author)];
    let mend = functions::outbox_mend(&of, post.author, post.id.get());
    let answer = tenant.router().ask(Request::write(keys.buckets().slot(bucket), mend)).await?;
    let epoch = answer.epoch.clone();
    answer.ok()?;
    journal::add(journal, bucket, UnlistTask { post }).await?;
    if is_searched(tenant) {
        journal::add(journal, bucket, IndexTask { post }).await?;
    }
    Ok(epoch)
}
