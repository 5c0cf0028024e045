//! What somebody is told of what others did, and how far it has read.

use serde_json::{Value, json};

use super::served::{Served, URL, each, id};

#[tokio::test]
async fn who_is_told_of_what_sees_who_did_it_and_where() {
    let site = Served::start().await;
    let (ada, ben) = (site.sign_up("ada").await, site.sign_up("ben").await);
    let all = async || site.get(&ada, "/api/v1/notifications").await.ok();
    assert_eq!(all().await, json!([]));
    let status = site.says(&ada, "low tide").await;
    site.post(&ben, &format!("/api/v1/accounts/{}/follow", ada.id), json!({})).await.ok();
    for act in ["favourite", "reblog"] {
        site.post(&ben, &format!("/api/v1/statuses/{}/{act}", id(&status)), json!({})).await.ok();
    }
    let mention = site.says(&ben, "@ada so it was").await;
    let told = all().await;
    assert_eq!(each(&told, "type"), ["mention", "reblog", "favourite", "follow"]);
    assert_eq!(told[0]["status"]["content"], mention["content"]);
    assert_eq!((id(&told[1]["status"]), id(&told[2]["status"])), (id(&status), id(&status)));
    assert!(told[3].get("status").is_none());
    assert_eq!(told[2]["group_key"], format!("favourite-{}", id(&status)));
    assert_eq!(told[3]["group_key"], format!("ungrouped-{}", id(&told[3])));
    for one in told.as_array().unwrap() {
        assert_eq!(one["account"]["username"], "ben");
        assert!(one["created_at"].as_str().unwrap().ends_with('Z'));
        let path = format!("/api/v1/notifications/{}", id(one));
        assert_eq!(site.get(&ada, &path).await.ok(), *one);
        // It is nobody else's affair.
        assert_eq!(site.get(&ben, &path).await.status, 404);
    }
    assert_eq!(site.get(&ben, "/api/v1/notifications").await.ok(), json!([]));

    let types = async |query: &str| {
        each(&site.get(&ada, &format!("/api/v1/notifications?{query}")).await.ok(), "type")
    };
    assert_eq!(types("types[]=follow&types[]=mention").await, ["mention", "follow"]);
    assert_eq!(types("exclude_types[]=follow&exclude_types[]=reblog").await, ["mention", "favourite"]);
    assert_eq!(types("types[]=poll").await, Vec::<String>::new());
    assert_eq!(types(&format!("account_id={}", ben.id)).await.len(), 4);
    assert_eq!(types(&format!("account_id={}", ada.id)).await.len(), 0);
    assert_eq!(types("account_id=nobody").await.len(), 0);
    let page = site.get(&ada, "/api/v1/notifications?limit=2").await;
    let base = format!("<{URL}/api/v1/notifications?limit=2");
    let link = format!(
        "{base}&max_id={}>; rel=\"next\", {base}&min_id={}>; rel=\"prev\"",
        id(&told[1]),
        id(&told[0])
    );
    assert_eq!((each(&page.body, "type"), page.link), (vec!["mention".into(), "reblog".into()], Some(link)));
    assert_eq!(types(&format!("limit=1&min_id={}", id(&told[3]))).await, ["favourite"]);
    assert_eq!(types(&format!("limit=1&since_id={}", id(&told[3]))).await, ["mention"]);
    assert_eq!(types(&format!("max_id={}", id(&told[2]))).await, ["follow"]);
    assert_eq!(types("max_id=9223372036854775807").await.len(), 4);
    assert_eq!(types("min_id=9223372036854775807").await.len(), 0);

    site.post(&ben, &format!("/api/v1/statuses/{}/unfavourite", id(&status)), json!({})).await.ok();
    let dismiss = format!("/api/v1/notifications/{}/dismiss", id(&told[1]));
    assert_eq!(site.post(&ada, &dismiss, json!({})).await.ok(), json!({}));
    assert_eq!(site.post(&ada, &dismiss, json!({})).await.status, 404);
    assert_eq!(each(&all().await, "type"), ["mention", "follow"]);
    let named = json!({ "id": id(&told[0]) });
    assert_eq!(site.post(&ada, "/api/v1/notifications/dismiss", named).await.ok(), json!({}));
    assert_eq!(site.post(&ada, "/api/v1/notifications/clear", json!({})).await.ok(), json!({}));
    assert_eq!(all().await, json!([]));
    for path in ["/api/v1/notifications", "/api/v1/notifications/1", "/api/v1/notifications/unread_count"] {
        assert_eq!(site.guest(path).await.status, 401, "{path}");
    }
    assert_eq!(site.get(&ada, "/api/v1/notifications/99999999999999999").await.status, 404);
    site.end().await;
}

#[tokio::test]
async fn what_is_unread_is_counted_from_where_somebody_has_read_to() {
    let site = Served::start().await;
    let (ada, ben) = (site.sign_up("ada").await, site.sign_up("ben").await);
    for n in 0..3 {
        site.says(&ben, &format!("@ada {n}")).await;
    }
    let count = async |query: &str| {
        site.get(&ada, &format!("/api/v1/notifications/unread_count{query}")).await.ok()["count"].clone()
    };
    assert_eq!(
        (count("").await, count("?limit=2").await, count("?types[]=follow").await),
        (json!(3), json!(2), json!(0))
    );
    let told = site.get(&ada, "/api/v1/notifications").await.ok();
    let markers = "/api/v1/markers?timeline[]=notifications&timeline[]=home";
    assert_eq!(site.get(&ada, markers).await.ok(), json!({}));
    let read = json!({ "notifications": { "last_read_id": id(&told[1]) } });
    let marked = site.post(&ada, "/api/v1/markers", read).await.ok();
    assert_eq!(marked["notifications"]["last_read_id"], told[1]["id"]);
    assert_eq!((marked["notifications"]["version"].as_u64(), marked.get("home")), (Some(0), None));
    assert_eq!(count("").await, 1);
    let read = json!({ "home": { "last_read_id": "7" }, "notifications": { "last_read_id": id(&told[0]) } });
    site.post(&ada, "/api/v1/markers", read).await.ok();
    let marked: Value = site.get(&ada, markers).await.ok();
    assert_eq!(
        (&marked["home"]["last_read_id"], &marked["notifications"]["version"]),
        (&json!("7"), &json!(1))
    );
    assert_eq!(count("").await, 0);

    // Who mutes somebody may be told of it all the same; the last word counts.
    let mute = async |asked: Value| {
        let stands = site.post(&ada, &format!("/api/v1/accounts/{}/mute", ben.id), asked).await.ok();
        assert_eq!(stands["muting"], true);
        let told = each(&site.get(&ada, "/api/v1/notifications").await.ok(), "type").len();
        (stands["muting_notifications"].as_bool().unwrap(), stands["muting_expires_at"].is_null(), told)
    };
    assert_eq!(mute(json!({ "notifications": false })).await, (false, true, 3));
    site.says(&ben, "@ada 3").await;
    assert_eq!(count("").await, 1);
    assert_eq!(mute(json!({ "notifications": false, "duration": 3600 })).await, (false, false, 4));
    assert_eq!(mute(json!({ "duration": 3600 })).await, (true, false, 0));
    assert_eq!(mute(json!({ "notifications": false })).await, (false, true, 4));
    assert_eq!(mute(json!({})).await, (true, true, 0));
    // Its posts stay hidden either way.
    mute(json!({ "notifications": false })).await;
    site.post(&ada, &format!("/api/v1/accounts/{}/follow", ben.id), json!({})).await.ok();
    assert_eq!(site.get(&ada, "/api/v1/timelines/home").await.ok(), json!([]));
    let unmuted = site.post(&ada, &format!("/api/v1/accounts/{}/unmute", ben.id), json!({})).await.ok();
    assert_eq!((&unmuted["muting"], &unmuted["muting_notifications"]), (&json!(false), &json!(false)));
    assert_eq!(site.get(&ada, "/api/v1/markers?timeline[]=home").await.ok().as_object().unwrap().len(), 1);
    site.end().await;
}

#[tokio::test]
async fn a_locked_account_is_told_of_requests_and_of_follows_once_it_has_answered() {
    let site = Served::start().await;
    let (ada, ben) = (site.sign_up("ada").await, site.sign_up("ben").await);
    let locked = json!({ "locked": true });
    site.send("PATCH", "/api/v1/accounts/update_credentials", Some(&ada.token), locked).await.ok();
    site.post(&ben, &format!("/api/v1/accounts/{}/follow", ada.id), json!({})).await.ok();
    let told = async || each(&site.get(&ada, "/api/v1/notifications").await.ok(), "type");
    assert_eq!(told().await, ["follow_request"]);
    site.post(&ada, &format!("/api/v1/follow_requests/{}/authorize", ben.id), json!({})).await.ok();
    assert_eq!(told().await, ["follow"]);
    site.end().await;
}

#[tokio::test]
async fn nothing_is_told_of_a_conversation_that_is_muted() {
    let site = Served::start().await;
    let (ada, ben, cid) = (site.sign_up("ada").await, site.sign_up("ben").await, site.sign_up("cid").await);
    let root = site.says(&ben, "low tide").await;
    let answers = async |who, to: &Value, text: &str| {
        let status = json!({ "status": text, "in_reply_to_id": id(to) });
        site.post(who, "/api/v1/statuses", status).await.ok()
    };
    let mine = answers(&ada, &root, "so it is").await;
    let answer = answers(&ben, &mine, "@ada is it?").await;
    site.post(&ben, &format!("/api/v1/statuses/{}/favourite", id(&mine)), json!({})).await.ok();
    let elsewhere = site.says(&cid, "@ada hey").await;
    let told = async || each(&site.get(&ada, "/api/v1/notifications").await.ok(), "type");
    let unread = async || site.get(&ada, "/api/v1/notifications/unread_count").await.ok()["count"].clone();
    assert_eq!(told().await, ["mention", "favourite", "mention"]);
    assert_eq!(unread().await, 3);

    // By any status of it, also somebody else's.
    let act = async |act: &str, status: &Value| {
        site.post(&ada, &format!("/api/v1/statuses/{}/{act}", id(status)), json!({})).await.ok()["muted"]
            .clone()
    };
    assert_eq!(act("mute", &answer).await, true);
    let later = answers(&ben, &answer, "@ada yes").await;
    assert_eq!((told().await, unread().await), (vec!["mention".to_owned()], json!(1)));
    let muted = async |who, status: &Value| {
        site.get(who, &format!("/api/v1/statuses/{}", id(status))).await.ok()["muted"].clone()
    };
    for status in [&root, &mine, &answer, &later] {
        assert_eq!(muted(&ada, status).await, true);
        assert_eq!(muted(&ben, status).await, false);
    }
    assert_eq!(muted(&ada, &elsewhere).await, false);
    // Pages are text that others share; this is the reader's own.
    let context = site.get(&ada, &format!("/api/v1/statuses/{}/context", id(&mine))).await.ok();
    assert_eq!(each_flag(&context["ancestors"]), [true]);
    let home = site.get(&ada, "/api/v1/timelines/home").await.ok();
    assert_eq!(each_flag(&home), [true]);
    let of_ben = format!("/api/v1/accounts/{}/statuses", ben.id);
    assert_eq!(each_flag(&site.get(&ada, &of_ben).await.ok()), [true; 3]);
    assert_eq!(each_flag(&site.get(&cid, &of_ben).await.ok()), [false; 3]);
    assert_eq!(each_flag(&site.guest(&of_ben).await.ok()), [false; 3]);

    assert_eq!(act("unmute", &root).await, false);
    assert_eq!(told().await, ["mention", "mention", "favourite", "mention"]);
    for act in ["mute", "unmute"] {
        assert_eq!(site.post(&ada, &format!("/api/v1/statuses/1/{act}"), json!({})).await.status, 404);
        let path = format!("/api/v1/statuses/{}/{act}", id(&root));
        assert_eq!(site.send("POST", &path, None, json!({})).await.status, 401);
    }
    site.end().await;
}

fn each_flag(statuses: &Value) -> Vec<bool> {
    statuses.as_array().unwrap().iter().map(|status| status["muted"].as_bool().unwrap()).collect()
}
