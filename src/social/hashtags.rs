//! Hashtags by how they begin.

use std::cmp::Reverse;

use futures::future::try_join_all;

use crate::beginnings::{self, ListedName};
use crate::engine::Engine;
use crate::error::{CallFuture, Error, Result};
use crate::graph;
use crate::post::{NamedList, PostRef, Tag};
use crate::sharded::{Order, SortedSet};

/// Hashtags that are looked at together.
const AT_ONCE: usize = 20;
/// The newest posts of each in memory that are looked at: where none of them shows, it is left out.
const NEWEST: usize = 8;

impl Engine {
    /// Looks so many hashtags up by how they begin: first the whole one, if any post bears it, then those that were on
    /// most public posts. Only those that everybody sees on one of their newest posts: what moderators hide suggests
    /// nothing to anybody.
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
            let mut shown = Vec::new();
            for some in found.chunks(AT_ONCE) {
                shown.extend(self.shown_to_all(some).await?);
                if shown.len() >= limit {
                    break;
                }
            }
            shown.truncate(limit);
            Ok(shown)
        })
    }

    /// Finds those of these hashtags that everybody sees on a post.
    async fn shown_to_all(&self, tags: &[Tag]) -> Result<Vec<Tag>> {
        let newest = tags.iter().map(async |tag| {
            let page = self.posts_with(tag)?.page(.., None, NEWEST, Order::Descending).await?;
            let posts = page.entries.into_iter().filter_map(|(listed, _)| listed.post());
            Ok::<Vec<PostRef>, Error>(posts.collect())
        });
        let newest = try_join_all(newest).await?;
        let mut view = self.as_nobody().view().await?;
        // Of what only an archive could tell that is away nobody sees anything now.
        view.load_as_told(&newest.concat(), &[]).await?;
        let shows = |tag: &Tag, post: &PostRef| {
            view.shows(*post) && view.post(*post).is_some_and(|shown| shown.says(tag))
        };
        let shown = tags.iter().zip(&newest).filter(|(tag, posts)| posts.iter().any(|post| shows(tag, post)));
        Ok(shown.map(|(tag, _)| *tag).collect())
    }

    /// The list of the posts with a hashtag that are in memory.
    fn posts_with(&self, tag: &Tag) -> Result<SortedSet<graph::Listed>> {
        let tenant = self.tenant();
        graph::post_list(tenant, NamedList::Tagged(tag.number(tenant.tags())))
    }
}

fn read_tag(member: &[u8]) -> Result<Tag> {
    let text = std::str::from_utf8(member).map_err(|_| Error::internal("a hashtag is no text"))?;
    Tag::new(text)
}
