//! Lists of accounts, and who is on them.

use std::cmp::Reverse;
use std::collections::HashSet;

use axum::extract::{Path, State};
use axum::http::Uri;
use tideline::AccountId;

use super::accounts::{self, id_of as account_of};
use super::{page, ranked};
use crate::app::{App, Shared};
use crate::auth::caller::Caller;
use crate::entity::{Account, Empty, Id, List};
use crate::http::path::path_id;
use crate::http::{Json, PageLinks, Paged, Params, Refusal};
use crate::keep::lists::{self, ChosenList, RepliesPolicy};

/// The list that a path names.
pub(super) fn id_of(text: &str) -> Result<u64, Refusal> {
    path_id(text).ok_or_else(Refusal::not_found)
}

fn shown(id: u64, list: &ChosenList) -> List {
    let replies_policy = match list.replies {
        RepliesPolicy::Followed => "followed",
        RepliesPolicy::List => "list",
        RepliesPolicy::None => "none",
    };
    List {
        id: Id(id),
        title: list.title.clone(),
        replies_policy: replies_policy.into(),
        exclusive: list.exclusive,
    }
}

/// A list, changed as parameters say.
fn changed(mut list: ChosenList, params: &Params) -> Result<ChosenList, Refusal> {
    if let Some(title) = params.text("title") {
        title.trim().clone_into(&mut list.title);
    }
    if let Some(policy) = params.filled("replies_policy") {
        list.replies = match policy {
            "followed" => RepliesPolicy::Followed,
            "list" => RepliesPolicy::List,
            "none" => RepliesPolicy::None,
            _ => return Err(Refusal::validation("Replies policy is not included in the list")),
        };
    }
    list.exclusive = params.flag("exclusive").unwrap_or(list.exclusive);
    Ok(list)
}

/// `GET /api/v1/lists`
pub(super) async fn all(State(app): State<Shared>, who: Caller) -> Result<Json<Vec<List>>, Refusal> {
    let lists = lists::all(&app, who.user("read:lists")?).await?;
    let own = lists.iter().map(|(id, list)| shown(*id, list));
    Ok(Json(ranked::top_list(&app).into_iter().chain(own).collect()))
}

/// `POST /api/v1/lists`
pub(super) async fn create(
    State(app): State<Shared>,
    who: Caller,
    params: Params,
) -> Result<Json<List>, Refusal> {
    let me = who.user("write:lists")?;
    let none = ChosenList {
        title: String::new(),
        replies: RepliesPolicy::List,
        exclusive: false,
        members: Vec::new(),
    };
    let list = changed(none, &params)?;
    let id = lists::create(&app, me, &list).await?;
    Ok(Json(shown(id, &list)))
}

/// `GET /api/v1/lists/:id`
pub(super) async fn one(
    State(app): State<Shared>,
    who: Caller,
    Path(id): Path<String>,
) -> Result<Json<List>, Refusal> {
    let (me, id) = (who.user("read:lists")?, id_of(&id)?);
    if let Some(list) = ranked::top_list(&app).filter(|list| list.id == Id(id)) {
        return Ok(Json(list));
    }
    Ok(Json(shown(id, &lists::get(&app, me, id).await?)))
}

/// `PUT /api/v1/lists/:id`
pub(super) async fn change(
    State(app): State<Shared>,
    who: Caller,
    Path(id): Path<String>,
    params: Params,
) -> Result<Json<List>, Refusal> {
    let (me, id) = (who.user("write:lists")?, id_of(&id)?);
    ranked::check_own(&app, id)?;
    let list = lists::change(&app, me, id, |list| changed(list, &params)).await?;
    Ok(Json(shown(id, &list)))
}

/// `DELETE /api/v1/lists/:id`
pub(super) async fn remove(
    State(app): State<Shared>,
    who: Caller,
    Path(id): Path<String>,
) -> Result<Json<Empty>, Refusal> {
    let (me, id) = (who.user("write:lists")?, id_of(&id)?);
    ranked::check_own(&app, id)?;
    lists::remove(&app, me, id).await?;
    Ok(Json(Empty {}))
}

/// Members of a list who are still followed, or whose list it is: the others show nowhere.
async fn followed(app: &App, me: AccountId, members: &[AccountId]) -> Result<Vec<AccountId>, Refusal> {
    let mut followed = HashSet::new();
    for some in members.chunks(tideline::ASKED_MAX) {
        let found = app.engine.as_reader(me).relationships(some).await?;
        followed.extend(found.into_iter().flatten().filter(|of| of.is_following).map(|of| of.account));
    }
    Ok(members.iter().copied().filter(|member| *member == me || followed.contains(member)).collect())
}

/// `GET /api/v1/lists/:id/accounts`: all of them, or by pages; by their ids, the highest first, so that a page goes on
/// behind an account whether that is still on the list or not.
pub(super) async fn members(
    State(app): State<Shared>,
    who: Caller,
    Path(id): Path<String>,
    uri: Uri,
    params: Params,
) -> Result<Paged<Account>, Refusal> {
    let me = who.user("read:lists")?;
    let id = id_of(&id)?;
    if ranked::is_top_list(&app, id) {
        return Ok(page::nothing(&app, &uri));
    }
    let list = lists::get(&app, me, id).await?;
    let mut members = followed(&app, me, &list.members).await?;
    members.sort_unstable_by_key(|member| Reverse(member.get()));
    let links = PageLinks::new(&app.settings.public_url, &uri);
    if params.text("limit") == Some("0") {
        return Ok(Paged(accounts::all(&app, &members).await?, links));
    }
    let request = params.page(page::ACCOUNTS);
    let shown = request.of_ids(&members, |member| member.get());
    let is_last = |last: &AccountId| members.last() == Some(last);
    let older = shown.last().filter(|last| !is_last(last)).map(|last| last.get());
    let newer = shown.first().map(|first| first.get());
    Ok(Paged(accounts::all(&app, shown).await?, page::with_places(links, older, newer)))
}

fn named(params: &Params) -> Result<Vec<AccountId>, Refusal> {
    params.texts("account_ids").iter().map(|id| account_of(id)).collect()
}

/// `POST /api/v1/lists/:id/accounts`
pub(super) async fn add(
    State(app): State<Shared>,
    who: Caller,
    Path(id): Path<String>,
    params: Params,
) -> Result<Json<Empty>, Refusal> {
    let (me, id, new) = (who.user("write:lists")?, id_of(&id)?, named(&params)?);
    ranked::check_own(&app, id)?;
    lists::get(&app, me, id).await?;
    if followed(&app, me, &new).await?.len() < new.len() {
        return Err(Refusal::not_found());
    }
    lists::add(&app, me, id, &new).await?;
    Ok(Json(Empty {}))
}

/// `DELETE /api/v1/lists/:id/accounts`
pub(super) async fn take_off(
    State(app): State<Shared>,
    who: Caller,
    Path(id): Path<String>,
    params: Params,
) -> Result<Json<Empty>, Refusal> {
    let (me, id) = (who.user("write:lists")?, id_of(&id)?);
    ranked::check_own(&app, id)?;
    lists::take_off(&app, me, id, &named(&params)?).await?;
    Ok(Json(Empty {}))
}

/// `GET /api/v1/accounts/:id/lists`
pub(super) async fn with_account(
    State(app): State<Shared>,
    who: Caller,
    Path(id): Path<String>,
) -> Result<Json<Vec<List>>, Refusal> {
    let (me, account) = (who.user("read:lists")?, account_of(&id)?);
    let lists = lists::all(&app, me).await?;
    let with = lists.iter().filter(|(_, list)| list.members.contains(&account));
    Ok(Json(with.map(|(id, list)| shown(*id, list)).collect()))
}
