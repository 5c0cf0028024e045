//! Hashtags by how they begin.

use std::cmp::Reverse;

use futures::future::try_join_all;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};

use crate::beginnings::{self, ListedName};
use crate::engine::Engine;
use crate::error::{CallFuture, Error, ErrorCode, Result};
use crate::graph;
use crate::post::{NamedList, Tag};
use crate::timeline::Query;

/// Hashtags whose posts are looked at together.
const AT_ONCE: usize = 10;
/// Pages of one that are looked at: where somebody floods it with what is hidden then, it isn't found for a while.
const PAGES_MAX: usize = 5;

impl Engine {
    /// Looks so many hashtags up by how they begin: first the whole one, if any post bears it, then those that were on
    /// most public posts. Only those that everybody sees on a post: what moderators hide suggests nothing to anybody.
    ///
    /// Of each beginning the engine knows a hundred, and of equals those that came last; how many posts bear one it
    /// notices whenever their number has doubled. One that no post bears any more isn't found.
    pub fn hashtags_beginning<'a>(&'a self, typed: &'a Tag, limit: usize) -> CallFuture<'a, Vec<Tag>> {
        Box::pin(async move {
            let journal = &self.graph().journal;
            let Some(beginning) = beginnings::beginning_of(typed) else { return Ok(Vec::new()) };
            let looked_at = async |listed: ListedName| {
                let tag = read_tag(&listed.member)?;
                let list =
                    graph::post_list(&journal.tenant, NamedList::Tagged(tag.number(journal.tenant.tags())))?;
                Ok::<_, Error>((tag, list.len().await? > 0, listed))
            };
            let listed = beginnings::listed(&journal.tenant, &beginning).await?;
            let (mut found, mut needless) = (Vec::new(), Vec::new());
            for (tag, is_borne, listed) in try_join_all(listed.into_iter().map(looked_at)).await? {
                if !is_borne {
                    needless.push(listed);
                } else if tag.as_str().starts_with(typed.as_str()) && tag != *typed {
                    found.push((listed.rank(), tag));
                }
            }
            beginnings::drop_needless(journal, &beginning, needless);
            found.sort_by_key(|(rank, tag)| (Reverse(*rank), tag.as_str().len(), tag.to_string()));
            // Others than the whole one may be on more posts than it, so many that it isn't on the list.
            let found = [*typed].into_iter().chain(found.into_iter().map(|(_, tag)| tag));
            let shown = stream::iter(found).map(|tag| async move { Ok((tag, self.shows(tag).await?)) });
            let shown =
                shown.buffered(AT_ONCE).try_filter_map(async |(tag, is_shown)| Ok(is_shown.then_some(tag)));
            shown.take(limit).try_collect().await
        })
    }

    /// Whether there is a post with that hashtag which everybody sees, as far as some pages and memory can tell.
    async fn shows(&self, tag: Tag) -> Result<bool> {
        let mut query = Query::tag(tag).limit(1);
        for _ in 0..PAGES_MAX {
            let page = match self.as_nobody().read(&query).await {
                // It is on posts so old that they have left; names are found all the same.
                Err(e) if e.code() == ErrorCode::ArchiveAway => return Ok(true),
                page => page?,
            };
            match page.next.filter(|_| page.posts.is_empty()) {
                Some(next) => query = query.after(next),
                None => return Ok(!page.posts.is_empty()),
            }
        }
        Ok(false)
    }
}

fn read_tag(member: &[u8]) -> Result<Tag> {
    let text = std::str::from_utf8(member).map_err(|_| Error::internal("a hashtag is no text"))?;
    Tag::new(text)
}
