//! The posts that the archive has below accounts' floors, for pages.

use crate::archive::{ASKS_MAX, Owner, PAGE_MAX, PageAsk, PageContent, PageOrder};
use crate::error::{Error, Result};
use crate::ids::{AccountId, PostId};
use crate::stored::ArchiveFloor;
use crate::tenant::{Tenant, unread};

/// A question for posts of an account below its floor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BelowAsk {
    pub(crate) author: AccountId,
    /// Where the outbox that was read ends: what the archive has above that is none of its posts.
    pub(crate) floor: ArchiveFloor,
    /// Only ids below this, or above.
    pub(crate) from: u64,
}

/// Ids of an account's posts, and how far these are all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArchivedIds {
    /// In the order that was asked for.
    pub(crate) ids: Vec<PostId>,
    /// The newest first: complete for ids from here on; 0: there are no more. The oldest first: complete up to here,
    /// which is the floor if there are no more.
    pub(crate) bound: u64,
}

/// Reads ids of posts of many accounts, `most` of each, with one question to the archive. Where that lacks something of
/// one account, it tells of the others.
pub(crate) async fn below(
    tenant: &Tenant,
    asks: &[BelowAsk],
    order: PageOrder,
    most: usize,
) -> Result<Vec<Result<ArchivedIds>>> {
    let Some(archive) = tenant.archive()? else {
        return Err(Error::misconfigured(
            "posts of this tenant are in an archive, which this instance was started without",
        ));
    };
    let most = most.min(PAGE_MAX);
    let page = |ask: &BelowAsk| {
        let owner = Owner { bucket: tenant.bucket(ask.author), account: ask.author };
        let edge = match order {
            PageOrder::NewestFirst => ask.from.min(ask.floor.upto.get() + 1),
            PageOrder::OldestFirst => ask.from.min(ask.floor.upto.get()),
        };
        let edge = PostId::from_u64(edge)?;
        Ok(PageAsk { owner, edge, most })
    };
    let mut read = Vec::with_capacity(asks.len());
    for asks in asks.chunks(ASKS_MAX) {
        let pages: Vec<PageAsk> = asks.iter().map(page).collect::<Result<_>>()?;
        let answers = archive.pages(&pages, order, PageContent::Ids).await.map_err(unread)?;
        read.extend(asks.iter().zip(answers).map(|(ask, page)| {
            ask.floor.check(ask.author, page.owner)?;
            let (upto, mut ids) = (ask.floor.upto, page.ids);
            let found = ids.len();
            ids.retain(|id| *id <= upto);
            let is_all = found < most || ids.len() < found;
            let end = if order == PageOrder::NewestFirst { 0 } else { upto.get() };
            let bound = ids.last().filter(|_| !is_all).map_or(end, |id| id.get());
            Ok(ArchivedIds { ids, bound })
        }));
    }
    Ok(read)
}
