//! Signing up: who may, and what a new account waits for.

use axum::extract::State;
use axum::http::StatusCode;
use tideline::registration::{Name, PASSWORD_CHARS_MIN, SignUp};
use tideline::{AccountId, AccountState, ErrorCode, ErrorKind};

use super::{letters, oauth};
use crate::app::{App, Shared};
use crate::auth::application::RegisteredApplication;
use crate::auth::caller::Caller;
use crate::auth::era::Era;
use crate::auth::invitation;
use crate::auth::link::LinkPurpose;
use crate::auth::newcomer::{self, AwaitedSteps, REASON_CHARS_MAX};
use crate::auth::token::TokenHolder;
use crate::config::Registrations;
use crate::entity;
use crate::entity::{FieldMistake, FieldMistakes};
use crate::grants::StoredToken;
use crate::http::{Json, Params, Refusal};
use crate::mail::Letter;

/// A mistake as clients get it: the field as people call it, the code, the words.
type SignUpMistake = (&'static str, &'static str, String);

/// `POST /api/v1/accounts`
pub(super) async fn sign_up(
    State(app): State<Shared>,
    who: Caller,
    params: Params,
) -> Result<Json<entity::Token>, Refusal> {
    let token = who.allowed("write:accounts")?;
    let client =
        RegisteredApplication::find(&app, &token.client_id).await?.ok_or_else(Refusal::no_valid_token)?;
    let newcomer = come_in(&app, &params).await?;
    let holder = TokenHolder::Account {
        account: newcomer.account,
        waits: !newcomer.awaited.is_nothing(),
        era: Era::default(),
    };
    let issued = StoredToken::issue(&app, &client, holder, token.scopes).await;
    let (token, secret) = issued.map_err(Refusal::of_what_was_done)?;
    newcomer.ask_to_confirm(&app).await;
    Ok(Json(oauth::shown(&token, &secret)))
}

/// Somebody who has signed up just now.
pub(super) struct Newcomer {
    account: AccountId,
    pub(super) awaited: AwaitedSteps,
}

impl Newcomer {
    /// Sends the letter that asks whether the address is its own, if one is to be sent; false: it could not be.
    pub(super) async fn ask_to_confirm(&self, app: &App) -> bool {
        if self.awaited.confirmation
            && let Err(refusal) = letters::confirm(app, self.account, LinkPurpose::Confirmation, None).await
        {
            // The account is there: its owner asks for the letter again.
            tracing::info!(status = refusal.status().as_u16(), "a letter for a sign-up is not sent");
            return false;
        }
        true
    }
}

/// Signs somebody up who may, by what a form or a client says.
pub(super) async fn come_in(app: &App, params: &Params) -> Result<Newcomer, Refusal> {
    let invitation = invitation(app, params).await?;
    let [login, email, password] =
        ["username", "email", "password"].map(|name| params.text(name).unwrap_or_default());
    let reason = params.text("reason").unwrap_or_default();
    let mut mistakes = mistakes(app, (login, email, password)).await?;
    if params.flag("agreement") != Some(true) {
        mistakes.push(("agreement", "ERR_ACCEPTED", "must be accepted".into()));
    }
    if reason.chars().count() > REASON_CHARS_MAX {
        let words = format!("is too long (maximum is {REASON_CHARS_MAX} characters)");
        mistakes.push(("reason", "ERR_TOO_LONG", words));
    }
    if !mistakes.is_empty() {
        return Err(refused(mistakes));
    }
    let needs_approval = app.settings.registrations == Registrations::Approval && invitation.is_none();
    let awaited = AwaitedSteps { confirmation: app.mailer.is_some(), approval: needs_approval };
    let wanted = SignUp { profile: awaited.profile(reason), ..SignUp::new(login, password).email(email) };
    let account = come(app, SignUp { waits: !awaited.is_nothing(), ..wanted }, awaited, invitation).await?;
    Ok(Newcomer { account, awaited })
}

/// The code that somebody comes with, if anybody may come; where only those may who were invited, one that is good.
async fn invitation<'p>(app: &App, params: &'p Params) -> Result<Option<&'p str>, Refusal> {
    let code = params.text("invite_code").filter(|code| !code.is_empty());
    let is_open = match (app.settings.registrations, code) {
        (Registrations::Closed, _) => return Err(Refusal::not_allowed()),
        // Nobody needs one.
        (Registrations::Open, _) | (_, None) => false,
        (_, Some(code)) => invitation::is_open(&app.registration, code).await?,
    };
    match code.filter(|_| is_open) {
        None if app.settings.registrations == Registrations::Invitation => Err(not_invited()),
        code => Ok(code),
    }
}

fn not_invited() -> Refusal {
    let text = "Sign-ups are by invitation here: the invitation (invite_code) is missing, unknown or used up";
    Refusal::new(StatusCode::FORBIDDEN, text)
}

/// Makes the account, and uses up what it comes with.
async fn come(
    app: &App,
    wanted: SignUp,
    awaited: AwaitedSteps,
    invitation: Option<&str>,
) -> Result<AccountId, Refusal> {
    // First, so that no more come than were invited; given back where nobody comes.
    if let Some(code) = invitation
        && !invitation::use_up(&app.registration, code).await?
    {
        return Err(not_invited());
    }
    let mut may_be_there = false;
    let come = async {
        // Nobody waits unseen. Whoever confirms an address first is listed then.
        if awaited.approval && !awaited.confirmation {
            newcomer::list(&app.registration, &wanted.login).await.map_err(full)?;
        }
        // Whoever is in at once is found at once.
        match app.settled(app.registration.sign_up(&wanted)).await {
            Ok(registered) => Ok(registered.id),
            // Somebody else was faster.
            Err(e) if e.code() == ErrorCode::LoginTaken => Err(taken_login()),
            Err(e) if e.code() == ErrorCode::EmailTaken => Err(refused(vec![taken("email")])),
            Err(e) => {
                // What may have become an account is counted.
                may_be_there = e.kind() == ErrorKind::Unknown;
                Err(e.into())
            }
        }
    };
    let come = come.await;
    if let (Err(_), Some(code)) = (&come, invitation.filter(|_| !may_be_there)) {
        // Whoever is refused is told why, whatever becomes of the invitation.
        if let Err(error) = invitation::give_back(&app.registration, code).await {
            tracing::warn!(%error, "an invitation of a sign-up that was refused is not given back");
        }
    }
    come
}

/// Told where no more may wait.
pub(super) fn full(error: tideline::Error) -> Refusal {
    match error.code() {
        ErrorCode::LimitReached => Refusal::new(
            StatusCode::FORBIDDEN,
            "So many people wait to be let in here that no more can; try again in some days",
        ),
        _ => error.into(),
    }
}

fn taken(field: &'static str) -> SignUpMistake {
    (field, "ERR_TAKEN", "has already been taken".into())
}

/// The refusal for whoever wants a name that somebody has.
pub(super) fn taken_login() -> Refusal {
    refused(vec![taken("username")])
}

/// All that is wrong with what somebody wants to be called.
async fn mistakes(
    app: &App,
    (login, email, password): (&str, &str, &str),
) -> Result<Vec<SignUpMistake>, Refusal> {
    let mut mistakes = Vec::new();
    let [has_login, has_email] =
        [is_held(app, Name::Login(login.into())).await?, is_held(app, Name::Email(email.into())).await?];
    match SignUp::new(login, "a password that is long enough").check() {
        _ if login.is_empty() => mistakes.push(("username", "ERR_BLANK", "can't be blank".into())),
        Err(e) => mistakes.push(("username", "ERR_INVALID", e.to_string())),
        // A name that accounts are shown under that have none.
        Ok(()) if is_reserved(login) || app.settings.reserves(login) => {
            mistakes.push(("username", "ERR_RESERVED", "is reserved".into()))
        }
        Ok(()) if has_login => mistakes.push(taken("username")),
        Ok(()) => {}
    }
    match SignUp::new("a", "a password that is long enough").email(email).check() {
        _ if email.is_empty() => mistakes.push(("email", "ERR_BLANK", "can't be blank".into())),
        Err(e) => mistakes.push(("email", "ERR_INVALID", e.to_string())),
        Ok(()) if app.mailer.is_some() && !Letter::can_go_to(email) => {
            mistakes.push(("email", "ERR_INVALID", "is invalid".into()));
        }
        Ok(()) if has_email => mistakes.push(taken("email")),
        Ok(()) => {}
    }
    mistakes.extend(password_mistake(password));
    Ok(mistakes)
}

fn password_mistake(password: &str) -> Option<SignUpMistake> {
    if password.is_empty() {
        return Some(("password", "ERR_BLANK", "can't be blank".into()));
    }
    if password.chars().count() < PASSWORD_CHARS_MIN {
        let words = format!("is too short (minimum is {PASSWORD_CHARS_MIN} characters)");
        return Some(("password", "ERR_TOO_SHORT", words));
    }
    let refused = SignUp::new("a", password).check().err()?;
    Some(("password", "ERR_TOO_LONG", refused.to_string()))
}

/// The mistake in a password that somebody chooses, as a sentence.
pub(super) fn mistaken_password(password: &str) -> Option<String> {
    password_mistake(password).map(|(_, _, words)| format!("The password {words}."))
}

/// The refusal for whoever wants an address that can't be.
pub(super) fn mistaken_email(error: &'static str, words: String) -> Refusal {
    refused(vec![("email", error, words)])
}

/// Whether somebody has a name. Whoever has it, and has not confirmed its address in time, has it no more.
async fn is_held(app: &App, name: Name) -> Result<bool, Refusal> {
    let Some(holder) = app.registration.find(&[name]).await?.pop().flatten() else { return Ok(false) };
    let is_waiting = holder.state == AccountState::Waiting;
    Ok(!(is_waiting && newcomer::remove_if_overdue(&app.engine, &app.registration, &holder).await?))
}

/// Whether accounts that have no login are shown under such a name, so that nobody may have it for a login.
pub fn is_reserved(login: &str) -> bool {
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
