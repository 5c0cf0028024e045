//! Groups, as clients that know nothing of them and calls of our own find them.

use serde_json::{Value, json};

use super::posts::eventually;
use super::served::{Person, Served, each, id};

const GROUPS: &str = "/api/tideline/v1/groups";

/// Of a private group with three members one is, and another one is not in it.
async fn members_alone_see_who_is_in(site: &Served, group: &str, (one, other): (&Person, &Person)) {
    let members = format!("/api/v1/accounts/{group}/followers");
    for told in [site.get(other, &members).await.ok(), site.guest(&members).await.ok()] {
        assert_eq!(told, json!([]));
    }
    assert_eq!(each(&site.get(one, &members).await.ok(), "username").len(), 3);
    let staff = format!("{GROUPS}/{group}/staff");
    assert_eq!(site.guest(&staff).await.status, 403);
    assert_eq!(site.get(other, &staff).await.status, 403);
    assert_eq!(site.get(one, &staff).await.ok()[0]["role"], json!("owner"));
}

/// As of any other post.
async fn its_writer_is_told_who_likes_it(
    site: &Served,
    (group, post): (&str, &str),
    (writer, liker): (&Person, &Person),
) {
    site.post(liker, &format!("/api/v1/statuses/{post}/favourite"), Value::Null).await.ok();
    let told = site.get(writer, "/api/v1/notifications?types[]=favourite").await.ok();
    assert_eq!(each(&told, "type"), ["favourite"]);
    assert_eq!(
        (&told[0]["account"]["username"], &told[0]["status"]["id"], &told[0]["status"]["group"]["id"]),
        (&json!("cleo"), &json!(post), &json!(group))
    );
}

#[tokio::test]
async fn who_follows_a_group_is_in_it_and_who_mentions_it_posts_there() {
    let site = Served::start().await;
    let (ada, ben, cleo) = (site.sign_up("ada").await, site.sign_up("ben").await, site.sign_up("cleo").await);
    let new = json!({ "username": "sailors", "display_name": "The sailors", "locked": true });
    let made = site.post(&ada, GROUPS, new.clone()).await.ok();
    let is_group = made["username"] == "sailors" && made["group"] == true && made["locked"] == true;
    assert!(is_group && made["created_at"].as_str().unwrap() > "2020", "{made}");
    assert_eq!(site.post(&ben, GROUPS, new).await.status, 422, "the name is taken");
    let group = id(&made);
    let of = |what: &str| format!("{GROUPS}/{group}/{what}");
    let follow = format!("/api/v1/accounts/{group}/follow");

    // Ben asks, and is let in; Cleo was invited.
    assert_eq!(site.post(&ben, &follow, Value::Null).await.ok()["requested"], json!(true));
    assert_eq!(each(&site.get(&ada, &of("requests")).await.ok(), "username"), ["ben"]);
    assert_eq!(site.get(&cleo, &of("requests")).await.status, 403);
    let (ben_alone, cleo_alone) = (json!({ "account_id": ben.id }), json!({ "account_id": cleo.id }));
    assert_eq!(site.post(&cleo, &of("authorize"), ben_alone.clone()).await.status, 403);
    site.post(&ada, &of("authorize"), ben_alone.clone()).await.ok();
    site.post(&ada, &of("invite"), cleo_alone.clone()).await.ok();
    assert_eq!(site.post(&cleo, &follow, Value::Null).await.ok()["following"], json!(true));

    let said = site.says(&ben, "Who sails tomorrow, @sailors?").await;
    assert_eq!((&said["account"]["username"], &said["group"]["id"]), (&json!("ben"), &json!(group)));
    assert_eq!(said["visibility"], json!("private"));
    let (first, path) = (id(&said), format!("/api/v1/statuses/{}", id(&said)));
    let home = site.get(&cleo, "/api/v1/timelines/home").await.ok();
    assert_eq!(each(&home, "id"), std::slice::from_ref(&first));
    let answer = json!({ "status": "I do", "in_reply_to_id": first, "visibility": "public" });
    let answer = site.post(&cleo, "/api/v1/statuses", answer).await.ok();
    assert_eq!((&answer["group"]["username"], &answer["visibility"]), (&json!("sailors"), &json!("private")));
    assert_eq!((&answer["in_reply_to_id"], &answer["in_reply_to_account_id"]), (&json!(first), &Value::Null));
    let page = site.get(&ben, &format!("/api/v1/accounts/{group}/statuses")).await.ok();
    assert_eq!(each(&page, "id"), [id(&answer), first.clone()]);
    its_writer_is_told_who_likes_it(&site, (&group, &first), (&ben, &cleo)).await;
    // Who is no member posts as ever, and sees nothing of it.
    let dan = site.sign_up("dan").await;
    let to_members = json!({ "status": "the code is 1234, @sailors" });
    let refused = site.post(&dan, "/api/v1/statuses", to_members).await;
    let is_told = refused.body["error"].as_str().unwrap().contains("private");
    assert!(refused.status == 403 && is_told, "{:?}", refused.body);
    assert_eq!(site.get(&dan, &path).await.status, 404);
    assert_eq!(site.get(&dan, &format!("/api/v1/accounts/{group}/statuses")).await.ok(), json!([]));
    members_alone_see_who_is_in(&site, &group, (&ben, &dan)).await;

    // Its writer changes it, the staff takes it away.
    let changed =
        site.send("PUT", &path, Some(&ben.token), json!({ "status": "Who sails today?" })).await.ok();
    assert_eq!((&changed["account"]["username"], &changed["group"]["id"]), (&json!("ben"), &json!(group)));
    assert_eq!(
        site.send("DELETE", &of(&format!("statuses/{first}")), Some(&cleo.token), Value::Null).await.status,
        404
    );
    let role = json!({ "account_id": cleo.id, "role": "moderator" });
    assert_eq!(site.post(&ben, &of("roles"), role.clone()).await.status, 403);
    site.post(&ada, &of("roles"), role).await.ok();
    let staff = site.get(&ben, &of("staff")).await.ok();
    let roles: Vec<_> = staff.as_array().unwrap().iter().map(|of| of["role"].as_str().unwrap()).collect();
    assert!(roles.contains(&"owner") && roles.contains(&"moderator") && roles.len() == 2, "{staff}");
    site.send("DELETE", &of(&format!("statuses/{first}")), Some(&cleo.token), Value::Null).await.ok();
    assert_eq!(site.get(&ben, &path).await.status, 404);

    // Who is turned out sees nothing more; the last owner can't leave, and is told why.
    let answered = format!("/api/v1/statuses/{}", id(&answer));
    site.get(&ben, &answered).await.ok();
    site.post(&cleo, &of("ban"), ben_alone.clone()).await.ok();
    assert_eq!(site.get(&ben, &answered).await.status, 404);
    assert_eq!(site.post(&ben, &follow, Value::Null).await.status, 403);
    site.post(&cleo, &of("unban"), ben_alone).await.ok();
    let left = site.post(&ada, &format!("/api/v1/accounts/{group}/unfollow"), Value::Null).await;
    assert_eq!(left.status, 403);
    assert!(left.body["error"].as_str().unwrap().contains("last owner"), "{:?}", left.body);
    assert_eq!(site.post(&ada, &format!("/api/v1/accounts/{group}/block"), Value::Null).await.status, 403);
    let left = site.post(&cleo, &format!("/api/v1/accounts/{group}/unfollow"), Value::Null).await.ok();
    assert_eq!(left["following"], json!(false));
    assert_eq!(site.get(&cleo, &answered).await.status, 404, "not even what it wrote itself");
    site.end().await;
}

#[tokio::test]
async fn what_is_meant_for_fewer_than_a_group_reaches_stays_outside_of_it() {
    let site = Served::start().await;
    let (ada, dan) = (site.sign_up("ada").await, site.sign_up("dan").await);
    assert_eq!(site.post(&ada, GROUPS, json!({})).await.status, 422, "it needs a name");
    let open = id(&site.post(&ada, GROUPS, json!({ "username": "divers" })).await.ok());
    // Nobody is told that it was said to a group, while only its writer sees it.
    let direct = json!({ "status": "hello @divers", "visibility": "direct" });
    let refused = site.post(&dan, "/api/v1/statuses", direct).await;
    assert_eq!(refused.status, 422);
    assert!(refused.body["error"].as_str().unwrap().contains("directly"), "{:?}", refused.body);
    // Whoever is no member mentions it.
    let said = site.says(&dan, "I would like to dive, @divers").await;
    assert_eq!((said.get("group"), &said["visibility"]), (None, &json!("public")));
    site.post(&dan, &format!("/api/v1/accounts/{open}/follow"), Value::Null).await.ok();
    for (visibility, is_in) in [("private", false), ("public", true)] {
        let said = json!({ "status": "down we go, @divers", "visibility": visibility });
        let said = site.post(&dan, "/api/v1/statuses", said).await.ok();
        assert_eq!((said.get("group").is_some(), &said["visibility"]), (is_in, &json!(visibility)));
    }
    site.end().await;
}

/// Whoever was turned out meanwhile posted it a second time, or was told that it wasn't posted.
#[tokio::test]
async fn what_is_sent_again_goes_where_it_went() {
    let site = Served::start().await;
    let (ada, ben) = (site.sign_up("ada").await, site.sign_up("ben").await);
    for (name, is_private) in [("runners", false), ("readers", true)] {
        let group = json!({ "username": name, "locked": is_private });
        let group = id(&site.post(&ada, GROUPS, group).await.ok());
        let alone = json!({ "account_id": ben.id });
        site.post(&ada, &format!("{GROUPS}/{group}/invite"), alone.clone()).await.ok();
        site.post(&ben, &format!("/api/v1/accounts/{group}/follow"), Value::Null).await.ok();
        let say = async || {
            let bearer = format!("Bearer {}", ben.token);
            let headers = [
                ("Content-Type", "application/json"),
                ("Authorization", bearer.as_str()),
                ("Idempotency-Key", name),
            ];
            let body = json!({ "status": format!("Hello @{name}") }).to_string();
            let answer = site.connect().await.send("POST", "/api/v1/statuses", &headers, &body).await;
            (answer.status, serde_json::from_slice::<Value>(&answer.body).unwrap())
        };
        let (_, said) = say().await;
        assert_eq!(said["group"]["id"], json!(group));
        site.post(&ada, &format!("{GROUPS}/{group}/remove"), alone).await.ok();
        let (status, again) = say().await;
        assert!(status == 200 && again["id"] == said["id"], "{name}: {again}");
    }
    site.end().await;
}

#[tokio::test]
async fn an_owner_changes_a_group_and_deletes_it_with_all_that_was_posted_there() {
    let site = Served::start().await;
    let (ada, ben, cleo) = (site.sign_up("ada").await, site.sign_up("ben").await, site.sign_up("cleo").await);
    let group = json!({ "username": "climbers", "locked": true });
    let group = id(&site.post(&ada, GROUPS, group).await.ok());
    let path = format!("{GROUPS}/{group}");
    let follow = format!("/api/v1/accounts/{group}/follow");
    assert_eq!(site.post(&ben, &follow, Value::Null).await.ok()["requested"], json!(true));
    let role = json!({ "account_id": cleo.id, "role": "moderator" });
    site.post(&ada, &format!("{path}/invite"), json!({ "account_id": cleo.id })).await.ok();
    site.post(&cleo, &follow, Value::Null).await.ok();
    site.post(&ada, &format!("{path}/roles"), role).await.ok();

    // Its owners alone, and only what can be so.
    let new = json!({ "display_name": "The climbers", "note": "up", "locked": false });
    for other in [&ben, &cleo] {
        assert_eq!(site.send("PATCH", &path, Some(&other.token), new.clone()).await.status, 403);
        assert_eq!(site.send("DELETE", &path, Some(&other.token), Value::Null).await.status, 403);
    }
    let long = json!({ "display_name": "x".repeat(2_000) });
    assert_eq!(site.send("PATCH", &path, Some(&ada.token), long).await.status, 422);
    let nobodys = format!("{GROUPS}/{}", ada.id);
    assert_eq!(site.send("DELETE", &nobodys, Some(&ada.token), Value::Null).await.status, 422, "no group");
    let was = site.guest(&format!("/api/v1/accounts/{group}")).await.ok();
    assert_eq!((&was["display_name"], &was["locked"]), (&json!(""), &json!(true)));

    let changed = site.send("PATCH", &path, Some(&ada.token), new).await.ok();
    assert_eq!(
        (&changed["display_name"], &changed["locked"], &changed["group"]),
        (&json!("The climbers"), &json!(false), &json!(true))
    );
    // It is private no more, so who has asked is in.
    let relation = format!("/api/v1/accounts/relationships?id[]={group}");
    let is_in = async || site.get(&ben, &relation).await.ok()[0]["following"] == json!(true);
    eventually("who has asked is in", is_in).await;
    let said = site.says(&ben, "Who climbs today, @climbers?").await;
    assert_eq!((&said["group"]["id"], &said["visibility"]), (&json!(group), &json!("public")));

    let said = format!("/api/v1/statuses/{}", id(&said));
    site.guest(&said).await.ok();
    site.send("DELETE", &path, Some(&ada.token), Value::Null).await.ok();
    // Who has just seen it may see it for another second.
    eventually("what was posted there is gone", async || site.guest(&said).await.status == 404).await;
    assert_eq!(site.guest(&format!("/api/v1/accounts/{group}")).await.status, 404);
    assert_eq!(site.send("DELETE", &path, Some(&ada.token), Value::Null).await.status, 404);
    let alone = site.says(&ben, "Is anybody there, @climbers?").await;
    assert_eq!(alone.get("group"), None);
    site.end().await;
}

/// Its staff looks after it, whatever it shows to others; and whoever is turned out has said nothing of it any more.
#[tokio::test]
async fn a_groups_staff_sees_who_is_in_and_who_is_turned_out_has_it_on_no_list() {
    let site = Served::start().await;
    let (ada, ben) = (site.sign_up("ada").await, site.sign_up("ben").await);
    let group = id(&site.post(&ada, GROUPS, json!({ "username": "rowers" })).await.ok());
    let follow = format!("/api/v1/accounts/{group}/follow");
    site.post(&ben, &follow, Value::Null).await.ok();
    let hides = json!({ "hide_collections": true });
    site.send("PATCH", &format!("{GROUPS}/{group}"), Some(&ada.token), hides).await.ok();
    let members = format!("/api/v1/accounts/{group}/followers");
    assert_eq!(each(&site.get(&ada, &members).await.ok(), "username").len(), 2);
    for told in [site.get(&ben, &members).await.ok(), site.guest(&members).await.ok()] {
        assert_eq!(told, json!([]));
    }

    let list = id(&site.post(&ben, "/api/v1/lists", json!({ "title": "sport" })).await.ok());
    let on_list = format!("/api/v1/lists/{list}/accounts");
    let ben_alone = json!({ "account_id": ben.id });
    for turned_out in ["remove", "ban"] {
        site.post(&ben, &on_list, json!({ "account_ids": [group] })).await.ok();
        assert_eq!(each(&site.get(&ben, &on_list).await.ok(), "username"), ["rowers"]);
        site.post(&ada, &format!("{GROUPS}/{group}/{turned_out}"), ben_alone.clone()).await.ok();
        if turned_out == "ban" {
            site.post(&ada, &format!("{GROUPS}/{group}/unban"), ben_alone.clone()).await.ok();
        }
        site.post(&ben, &follow, Value::Null).await.ok();
        assert_eq!(site.get(&ben, &on_list).await.ok(), json!([]), "{turned_out}");
    }
    site.end().await;
}
