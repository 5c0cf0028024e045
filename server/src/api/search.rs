//! Searching: whom a name means, which hashtag, which status an address names.

use axum::extract::State;
use tideline::post::Tag;
use tideline::{Account, PostId};

use super::accounts::named;
use super::page;
use crate::app::{App, Shared};
use crate::auth::who::Who;
use crate::entity::{self, Search};
use crate::http::escape::push_percent;
use crate::http::{Json, Params, Refusal};
use crate::show;

/// `GET /api/v1/accounts/search`: by the whole name.
pub(super) async fn accounts(
    State(app): State<Shared>,
    who: Who,
    params: Params,
) -> Result<Json<Vec<entity::Account>>, Refusal> {
    who.user("read:accounts")?;
    Ok(Json(found_accounts(&app, &params).await?))
}

/// There is one account of a name: whoever asks for more than that has it already.
async fn found_accounts(app: &App, params: &Params) -> Result<Vec<entity::Account>, Refusal> {
    if params.number("offset").unwrap_or(0) > 0 {
        return Ok(Vec::new());
    }
    let found: Option<Account> = named(app, params.text("q").unwrap_or_default()).await?;
    Ok(found.iter().map(|account| show::account::account(app.site(), account)).collect())
}

/// `GET /api/v2/search`
pub(super) async fn search(
    State(app): State<Shared>,
    who: Who,
    params: Params,
) -> Result<Json<Search>, Refusal> {
    let words = params.text("q").unwrap_or_default().trim();
    if words.is_empty() {
        return Err(Refusal::bad_request("param is missing or the value is empty: q"));
    }
    let wants = |what: &str| params.filled("type").is_none_or(|wanted| wanted == what);
    let is_first = params.number("offset").unwrap_or(0) <= 0;
    let mut found = Search::default();
    if wants("accounts") {
        found.accounts = found_accounts(&app, &params).await?;
    }
    if wants("hashtags") && is_first {
        found.hashtags = Tag::new(words).ok().map(|tag| hashtag(&app, &tag)).into_iter().collect();
    }
    if wants("statuses") && is_first {
        found.statuses = named_status(&app, &who, words).await?;
    }
    Ok(Json(found))
}

fn hashtag(app: &App, tag: &Tag) -> entity::Tag {
    let name = tag.to_string();
    let mut url = app.site().at("/tags/");
    push_percent(&mut url, &name);
    entity::Tag { id: name.clone(), name, url, history: Vec::new(), following: false, featuring: false }
}

/// The status whose page, or name for machines, is that address here.
async fn named_status(app: &App, who: &Who, address: &str) -> Result<Vec<entity::Status>, Refusal> {
    let path = address.strip_prefix(app.site().url).and_then(|path| path.strip_prefix('/'));
    let id = path.and_then(|path| path.rsplit('/').next()).and_then(|id| id.parse().ok());
    let Some(id) = id.and_then(|id| PostId::from_u64(id).ok()) else { return Ok(Vec::new()) };
    let found = who.viewer(app, "read:search").posts(&[id]).await?;
    page::statuses(app, who.viewing("read:search"), &found.posts).await
}
