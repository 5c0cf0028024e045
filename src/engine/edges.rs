//! Follows, mutes, blocks, and remarks of accounts on each other.

use std::time::Duration;

use super::Engine;
use crate::error::CallFuture;
use crate::graph::{self, ApprovedBy, FollowOutcome, Toggle};
use crate::ids::AccountId;
use crate::reader::MuteTerms;
use crate::settings::Receipt;

impl Engine {
    /// Follows, or asks to, if the account is locked. The next read shows the author's posts.
    pub fn follow(&self, reader: AccountId, author: AccountId) -> CallFuture<'_, Receipt<FollowOutcome>> {
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
            // Who has left a chat blocks it: only `open_chat` takes that back.
            if graph::may_be_chat(other)
                && let Some(other) = self.tenant.account(other).await?
            {
                other.no_chat()?;
            }
            let epoch = graph::toggle(&self.graph, account, other, what, on).await?;
            self.acknowledged(epoch).await
        })
    }

    /// Hides another account's posts from one's own timelines, for good: also if a mute of it was to end.
    pub fn mute(&self, account: AccountId, other: AccountId) -> CallFuture<'_, Receipt> {
        self.toggle(account, other, Toggle::Mute(MuteTerms::default()), true)
    }

    /// Mutes another account for some time, from now on, by the cluster's clocks; of two such calls the later one
    /// counts. What it has hidden shows then without any further call.
    pub fn mute_for(&self, account: AccountId, other: AccountId, time: Duration) -> CallFuture<'_, Receipt> {
        let terms = MuteTerms { until: Some(self.end_after(time)), is_told: false };
        self.toggle(account, other, Toggle::Mute(terms), true)
    }

    /// Hides another account's posts from one's own timelines, for some time or for good, but not the
    /// [notifications](crate::Reader::notifications) of what it does.
    pub fn mute_posts(
        &self,
        account: AccountId,
        other: AccountId,
        time: Option<Duration>,
    ) -> CallFuture<'_, Receipt> {
        let terms = MuteTerms { until: time.map(|time| self.end_after(time)), is_told: true };
        self.toggle(account, other, Toggle::Mute(terms), true)
    }

    /// The end of what lasts so long from now on, in milliseconds since 1970.
    fn end_after(&self, time: Duration) -> u64 {
        let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.tenant.router().now_ms().saturating_add(ms)
    }

    /// Takes a mute back, whether it has an end or not.
    pub fn unmute(&self, account: AccountId, other: AccountId) -> CallFuture<'_, Receipt> {
        self.toggle(account, other, Toggle::Mute(MuteTerms::default()), false)
    }

    /// Leaves plain reposts of an account that one follows, or asks to, out of one's home, until one follows it no
    /// more. [`ErrorKind::Invalid`](crate::ErrorKind::Invalid): it doesn't follow it.
    pub fn hide_reposts(&self, account: AccountId, other: AccountId) -> CallFuture<'_, Receipt> {
        self.toggle(account, other, Toggle::HideReposts, true)
    }

    /// Shows plain reposts of an account in one's home again.
    pub fn show_reposts(&self, account: AccountId, other: AccountId) -> CallFuture<'_, Receipt> {
        self.toggle(account, other, Toggle::HideReposts, false)
    }

    /// Notes something on another account, in place of what was noted before; empty: takes the note back. It is
    /// private: only [`relationships`](crate::Reader::relationships) tells it.
    ///
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid): it is longer than 2,000 bytes, or one more than 2,000 notes.
    pub fn set_note(&self, account: AccountId, other: AccountId, note: &str) -> CallFuture<'_, Receipt> {
        self.toggle(account, other, Toggle::Note(note.into()), !note.is_empty())
    }

    /// Blocks: neither follows the other, nor sees its posts, from now on.
    pub fn block(&self, account: AccountId, other: AccountId) -> CallFuture<'_, Receipt> {
        self.toggle(account, other, Toggle::Block, true)
    }

    /// Takes a block back. Follows and requests that it ended stay ended: so it asks the other one's server too, and is
    /// [`Unavailable`](crate::ErrorKind::Unavailable) while that is away.
    pub fn unblock(&self, account: AccountId, other: AccountId) -> CallFuture<'_, Receipt> {
        self.toggle(account, other, Toggle::Block, false)
    }

    /// Hides one's own posts from another account, which may go on following.
    pub fn hide_from(&self, account: AccountId, other: AccountId) -> CallFuture<'_, Receipt> {
        self.toggle(account, other, Toggle::Hide, true)
    }

    /// Shows one's own posts to another account again.
    pub fn show_to(&self, account: AccountId, other: AccountId) -> CallFuture<'_, Receipt> {
        self.toggle(account, other, Toggle::Hide, false)
    }

    /// Approves a request. [`ErrorKind::NotFound`](crate::ErrorKind::NotFound): there is none (any more).
    pub fn approve(&self, account: AccountId, requester: AccountId) -> CallFuture<'_, Receipt> {
        Box::pin(async move {
            let epoch = graph::approve(&self.graph, account, requester, ApprovedBy::Staff).await?;
            self.acknowledged(epoch).await
        })
    }

    /// Rejects a request.
    pub fn reject(&self, account: AccountId, requester: AccountId) -> CallFuture<'_, Receipt> {
        Box::pin(async move {
            let epoch = graph::reject(&self.graph, account, requester).await?;
            self.acknowledged(epoch).await
        })
    }
}
