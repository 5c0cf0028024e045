//! Every form of a page, sent once by a browser: what it answers with is documented, and all that is documented is met.

use std::cell::RefCell;
use std::collections::BTreeSet;

use super::browser::Browser;
use super::client::Answer;
use super::contract::{Contract, Documented};
use super::letters::{confirmed, with};
use super::postbox::Postbox;
use super::served::PASSWORD;
use super::walk::{FORMS, assert_met};

/// What was answered, by the names of operations.
#[derive(Default)]
struct Met(RefCell<BTreeSet<(String, u16)>>);

impl Met {
    fn note(&self, operation: &str, answer: &Answer) -> Answer {
        self.0.borrow_mut().insert((operation.to_owned(), answer.status));
        answer.clone()
    }
}

#[tokio::test]
async fn every_form_answers_as_it_is_documented() {
    let (postbox, met) = (Postbox::open().await, Met::default());
    let site = with(&postbox).await;
    // Her link to confirm is one of these.
    confirmed(&site, &postbox, "ada").await;
    let log_in = [("username", "ada"), ("password", PASSWORD)];

    let asked = format!(
        "/oauth/authorize?response_type=code&client_id={}&redirect_uri=https%3A%2F%2Fapp.example%2Fback&scope=read",
        site.client.0
    );
    let (mut browser, _) = Browser::open(&site, &asked).await;
    met.note("post /oauth/authorize", &browser.submit("log_in", &log_in).await);
    let away = met.note("post /oauth/authorize", &browser.submit("approve", &[]).await);
    assert!(away.header("location").unwrap().starts_with("https://app.example/back?code="));

    let (mut browser, _) = Browser::open(&site, "/auth/account").await;
    met.note("post /auth/account", &browser.submit("log_in", &log_in).await);
    let new = [("email", "ada@ebb.example"), ("password", PASSWORD)];
    met.note("post /auth/account", &browser.submit("address", &new).await);
    let link = postbox.link("ada@ebb.example", 1).await;
    met.note("get /auth/confirm", &browser.get(&link).await);
    met.note("post /auth/confirm", &browser.submit("confirm", &[]).await);

    let (mut browser, _) = Browser::open(&site, "/auth/password").await;
    met.note("post /auth/password", &browser.submit("ask", &[("email", "ada@ebb.example")]).await);
    let link = postbox.link("ada@ebb.example", 2).await;
    met.note("get /auth/reset", &browser.get(&link).await);
    met.note("post /auth/reset", &browser.submit("set", &[("password", "another horse")]).await);

    let (mut browser, _) = Browser::open(&site, "/auth/sign_up").await;
    let new = [("username", "ben"), ("email", "ben@ebb.example"), ("password", PASSWORD)];
    met.note("post /auth/sign_up", &browser.submit("sign_up", &new).await);

    let is_form = |operation: &Documented| FORMS.contains(&operation.name().as_str());
    assert_met(Contract::get().operations().filter(is_form), &met.0.borrow());
    site.end().await;
}

/// Whoever sent a form after its hour, or followed an application's wrong address, was shown JSON.
#[tokio::test]
async fn what_is_refused_where_people_look_is_a_page() {
    let postbox = Postbox::open().await;
    let site = with(&postbox).await;
    let (mut browser, _) = Browser::open(&site, "/auth/account").await;
    let form = browser.form("log_in", "");
    browser.cookie.clear();
    let late = browser.post(&form, super::served::URL).await;
    assert_eq!(late.status, 403);
    let wrong = browser.get("/oauth/authorize?client_id=nobody").await;
    assert_eq!(wrong.status, 400);
    let (unread, nowhere) = (browser.get("/auth/reset?a=1&a[b]=2").await, browser.get("/auth/nowhere").await);
    for (answer, text) in [
        (late, "This form is too old"),
        (wrong, "client_id: no such application"),
        (unread, "One parameter is given"),
        (nowhere, "There is no such path"),
    ] {
        let page = answer.text();
        assert!(
            answer.header("content-type").unwrap().starts_with("text/html") && page.contains(text),
            "{page}"
        );
        assert_eq!(answer.header("x-frame-options"), Some("DENY"));
        assert!(answer.header("x-request-id").is_some() && answer.header("content-encoding").is_none());
    }
    site.end().await;
}
