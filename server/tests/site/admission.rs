//! Who may sign up, and what happens until somebody is let in.

use futures::future::join_all;
use serde_json::{Value, json};
use tideline::registration::Name;
use tideline::{Account, AccountState, ErrorKind};
use tideline_server::accounts::{approve, invitations, invite, reject, revoke_invitation, waiting};
use tideline_server::config::Registrations;
use tideline_server::mail::MailSettings;

use super::browser::Browser;
use super::served::{PASSWORD, Served, Told, each};

const ME: &str = "/api/v1/accounts/verify_credentials";
const DAY: std::time::Duration = std::time::Duration::from_secs(86_400);

pub(super) async fn account(site: &Served, login: &str) -> Account {
    site.registration().find(&[Name::Login(login.into())]).await.unwrap().remove(0).unwrap()
}

fn token(told: Told) -> String {
    told.ok()["access_token"].as_str().unwrap().to_owned()
}

async fn with(registrations: Registrations) -> Served {
    Served::start_with(|settings| settings.registrations = registrations).await
}

#[tokio::test]
async fn who_waits_for_approval_does_nothing_and_is_not_there_for_others_until_somebody_says_yes() {
    let site = with(Registrations::Approval).await;
    let other = site.another().await;
    let v1 = site.guest("/api/v1/instance").await.ok();
    assert_eq!((&v1["registrations"], &v1["approval_required"]), (&json!(true), &json!(true)));
    let v2 = site.guest("/api/v2/instance").await.ok();
    assert_eq!(v2["registrations"]["approval_required"], true);
    let long = "x".repeat(501);
    let refused = site.sign_up_with("ada", &[("reason", &long)]).await;
    assert_eq!(
        (refused.status, &refused.body["details"]["reason"][0]["error"]),
        (422, &json!("ERR_TOO_LONG"))
    );

    let ada = token(site.sign_up_with("ada", &[("reason", "I know ben")]).await);
    let id = account(&site, "ada").await.id;
    for (method, path) in [
        ("GET", ME),
        ("GET", "/api/v1/timelines/home"),
        ("GET", "/api/v1/timelines/public"),
        ("POST", "/api/v1/statuses"),
        ("PATCH", "/api/v1/accounts/update_credentials"),
        ("GET", "/api/tideline/v1/sessions"),
    ] {
        let told = site.send(method, path, Some(&ada), json!({ "status": "hello" })).await;
        let error = &told.body["error"];
        assert_eq!((told.status, error), (403, &json!("Your login is currently pending approval")), "{path}");
    }
    // Nor for anybody else.
    assert_eq!(site.guest("/api/v1/accounts/lookup?acct=ada").await.status, 404);
    for path in [format!("/api/v1/accounts/{id}"), format!("/api/v1/accounts/{id}/followers")] {
        assert_eq!(site.guest(&path).await.status, 404, "{path}");
    }
    assert_eq!(site.guest(&format!("/api/v1/accounts?id[]={id}")).await.ok(), json!([]));
    assert_eq!(site.sign_up_with("ada", &[]).await.status, 422);
    let (mut browser, _) = Browser::open(&site, "/auth/account").await;
    browser.submit("log_in", &[("username", "ada"), ("password", PASSWORD)]).await;
    assert!(browser.page.contains("has not been approved yet"), "{}", browser.page);

    let all = waiting(site.registration()).await.unwrap();
    let [one] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!((one.login.as_str(), one.reason.as_str(), one.is_confirmed), ("ada", "I know ben", true));
    assert_eq!(one.email.as_deref(), Some("ada@tide.example"));
    let waits = account(&site, "ada").await;
    assert!(approve(site.engine(), site.registration(), &waits, false).await.unwrap());
    assert_eq!(waiting(site.registration()).await.unwrap(), []);
    // With the token that it has, at each server.
    for address in [site.address(), other.address()] {
        assert_eq!(site.send_to(address, ("GET", ME), Some(&ada), Value::Null).await.ok()["username"], "ada");
    }
    assert_eq!(site.guest("/api/v1/accounts/lookup?acct=ada").await.ok()["id"], id.get().to_string());
    let found = site.send("GET", "/api/v1/accounts/search?q=ada", Some(&ada), Value::Null).await.ok();
    assert_eq!(each(&found, "username"), ["ada"]);
    // Whose answer was given is asked for no more.
    let is_in = account(&site, "ada").await;
    for refused in [
        approve(site.engine(), site.registration(), &is_in, false).await.unwrap_err(),
        reject(site.engine(), site.registration(), &is_in).await.unwrap_err(),
    ] {
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    }
    other.end().await;
    site.end().await;
}

#[tokio::test]
async fn whoever_is_turned_away_is_gone_and_its_name_is_free() {
    let site = with(Registrations::Approval).await;
    let eve = token(site.sign_up_with("eve", &[]).await);
    let waits = account(&site, "eve").await;
    reject(site.engine(), site.registration(), &waits).await.unwrap();
    assert_eq!(waiting(site.registration()).await.unwrap(), []);
    assert_eq!(site.send("GET", ME, Some(&eve), Value::Null).await.status, 401);
    assert_eq!(site.sign_up_with("eve", &[]).await.status, 200);
    // An invitation is an answer already.
    let code = invite(site.registration(), 1, DAY).await.unwrap();
    let ben = token(site.sign_up_with("ben", &[("invite_code", &code)]).await);
    assert_eq!(site.send("GET", ME, Some(&ben), Value::Null).await.status, 200);
    assert_eq!(waiting(site.registration()).await.unwrap().len(), 1);
    site.end().await;
}

/// The list is bounded, or whoever makes accounts fills it.
#[tokio::test]
async fn no_more_wait_than_there_are_places_and_who_is_answered_makes_room() {
    let site = with(Registrations::Approval).await;
    let part = |name: &str| ring::digest::digest(&ring::digest::SHA256, name.as_bytes()).as_ref()[0] % 16;
    let names: Vec<String> = (0..).map(|n| format!("n{n}")).filter(|name| part(name) == 3).take(82).collect();
    let (first, last) = names.split_at(80);
    for some in first.chunks(4) {
        for told in join_all(some.iter().map(|name| site.sign_up_with(name, &[]))).await {
            told.ok();
        }
    }
    let refused = site.sign_up_with(&last[0], &[]).await;
    assert_eq!(refused.status, 403, "{}", refused.body);
    assert!(refused.body["error"].as_str().unwrap().contains("So many people wait"), "{}", refused.body);
    assert_eq!(waiting(site.registration()).await.unwrap().len(), 80);
    // Nothing of who was refused stays.
    let found = site.registration().find(&[Name::Login(last[0].clone())]).await.unwrap();
    assert_eq!(found, [None]);
    reject(site.engine(), site.registration(), &account(&site, &first[7]).await).await.unwrap();
    site.sign_up_with(&last[1], &[]).await.ok();
    site.end().await;
}

#[tokio::test]
async fn as_many_come_with_an_invitation_as_were_invited_however_many_servers_let_them_in() {
    let site = with(Registrations::Invitation).await;
    let other = site.another().await;
    let v1 = site.guest("/api/v1/instance").await.ok();
    assert_eq!((&v1["registrations"], &v1["invites_enabled"]), (&json!(false), &json!(true)));
    assert_eq!(site.guest("/api/v2/instance").await.ok()["registrations"]["enabled"], false);
    for code in ["", "nobody's"] {
        let refused = site.sign_up_with("ada", &[("invite_code", code)]).await;
        assert_eq!(refused.status, 403, "{}", refused.body);
    }
    let code = invite(site.registration(), 3, DAY).await.unwrap();
    // Whoever doesn't come uses nothing up.
    for (name, more) in [("no name", vec![]), ("ada", vec![("password", "short")])] {
        let more: Vec<_> = more.into_iter().chain([("invite_code", code.as_str())]).collect();
        assert_eq!(site.sign_up_with(name, &more).await.status, 422, "{name}");
    }
    let uses_left = async || invitations(site.registration()).await.unwrap()[0].uses_left;
    assert_eq!(uses_left().await, 3);
    let asked = |n: usize| {
        let email = format!("n{n}@tide.example");
        json!({
            "username": format!("n{n}"), "email": email, "password": PASSWORD, "agreement": true, "invite_code": code,
        })
    };
    let servers = [site.address(), other.address()];
    let all = (0..12).map(|n| {
        site.send_to(servers[n % 2], ("POST", "/api/v1/accounts"), Some(site.app_token()), asked(n))
    });
    let told = join_all(all).await;
    let of = |status| told.iter().filter(|told| told.status == status).count();
    assert_eq!((of(200), of(403)), (3, 9), "{told:?}");
    assert_eq!(uses_left().await, 0);

    let code = invite(site.registration(), 2, DAY).await.unwrap();
    let all = invitations(site.registration()).await.unwrap();
    assert!(all.len() == 2 && !format!("{all:?}").contains(&code));
    // Two want one name: of whoever comes second the use is given back.
    let with_code = [("invite_code", code.as_str())];
    let twice = [site.sign_up_with("twin", &with_code), site.sign_up_with("twin", &with_code)];
    let told: Vec<u16> = join_all(twice).await.iter().map(|told| told.status).collect();
    assert!(told.contains(&200) && told.contains(&422), "{told:?}");
    assert_eq!(invitations(site.registration()).await.unwrap()[1].uses_left, 1);
    revoke_invitation(site.registration(), &all[1].id).await.unwrap();
    revoke_invitation(site.registration(), &all[1].id).await.unwrap_err();
    assert_eq!(site.sign_up_with("ben", &[("invite_code", &code)]).await.status, 403);
    other.end().await;
    site.end().await;
}

#[tokio::test]
async fn nobody_signs_up_where_that_is_closed_also_with_an_invitation() {
    let site = with(Registrations::Closed).await;
    let code = invite(site.registration(), 1, DAY).await.unwrap();
    assert_eq!(site.sign_up_with("ada", &[("invite_code", &code)]).await.status, 403);
    assert_eq!(site.guest("/api/v1/instance").await.ok()["registrations"], false);
    // Without a mail server nothing has to be confirmed, and the page says who gives another password.
    assert_eq!(MailSettings::default().server, "");
    let (browser, _) = Browser::open(&site, "/auth/password").await;
    assert!(browser.page.contains("tideline account password"), "{}", browser.page);
    site.end().await;
}

/// Who has approved it dies before it is let in: whoever comes next with its token brings that to its end.
#[tokio::test]
async fn what_was_left_half_way_is_brought_to_its_end_by_whoever_comes() {
    let site = with(Registrations::Approval).await;
    let ada = token(site.sign_up_with("ada", &[]).await);
    let id = account(&site, "ada").await.id;
    let come = serde_json::to_vec(&json!({ "approval": true })).unwrap();
    site.registration().change_document(id, "come", None, Some(&come)).await.unwrap();
    assert_eq!(account(&site, "ada").await.state, AccountState::Waiting);
    assert_eq!(site.send("GET", ME, Some(&ada), Value::Null).await.status, 200);
    assert_eq!(account(&site, "ada").await.state, AccountState::Active);
    site.end().await;
}
