//! Chats: what their members write to each other.

use std::borrow::Cow;

use super::Engine;
use super::byline::{Byline, PostingPlace};
use crate::account::{AccountKind, Mode, NewAccount};
use crate::error::{CallFuture, Error, ErrorKind, Result};
use crate::graph::{self, CHAT_MEMBERS_MAX, Chat, ChatPlaces};
use crate::ids::{AccountId, PostId};
use crate::nonce::draw;
use crate::post::{Draft, Visibility};
use crate::settings::Receipt;

/// Ids that are tried for a chat: others may have those that come first.
const IDS_MAX: u8 = 8;

impl Engine {
    /// Opens a chat of an account and others, who stay its members: up to [`CHAT_MEMBERS_MAX`](crate::CHAT_MEMBERS_MAX)
    /// with whoever opens it, who may be alone. Of two there is one: whoever opens it gets that, and comes back into it
    /// if it had left. Of more each call opens another one, unless it names the same token.
    ///
    /// Members write to it with [`Draft::chat`](crate::post::Draft::chat), read it with
    /// [`Query::chat`](crate::Query::chat), and list theirs with [`chats`](crate::Reader::chats).
    ///
    /// [`Blocked`](crate::ErrorCode::Blocked): of two, one blocks the other.
    pub fn open_chat<'a>(
        &'a self,
        opener: AccountId,
        others: &'a [AccountId],
        token: Option<&'a str>,
    ) -> CallFuture<'a, Receipt<AccountId>> {
        Box::pin(async move {
            let mut members: Vec<AccountId> = others.iter().copied().chain([opener]).collect();
            members.sort_unstable();
            members.dedup();
            if members.len() > CHAT_MEMBERS_MAX {
                let text =
                    format!("a chat of {} members; at most {CHAT_MEMBERS_MAX} are allowed", members.len());
                return Err(Error::out_of_range(text));
            }
            graph::all_there(&self.graph, &members).await?;
            let is_one = members.len() <= 2;
            if let Some(other) = members.iter().find(|member| is_one && **member != opener) {
                graph::may_meet(&self.graph, opener, *other).await?;
            }
            let random = format!("{:x?}", draw());
            for n in 0..IDS_MAX {
                let id = match token {
                    _ if is_one => graph::chat_id(&self.graph, &members, n)?,
                    // One that is drawn says no more than its own.
                    token => graph::named_chat_id(&self.graph, opener, token.unwrap_or(&random), n)?,
                };
                if let Some(opened) = self.open_at(id, &members, opener).await? {
                    return Ok(opened);
                }
            }
            Err(Error::internal(format!(
                "accounts have all {IDS_MAX} ids that a chat of {opener} could have"
            )))
        })
    }

    /// Opens a chat with that id, or comes back to it. `None`: somebody else has the id.
    async fn open_at(
        &self,
        id: AccountId,
        members: &[AccountId],
        opener: AccountId,
    ) -> Result<Option<Receipt<AccountId>>> {
        // Nobody follows a chat: nothing is delivered, and no policy changes that.
        let new = NewAccount { kind: AccountKind::Chat, mode: Mode::Pull, ..NewAccount::default() };
        let stamp = draw();
        let fields = [new.fields(stamp), graph::member_fields(members)].concat();
        match self.create_record(id, (fields, stamp)).await {
            Ok(epoch) => return Ok(Some(self.acknowledged(epoch).await?.with(id))),
            // H253: two that open it at once.
            Err(e) if e.kind() == ErrorKind::Conflict => {}
            Err(e) => return Err(e),
        }
        let found = Chat::of(&self.graph, id).await?;
        if found.is_none_or(|chat| chat.members != members) {
            return Ok(None);
        }
        let mut epochs = match members.len() {
            ..=2 => graph::come_back(&self.graph, id, opener).await?,
            _ => Vec::new(),
        };
        // Whoever has opened it may have been told nothing yet.
        epochs.push(graph::graph_stamp(&self.graph, id).await?.1);
        Ok(Some(self.all_acknowledged(epochs).await?.with(id)))
    }

    /// Leaves a chat: from then on one reads nothing of it, on any instance, and writes nothing to it. Of two one comes
    /// back by [opening](Self::open_chat) it again.
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound): the account was never in such a chat.
    pub fn leave_chat(&self, chat: AccountId, member: AccountId) -> CallFuture<'_, Receipt> {
        Box::pin(async move {
            let epochs = graph::leave_chat(&self.graph, chat, member).await?;
            self.all_acknowledged(epochs).await
        })
    }

    /// Says that a member has read a chat up to a message of it; `None`: up to the newest one. It never goes back.
    /// Whoever writes to a chat has read it up to there.
    pub fn read_chat(
        &self,
        chat: AccountId,
        member: AccountId,
        upto: Option<PostId>,
    ) -> CallFuture<'_, Receipt> {
        Box::pin(self.note_chat(chat, (member, ChatPlaces::Read), upto))
    }

    /// Puts a chat aside: it is off the member's [list](crate::Reader::chats) until there is a newer message.
    pub fn hide_chat(&self, chat: AccountId, member: AccountId) -> CallFuture<'_, Receipt> {
        Box::pin(self.note_chat(chat, (member, ChatPlaces::Hidden), None))
    }

    async fn note_chat(
        &self,
        chat: AccountId,
        of: (AccountId, ChatPlaces),
        upto: Option<PostId>,
    ) -> Result<Receipt> {
        Chat::of_member(&self.graph, chat, of.0).await?;
        match graph::note_place(&self.graph, of, chat, upto).await? {
            Some(epoch) => self.acknowledged(epoch).await,
            // Nobody has written anything.
            None => Ok(Receipt { value: (), reached: self.graph.settings.acknowledge }),
        }
    }

    /// The members of a chat, for one of them.
    pub fn chat_members(&self, chat: AccountId, member: AccountId) -> CallFuture<'_, Vec<AccountId>> {
        Box::pin(async move { Ok(Chat::of_member(&self.graph, chat, member).await?.members) })
    }

    /// A message as the post that it becomes: for the members of its chat alone.
    pub(super) async fn with_members<'d>(&self, by: Byline, draft: &'d Draft) -> Result<Cow<'d, Draft>> {
        if by.place != PostingPlace::Chat {
            return Ok(Cow::Borrowed(draft));
        }
        let chat = Chat::of_member(&self.graph, by.author, by.writer).await?;
        Ok(Cow::Owned(Draft {
            chat: None,
            visibility: Some(Visibility::Direct),
            only_to: chat.members,
            ..draft.clone()
        }))
    }

    /// Whoever writes has read what stands above.
    pub(super) async fn read_own(&self, by: Byline, id: PostId) {
        let of = (by.writer, ChatPlaces::Read);
        if let Err(e) = graph::note_place(&self.graph, of, by.author, Some(id)).await {
            tracing::debug!(
                "account {} has read chat {} up to its own message {id}: {e}",
                by.writer,
                by.author
            );
        }
    }
}
