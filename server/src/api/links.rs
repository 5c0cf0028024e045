//! The pages that links in letters lead to, and the one on which somebody asks for such a letter.
//!
//! A link shows a form, and the form does what the link is for: programs that look at all links of a letter do nothing
//! by that. Who has the link needs no session: what it carries is the secret.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use tideline::registration::PASSWORD_CHARS_MIN;
use tideline::{ErrorCode, ErrorKind};

use super::browsing::{self, TOO_OFTEN};
use super::limited::CountedClient;
use super::{accounts, letters, sign_up};
use crate::app::{App, Shared};
use crate::auth::link::{LetterLink, LinkPurpose};
use crate::auth::newcomer::{self, AwaitedSteps};
use crate::form::{FormPage, button, field, form, hidden, problem};
use crate::http::{Params, Refusal};
use crate::show::site::login;

const FORGOTTEN: &str = "Forgotten password";
const CONFIRM: &str = "Confirm your e-mail address";
const CHOOSE: &str = "Choose another password";

/// `GET /auth/password`
pub(super) async fn forgotten(State(app): State<Shared>, headers: HeaderMap) -> Result<FormPage, Refusal> {
    if app.mailer.is_none() {
        return Ok(no_letters());
    }
    let (browser, cookie) = browsing::visitor(&app, &headers).await?;
    Ok(forgotten_page(&browser.form_sign(), None).cookie(cookie))
}

/// `POST /auth/password`: answers alike, and as fast, whether there is somebody of that address.
pub(super) async fn ask_for_password(
    State(app): State<Shared>,
    client: CountedClient,
    headers: HeaderMap,
    params: Params,
) -> Result<Response, Refusal> {
    if app.mailer.is_none() {
        return Ok(no_letters().into_response());
    }
    let browser = browsing::sender(&app, &headers, &params).await?;
    if let Err(standing) = client.ask_for_letter(&app).await {
        return Ok(browsing::too_often(forgotten_page(&browser.form_sign(), Some(TOO_OFTEN)), standing));
    }
    letters::forgotten(&app, params.text("email").unwrap_or_default());
    let text =
        "If there is an account with this address, a letter is on its way to it. It comes within minutes.";
    Ok(FormPage::notice(FORGOTTEN, text).into_response())
}

fn no_letters() -> FormPage {
    let text =
        "This site sends no letters: ask whoever runs it for another password (`tideline account password`).";
    FormPage::notice(FORGOTTEN, text)
}

fn forgotten_page(sign: &str, why: Option<&str>) -> FormPage {
    let inside = hidden("form", sign)
        + &field("E-mail address of your account", ("email", "email", "email"))
        + &button("ask", "Send me a link");
    let body = format!("<h1>{FORGOTTEN}</h1>{}{}", problem(why), form("/auth/password", &inside));
    FormPage::new(FORGOTTEN, body)
}

/// `GET /auth/reset`
pub(super) async fn reset(State(app): State<Shared>, params: Params) -> Result<FormPage, Refusal> {
    let secret = params.text("token").unwrap_or_default();
    Ok(match good(&app, LetterLink::find(&app, secret).await?, &[LinkPurpose::Password]).await? {
        Some(_) => reset_page(secret, None),
        None => too_old(CHOOSE),
    })
}

/// `POST /auth/reset`
pub(super) async fn set_password(State(app): State<Shared>, params: Params) -> Result<FormPage, Refusal> {
    let (secret, password) = (params.text("token").unwrap_or_default(), params.text("password"));
    let password = password.unwrap_or_default();
    let link = good(&app, LetterLink::find(&app, secret).await?, &[LinkPurpose::Password]).await?;
    let Some(link) = link else { return Ok(too_old(CHOOSE)) };
    if let Some(why) = sign_up::mistaken_password(password) {
        return Ok(reset_page(secret, Some(&why)));
    }
    // Of several who have the link at once one chooses.
    let Some(link) = link.bind(&app, secret, password).await? else { return Ok(too_old(CHOOSE)) };
    let unknown = match app.registration.set_password(link.account, password).await {
        Ok(_) => None,
        Err(e) if e.kind() == ErrorKind::Unknown => Some(e),
        Err(e) => return Err(e.into()),
    };
    // Whoever knew the old one is logged out, and all other links are good for nothing; this one until that is so. Also
    // where nobody knows whether it is another one by now: it may be.
    let ended = link.end_sessions(&app).await;
    if let Some(unknown) = unknown {
        return Err(unknown.into());
    }
    ended.map_err(Refusal::of_what_was_done)?;
    LetterLink::end(&app, secret).await?;
    let text = "Your password is another one now, and you are logged out everywhere. Log in again in your application.";
    Ok(FormPage::notice(CHOOSE, text))
}

fn reset_page(secret: &str, why: Option<&str>) -> FormPage {
    let inside = hidden("token", secret)
        + &field("New password", ("password", "password", "new-password"))
        + &button("set", "Set it");
    let text = format!("At least {PASSWORD_CHARS_MIN} characters. It logs you out everywhere.");
    let form = form("/auth/reset", &inside);
    FormPage::new(CHOOSE, format!("<h1>{CHOOSE}</h1><p>{text}</p>{}{form}", problem(why)))
}

/// `GET /auth/confirm`
pub(super) async fn confirm(State(app): State<Shared>, params: Params) -> Result<FormPage, Refusal> {
    let secret = params.text("token").unwrap_or_default();
    let link = good(&app, LetterLink::find(&app, secret).await?, &ADDRESSES).await?;
    Ok(match link {
        Some(_) => {
            let form = form("/auth/confirm", &(hidden("token", secret) + &button("confirm", "It is mine")));
            FormPage::new(CONFIRM, format!("<h1>{CONFIRM}</h1><p>Is this address yours?</p>{form}"))
        }
        None => too_old(CONFIRM),
    })
}

/// Links that say whose an address is.
const ADDRESSES: [LinkPurpose; 2] = [LinkPurpose::Confirmation, LinkPurpose::NewAddress];

/// `POST /auth/confirm`
pub(super) async fn confirmed(State(app): State<Shared>, params: Params) -> Result<FormPage, Refusal> {
    let secret = params.text("token").unwrap_or_default();
    let link = good(&app, LetterLink::find(&app, secret).await?, &ADDRESSES).await?;
    match link {
        Some(link) if link.purpose == LinkPurpose::Confirmation => {
            let left = confirm_sign_up(&app, &link).await?;
            // It has another address by now.
            if left.confirmation {
                return Ok(too_old(CONFIRM));
            }
            LetterLink::end(&app, secret).await?;
            Ok(FormPage::notice(
                CONFIRM,
                match left.approval {
                    true => "Thank you. Your account waits now for somebody to approve it.",
                    false => {
                        "Thank you. Your account is ready: go back to your application, or log in there."
                    }
                },
            ))
        }
        Some(link) => change_address(&app, &link, secret).await,
        None => Ok(too_old(CONFIRM)),
    }
}

/// The account's address is its own; gives what it still waits for.
async fn confirm_sign_up(app: &App, link: &LetterLink) -> Result<AwaitedSteps, Refusal> {
    let account = accounts::find(app, link.account).await?.ok_or_else(Refusal::not_found)?;
    let awaited = newcomer::awaited(&app.engine, &app.registration, &account).await?;
    if !awaited.confirmation {
        return Ok(awaited);
    }
    // Before it waits for nothing else: nobody waits unseen.
    if awaited.approval
        && let Some(login) = &account.login
    {
        newcomer::list(&app.registration, login).await.map_err(sign_up::full)?;
    }
    let confirmed =
        app.settled(newcomer::confirm(&app.engine, &app.registration, link.account, &link.email)).await;
    confirmed.map_err(|e| Refusal::from(e).of_what_was_done())
}

/// Gives an account the address that its owner wants, and tells the one before.
async fn change_address(app: &App, link: &LetterLink, secret: &str) -> Result<FormPage, Refusal> {
    let account = accounts::known(app, link.account).await?;
    let old = app.registration.email(link.account).await?;
    match app.registration.set_email(link.account, Some(&link.email)).await {
        Ok(_) => {}
        Err(e) if e.code() == ErrorCode::EmailTaken => {
            return Ok(FormPage::notice(CONFIRM, "This address is another account's."));
        }
        Err(e) if e.kind() == ErrorKind::Conflict => {
            return Ok(FormPage::notice(
                CONFIRM,
                "Your account is being changed; follow the link again in a moment.",
            ));
        }
        Err(e) => return Err(e.into()),
    }
    if let Some(old) = old.filter(|old| *old != link.email) {
        letters::tell_old(app, &account, &old);
    }
    // Before the answer: the account may have yet another address soon, and this link would take it back.
    LetterLink::end(app, secret).await?;
    Ok(FormPage::notice(CONFIRM, &format!("This is the address of @{} now.", login(&account))))
}

/// A link, if it is good for one of these.
async fn good(
    app: &App,
    link: Option<LetterLink>,
    purposes: &[LinkPurpose],
) -> Result<Option<LetterLink>, Refusal> {
    let Some(link) = link.filter(|link| purposes.contains(&link.purpose)) else { return Ok(None) };
    if link.purpose == LinkPurpose::NewAddress {
        return Ok(Some(link));
    }
    // It went to an address that must still be the account's.
    let email = match app.registration.email(link.account).await {
        Err(e) if e.kind() == ErrorKind::NotFound => None,
        email => email?,
    };
    Ok(Some(link).filter(|link| email.as_deref() == Some(&link.email)))
}

fn too_old(title: &'static str) -> FormPage {
    let text = "This link is too old, or was used already. Ask for another one.";
    FormPage::notice(title, text).status(StatusCode::NOT_FOUND)
}
