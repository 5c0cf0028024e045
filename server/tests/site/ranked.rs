//! Timelines by importance, and home in that order as a list.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::served::{Person, Served, URL, each, id};

/// Statuses of all pages, by their links.
async fn scroll(site: &Served, who: &Person, path: &str) -> Vec<String> {
    let (mut met, mut next) = (Vec::new(), path.to_owned());
    loop {
        let page = site.get(who, &next).await;
        met.extend(each(&page.body, "id"));
        let Some(link) = page.link.as_deref().and_then(|link| link.strip_prefix(&format!("<{URL}"))) else {
            return met;
        };
        let (path, rel) = link.split_once(">; ").unwrap();
        assert_eq!(rel, "rel=\"next\"", "nothing is newer than a scroll");
        assert!(path.len() < 1_200, "{path}");
        next = path.to_owned();
    }
}

#[tokio::test]
async fn timelines_have_a_further_order_and_a_list_shows_home_in_it() {
    let site = Served::start_with(|settings| settings.top_list = "Top".into()).await;
    let (ada, ben, cid) = (site.sign_up("ada").await, site.sign_up("ben").await, site.sign_up("cid").await);
    for author in [&ben, &cid] {
        site.post(&ada, &format!("/api/v1/accounts/{}/follow", author.id), json!({})).await.ok();
    }
    let mut posts = Vec::new();
    for n in 0..7 {
        posts.push(id(&site.says(if n % 2 == 0 { &ben } else { &cid }, "tide").await));
    }
    for who in [&ben, &cid] {
        site.post(who, &format!("/api/v1/statuses/{}/favourite", posts[2]), json!({})).await.ok();
    }
    site.post(&ada, &format!("/api/v1/statuses/{}/favourite", posts[2]), json!({})).await.ok();
    let all: BTreeSet<String> = posts.iter().cloned().collect();
    let home = "/api/v1/timelines/home?order=importance";
    let first = site.get(&ada, home).await;
    let shown = each(&first.body, "id");
    assert_eq!((shown[0].as_str(), shown.len()), (posts[2].as_str(), 7));
    assert_eq!((&first.body[0]["favourited"], first.link), (&json!(true), None));

    // Page by page the same, in the list too; it is there first, and nobody's to change.
    let list = site.post(&ada, "/api/v1/lists", json!({ "title": "own" })).await.ok();
    let lists = site.get(&ada, "/api/v1/lists").await.ok();
    assert_eq!(each(&lists, "id"), ["1".to_owned(), id(&list)]);
    assert_eq!((&lists[0]["title"], &lists[0]["exclusive"]), (&json!("Top"), &json!(false)));
    assert_eq!(site.get(&ada, "/api/v1/lists/1").await.ok(), lists[0]);
    assert_eq!(site.get(&ada, "/api/v1/lists/1/accounts").await.ok(), json!([]));
    for path in [&format!("{home}&limit=2"), "/api/v1/timelines/list/1?limit=3"] {
        let met = scroll(&site, &ada, path).await;
        assert_eq!((met.len(), met.into_iter().collect::<BTreeSet<_>>()), (7, all.clone()), "{path}");
    }
    let (members, one) = (json!({ "account_ids": [ben.id] }), "/api/v1/lists/1");
    for (method, path, body) in [
        ("PUT", one, json!({ "title": "mine" })),
        ("DELETE", one, Value::Null),
        ("POST", "/api/v1/lists/1/accounts", members.clone()),
        ("DELETE", "/api/v1/lists/1/accounts", members.clone()),
    ] {
        assert_eq!(site.send(method, path, Some(&ada.token), body).await.status, 422, "{method} {path}");
    }

    // A list and an account's statuses have that order; whoever asks for what is newer begins anew.
    let path = format!("/api/v1/lists/{}/accounts", id(&list));
    site.post(&ada, &path, members).await.ok();
    let bens: BTreeSet<String> = posts.iter().step_by(2).cloned().collect();
    let lists = format!("/api/v1/timelines/list/{}?order=importance&limit=2", id(&list));
    let account = format!("/api/v1/accounts/{}/statuses?order=importance&limit=3", ben.id);
    for path in [&lists, &account] {
        let met = scroll(&site, &ada, path).await;
        assert_eq!((met.len(), met.into_iter().collect::<BTreeSet<_>>()), (4, bens.clone()), "{path}");
    }
    assert_eq!(each(&site.guest(&account.replace("limit=3", "limit=9")).await.ok(), "id").len(), 4);
    assert_eq!(site.get(&ada, &format!("{home}&since_id=1")).await.ok(), json!([]));
    assert_eq!(site.get(&ada, &format!("{home}&min_id={}", posts[0])).await.ok(), json!([]));
    let below = site.get(&ada, &format!("{home}&max_id={}", posts[2])).await.ok();
    assert_eq!(each(&below, "id").into_iter().collect::<BTreeSet<_>>(), posts[..2].iter().cloned().collect());
    for wrong in ["order=fame", "order=importance&max_id=ino-cursor"] {
        assert_eq!(site.get(&ada, &format!("/api/v1/timelines/home?{wrong}")).await.status, 422, "{wrong}");
    }
    site.end().await;
}

#[tokio::test]
async fn a_site_has_no_list_by_importance_unless_it_says_so() {
    let site = Served::start().await;
    let ada = site.sign_up("ada").await;
    assert_eq!(site.get(&ada, "/api/v1/lists").await.ok(), json!([]));
    for path in ["/api/v1/lists/1", "/api/v1/timelines/list/1"] {
        assert_eq!(site.get(&ada, path).await.status, 404, "{path}");
    }
    site.end().await;
}
