//! Letters: to whom they come, what their links do and when they are good for nothing, what nobody learns by them.

use std::time::Duration;

use serde_json::{Value, json};
use tideline::cluster::{Command, Request};
use tideline_server::mail::{MailSettings, MailTls};

use super::browser::Browser;
use super::logs::WholeLog;
use super::postbox::Postbox;
use super::served::{PASSWORD, Person, Served, URL};

const ME: &str = "/api/v1/accounts/verify_credentials";
const AGAIN: &str = "/api/v1/emails/confirmations";

pub(super) async fn with(postbox: &Postbox) -> Served {
    Served::start_with(|settings| {
        settings.mail = postbox.settings();
        settings.limits.letters = "5/30d".parse().unwrap();
    })
    .await
}

async fn token(site: &Served, name: &str) -> String {
    site.sign_up_with(name, &[]).await.ok()["access_token"].as_str().unwrap().to_owned()
}

pub(super) async fn status(site: &Served, token: &str) -> u16 {
    site.send("GET", ME, Some(token), Value::Null).await.status
}

/// Follows a link, and says yes.
async fn follow(site: &Served, link: &str) -> String {
    let (mut browser, _) = Browser::open(site, link).await;
    browser.submit("confirm", &[]).await;
    browser.page
}

/// Somebody who has confirmed its address.
pub(super) async fn confirmed(site: &Served, postbox: &Postbox, name: &str) -> Person {
    let token = token(site, name).await;
    follow(site, &postbox.link(&format!("{name}@tide.example"), 1).await).await;
    let me = site.send("GET", ME, Some(&token), Value::Null).await.ok();
    Person { id: me["id"].as_str().unwrap().to_owned(), token }
}

pub(super) async fn log_in(site: &Served, name: &str, password: &str) -> Option<String> {
    let (id, secret) = &site.client;
    let asked = json!({
        "grant_type": "password", "client_id": id, "client_secret": secret, "username": name, "password": password,
        "scope": "read write",
    });
    let told = site.send("POST", "/oauth/token", None, asked).await;
    (told.status == 200).then(|| told.body["access_token"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn who_signs_up_confirms_its_address_before_anything_else() {
    let postbox = Postbox::open().await;
    let site = with(&postbox).await;
    let other = site.another().await;
    let ada = token(&site, "ada").await;
    let early = site.send("POST", "/api/v1/statuses", Some(&ada), json!({ "status": "hello" })).await;
    let missing = json!("Your login is missing a confirmed e-mail address");
    assert_eq!((early.status, &early.body["error"]), (403, &missing));
    assert_eq!(site.guest("/api/v1/accounts/lookup?acct=ada").await.status, 404);
    let (mut browser, _) = Browser::open(&site, "/auth/account").await;
    browser.submit("log_in", &[("username", "ada"), ("password", PASSWORD)]).await;
    assert!(browser.page.contains("is not confirmed yet"), "{}", browser.page);

    // Another address: the first link is good for nothing then.
    let first = postbox.link("ada@tide.example", 1).await;
    let elsewhere = json!({ "email": "ada@ebb.example" });
    for (email, error) in [("no address", "ERR_INVALID"), ("a@b\r\nBcc: c@d.example", "ERR_INVALID")] {
        let refused = site.send("POST", AGAIN, Some(&ada), json!({ "email": email })).await;
        assert_eq!((refused.status, &refused.body["details"]["email"][0]["error"]), (422, &json!(error)));
    }
    site.send("POST", AGAIN, Some(&ada), elsewhere).await.ok();
    let link = postbox.link("ada@ebb.example", 1).await;
    let (old, told) = Browser::open(&site, &first).await;
    assert!(told.status == 404 && old.page.contains("too old"), "{}", old.page);

    // A program that looks at all links of a letter does nothing by that.
    let (mut browser, page) = Browser::open(&site, &link).await;
    assert_eq!((page.status, status(&site, &ada).await), (200, 403));
    assert!(page.header("content-security-policy").unwrap().contains("frame-ancestors 'none'"));
    browser.submit("confirm", &[]).await;
    assert!(browser.page.contains("Your account is ready"), "{}", browser.page);
    for address in [site.address(), other.address()] {
        let me = site.send_to(address, ("GET", ME), Some(&ada), Value::Null).await.ok();
        assert_eq!(me["username"], "ada");
    }
    assert_eq!(browser.get(&link).await.status, 404);
    assert_eq!(site.guest("/api/v1/accounts/lookup?acct=ada").await.status, 200);
    let late = site.send("POST", AGAIN, Some(&ada), json!({})).await;
    assert_eq!((late.status, postbox.now("ada@ebb.example").len()), (403, 1));
    other.end().await;
    site.end().await;
}

/// The address was another one, and the answer said that nothing was done.
#[tokio::test]
async fn whoever_may_get_no_letter_keeps_the_address_that_it_has() {
    let postbox = Postbox::open().await;
    let site = Served::start_with(|settings| {
        settings.mail = postbox.settings();
        settings.limits.letters = "1/30d".parse().unwrap();
    })
    .await;
    let ada = token(&site, "ada").await;
    token(&site, "bea").await;
    let to = async |email: &str| site.send("POST", AGAIN, Some(&ada), json!({ "email": email })).await.status;
    let names = [tideline::registration::Name::Login("ada".into())];
    let id = site.registration().find(&names).await.unwrap()[0].clone().unwrap().id;
    let email = async || site.registration().email(id).await.unwrap().unwrap();
    assert_eq!((to("ada@ebb.example").await, email().await), (200, "ada@ebb.example".into()));
    assert_eq!((to("ada@tide.example").await, email().await), (429, "ada@ebb.example".into()));
    // Somebody else's address is told of as such, however many letters went there.
    assert_eq!((to("bea@tide.example").await, email().await), (422, "ada@ebb.example".into()));
    site.end().await;
}

#[tokio::test]
async fn to_one_address_go_as_many_letters_as_may_whoever_asks() {
    let postbox = Postbox::open().await;
    let site = with(&postbox).await;
    let ada = token(&site, "ada").await;
    let mut told = Vec::new();
    for _ in 0..6 {
        told.push(site.send("POST", AGAIN, Some(&ada), json!({})).await.status);
    }
    // One came with the sign-up.
    assert_eq!(told, [200, 200, 200, 200, 429, 429]);
    assert_eq!(postbox.letters("ada@tide.example", 5).await.len(), 5);
    site.end().await;
}

#[tokio::test]
async fn whoever_has_forgotten_a_password_chooses_another_one_and_is_logged_out_everywhere() {
    let postbox = Postbox::open().await;
    let site = with(&postbox).await;
    let other = site.another().await;
    let ada = confirmed(&site, &postbox, "ada").await;
    // Somebody who knows the password is logged in in a browser, and has been given a code.
    let (id, secret) = site.client.clone();
    let asked = format!(
        "/oauth/authorize?response_type=code&client_id={id}&redirect_uri=urn:ietf:wg:oauth:2.0:oob&scope=read"
    );
    let (mut thief, _) = Browser::open(&site, &asked).await;
    thief.submit("log_in", &[("username", "ada"), ("password", PASSWORD)]).await;
    thief.submit("approve", &[]).await;
    let code = thief.page.split("value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();

    let (mut browser, page) = Browser::open(&site, "/auth/password").await;
    assert_eq!(page.header("x-frame-options"), Some("DENY"));
    let form = browser.page.clone();
    let known = browser.submit("ask", &[("email", "ADA@tide.example")]).await.text();
    browser.page.clone_from(&form);
    let unknown = browser.submit("ask", &[("email", "nobody@tide.example")]).await.text();
    assert!(known == unknown && known.contains("a letter is on its way"), "{known}");
    let (mut stranger, _) = Browser::open(&site, "/auth/password").await;
    let (path, mut fields) = stranger.form("ask", "");
    fields.push(("email".into(), "ada@tide.example".into()));
    assert_eq!(stranger.post(&(path, fields), "https://evil.example").await.status, 403);
    stranger.submit("ask", &[("email", "ada@tide.example")]).await;
    let letters = postbox.letters("ada@tide.example", 3).await;
    let (first, second) = (letters[1].link(), letters[2].link());
    assert_eq!(postbox.now("nobody@tide.example").len(), 0);

    let (mut browser, _) = Browser::open(&site, &first).await;
    browser.submit("set", &[("password", "short")]).await;
    assert!(browser.page.contains("is too short"), "{}", browser.page);
    browser.submit("set", &[("password", "another horse")]).await;
    assert!(browser.page.contains("is another one now"), "{}", browser.page);
    // Once, and no other link either.
    for link in [&first, &second] {
        assert_eq!(browser.get(link).await.status, 404);
    }
    assert_eq!(status(&site, &ada.token).await, 401);
    // Elsewhere within what a server may remember.
    for n in 0.. {
        match site.send_to(other.address(), ("GET", ME), Some(&ada.token), Value::Null).await.status {
            401 => break,
            status => assert!(n < 200 && status == 200, "{status}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    thief.get(&asked).await;
    assert!(thief.page.contains("name=\"password\""), "{}", thief.page);
    let change = json!({
        "grant_type": "authorization_code", "client_id": id, "client_secret": secret, "code": code,
        "redirect_uri": "urn:ietf:wg:oauth:2.0:oob",
    });
    let refused = site.send("POST", "/oauth/token", None, change).await;
    assert_eq!((refused.status, &refused.body["error"]), (400, &json!("invalid_grant")));
    assert!(log_in(&site, "ada", PASSWORD).await.is_none());
    assert!(log_in(&site, "ada", "another horse").await.is_some());
    other.end().await;
    site.end().await;
}

#[tokio::test]
async fn an_address_changes_once_its_new_owner_says_so_and_the_old_one_is_told() {
    let postbox = Postbox::open().await;
    let site = with(&postbox).await;
    let ada = confirmed(&site, &postbox, "ada").await;
    confirmed(&site, &postbox, "bea").await;
    let (mut browser, _) = Browser::open(&site, "/auth/account").await;
    browser.submit("log_in", &[("username", "ada"), ("password", PASSWORD)]).await;
    assert!(browser.page.contains("ada@tide.example"), "{}", browser.page);
    let page = browser.page.clone();
    for (email, password, why) in [
        ("ada@ebb.example", "wrong horse", "Wrong password"),
        ("ada\r\nBcc: eve@ebb.example", PASSWORD, "no e-mail address"),
    ] {
        browser.submit("address", &[("email", email), ("password", password)]).await;
        assert!(browser.page.contains(why), "{}", browser.page);
    }
    browser.submit("address", &[("email", "ada@ebb.example"), ("password", PASSWORD)]).await;
    let link = postbox.link("ada@ebb.example", 1).await;
    let email = async || {
        let id = tideline::AccountId::new(ada.id.parse().unwrap()).unwrap();
        site.registration().email(id).await.unwrap().unwrap()
    };
    assert_eq!(email().await, "ada@tide.example");
    // Somebody else's is told to nobody but who reads the letters there.
    browser.page = page;
    browser.submit("address", &[("email", "bea@tide.example"), ("password", PASSWORD)]).await;
    assert!(browser.page.contains("A letter is on its way"), "{}", browser.page);
    let beas = postbox.link("bea@tide.example", 2).await;
    assert!(follow(&site, &beas).await.contains("another account"), "{beas}");

    assert!(follow(&site, &link).await.contains("the address of @ada now"));
    assert_eq!(email().await, "ada@ebb.example");
    let told = postbox.letters("ada@tide.example", 2).await[1].text.clone();
    assert!(told.contains("has another e-mail address now") && !told.contains("ebb.example"), "{told}");
    // Whoever has asked for a password at the old address gets nowhere.
    assert_eq!(Browser::open(&site, &link).await.1.status, 404);
    assert!(log_in(&site, "ada@ebb.example", PASSWORD).await.is_some());
    assert!(log_in(&site, "ada@tide.example", PASSWORD).await.is_none());
    site.end().await;
}

/// Whoever signs up with somebody else's address keeps it for two days only.
#[tokio::test]
async fn who_does_not_confirm_in_time_loses_its_names_to_whoever_wants_them() {
    let postbox = Postbox::open().await;
    let site = with(&postbox).await;
    let eve = token(&site, "eve").await;
    let stolen = [("email", "eve@tide.example")];
    assert_eq!(site.sign_up_with("ada", &stolen).await.status, 422);
    assert_eq!(site.sign_up_with("eve", &[("email", "else@tide.example")]).await.status, 422);
    let names = [tideline::registration::Name::Login("eve".into())];
    let id = site.registration().find(&names).await.unwrap()[0].clone().unwrap().id;
    // As if it had signed up three days ago.
    let store = site.engine().store();
    let at = (store.router().now_ms() - 3 * 86_400_000).to_string();
    let (keys, buckets) = (store.keys(), store.keys().buckets());
    let bucket = buckets.of_account(id.get());
    let mut record = format!("{}{{{}}}a", keys.prefix(), buckets.tag(bucket)).into_bytes();
    record.extend(id.get().to_be_bytes());
    let age = Command::new("HSET").arg(&record).arg("at").arg(&at);
    store.router().call(Request::write(buckets.slot(bucket), age)).await.unwrap();
    let ada = site.sign_up_with("ada", &stolen).await.ok();
    assert_eq!(site.send("GET", ME, Some(&eve), Value::Null).await.status, 401);
    let link = postbox.link("eve@tide.example", 2).await;
    follow(&site, &link).await;
    assert_eq!(status(&site, ada["access_token"].as_str().unwrap()).await, 200);
    token(&site, "eve2").await;
    site.end().await;
}

#[tokio::test]
async fn a_letter_is_sent_again_while_the_mail_server_is_away_and_the_log_says_neither_to_whom_nor_what() {
    let log = WholeLog::default();
    let _logs = tracing::subscriber::set_default(log.clone());
    let postbox = Postbox::open().await;
    let site = with(&postbox).await;
    postbox.refuse(&["451 <ada@tide.example> come later", "421 not now"]);
    let ada = token(&site, "ada").await;
    let link = postbox.link("ada@tide.example", 1).await;
    assert_eq!(postbox.tries(), 3);
    // What is refused for good is not tried again; who waits for it asks again.
    postbox.refuse(&["550 <ada@tide.example> unknown here"]);
    site.send("POST", AGAIN, Some(&ada), json!({})).await.ok();
    while postbox.tries() < 4 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    site.send("POST", AGAIN, Some(&ada), json!({})).await.ok();
    postbox.letters("ada@tide.example", 2).await;
    assert_eq!(postbox.tries(), 5);
    follow(&site, &link).await;
    assert_eq!(status(&site, &ada).await, 200);
    let said = log.said();
    for part in ["a letter could not be sent", "the mail server answers 451", "a letter was refused"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let secret = link.strip_prefix(URL).unwrap().split("token=").nth(1).unwrap();
    for secret in ["tide.example>", "ada@", secret, PASSWORD, ada.as_str()] {
        assert!(!said.contains(secret), "{secret} is logged");
    }
    site.end().await;
}

#[tokio::test]
async fn letters_go_over_tls_with_a_password_from_a_file_and_never_in_the_clear_instead() {
    for tls in [MailTls::Tls, MailTls::StartTls] {
        let postbox = Postbox::open_with(tls).await;
        let password_file = Some(postbox.file("password", "hay and oats\n"));
        let site = Served::start_with(|settings| {
            settings.mail = MailSettings { user: "tide".into(), password_file, ..postbox.settings() };
        })
        .await;
        token(&site, "ada").await;
        postbox.letters("ada@tide.example", 1).await;
        assert_eq!(postbox.log_ins(), [" tide hay and oats"], "{tls:?}");
        site.end().await;
    }
    // A mail server that offers no TLS, and one whose certificate nobody has vouched for.
    let plain = Postbox::open().await;
    let (own, other) = (Postbox::open_with(MailTls::Tls).await, Postbox::open_with(MailTls::Tls).await);
    for mail in [
        MailSettings { tls: MailTls::StartTls, ..plain.settings() },
        MailSettings { tls_ca: other.settings().tls_ca, ..own.settings() },
    ] {
        let site = Served::start_with(|settings| settings.mail = mail.clone()).await;
        token(&site, "ada").await;
        site.end().await;
    }
    assert_eq!((plain.tries(), own.tries()), (0, 0));
}

#[tokio::test]
async fn who_is_approved_and_confirmed_in_whatever_order_is_in_after_both() {
    let postbox = Postbox::open().await;
    let site = Served::start_with(|settings| {
        settings.mail = postbox.settings();
        settings.registrations = tideline_server::config::Registrations::Approval;
    })
    .await;
    let waiting = async || tideline_server::accounts::waiting(site.registration()).await.unwrap();
    let approve = async |name: &str| {
        let found = site.registration().find(&[tideline::registration::Name::Login(name.into())]).await;
        let account = found.unwrap().remove(0).unwrap();
        tideline_server::accounts::approve(site.engine(), site.registration(), &account, false).await.unwrap()
    };
    let (ada, bea) = (token(&site, "ada").await, token(&site, "bea").await);
    // Who has no address of its own keeps nobody busy.
    assert!(waiting().await.is_empty());
    let page = follow(&site, &postbox.link("ada@tide.example", 1).await).await;
    assert!(page.contains("waits now for somebody to approve it"), "{page}");
    assert_eq!(waiting().await.len(), 1);
    assert_eq!(status(&site, &ada).await, 403);
    assert!(approve("ada").await);
    assert_eq!(status(&site, &ada).await, 200);

    assert!(!approve("bea").await);
    assert_eq!(status(&site, &bea).await, 403);
    let page = follow(&site, &postbox.link("bea@tide.example", 1).await).await;
    assert!(page.contains("Your account is ready"), "{page}");
    assert_eq!(status(&site, &bea).await, 200);
    assert!(waiting().await.is_empty());
    // Whoever got itself another address while the one before was being confirmed has not confirmed that one.
    let dan = token(&site, "dan").await;
    follow(&site, &postbox.link("dan@tide.example", 1).await).await;
    let found = site.registration().find(&[tideline::registration::Name::Login("dan".into())]).await.unwrap();
    let account = found[0].as_ref().unwrap().id;
    site.registration().set_email(account, Some("victim@tide.example")).await.unwrap();
    assert!(!approve("dan").await);
    assert_eq!(status(&site, &dan).await, 403);
    let own = json!({ "email": "dan@ebb.example" });
    site.send("POST", AGAIN, Some(&dan), own).await.ok();
    follow(&site, &postbox.link("dan@ebb.example", 1).await).await;
    assert_eq!(status(&site, &dan).await, 200);
    assert_eq!(site.registration().email(account).await.unwrap().as_deref(), Some("dan@ebb.example"));
    // Where no letter comes through whoever runs the site says so.
    let cy = token(&site, "cy").await;
    let found = site.registration().find(&[tideline::registration::Name::Login("cy".into())]).await.unwrap();
    let account = found[0].clone().unwrap();
    let approve = tideline_server::accounts::approve;
    assert!(approve(site.engine(), site.registration(), &account, true).await.unwrap());
    assert_eq!(status(&site, &cy).await, 200);
    site.end().await;
}
