//! `refer`: bringing a reply onto the list of its parent, a repost onto that of its original; or off again.

use super::named::settle_lists;
use crate::cluster::{Command, Request, Touched};
use crate::context::Context;
use crate::error::Result;
use crate::fanout::{Ended, Reference};
use crate::ids::{AccountId, PostId};
use crate::post::Draft;
use crate::sharded::SortedSet;

/// Looks at whether the post is there, and brings the list in line with that.
pub(crate) async fn settle_reference(
    context: &Context,
    post: PostId,
    author: AccountId,
    to: Reference,
    touched: &mut Touched,
) -> Result<Ended> {
    let is_there = is_post_of(context, post, author, touched).await?;
    // That it is gone must last before the list forgets it.
    context.router().fence(touched).await?;
    let list = list(context, to.kind, to.post)?;
    let member = AccountId::new(post.get())?;
    if is_there {
        #[expect(clippy::cast_precision_loss, reason = "milliseconds are below 2^53")]
        let added = list.add(&[(member, post.unix_ms() as f64)]).await?;
        touched.extend(&added.touched);
    }
    // Looked at after that: a list that is dropped with its post must not come back.
    if !is_there || !is_post_of(context, to.post, to.author, touched).await? {
        let removed = list.remove(&[member]).await?;
        touched.extend(&removed.touched);
    }
    Ok(Ended::Done)
}

/// After an unsynced failover an id may come twice: only its author's post counts.
async fn is_post_of(
    context: &Context,
    post: PostId,
    author: AccountId,
    touched: &mut Touched,
) -> Result<bool> {
    let buckets = context.keys().buckets();
    let range = Command::new("GETRANGE").arg(&context.keys().post(post)).arg("8").arg("15");
    let answer = context.router().ask(Request::read(buckets.slot(post.bucket(buckets)), range)).await?;
    touched.add(&answer);
    Ok(answer.ok()?.bytes()? == author.to_bytes())
}

/// Drops the lists of posts that are gone.
pub(super) async fn drop_lists(context: &Context, posts: &[PostId]) -> Result<()> {
    let mut lists = Vec::with_capacity(2 * posts.len());
    for post in posts {
        for kind in [Reference::REPLY, Reference::REPOST] {
            lists.push(list(context, kind, *post)?);
        }
    }
    // Most have none.
    let exist = context.sets().exist(&lists).await?;
    for (list, _) in lists.iter().zip(exist).filter(|(_, exists)| *exists) {
        list.drop_all().await?;
    }
    Ok(())
}

/// Brings an imported post onto the lists of what it refers to.
pub(crate) async fn list_references(
    context: &Context,
    post: PostId,
    author: AccountId,
    draft: &Draft,
) -> Result<()> {
    for to in Reference::all(draft.repost_of, draft.reply_to) {
        settle_reference(context, post, author, to, &mut Touched::new()).await?;
    }
    if !(draft.content.mentions.is_empty() && draft.content.hashtags.is_empty()) {
        settle_lists(context, post, author, &[], &mut Touched::new()).await?;
    }
    Ok(())
}

/// The replies to, or reposts of, a post; members are ids of posts, which are numbers of the same range as accounts'.
pub(crate) fn list(context: &Context, kind: u8, post: PostId) -> Result<SortedSet<AccountId>> {
    let what = if kind == Reference::REPOST { "reposts" } else { "replies" };
    context.sets().named(&format!("{what}:{post}"))
}
