//! Calls for services alone: backends that keep the users of a site, and have accounts here for them.

use axum::extract::State;
use tideline::profile::ProfileUpdate;
use tideline::registration::{Name, SignUp};
use tideline::{Account, AccountId, AccountKind, AccountUpdate, Error, ErrorCode, ErrorKind, NewAccount};

use super::accounts;
use super::credentials::profile;
use super::sign_up::{is_reserved, taken_login};
use crate::app::{App, Shared};
use crate::auth::caller::Caller;
use crate::auth::log_in::is_in;
use crate::entity;
use crate::http::{Json, Params, Refusal, Timestamp};
use crate::show;

/// `POST /api/tideline/v1/accounts`: an account for one of a site's own users, by the number that the site knows it by.
///
/// Asked again, it answers alike: what is there is not made again, and its profile, and whether it is locked, becomes
/// what is said now. A person stays one, and a group, and it was made when that was said first. Nobody can log in
/// to such an account until it is given a password.
pub(super) async fn create(
    State(app): State<Shared>,
    who: Caller,
    params: Params,
) -> Result<Json<entity::Account>, Refusal> {
    who.service("write:accounts")?;
    let id = match params.text("id").filter(|id| !id.is_empty()) {
        Some(text) => Some(number(text)?),
        None => None,
    };
    let login = params.text("username").filter(|login| !login.is_empty());
    let update = profile(&params)?;
    // Before there is an account, or anything of it is another.
    update.check().map_err(as_validation)?;
    if let Some(login) = login {
        check_login(&app, login, id).await?;
    }
    let (is_group, is_locked) = (params.flag("group"), params.flag("locked"));
    let made = params.text("created_at").filter(|text| !text.is_empty()).map(moment).transpose()?;
    let new = NewAccount {
        id,
        kind: if is_group == Some(true) { AccountKind::Group } else { AccountKind::Person },
        is_locked: is_locked == Some(true),
        registered_ms: made.map(|made| made.0),
        ..NewAccount::default()
    };
    let account = app.settled(become_as_said(&app, (id, new), (is_group, is_locked), login, &update)).await?;
    Ok(Json(show::account::account(app.site(), &account)))
}

/// Makes an account, unless it is there, and makes of it what is said.
async fn become_as_said(
    app: &App,
    (id, new): (Option<AccountId>, NewAccount),
    flags: (Option<bool>, Option<bool>),
    login: Option<&str>,
    update: &ProfileUpdate,
) -> Result<Account, Refusal> {
    let id = match (app.engine.create_account(new).await, id) {
        (Ok(created), _) => created.value,
        (Err(e), Some(id)) if e.code() == ErrorCode::IdTaken => id,
        (Err(e), _) => return Err(e.into()),
    };
    as_said(app, id, flags, login, update).await.map_err(Refusal::of_what_was_done)
}

/// Makes of an account that is there what is said of it.
async fn as_said(
    app: &App,
    id: AccountId,
    (is_group, is_locked): (Option<bool>, Option<bool>),
    login: Option<&str>,
    update: &ProfileUpdate,
) -> Result<Account, Refusal> {
    let account = accounts::find(app, id).await?.filter(is_in).ok_or_else(|| {
        Refusal::validation(format!(
            "Id {id} was an account's that is gone, or is not active; it is not given again"
        ))
    })?;
    if let Some(is_group) = is_group.filter(|is_group| *is_group != (account.kind == AccountKind::Group)) {
        return Err(Refusal::validation(format!(
            "Group is {is_group}; the account of id {id} was made as something else, and stays that"
        )));
    }
    if let Some(login) = login {
        name(app, &account, login).await?;
    }
    if is_locked.is_some_and(|is_locked| is_locked != account.is_locked) {
        let update = AccountUpdate { is_locked, ..AccountUpdate::default() };
        app.engine.update_account(id, &update).await?;
    }
    if *update != ProfileUpdate::default() {
        app.registration.update_profile(id, update).await.map_err(as_validation)?;
    }
    accounts::known(app, id).await
}

fn number(text: &str) -> Result<AccountId, Refusal> {
    let id = crate::http::path::path_id(text).and_then(|id| AccountId::new(id).ok());
    id.ok_or_else(|| Refusal::validation(format!("Id is {text:?}; it takes a number from 1 to 2^63 - 1")))
}

/// Reads when something was made.
fn moment(text: &str) -> Result<Timestamp, Refusal> {
    let moment = Timestamp::parse(text).filter(|moment| *moment <= Timestamp::now());
    moment.ok_or_else(|| {
        Refusal::validation(format!(
            "Created at is {text:?}; it takes a day or a moment since 1970 that is not to come, as \
             2024-05-01T12:00:00Z"
        ))
    })
}

/// Refuses a name that can't be, or that somebody else has: before there is an account without one.
pub(super) async fn check_login(app: &App, login: &str, id: Option<AccountId>) -> Result<(), Refusal> {
    SignUp::new(login, "a password that is long enough").check().map_err(as_validation)?;
    if is_reserved(login) {
        return Err(reserved_login(login));
    }
    let holder = app.registration.find(&[Name::Login(login.into())]).await?.pop().flatten();
    match holder {
        Some(holder) if Some(holder.id) != id => Err(taken_login()),
        _ => Ok(()),
    }
}

/// The refusal for whoever wants a name that nobody may have, or nobody by itself.
pub(super) fn reserved_login(login: &str) -> Refusal {
    Refusal::validation(format!("Username {login:?} is reserved"))
}

/// Gives an account its name; one that has another one keeps it.
pub(super) async fn name(app: &App, account: &Account, login: &str) -> Result<(), Refusal> {
    match account.login.as_deref() {
        Some(own) if own.eq_ignore_ascii_case(login) => Ok(()),
        Some(own) => Err(Refusal::validation(format!("Id {} is the account of {own:?} already", account.id))),
        None => match app.registration.set_login(account.id, login).await {
            Ok(_) => Ok(()),
            // Somebody else was faster.
            Err(e) if e.code() == ErrorCode::LoginTaken => Err(taken_login()),
            Err(e) => Err(as_validation(e)),
        },
    }
}

pub(super) fn as_validation(error: Error) -> Refusal {
    match error.kind() {
        ErrorKind::Invalid => Refusal::validation(error),
        _ => error.into(),
    }
}
