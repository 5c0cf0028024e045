//! Where somebody is logged in: told to itself alone, and ended by it, over HTTP and on a page.

use std::time::Duration;

use serde_json::{Value, json};
use tideline::registration::TicketKind;

use super::browser::Browser;
use super::served::{PASSWORD, Person, Served, URL, each};

const SESSIONS: &str = "/api/tideline/v1/sessions";
const ME: &str = "/api/v1/accounts/verify_credentials";
const PAGE: &str = "/auth/account";

async fn log_in(site: &Served, scope: &str) -> String {
    let (id, secret) = &site.client;
    let asked = json!({
        "grant_type": "password", "client_id": id, "client_secret": secret, "username": "ada",
        "password": PASSWORD, "scope": scope,
    });
    site.send("POST", "/oauth/token", None, asked).await.ok()["access_token"].as_str().unwrap().to_owned()
}

async fn status(site: &Served, token: &str) -> u16 {
    site.send("GET", ME, Some(token), Value::Null).await.status
}

#[tokio::test]
async fn somebody_sees_where_it_is_logged_in_and_ends_that_on_all_servers() {
    let site = Served::start().await;
    let other = site.another().await;
    let ada = site.sign_up("ada").await;
    let (ben, reader) = (site.sign_up("ben").await, log_in(&site, "read").await);
    assert_eq!(site.guest(SESSIONS).await.status, 401);
    let all = site.get(&ada, SESSIONS).await.ok();
    assert_eq!(all.as_array().unwrap().len(), 2);
    assert!(all.as_array().unwrap().iter().all(|one| one["application"]["name"] == "a test"), "{all}");
    // No secret is told.
    assert!(!all.to_string().contains(&ada.token) && !all.to_string().contains(&reader));
    let is_own = |one: &&Value| one["is_current"] == true;
    let of_reader = all.as_array().unwrap().iter().find(|one| !is_own(one)).unwrap()["id"].clone();
    let path = format!("{SESSIONS}/{}", of_reader.as_str().unwrap());
    let reads = site.send("GET", SESSIONS, Some(&reader), Value::Null).await.ok();
    let of = |list: &Value| list.as_array().unwrap().iter().find(is_own).unwrap()["id"].clone();
    assert_eq!(of(&reads), of_reader);

    assert_eq!(site.send("DELETE", &path, Some(&reader), Value::Null).await.status, 403);
    // Nobody else's.
    for path in [&path, &format!("{SESSIONS}/x"), &format!("{SESSIONS}/{}", "a".repeat(43))] {
        assert_eq!(site.send("DELETE", path, Some(&ben.token), Value::Null).await.status, 404, "{path}");
    }
    assert_eq!(status(&site, &reader).await, 200);
    assert_eq!(site.send_to(other.address(), ("GET", ME), Some(&reader), Value::Null).await.status, 200);
    site.send("DELETE", &path, Some(&ada.token), Value::Null).await.ok();
    assert_eq!(site.send("DELETE", &path, Some(&ada.token), Value::Null).await.status, 404);
    assert_eq!(status(&site, &reader).await, 401);
    // Elsewhere within what a server may remember.
    for n in 0.. {
        match site.send_to(other.address(), ("GET", ME), Some(&reader), Value::Null).await.status {
            401 => break,
            status => assert!(n < 200 && status == 200, "{status}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(each(&site.get(&ada, SESSIONS).await.ok(), "id").len(), 1);
    other.end().await;
    site.end().await;
}

/// A server that was killed in the middle of a log-out had it listed for good: whoever asked again was told that there
/// is no such token.
#[tokio::test]
async fn a_session_whose_token_has_ended_is_not_listed() {
    let site = Served::start().await;
    let ada = site.sign_up("ada").await;
    log_in(&site, "read").await;
    let all = site.get(&ada, SESSIONS).await.ok();
    let other = all.as_array().unwrap().iter().find(|one| one["is_current"] != true).unwrap();
    let (tokens, place) = (TicketKind::new('t').unwrap(), other["id"].as_str().unwrap());
    site.registration().drop_ticket(tokens, place.as_bytes()).await.unwrap();
    let left = site.get(&ada, SESSIONS).await.ok();
    assert!(left.as_array().unwrap().len() == 1 && left[0]["is_current"] == true, "{left}");
    site.end().await;
}

#[tokio::test]
async fn on_its_page_somebody_ends_one_session_or_all_and_nobody_else_can_make_it() {
    let site = Served::start().await;
    let Person { token, .. } = site.sign_up("ada").await;
    let reader = log_in(&site, "read").await;
    let (front, page) = Browser::open(&site, "/").await;
    assert_eq!((page.status, page.header("x-frame-options")), (200, Some("DENY")));
    assert!(front.page.contains("<h1>Tideline</h1>") && front.page.contains(&format!("href=\"{PAGE}\"")));
    // Nothing is kept of whoever only looks.
    assert!(front.cookie.is_empty());
    let (mut browser, page) = Browser::open(&site, PAGE).await;
    assert!(page.header("content-security-policy").unwrap().contains("form-action 'self';"));
    assert_eq!(page.header("x-frame-options"), Some("DENY"));
    // Without logging in nothing is shown, and nothing is done.
    assert!(!browser.page.contains("a test"));
    let before = browser.cookie.clone();
    browser.submit("log_in", &[("username", "ada"), ("password", PASSWORD)]).await;
    assert!(browser.cookie != before && browser.page.matches("a test").count() == 2, "{}", browser.page);

    // A form of elsewhere, or of another browser, does nothing.
    let form = browser.form("end_all", "");
    assert_eq!(browser.post(&form, "https://evil.example").await.status, 403);
    assert_eq!(browser.post(&form, "null").await.status, 403);
    let (mut other, _) = Browser::open(&site, PAGE).await;
    assert_eq!(other.post(&form, URL).await.status, 403);
    let (path, mut fields) = form.clone();
    fields.retain(|(name, _)| name != "form");
    assert_eq!(browser.post(&(path, fields), URL).await.status, 403);
    assert_eq!((status(&site, &token).await, status(&site, &reader).await), (200, 200));

    let sessions = site.send("GET", SESSIONS, Some(&reader), Value::Null).await.ok();
    let own = sessions.as_array().unwrap().iter().find(|one| one["is_current"] == true).unwrap();
    browser.submit_one("end", own["id"].as_str().unwrap(), &[]).await;
    assert_eq!(browser.page.matches("a test").count(), 1, "{}", browser.page);
    assert_eq!((status(&site, &token).await, status(&site, &reader).await), (200, 401));

    // Also of browsers.
    let (mut second, _) = Browser::open(&site, PAGE).await;
    second.submit("log_in", &[("username", "ada"), ("password", PASSWORD)]).await;
    browser.submit("end_all", &[]).await;
    assert!(browser.page.contains("name=\"password\""), "{}", browser.page);
    assert_eq!(status(&site, &token).await, 401);
    second.get(PAGE).await;
    assert!(second.page.contains("name=\"password\""), "{}", second.page);
    site.end().await;
}
