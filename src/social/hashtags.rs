//! Hashtags by how they begin.

use std::cmp::Reverse;

use futures::future::try_join_all;

use crate::beginnings::{self, ListedName};
use crate::engine::Engine;
use crate::error::{CallFuture, Error, ErrorCode, Result};
use crate::graph;
use crate::post::{NamedList, PostRef, Tag};
use crate::sharded::{Order, SortedSet};
use crate::timeline::Query;

/// Hashtags that are looked at together.
const AT_ONCE: usize = 20;
/// The newest posts of each in memory that are looked at.
const NEWEST: usize = 8;
/// Hashtags of which none of these shows, and of which a page is read then: whoever floods one hides it from nobody who
/// types the whole of it.
const PAGES_MAX: usize = 4;

impl Engine {
    /// Looks so many hashtags up by how they begin: first the whole one, if any post bears it, then those that were on
    /// most public posts. Only those that everybody sees on one of their newest posts, as far as memory can tell: what
    /// moderators hide suggests nothing to anybody.
    ///
    /// Of each beginning the engine knows a hundred, and of equals those that came last; how many posts bear one it
    /// notices whenever their number has doubled. One that no post bears any more isn't found.
    pub fn hashtags_beginning<'a>(&'a self, typed: &'a Tag, limit: usize) -> CallFuture<'a, Vec<Tag>> {
        Box::pin(async move {
            let journal = &self.graph().journal;
            let Some(beginning) = beginnings::beginning_of(typed) else { return Ok(Vec::new()) };
            let looked_at = async |listed: ListedName| {
                let tag = read_tag(&listed.member)?;
                Ok::<_, Error>((tag, self.posts_with(&tag)?.len().await? > 0, listed))
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
            let found: Vec<Tag> = [*typed].into_iter().chain(found.into_iter().map(|(_, tag)| tag)).collect();
            let (mut shown, mut pages) = (Vec::new(), PAGES_MAX);
            for some in found.chunks(AT_ONCE) {
                for (tag, is_shown) in some.iter().zip(self.are_shown(some).await?) {
                    if is_shown || pages > 0 && self.shows(*tag, &mut pages).await? {
                        shown.push(*tag);
                    }
                }
                if shown.len() >= limit {
                    break;
                }
            }
            shown.truncate(limit);
            Ok(shown)
        })
    }

    /// Whether a page of a hashtag shows a post to everybody.
    async fn shows(&self, tag: Tag, pages: &mut usize) -> Result<bool> {
        if self.posts_with(&tag)?.len().await? <= NEWEST as u64 {
            return Ok(false);
        }
        *pages -= 1;
        match self.as_nobody().read(&Query::tag(tag).limit(1)).await {
            Err(e) if e.code() == ErrorCode::ArchiveAway => Ok(false),
            page => Ok(!page?.posts.is_empty()),
        }
    }

    /// Tells of each of these hashtags whether everybody sees it on one of its newest posts, or only an archive that is
    /// away could tell.
    async fn are_shown(&self, tags: &[Tag]) -> Result<Vec<bool>> {
        let newest = tags.iter().map(async |tag| {
            let page = self.posts_with(tag)?.page(.., None, NEWEST, Order::Descending).await?;
            let posts = page.entries.into_iter().filter_map(|(listed, _)| listed.post());
            Ok::<Vec<PostRef>, Error>(posts.collect())
        });
        let newest = try_join_all(newest).await?;
        let mut view = self.as_nobody().view().await?;
        let untold = view.load_as_told(&newest.concat(), &[]).await?;
        let shows = |tag: &Tag, post: &PostRef| {
            // Names are found all the same.
            view.is_untold(*post, untold.as_ref())
                || view.shows(*post) && view.post(*post).is_some_and(|shown| shown.says(tag))
        };
        let shown = tags.iter().zip(&newest).map(|(tag, posts)| posts.iter().any(|post| shows(tag, post)));
        Ok(shown.collect())
    }

    /// The list of the posts with a hashtag that are in memory.
    fn posts_with(&self, tag: &Tag) -> Result<SortedSet<graph::ListItem>> {
        let tenant = self.tenant();
        graph::post_list(tenant, NamedList::Tagged(tag.number(tenant.tags())))
    }
}

fn read_tag(member: &[u8]) -> Result<Tag> {
    let text = std::str::from_utf8(member).map_err(|_| Error::internal("a hashtag is no text"))?;
    Tag::new(text)
}
