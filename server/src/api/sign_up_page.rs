//! The page on which somebody signs up in a browser: whose client can't do that, and whoever follows a link with an
//! invitation.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use tideline::registration::PASSWORD_CHARS_MIN;

use super::browsing;
use super::sign_up::come_in;
use crate::app::{App, Shared};
use crate::auth::browser::Browser;
use crate::auth::invitation;
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
    let held = HeldInvitation::of(&app, &params).await?;
    let why = matches!(held, HeldInvitation::Bad).then_some(BAD_INVITATION);
    // Nothing but the invitation comes from a link: whoever sends one would say whose address that is.
    Ok(sign_up_page(&app, &browser, None, (&held, why)).cookie(cookie))
}

/// `POST /auth/sign_up`
pub(super) async fn sign_up(
    State(app): State<Shared>,
    headers: HeaderMap,
    params: Params,
) -> Result<FormPage, Refusal> {
    let browser = browsing::sender(&app, &headers, &params).await?;
    let held = HeldInvitation::of(&app, &params).await?;
    let again = |why: &str| sign_up_page(&app, &browser, Some(&params), (&held, Some(why)));
    if matches!(held, HeldInvitation::Bad) {
        // Else somebody would wait who was never asked why.
        return Ok(again(BAD_INVITATION).status(StatusCode::FORBIDDEN));
    }
    match come_in(&app, &params).await {
        Ok(newcomer) => {
            let is_sent = newcomer.ask_to_confirm(&app).await;
            Ok(FormPage::notice(TITLE, what_now(newcomer.awaited, is_sent)))
        }
        // Whoever can mend it gets the form again, with what stands in it.
        Err(refusal) if can_be_mended(&app, &refusal) => Ok(again(&words(&refusal)).status(refusal.status())),
        Err(refusal) => Err(refusal),
    }
}

const BAD_INVITATION: &str = "This invitation is unknown or used up.";

/// The invitation that somebody comes with.
enum HeldInvitation<'p> {
    None,
    Good(&'p str),
    Bad,
}

impl<'p> HeldInvitation<'p> {
    async fn of(app: &App, params: &'p Params) -> Result<Self, Refusal> {
        let counts =
            matches!(app.settings.registrations, Registrations::Invitation | Registrations::Approval);
        Ok(match params.filled("invite_code").filter(|_| counts) {
            None => Self::None,
            Some(code) if invitation::is_open(&app.registration, code).await? => Self::Good(code),
            Some(_) => Self::Bad,
        })
    }
}

fn can_be_mended(app: &App, refusal: &Refusal) -> bool {
    match refusal.status() {
        StatusCode::UNPROCESSABLE_ENTITY => true,
        StatusCode::FORBIDDEN => app.settings.registrations != Registrations::Closed,
        _ => false,
    }
}

fn what_now(awaited: AwaitedSteps, is_sent: bool) -> &'static str {
    match awaited {
        AwaitedSteps { confirmation: true, .. } if is_sent => {
            "Your account is made. A letter is on its way to your address: follow the link in it, within two days."
        }
        AwaitedSteps { confirmation: true, .. } => {
            "Your account is made, but no letter can be sent to your address right now. Log in at /auth/account within \
             two days: then it is sent again."
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

fn sign_up_page(
    app: &App,
    browser: &Browser,
    typed: Option<&Params>,
    (held, why): (&HeldInvitation<'_>, Option<&str>),
) -> FormPage {
    let text = |name: &str| typed.and_then(|typed| typed.text(name)).unwrap_or_default();
    let code = if let HeldInvitation::Good(code) = held { code } else { "" };
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
