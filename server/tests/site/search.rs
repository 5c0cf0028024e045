//! Searching, what an account says of itself by yes or no, and what posts have said before.

use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use serde_json::json;
use tideline_server::service;

use super::served::{Served, URL, each, id};

#[tokio::test]
async fn people_and_hashtags_are_found_by_how_they_begin_as_soon_as_they_are_there() {
    let site = Served::start().await;
    let (ada, adam) = (site.sign_up("ada").await, site.sign_up("adam").await);
    let ben = site.sign_up("ben").await;
    site.post(&ben, &format!("/api/v1/accounts/{}/follow", adam.id), json!({})).await.ok();
    let found = async |query: &str| {
        each(&site.get(&ben, &format!("/api/v1/accounts/search?q={query}")).await.ok(), "username")
    };
    assert_eq!(found("ad").await.len(), 2);
    assert_eq!(found("ADA").await, ["ada", "adam"], "the whole name first");
    assert_eq!(found("@ada@tide.example").await, ["ada", "adam"]);
    assert_eq!(found("ada@elsewhere.example").await, Vec::<String>::new());
    for page in ["@ada", "users/ada"] {
        assert_eq!(found(&format!("{URL}/{page}")).await.first().map(String::as_str), Some("ada"), "{page}");
    }
    assert_eq!(found("ad&limit=1").await.len(), 1);
    assert_eq!(found("ad&offset=1").await.len(), 1);
    assert_eq!(found("ad&offset=2").await, Vec::<String>::new());
    assert_eq!(found("ad&following=true").await, ["adam"]);
    let update = json!({ "display_name": "Countess" });
    site.send("PATCH", "/api/v1/accounts/update_credentials", Some(&ada.token), update).await.ok();
    assert_eq!(found("count").await, ["ada"]);

    for text in ["#tide_z", "#tide_x", "#tide_y"] {
        site.says(&ada, text).await;
    }
    let found = site.get(&ben, "/api/v2/search?q=%23tide").await.ok();
    assert_eq!(each(&found["hashtags"], "name"), ["tide_x", "tide_y", "tide_z"]);
    assert_eq!(found["accounts"], json!([]));
    let only = site.get(&ben, "/api/v2/search?q=ad&type=accounts").await.ok();
    assert_eq!((each(&only["accounts"], "username").len(), &only["hashtags"]), (2, &json!([])));
    site.end().await;
}

/// The lists of names are written after the answer: who looked at once might miss whom it had just heard of.
#[tokio::test]
async fn whoever_has_come_or_has_another_name_is_found_at_once() {
    let recorder = DebuggingRecorder::new();
    let figures = recorder.snapshotter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let site = Served::start().await;
    let ada = site.sign_up("ada").await;
    let service = service::create(site.registration(), "walker", "read write").await.unwrap();
    // Calls that have waited for what they left, since it was asked last: on a quick machine nothing else shows it.
    let have_waited = || {
        let all = figures.snapshot().into_vec().into_iter();
        all.filter_map(|(key, _, _, value)| match value {
            DebugValue::Counter(calls) if key.key().name() == "tideline_calls_settled_total" => Some(calls),
            _ => None,
        })
        .sum::<u64>()
    };
    let found = async |query: &str| {
        each(&site.get(&ada, &format!("/api/v1/accounts/search?q={query}")).await.ok(), "username")
    };
    for n in 0..8 {
        let name = format!("newcomer{n}");
        have_waited();
        let new = site.sign_up(&name).await;
        assert!(have_waited() > 0, "signing up");
        assert_eq!(found(&name).await, [name.as_str()]);
        let update = json!({ "display_name": format!("renamed{n}") });
        site.send("PATCH", "/api/v1/accounts/update_credentials", Some(&new.token), update).await.ok();
        assert!(have_waited() > 0, "another name");
        assert_eq!(found(&format!("renamed{n}")).await, [name]);
        let asked =
            json!({ "id": 1_000 + n, "username": format!("user{n}"), "display_name": format!("shown{n}") });
        site.send("POST", "/api/tideline/v1/accounts", Some(&service), asked).await.ok();
        assert!(have_waited() > 0, "a service's");
        assert_eq!(found(&format!("shown{n}")).await, [format!("user{n}")]);
    }
    site.end().await;
}

#[tokio::test]
async fn what_an_account_says_by_yes_or_no_is_shown_and_kept_to() {
    let site = Served::start().await;
    let (ada, ben) = (site.sign_up("ada").await, site.sign_up("ben").await);
    site.post(&ben, &format!("/api/v1/accounts/{}/follow", ada.id), json!({})).await.ok();
    let page = format!("/api/v1/accounts/{}", ada.id);
    let before = site.guest(&page).await.ok();
    assert_eq!((&before["bot"], &before["discoverable"]), (&json!(false), &json!(null)));
    let update = async |update| {
        site.send("PATCH", "/api/v1/accounts/update_credentials", Some(&ada.token), update).await.ok()
    };
    let me = update(json!({ "bot": true, "discoverable": false, "hide_collections": true })).await;
    assert_eq!((&me["bot"], &me["source"]["discoverable"]), (&json!(true), &json!(false)));
    let me = update(json!({ "discoverable": "1", "indexable": "true" })).await;
    assert_eq!((&me["bot"], &me["source"]["hide_collections"]), (&json!(true), &json!(true)));
    let shown = site.guest(&page).await.ok();
    assert_eq!(
        (&shown["bot"], &shown["discoverable"], &shown["indexable"]),
        (&json!(true), &json!(true), &json!(true))
    );
    let followers = format!("{page}/followers");
    assert_eq!(site.get(&ben, &followers).await.ok(), json!([]));
    assert_eq!(each(&site.get(&ada, &followers).await.ok(), "username"), ["ben"]);
    site.end().await;
}

#[tokio::test]
async fn a_post_tells_what_it_said_before_each_edit() {
    let site = Served::start().await;
    let (ada, ben) = (site.sign_up("ada").await, site.sign_up("ben").await);
    let status = site.says(&ada, "low tide").await;
    let path = format!("/api/v1/statuses/{}", id(&status));
    let history = async || site.get(&ben, &format!("{path}/history")).await.ok();
    assert_eq!(status["edited_at"], json!(null));
    assert_eq!(each(&history().await, "content"), ["<p>low tide</p>"]);
    for edit in [
        json!({ "status": "high <tide>", "spoiler_text": "sea" }),
        json!({ "status": "high <tide>", "spoiler_text": "sea" }),
    ] {
        let edited = site.send("PUT", &path, Some(&ada.token), edit).await.ok();
        assert!(edited["edited_at"].is_string(), "{edited}");
    }
    for later in [json!({ "media_ids": ["1"] }), json!({ "poll": { "options": ["a", "b"] } })] {
        assert_eq!(site.send("PUT", &path, Some(&ada.token), later).await.status, 422);
    }
    let told = history().await;
    assert_eq!(each(&told, "content"), ["<p>low tide</p>", "<p>high &lt;tide&gt;</p>"]);
    assert_eq!(each(&told, "spoiler_text"), ["", "sea"]);
    assert_eq!(told[0]["created_at"], status["created_at"]);
    assert_eq!(told[1]["created_at"], site.guest(&path).await.ok()["edited_at"]);
    assert_eq!(each(&json!([told[1]["account"]]), "username"), ["ada"]);
    site.end().await;
}
