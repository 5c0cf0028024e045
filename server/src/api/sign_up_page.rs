//! The page on which somebody signs up in a browser: whose client can't do that, and whoever follows a link with an
//! invitation.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use tideline::registration::PASSWORD_CHARS_MIN;

use super::browsing;
use super::sign_up::come_in;
use crate::app::{App, Shared};
use crate::auth::browser::Browser;
use crate::auth::newcomer::AwaitedSteps;
use crate::config::Registrations;
use crate::form::{FormPage, button, field, filled_field, form, hidden, problem, tick_box};
use crate::http::escape::escaped;
use crate::http::{Params, Refusal};

const PATH: &str = "/auth/sign_up";
const TITLE: &str = "Sign up";

/// `GET /auth/sign_up`
pub(super) async fn page(
    State(app): State<Shared>,
    headers: HeaderMap,
    params: Params,
) -> Result<FormPage, Refusal> {
    if app.settings.registrations == Registrations::Closed {
        return Ok(FormPage::notice(TITLE, "This site takes no new accounts."));
    }
    let (browser, cookie) = browsing::visitor(&app, &headers).await?;
    Ok(sign_up_page(&app, &browser, &params, None).cookie(cookie))
}

/// `POST /auth/sign_up`
pub(super) async fn sign_up(
    State(app): State<Shared>,
    headers: HeaderMap,
    params: Params,
) -> Result<FormPage, Refusal> {
    let browser = browsing::sender(&app, &headers, &params).await?;
    match come_in(&app, &params).await {
        Ok(newcomer) => {
            newcomer.ask_to_confirm(&app).await;
            Ok(FormPage::notice(TITLE, what_now(newcomer.awaited)))
        }
        // Whoever can mend it gets the form again, with what stands in it.
        Err(refusal) if can_be_mended(&app, &refusal) => {
            let why = words(&refusal);
            Ok(sign_up_page(&app, &browser, &params, Some(&why)).status(refusal.status()))
        }
        Err(refusal) => Err(refusal),
    }
}

fn can_be_mended(app: &App, refusal: &Refusal) -> bool {
    let is_uninvited = || app.settings.registrations == Registrations::Invitation;
    match refusal.status() {
        StatusCode::UNPROCESSABLE_ENTITY => true,
        StatusCode::FORBIDDEN => is_uninvited(),
        _ => false,
    }
}

fn what_now(awaited: AwaitedSteps) -> &'static str {
    match awaited {
        AwaitedSteps { confirmation: true, .. } => {
            "Your account is made. A letter is on its way to your address: follow the link in it, within two days."
        }
        AwaitedSteps { approval: true, .. } => "Your account is made. It waits for somebody to approve it.",
        _ => "Your account is ready: log in in any app or web client for Mastodon.",
    }
}

/// Tells all that is wrong, in sentences that name the fields as the page does.
fn words(refusal: &Refusal) -> String {
    let Some(mistakes) = &refusal.body().details else { return refusal.body().error.to_string() };
    let sentence = |field: &str, words: &str| {
        let label = match field {
            "username" => "The name",
            "email" => "The e-mail address",
            "password" => "The password",
            "agreement" => "The rules",
            _ => "What you say",
        };
        format!("{label}: {words}.")
    };
    let each =
        mistakes.iter().flat_map(|(field, all)| all.iter().map(|one| sentence(field, &one.description)));
    each.collect::<Vec<_>>().join(" ")
}

fn sign_up_page(app: &App, browser: &Browser, params: &Params, why: Option<&str>) -> FormPage {
    let text = |name: &str| params.text(name).unwrap_or_default();
    let code = text("invite_code");
    let mut inside = hidden("form", &browser.form_sign())
        + &filled_field("Name", ("username", "text", "username"), text("username"))
        + &filled_field("E-mail address", ("email", "email", "email"), text("email"))
        + &field(
            &format!("Password, of at least {PASSWORD_CHARS_MIN} characters"),
            ("password", "password", "new-password"),
        );
    match app.settings.registrations {
        Registrations::Invitation => {
            inside += &filled_field("Invitation", ("invite_code", "text", "off"), code);
        }
        // It lets somebody in at once.
        Registrations::Approval if !code.is_empty() => inside += &hidden("invite_code", code),
        Registrations::Approval => {
            inside += &filled_field("Why do you want to join?", ("reason", "text", "off"), text("reason"));
        }
        Registrations::Open | Registrations::Closed => {}
    }
    let rules = &app.settings.rules;
    let listed: String = rules.iter().map(|rule| format!("<li>{}</li>", escaped(rule))).collect();
    inside += &match rules.is_empty() {
        true => hidden("agreement", "1"),
        false => {
            format!("<p>What holds here:</p><ol>{listed}</ol>{}", tick_box("agreement", "I keep to that"))
        }
    };
    inside += &button("sign_up", "Sign up");
    let body = format!(
        "<h1>Sign up at {title}</h1>{problem}{form}",
        title = escaped(&app.settings.title),
        problem = problem(why),
        form = form(PATH, &inside),
    );
    FormPage::new(TITLE, body)
}
