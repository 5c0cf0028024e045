//! Reports as clients make them, and as moderators read them.

use serde_json::{Value, json};
use tideline::AccountId;
use tideline_server::accounts::{AccountRole, set_role};

use super::posts::eventually;
use super::served::{Person, Served, each, id};

#[tokio::test]
async fn what_is_reported_stands_in_the_moderators_queue() {
    let site = Served::start_with(|settings| settings.rules = vec!["Be kind".into(), "No ads".into()]).await;
    let (ada, ben, eve) = (site.sign_up("ada").await, site.sign_up("ben").await, site.sign_up("eve").await);
    let shout = id(&site.says(&eve, "BEN IS A FISH").await);
    let secret = json!({ "status": "Only for you, @ada", "visibility": "direct" });
    let secret = id(&site.post(&eve, "/api/v1/statuses", secret).await.ok());
    let of_ada = id(&site.says(&ada, "Low tide at noon").await);
    let report = async |body: Value| site.post(&ben, "/api/v1/reports", body).await;

    let named = json!([shout, secret, "77"]);
    let filed = json!({ "account_id": eve.id, "status_ids": named, "comment": "shouts", "rule_ids": ["2"] });
    let filed = report(filed).await.ok();
    assert_eq!((&filed["category"], &filed["comment"]), (&json!("violation"), &json!("shouts")));
    // Of what he doesn't see, and of what isn't there, he learns nothing.
    assert_eq!((&filed["status_ids"], &filed["rule_ids"]), (&json!([shout]), &json!(["2"])));
    assert_eq!((&filed["action_taken"], &filed["target_account"]["acct"]), (&json!(false), &json!("eve")));

    for (wrong, status) in [
        (json!({ "comment": "nobody" }), 404),
        (json!({ "account_id": "77" }), 404),
        (json!({ "account_id": eve.id, "status_ids": [of_ada] }), 422),
        (json!({ "account_id": eve.id, "category": "ugly" }), 422),
        (json!({ "account_id": eve.id, "rule_ids": ["3"] }), 422),
        (json!({ "account_id": eve.id, "comment": "o".repeat(1_001) }), 422),
        (json!({ "account_id": eve.id, "status_ids": (1..=101).collect::<Vec<_>>() }), 422),
    ] {
        let refused = report(wrong.clone()).await;
        assert_eq!(refused.status, status, "{wrong}: {:?}", refused.body);
    }
    let spam = report(json!({ "account_id": eve.id, "category": "spam", "forward": true })).await.ok();
    assert_eq!((&spam["category"], &spam["forwarded"]), (&json!("spam"), &json!(false)));

    let moderator = AccountId::new(ada.id.parse().unwrap()).unwrap();
    set_role(site.registration(), moderator, AccountRole::Moderator).await.unwrap();
    let scopes = "read admin:read:reports";
    let token = site.token(&site.application(scopes).await, "ada", scopes).await;
    let queue = format!("/api/tideline/v1/reports?account_id={}", eve.id);
    let told = site.send("GET", &queue, Some(&token), Value::Null).await.ok();
    let told = told["reports"].as_array().unwrap();
    let of = |n: usize| (told[n]["id"].clone(), told[n]["category"].clone(), told[n]["comment"].clone());
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(of(0), (spam["id"].clone(), json!("spam"), json!("")));
    assert_eq!(of(1), (filed["id"].clone(), json!("violation"), json!("shouts (rules 2)")));
    assert_eq!(told[1]["statuses"][0]["text"], "BEN IS A FISH");
    assert_eq!(told[1]["statuses"][0]["reported_as"], "BEN IS A FISH");
    assert_eq!(told[1]["account_id"], json!(ben.id));

    // Whoever takes back what it has said is shown with it all the same.
    site.send("DELETE", &format!("/api/v1/statuses/{shout}"), Some(&eve.token), Value::Null).await.ok();
    let told = site.send("GET", &queue, Some(&token), Value::Null).await.ok();
    let status = &told["reports"][1]["statuses"][0];
    assert_eq!((&status["text"], &status["reported_as"]), (&Value::Null, &json!("BEN IS A FISH")));
    assert_eq!(told["lacks_some"], false);
    site.end().await;
}

#[tokio::test]
async fn moderators_hide_a_status_and_suspend_an_account_that_ranks_below_them() {
    let site = Served::start().await;
    let (ada, ben, eve) = (site.sign_up("ada").await, site.sign_up("ben").await, site.sign_up("eve").await);
    let scopes = "read admin:write:reports admin:write:accounts";
    let application = site.application(scopes).await;
    let token = site.token(&application, "ada", scopes).await;
    let say = async |path: String, body: Value| site.send("POST", &path, Some(&token), body).await;
    let shout = id(&site.says(&eve, "BEN IS A FISH").await);
    let status = format!("/api/v1/statuses/{shout}");
    let of_status = format!("/api/tideline/v1/statuses/{shout}/moderate");
    let of_account = |id: &str| format!("/api/tideline/v1/accounts/{id}/state");
    // The token allows it, her role doesn't.
    assert_eq!(say(of_status.clone(), json!({ "hidden": true })).await.status, 403);
    assert_eq!(say(of_account(&eve.id), json!({ "becomes": "suspended" })).await.status, 403);
    let account = |person: &Person| AccountId::new(person.id.parse().unwrap()).unwrap();
    for (person, role) in [(&ada, AccountRole::Moderator), (&ben, AccountRole::Moderator)] {
        set_role(site.registration(), account(person), role).await.unwrap();
    }

    assert_eq!(say(of_status.clone(), json!({})).await.status, 422, "it says nothing");
    assert_eq!(
        say("/api/tideline/v1/statuses/77/moderate".into(), json!({ "hidden": true })).await.status,
        404
    );
    say(of_status.clone(), json!({ "hidden": true })).await.ok();
    assert_eq!(site.get(&ben, &status).await.status, 404);
    site.get(&eve, &status).await.ok();
    say(of_status, json!({ "hidden": false, "sensitive": true })).await.ok();
    eventually("it shows again", async || {
        let shown = site.get(&ben, &status).await;
        shown.status == 200 && shown.body["sensitive"] == json!(true)
    })
    .await;

    assert_eq!(say(of_account(&eve.id), json!({ "becomes": "deleted" })).await.status, 422);
    assert_eq!(say(of_account("77"), json!({ "becomes": "active" })).await.status, 404);
    for peer in [&ben, &ada] {
        assert_eq!(say(of_account(&peer.id), json!({ "becomes": "suspended" })).await.status, 403);
    }
    say(of_account(&eve.id), json!({ "becomes": "suspended" })).await.ok();
    eventually("who is suspended is logged out", async || site.get(&eve, &status).await.status == 401).await;
    say(of_account(&eve.id), json!({ "becomes": "limited" })).await.ok();
    let limited = site.get(&ben, &format!("/api/v1/accounts/{}", eve.id)).await.ok();
    assert_eq!((&limited["limited"], limited.get("suspended")), (&json!(true), None));
    say(of_account(&eve.id), json!({ "becomes": "active" })).await.ok();
    site.end().await;
}

#[tokio::test]
async fn a_report_that_is_sent_again_is_the_same_one_and_too_many_are_refused() {
    let site = Served::start().await;
    let (ben, eve) = (site.sign_up("ben").await, site.sign_up("eve").await);
    let report = json!({ "account_id": eve.id, "comment": "shouts" });
    let bearer = format!("Bearer {}", ben.token);
    let again = async || {
        let headers = [
            ("Content-Type", "application/json"),
            ("Authorization", bearer.as_str()),
            ("Idempotency-Key", "one"),
        ];
        let sent = site.connect().await.send("POST", "/api/v1/reports", &headers, &report.to_string()).await;
        serde_json::from_slice::<Value>(&sent.body).unwrap()
    };
    assert_eq!(id(&again().await), id(&again().await));
    // The reporter's bucket counts what is open: ten of one reporter.
    let mut statuses = Vec::new();
    for _ in 0..10 {
        statuses.push(site.post(&ben, "/api/v1/reports", report.clone()).await.status);
    }
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 9, "{statuses:?}");
    assert_eq!(statuses.last(), Some(&422), "{statuses:?}");
    site.end().await;
}

/// Whoever is reported must not learn by whom.
#[tokio::test]
async fn a_moderator_reads_no_report_about_itself_or_who_ranks_as_high() {
    let site = Served::start().await;
    let (ada, ben, eve) = (site.sign_up("ada").await, site.sign_up("ben").await, site.sign_up("eve").await);
    let moderator = AccountId::new(ada.id.parse().unwrap()).unwrap();
    set_role(site.registration(), moderator, AccountRole::Moderator).await.unwrap();
    for about in [&ada, &eve] {
        site.post(&ben, "/api/v1/reports", json!({ "account_id": about.id, "comment": "rude" })).await.ok();
    }
    let scopes = "read admin:read:reports admin:read:accounts";
    let token = site.token(&site.application(scopes).await, "ada", scopes).await;
    let told = async |path: &str| site.send("GET", path, Some(&token), Value::Null).await;
    let queue = "/api/tideline/v1/reports";
    let limits = format!("/api/tideline/v1/accounts/{}/limits", ada.id);
    let about = async || each(&told(queue).await.ok()["reports"], "target_account_id");
    assert_eq!(about().await, std::slice::from_ref(&eve.id));
    assert_eq!(told(&format!("{queue}?account_id={}", ada.id)).await.status, 403);
    assert_eq!(told(&limits).await.status, 403);
    // Who runs the site sees all; and what is about somebody who is gone waits for somebody, too.
    set_role(site.registration(), moderator, AccountRole::Admin).await.unwrap();
    assert_eq!(about().await.len(), 2);
    told(&limits).await.ok();
    set_role(site.registration(), moderator, AccountRole::Moderator).await.unwrap();
    let gone = AccountId::new(eve.id.parse().unwrap()).unwrap();
    site.engine().delete_account(gone).await.unwrap();
    assert_eq!(about().await, [eve.id]);
    site.end().await;
}
