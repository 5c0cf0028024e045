//! `refer`: bringing a reply onto the list of its parent, a repost or quote onto that of its original; or off again.

use super::lists::{last_removal, no_decision, set_member};
use super::named::settle_lists;
use super::tie::renew_ties;
use crate::cluster::TouchedServers;
use crate::error::{ErrorKind, Result};
use crate::functions::ListChange;
use crate::inbox::Notice;
use crate::journal::RunOutcome;
use crate::post::{Draft, Post, PostRef, Reference};
use crate::stored::StoredPost;
use crate::tenant::{Tenant, changed_always};

/// Tries of an addition between removals from other lists of the bucket.
const TRIES_MAX: usize = 64;

/// Looks at whether the post is there, and brings the list in line with that.
pub(crate) async fn settle_reference(
    tenant: &Tenant,
    post: PostRef,
    to: Reference,
    touched: &mut TouchedServers,
) -> Result<RunOutcome> {
    let of = (to.to, to.kind);
    for n in 0..TRIES_MAX {
        // H53, H126: before the look. It may be deleted, and that settled, before what we write arrives.
        let removed = last_removal(tenant, to.to.id, n).await?;
        let seen = refers(tenant, post, to, touched).await?;
        let is_there = seen.is_some();
        // What was seen must last: else the list holds what nobody takes off again, or forgets what nobody adds.
        tenant.router().fence(touched).await?;
        #[expect(clippy::cast_precision_loss, reason = "milliseconds are below 2^53")]
        let change =
            if is_there { ListChange::On(post.id.unix_ms() as f64, removed) } else { ListChange::Off };
        let member = (&post, told_of(post, seen.as_ref(), to));
        let is_brought = set_member(tenant, of, member, change, touched).await?;
        // H53, H126: what was not compared is looked at again.
        let is_sure = removed.is_some() || !is_there;
        if is_brought && (is_sure || refers(tenant, post, to, touched).await?.is_some()) {
            return Ok(RunOutcome::Done);
        }
    }
    Err(changed_always(ErrorKind::Unavailable, format_args!("lists beside post {}", to.to.id)))
}

/// Takes a post off a list on which it has never belonged.
pub(crate) async fn unlist(tenant: &Tenant, to: Reference, post: PostRef) -> Result<()> {
    let member = (&post, told_of(post, None, to));
    set_member(tenant, (to.to, to.kind), member, ListChange::Off, &mut TouchedServers::new()).await.map(drop)
}

/// The notice by which the author of what a post refers to is told of that, or not any more. `seen`: the post, if it is
/// there. H282: that a repost is gone nobody tells, as the same account may have made another one since; who reads
/// looks at that.
fn told_of(post: PostRef, seen: Option<&Post>, to: Reference) -> Option<Notice> {
    let told = Notice::of_list(to.kind, to.to.id, seen.map_or(post.author, Post::writer), post);
    told.filter(|_| seen.is_some() || to.kind != Reference::REPOST)
}

/// The post, if it is there and refers to that. After a failover an id may come twice: to another author (H43), and to
/// the same one, for a post that refers to something else, or to nothing (H129). One that can't be read is neither
/// there nor gone (H93).
async fn refers(
    tenant: &Tenant,
    post: PostRef,
    to: Reference,
    touched: &mut TouchedServers,
) -> Result<Option<Post>> {
    match tenant.posts().get_touching(post, touched).await? {
        StoredPost::There(stored) if stored.header().author != post.author => Ok(None),
        StoredPost::There(stored) => Ok(Some(stored).filter(|post| Reference::of_post(post).contains(&to))),
        StoredPost::Gone => Ok(None),
        StoredPost::Unreadable(unreadable) if unreadable.is_anothers(post.author) => Ok(None),
        StoredPost::Unreadable(_) => Err(no_decision(post.id)),
    }
}

/// Brings an imported post onto the lists of what it refers to, and notes it with its author if it is a plain repost.
pub(crate) async fn list_references(tenant: &Tenant, post: PostRef, draft: &Draft) -> Result<()> {
    if let Some(original) = draft.repost_of.filter(|_| draft.is_plain_repost()) {
        let place = post.id.place(tenant.keys().buckets());
        tenant.reposts(post.author)?.add(&[(original, place)]).await?;
        // What is remembered of its reposts is void from now on.
        renew_ties(tenant, post.author).await?;
    }
    // No journal has it tried again if a server fails over.
    let mut tries = tenant.router().fence_tries();
    for to in Reference::of_draft(draft) {
        while let Err(e) = settle_reference(tenant, post, to, &mut TouchedServers::new()).await {
            tries.after(e).await?;
        }
    }
    if !(draft.content.mentions.is_empty() && draft.content.hashtags.is_empty()) {
        while let Err(e) = settle_lists(tenant, post, &[], &mut TouchedServers::new()).await {
            tries.after(e).await?;
        }
    }
    Ok(())
}
