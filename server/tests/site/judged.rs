//! Statuses that are held back, as their authors and others find them; and those that are refused.

use serde_json::{Value, json};
use tideline::AccountId;
use tideline_server::accounts::{AccountRole, set_role};

use super::served::{Served, each, id};

#[tokio::test]
async fn a_link_of_a_new_account_shows_once_a_moderator_says_so_and_repeats_are_refused() {
    let site = Served::start_with(|settings| {
        settings.judge.holds_links_of_new = true;
        settings.judge.refuses_same_text_from = 3;
    })
    .await;
    let (ada, ben) = (site.sign_up("ada").await, site.sign_up("ben").await);
    let plain = id(&site.says(&ada, "Low tide at noon").await);
    let held = id(&site.says(&ada, "Look at https://x.example").await);
    let statuses = format!("/api/v1/accounts/{}/statuses", ada.id);
    assert_eq!(each(&site.get(&ada, &statuses).await.body, "id"), [held.clone(), plain.clone()]);
    assert_eq!(each(&site.get(&ben, &statuses).await.body, "id"), [plain]);
    let path = format!("/api/v1/statuses/{held}");
    assert_eq!(site.get(&ben, &path).await.status, 404);

    // Ben may not look, whatever his token allows, until he is a moderator.
    let scopes = "read admin:read:reports admin:write:reports";
    let token = site.token(&site.application(scopes).await, "ben", scopes).await;
    let queue = "/api/tideline/v1/reports";
    assert_eq!(site.get(&ben, queue).await.status, 403, "its token is for less");
    assert_eq!(site.send("GET", queue, Some(&token), Value::Null).await.status, 403);
    let moderator = AccountId::new(ben.id.parse().unwrap()).unwrap();
    set_role(site.registration(), moderator, AccountRole::Moderator).await.unwrap();
    let told = site.send("GET", queue, Some(&token), Value::Null).await.ok();
    let report = &told["reports"][0];
    assert_eq!((told["reports"].as_array().unwrap().len(), &told["older"]), (1, &Value::Null));
    assert_eq!(
        (&report["category"], &report["comment"]),
        (&json!("held"), &json!("a link by a new account"))
    );
    assert_eq!((&report["account_id"], &report["target_account_id"]), (&Value::Null, &json!(ada.id)));
    let text = "Look at https://x.example";
    assert_eq!(
        report["statuses"],
        json!([{ "id": held, "text": text, "spoiler_text": null, "reported_as": null, "hidden": true }])
    );
    let decide = |what: &str| format!("{queue}/{}/{what}", id(report));
    // Nobody decides on who ranks as high.
    let author = AccountId::new(ada.id.parse().unwrap()).unwrap();
    set_role(site.registration(), author, AccountRole::Moderator).await.unwrap();
    for what in ["release", "drop", "resolve"] {
        assert_eq!(site.send("POST", &decide(what), Some(&token), Value::Null).await.status, 403, "{what}");
    }
    set_role(site.registration(), author, AccountRole::User).await.unwrap();
    for what in ["release", "release", "drop"] {
        // Who decides again finds it decided; what was released and is dropped is gone after all.
        site.send("POST", &decide(what), Some(&token), Value::Null).await.ok();
        let status = if what == "drop" { 404 } else { 200 };
        assert_eq!(site.get(&ben, &path).await.status, status, "{what}");
    }
    let resolved = site.send("GET", &format!("{queue}?resolved=true"), Some(&token), Value::Null).await.ok();
    assert_eq!(resolved["reports"][0]["resolved_by"], json!(ben.id));
    assert_eq!(site.send("POST", &format!("{queue}/7/resolve"), Some(&token), Value::Null).await.status, 404);

    for _ in 0..2 {
        site.says(&ben, "The very same long words").await;
    }
    let refused = site.post(&ben, "/api/v1/statuses", json!({ "status": "the very same long words!" })).await;
    assert_eq!(refused.status, 429, "{:?}", refused.body);
    site.end().await;
}

/// A moderator releases what was looked at, and nothing else.
#[tokio::test]
async fn an_edit_of_what_waits_is_looked_at_by_itself() {
    let site = Served::start_with(|settings| settings.judge.holds_links_of_new = true).await;
    let (ada, ben) = (site.sign_up("ada").await, site.sign_up("ben").await);
    let moderator = AccountId::new(ben.id.parse().unwrap()).unwrap();
    set_role(site.registration(), moderator, AccountRole::Moderator).await.unwrap();
    let scopes = "read admin:read:reports admin:write:reports";
    let token = site.token(&site.application(scopes).await, "ben", scopes).await;
    let path =
        format!("/api/v1/statuses/{}", id(&site.says(&ada, "Look at the gulls: https://x.example").await));
    let edit = json!({ "status": "Look at nothing" });
    site.send("PUT", &path, Some(&ada.token), edit).await.ok();
    let queue = "/api/tideline/v1/reports";
    let reports = site.send("GET", queue, Some(&token), Value::Null).await.ok();
    let [now, before] = &each(&reports["reports"], "id")[..] else { panic!("two wait: {reports}") };
    let release = async |report: &str| {
        site.send("POST", &format!("{queue}/{report}/release"), Some(&token), Value::Null).await.status
    };
    assert_eq!(release(before).await, 409);
    assert_eq!(site.get(&ben, &path).await.status, 404);
    assert_eq!(release(now).await, 200);
    assert!(site.get(&ben, &path).await.ok()["content"].as_str().unwrap().contains("nothing"));
    // H268: nor does its history show what nobody has released.
    let history = site.guest(&format!("{path}/history")).await.ok();
    let told = history.to_string();
    assert!(told.contains("nothing") && !told.contains("gulls"), "{told}");
    let left = site.send("GET", queue, Some(&token), Value::Null).await.ok();
    assert_eq!(left["reports"], json!([]));
    site.end().await;
}
