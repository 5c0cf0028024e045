//! Confirming the address that somebody has signed up with: asking for another letter, to another address.

use axum::extract::State;
use axum::http::StatusCode;
use tideline::registration::{Name, SignUp};
use tideline::{AccountId, ErrorCode, ErrorKind};

use super::letters;
use super::limited::CountedClient;
use super::sign_up::mistaken_email;
use crate::app::{App, Shared};
use crate::auth::caller::{Caller, WhoeverAsks};
use crate::auth::link::LinkPurpose;
use crate::auth::newcomer;
use crate::entity::Empty;
use crate::http::{Json, Params, Refusal};
use crate::mail::Letter;

/// `POST /api/v1/emails/confirmations`
pub(super) async fn confirm(
    State(app): State<Shared>,
    WhoeverAsks(who): WhoeverAsks,
    client: CountedClient,
    params: Params,
) -> Result<Json<Empty>, Refusal> {
    let Caller::Bearer { token, awaited, .. } = &who else { return Err(Refusal::no_valid_token()) };
    let me = token.account.ok_or_else(Refusal::no_user)?;
    // Where no letters are sent nothing has to be confirmed.
    if app.mailer.is_none() && !awaited.confirmation {
        return Ok(Json(Empty {}));
    }
    if !awaited.confirmation {
        return Err(no_more());
    }
    client.ask_for_letter(&app).await.map_err(Refusal::limited)?;
    let email = params.text("email").filter(|email| !email.is_empty());
    if let Some(email) = email {
        check_address(email)?;
        // Somebody else's has no letter of its own used up.
        let holder = app.registration.find(&[Name::Email(email.to_owned())]).await?.pop().flatten();
        if holder.is_some_and(|holder| holder.id != me) {
            return Err(taken());
        }
    }
    // Whoever may get no letter keeps the address that it has.
    let ready = letters::ready(&app, me, email).await?;
    if let Some(email) = email {
        change(&app, me, email).await?;
    }
    if let Some(ready) = ready {
        let sent = ready.send(&app, LinkPurpose::Confirmation).await;
        sent.map_err(|refusal| if email.is_some() { refusal.of_what_was_done() } else { refusal })?;
    }
    Ok(Json(Empty {}))
}

fn no_more() -> Refusal {
    let text = "This method is only available while the e-mail is awaiting confirmation";
    Refusal::new(StatusCode::FORBIDDEN, text)
}

fn taken() -> Refusal {
    mistaken_email("ERR_TAKEN", "has already been taken".into())
}

/// Gives an account that nobody has confirmed another address. Links that went to the one before are good for nothing
/// then.
async fn change(app: &App, me: AccountId, email: &str) -> Result<(), Refusal> {
    let before = app.registration.email(me).await?;
    let set = app.registration.set_email(me, Some(email)).await;
    // Somebody may have confirmed the one before at the same time. Also where nobody knows whether it is set.
    if set.as_ref().map_or_else(|e| e.kind() == ErrorKind::Unknown, |_| true) {
        let taken_back = newcomer::takes_back(&app.engine, &app.registration, me, before.as_deref()).await;
        if taken_back.map_err(|e| Refusal::from(e).of_what_was_done())? {
            return Err(no_more());
        }
    }
    match set {
        Ok(_) => Ok(()),
        // Somebody was faster.
        Err(e) if e.code() == ErrorCode::EmailTaken => Err(taken()),
        Err(e) if e.kind() == ErrorKind::Invalid => Err(mistaken_email("ERR_INVALID", e.to_string())),
        Err(e) => Err(e.into()),
    }
}

/// Refuses what is no address that a letter can go to.
pub(super) fn check_address(email: &str) -> Result<(), Refusal> {
    let is_name = SignUp::new("a", "a password that is long enough").email(email).check().is_ok();
    match is_name && Letter::can_go_to(email) {
        true => Ok(()),
        false => Err(mistaken_email("ERR_INVALID", "is invalid".into())),
    }
}
