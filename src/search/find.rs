//! Asking the index.

use crate::archive::{PAGE_MAX, SearchAsk};
use crate::error::{Error, Result};
use crate::ids::AccountId;
use crate::post::{PostRef, SearchWords};
use crate::tenant::{Tenant, unread};

/// Posts that have words, as far as the index knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundPosts {
    /// The newest first.
    pub(crate) posts: Vec<PostRef>,
    /// These are all from this id on; 0: nothing follows.
    pub(crate) bound: u64,
    /// Whether the archive has used up its time before it had found as many.
    pub(crate) is_early: bool,
}

/// Whether posts of this tenant are found by their words.
pub(crate) fn is_searched(tenant: &Tenant) -> bool {
    tenant.known.decision().archive.is_some_and(|archive| archive.search)
}

/// Finds posts below an id that a reader may find by these words, about `most`.
pub(crate) async fn find(
    tenant: &Tenant,
    words: &SearchWords,
    reader: AccountId,
    below: u64,
    most: usize,
) -> Result<FoundPosts> {
    let Some(archive) = tenant.archive()?.filter(|_| is_searched(tenant)) else {
        return Err(Error::misconfigured(
            "posts of this tenant can't be searched: begin that with `tideline archive begin --search` or \
             `EngineBuilder::begin_search`",
        ));
    };
    let ask = SearchAsk {
        words: words.words().map(str::to_owned).collect(),
        reader: Some(reader).filter(|reader| !reader.is_nobody()),
        below,
        most: most.min(PAGE_MAX),
    };
    let page = archive.search(&ask).await.map_err(unread)?;
    let is_early = page.from > 0 && page.posts.len() < ask.most;
    let posts = page.posts.into_iter().map(|(id, author)| PostRef { id, author }).collect();
    Ok(FoundPosts { posts, bound: page.from, is_early })
}
