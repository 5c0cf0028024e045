//! The page on which somebody logs in and lets an application have a token.
//!
//! Real forms without any script. Each is bound to the session of its browser; the page can't be framed, and leads
//! nowhere but to addresses that the application has named before.

use axum::extract::State;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, ORIGIN, REFERRER_POLICY, SET_COOKIE,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use tideline::{Account, AccountState};

use super::apps::asked;
use super::limited::LogInTries;
use crate::app::{App, Shared};
use crate::auth::application::{OUT_OF_BAND, Registered};
use crate::auth::browser::Browser;
use crate::auth::code::Code;
use crate::grants::Scopes;
use crate::http::escape::{escaped, percent};
use crate::http::{Params, RateStanding, Refusal};

/// Bytes of what an application has come back to it.
const STATE_BYTES_MAX: usize = 2_048;

/// What an application asks for, with all that is to be said against it said.
struct Asked {
    client: Registered,
    redirect: String,
    scopes: Scopes,
    state: Option<String>,
    challenge: Option<String>,
}

impl Asked {
    /// Nothing here leads back to the application: an address is trusted only once this has found it to be its own.
    async fn read(app: &App, params: &Params) -> Result<Self, Refusal> {
        let client_id = params.text("client_id").unwrap_or_default();
        let client =
            Registered::find(app, client_id).await?.ok_or_else(|| wrong("client_id: no such application"))?;
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

    /// Where its answer goes, with something about it.
    fn answer(&self, (name, value): (&str, &str)) -> String {
        let glue = if self.redirect.contains('?') { '&' } else { '?' };
        let mut to = format!("{}{glue}{name}={}", self.redirect, percent(value));
        if let Some(state) = &self.state {
            to.push_str("&state=");
            to.push_str(&percent(state));
        }
        to
    }

    /// What a policy calls the place where its answer goes: browsers ask it for what follows a form, too.
    fn goes_to(&self) -> Option<String> {
        let (scheme, rest) = self.redirect.split_once(':')?;
        match scheme {
            "http" | "https" => {
                let host = rest.trim_start_matches('/').split(['/', '?']).next()?;
                Some(format!("{scheme}://{host}"))
            }
            "urn" => None,
            _ => Some(format!("{scheme}:")),
        }
    }
}

fn wrong(because: &'static str) -> Refusal {
    Refusal::oauth(StatusCode::BAD_REQUEST, "invalid_request", because)
}

fn hidden(name: &str, value: &str) -> String {
    format!("<input type=\"hidden\" name=\"{name}\" value=\"{}\">", escaped(value))
}

/// `GET /oauth/authorize`
pub(super) async fn page(
    State(app): State<Shared>,
    headers: HeaderMap,
    params: Params,
) -> Result<Response, Refusal> {
    let asked = Asked::read(&app, &params).await?;
    let found = Browser::of(&app, &headers).await?;
    let must_log_in = params.flag("force_login") == Some(true);
    let account = match &found {
        Some(browser) if !must_log_in => logged_in(&app, browser).await?,
        _ => None,
    };
    let (browser, is_new) = match found {
        Some(browser) => (browser, false),
        None => (Browser::begin(&app, None).await?, true),
    };
    let page = match &account {
        Some(account) => approval(&app, &asked, &browser, account),
        None => log_in(&app, &asked, &browser, None),
    };
    Ok(shown(&asked, page, is_new.then(|| browser.set_cookie(&app))))
}

/// `POST /oauth/authorize`: one of the page's own forms.
pub(super) async fn decide(
    State(app): State<Shared>,
    tries: LogInTries,
    headers: HeaderMap,
    params: Params,
) -> Result<Response, Refusal> {
    let asked = Asked::read(&app, &params).await?;
    let is_own = headers.get(ORIGIN).is_none_or(|from| from.as_bytes() == app.settings.public_url.as_bytes());
    let browser = Browser::of(&app, &headers).await?;
    let Some(browser) = browser.filter(|browser| is_own && browser.has_signed(params.text("form"))) else {
        return Err(Refusal::new(
            StatusCode::FORBIDDEN,
            "This form is too old, or not from here; open the page again",
        ));
    };
    match params.text("act").unwrap_or_default() {
        "log_in" => {
            let (name, password) = (params.text("username").unwrap_or_default(), params.text("password"));
            if let Err(standing) = tries.take(&app, name).await {
                return Ok(too_many_tries(&app, &asked, &browser, standing));
            }
            let account = app.registration.check(name, password.unwrap_or_default()).await?;
            match account.filter(may_log_in) {
                Some(account) => {
                    browser.end(&app).await?;
                    let browser = Browser::begin(&app, Some(account.id)).await?;
                    let page = approval(&app, &asked, &browser, &account);
                    Ok(shown(&asked, page, Some(browser.set_cookie(&app))))
                }
                None => {
                    Ok(shown(&asked, log_in(&app, &asked, &browser, Some("Wrong name or password.")), None))
                }
            }
        }
        "log_out" => {
            browser.end(&app).await?;
            let browser = Browser::begin(&app, None).await?;
            let page = log_in(&app, &asked, &browser, None);
            Ok(shown(&asked, page, Some(browser.set_cookie(&app))))
        }
        act @ ("approve" | "deny") => {
            let Some(account) = logged_in(&app, &browser).await? else {
                return Ok(shown(&asked, log_in(&app, &asked, &browser, None), None));
            };
            if act == "deny" {
                return Ok(away(&asked.answer(("error", "access_denied"))));
            }
            let code = Code {
                account: account.id,
                client_id: asked.client.client_id.clone(),
                scopes: asked.scopes,
                redirect: asked.redirect.clone(),
                challenge: asked.challenge.clone(),
            };
            let code = code.keep(&app).await?;
            if asked.redirect == OUT_OF_BAND {
                return Ok(shown(&asked, code_page(&app, code.reveal()), None));
            }
            Ok(away(&asked.answer(("code", code.reveal()))))
        }
        _ => Err(wrong("act: the page's forms know log_in, log_out, approve and deny")),
    }
}

/// The page again, for who has tried too often: people see it, so it is no JSON.
fn too_many_tries(app: &App, asked: &Asked, browser: &Browser, standing: RateStanding) -> Response {
    let problem = "Too many tries. Wait a few minutes, then try again.";
    let mut response = shown(asked, log_in(app, asked, browser, Some(problem)), None);
    *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
    standing.tell_refused(response.headers_mut());
    response
}

fn may_log_in(account: &Account) -> bool {
    matches!(account.state, AccountState::Active | AccountState::Limited)
}

async fn logged_in(app: &App, browser: &Browser) -> Result<Option<Account>, Refusal> {
    let Some(account) = browser.session.account else { return Ok(None) };
    Ok(super::accounts::find(app, account).await?.filter(may_log_in))
}

fn log_in(app: &App, asked: &Asked, browser: &Browser, problem: Option<&str>) -> String {
    let problem = problem.map(|problem| format!("<p class=\"problem\" role=\"alert\">{problem}</p>"));
    let client = escaped(&asked.client.application.name);
    format!(
        "<h1>Log in to {title}</h1><p><strong>{client}</strong> asks for access to your account.</p>{problem}\
         <form method=\"post\" action=\"/oauth/authorize\">{fields}{form}\
         <label>Name or e-mail address<input name=\"username\" autocomplete=\"username\" required autofocus></label>\
         <label>Password<input name=\"password\" type=\"password\" autocomplete=\"current-password\" required></label>\
         <button name=\"act\" value=\"log_in\">Log in</button></form>",
        title = escaped(&app.settings.title),
        problem = problem.unwrap_or_default(),
        fields = asked.fields(),
        form = hidden("form", &browser.form_sign()),
    )
}

fn approval(app: &App, asked: &Asked, browser: &Browser, account: &Account) -> String {
    let client = escaped(&asked.client.application.name);
    let scopes: String = asked.scopes.names().map(|name| format!("<li>{name}</li>")).collect();
    let login = escaped(account.login.as_deref().unwrap_or_default());
    format!(
        "<h1>Authorize {client}?</h1><p>You are <strong>@{login}</strong> on {title}. <strong>{client}</strong> asks \
         for:</p><ul>{scopes}</ul><form method=\"post\" action=\"/oauth/authorize\">{fields}{form}\
         <button name=\"act\" value=\"approve\">Authorize</button>\
         <button name=\"act\" value=\"deny\" class=\"quiet\">Deny</button>\
         <button name=\"act\" value=\"log_out\" class=\"quiet\">Log in as somebody else</button></form>",
        title = escaped(&app.settings.title),
        fields = asked.fields(),
        form = hidden("form", &browser.form_sign()),
    )
}

fn code_page(app: &App, code: &str) -> String {
    format!(
        "<h1>{}</h1><p>Copy this code into your application:</p><p><input readonly size=\"50\" value=\"{}\"></p>",
        escaped(&app.settings.title),
        escaped(code)
    )
}

fn shown(asked: &Asked, body: String, cookie: Option<String>) -> Response {
    let style = include_str!("authorize.css");
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\"><title>Log in</title><style>{style}</style><main>{body}\
         </main></html>"
    );
    let to = asked.goes_to().map(|to| format!(" {to}")).unwrap_or_default();
    let policy = format!(
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'{to}; frame-ancestors 'none'; base-uri 'none'"
    );
    let mut response = (StatusCode::OK, page).into_response();
    let headers = response.headers_mut();
    let fixed = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CACHE_CONTROL, "no-store"),
        (X_FRAME_OPTIONS, "DENY"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
    ];
    headers.extend(fixed.map(|(name, value)| (name, HeaderValue::from_static(value))));
    let varying = [(CONTENT_SECURITY_POLICY, Some(policy)), (SET_COOKIE, cookie)];
    for (name, value) in varying {
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(&value).ok()) {
            headers.insert(name, value);
        }
    }
    response
}

/// Sends the browser to the application.
fn away(to: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    if let Ok(to) = HeaderValue::from_str(to) {
        response.headers_mut().insert(LOCATION, to);
    }
    response.headers_mut().insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}
