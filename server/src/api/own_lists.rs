//! Lists that are somebody's own affair.

use std::collections::HashMap;

use axum::extract::State;
use axum::http::Uri;
use tideline::{AccountId, AccountList, CallFuture, ListQuery, PostList, Reader};

use super::page;
use crate::app::Shared;
use crate::auth::caller::Caller;
use crate::entity::{Account, MutedAccount};
use crate::http::{Paged, PagedText, Params, Refusal, Timestamp};

type Accounts = Result<Paged<Account>, Refusal>;
type Statuses = Result<PagedText, Refusal>;

/// A request for a list of whom or what somebody has.
type ListRequest = (Shared, Caller, Uri, Params);

async fn people(
    (app, who, uri, params): ListRequest,
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
    (app, who, uri, params): ListRequest,
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
pub(super) async fn blocks(State(app): State<Shared>, who: Caller, uri: Uri, params: Params) -> Accounts {
    people((app, who, uri, params), "read:blocks", |reader, query| reader.blocks(query)).await
}

/// `GET /api/v1/mutes`
pub(super) async fn mutes(
    State(app): State<Shared>,
    who: Caller,
    uri: Uri,
    params: Params,
) -> Result<Paged<MutedAccount>, Refusal> {
    let (needed, mutes) = ("read:mutes", Shared::clone(&app));
    let me = who.user(needed)?;
    let read = people((mutes, who, uri, params), needed, |reader, query| reader.mutes(query));
    let Paged(accounts, links) = read.await?;
    let ids: Vec<_> = accounts.iter().filter_map(|account| AccountId::new(account.id.0).ok()).collect();
    let ends = match ids.is_empty() {
        true => HashMap::new(),
        false => {
            let found = app.engine.as_reader(me).relationships(&ids).await?.into_iter().flatten();
            found.map(|of| (of.account.get(), of.muted_until_ms.map(Timestamp))).collect()
        }
    };
    let muted = accounts
        .into_iter()
        .map(|account| MutedAccount { mute_expires_at: ends.get(&account.id.0).copied().flatten(), account });
    Ok(Paged(muted.collect(), links))
}

/// `GET /api/v1/follow_requests`
pub(super) async fn follow_requests(
    State(app): State<Shared>,
    who: Caller,
    uri: Uri,
    params: Params,
) -> Accounts {
    people((app, who, uri, params), "read:follows", |reader, query| reader.follow_requests(query)).await
}

/// `GET /api/v1/bookmarks`
pub(super) async fn bookmarks(State(app): State<Shared>, who: Caller, uri: Uri, params: Params) -> Statuses {
    posts((app, who, uri, params), "read:bookmarks", |reader, query| reader.bookmarks(query)).await
}

/// `GET /api/v1/favourites`
pub(super) async fn favourites(State(app): State<Shared>, who: Caller, uri: Uri, params: Params) -> Statuses {
    posts((app, who, uri, params), "read:favourites", |reader, query| reader.likes(query)).await
}
