//! Pages for people in browsers, with plain forms: one frame, one style, the same protection around all. Pure.
//!
//! What is refused at their addresses is a page, too (`refused`).
//!
//! Invariants kept here: a page runs no script, can't be framed, isn't kept by anybody, tells no other site where
//! somebody came from, and its forms lead to this site alone, unless the caller says that they lead away. What users
//! have written is escaped by whoever puts it into a page ([`escaped`]).

mod refused;

use std::borrow::Cow;
use std::fmt::Write as _;

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY, SET_COOKIE,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::http::escape::escaped;

#[cfg(test)]
pub(crate) use refused::is_for_people;
pub(crate) use refused::refused_as_pages;

/// A page.
#[derive(Debug, Clone)]
pub(crate) struct FormPage {
    status: StatusCode,
    title: Cow<'static, str>,
    body: String,
    cookie: Option<String>,
    leads_away: bool,
    is_unsearched: bool,
}

impl FormPage {
    /// A page of that title, which is text; its body is HTML.
    pub(crate) fn new(title: impl Into<Cow<'static, str>>, body: String) -> Self {
        Self {
            status: StatusCode::OK,
            title: title.into(),
            body,
            cookie: None,
            leads_away: false,
            is_unsearched: false,
        }
    }

    /// A page that says something, and nothing else.
    pub(crate) fn notice(title: &'static str, text: &str) -> Self {
        Self::new(title, format!("<h1>{title}</h1><p>{}</p>", escaped(text)))
    }

    /// With another status.
    pub(crate) fn status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// Gives the browser a cookie.
    pub(crate) fn cookie(self, cookie: Option<String>) -> Self {
        Self { cookie, ..self }
    }

    /// Lets what follows a form lead anywhere. Browsers ask the policy about each redirect behind a form, also about
    /// those behind an application's own address, which nobody here knows.
    pub(crate) fn leads_away(self, leads_away: bool) -> Self {
        Self { leads_away, ..self }
    }

    /// Asks search engines to leave it out.
    pub(crate) fn unsearched(self, is_unsearched: bool) -> Self {
        Self { is_unsearched, ..self }
    }
}

impl IntoResponse for FormPage {
    fn into_response(self) -> Response {
        let Self { status, title, body, cookie, leads_away, is_unsearched } = self;
        let page = format!(
            "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
             content=\"width=device-width, initial-scale=1\"><title>{title}</title><style>{style}</style>\
             <main>{body}</main></html>",
            title = escaped(&title),
            style = include_str!("style.css"),
        );
        let forms = if leads_away { "" } else { "form-action 'self'; " };
        let policy = format!(
            "default-src 'none'; style-src 'unsafe-inline'; {forms}frame-ancestors 'none'; base-uri 'none'"
        );
        let mut response = (status, page).into_response();
        let headers = response.headers_mut();
        let fixed = [
            (CONTENT_TYPE, "text/html; charset=utf-8"),
            (CACHE_CONTROL, "no-store"),
            (X_FRAME_OPTIONS, "DENY"),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            // Not `no-referrer`: browsers would call the origin of its forms `null`, and they are told by that.
            (REFERRER_POLICY, "same-origin"),
        ];
        // In the place of what a text is otherwise: `extend` would put a second type beside the first.
        for (name, value) in fixed {
            headers.insert(name, HeaderValue::from_static(value));
        }
        for (name, value) in [(CONTENT_SECURITY_POLICY, Some(policy)), (SET_COOKIE, cookie)] {
            if let Some(value) = value.and_then(|value| HeaderValue::from_str(&value).ok()) {
                headers.insert(name, value);
            }
        }
        if is_unsearched {
            headers.insert("x-robots-tag", HeaderValue::from_static("noindex"));
        }
        response
    }
}

/// Sends the browser elsewhere.
pub(crate) fn away(to: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    if let Ok(to) = HeaderValue::from_str(to) {
        response.headers_mut().insert(LOCATION, to);
    }
    response.headers_mut().insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

/// A field that a form carries along unseen.
pub(crate) fn hidden(name: &str, value: &str) -> String {
    format!("<input type=\"hidden\" name=\"{name}\" value=\"{}\">", escaped(value))
}

/// A line that says what went wrong, if anything did.
pub(crate) fn problem(text: Option<&str>) -> String {
    let mut html = String::new();
    if let Some(text) = text {
        // Writing to a string can't fail.
        let _ = write!(html, "<p class=\"problem\" role=\"alert\">{}</p>", escaped(text));
    }
    html
}

/// A form that is sent to a path of this site; `inside` is HTML.
pub(crate) fn form(path: &str, inside: &str) -> String {
    format!("<form method=\"post\" action=\"{path}\">{inside}</form>")
}

/// A field of a form with a label: its name, its kind, and what browsers may fill in.
pub(crate) fn field(label: &str, names: (&str, &str, &str)) -> String {
    filled_field(label, names, "")
}

/// A field in which something stands already.
pub(crate) fn filled_field(label: &str, (name, kind, fills): (&str, &str, &str), text: &str) -> String {
    let value = if text.is_empty() { String::new() } else { format!(" value=\"{}\"", escaped(text)) };
    format!(
        "<label>{label}<input name=\"{name}\" type=\"{kind}\" autocomplete=\"{fills}\"{value} required></label>"
    )
}

/// A box that somebody ticks to agree; `label` is HTML.
pub(crate) fn tick_box(name: &str, label: &str) -> String {
    format!("<label><input name=\"{name}\" type=\"checkbox\" value=\"1\" required> {label}</label>")
}

/// A button, which says what a form does.
pub(crate) fn button(act: &str, label: &str) -> String {
    format!("<button name=\"act\" value=\"{act}\">{label}</button>")
}

/// A button beside the one that people mostly want.
pub(crate) fn quiet_button(act: &str, label: &str) -> String {
    format!("<button name=\"act\" value=\"{act}\" class=\"quiet\">{label}</button>")
}

/// The fields in which somebody logs in.
pub(crate) fn log_in_fields() -> String {
    field("Name or e-mail address", ("username", "text", "username"))
        + &field("Password", ("password", "password", "current-password"))
        + &button("log_in", "Log in")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_can_not_be_framed_kept_or_made_to_run_or_send_anything_elsewhere() {
        let page = FormPage::new("Log in", hidden("x", "\"><script>"));
        let response = page.clone().cookie(Some("a=b".into())).into_response();
        let headers = response.headers();
        let policy = headers[CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; ") && policy.contains("frame-ancestors 'none'"));
        assert!(policy.contains("form-action 'self'; ") && !policy.contains("script"));
        let away = page.leads_away(true).into_response();
        let policy = away.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(!policy.contains("form-action") && policy.contains("frame-ancestors 'none'"), "{policy}");
        for (name, value) in [
            (CONTENT_TYPE, "text/html; charset=utf-8"),
            (CACHE_CONTROL, "no-store"),
            (X_FRAME_OPTIONS, "DENY"),
            (REFERRER_POLICY, "same-origin"),
            (SET_COOKIE, "a=b"),
        ] {
            assert_eq!(headers[name], value);
        }
        assert!(!hidden("x", "\"><script>").contains("<script"));
        let filled = filled_field("Name", ("username", "text", "username"), "\"><script>");
        assert!(filled.contains(" value=\"&quot;&gt;&lt;script&gt;\" required>"), "{filled}");
        assert!(problem(Some("<b>")).contains("&lt;b&gt;") && problem(None).is_empty());
    }
}
