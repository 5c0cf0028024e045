//! Signing up in a browser, by the page for that.

use std::time::Duration;

use tideline_server::accounts::{approve, invitations, invite, waiting};
use tideline_server::config::Registrations;

use super::admission::account;
use super::browser::Browser;
use super::client::Answer;
use super::letters::{log_in, status};
use super::postbox::Postbox;
use super::served::{PASSWORD, Served, URL};

const PAGE: &str = "/auth/sign_up";

/// Fills the page's form in, as somebody of that name.
async fn signs_up(browser: &mut Browser<'_>, name: &str, more: &[(&str, &str)]) -> Answer {
    let email = format!("{name}@tide.example");
    let mut typed = vec![("username", name), ("email", &email), ("password", PASSWORD)];
    typed.retain(|(field, _)| more.iter().all(|(other, _)| other != field));
    typed.extend(more);
    browser.submit("sign_up", &typed).await
}

#[tokio::test]
async fn who_has_only_a_browser_signs_up_confirms_its_address_and_logs_in() {
    let postbox = Postbox::open().await;
    let site = Served::start_with(|settings| {
        settings.mail = postbox.settings();
        settings.rules = vec!["Be <b>kind</b>".into()];
    })
    .await;
    let (mut browser, _) = Browser::open(&site, "/").await;
    assert!(browser.page.contains("href=\"/auth/sign_up\""), "{}", browser.page);
    browser.get("/auth/account").await;
    assert!(browser.page.contains("href=\"/auth/sign_up\""), "{}", browser.page);
    browser.get(PAGE).await;
    assert!(browser.page.contains("<li>Be &lt;b&gt;kind&lt;/b&gt;</li>"), "{}", browser.page);

    // All that is wrong is said, and what was well stands in the form again, but for the password.
    let wrong = [("email", "no address"), ("password", "short")];
    assert_eq!(signs_up(&mut browser, "a\"da", &wrong).await.status, 422);
    for words in
        ["The name: ", "The e-mail address: not an", "The password: is too short", "The rules: must be"]
    {
        assert!(browser.page.contains(words), "{words}: {}", browser.page);
    }
    assert!(
        browser.page.contains("value=\"a&quot;da\"") && !browser.page.contains("short\""),
        "{}",
        browser.page
    );
    assert_eq!(signs_up(&mut browser, "ada", &[("agreement", "1")]).await.status, 200);
    assert!(browser.page.contains("A letter is on its way"), "{}", browser.page);
    let token = log_in(&site, "ada", PASSWORD).await.unwrap();
    assert_eq!(status(&site, &token).await, 403);

    let link = postbox.link("ada@tide.example", 1).await;
    browser.get(&link).await;
    browser.submit("confirm", &[]).await;
    assert_eq!(status(&site, &token).await, 200);
    // Nor is anybody taken for who runs the site.
    browser.get(PAGE).await;
    assert_eq!(signs_up(&mut browser, "Admin", &[("agreement", "1")]).await.status, 422);
    assert!(browser.page.contains("The name: is reserved."), "{}", browser.page);
    // Somebody else's name is told, as in a client.
    browser.get(PAGE).await;
    assert_eq!(signs_up(&mut browser, "ada", &[("agreement", "1")]).await.status, 422);
    assert!(browser.page.contains("The name: has already been taken."), "{}", browser.page);
    site.end().await;
}

#[tokio::test]
async fn a_form_of_elsewhere_signs_nobody_up_and_one_address_is_not_many_people() {
    let site = Served::start_with(|settings| {
        settings.registrations = Registrations::Open;
        settings.limits.sign_ups = "2/30d".parse().unwrap();
        settings.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    })
    .await;
    let (mut browser, _) = Browser::open_from(&site, PAGE, "192.0.2.7").await;
    let (path, mut fields) = browser.form("sign_up", "");
    for (name, value) in [("username", "eve"), ("email", "eve@tide.example"), ("password", PASSWORD)] {
        fields.push((name.into(), value.into()));
    }
    let form = (path, fields);
    assert_eq!(browser.post(&form, "https://evil.example").await.status, 403);
    assert_eq!(browser.post(&form, URL).await.status, 200);
    assert!(browser.page.contains("Your account is ready"), "{}", browser.page);
    assert!(log_in(&site, "eve", PASSWORD).await.is_some());
    let limited = browser.post(&form, URL).await;
    assert_eq!(limited.status, 429, "{}", limited.text());
    site.end().await;
}

#[tokio::test]
async fn a_link_with_an_invitation_lets_in_as_many_as_were_invited() {
    let site = Served::start_with(|settings| settings.registrations = Registrations::Invitation).await;
    let code = invite(site.registration(), 1, Duration::from_secs(86_400)).await.unwrap();
    let (mut browser, _) = Browser::open(&site, PAGE).await;
    let refused = signs_up(&mut browser, "ada", &[("invite_code", "nobody's")]).await;
    let page = refused.text();
    assert!(refused.status == 403 && page.contains("unknown or used up") && page.contains("<form"), "{page}");
    browser.get(&format!("{PAGE}?invite_code={code}")).await;
    assert!(browser.page.contains(&format!("value=\"{code}\"")), "{}", browser.page);
    assert_eq!(signs_up(&mut browser, "ada", &[("invite_code", &code)]).await.status, 200);
    assert_eq!(invitations(site.registration()).await.unwrap()[0].uses_left, 0);
    // A link says nothing else: what it has besides is not documented.
    browser.takes_anything();
    browser.get(&format!("{PAGE}?invite_code={code}&email=eve%40tide.example")).await;
    assert!(
        browser.page.contains("unknown or used up") && !browser.page.contains(" value=\"eve"),
        "{}",
        browser.page
    );
    browser.get(PAGE).await;
    assert_eq!(signs_up(&mut browser, "ben", &[("invite_code", &code)]).await.status, 403);
    site.end().await;
}

#[tokio::test]
async fn who_is_let_in_by_approval_says_why_and_waits_and_a_closed_site_says_so() {
    let site = Served::start_with(|settings| settings.registrations = Registrations::Approval).await;
    let (mut browser, _) = Browser::open(&site, &format!("{PAGE}?invite_code=old")).await;
    assert!(browser.page.contains("unknown or used up"), "{}", browser.page);
    // Whoever comes with one that is good waits for nobody, and is asked for nothing.
    let code = invite(site.registration(), 1, Duration::from_secs(86_400)).await.unwrap();
    browser.get(&format!("{PAGE}?invite_code={code}")).await;
    assert!(!browser.page.contains("Why do you want"), "{}", browser.page);
    signs_up(&mut browser, "cleo", &[]).await;
    assert!(browser.page.contains("Your account is ready"), "{}", browser.page);
    browser.get(PAGE).await;
    assert_eq!(signs_up(&mut browser, "ada", &[("reason", "I know ben")]).await.status, 200);
    assert!(browser.page.contains("waits for somebody to approve it"), "{}", browser.page);
    let all = waiting(site.registration()).await.unwrap();
    assert_eq!(all.iter().map(|one| one.reason.as_str()).collect::<Vec<_>>(), ["I know ben"]);
    let waits = account(&site, "ada").await;
    approve(site.engine(), site.registration(), &waits, false).await.unwrap();
    let token = log_in(&site, "ada", PASSWORD).await.unwrap();
    assert_eq!(status(&site, &token).await, 200);
    site.end().await;

    let site = Served::start_with(|settings| settings.registrations = Registrations::Closed).await;
    let (browser, _) = Browser::open(&site, PAGE).await;
    assert!(
        browser.page.contains("takes no new accounts") && !browser.page.contains("<form"),
        "{}",
        browser.page
    );
    let (browser, _) = Browser::open(&site, "/auth/account").await;
    assert!(!browser.page.contains(PAGE), "{}", browser.page);
    site.end().await;
}
