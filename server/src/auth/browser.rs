//! The session of a browser at the log-in page, in a cookie: who is logged in there.
//!
//! It begins with the first look at the page, before anybody is known, so that the form for logging in is bound to a
//! browser, too. Each form carries a sign that only this session has; a log-in begins a new session, so that nobody can
//! be made to go on in somebody else's.

use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use serde::{Deserialize, Serialize};
use tideline::AccountId;
use tideline::registration::TicketKind;

use super::era::Era;
use super::log_in::LogIn;
use super::secret::{Secret, hash, is_same};
use crate::app::App;
use crate::http::Refusal;
use crate::keep::tickets;

/// So long somebody stays logged in at the log-in page.
const LASTS: Duration = Duration::from_secs(24 * 3_600);
/// So long the page waits for somebody to log in.
const LASTS_UNKNOWN: Duration = Duration::from_secs(3_600);

const KIND: TicketKind = tickets::kind('s');

/// A session of a browser.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BrowserSession {
    /// Who is logged in.
    pub(crate) account: Option<AccountId>,
    /// Since when: the session goes no further.
    #[serde(default)]
    pub(crate) era: Era,
}

/// A browser with its session.
#[derive(Debug)]
pub(crate) struct Browser {
    cookie: Secret,
    pub(crate) session: BrowserSession,
}

impl Browser {
    /// The browser that sends these headers, if its session still lasts.
    pub(crate) async fn of(app: &App, headers: &HeaderMap) -> Result<Option<Self>, Refusal> {
        let Some(cookie) = cookie(headers, cookie_name(app)) else { return Ok(None) };
        let session: Option<BrowserSession> = tickets::get(&app.registration, KIND, &cookie).await?;
        let Some(session) = session else { return Ok(None) };
        if let Some(account) = session.account
            && !session.era.goes_on(&app.registration, account).await?
        {
            return Ok(None);
        }
        Ok(Some(Self { cookie: Secret::of(cookie), session }))
    }

    /// A new session, with somebody who has just logged in, or with nobody.
    pub(crate) async fn begin(app: &App, log_in: Option<&LogIn>) -> Result<Self, Refusal> {
        let (account, era) = log_in.map(|log_in| (log_in.account.id, log_in.era.clone())).unzip();
        let session = BrowserSession { account, era: era.unwrap_or_default() };
        let (cookie, lasts) = (Secret::draw(), if account.is_some() { LASTS } else { LASTS_UNKNOWN });
        tickets::put(&app.registration, KIND, cookie.reveal(), &session, lasts).await?;
        Ok(Self { cookie, session })
    }

    /// Ends the session.
    pub(crate) async fn end(&self, app: &App) -> Result<(), Refusal> {
        app.registration.drop_ticket(KIND, self.cookie.reveal().as_bytes()).await?;
        Ok(())
    }

    /// The sign that its forms carry: nobody who doesn't know the cookie can make it.
    pub(crate) fn form_sign(&self) -> String {
        hash(&format!("form {}", self.cookie.reveal()))
    }

    /// Whether a form is this session's own.
    pub(crate) fn has_signed(&self, sign: Option<&str>) -> bool {
        sign.is_some_and(|sign| is_same(sign, &self.form_sign()))
    }

    /// The header that gives the browser its cookie.
    pub(crate) fn set_cookie(&self, app: &App) -> String {
        let name = cookie_name(app);
        let secure = if app.is_https() { "; Secure" } else { "" };
        format!("{name}={}; Path=/; HttpOnly; SameSite=Lax{secure}", self.cookie.reveal())
    }
}

/// `__Host-`: no other name of the same site can set it. Browsers take that over TLS only.
fn cookie_name(app: &App) -> &'static str {
    if app.is_https() { "__Host-tideline" } else { "tideline" }
}

fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let all = headers.get_all(COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
    let mut pairs = all.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs
        .find(|(found, _)| *found == name)
        .map(|(_, value)| value.to_owned())
        .filter(|value| value.len() <= 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_found_among_others() {
        let headers = HeaderMap::from_iter([
            (COOKIE, "a=b; tidelines=x".parse().unwrap()),
            (COOKIE, "x; tideline=secret ;y=z".parse().unwrap()),
        ]);
        assert_eq!(cookie(&headers, "tideline").as_deref(), Some("secret"));
        assert_eq!(cookie(&headers, "z"), None);
    }
}
