//! The page on which somebody looks after its own account: where it is logged in, which address letters go to.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use tideline::Account;

use super::browsing::{self, LogInOutcome, TOO_OFTEN, logged_in};
use super::limited::CountedClient;
use super::{emails, letters};
use crate::app::{App, Shared};
use crate::auth::browser::Browser;
use crate::auth::link::LinkPurpose;
use crate::auth::token;
use crate::form::{FormPage, button, field, form, hidden, log_in_fields, problem, quiet_button};
use crate::http::escape::escaped;
use crate::http::{Day, Params, Refusal, Timestamp};

const PATH: &str = "/auth/account";
const TITLE: &str = "Your account";

/// `GET /auth/account`
pub(super) async fn page(State(app): State<Shared>, headers: HeaderMap) -> Result<FormPage, Refusal> {
    let (browser, cookie) = browsing::visitor(&app, &headers).await?;
    Ok(own_or_log_in(&app, &browser, None).await?.cookie(cookie))
}

/// `POST /auth/account`: one of the page's own forms.
pub(super) async fn act(
    State(app): State<Shared>,
    client: CountedClient,
    headers: HeaderMap,
    params: Params,
) -> Result<Response, Refusal> {
    let browser = browsing::sender(&app, &headers, &params).await?;
    match params.text("act").unwrap_or_default() {
        "log_in" => {
            return Ok(match browsing::log_in(&app, &client, &browser, &params).await? {
                LogInOutcome::In(browser, account) => {
                    let page = own(&app, &browser, &account, None).await?;
                    page.cookie(Some(browser.set_cookie(&app))).into_response()
                }
                LogInOutcome::Not(why) => log_in(&app, &browser, Some(why)).into_response(),
                LogInOutcome::TooOften(standing) => {
                    browsing::too_often(log_in(&app, &browser, Some(TOO_OFTEN)), standing)
                }
            });
        }
        "log_out" => return logged_out(&app, &browser).await,
        _ => {}
    }
    let Some(account) = logged_in(&app, &browser).await? else {
        return Ok(log_in(&app, &browser, None).into_response());
    };
    match params.text("act").unwrap_or_default() {
        "end" => {
            let ended = token::end_session(&app, account.id, params.text("session").unwrap_or_default());
            let why = (!ended.await?).then_some("This session has ended already.");
            Ok(own(&app, &browser, &account, why).await?.into_response())
        }
        "end_all" => {
            token::end_all(&app, account.id).await?;
            logged_out(&app, &browser).await
        }
        "address" if app.mailer.is_some() => change_address(&app, &client, &browser, &account, &params).await,
        _ => {
            Err(Refusal::bad_request("act: the page's forms know log_in, log_out, end, end_all and address"))
        }
    }
}

async fn logged_out(app: &App, browser: &Browser) -> Result<Response, Refusal> {
    let browser = browsing::log_out(app, browser).await?;
    Ok(log_in(app, &browser, None).cookie(Some(browser.set_cookie(app))).into_response())
}

/// Sends a link to the address that somebody wants to have, who has to know the password: a browser that was left open
/// is not enough.
async fn change_address(
    app: &App,
    client: &CountedClient,
    browser: &Browser,
    account: &Account,
    params: &Params,
) -> Result<Response, Refusal> {
    let again = async |why: &str| own(app, browser, account, Some(why)).await;
    let (email, password) = (params.text("email").unwrap_or_default(), params.text("password"));
    let name = account.login.as_deref().unwrap_or_default();
    if let Err(standing) = client.try_log_in(app, name).await {
        return Ok(browsing::too_often(again(TOO_OFTEN).await?, standing));
    }
    if app.registration.check(name, password.unwrap_or_default()).await?.is_none() {
        return Ok(again("Wrong password.").await?.into_response());
    }
    if emails::check_address(email).is_err() {
        return Ok(again("This is no e-mail address.").await?.into_response());
    }
    if let Err(standing) = client.ask_for_letter(app).await {
        return Ok(browsing::too_often(again(TOO_OFTEN).await?, standing));
    }
    match letters::confirm(app, account.id, LinkPurpose::NewAddress, Some(email)).await {
        // Whether somebody else has it is told only to whoever reads the letters there.
        Ok(()) => {
            let text =
                "A letter is on its way to the new address. Yours stays until you follow the link in it.";
            Ok(FormPage::notice(TITLE, text).into_response())
        }
        Err(refusal) => match refusal.standing() {
            Some(standing) => {
                let page = again("So many letters went to this address that no more do for a while.").await?;
                Ok(browsing::too_often(page, standing))
            }
            None => Err(refusal),
        },
    }
}

async fn own_or_log_in(app: &App, browser: &Browser, why: Option<&str>) -> Result<FormPage, Refusal> {
    match logged_in(app, browser).await? {
        Some(account) => own(app, browser, &account, why).await,
        None => Ok(log_in(app, browser, why)),
    }
}

fn log_in(app: &App, browser: &Browser, why: Option<&str>) -> FormPage {
    let inside = hidden("form", &browser.form_sign()) + &log_in_fields();
    let body = format!(
        "<h1>Log in to {title}</h1>{problem}{form}{below}",
        title = escaped(&app.settings.title),
        problem = problem(why),
        form = form(PATH, &inside),
        below = browsing::below_log_in(app),
    );
    FormPage::new("Log in", body)
}

async fn own(
    app: &App,
    browser: &Browser,
    account: &Account,
    why: Option<&str>,
) -> Result<FormPage, Refusal> {
    let sign = hidden("form", &browser.form_sign());
    let mut sessions = String::new();
    for (place, session) in token::sessions(app, account.id).await? {
        let day = |ms| Day(Timestamp(ms));
        let end = form(PATH, &(sign.clone() + &hidden("session", &place) + &quiet_button("end", "End")));
        sessions.push_str(&format!(
            "<li><strong>{application}</strong>, since {since}, used last on {used}{end}</li>",
            application = escaped(&session.application),
            since = day(session.created_ms),
            used = day(session.used_ms),
        ));
    }
    if sessions.is_empty() {
        sessions.push_str("<li>Nowhere.</li>");
    }
    let body = format!(
        "<h1>@{login} on {title}</h1>{problem}<h2>Where you are logged in</h2><ul class=\"sessions\">{sessions}</ul>\
         {ends}{address}",
        login = escaped(account.login.as_deref().unwrap_or_default()),
        title = escaped(&app.settings.title),
        problem = problem(why),
        ends = form(
            PATH,
            &(sign.clone()
                + &button("log_out", "Log out here")
                + &quiet_button("end_all", "Log out everywhere"))
        ),
        address = address(app, &sign, account).await?,
    );
    Ok(FormPage::new(TITLE, body))
}

async fn address(app: &App, sign: &str, account: &Account) -> Result<String, Refusal> {
    let email = app.registration.email(account.id).await?;
    let email = email.map_or_else(|| "none".to_owned(), |email| escaped(&email));
    let change = match app.mailer {
        Some(_) => {
            let inside = sign.to_owned()
                + &field("New address", ("email", "email", "email"))
                + &field("Password", ("password", "password", "current-password"))
                + &button("address", "Change it");
            form(PATH, &inside)
        }
        None => {
            let by = "<code>tideline account email</code>";
            format!("<p>This site sends no letters: whoever runs it can change your address, by {by}.</p>")
        }
    };
    Ok(format!("<h2>E-mail address</h2><p>{email}</p>{change}"))
}
