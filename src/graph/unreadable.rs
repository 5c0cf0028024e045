//! Deleting a post that can't be read. What it refers to and which lists it is on nobody can know: what stands there
//! shows nothing, and fsck takes it off.

use std::sync::Arc;

use super::jobs::UnlistTask;
use crate::cluster::{Command, Epoch, Request};
use crate::error::Result;
use crate::functions;
use crate::graph::Graph;
use crate::ids::{AccountId, PostId};
use crate::journal;
use crate::post::PostRef;
use crate::stored::Unreadable;

/// Drops it if it still is exactly that, has its author's outbox say so, and its own lists dropped. Gives who
/// acknowledged that; `None`: something else stands there by now.
pub(crate) async fn drop_unreadable(
    graph: &Arc<Graph>,
    post: PostId,
    unreadable: &Unreadable,
    author: Option<AccountId>,
) -> Result<Option<Epoch>> {
    let (keys, buckets) = (graph.keys(), graph.keys().buckets());
    let (key, bucket) = (keys.post(post), post.bucket(buckets));
    let slot = buckets.slot(bucket);
    let drop = match unreadable.bytes() {
        Some(bytes) => functions::string_drop(key.clone(), bytes),
        // Of another type: no id is given twice while something stands there.
        None => Command::new("UNLINK").arg(&key),
    };
    let answer = graph.router().ask(Request::write(slot, drop)).await?;
    let epoch = answer.epoch.clone();
    // An earlier sending may have dropped it.
    if answer.ok()?.int()? == 0 && graph.posts().exists(post).await? {
        return Ok(None);
    }
    let Some(author) = author else { return Ok(Some(epoch)) };
    let of = [key, keys.outbox(author), keys.account(author)];
    let mend = functions::outbox_mend(&of, author, post.get());
    let answer = graph.router().ask(Request::write(slot, mend)).await?;
    let epoch = answer.epoch.clone();
    answer.ok()?;
    journal::add(&graph.journal, bucket, UnlistTask { post: PostRef { id: post, author } }).await?;
    Ok(Some(epoch))
}
