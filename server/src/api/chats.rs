//! Chats: what accounts write to each other. A status that is direct is a message of one, with any client; here are
//! the list of them, which is Mastodon's conversations, and calls of our own for the rest.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use tideline::post::Draft;
use tideline::{AccountId, ChatQuery, PostId, ShownChat, Timeline};

use super::accounts::{id_of, known, post_of};
use super::page::{self, PostsSource, STATUSES};
use super::statuses;
use crate::app::{App, Shared};
use crate::auth::caller::Caller;
use crate::entity::{Conversation, Empty};
use crate::http::path::PathId;
use crate::http::{Json, PageLimit, PageLinks, Paged, PagedText, Params, Refusal};
use crate::show;

const CHATS: PageLimit = PageLimit::new(20);
const READ: &str = "read:statuses";
const WRITE: &str = "write:conversations";

/// A draft that is a message of a chat.
pub(super) fn into(draft: Draft, chat: AccountId) -> Draft {
    Draft { visibility: None, ..draft.chat(chat) }
}

/// The message that was sent with that token to who is mentioned, by who can't send it anew: the chat is shut to it by
/// now, or what it answers or quotes has gone. Of what answered a message that is deleted by now, that isn't found
/// unless it names the chat, or is in one of two with whom it mentions.
pub(super) async fn sent_as(
    app: &App,
    me: AccountId,
    (params, mentioned): (&Params, &[AccountId]),
    token: &str,
) -> Result<Option<PostId>, Refusal> {
    let chat = match params.filled("chat") {
        Some(chat) => Some(id_of(chat)?),
        None => chat_of_answered(app, params).await?,
    };
    let chat = match chat {
        None => app.engine.find_chat(me, mentioned, Some(token)).await?,
        chat => chat,
    };
    match chat {
        Some(chat) => Ok(app.engine.written_as(chat, me, token).await?),
        None => Ok(None),
    }
}

/// The chat of the message that a request answers, whoever sees that. Once it is deleted nothing says whose it was.
async fn chat_of_answered(app: &App, params: &Params) -> Result<Option<AccountId>, Refusal> {
    let Some(answered) = params.filled("in_reply_to_id") else { return Ok(None) };
    let stored = app.engine.stored().post(post_of(answered)?).await?;
    Ok(stored.and_then(|post| post.chat()))
}

/// Chats as their reader gets them.
async fn shown(app: &App, me: AccountId, chats: Vec<ShownChat>) -> Result<Vec<Conversation>, Refusal> {
    let posts: Vec<_> = chats.iter().filter_map(|chat| chat.last.clone()).collect();
    let mut statuses = page::statuses(app, Some(me), &posts).await?.into_iter();
    // Clients take it that somebody is there: where nobody else is, oneself, as Mastodon has it.
    let own = match chats.iter().any(|chat| chat.others.is_empty()) {
        true => Some(Arc::new(known(app, me).await?)),
        false => None,
    };
    let conversation = |chat: ShownChat| Conversation {
        id: chat.id.into(),
        unread: chat.unread > 0,
        accounts: (chat.others.iter().chain(own.as_ref().filter(|_| chat.others.is_empty())))
            .map(|account| show::account::account(app.site(), account))
            .collect(),
        last_status: chat.last.and_then(|_| statuses.next()),
        unread_count: chat.unread,
        request: chat.is_request,
    };
    Ok(chats.into_iter().map(conversation).collect())
}

/// One, as it is now.
async fn one(app: &App, me: AccountId, chat: AccountId) -> Result<Json<Conversation>, Refusal> {
    let chat = app.engine.as_reader(me).chat(chat).await?;
    shown(app, me, vec![chat]).await?.pop().map(Json).ok_or_else(Refusal::not_found)
}

/// `GET /api/v1/conversations`
pub(super) async fn all(
    State(app): State<Shared>,
    who: Caller,
    uri: Uri,
    params: Params,
) -> Result<Paged<Conversation>, Refusal> {
    let (me, request) = (who.user(READ)?, params.page(CHATS));
    if request.is_void() {
        return Ok(page::nothing(&app, &uri));
    }
    let id = |id: Option<u64>| id.map(PostId::from_u64).transpose();
    let query = ChatQuery {
        limit: Some(request.limit),
        max_id: id(request.max_id)?,
        since_id: id(request.since_id)?,
        min_id: id(request.min_id)?,
    };
    let list = app.engine.as_reader(me).chats(&query).await?;
    let links = PageLinks::new(&app.settings.public_url, &uri);
    let links = page::with_places(links, list.older, list.newer);
    Ok(Paged(shown(&app, me, list.chats).await?, links))
}

/// `POST /api/v1/conversations/:id/read`
pub(super) async fn read(
    State(app): State<Shared>,
    who: Caller,
    PathId(chat): PathId,
) -> Result<Json<Conversation>, Refusal> {
    let (me, chat) = (who.user(WRITE)?, AccountId::new(chat)?);
    app.engine.read_chat(chat, me, None).await?;
    one(&app, me, chat).await.map_err(Refusal::of_what_was_done)
}

/// `DELETE /api/v1/conversations/:id`: it is off the list until somebody writes to it.
pub(super) async fn hide(
    State(app): State<Shared>,
    who: Caller,
    PathId(chat): PathId,
) -> Result<Json<Empty>, Refusal> {
    app.engine.hide_chat(AccountId::new(chat)?, who.user(WRITE)?).await?;
    Ok(Json(Empty {}))
}

/// `POST /api/tideline/v1/chats`
pub(super) async fn open(
    State(app): State<Shared>,
    who: Caller,
    headers: HeaderMap,
    params: Params,
) -> Result<Json<Conversation>, Refusal> {
    let me = who.user(WRITE)?;
    let others = params.texts("account_ids").iter().map(|id| id_of(id)).collect::<Result<Vec<_>, _>>()?;
    let token = statuses::token_of(&headers)?;
    let chat = app.engine.open_chat(me, &others, token.as_deref()).await?.value;
    one(&app, me, chat).await.map_err(Refusal::of_what_was_done)
}

/// `GET /api/tideline/v1/chats/:id`
pub(super) async fn get(
    State(app): State<Shared>,
    who: Caller,
    PathId(chat): PathId,
) -> Result<Json<Conversation>, Refusal> {
    one(&app, who.user(READ)?, AccountId::new(chat)?).await
}

/// `GET /api/tideline/v1/chats/:id/statuses`
pub(super) async fn messages(
    State(app): State<Shared>,
    who: Caller,
    PathId(chat): PathId,
    uri: Uri,
    params: Params,
) -> Result<PagedText, Refusal> {
    let (me, chat) = (who.user(READ)?, AccountId::new(chat)?);
    let source = PostsSource::Timeline(*app.engine.as_reader(me), Timeline::Chat(chat));
    page::timeline(&app, params.page(STATUSES), (&uri, Some(me)), source).await
}

/// `POST /api/tideline/v1/chats/:id/leave`
pub(super) async fn leave(
    State(app): State<Shared>,
    who: Caller,
    PathId(chat): PathId,
) -> Result<Json<Empty>, Refusal> {
    app.engine.leave_chat(AccountId::new(chat)?, who.user(WRITE)?).await?;
    Ok(Json(Empty {}))
}
