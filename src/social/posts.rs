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

/// Posts that were asked for by their ids.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct PostsById {
    /// The posts, hydrated and with ties, in the order of the question. What isn't there, or not for the viewer, is
    /// left out: nothing tells these apart.
    pub posts: Vec<PagePost>,
    /// Those of which only the archive could tell, which was away: ask for them again.
    pub untold: Vec<PostId>,
}

impl<'a> Viewer<'a> {
    /// Reads a post, hydrated and with ties, as on its author's own page.
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound): there is no such post, or the viewer may not see it.
    pub fn post(self, post: PostId) -> CallFuture<'a, PagePost> {
        Box::pin(async move { self.posts_of(&[post]).await?.posts.pop().ok_or_else(|| no_post(post)) })
    }

    /// Reads several, up to [`ASKED_MAX`](crate::ASKED_MAX), in their order, each once.
    ///
    /// [`ErrorCode::ArchiveAway`](crate::ErrorCode::ArchiveAway): none of them shows, and only the archive could tell
    /// some.
    pub fn posts(self, posts: &'a [PostId]) -> CallFuture<'a, PostsById> {
        Box::pin(self.posts_of(posts))
    }

    async fn posts_of(self, posts: &[PostId]) -> Result<PostsById> {
        check_asked(posts.len(), "posts")?;
        let mut met = HashSet::new();
        let once: Vec<PostId> = posts.iter().copied().filter(|post| met.insert(*post)).collect();
        let (mut view, found) = self.view_of_all(&once).await?;
        meters::list("posts");
        let subjects: Vec<PostRef> = found.iter().map(|post| view.page_post(*post).subject()).collect();
        let (loaded, because) = view.load_with_ties(&found, &subjects).await?;
        // Also one that is there, if what it passes on isn't told.
        let lacks = |post: &PostRef| view.is_untold(*post, because.as_ref());
        let partly: HashSet<PostId> = found.iter().filter(|post| lacks(post)).map(|post| post.id).collect();
        let is_untold = |id: &PostId| partly.contains(id) || because.as_ref().is_some_and(|of| of.has(*id));
        let is_hidden = |post: &&PostRef| !is_untold(&post.id) && view.judge(**post).is_err();
        let hidden: Vec<PostRef> = found.iter().filter(is_hidden).copied().collect();
        let like_gone = view.untold_if_gone(&hidden).await?;
        let is_untold = |id: &PostId| is_untold(id) || like_gone.as_ref().is_some_and(|of| of.has(*id));
        let untold: Vec<PostId> = once.into_iter().filter(is_untold).collect();
        let shows = |post: PostRef| !untold.contains(&post.id) && view.judge(post).is_ok();
        let shown: Vec<_> = loaded.into_iter().filter(|(post, _)| shows(*post)).collect();
        if let Some(because) = because.or(like_gone).map(|of| of.because) {
            meters::archive_away();
            if shown.is_empty() {
                return Err(because);
            }
        }
        let posts = view.with_ties(shown.into_iter()).await?;
        Ok(PostsById { posts, untold })
    }
}
