//! The things that a social site needs around timelines: likes, bookmarks, reposts, conversations, posts by their ids,
//! and the lists of who likes or reposts what, follows, mutes or blocks whom. Calls of an [`Engine`] and its
//! [`Reader`]s beside those of timelines, which know nothing of them.
//!
//! Invariants kept here: only a post that the actor may see can be liked, bookmarked, reposted; what is liked,
//! answered and reposted of a plain repost is its original; a list shows nothing that its reader may not see.

mod chats;
mod conversation;
mod cursor;
mod hashtags;
mod lists;
mod notifications;
mod people;
mod posts;

pub use chats::{ChatList, ChatQuery, ShownChat};
pub use conversation::{ANCESTORS_MAX, Conversation, DESCENDANTS_MAX};
pub use cursor::ListCursor;
pub use lists::{AccountList, ListQuery, PostList};
pub use notifications::{Notification, NotificationPage};
pub use posts::PostsById;

use crate::cluster::Epoch;
use crate::engine::{Engine, PublishedPost, Reader};
use crate::error::{CallFuture, Result};
use crate::graph;
use crate::ids::{AccountId, PostId};
use crate::post::{Draft, Post, PostRef};
use crate::reader::{self, ReaderTies, Tie};
use crate::settings::{Receipt, check_asked};
use crate::tenant::no_post;
use crate::tiers;

impl Engine {
    /// Likes a post: of a plain repost its original. The post's author and everybody else see it a little later, the
    /// liker at once. What is liked already stays liked.
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound): there is no such post, or the account may not see it.
    /// [`Invalid`](crate::ErrorKind::Invalid): it likes as many as it may (`likes_max`).
    pub fn like(&self, account: AccountId, post: PostId) -> CallFuture<'_, Receipt> {
        Box::pin(self.tie(account, post, Tie::Like))
    }

    /// Takes a like back, also of a post that is gone. What is not liked is not liked afterwards either.
    pub fn unlike(&self, account: AccountId, post: PostId) -> CallFuture<'_, Receipt> {
        Box::pin(self.untie(account, post, Tie::Like))
    }

    /// Bookmarks a post, for the account alone: of a plain repost its original. Errors as for [`like`](Self::like),
    /// with `bookmarks_max`.
    pub fn bookmark(&self, account: AccountId, post: PostId) -> CallFuture<'_, Receipt> {
        Box::pin(self.tie(account, post, Tie::Bookmark))
    }

    /// Takes a bookmark back, also of a post that is gone.
    pub fn unbookmark(&self, account: AccountId, post: PostId) -> CallFuture<'_, Receipt> {
        Box::pin(self.untie(account, post, Tie::Bookmark))
    }

    /// Reposts a post, without a comment: of a plain repost its original. Doing it twice gives the same repost. A
    /// repost with a comment is a post like others: publish a [`Draft`] that quotes.
    ///
    /// [`Invalid`](crate::ErrorKind::Invalid): it has reposted as many as it may (`reposts_max`).
    pub fn repost(&self, account: AccountId, post: PostId) -> CallFuture<'_, PublishedPost> {
        Box::pin(async move {
            let post = self.find(post).await?;
            self.publish(account, &Draft::repost(post)).await
        })
    }

    /// Takes one's own repost of a post back, whichever repost of it is named, also of a post that is gone. Tells which
    /// one that was.
    pub fn undo_repost(&self, account: AccountId, post: PostId) -> CallFuture<'_, Receipt<Option<PostId>>> {
        Box::pin(async move {
            let tenant = self.tenant();
            // First: what was sent before must not run after this, also if there is nothing to undo.
            let renewed = graph::renew_ties(tenant, account).await?;
            let reposts = tenant.reposts(account)?;
            let (target, told) = self.find_target(post).await?;
            let target = match target {
                None => graph::kept_of(&reposts, post).await?.pop(),
                target => target,
            };
            let place = match target {
                Some(target) => reposts.score(&target).await?,
                None => None,
            };
            let Some(place) = place else {
                // That there is nothing (left) may not be on replicas yet.
                let told = self.acknowledged(told).await?;
                let renewed = self.acknowledged(renewed).await?;
                return Ok(Receipt { value: None, reached: told.reached.min(renewed.reached) });
            };
            let repost = PostId::at_place(tenant.keys().buckets(), tenant.bucket(account), place)?;
            Ok(self.delete_noted(account, repost, target).await?.with(Some(repost)))
        })
    }

    async fn tie(&self, account: AccountId, post: PostId, what: Tie) -> Result<Receipt> {
        let (subject, _) = self.subject(account, post).await?;
        if what == Tie::Like {
            tiers::may_bring_back(self.tenant(), account, subject).await?;
        }
        let epoch = graph::set_tie(self.graph(), account, subject, what, true).await?;
        self.acknowledged(epoch).await
    }

    async fn untie(&self, account: AccountId, post: PostId, what: Tie) -> Result<Receipt> {
        let graph = self.graph();
        let epoch = match self.find_target(post).await?.0 {
            Some(post) => graph::set_tie(graph, account, post, what, false).await?,
            None => graph::untie_gone(graph, account, post, what).await?,
        };
        self.acknowledged(epoch).await
    }

    /// A post by its id alone, with its author.
    async fn find(&self, id: PostId) -> Result<PostRef> {
        let author = self.tenant().posts().get(id).await?.found().map(|post| post.header().author);
        author.map(|author| PostRef { id, author }).ok_or_else(|| no_post(id))
    }

    /// Finds what is meant by a post, whoever may see it, and who told it: of a plain repost its original. `None`: it
    /// is gone.
    async fn find_target(&self, id: PostId) -> Result<(Option<PostRef>, Epoch)> {
        let (post, epoch) = self.tenant().posts().told(id).await?;
        let meant = |post: Post| post.passes_on().unwrap_or(PostRef { id, author: post.header().author });
        // What can't be read is found by its id alone, as what is gone is.
        Ok((post.found().map(meant), epoch))
    }
}

impl<'a> Reader<'a> {
    /// Tells what the account has done with posts, in their order: up to [`ASKED_MAX`](crate::ASKED_MAX).
    pub fn ties(self, posts: &'a [PostRef]) -> CallFuture<'a, Vec<ReaderTies>> {
        Box::pin(async move {
            check_asked(posts.len(), "posts")?;
            let (graph, account) = (self.engine.graph(), self.account);
            let stamps = reader::stamps(&graph.tenant, account).await?;
            reader::ties_with(&graph.readers, account, &stamps, posts).await
        })
    }
}
