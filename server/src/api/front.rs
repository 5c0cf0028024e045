//! The front page: what a site is, for whoever opens its address in a browser.

use axum::extract::State;

use crate::app::Shared;
use crate::config::{Registrations, ServerSettings};
use crate::form::FormPage;
use crate::http::escape::escaped;

/// `GET /`
pub(super) async fn page(State(app): State<Shared>) -> FormPage {
    FormPage::new(app.settings.title.clone(), body(&app.settings, app.mailer.is_some()))
}

fn body(settings: &ServerSettings, sends_letters: bool) -> String {
    let mut html = format!("<h1>{}</h1>", escaped(&settings.title));
    if !settings.description.is_empty() {
        html.push_str(&format!("<p>{}</p>", escaped(&settings.description)));
    }
    // Without TLS most take https for granted, unless it is said.
    let has_tls = settings.public_url.starts_with("https:");
    let site = if has_tls { settings.domain() } else { &settings.public_url };
    html.push_str(&format!(
        "<h2>Log in</h2><p>Open any app or web client for Mastodon, and name this site where it asks for your server: \
         <strong>{site}</strong>. It brings you back here to log in.</p><p>{signs_up}</p>\
         <p><a href=\"/auth/account\">Your account</a>: where you are logged in.</p>",
        site = escaped(site),
        signs_up = signs_up(settings.registrations),
    ));
    if sends_letters {
        html.push_str("<p><a href=\"/auth/password\">Forgotten your password?</a></p>");
    }
    if !settings.rules.is_empty() {
        let rules = settings.rules.iter().map(|rule| format!("<li>{}</li>", escaped(rule)));
        html.push_str(&format!("<h2>Rules</h2><ol>{}</ol>", rules.collect::<String>()));
    }
    html.push_str(&contact(settings));
    html.push_str(&format!(
        "<p>For programs: <a href=\"/api/v2/instance\">what this site is</a>, <a href=\"/nodeinfo/2.0\">what it runs \
         on</a>. It is served by <a href=\"{source}\">Tideline {version}</a>, for its own accounts alone: there is no \
         federation.</p>",
        source = env!("CARGO_PKG_REPOSITORY"),
        version = env!("CARGO_PKG_VERSION"),
    ));
    html
}

fn signs_up(registrations: Registrations) -> &'static str {
    match registrations {
        Registrations::Open => "New here? <a href=\"/auth/sign_up\">Sign up</a>, or do it in your app.",
        Registrations::Approval => {
            "New here? <a href=\"/auth/sign_up\">Sign up</a>, or do it in your app, and say why: whoever runs this \
             site lets people in."
        }
        Registrations::Invitation => {
            "New here? <a href=\"/auth/sign_up\">Signing up</a> takes an invitation of whoever runs this site."
        }
        Registrations::Closed => "This site takes no new accounts.",
    }
}

fn contact(settings: &ServerSettings) -> String {
    let (email, account) = (escaped(&settings.contact_email), escaped(&settings.contact_account));
    let mut ways = Vec::new();
    if !email.is_empty() {
        ways.push(format!("<a href=\"mailto:{email}\">{email}</a>"));
    }
    if !account.is_empty() {
        ways.push(format!("@{account}"));
    }
    match ways.is_empty() {
        true => String::new(),
        false => format!("<h2>Contact</h2><p>{}</p>", ways.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_page_says_what_was_set_and_nothing_that_was_not() {
        let plain = body(&ServerSettings::default(), false);
        assert!(
            plain.contains("<strong>http://localhost:3000</strong>")
                && plain.contains("takes no new accounts")
        );
        assert!(!plain.contains("Rules") && !plain.contains("Contact") && !plain.contains("/auth/password"));
        assert!(!plain.contains("/auth/sign_up"));
        let settings = ServerSettings {
            title: "<Tide>".into(),
            description: "Salt & water".into(),
            rules: vec!["Be <b>kind</b>".into()],
            contact_email: "a@b.example".into(),
            contact_account: "ada".into(),
            registrations: Registrations::Open,
            public_url: "https://tide.example".into(),
            ..ServerSettings::default()
        };
        let told = body(&settings, true);
        for wanted in [
            "<strong>tide.example</strong>",
            "<h1>&lt;Tide&gt;</h1>",
            "Salt &amp; water",
            "<li>Be &lt;b&gt;kind&lt;/b&gt;</li>",
            "href=\"mailto:a@b.example\"",
            "@ada",
            "<a href=\"/auth/sign_up\">Sign up</a>, or do it in your app.",
            "/auth/password",
        ] {
            assert!(told.contains(wanted), "{wanted}: {told}");
        }
    }
}
