//! Posts by their ids, as one reader may see them.

use std::collections::HashSet;

use super::Social;
use crate::error::CallFuture;
use crate::ids::{AccountId, PostId};
use crate::meters;
use crate::post::PostRef;
use crate::settings::check_asked;
use crate::tenant::no_post;
use crate::timeline::PagePost;

impl Social {
    /// A post, hydrated and marked, as on its author's own page.
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound): there is no such post, or the reader may not see it.
    pub fn post(&self, reader: AccountId, post: PostId) -> CallFuture<'_, PagePost> {
        Box::pin(async move { self.posts(reader, &[post]).await?.pop().ok_or_else(|| no_post(post)) })
    }

    /// The same of several, up to [`ASKED_MAX`](crate::ASKED_MAX), in their order, each once. What isn't there, or not for
    /// the reader, is left out: nothing tells these apart.
    pub fn posts<'a>(&'a self, reader: AccountId, posts: &'a [PostId]) -> CallFuture<'a, Vec<PagePost>> {
        Box::pin(async move {
            check_asked(posts.len(), "posts")?;
            let mut met = HashSet::new();
            let once: Vec<PostId> = posts.iter().copied().filter(|post| met.insert(*post)).collect();
            let (mut view, found) = self.engine.view_of_all(reader, &once).await?;
            meters::list("posts");
            let subjects: Vec<PostRef> = found.iter().map(|post| view.page_post(*post).subject()).collect();
            view.load_shown(&found, &subjects, |view, post| view.judge(post).is_ok()).await
        })
    }
}
