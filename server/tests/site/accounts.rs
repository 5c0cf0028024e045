//! Signing up, following, blocking, lists.

use serde_json::{Value, json};
use tideline::{AccountId, AccountState, AccountUpdate};
use tideline_server::accounts::{AccountRole, end_sessions, set_role};

use super::served::{PASSWORD, Person, Served, each, id};

#[tokio::test]
async fn people_sign_up_and_are_told_all_that_is_wrong_with_what_they_ask_for() {
    let site = Served::start().await;
    let ada = site.sign_up("ada").await;
    let asked = json!({ "username": "ADA", "email": "nowhere", "password": "short" });
    let refused = site.try_sign_up(asked).await;
    assert_eq!(refused.status, 422);
    let errors = |field: &str| each(&refused.body["details"][field], "error");
    assert_eq!(errors("username"), ["ERR_TAKEN"]);
    assert_eq!(errors("email"), ["ERR_INVALID"]);
    assert_eq!(errors("password"), ["ERR_TOO_SHORT"]);
    assert_eq!(errors("agreement"), ["ERR_ACCEPTED"]);
    let reserved =
        json!({ "username": "id7", "email": "x@y.example", "password": PASSWORD, "agreement": true });
    let refused = site.try_sign_up(reserved).await;
    assert_eq!(each(&refused.body["details"]["username"], "error"), ["ERR_RESERVED"]);

    for name in ["ada", "@Ada", "ada@tide.example", "@ada@tide.example:3000"] {
        let found = site.guest(&format!("/api/v1/accounts/lookup?acct={name}")).await.ok();
        assert_eq!(id(&found), ada.id, "{name}");
    }
    for name in ["ada@elsewhere.example", "nobody", ""] {
        assert_eq!(site.guest(&format!("/api/v1/accounts/lookup?acct={name}")).await.status, 404, "{name}");
    }
    let update = json!({
        "display_name": "Ada", "note": "<b>tides</b>", "source": { "privacy": "unlisted" },
        "fields_attributes": { "0": { "name": "site", "value": "https://ada.example" } },
    });
    let me = site.send("PATCH", "/api/v1/accounts/update_credentials", Some(&ada.token), update).await.ok();
    assert_eq!((&me["display_name"], &me["source"]["privacy"]), (&json!("Ada"), &json!("unlisted")));
    assert_eq!(me["note"], "<p>&lt;b&gt;tides&lt;/b&gt;</p>");
    assert_eq!(me["source"]["fields"][0]["value"], "https://ada.example");
    assert_eq!(site.says(&ada, "low tide").await["visibility"], "unlisted");
    site.end().await;
}

#[tokio::test]
async fn whoever_follows_asks_blocks_or_mutes_is_answered_with_what_is_so_then() {
    let site = Served::start().await;
    let (ada, ben) = (site.sign_up("ada").await, site.sign_up("ben").await);
    let act = async |who, what: &str| {
        site.post(who, &format!("/api/v1/accounts/{}/{what}", ada.id), json!({})).await.ok()
    };
    assert_eq!(act(&ben, "follow").await["following"], true);
    let followers = format!("/api/v1/accounts/{}/followers", ada.id);
    assert_eq!(each(&site.guest(&followers).await.ok(), "username"), ["ben"]);
    assert_eq!(act(&ben, "unfollow").await["following"], false);
    assert_eq!(site.guest(&followers).await.ok(), json!([]));

    let lock = json!({ "locked": true });
    site.send("PATCH", "/api/v1/accounts/update_credentials", Some(&ada.token), lock).await.ok();
    let asked = act(&ben, "follow").await;
    assert_eq!((&asked["following"], &asked["requested"]), (&json!(false), &json!(true)));
    assert_eq!(each(&site.get(&ada, "/api/v1/follow_requests").await.ok(), "username"), ["ben"]);
    let answer = format!("/api/v1/follow_requests/{}/authorize", ben.id);
    assert_eq!(site.post(&ada, &answer, json!({})).await.ok()["followed_by"], true);
    assert_eq!(site.post(&ada, &answer, json!({})).await.status, 404);

    assert_eq!(act(&ben, "mute").await["muting"], true);
    let muted = site.get(&ben, "/api/v1/mutes").await.ok();
    assert_eq!((each(&muted, "username"), &muted[0]["mute_expires_at"]), (vec!["ada".into()], &Value::Null));
    let for_an_hour = format!("/api/v1/accounts/{}/mute", ada.id);
    let stands = site.post(&ben, &for_an_hour, json!({ "duration": 3_600 })).await.ok();
    let muted = site.get(&ben, "/api/v1/mutes").await.ok();
    assert!(muted[0]["mute_expires_at"].is_string());
    assert_eq!(muted[0]["mute_expires_at"], stands["muting_expires_at"]);
    assert_eq!(act(&ben, "unmute").await["muting"], false);
    let block = format!("/api/v1/accounts/{}/block", ben.id);
    assert_eq!(site.post(&ada, &block, json!({})).await.ok()["blocking"], true);
    let refused = site.post(&ben, &format!("/api/v1/accounts/{}/follow", ada.id), json!({})).await;
    assert_eq!((refused.status, &refused.body["error"]), (403, &json!("This action is not allowed")));

    // What is said of somebody who is gone can be taken back all the same, and nothing new be said.
    assert_eq!(act(&ben, "mute").await["muting"], true);
    site.engine().delete_account(AccountId::new(ada.id.parse().unwrap()).unwrap()).await.unwrap();
    for what in ["unmute", "unfollow", "unblock"] {
        let stands = act(&ben, what).await;
        assert_eq!((&stands["muting"], id(&stands)), (&json!(false), ada.id.clone()), "{what}");
    }
    let mute = format!("/api/v1/accounts/{}/mute", ada.id);
    assert_eq!(site.post(&ben, &mute, json!({})).await.status, 404);
    site.end().await;
}

/// Whoever was suspended through the library, which ends no sessions, went on reading.
#[tokio::test]
async fn whoever_is_suspended_does_nothing_more_until_it_is_let_in_again() {
    let site = Served::start().await;
    let ada = site.sign_up("ada").await;
    let me = AccountId::new(ada.id.parse().unwrap()).unwrap();
    let becomes = async |state| {
        let update = AccountUpdate { state: Some(state), ..AccountUpdate::default() };
        site.engine().update_account(me, &update).await.unwrap();
    };
    // A server may remember for as long as `visible_within` says.
    let comes_to = async |wanted: u16| {
        for _ in 0..400 {
            let told = site.get(&ada, "/api/v1/timelines/home").await;
            if told.status == wanted {
                return told.body["error"].clone();
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        panic!("it never comes to {wanted}");
    };
    comes_to(200).await;
    becomes(AccountState::Suspended).await;
    assert_eq!(comes_to(403).await, "Your login is currently disabled");
    assert_eq!(site.get(&ada, "/api/v1/timelines/public").await.status, 403);
    becomes(AccountState::Active).await;
    comes_to(200).await;
    site.engine().delete_account(me).await.unwrap();
    comes_to(401).await;
    site.end().await;
}

#[tokio::test]
async fn whoever_sends_a_picture_is_told_that_none_is_taken() {
    let site = Served::start().await;
    let ada = site.sign_up("ada").await;
    let bearer = format!("Bearer {}", ada.token);
    let part = |name: &str, bytes: &str| {
        format!(
            "--b\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"a.png\"\r\n\r\n{bytes}\r\n--b--\r\n"
        )
    };
    let multipart = "multipart/form-data; boundary=b";
    let bodies = [
        (multipart, part("avatar", "x")),
        (multipart, part("header", "")),
        ("application/json", json!({ "avatar": "data:image/png;base64,AAAA" }).to_string()),
    ];
    for (kind, body) in bodies {
        let headers = [("Content-Type", kind), ("Authorization", bearer.as_str())];
        let told =
            site.connect().await.send("PATCH", "/api/v1/accounts/update_credentials", &headers, &body).await;
        let text = r#"{"error":"Files can't be uploaded here, and no pictures yet"}"#;
        assert_eq!((told.status, told.text()), (415, text.into()), "{body}");
    }
    site.end().await;
}

#[tokio::test]
async fn whoever_reads_somebody_in_some_languages_meets_the_others_elsewhere_alone() {
    let site = Served::start().await;
    let (ada, ben) = (site.sign_up("ada").await, site.sign_up("ben").await);
    let act = async |what: &str, asked: Value| {
        site.post(&ben, &format!("/api/v1/accounts/{}/{what}", ada.id), asked).await.ok()["languages"].clone()
    };
    assert_eq!(act("follow", json!({})).await, Value::Null);
    let mut posts = Vec::new();
    for language in ["en", "de", "en-GB"] {
        let status = json!({ "status": "tide", "language": language });
        posts.push(id(&site.post(&ada, "/api/v1/statuses", status).await.ok()));
    }
    let home = async || each(&site.get(&ben, "/api/v1/timelines/home").await.ok(), "id").len();
    assert_eq!(home().await, 3);
    let refused = json!({ "languages": ["en", "no such language"] });
    let follow = format!("/api/v1/accounts/{}/follow", ada.id);
    assert_eq!(site.post(&ben, &follow, refused).await.status, 422);
    assert_eq!(home().await, 3);
    assert_eq!(act("follow", json!({ "languages": ["en"] })).await, json!(["en"]));
    assert_eq!(home().await, 2);
    let stands = site.get(&ben, &format!("/api/v1/accounts/relationships?id[]={}", ada.id)).await.ok();
    assert_eq!(stands[0]["languages"], json!(["en"]));
    // Elsewhere it shows; and what isn't said stays.
    assert_eq!(site.get(&ben, &format!("/api/v1/statuses/{}", posts[1])).await.status, 200);
    assert_eq!(act("follow", json!({ "reblogs": false })).await, json!(["en"]));
    assert_eq!(act("follow", json!({ "languages": [] })).await, Value::Null);
    assert_eq!(home().await, 3);
    // It goes with the follow.
    for end in [&["unfollow"][..], &["block", "unblock"]] {
        act("follow", json!({ "languages": ["de"] })).await;
        assert_eq!(home().await, 1);
        for act in end {
            site.post(&ben, &format!("/api/v1/accounts/{}/{act}", ada.id), json!({})).await.ok();
        }
        assert_eq!(act("follow", json!({})).await, Value::Null, "{end:?}");
        assert_eq!(home().await, 3);
    }
    site.end().await;
}

#[tokio::test]
async fn lists_show_whom_their_owner_follows() {
    let site = Served::start().await;
    let (ada, ben, eve) = (site.sign_up("ada").await, site.sign_up("ben").await, site.sign_up("eve").await);
    let list = site.post(&ben, "/api/v1/lists", json!({ "title": "tides" })).await.ok();
    let path = |rest: &str| format!("/api/v1/lists/{}{rest}", id(&list));
    let add = json!({ "account_ids": [ada.id] });
    assert_eq!(site.post(&ben, &path("/accounts"), add.clone()).await.status, 404);
    site.post(&ben, &format!("/api/v1/accounts/{}/follow", ada.id), json!({})).await.ok();
    site.post(&ben, &path("/accounts"), add.clone()).await.ok();
    assert_eq!(site.post(&ben, &path("/accounts"), add.clone()).await.status, 422);
    assert_eq!(each(&site.get(&ben, &path("/accounts")).await.ok(), "username"), ["ada"]);
    let (low, _) = (site.says(&ada, "low").await, site.says(&eve, "not listed").await);
    let timeline = format!("/api/v1/timelines/list/{}", id(&list));
    assert_eq!(each(&site.get(&ben, &timeline).await.ok(), "id"), [id(&low)]);
    // It is nobody else's.
    for method in ["GET", "PUT", "DELETE"] {
        assert_eq!(site.send(method, &path(""), Some(&eve.token), json!({ "title": "x" })).await.status, 404);
    }
    assert_eq!(site.get(&eve, &timeline).await.status, 404);

    // Its owner may stand on it.
    let own = json!({ "account_ids": [ben.id] });
    site.post(&ben, &path("/accounts"), own.clone()).await.ok();
    let members = each(&site.get(&ben, &path("/accounts")).await.ok(), "username");
    assert!(members.len() == 2 && members.contains(&"ben".to_owned()), "{members:?}");
    site.send("DELETE", &path("/accounts"), Some(&ben.token), own).await.ok();

    // An unfollow empties it, and following again doesn't bring anybody back.
    for act in ["unfollow", "follow"] {
        site.post(&ben, &format!("/api/v1/accounts/{}/{act}", ada.id), json!({})).await.ok();
        assert_eq!(site.get(&ben, &timeline).await.ok(), json!([]), "{act}");
        assert_eq!(site.get(&ben, &path("/accounts")).await.ok(), json!([]), "{act}");
    }
    site.send("DELETE", &path(""), Some(&ben.token), Value::Null).await.ok();
    assert_eq!(site.get(&ben, "/api/v1/lists").await.ok(), json!([]));
    site.end().await;
}

#[tokio::test]
async fn whoever_runs_the_site_ends_sessions_and_gives_roles() {
    let site = Served::start().await;
    let (ada, bea) = (site.sign_up("ada").await, site.sign_up("bea").await);
    let me = "/api/v1/accounts/verify_credentials";
    let id = AccountId::new(ada.id.parse().unwrap()).unwrap();
    assert_eq!(site.get(&ada, me).await.ok()["role"]["name"], "");
    set_role(site.registration(), id, AccountRole::Admin).await.unwrap();
    assert_eq!(site.get(&ada, me).await.ok()["role"]["name"], "admin");
    assert_eq!(site.get(&bea, me).await.ok()["role"]["name"], "");
    set_role(site.registration(), id, AccountRole::User).await.unwrap();
    assert_eq!(site.get(&ada, me).await.ok()["role"]["name"], "");

    assert_eq!(end_sessions(site.registration(), id).await.unwrap().ended, 1);
    // Within what an instance may remember.
    for n in 0.. {
        let told = site.get(&ada, me).await;
        if told.status == 401 {
            break;
        }
        assert!(n < 200 && told.status == 200, "{told:?}");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(end_sessions(site.registration(), id).await.unwrap().ended, 0);
    assert_eq!(site.get(&bea, me).await.status, 200);
    site.end().await;
}

#[tokio::test]
async fn whom_exclusive_lists_have_shows_there_and_not_at_home() {
    let site = Served::start().await;
    let (ada, ben, cid) = (site.sign_up("ada").await, site.sign_up("ben").await, site.sign_up("cid").await);
    let mut posts = Vec::new();
    for author in [&ada, &cid] {
        site.post(&ben, &format!("/api/v1/accounts/{}/follow", author.id), json!({})).await.ok();
        posts.push(id(&site.says(author, "low tide").await));
    }
    let [of_ada, of_cid] = &posts[..] else { panic!("two were posted") };
    let home = async || each(&site.get(&ben, "/api/v1/timelines/home").await.ok(), "id");
    let all = [of_cid.clone(), of_ada.clone()];
    assert_eq!(home().await, all);
    let make = async |title: &str, exclusive: bool| {
        let list = json!({ "title": title, "exclusive": exclusive });
        site.post(&ben, "/api/v1/lists", list).await.ok()
    };
    let (tides, moons) = (make("tides", true).await, make("moons", false).await);
    assert_eq!((&tides["exclusive"], &moons["exclusive"]), (&json!(true), &json!(false)));
    let path = |list: &serde_json::Value, rest: &str| format!("/api/v1/lists/{}{rest}", id(list));
    let members = json!({ "account_ids": [ada.id] });
    for list in [&tides, &moons] {
        site.post(&ben, &path(list, "/accounts"), members.clone()).await.ok();
    }
    assert_eq!(home().await, all[..1]);
    for list in [&tides, &moons] {
        let shown = site.get(&ben, &format!("/api/v1/timelines/list/{}", id(list))).await.ok();
        assert_eq!(each(&shown, "id"), all[1..], "{list}");
    }
    // What is posted from now on too; and nobody else's home lacks it.
    let later = id(&site.says(&ada, "neap tide").await);
    assert_eq!(home().await, all[..1]);
    let own = each(&site.get(&ada, "/api/v1/timelines/home").await.ok(), "id");
    assert_eq!(own, [later.clone(), of_ada.clone()]);

    // On two exclusive lists it stays out until it is off both; what isn't said stays.
    let put = async |list: &serde_json::Value, change: serde_json::Value| {
        site.send("PUT", &path(list, ""), Some(&ben.token), change).await.ok()["exclusive"].clone()
    };
    assert_eq!(put(&moons, json!({ "exclusive": true })).await, true);
    assert_eq!(put(&tides, json!({ "title": "ebb" })).await, true);
    let take_off = async |list: &serde_json::Value| {
        site.send("DELETE", &path(list, "/accounts"), Some(&ben.token), members.clone()).await.ok()
    };
    take_off(&tides).await;
    assert_eq!(home().await, all[..1]);
    assert_eq!(put(&moons, json!({ "exclusive": "false" })).await, false);
    let everything = [later.clone(), of_cid.clone(), of_ada.clone()];
    assert_eq!(home().await, everything);
    // An exclusive list that goes gives back whom it had; an unfollow takes off, so that the next follow shows all.
    assert_eq!(put(&moons, json!({ "exclusive": true })).await, true);
    assert_eq!(home().await, all[..1]);
    site.send("DELETE", &path(&moons, ""), Some(&ben.token), json!({})).await.ok();
    assert_eq!(home().await, everything);
    site.post(&ben, &path(&tides, "/accounts"), members).await.ok();
    assert_eq!(home().await, all[..1]);
    for end in [&["unfollow"][..], &["block", "unblock"]] {
        for act in end.iter().chain(&["follow"]) {
            site.post(&ben, &format!("/api/v1/accounts/{}/{act}", ada.id), json!({})).await.ok();
        }
        assert_eq!(home().await, everything, "{end:?}");
        assert_eq!(site.get(&ben, &path(&tides, "/accounts")).await.ok(), json!([]), "{end:?}");
        site.post(&ben, &path(&tides, "/accounts"), json!({ "account_ids": [ada.id] })).await.ok();
        assert_eq!(home().await, all[..1]);
    }
    what_is_newer_than_a_place_comes_from_above_or_from_below(&site, &ben).await;
    site.end().await;
}

/// Of whom somebody follows, who follows cid and then ada.
async fn what_is_newer_than_a_place_comes_from_above_or_from_below(site: &Served, ben: &Person) {
    let dan = site.sign_up("dan").await;
    site.post(ben, &format!("/api/v1/accounts/{}/follow", dan.id), json!({})).await.ok();
    let following = async |query: &str| {
        let told = site.get(ben, &format!("/api/v1/accounts/{}/following?{query}", ben.id)).await;
        let place = |name: &str| {
            let after = told.link.as_ref()?.split(&format!("&{name}=")).nth(1)?;
            Some(after.split('>').next().unwrap().to_owned())
        };
        (each(&told.body, "username"), place("max_id"), place("min_id"))
    };
    let (all, last, _) = following("limit=2").await;
    assert_eq!(all, ["dan", "ada"]);
    let (all, none, oldest) = following(&format!("limit=2&max_id={}", last.unwrap())).await;
    assert_eq!((all, none), (vec!["cid".to_owned()], None));
    let oldest = oldest.unwrap();
    assert_eq!(following(&format!("limit=1&min_id={oldest}")).await.0, ["ada"]);
    let (all, older, newest) = following(&format!("limit=1&since_id={oldest}")).await;
    assert_eq!(all, ["dan"]);
    let (all, none, _) = following(&format!("limit=2&since_id={oldest}&max_id={}", older.unwrap())).await;
    assert_eq!((all, none), (vec!["ada".to_owned()], None));
    assert_eq!(following(&format!("since_id={}", newest.unwrap())).await.0, Vec::<String>::new());
}

/// Somebody talked to followers alone, and what it boosted went to everybody.
#[tokio::test]
async fn a_boost_goes_as_far_as_its_author_usually_does() {
    let site = Served::start().await;
    let (ada, ben) = (site.sign_up("ada").await, site.sign_up("ben").await);
    let status = id(&site.says(&ada, "look").await);
    let boost = format!("/api/v1/statuses/{status}/reblog");
    for (usual, wanted) in [("private", "private"), ("direct", "private"), ("unlisted", "unlisted")] {
        let said = json!({ "source": { "privacy": usual } });
        site.send("PATCH", "/api/v1/accounts/update_credentials", Some(&ben.token), said).await.ok();
        assert_eq!(site.post(&ben, &boost, Value::Null).await.ok()["visibility"], wanted);
        site.post(&ben, &format!("/api/v1/statuses/{status}/unreblog"), Value::Null).await.ok();
    }
    let said = site.post(&ben, &boost, json!({ "visibility": "public" })).await.ok();
    assert_eq!(said["visibility"], "public");
    assert_eq!(site.post(&ben, &boost, json!({ "visibility": "loud" })).await.status, 422);
    // As many relationships as somebody asks for.
    let ids: Vec<String> =
        (1..=150).map(|n| format!("id[]={n}")).chain([format!("id[]={}", ada.id)]).collect();
    let found = site.get(&ben, &format!("/api/v1/accounts/relationships?{}", ids.join("&"))).await.ok();
    assert_eq!(each(&found, "id"), [ada.id]);
    site.end().await;
}
