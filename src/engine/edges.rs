//! Who follows, mutes, blocks whom.

use super::Engine;
use crate::error::CallFuture;
use crate::graph::{self, Followed, Toggle};
use crate::ids::AccountId;
use crate::settings::Receipt;

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
}
