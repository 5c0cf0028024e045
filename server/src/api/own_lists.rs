//! Lists that are somebody's own affair.

use axum::extract::State;
use axum::http::Uri;
use tideline::{AccountList, CallFuture, ListQuery, PostList, Reader};

use super::page;
use crate::app::Shared;
use crate::auth::who::Who;
use crate::entity::Account;
use crate::http::{Paged, PagedText, Params, Refusal};

type Accounts = Result<Paged<Account>, Refusal>;
type Statuses = Result<PagedText, Refusal>;

/// Whom or what is read, as a request names it.
type Request = (Shared, Who, Uri, Params);

async fn people(
    (app, who, uri, params): Request,
    needed: &str,
    read: impl for<'a> Fn(Reader<'a>, &'a ListQuery) -> CallFuture<'a, AccountList> + Sync,
) -> Accounts {
    let me = who.user(needed)?;
    let Some(query) = page::list_query(&params, page::ACCOUNTS) else {
        return Ok(page::nothing(&app, &uri));
    };
    let reader = app.engine.as_reader(me);
    let read = &read;
    let list = page::read_on(query, |query| Box::pin(async move { read(reader, &query).await })).await?;
    Ok(page::accounts(&app, &uri, list))
}

async fn posts(
    (app, who, uri, params): Request,
    needed: &str,
    read: impl for<'a> Fn(Reader<'a>, &'a ListQuery) -> CallFuture<'a, PostList> + Sync,
) -> Statuses {
    let me = who.user(needed)?;
    let Some(query) = page::list_query(&params, page::STATUSES) else {
        return Ok(page::no_statuses(&app, &uri));
    };
    let reader = app.engine.as_reader(me);
    let read = &read;
    let list = page::read_on(query, |query| Box::pin(async move { read(reader, &query).await })).await?;
    page::posts(&app, (&uri, me), list).await
}

/// `GET /api/v1/blocks`
pub(super) async fn blocks(State(app): State<Shared>, who: Who, uri: Uri, params: Params) -> Accounts {
    people((app, who, uri, params), "read:blocks", |reader, query| reader.blocks(query)).await
}

/// `GET /api/v1/mutes`
pub(super) async fn mutes(State(app): State<Shared>, who: Who, uri: Uri, params: Params) -> Accounts {
    people((app, who, uri, params), "read:mutes", |reader, query| reader.mutes(query)).await
}

/// `GET /api/v1/follow_requests`
pub(super) async fn follow_requests(
    State(app): State<Shared>,
    who: Who,
    uri: Uri,
    params: Params,
) -> Accounts {
    people((app, who, uri, params), "read:follows", |reader, query| reader.follow_requests(query)).await
}

/// `GET /api/v1/bookmarks`
pub(super) async fn bookmarks(State(app): State<Shared>, who: Who, uri: Uri, params: Params) -> Statuses {
    posts((app, who, uri, params), "read:bookmarks", |reader, query| reader.bookmarks(query)).await
}

/// `GET /api/v1/favourites`
pub(super) async fn favourites(State(app): State<Shared>, who: Who, uri: Uri, params: Params) -> Statuses {
    posts((app, who, uri, params), "read:favourites", |reader, query| reader.likes(query)).await
}
