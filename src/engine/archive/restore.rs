//! Bringing posts of an author back into memory, for whoever wants them there.

use futures::stream::{self, StreamExt as _, TryStreamExt as _};

use super::Engine;
use crate::archive::PageOrder;
use crate::error::{CallFuture, Error, Result};
use crate::ids::{AccountId, PostId};
use crate::post::PostRef;
use crate::tenant::{Tenant, no_account};
use crate::tiers::{BelowAsk, below, thaw_of};

/// Posts brought back by one call.
const RESTORED_MAX: usize = 1_000;
/// Posts brought back at the same time, and ids read at once.
const AT_ONCE: usize = 8;
const IDS_AT_ONCE: usize = 500;

/// The posts that a call has brought back into memory.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct RestoredPosts {
    /// Those that have come back.
    pub back: u64,
    /// Those that were in memory already.
    pub were_there: u64,
    /// Those that the account doesn't have: they were deleted, or are others'.
    pub missing: Vec<PostId>,
}

impl Engine {
    /// Brings posts of an account back into memory that have left it, with all that lies beside them: at most 1,000 a
    /// call. They leave again as others do that somebody has changed, after a quarter of the days that each post stays.
    ///
    /// [`Invalid`](crate::ErrorKind::Invalid): the tenant has no archive, or these are more than 1,000.
    /// [`NotFound`](crate::ErrorKind::NotFound): there is no such account.
    /// [`Unavailable`](crate::ErrorKind::Unavailable): the archive doesn't answer; some may have come back.
    pub fn restore_archived<'a>(
        &'a self,
        account: AccountId,
        posts: &'a [PostId],
    ) -> CallFuture<'a, RestoredPosts> {
        Box::pin(async move {
            self.may_restore(account, posts.len()).await?;
            restore(&self.tenant, account, posts).await
        })
    }

    /// Brings back the newest `most` posts of an account that have left memory, as
    /// [`restore_archived`](Self::restore_archived) does.
    pub fn restore_newest(&self, account: AccountId, most: usize) -> CallFuture<'_, RestoredPosts> {
        Box::pin(async move {
            self.may_restore(account, most).await?;
            let posts = newest_left(&self.tenant, account, most).await?;
            restore(&self.tenant, account, &posts).await
        })
    }

    async fn may_restore(&self, account: AccountId, posts: usize) -> Result<()> {
        if self.tenant.archive()?.is_none() {
            return Err(Error::invalid("the tenant has no archive: nothing has left memory"));
        }
        if posts > RESTORED_MAX {
            return Err(Error::invalid(format!("too many posts: {posts}; at most {RESTORED_MAX} a call")));
        }
        if self.graph.journal.tasks.is_stopping() {
            return Err(Error::unavailable(
                "this instance only observes, is shutting down, or has given way to an import: it brings no \
                 posts back. Ask an instance that serves the tenant",
            ));
        }
        let found = self.tenant.account(account).await?.ok_or_else(|| no_account(account))?;
        if found.is_there() { Ok(()) } else { Err(no_account(account)) }
    }
}

async fn restore(tenant: &Tenant, author: AccountId, posts: &[PostId]) -> Result<RestoredPosts> {
    let are_there = are_in_memory(tenant, posts).await?;
    let of_posts = posts.iter().copied().zip(are_there.iter().copied());
    let left: Vec<PostId> = of_posts.filter(|(_, is_there)| !is_there).map(|(id, _)| id).collect();
    let were_there = are_there.iter().filter(|is_there| **is_there).count() as u64;
    let thaw =
        |id: PostId| async move { Ok::<_, Error>((id, thaw_of(tenant, PostRef { id, author }).await?)) };
    let thawed: Vec<(PostId, bool)> = stream::iter(left).map(thaw).buffered(AT_ONCE).try_collect().await?;
    let missing: Vec<PostId> = thawed.iter().filter(|(_, is_back)| !is_back).map(|(id, _)| *id).collect();
    Ok(RestoredPosts { back: (thawed.len() - missing.len()) as u64, were_there, missing })
}

async fn are_in_memory(tenant: &Tenant, posts: &[PostId]) -> Result<Vec<bool>> {
    let exists = posts.iter().map(|id| tenant.posts().exists_request(*id)).collect();
    tenant.run_all(exists).await?.into_iter().map(|answer| Ok(answer.ok()?.int()? == 1)).collect()
}

/// The newest posts of an account that are in the archive alone.
async fn newest_left(tenant: &Tenant, author: AccountId, most: usize) -> Result<Vec<PostId>> {
    let Some(floor) = tenant.posts().floor_of(author).await? else { return Ok(Vec::new()) };
    let (mut left, mut from) = (Vec::new(), floor.upto.get() + 1);
    while left.len() < most && from > 0 {
        let ask = BelowAsk { author, floor, from };
        let page = below(tenant, &[ask], PageOrder::NewestFirst, IDS_AT_ONCE).await?.pop();
        let page = page.ok_or_else(|| Error::internal("the archive has not answered"))??;
        let are_there = are_in_memory(tenant, &page.ids).await?;
        left.extend(page.ids.into_iter().zip(are_there).filter(|(_, is_there)| !is_there).map(|(id, _)| id));
        from = page.bound;
    }
    left.truncate(most);
    Ok(left)
}
