//! The page on which somebody logs in and lets an application have a token.
//!
//! Its forms are bound to the session of their browser (`browsing`), and lead nowhere but to addresses that the
//! application has named before.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use tideline::Account;

use super::apps::asked;
use super::browsing::{self, LogInOutcome, TOO_OFTEN, logged_in};
use super::limited::CountedClient;
use crate::app::{App, Shared};
use crate::auth::application::{OUT_OF_BAND, RegisteredApplication};
use crate::auth::browser::Browser;
use crate::auth::code::Code;
use crate::form::{FormPage, away, button, form, hidden, log_in_fields, problem, quiet_button};
use crate::grants::Scopes;
use crate::http::escape::{escaped, percent};
use crate::http::{Params, Refusal};

/// Bytes of what an application has come back to it.
const STATE_BYTES_MAX: usize = 2_048;

/// A request of an application, with all that is to be said against it said.
struct AskedGrant {
    client: RegisteredApplication,
    redirect: String,
    scopes: Scopes,
    state: Option<String>,
    challenge: Option<String>,
}

impl AskedGrant {
    /// Nothing here leads back to the application: an address is trusted only once this has found it to be its own.
    async fn read(app: &App, params: &Params) -> Result<Self, Refusal> {
        let client_id = params.text("client_id").unwrap_or_default();
        let client = RegisteredApplication::find(app, client_id)
            .await?
            .ok_or_else(|| wrong("client_id: no such application"))?;
        let redirect = params.text("redirect_uri").unwrap_or_default().to_owned();
        if !client.may_go_to(&redirect) {
            return Err(wrong("redirect_uri: the application did not name this address"));
        }
        if params.text("response_type") != Some("code") {
            return Err(wrong("response_type: only `code` is served"));
        }
        let scopes = asked(params.text("scope"))?;
        if !client.application.scopes.allow_all(scopes) {
            return Err(wrong("scope: more than the application asked for when it was registered"));
        }
        let challenge = params.text("code_challenge").map(str::to_owned);
        if challenge.is_some() && params.text("code_challenge_method") != Some("S256") {
            return Err(wrong("code_challenge_method: only `S256` is served"));
        }
        let state = params.text("state").map(str::to_owned);
        if state.as_ref().is_some_and(|state| state.len() > STATE_BYTES_MAX) {
            return Err(wrong("state: too long"));
        }
        Ok(Self { client, redirect, scopes, state, challenge })
    }

    /// Its parameters again, for a form.
    fn fields(&self) -> String {
        let mut fields = vec![
            ("client_id", self.client.client_id.as_str()),
            ("redirect_uri", &self.redirect),
            ("response_type", "code"),
        ];
        let scopes = self.scopes.to_string();
        fields.push(("scope", &scopes));
        if let Some(state) = &self.state {
            fields.push(("state", state));
        }
        if let Some(challenge) = &self.challenge {
            fields.extend([("code_challenge", challenge.as_str()), ("code_challenge_method", "S256")]);
        }
        fields.iter().map(|(name, value)| hidden(name, value)).collect()
    }

    /// The address that its answer goes to, with something about it.
    fn answer(&self, (name, value): (&str, &str)) -> String {
        let glue = if self.redirect.contains('?') { '&' } else { '?' };
        let mut to = format!("{}{glue}{name}={}", self.redirect, percent(value));
        if let Some(state) = &self.state {
            to.push_str("&state=");
            to.push_str(&percent(state));
        }
        to
    }

    /// Whether its answer goes to an address, and isn't shown here.
    fn leads_away(&self) -> bool {
        self.redirect != OUT_OF_BAND
    }
}

fn wrong(because: &'static str) -> Refusal {
    Refusal::oauth(StatusCode::BAD_REQUEST, "invalid_request", because)
}

/// `GET /oauth/authorize`
pub(super) async fn page(
    State(app): State<Shared>,
    headers: HeaderMap,
    params: Params,
) -> Result<Response, Refusal> {
    let asked = AskedGrant::read(&app, &params).await?;
    let (browser, cookie) = browsing::visitor(&app, &headers).await?;
    let account = match params.flag("force_login") {
        Some(true) => None,
        _ => logged_in(&app, &browser).await?,
    };
    let page = match &account {
        Some(account) => approval(&app, &asked, &browser, account),
        None => log_in(&app, &asked, &browser, None),
    };
    Ok(page.cookie(cookie).into_response())
}

/// `POST /oauth/authorize`: one of the page's own forms.
pub(super) async fn decide(
    State(app): State<Shared>,
    client: CountedClient,
    headers: HeaderMap,
    params: Params,
) -> Result<Response, Refusal> {
    let asked = AskedGrant::read(&app, &params).await?;
    let browser = browsing::sender(&app, &headers, &params).await?;
    match params.text("act").unwrap_or_default() {
        "log_in" => Ok(match browsing::log_in(&app, &client, &browser, &params).await? {
            LogInOutcome::In(browser, account) => {
                let page = approval(&app, &asked, &browser, &account);
                page.cookie(Some(browser.set_cookie(&app))).into_response()
            }
            LogInOutcome::Not(why) => log_in(&app, &asked, &browser, Some(why)).into_response(),
            LogInOutcome::TooOften(standing) => {
                browsing::too_often(log_in(&app, &asked, &browser, Some(TOO_OFTEN)), standing)
            }
        }),
        "log_out" => {
            let browser = browsing::log_out(&app, &browser).await?;
            let page = log_in(&app, &asked, &browser, None);
            Ok(page.cookie(Some(browser.set_cookie(&app))).into_response())
        }
        "deny" if !asked.leads_away() => {
            Ok(FormPage::notice("Authorize", "The application was given nothing.").into_response())
        }
        "deny" => Ok(away(&asked.answer(("error", "access_denied")))),
        "approve" => match logged_in(&app, &browser).await? {
            Some(account) => approve(&app, &asked, &browser, &account).await,
            None => Ok(log_in(&app, &asked, &browser, None).into_response()),
        },
        _ => Err(wrong("act: the page's forms know log_in, log_out, approve and deny")),
    }
}

/// Gives the application its code.
async fn approve(
    app: &App,
    asked: &AskedGrant,
    browser: &Browser,
    account: &Account,
) -> Result<Response, Refusal> {
    let code = Code {
        account: account.id,
        era: browser.session.era.clone(),
        client_id: asked.client.client_id.clone(),
        scopes: asked.scopes,
        redirect: asked.redirect.clone(),
        challenge: asked.challenge.clone(),
    };
    let code = code.keep(app).await?;
    if !asked.leads_away() {
        return Ok(code_page(app, code.reveal()).into_response());
    }
    Ok(away(&asked.answer(("code", code.reveal()))))
}

fn log_in(app: &App, asked: &AskedGrant, browser: &Browser, why: Option<&str>) -> FormPage {
    let inside = asked.fields() + &hidden("form", &browser.form_sign()) + &log_in_fields();
    let body = format!(
        "<h1>Log in to {title}</h1><p><strong>{client}</strong> asks for access to your account.</p>{problem}{form}\
         {below}",
        title = escaped(&app.settings.title),
        client = escaped(&asked.client.application.name),
        problem = problem(why),
        form = form("/oauth/authorize", &inside),
        below = browsing::below_log_in(app),
    );
    FormPage::new("Log in", body).leads_away(asked.leads_away())
}

fn approval(app: &App, asked: &AskedGrant, browser: &Browser, account: &Account) -> FormPage {
    let client = escaped(&asked.client.application.name);
    let scopes: String = asked.scopes.names().map(|name| format!("<li>{name}</li>")).collect();
    let buttons = button("approve", "Authorize")
        + &quiet_button("deny", "Deny")
        + &quiet_button("log_out", "Log in as somebody else");
    let inside = asked.fields() + &hidden("form", &browser.form_sign()) + &buttons;
    let body = format!(
        "<h1>Authorize {client}?</h1><p>You are <strong>@{login}</strong> on {title}. <strong>{client}</strong> asks \
         for:</p><ul>{scopes}</ul>{form}",
        login = escaped(account.login.as_deref().unwrap_or_default()),
        title = escaped(&app.settings.title),
        form = form("/oauth/authorize", &inside),
    );
    FormPage::new("Authorize", body).leads_away(asked.leads_away())
}

fn code_page(app: &App, code: &str) -> FormPage {
    let body = format!(
        "<h1>{}</h1><p>Copy this code into your application:</p><p><input readonly size=\"50\" value=\"{}\"></p>",
        escaped(&app.settings.title),
        escaped(code)
    );
    FormPage::new("Authorize", body)
}
