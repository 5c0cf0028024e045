//! Parts that all pages with forms have in common: which browser asks, whether a form is its own, logging in.

use axum::http::header::ORIGIN;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use tideline::Account;

use super::letters;
use super::limited::CountedClient;
use crate::app::App;
use crate::auth::browser::Browser;
use crate::auth::link::LinkPurpose;
use crate::auth::log_in::{LogIn, is_in};
use crate::auth::newcomer;
use crate::config::Registrations;
use crate::form::FormPage;
use crate::http::{Params, RateStanding, Refusal};

/// The browser that asks for a page; a new session has a cookie to be set.
pub(super) async fn visitor(app: &App, headers: &HeaderMap) -> Result<(Browser, Option<String>), Refusal> {
    match Browser::of(app, headers).await? {
        Some(browser) => Ok((browser, None)),
        None => {
            let browser = Browser::begin(app, None).await?;
            let cookie = browser.set_cookie(app);
            Ok((browser, Some(cookie)))
        }
    }
}

/// The browser that sends a form, which was made for its session, by a page of this site.
pub(super) async fn sender(app: &App, headers: &HeaderMap, params: &Params) -> Result<Browser, Refusal> {
    let is_own = headers.get(ORIGIN).is_none_or(|from| from.as_bytes() == app.settings.public_url.as_bytes());
    let browser = Browser::of(app, headers).await?;
    browser.filter(|browser| is_own && browser.has_signed(params.text("form"))).ok_or_else(|| {
        Refusal::new(
            StatusCode::FORBIDDEN,
            "This form is too old, or from another address than the site's (public_url): open the page again, there",
        )
    })
}

/// The account that is logged in in a browser.
pub(super) async fn logged_in(app: &App, browser: &Browser) -> Result<Option<Account>, Refusal> {
    let Some(account) = browser.session.account else { return Ok(None) };
    Ok(super::accounts::find(app, account).await?.filter(is_in))
}

/// The outcome of a form with a name and a password.
pub(super) enum LogInOutcome {
    /// Somebody is logged in, in a new session: nobody can be made to go on in somebody else's.
    In(Browser, Box<Account>),
    /// It isn't, and is told why.
    Not(&'static str),
    /// Too often.
    TooOften(RateStanding),
}

/// Logs somebody in whose form it is.
pub(super) async fn log_in(
    app: &App,
    client: &CountedClient,
    browser: &Browser,
    params: &Params,
) -> Result<LogInOutcome, Refusal> {
    let name = params.text("username").unwrap_or_default();
    if let Err(standing) = client.try_log_in(app, name).await {
        return Ok(LogInOutcome::TooOften(standing));
    }
    let password = params.text("password").unwrap_or_default();
    let Some(log_in) = LogIn::with_password(app, name, password, client.address()).await? else {
        return Ok(LogInOutcome::Not("Wrong name or password."));
    };
    let awaited = newcomer::awaited(&app.engine, &app.registration, &log_in.account).await?;
    if awaited.confirmation {
        return Ok(LogInOutcome::Not(confirmation_asked_again(app, &log_in.account).await));
    }
    if awaited.approval {
        return Ok(LogInOutcome::Not("Your account has not been approved yet."));
    }
    browser.end(app).await?;
    Ok(LogInOutcome::In(Browser::begin(app, Some(&log_in)).await?, Box::new(log_in.account)))
}

/// Sends the letter again to whoever knows the password: in a browser there is no other way to one that was lost. Gives
/// what to say of it.
async fn confirmation_asked_again(app: &App, account: &Account) -> &'static str {
    let sent = letters::confirm(app, account.id, LinkPurpose::Confirmation, None).await;
    match app.mailer.is_some() && sent.is_ok() {
        true => {
            "Your e-mail address is not confirmed yet: a letter is on its way to it, follow the link in that."
        }
        false => {
            "Your e-mail address is not confirmed yet, and no letter can be sent right now: try again later."
        }
    }
}

/// The links below a form to log in, for whoever can't.
pub(super) fn below_log_in(app: &App) -> String {
    let signs_up = match app.settings.registrations {
        Registrations::Closed => "",
        _ => "<p>New here? <a href=\"/auth/sign_up\">Sign up</a></p>",
    };
    format!("<p><a href=\"/auth/password\">Forgotten your password?</a></p>{signs_up}")
}

/// Ends the session, and begins another one with nobody.
pub(super) async fn log_out(app: &App, browser: &Browser) -> Result<Browser, Refusal> {
    browser.end(app).await?;
    Browser::begin(app, None).await
}

/// A page for whoever has done something too often: people see it, so it is no JSON.
pub(super) fn too_often(page: FormPage, standing: RateStanding) -> Response {
    let mut response = page.status(StatusCode::TOO_MANY_REQUESTS).into_response();
    standing.tell_refused(response.headers_mut());
    response
}

/// The text of such a page.
pub(super) const TOO_OFTEN: &str = "Too many tries. Wait a few minutes, then try again.";
