//! Posting, and what shows where.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::served::{Served, URL, each, id};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn statuses_are_written_read_changed_and_deleted() {
    let site = Served::start().await;
    let (ada, ben) = (site.sign_up("ada").await, site.sign_up("ben").await);
    // The same key is the same status.
    let headers = [
        ("Content-Type", "application/x-www-form-urlencoded"),
        ("Authorization", &format!("Bearer {}", ada.token)),
        ("Idempotency-Key", "a key of any length, and with spaces"),
    ];
    let mut written = Vec::new();
    for _ in 0..2 {
        let body = "status=%40ben+low+%23Tide+%3Cb%3E&spoiler_text=water";
        let answer = site.connect().await.send("POST", "/api/v1/statuses", &headers, body).await;
        written.push(serde_json::from_slice::<Value>(&answer.body).unwrap());
    }
    assert_eq!(written[0], written[1]);
    let status = written.remove(0);
    let html = format!(
        "<p><span class=\"h-card\"><a href=\"{URL}/@ben\" class=\"u-url mention\">@<span>ben</span></a></span> low \
         <a href=\"{URL}/tags/tide\" class=\"mention hashtag\" rel=\"tag\">#<span>Tide</span></a> &lt;b&gt;</p>"
    );
    assert_eq!(status["content"], html);
    assert_eq!(status["url"], format!("{URL}/@ada/{}", id(&status)));
    assert_eq!((&status["spoiler_text"], &status["sensitive"]), (&json!("water"), &json!(true)));
    assert_eq!(each(&status["mentions"], "id"), std::slice::from_ref(&ben.id));
    assert_eq!(each(&site.guest("/api/v1/timelines/tag/TIDE").await.ok(), "id"), [id(&status)]);

    let path = format!("/api/v1/statuses/{}", id(&status));
    let edit = json!({ "status": "high tide" });
    assert_eq!(site.send("PUT", &path, Some(&ben.token), edit.clone()).await.status, 404);
    let edited = site.send("PUT", &path, Some(&ada.token), edit).await.ok();
    // Clients leave a warning out that is taken away.
    assert_eq!((&edited["content"], &edited["spoiler_text"]), (&json!("<p>high tide</p>"), &json!("")));
    assert_eq!(edited["sensitive"], false);
    let warned = json!({ "status": "high tide", "spoiler_text": "water" });
    let warned = site.send("PUT", &path, Some(&ada.token), warned).await.ok();
    assert_eq!((&warned["spoiler_text"], &warned["sensitive"]), (&json!("water"), &json!(true)));
    assert_eq!(site.get(&ben, &path).await.ok()["content"], "<p>high tide</p>");
    for who in [&ada, &ben] {
        assert_eq!(site.get(who, &format!("{path}/source")).await.ok()["text"], "high tide");
    }

    let reply = json!({ "status": "so", "in_reply_to_id": id(&status) });
    let reply = site.post(&ben, "/api/v1/statuses", reply).await.ok();
    let context = site.guest(&format!("{path}/context")).await.ok();
    assert_eq!(
        (each(&context["ancestors"], "id"), each(&context["descendants"], "id")),
        (vec![], vec![id(&reply)])
    );
    assert_eq!(site.guest(&path).await.ok()["replies_count"], 1);

    assert_eq!(site.send("DELETE", &path, Some(&ben.token), Value::Null).await.status, 404);
    assert_eq!(site.send("DELETE", &path, Some(&ada.token), Value::Null).await.ok()["text"], "high tide");
    for who in [Some(&ada.token), None] {
        assert_eq!(site.send("GET", &path, who.map(String::as_str), Value::Null).await.status, 404);
    }
    for empty in [json!({}), json!({ "status": " " }), json!({ "status": "x".repeat(5_001) })] {
        assert_eq!(site.post(&ada, "/api/v1/statuses", empty).await.status, 422);
    }
    site.end().await;
}

#[tokio::test]
async fn what_is_done_with_a_status_shows_at_once_to_whoever_does_it() {
    let site = Served::start().await;
    let (ada, ben) = (site.sign_up("ada").await, site.sign_up("ben").await);
    let status = site.says(&ada, "low tide").await;
    let act = async |what: &str| {
        site.post(&ben, &format!("/api/v1/statuses/{}/{what}", id(&status)), json!({})).await.ok()
    };
    for (what, undo, flag, count) in [
        ("favourite", "unfavourite", "favourited", Some("favourites_count")),
        ("bookmark", "unbookmark", "bookmarked", None),
    ] {
        for (what, is_so) in [(what, true), (undo, false)] {
            let shown = act(what).await;
            assert_eq!(shown[flag], is_so, "{what}");
            count.inspect(|count| assert_eq!(shown[*count], u32::from(is_so), "{what}"));
        }
    }
    act("favourite").await;
    assert_eq!(each(&site.get(&ben, "/api/v1/favourites").await.ok(), "id"), [id(&status)]);
    let repost = act("reblog").await;
    assert_eq!((&repost["reblogged"], &repost["reblog"]["reblogged"]), (&json!(true), &json!(true)));
    assert_eq!(id(&repost["reblog"]), id(&status));
    assert_eq!(id(&act("reblog").await), id(&repost));
    let by = format!("/api/v1/statuses/{}/reblogged_by", id(&status));
    assert_eq!(each(&site.guest(&by).await.ok(), "username"), ["ben"]);
    let back = act("unreblog").await;
    assert_eq!((id(&back), &back["reblogged"], &back["reblog"]), (id(&status), &json!(false), &Value::Null));

    let pin = format!("/api/v1/statuses/{}/pin", id(&status));
    assert_eq!(site.post(&ben, &pin, json!({})).await.status, 422);
    assert_eq!(site.post(&ada, &pin, json!({})).await.ok()["pinned"], true);
    let pinned = format!("/api/v1/accounts/{}/statuses?pinned=true", ada.id);
    assert_eq!(site.guest("/api/v1/accounts/4711/statuses?pinned=true").await.status, 404);
    assert_eq!(each(&site.guest(&pinned).await.ok(), "id"), [id(&status)]);
    let unpin = format!("/api/v1/statuses/{}/unpin", id(&status));
    assert_eq!(site.post(&ada, &unpin, json!({})).await.ok()["pinned"], false);
    assert_eq!(site.guest(&pinned).await.ok(), json!([]));
    site.end().await;
}

#[tokio::test]
async fn what_is_not_for_somebody_is_not_there_for_it() {
    let site = Served::start().await;
    let (ada, ben, eve) = (site.sign_up("ada").await, site.sign_up("ben").await, site.sign_up("eve").await);
    site.post(&ben, &format!("/api/v1/accounts/{}/follow", ada.id), json!({})).await.ok();
    let says = async |text: &str, visibility: &str| {
        id(&site
            .post(&ada, "/api/v1/statuses", json!({ "status": text, "visibility": visibility }))
            .await
            .ok())
    };
    let private = says("for followers", "private").await;
    let direct = says("@eve for you", "direct").await;
    let own = says("for me", "direct").await;
    let seen = [
        (&private, [true, true, false, false]),
        (&direct, [true, false, true, false]),
        (&own, [true, false, false, false]),
    ];
    for (post, by) in seen {
        let readers = [Some(&ada), Some(&ben), Some(&eve), None];
        for (reader, sees) in readers.into_iter().zip(by) {
            let token = reader.map(|reader| reader.token.as_str());
            let is_told = if sees { 200 } else { 404 };
            for rest in ["", "/context", "/history", "/favourited_by", "/reblogged_by"] {
                let path = format!("/api/v1/statuses/{post}{rest}");
                assert_eq!(
                    site.send("GET", &path, token, Value::Null).await.status,
                    is_told,
                    "{path} {by:?}"
                );
            }
            let Some(reader) = reader.filter(|_| !sees) else { continue };
            assert_eq!(site.get(reader, &format!("/api/v1/statuses/{post}/source")).await.status, 404);
            for act in ["favourite", "bookmark", "reblog"] {
                let path = format!("/api/v1/statuses/{post}/{act}");
                assert_eq!(site.post(reader, &path, json!({})).await.status, 404, "{path}");
            }
            let reply = json!({ "status": "so", "in_reply_to_id": post });
            assert_eq!(site.post(reader, "/api/v1/statuses", reply).await.status, 404);
        }
    }
    site.end().await;
}

#[tokio::test]
async fn pages_follow_one_another_by_their_links_in_both_directions() {
    let site = Served::start().await;
    let (ada, ben) = (site.sign_up("ada").await, site.sign_up("ben").await);
    site.post(&ben, &format!("/api/v1/accounts/{}/follow", ada.id), json!({})).await.ok();
    let mut posts = Vec::new();
    for n in 0..7 {
        posts.insert(0, id(&site.says(&ada, &format!("post {n}")).await));
    }
    let (mut read, mut path) = (Vec::new(), "/api/v1/timelines/home?limit=3".to_owned());
    loop {
        let page = site.get(&ben, &path).await;
        let ids = each(&page.body, "id");
        if ids.is_empty() {
            assert_eq!(page.link, None);
            break;
        }
        read.extend(ids);
        let link = page.link.unwrap_or_default();
        // The next one stands first; at the end there is none.
        let Some(next) =
            link.strip_prefix(&format!("<{URL}")).and_then(|link| link.split_once(">; rel=\"next\""))
        else {
            break;
        };
        path = next.0.to_owned();
    }
    assert_eq!(read, posts);
    let newer = site.get(&ben, &format!("/api/v1/timelines/home?limit=2&min_id={}", posts[5])).await;
    assert_eq!(each(&newer.body, "id"), posts[3..5]);
    let since = site.get(&ben, &format!("/api/v1/timelines/home?limit=2&since_id={}", posts[5])).await;
    assert_eq!(each(&since.body, "id"), posts[..2]);
    assert_eq!(site.get(&ben, "/api/v1/timelines/home?max_id=1").await.ok(), json!([]));
    site.end().await;
}

/// A status that is sent again is the one that was posted, though what it answers has gone since, or who wrote what it
/// quotes has shut its author out: it was refused. Nor could its author change or delete it then.
#[tokio::test]
async fn what_was_posted_is_its_authors_whatever_has_gone_meanwhile() {
    let site = Served::start().await;
    let (ada, ben) = (site.sign_up("ada").await, site.sign_up("ben").await);
    let (parent, quoted) =
        (id(&site.says(&ada, "a question").await), id(&site.says(&ada, "worth a quote").await));
    let bearer = format!("Bearer {}", ben.token);
    let send = async |key: &str, body: &Value| {
        let headers = [
            ("Content-Type", "application/json"),
            ("Authorization", bearer.as_str()),
            ("Idempotency-Key", key),
        ];
        let answer = site.connect().await.send("POST", "/api/v1/statuses", &headers, &body.to_string()).await;
        let told: Value = serde_json::from_slice(&answer.body).unwrap();
        (answer.status, told["id"].as_str().map(str::to_owned))
    };
    let answers = json!({ "status": "an answer", "in_reply_to_id": parent });
    let quotes = json!({ "status": "a quote", "quoted_status_id": quoted });
    let (answer, quote) = (send("one of the client's", &answers).await, send("another", &quotes).await);
    assert_eq!((answer.0, quote.0), (200, 200));
    let reblogged = format!("/api/v1/statuses/{quoted}");
    site.post(&ben, &format!("{reblogged}/reblog"), json!({})).await.ok();

    let path = format!("/api/v1/statuses/{parent}");
    site.send("DELETE", &path, Some(&ada.token), Value::Null).await.ok();
    let shut_out = async |what: &str| {
        site.post(&ada, &format!("/api/v1/accounts/{}/{what}", ben.id), json!({})).await.ok()
    };
    shut_out("block").await;
    let path = format!("/api/v1/statuses/{}", quote.1.as_deref().unwrap());
    eventually("a quote of who blocks is hidden", async || site.get(&ben, &path).await.status == 404).await;
    assert_eq!(send("one of the client's", &answers).await, answer);
    assert_eq!(send("another", &quotes).await, quote);
    assert_eq!(site.post(&ben, "/api/v1/statuses", answers).await.status, 404);
    let edited = site.send("PUT", &path, Some(&ben.token), json!({ "status": "no quote" })).await.ok();
    assert_eq!((&edited["content"], &edited["quote"]), (&json!("<p>no quote</p>"), &Value::Null));
    assert_eq!(site.send("DELETE", &path, Some(&ben.token), Value::Null).await.ok()["text"], "no quote");
    assert_eq!(site.send("DELETE", &path, Some(&ben.token), Value::Null).await.status, 404);
    // There is nothing to show of it; the repost is taken back.
    assert_eq!(site.post(&ben, &format!("{reblogged}/unreblog"), json!({})).await.status, 404);
    shut_out("unblock").await;
    // What is usual for its sender is something else by now.
    let aloud = json!({ "status": "@ada there you are" });
    let sent = send("a third", &aloud).await;
    let usual = json!({ "source": { "privacy": "direct" } });
    let update = "/api/v1/accounts/update_credentials";
    site.send("PATCH", update, Some(&ben.token), usual).await.ok();
    assert_eq!((send("a third", &aloud).await, sent.0), (sent.clone(), 200));
    eventually("it shows again", async || site.get(&ben, &reblogged).await.status == 200).await;
    let shown = site.get(&ben, &reblogged).await.ok();
    assert_eq!((&shown["reblogged"], &shown["reblogs_count"]), (&json!(false), &json!(0)));
    site.end().await;
}

/// A text of a megabyte kept a core busy; a language that can't be stored kept its owner from posting at all.
#[tokio::test]
async fn what_nobody_can_have_meant_does_no_harm() {
    let site = Served::start().await;
    let ada = site.sign_up("ada").await;
    let long = format!("https://a{}", ")".repeat(500_000));
    assert_eq!(site.post(&ada, "/api/v1/statuses", json!({ "status": long })).await.status, 422);
    let usual = json!({ "display_name": "Ada", "source": { "language": "zh_TW", "privacy": "nobody" } });
    let update = "/api/v1/accounts/update_credentials";
    assert_eq!(site.send("PATCH", update, Some(&ada.token), usual).await.status, 422);
    let me = site.get(&ada, "/api/v1/accounts/verify_credentials").await.ok();
    assert_eq!(me["display_name"], "", "refused, and done all the same");
    let usual = json!({ "source": { "language": "zh_TW" } });
    site.send("PATCH", update, Some(&ada.token), usual).await.ok();
    let said = site.says(&ada, "so").await;
    assert_eq!(said["language"], "zh-TW");
    let said = json!({ "spoiler_text": "only a warning" });
    let said = site.post(&ada, "/api/v1/statuses", said).await.ok();
    assert_eq!((&said["content"], &said["spoiler_text"]), (&json!("<p>only a warning</p>"), &json!("")));
    site.end().await;
}

/// The newest of a list may all be hidden: what is below them shows on the same page. What is hidden can be taken off.
#[tokio::test]
async fn a_list_goes_on_below_what_is_hidden() {
    let site = Served::start().await;
    let (ada, ben, cleo) = (site.sign_up("ada").await, site.sign_up("ben").await, site.sign_up("cleo").await);
    let kept = id(&site.says(&ben, "stays").await);
    site.post(&ada, &format!("/api/v1/statuses/{kept}/favourite"), Value::Null).await.ok();
    site.post(&ada, &format!("/api/v1/accounts/{}/follow", cleo.id), Value::Null).await.ok();
    for n in 0..3 {
        let hidden = json!({ "status": format!("hidden {n}"), "visibility": "private" });
        let hidden = id(&site.post(&cleo, "/api/v1/statuses", hidden).await.ok());
        site.post(&ada, &format!("/api/v1/statuses/{hidden}/favourite"), Value::Null).await.ok();
    }
    let likes = async || each(&site.get(&ada, "/api/v1/favourites?limit=1").await.ok(), "id");
    let hidden = likes().await.remove(0);
    let remove = format!("/api/v1/accounts/{}/remove_from_followers", ada.id);
    site.post(&cleo, &remove, Value::Null).await.ok();
    assert_eq!(likes().await, [kept]);
    let undo = format!("/api/v1/statuses/{hidden}/unfavourite");
    assert_eq!(site.post(&ada, &undo, Value::Null).await.status, 404);
    site.post(&ada, &format!("/api/v1/accounts/{}/follow", cleo.id), Value::Null).await.ok();
    let shown = site.get(&ada, &format!("/api/v1/statuses/{hidden}")).await.ok();
    assert_eq!(shown["favourited"], false, "it was not there, and is liked all the same");
    assert_ne!(likes().await, [hidden]);
    site.end().await;
}

/// What all readers get alike is remembered as text; a single status is made anew each time.
#[tokio::test]
async fn a_page_is_what_its_statuses_are_one_by_one() {
    let site = Served::start().await;
    let (ada, ben) = (site.sign_up("ada").await, site.sign_up("ben").await);
    let cleo = site.sign_up("cleo").await;
    for reader in [&ada, &cleo] {
        site.post(reader, &format!("/api/v1/accounts/{}/follow", ben.id), json!({})).await.ok();
    }
    let plain = id(&site.says(&ben, "low <tide> \"now\", @ada: https://tide.example/a?b=1&c #tide").await);
    let quote = json!({ "status": "look", "quoted_status_id": plain, "spoiler_text": "a quote" });
    let quote = id(&site.post(&ben, "/api/v1/statuses", quote).await.ok());
    let quotes = site.get(&ada, &format!("/api/v1/statuses/{plain}/quotes")).await.ok();
    assert_eq!(each(&quotes, "id"), [quote.as_str()]);
    let own = id(&site.says(&ada, "mine").await);
    for (who, what) in [
        (&ada, format!("{plain}/favourite")),
        (&ada, format!("{plain}/bookmark")),
        (&ada, format!("{own}/pin")),
        (&ben, format!("{own}/reblog")),
        (&ben, format!("{quote}/reblog")),
        (&cleo, format!("{plain}/reblog")),
    ] {
        site.post(who, &format!("/api/v1/statuses/{what}"), json!({})).await.ok();
    }
    let profile = format!("/api/v1/accounts/{}/statuses", ben.id);
    // What passes a quote on shows what that quotes.
    let newest = site.get(&ben, &format!("{profile}?limit=1")).await.ok();
    assert_eq!(newest[0]["reblog"]["quote"]["quoted_status"]["id"], plain.as_str(), "{newest}");
    assert_eq!(newest[0]["quote"], Value::Null);
    let is_same = async |reader: Option<&str>, path: &str| {
        let page = site.send("GET", path, reader, Value::Null).await.ok();
        let mut whole = Vec::new();
        for id in each(&page, "id") {
            let one = site.send("GET", &format!("/api/v1/statuses/{id}"), reader, Value::Null).await;
            whole.push(one.ok());
        }
        assert!(whole.len() >= 4, "{page}");
        page == Value::Array(whole)
    };
    for name in ["Ben", "Ben \u{1f30a}"] {
        // A page may be as old as what is remembered of posts and accounts.
        for reader in [Some(&ada), Some(&cleo), None] {
            let path = if reader.is_some() { "/api/v1/timelines/home" } else { profile.as_str() };
            let token = reader.map(|reader| reader.token.as_str());
            eventually("a page is what its statuses are", async || is_same(token, path).await).await;
        }
        let renamed = json!({ "display_name": name });
        site.send("PATCH", "/api/v1/accounts/update_credentials", Some(&ben.token), renamed).await.ok();
    }
    let names = async || {
        let page = site.guest(&profile).await.ok();
        page.as_array().unwrap().iter().all(|status| status["account"]["display_name"] == "Ben \u{1f30a}")
    };
    eventually("a new name shows on pages", names).await;
    site.end().await;
}

/// Waits until something is so.
pub(super) async fn eventually(what: &str, is_so: impl AsyncFn() -> bool) {
    let since = Instant::now();
    while !is_so().await {
        assert!(since.elapsed() < PATIENCE, "never happened: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
