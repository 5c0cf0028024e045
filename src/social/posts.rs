//! Posts by their ids, as one viewer may see them.

use std::collections::HashSet;

use crate::engine::Viewer;
use crate::error::{CallFuture, Result};
use crate::ids::PostId;
use crate::meters;
use crate::post::PostRef;
use crate::settings::check_asked;
use crate::tenant::no_post;
use crate::timeline::PagePost;

impl<'a> Viewer<'a> {
    /// Reads a post, hydrated and marked, as on its author's own page.
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound): there is no such post, or the viewer may not see it.
    pub fn post(self, post: PostId) -> CallFuture<'a, PagePost> {
        Box::pin(async move { self.posts_of(&[post]).await?.pop().ok_or_else(|| no_post(post)) })
    }

    /// Reads several, up to [`ASKED_MAX`](crate::ASKED_MAX), in their order, each once. What isn't there, or not for
    /// the viewer, is left out: nothing tells these apart.
    pub fn posts(self, posts: &'a [PostId]) -> CallFuture<'a, Vec<PagePost>> {
        Box::pin(self.posts_of(posts))
    }

    async fn posts_of(self, posts: &[PostId]) -> Result<Vec<PagePost>> {
        check_asked(posts.len(), "posts")?;
        let mut met = HashSet::new();
        let once: Vec<PostId> = posts.iter().copied().filter(|post| met.insert(*post)).collect();
        let (mut view, found) = self.view_of_all(&once).await?;
        meters::list("posts");
        let subjects: Vec<PostRef> = found.iter().map(|post| view.page_post(*post).subject()).collect();
        view.load_shown(&found, &subjects, |view, post| view.judge(post).is_ok()).await
    }
}
