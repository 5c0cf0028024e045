//! Accounts, and who follows whom.

use axum::extract::{Path, State};
use axum::http::Uri;
use tideline::registration::Name;
use tideline::{Account, AccountId, AccountKind, AccountState, PostId};

use super::limited::CountedClient;
use super::page;
use super::sign_up::is_reserved;
use crate::app::{App, Shared};
use crate::auth::caller::Caller;
use crate::entity;
use crate::http::path::path_id;
use crate::http::{Json, Paged, Params, Refusal};
use crate::show;

/// Accounts that are asked for at once.
const ASKED_MAX: usize = 40;

/// The account that a path names; what is no id names none.
pub(super) fn id_of(text: &str) -> Result<AccountId, Refusal> {
    let id = path_id(text).and_then(|id| AccountId::new(id).ok());
    id.ok_or_else(Refusal::not_found)
}

/// The post that a path names.
pub(super) fn post_of(text: &str) -> Result<PostId, Refusal> {
    let id = path_id(text).and_then(|id| PostId::from_u64(id).ok());
    id.ok_or_else(Refusal::not_found)
}

/// An account with its profile, as it is now, whatever it is.
pub(super) async fn stored(app: &App, id: AccountId) -> Result<Option<Account>, Refusal> {
    Ok(app.registration.find(&[Name::Id(id)]).await?.pop().flatten())
}

/// Looks up an account that is somebody.
pub(super) async fn find(app: &App, id: AccountId) -> Result<Option<Account>, Refusal> {
    Ok(stored(app, id).await?.filter(is_somebody))
}

/// Whether an account is one of people, or of several: a chat is nobody.
pub(super) fn is_somebody(account: &Account) -> bool {
    account.kind != AccountKind::Chat
}

/// Looks up an account that is there.
pub(super) async fn known(app: &App, id: AccountId) -> Result<Account, Refusal> {
    find(app, id).await?.filter(is_shown).ok_or_else(Refusal::not_found)
}

pub(super) fn is_shown(account: &Account) -> bool {
    // Who isn't let in yet is there for itself and for whoever lets it in, and both ask elsewhere.
    let is_there =
        !matches!(account.state, AccountState::Deleted | AccountState::Unconfirmed | AccountState::Waiting);
    is_there && is_somebody(account)
}

/// Accounts as they are asked for; who is not there is left out.
pub(super) async fn all(app: &App, ids: &[AccountId]) -> Result<Vec<entity::Account>, Refusal> {
    let names: Vec<Name> = ids.iter().copied().map(Name::Id).collect();
    let found = app.registration.find(&names).await?;
    let shown = found.iter().flatten().filter(|account| is_shown(account));
    Ok(shown.map(|account| show::account::account(app.site(), account)).collect())
}

/// The name in the address of an account's page here; what is no such address is what it is.
pub(super) fn name_in<'t>(app: &App, typed: &'t str) -> &'t str {
    let path = typed.trim().strip_prefix(app.site().url);
    let name = path.and_then(|path| path.strip_prefix("/@").or_else(|| path.strip_prefix("/users/")));
    name.filter(|name| !name.is_empty() && !name.contains(['/', '?', '#'])).unwrap_or(typed)
}

/// The account that a name means: `name`, `@name`, or either with this site behind it.
pub(super) async fn named(app: &App, name: &str) -> Result<Option<Account>, Refusal> {
    let name = name.trim().trim_start_matches('@');
    let (login, host) = name.split_once('@').map_or((name, None), |(login, host)| (login, Some(host)));
    if login.is_empty() || host.is_some_and(|host| !app.site().is_host(host)) {
        return Ok(None);
    }
    let found = app.registration.find(&[name_shown_as(login)]).await?.pop().flatten();
    Ok(found.filter(|account| is_shown_as(account, login) && is_shown(account)))
}

/// Tells whom a name may mean: an account without one shows as `id` with its id behind it.
pub(super) fn name_shown_as(login: &str) -> Name {
    let id = is_reserved(login).then(|| path_id(&login[2..])).flatten();
    let id = id.and_then(|id| AccountId::new(id).ok());
    id.map_or_else(|| Name::Login(login.into()), Name::Id)
}

/// Whether that is the name under which an account shows; one with a name of its own doesn't under its id.
pub(super) fn is_shown_as(account: &Account, login: &str) -> bool {
    !is_reserved(login) || account.login.is_none()
}

/// `GET /api/v1/accounts/:id`
pub(super) async fn one(
    State(app): State<Shared>,
    Path(id): Path<String>,
) -> Result<Json<entity::Account>, Refusal> {
    let account = known(&app, id_of(&id)?).await?;
    Ok(Json(show::account::account(app.site(), &account)))
}

/// `GET /api/v1/accounts?id[]=`
pub(super) async fn several(
    State(app): State<Shared>,
    params: Params,
) -> Result<Json<Vec<entity::Account>>, Refusal> {
    let ids: Vec<AccountId> = params.ids("id").into_iter().filter_map(|id| AccountId::new(id).ok()).collect();
    if ids.len() > ASKED_MAX {
        return Err(Refusal::invalid(format!("too many accounts: {}; at most {ASKED_MAX}", ids.len())));
    }
    Ok(Json(all(&app, &ids).await?))
}

/// `GET /api/v1/accounts/lookup`
pub(super) async fn lookup(
    State(app): State<Shared>,
    params: Params,
) -> Result<Json<entity::Account>, Refusal> {
    let account = named(&app, params.text("acct").unwrap_or_default()).await?;
    let account = account.ok_or_else(Refusal::not_found)?;
    Ok(Json(show::account::account(app.site(), &account)))
}

/// Whether an account shows to nobody else whom it follows, and who follows it. A group is looked after by its staff.
async fn is_hidden(app: &App, who: &Caller, account: &Account) -> Result<bool, Refusal> {
    let reader = who.viewing("read:accounts");
    if !show::account::hides_collections(account) || reader == Some(account.id) {
        return Ok(false);
    }
    match reader.filter(|_| account.kind.is_group()) {
        Some(reader) => Ok(!app.engine.stored().is_on_staff(account.id, reader).await?),
        None => Ok(true),
    }
}

/// Whether so many follow an account that a page of them asks all servers for thousands of pieces. From half of what a
/// set is spread at: one that has shrunk stays spread, and one that is about to be has as many pieces.
fn is_large(app: &App, account: &Account) -> bool {
    account.followers >= app.engine.store().sets().spread_at() / 2
}

/// `GET /api/v1/accounts/:id/followers`
pub(super) async fn followers(
    State(app): State<Shared>,
    who: Caller,
    client: CountedClient,
    Path(id): Path<String>,
    uri: Uri,
    params: Params,
) -> Result<Paged<entity::Account>, Refusal> {
    let account = known(&app, id_of(&id)?).await?;
    if is_hidden(&app, &who, &account).await? {
        return Ok(page::nothing(&app, &uri));
    }
    let _turn = match is_large(&app, &account) {
        true => {
            client.ask_for_large_list(&app, &who).await.map_err(Refusal::limited)?;
            Some(app.large_lists.take().await?)
        }
        false => None,
    };
    let id = account.id;
    page::seen_accounts(&app, (&who, &uri, &params), |viewer, query| viewer.followers(id, query)).await
}

/// `GET /api/v1/accounts/:id/following`: at most [`following_max`](tideline::EngineSettings::following_max), and all of
/// them in one slot.
pub(super) async fn following(
    State(app): State<Shared>,
    who: Caller,
    Path(id): Path<String>,
    uri: Uri,
    params: Params,
) -> Result<Paged<entity::Account>, Refusal> {
    let account = known(&app, id_of(&id)?).await?;
    if is_hidden(&app, &who, &account).await? {
        return Ok(page::nothing(&app, &uri));
    }
    let id = account.id;
    page::seen_accounts(&app, (&who, &uri, &params), |viewer, query| viewer.following(id, query)).await
}
