//! Who follows, mutes, blocks whom.

use super::Engine;
use crate::error::CallFuture;
use crate::graph::{self, Followed, Relationship, Toggle};
use crate::ids::AccountId;
use crate::settings::Receipt;
use crate::sharded::{Checkpoint, Common, Order, Page as SetPage};

impl Engine {
    /// Follows, or asks to, if the account is locked. The next read shows the author's posts.
    pub fn follow(&self, reader: AccountId, author: AccountId) -> CallFuture<'_, Receipt<Followed>> {
        Box::pin(async move {
            let (followed, epoch) = graph::follow(&self.graph, reader, author).await?;
            Ok(self.acknowledged(epoch).await?.with(followed))
        })
    }

    /// Unfollows, or takes the request to follow back.
    pub fn unfollow(&self, reader: AccountId, author: AccountId) -> CallFuture<'_, Receipt> {
        Box::pin(async move {
            let epoch = graph::unfollow(&self.graph, reader, author).await?;
            self.acknowledged(epoch).await
        })
    }

    fn toggle(
        &self,
        account: AccountId,
        other: AccountId,
        what: Toggle,
        on: bool,
    ) -> CallFuture<'_, Receipt> {
        Box::pin(async move {
            let epoch = graph::toggle(&self.graph, account, other, what, on).await?;
            self.acknowledged(epoch).await
        })
    }

    /// Hides another account's posts from one's own timelines.
    pub fn mute(&self, account: AccountId, other: AccountId) -> CallFuture<'_, Receipt> {
        self.toggle(account, other, Toggle::Mute, true)
    }

    /// Takes a mute back.
    pub fn unmute(&self, account: AccountId, other: AccountId) -> CallFuture<'_, Receipt> {
        self.toggle(account, other, Toggle::Mute, false)
    }

    /// Blocks: neither follows the other, nor sees its posts, from now on.
    pub fn block(&self, account: AccountId, other: AccountId) -> CallFuture<'_, Receipt> {
        self.toggle(account, other, Toggle::Block, true)
    }

    /// Takes a block back. Follows that it ended stay ended.
    pub fn unblock(&self, account: AccountId, other: AccountId) -> CallFuture<'_, Receipt> {
        self.toggle(account, other, Toggle::Block, false)
    }

    /// Doesn't show one's own posts to another account, which may go on following.
    pub fn hide_from(&self, account: AccountId, other: AccountId) -> CallFuture<'_, Receipt> {
        self.toggle(account, other, Toggle::Hide, true)
    }

    /// Takes that back.
    pub fn show_to(&self, account: AccountId, other: AccountId) -> CallFuture<'_, Receipt> {
        self.toggle(account, other, Toggle::Hide, false)
    }

    /// Who waits for a locked account's answer, by their ids. With what they show of themselves, page by page:
    /// [`Social::follow_requests`](crate::Social::follow_requests).
    pub fn follow_requests(&self, account: AccountId) -> CallFuture<'_, Vec<AccountId>> {
        Box::pin(async move { Ok(graph::waiting(&self.graph, account).await?.into_iter().collect()) })
    }

    /// Says yes to a request. [`ErrorKind::NotFound`](crate::ErrorKind::NotFound): there is none (any more).
    pub fn approve(&self, account: AccountId, requester: AccountId) -> CallFuture<'_, Receipt> {
        Box::pin(async move {
            let epoch = graph::approve(&self.graph, account, requester).await?;
            self.acknowledged(epoch).await
        })
    }

    /// Says no to a request.
    pub fn reject(&self, account: AccountId, requester: AccountId) -> CallFuture<'_, Receipt> {
        Box::pin(async move {
            let epoch = graph::reject(&self.graph, account, requester).await?;
            self.acknowledged(epoch).await
        })
    }

    /// Whether `reader` follows `author`.
    pub fn is_following(&self, reader: AccountId, author: AccountId) -> CallFuture<'_, bool> {
        Box::pin(async move { Ok(self.graph.following(reader)?.score(&author).await?.is_some()) })
    }

    /// How an account stands to others: up to [`ASKED_MAX`](crate::ASKED_MAX), in their order, in two batches. `None`:
    /// there is no such account (any more). For the account itself: whom it hides from, asks or mutes others needn't know.
    ///
    /// What was acknowledged shows. [`ErrorKind::NotFound`](crate::ErrorKind::NotFound): the account itself isn't there.
    pub fn relationships<'a>(
        &'a self,
        account: AccountId,
        others: &'a [AccountId],
    ) -> CallFuture<'a, Vec<Option<Relationship>>> {
        Box::pin(graph::relationships(&self.graph, account, others))
    }

    /// Whether each follows the other.
    pub fn is_mutual(&self, one: AccountId, other: AccountId) -> CallFuture<'_, bool> {
        Box::pin(async move {
            let both = (self.is_following(one, other), self.is_following(other, one));
            let (a, b) = futures::future::try_join(both.0, both.1).await?;
            Ok(a && b)
        })
    }

    /// A page of whom an account follows, by the time of the follow.
    pub fn following<'a>(
        &'a self,
        account: AccountId,
        after: Option<&'a (AccountId, f64)>,
        limit: usize,
        order: Order,
    ) -> CallFuture<'a, SetPage<AccountId>> {
        Box::pin(async move { self.graph.following(account)?.page(.., after, limit, order).await })
    }

    /// A page of who follows an account, by the time of the follow.
    pub fn followers<'a>(
        &'a self,
        account: AccountId,
        after: Option<&'a (AccountId, f64)>,
        limit: usize,
        order: Order,
    ) -> CallFuture<'a, SetPage<AccountId>> {
        Box::pin(async move { self.graph.followers(account)?.page(.., after, limit, order).await })
    }

    /// How many an account follows, and how many follow it, counted now. [`Account`](crate::Account) has both too, and costs
    /// less: those who follow an account that many follow are asked for in every bucket here.
    pub fn counts(&self, account: AccountId) -> CallFuture<'_, (u64, u64)> {
        Box::pin(async move {
            let (following, followers) = (self.graph.following(account)?, self.graph.followers(account)?);
            futures::future::try_join(following.len(), followers.len()).await
        })
    }

    /// Whom both accounts follow.
    pub fn common_following(&self, one: AccountId, other: AccountId) -> CallFuture<'_, Vec<AccountId>> {
        Box::pin(async move {
            let sets = [self.graph.following(one)?, self.graph.following(other)?];
            let members = self.graph.sets().members_of(&[&sets[0], &sets[1]]).await?;
            let mut both = members.into_iter();
            let first: std::collections::HashSet<AccountId> = both.next().into_iter().flatten().collect();
            Ok(both.next().into_iter().flatten().filter(|id| first.contains(id)).collect())
        })
    }

    /// Who follows both accounts: some of them and a checkpoint, until there is none. Walks the followers of `one`,
    /// which should be the one with fewer.
    pub fn common_followers(
        &self,
        one: AccountId,
        other: AccountId,
        from: Checkpoint,
    ) -> CallFuture<'_, Common<AccountId>> {
        Box::pin(async move { self.graph.followers(one)?.common(&self.graph.followers(other)?, from).await })
    }
}
