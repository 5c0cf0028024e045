//! Chats: what their members write to each other.

use std::borrow::Cow;

use super::byline::{Byline, PostingPlace};
use super::{Engine, PublishedPost};
use crate::account::{AccountKind, Mode, NewAccount};
use crate::error::{CallFuture, Error, ErrorKind, Result};
use crate::graph::{self, CHAT_MEMBERS_MAX, Chat, ChatPlaces};
use crate::ids::{AccountId, PostId};
use crate::nonce::draw;
use crate::post::{Draft, Visibility};
use crate::settings::Receipt;
use crate::timeline::Query;

/// Ids that are tried for a chat: others may have those that come first.
const IDS_MAX: u8 = 8;

/// A chat that somebody opens.
enum OpenedChat {
    Now(Receipt<AccountId>),
    Before(Chat),
}

/// The members of a chat, in order.
fn members(opener: AccountId, others: &[AccountId]) -> Result<Vec<AccountId>> {
    let mut members: Vec<AccountId> = others.iter().copied().chain([opener]).collect();
    members.sort_unstable();
    members.dedup();
    if members.len() > CHAT_MEMBERS_MAX {
        let text = format!("a chat of {} members; at most {CHAT_MEMBERS_MAX} are allowed", members.len());
        return Err(Error::out_of_range(text));
    }
    Ok(members)
}

impl Engine {
    /// Opens a chat of an account and others, who stay its members: up to [`CHAT_MEMBERS_MAX`](crate::CHAT_MEMBERS_MAX)
    /// with whoever opens it, who may be alone. Of two there is one: whoever opens it gets that, and comes back into it
    /// if it had left. Of more each call opens another one, unless it names the same token.
    ///
    /// Members write to it with [`Draft::chat`](crate::post::Draft::chat), read it with
    /// [`Query::chat`](crate::Query::chat), and list theirs with [`chats`](crate::Reader::chats).
    ///
    /// [`Blocked`](crate::ErrorCode::Blocked): of two, one blocks the other. [`Conflict`](ErrorKind::Conflict): it has
    /// opened a chat of others with that token. A chat that is new counts as a direct post (`limits.direct_posts`), and
    /// as a mention of each stranger in it; with its first message as no more than that:
    /// [`publish_direct`](Self::publish_direct).
    pub fn open_chat<'a>(
        &'a self,
        opener: AccountId,
        others: &'a [AccountId],
        token: Option<&'a str>,
    ) -> CallFuture<'a, Receipt<AccountId>> {
        Box::pin(async move { Ok(self.opened(opener, others, token, false).await?.0) })
    }

    /// Publishes a post directly to others: a message of the chat with them, which is opened if there is none, as by
    /// [`open_chat`](Self::open_chat) with the draft's token. The two count as one direct post, and what is refused
    /// because of a limit has opened nothing; what is refused otherwise may have.
    ///
    /// [`Blocked`](crate::ErrorCode::Blocked), [`Conflict`](ErrorKind::Conflict): as from there.
    pub fn publish_direct<'a>(
        &'a self,
        author: AccountId,
        others: &'a [AccountId],
        draft: &'a Draft,
    ) -> CallFuture<'a, PublishedPost> {
        Box::pin(async move {
            let ack = self.tenant.settings.acknowledge.into();
            // Whose it is isn't known yet; what nobody may publish opens nothing.
            let draft = Draft { visibility: None, chat: Some(author), ..draft.clone() };
            draft.check(self.tenant.settings.text_chars)?;
            let token = draft.token.as_deref();
            let (chat, is_counted) = match self.sent_to(author, others, token).await? {
                Some(chat) => (chat, false),
                None => {
                    let (opened, is_counted) = self.opened(author, others, token, true).await?;
                    (opened.value, is_counted)
                }
            };
            let draft = Draft { chat: Some(chat), ..draft };
            let by = Byline { is_counted, ..Byline::of(author, &draft) };
            self.publish_now(by, &draft, ack).await
        })
    }

    /// The chat with others to which an account has sent something with that token: whoever sends it again doesn't come
    /// back into a chat that it has left since.
    async fn sent_to(
        &self,
        author: AccountId,
        others: &[AccountId],
        token: Option<&str>,
    ) -> Result<Option<AccountId>> {
        let Some(named) = token else { return Ok(None) };
        let Some(chat) = self.find_chat(author, others, token).await? else { return Ok(None) };
        Ok(self.written_as(chat, author, named).await?.map(|_| chat))
    }

    /// Opens a chat, for its first message too (`and_writes`), or finds it. Tells whether that was counted.
    async fn opened(
        &self,
        opener: AccountId,
        others: &[AccountId],
        token: Option<&str>,
        and_writes: bool,
    ) -> Result<(Receipt<AccountId>, bool)> {
        let members = members(opener, others)?;
        graph::all_there(&self.tenant, &members).await?;
        let is_one = members.len() <= 2;
        if let Some(other) = members.iter().find(|member| is_one && **member != opener) {
            graph::may_meet(&self.tenant, opener, *other).await?;
        }
        let random = format!("{:x?}", draw());
        // One that is drawn says no more than its own.
        let token = Some(token.unwrap_or(&random));
        let mut is_counted = false;
        for n in 0..IDS_MAX {
            let id = self.id_of_chat(opener, &members, token, n)?;
            let found = match Chat::of(&self.tenant, id).await? {
                None => {
                    // Before it is there, where it stays for good; once, whichever id it gets.
                    if !std::mem::replace(&mut is_counted, true) {
                        let limits = self.limits_of_opening(opener, &members, and_writes).await?;
                        self.tenant.count_act(opener, &limits).await?;
                    }
                    // H253: two that open it at once.
                    self.create_chat(id, &members).await?
                }
                found => found.map(OpenedChat::Before),
            };
            match found {
                Some(OpenedChat::Now(receipt)) => return Ok((receipt, is_counted)),
                Some(OpenedChat::Before(chat)) if chat.members == members => {
                    return Ok((self.opened_again(id, members.len(), opener).await?, is_counted));
                }
                Some(OpenedChat::Before(_)) if !is_one => {
                    let text = format!("account {opener} has opened a chat of others with that token");
                    return Err(Error::new(ErrorKind::Conflict, text));
                }
                Some(OpenedChat::Before(_)) | None => {}
            }
        }
        Err(Error::internal(format!("accounts have all {IDS_MAX} ids that a chat of {opener} could have")))
    }

    /// The chat that [`open_chat`](Self::open_chat) would give, if there is one; it isn't opened, and nobody comes
    /// back into it.
    pub fn find_chat<'a>(
        &'a self,
        opener: AccountId,
        others: &'a [AccountId],
        token: Option<&'a str>,
    ) -> CallFuture<'a, Option<AccountId>> {
        Box::pin(async move {
            let members = members(opener, others)?;
            if members.len() > 2 && token.is_none() {
                return Ok(None);
            }
            for n in 0..IDS_MAX {
                let id = self.id_of_chat(opener, &members, token, n)?;
                if Chat::of(&self.tenant, id).await?.is_some_and(|chat| chat.members == members) {
                    return Ok(Some(id));
                }
            }
            Ok(None)
        })
    }

    /// The `n`th id that a chat may have: of two it goes by them.
    fn id_of_chat(
        &self,
        opener: AccountId,
        members: &[AccountId],
        token: Option<&str>,
        n: u8,
    ) -> Result<AccountId> {
        match token.filter(|_| members.len() > 2) {
            Some(token) => graph::named_chat_id(&self.tenant, opener, token, n),
            None => graph::chat_id(&self.tenant, members, n),
        }
    }

    /// Opens a new chat with that id. `None`: an account has it that is no chat.
    async fn create_chat(&self, id: AccountId, members: &[AccountId]) -> Result<Option<OpenedChat>> {
        let tenant = &self.tenant;
        // Nobody follows a chat: nothing is delivered, and no policy changes that.
        let new = NewAccount { kind: AccountKind::Chat, mode: Mode::Pull, ..NewAccount::default() };
        let stamp = draw();
        let fields = [new.fields(stamp), graph::member_fields(members)].concat();
        match self.create_record(id, (fields, stamp)).await {
            Ok(epoch) => Ok(Some(OpenedChat::Now(self.acknowledged(epoch).await?.with(id)))),
            Err(e) if e.kind() == ErrorKind::Conflict => {
                Ok(Chat::of(tenant, id).await?.map(OpenedChat::Before))
            }
            Err(e) => Err(e),
        }
    }

    /// Comes back into a chat of two that is there. Whoever has opened it may have been told nothing yet.
    async fn opened_again(
        &self,
        id: AccountId,
        members: usize,
        opener: AccountId,
    ) -> Result<Receipt<AccountId>> {
        let epochs = match members {
            ..=2 => graph::come_back(&self.graph, id, opener).await?,
            _ => vec![graph::graph_stamp(&self.tenant, id).await?.1],
        };
        Ok(self.all_acknowledged(epochs).await?.with(id))
    }

    /// The message that an account has written to a chat with that token, or what it has posted into a group, while
    /// that is remembered.
    pub fn written_as(
        &self,
        place: AccountId,
        writer: AccountId,
        token: &str,
    ) -> CallFuture<'_, Option<PostId>> {
        let by = Byline { writer, author: place, place: PostingPlace::Chat, is_counted: false };
        let token = by.token(token);
        Box::pin(async move {
            Ok(self.published_before(place, Some(&token)).await?.map(|(published, _)| published.id))
        })
    }

    /// Leaves a chat: from then on one reads nothing of it, on any instance, and writes nothing to it. Of two one comes
    /// back by [opening](Self::open_chat) it again.
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound): the account was never in such a chat.
    /// [`NotActive`](crate::ErrorCode::NotActive): it is suspended.
    pub fn leave_chat(&self, chat: AccountId, member: AccountId) -> CallFuture<'_, Receipt> {
        Box::pin(async move {
            let epochs = graph::leave_chat(&self.graph, chat, member).await?;
            self.all_acknowledged(epochs).await
        })
    }

    /// Says that a member has read a chat up to a message of it; `None`: up to the newest one that shows to it. It
    /// never goes back. Whoever writes to a chat has read it up to there.
    pub fn read_chat(
        &self,
        chat: AccountId,
        member: AccountId,
        upto: Option<PostId>,
    ) -> CallFuture<'_, Receipt> {
        Box::pin(self.note_chat(chat, (member, ChatPlaces::Read), upto))
    }

    /// Puts a chat aside, up to the newest message that shows to a member: it is off the member's
    /// [list](crate::Reader::chats) until a newer one does.
    pub fn hide_chat(&self, chat: AccountId, member: AccountId) -> CallFuture<'_, Receipt> {
        Box::pin(self.note_chat(chat, (member, ChatPlaces::Hidden), None))
    }

    async fn note_chat(
        &self,
        chat: AccountId,
        of: (AccountId, ChatPlaces),
        upto: Option<PostId>,
    ) -> Result<Receipt> {
        Chat::of_member(&self.tenant, chat, of.0).await?;
        let upto = match upto {
            // What was held back, or is by whom the member mutes, may show one day: it is new then.
            None => {
                let page = self.as_reader(of.0).read(&Query::chat(chat).limit(1)).await?;
                page.posts.first().map(|newest| newest.id)
            }
            upto => upto,
        };
        let noted = match upto {
            Some(upto) => graph::note_place(&self.tenant, of, chat, upto).await?,
            None => None,
        };
        match noted {
            Some(epoch) => self.acknowledged(epoch).await,
            // Nobody has written anything that shows.
            None => Ok(Receipt { value: (), reached: self.tenant.settings.acknowledge }),
        }
    }

    /// The members of a chat, for one of them.
    pub fn chat_members(&self, chat: AccountId, member: AccountId) -> CallFuture<'_, Vec<AccountId>> {
        Box::pin(async move { Ok(Chat::of_member(&self.tenant, chat, member).await?.members) })
    }

    /// A message as the post that it becomes: for the members of its chat alone.
    pub(super) async fn with_members<'d>(&self, by: Byline, draft: &'d Draft) -> Result<Cow<'d, Draft>> {
        if by.place != PostingPlace::Chat {
            return Ok(Cow::Borrowed(draft));
        }
        let chat = Chat::of_member(&self.tenant, by.author, by.writer).await?;
        Ok(Cow::Owned(Draft {
            chat: None,
            visibility: Some(Visibility::Direct),
            only_to: chat.members,
            ..draft.clone()
        }))
    }

    /// Notes that whoever writes has read what stands above.
    pub(super) async fn read_own(&self, by: Byline, id: PostId) {
        let of = (by.writer, ChatPlaces::Read);
        if let Err(e) = graph::note_place(&self.tenant, of, by.author, id).await {
            tracing::debug!(
                "account {} has read chat {} up to its own message {id}: {e}",
                by.writer,
                by.author
            );
        }
    }
}
