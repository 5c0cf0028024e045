//! `refer`: bringing a reply onto the list of its parent, a repost onto that of its original; or off again.

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
    let buckets = context.keys().buckets();
    let range = Command::new("GETRANGE").arg(&context.keys().post(post)).arg("8").arg("15");
    let answer = context.router().ask(Request::read(buckets.slot(post.bucket(buckets)), range)).await?;
    touched.add(&answer);
    // After an unsynced failover an id may come twice: only its author's post counts.
    let is_there = answer.ok()?.bytes()? == author.to_bytes();
    // That it is gone must last before the list forgets it.
    context.router().fence(touched).await?;
    let list = list(context, to)?;
    let member = AccountId::new(post.get())?;
    let change = if is_there {
        #[expect(clippy::cast_precision_loss, reason = "milliseconds are below 2^53")]
        list.add(&[(member, post.unix_ms() as f64)]).await?
    } else {
        list.remove(&[member]).await?
    };
    touched.extend(&change.touched);
    Ok(Ended::Done)
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
    Ok(())
}

/// The replies to, or reposts of, a post; members are ids of posts, which are numbers of the same range as accounts'.
fn list(context: &Context, to: Reference) -> Result<SortedSet<AccountId>> {
    let what = if to.kind == Reference::REPOST { "reposts" } else { "replies" };
    context.sets().named(&format!("{what}:{}", to.post))
}
