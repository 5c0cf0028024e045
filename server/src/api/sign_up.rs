//! Signing up.

use axum::extract::State;
use tideline::ErrorCode;
use tideline::registration::{Name, PASSWORD_CHARS_MIN, SignUp};

use super::oauth;
use crate::app::{App, Shared};
use crate::auth::application::Registered;
use crate::auth::who::Who;
use crate::config::Registrations;
use crate::entity;
use crate::entity::{FieldMistake, FieldMistakes};
use crate::grants::StoredToken;
use crate::http::{Json, Params, Refusal};

/// What clients get of each mistake: the field as people call it, the code, the words.
type SignUpMistake = (&'static str, &'static str, String);

/// `POST /api/v1/accounts`
pub(super) async fn sign_up(
    State(app): State<Shared>,
    who: Who,
    params: Params,
) -> Result<Json<entity::Token>, Refusal> {
    let token = who.allowed("write:accounts")?;
    if app.settings.registrations != Registrations::Open {
        return Err(Refusal::not_allowed());
    }
    let [login, email, password] =
        ["username", "email", "password"].map(|name| params.text(name).unwrap_or_default());
    let mut mistakes = mistakes(&app, (login, email, password)).await?;
    if params.flag("agreement") != Some(true) {
        mistakes.push(("agreement", "ERR_ACCEPTED", "must be accepted".into()));
    }
    if !mistakes.is_empty() {
        return Err(refused(mistakes));
    }
    let client = Registered::find(&app, &token.client_id).await?.ok_or_else(Refusal::no_valid_token)?;
    let wanted = SignUp::new(login, password).email(email);
    let account = match app.registration.sign_up(&wanted).await {
        Ok(registered) => registered.id,
        // Somebody else was faster.
        Err(e) if e.code() == ErrorCode::LoginTaken => return Err(taken_login()),
        Err(e) if e.code() == ErrorCode::EmailTaken => return Err(refused(vec![taken("email")])),
        Err(e) => return Err(e.into()),
    };
    let (token, secret) = StoredToken::issue(&app, &client, Some(account), token.scopes).await?;
    Ok(Json(oauth::shown(&token, &secret)))
}

fn taken(field: &'static str) -> SignUpMistake {
    (field, "ERR_TAKEN", "has already been taken".into())
}

/// What is told to whoever wants a name that somebody has.
pub(super) fn taken_login() -> Refusal {
    refused(vec![taken("username")])
}

/// All that is wrong with what somebody wants to be called.
async fn mistakes(
    app: &App,
    (login, email, password): (&str, &str, &str),
) -> Result<Vec<SignUpMistake>, Refusal> {
    let mut mistakes = Vec::new();
    let names = [Name::Login(login.into()), Name::Email(email.into())];
    let found = app.registration.find(&names).await?;
    let [has_login, has_email] = [0, 1].map(|n| found.get(n).is_some_and(Option::is_some));
    match SignUp::new(login, "a password that is long enough").check() {
        _ if login.is_empty() => mistakes.push(("username", "ERR_BLANK", "can't be blank".into())),
        Err(e) => mistakes.push(("username", "ERR_INVALID", e.to_string())),
        // A name that accounts are shown under that have none.
        Ok(()) if is_reserved(login) => mistakes.push(("username", "ERR_RESERVED", "is reserved".into())),
        Ok(()) if has_login => mistakes.push(taken("username")),
        Ok(()) => {}
    }
    match SignUp::new("a", "a password that is long enough").email(email).check() {
        _ if email.is_empty() => mistakes.push(("email", "ERR_BLANK", "can't be blank".into())),
        Err(e) => mistakes.push(("email", "ERR_INVALID", e.to_string())),
        Ok(()) if has_email => mistakes.push(taken("email")),
        Ok(()) => {}
    }
    let letters = password.chars().count();
    if password.is_empty() {
        mistakes.push(("password", "ERR_BLANK", "can't be blank".into()));
    } else if letters < PASSWORD_CHARS_MIN {
        let words = format!("is too short (minimum is {PASSWORD_CHARS_MIN} characters)");
        mistakes.push(("password", "ERR_TOO_SHORT", words));
    } else if let Err(e) = SignUp::new("a", password).check() {
        mistakes.push(("password", "ERR_TOO_LONG", e.to_string()));
    }
    Ok(mistakes)
}

pub(super) fn is_reserved(login: &str) -> bool {
    login.get(..2).is_some_and(|head| head.eq_ignore_ascii_case("id"))
        && login.len() > 2
        && login[2..].bytes().all(|b| b.is_ascii_digit())
}

fn refused(mistakes: Vec<SignUpMistake>) -> Refusal {
    let words: Vec<String> = mistakes.iter().map(|(field, _, words)| format!("{field} {words}")).collect();
    let mut details = FieldMistakes::new();
    for (field, error, description) in mistakes {
        let mistake = FieldMistake { error: error.into(), description };
        details.entry(field.to_owned()).or_default().push(mistake);
    }
    Refusal::validation(words.join(", ")).detailed(details)
}
