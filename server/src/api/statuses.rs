//! Statuses: writing, reading, changing them; what somebody does with them.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use tideline::post::{Draft, PostRef, Visibility};
use tideline::{AccountId, ErrorKind, PagePost, PostId};

use super::accounts::{self, post_of};
use super::chats;
use super::drafted;
use super::groups;
use super::page;
use super::written;
use crate::app::{App, Shared};
use crate::auth::caller::Caller;
use crate::entity::{Account, Context, Status, StatusEdit, StatusSource};
use crate::http::{Json, Paged, PagedText, Params, Refusal};
use crate::keep;
use crate::keep::posts::readable;
use crate::show;
use crate::show::status::visibility_named;

type StatusAnswer = Result<Json<Status>, Refusal>;

/// Statuses that are asked for at once.
const ASKED_MAX: usize = 20;
/// Bytes of a key by which a client tells that it sends the same status again.
const KEY_BYTES_MAX: usize = 512;

/// A post as somebody sees it.
async fn seen_by(app: &App, me: AccountId, id: PostId) -> StatusAnswer {
    shown(app, Some(me), &app.engine.as_reader(me).post(id).await?).await
}

/// Shows a post to who has just done something with it: if it doesn't show any more, it was done all the same.
async fn seen_after(app: &App, me: AccountId, id: PostId) -> StatusAnswer {
    seen_by(app, me, id).await.map_err(Refusal::of_what_was_done)
}

/// Shows a post to who has just taken something back. That it isn't there is told: it was taken back all the same.
async fn seen_back(app: &App, me: AccountId, id: PostId) -> StatusAnswer {
    seen_by(app, me, id).await.map_err(|refusal| match refusal.status() {
        StatusCode::NOT_FOUND => refusal,
        _ => refusal.of_what_was_done(),
    })
}

async fn shown(app: &App, reads: Option<AccountId>, post: &PagePost) -> StatusAnswer {
    let shown = page::statuses(app, reads, std::slice::from_ref(post)).await?.pop();
    shown.map(Json).ok_or_else(Refusal::not_found)
}

/// `GET /api/v1/statuses/:id`
pub(super) async fn one(State(app): State<Shared>, who: Caller, Path(id): Path<String>) -> StatusAnswer {
    let post = who.viewer(&app, "read:statuses").post(post_of(&id)?).await?;
    shown(&app, who.viewing("read:statuses"), &post).await
}

/// `GET /api/v1/statuses?id[]=`
pub(super) async fn several(
    State(app): State<Shared>,
    who: Caller,
    params: Params,
) -> Result<Json<Vec<Status>>, Refusal> {
    let ids: Vec<PostId> =
        params.ids("id").into_iter().filter_map(|id| PostId::from_u64(id).ok()).take(ASKED_MAX).collect();
    if ids.is_empty() {
        return Ok(Json(Vec::new()));
    }
    let found = who.viewer(&app, "read:statuses").posts(&ids).await?;
    Ok(Json(page::statuses(&app, who.viewing("read:statuses"), &found.posts).await?))
}

/// The token of who may send the same again: of a key of any length, and not told to anybody who may look at keys.
pub(super) fn token_of(headers: &HeaderMap) -> Result<Option<String>, Refusal> {
    let key = headers.get("idempotency-key").map(|key| key.as_bytes()).filter(|key| !key.is_empty());
    match key {
        Some(key) if key.len() > KEY_BYTES_MAX => Err(Refusal::bad_request(format!(
            "The Idempotency-Key has {} bytes; at most {KEY_BYTES_MAX} are allowed",
            key.len()
        ))),
        key => Ok(key.map(crate::auth::secret::hash_of)),
    }
}

/// `POST /api/v1/statuses`
pub(super) async fn create(
    State(app): State<Shared>,
    who: Caller,
    headers: HeaderMap,
    params: Params,
) -> StatusAnswer {
    let me = who.user("write:statuses")?;
    let token = token_of(&headers)?;
    let published = match (drafted::draft(&app, me, &params, token.as_deref()).await, token) {
        (Ok(drafted), token) => drafted.publish(&app, me, token).await?,
        // What it answers or quotes may have gone since it was posted: a repeat gives it all the same, but for answers
        // in larger chats to what is deleted by now.
        (Err(refusal), Some(token)) => {
            let posted = posted_before(&app, me, &params, &token).await?.ok_or(refusal)?;
            return shown_own(&app, me, posted).await;
        }
        (Err(refusal), None) => return Err(refusal),
    };
    match shown_own(&app, me, published.id).await {
        // It was posted long ago, and may have gone since.
        answer if published.is_repeat => answer,
        answer => answer.map_err(Refusal::of_what_was_done),
    }
}

/// The post that was made with that token, wherever it went.
async fn posted_before(
    app: &App,
    me: AccountId,
    params: &Params,
    token: &str,
) -> Result<Option<PostId>, Refusal> {
    if let Some(posted) = app.engine.published_as(me, token.to_owned()).await? {
        return Ok(Some(posted));
    }
    let (draft, groups) = written::draft(app, params.text("status").unwrap_or_default()).await?;
    if let Some((_, posted)) = groups::posted_as(app, me, &groups, token).await? {
        return Ok(Some(posted));
    }
    chats::sent_as(app, me, (params, &draft.content.mentions), token).await
}

/// A post of whoever asks. It is there for its author also while it shows to nobody: the author is suspended, or what
/// the post passes on is out of its bounds by now.
async fn own(app: &App, me: AccountId, id: PostId) -> Result<PagePost, Refusal> {
    match app.engine.as_reader(me).post(id).await {
        Ok(post) if post.said_by() == me => return Ok(post),
        Ok(_) => return Err(Refusal::not_found()),
        Err(e) if e.kind() == ErrorKind::NotFound => {}
        Err(e) => return Err(e.into()),
    }
    let stored = readable(&app.engine, id).await?;
    let post = stored.filter(|post| post.writer() == me).ok_or_else(Refusal::not_found)?;
    let (author, is_by_member) = (post.header().author, post.is_by_member());
    let account = |of| async move {
        Ok::<_, Refusal>(Some(Arc::new(accounts::stored(app, of).await?.ok_or_else(Refusal::not_found)?)))
    };
    Ok(PagePost {
        post: Some(Arc::new(post)),
        account: account(author).await?,
        writer: if is_by_member { account(me).await? } else { None },
        // As text: what stands around it isn't looked at.
        ..PagePost::bare(PostRef { id, author })
    })
}

/// Shows a post as its author sees it.
async fn shown_own(app: &App, me: AccountId, id: PostId) -> StatusAnswer {
    shown(app, Some(me), &own(app, me, id).await?).await
}

/// `PUT /api/v1/statuses/:id`
pub(super) async fn edit(
    State(app): State<Shared>,
    who: Caller,
    Path(id): Path<String>,
    params: Params,
) -> StatusAnswer {
    let (me, id) = (who.user("write:statuses")?, post_of(&id)?);
    drafted::served(&params)?;
    let post = own(&app, me, id).await?;
    let was = post.post.as_ref().ok_or_else(Refusal::not_found)?.content().clone();
    let text = params.text("status").unwrap_or(&was.text);
    // Clients leave a warning out that is taken away.
    let warning = params.text("spoiler_text").unwrap_or_default();
    let (text, warning) = written::with_warning(text, warning);
    written::check(&app, text, warning)?;
    let mut edit = written::edit(&app, text).await?;
    edit.sensitive = Some(params.flag("sensitive").unwrap_or_default() || !warning.is_empty());
    edit.language = params.filled("language").and_then(written::language).map(Some);
    edit.content_warning = Some(Some(warning.to_owned()).filter(|warning| !warning.is_empty()));
    app.settled(app.engine.edit(me, id, &edit)).await?;
    shown_own(&app, me, id).await.map_err(Refusal::of_what_was_done)
}

/// `DELETE /api/v1/statuses/:id`: the answer has the text, for whoever writes it anew.
pub(super) async fn delete(State(app): State<Shared>, who: Caller, Path(id): Path<String>) -> StatusAnswer {
    let (me, id) = (who.user("write:statuses")?, post_of(&id)?);
    let post = own(&app, me, id).await?;
    let Json(mut shown) = shown(&app, Some(me), &post).await?;
    shown.text = post.post.as_ref().map(|post| post.content().text.clone());
    app.settled(app.engine.delete(me, id)).await?;
    Ok(Json(shown))
}

/// `GET /api/v1/statuses/:id/source`: for whoever sees it, as in Mastodon.
pub(super) async fn source(
    State(app): State<Shared>,
    who: Caller,
    Path(id): Path<String>,
) -> Result<Json<StatusSource>, Refusal> {
    let post = app.engine.as_reader(who.user("read:statuses")?).post(post_of(&id)?).await?;
    let stored = post.post.as_deref().ok_or_else(Refusal::not_found)?;
    Ok(Json(show::status::source(post.id, stored)))
}

/// `GET /api/v1/statuses/:id/history`
pub(super) async fn history(
    State(app): State<Shared>,
    who: Caller,
    Path(id): Path<String>,
) -> Result<Json<Vec<StatusEdit>>, Refusal> {
    let post = who.viewer(&app, "read:statuses").post(post_of(&id)?).await?;
    show::status::history(app.site(), &post).map(Json).ok_or_else(Refusal::not_found)
}

/// `GET /api/v1/statuses/:id/context`
pub(super) async fn context(
    State(app): State<Shared>,
    who: Caller,
    Path(id): Path<String>,
) -> Result<Json<Context>, Refusal> {
    let found = who.viewer(&app, "read:statuses").conversation(post_of(&id)?).await?;
    let reads = who.viewing("read:statuses");
    let ancestors = page::statuses(&app, reads, &found.ancestors).await?;
    let descendants = page::statuses(&app, reads, &found.descendants).await?;
    Ok(Json(Context { ancestors, descendants }))
}

/// Does something with a post, and shows it as it is then. What is taken back is so, too, of what is gone or doesn't
/// show any more: there is nothing to show then, and that is what is answered.
macro_rules! deed {
    ($(#[$doc:meta])* $name:ident, $scope:literal, $call:ident, $seen:ident) => {
        $(#[$doc])*
        pub(super) async fn $name(State(app): State<Shared>, who: Caller, Path(id): Path<String>) -> StatusAnswer {
            let (me, id) = (who.user($scope)?, post_of(&id)?);
            app.settled(app.engine.$call(me, id)).await?;
            $seen(&app, me, id).await
        }
    };
}

deed!(
    /// `POST /api/v1/statuses/:id/favourite`
    favourite, "write:favourites", like, seen_after
);
deed!(
    /// `POST /api/v1/statuses/:id/unfavourite`
    unfavourite, "write:favourites", unlike, seen_back
);
deed!(
    /// `POST /api/v1/statuses/:id/bookmark`
    bookmark, "write:bookmarks", bookmark, seen_after
);
deed!(
    /// `POST /api/v1/statuses/:id/unbookmark`
    unbookmark, "write:bookmarks", unbookmark, seen_back
);

/// `POST /api/v1/statuses/:id/reblog`: gives the repost, which shows the original.
pub(super) async fn reblog(
    State(app): State<Shared>,
    who: Caller,
    Path(id): Path<String>,
    params: Params,
) -> StatusAnswer {
    let me = who.user("write:statuses")?;
    let original = app.engine.as_reader(me).post(post_of(&id)?).await?;
    let of = original.original.as_ref().map(|of| (of.id, of.post.header().visibility));
    let own = original.post.as_ref().map(|post| (original.id, post.header().visibility));
    let is_plain = original.post.as_ref().is_some_and(|post| post.is_plain_repost());
    let (_, reach) = if is_plain { of } else { own }.ok_or_else(Refusal::not_found)?;
    let mut draft = Draft::repost(original.subject());
    draft.visibility = match (reach, params.filled("visibility")) {
        // It goes no further than what it passes on.
        (Visibility::Followers | Visibility::Direct, _) => Some(Visibility::Followers),
        (_, Some(name)) => {
            let reach = visibility_named(name).filter(|reach| *reach != Visibility::Direct);
            Some(reach.ok_or_else(|| Refusal::validation("Visibility is not included in the list"))?)
        }
        // As its own posts: whoever talks to followers alone would pass things on to everybody.
        (_, None) => match keep::usual::of(&app, me).await?.visibility {
            Some(Visibility::Direct) => Some(Visibility::Followers),
            usual => usual,
        },
    };
    let published = app.settled(app.engine.publish(me, &draft)).await?;
    seen_after(&app, me, published.id).await
}

/// `POST /api/v1/statuses/:id/unreblog`: gives the original.
pub(super) async fn unreblog(State(app): State<Shared>, who: Caller, Path(id): Path<String>) -> StatusAnswer {
    let (me, id) = (who.user("write:statuses")?, post_of(&id)?);
    let subject = match app.engine.as_reader(me).post(id).await {
        Ok(post) => post.subject().id,
        // Gone, or out of bounds: the repost of it is its owner's all the same.
        Err(e) if e.kind() == ErrorKind::NotFound => id,
        Err(e) => return Err(e.into()),
    };
    app.settled(app.engine.undo_repost(me, subject)).await?;
    seen_back(&app, me, subject).await
}

/// `POST /api/v1/statuses/:id/pin`
pub(super) async fn pin(State(app): State<Shared>, who: Caller, Path(id): Path<String>) -> StatusAnswer {
    let (me, id) = (who.user("write:accounts")?, post_of(&id)?);
    let post = app.engine.as_reader(me).post(id).await?;
    let stored = post.post.as_ref().ok_or_else(Refusal::not_found)?;
    if post.said_by() != me {
        return Err(Refusal::validation("Someone else's post cannot be pinned"));
    }
    if stored.is_plain_repost() {
        return Err(Refusal::validation("A boost cannot be pinned"));
    }
    if stored.header().visibility == Visibility::Direct {
        return Err(Refusal::validation("Posts that are only visible to mentioned users cannot be pinned"));
    }
    // It stands on the page of the group.
    if post.author != me {
        return Err(Refusal::validation("A post in a group cannot be pinned"));
    }
    keep::pins::pin(&app, me, id).await?;
    seen_after(&app, me, id).await
}

/// `POST /api/v1/statuses/:id/unpin`
pub(super) async fn unpin(State(app): State<Shared>, who: Caller, Path(id): Path<String>) -> StatusAnswer {
    let (me, id) = (who.user("write:accounts")?, post_of(&id)?);
    keep::pins::unpin(&app, me, own(&app, me, id).await?.id).await?;
    shown_own(&app, me, id).await.map_err(Refusal::of_what_was_done)
}

/// `POST /api/v1/statuses/:id/mute`: nothing of its conversation is told any more.
pub(super) async fn mute(State(app): State<Shared>, who: Caller, Path(id): Path<String>) -> StatusAnswer {
    conversation_muted(&app, who, &id, true).await
}

/// `POST /api/v1/statuses/:id/unmute`
pub(super) async fn unmute(State(app): State<Shared>, who: Caller, Path(id): Path<String>) -> StatusAnswer {
    conversation_muted(&app, who, &id, false).await
}

async fn conversation_muted(app: &App, who: Caller, id: &str, is_muted: bool) -> StatusAnswer {
    let (me, id) = (who.user("write:mutes")?, post_of(id)?);
    let root = app.engine.as_reader(me).post(id).await?.conversation().ok_or_else(Refusal::not_found)?;
    app.registration.mute_conversation(me, root, is_muted).await?;
    seen_after(app, me, id).await
}

/// `GET /api/v1/statuses/:id/favourited_by`
pub(super) async fn favourited_by(
    State(app): State<Shared>,
    who: Caller,
    Path(id): Path<String>,
    uri: Uri,
    params: Params,
) -> Result<Paged<Account>, Refusal> {
    let id = post_of(&id)?;
    page::seen_accounts(&app, (&who, &uri, &params), |viewer, query| viewer.likers(id, query)).await
}

/// `GET /api/v1/statuses/:id/quotes`
pub(super) async fn quotes(
    State(app): State<Shared>,
    who: Caller,
    Path(id): Path<String>,
    uri: Uri,
    params: Params,
) -> Result<PagedText, Refusal> {
    let (me, id) = (who.user("read:statuses")?, post_of(&id)?);
    let Some(query) = page::list_query(&params, page::STATUSES) else {
        return Ok(page::no_statuses(&app, &uri));
    };
    let reader = app.engine.as_reader(me);
    let list = page::read_on(query, |query| Box::pin(async move { reader.quotes(id, &query).await })).await?;
    page::posts(&app, (&uri, me), list).await
}

/// `GET /api/v1/statuses/:id/reblogged_by`
pub(super) async fn reblogged_by(
    State(app): State<Shared>,
    who: Caller,
    Path(id): Path<String>,
    uri: Uri,
    params: Params,
) -> Result<Paged<Account>, Refusal> {
    let id = post_of(&id)?;
    page::seen_accounts(&app, (&who, &uri, &params), |viewer, query| viewer.reposters(id, query)).await
}
