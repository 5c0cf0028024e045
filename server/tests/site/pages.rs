//! Pages, and the links between them: what is there is met by whoever follows the links, and only the end has none.

use serde_json::{Value, json};

use super::served::{Person, Served, Told, URL, each, id};

/// Where a link of a page leads.
fn linked(page: &Told, rel: &str) -> Option<String> {
    let links = page.link.as_deref()?.split(", ");
    let link =
        links.filter_map(|link| link.split_once(">; rel=")).find(|(_, of)| of.trim_matches('"') == rel);
    link.map(|(link, _)| link.strip_prefix(&format!("<{URL}")).unwrap().to_owned())
}

/// Follows links from a page on to the end; the pages' names, and whether one was empty before it.
async fn walk(site: &Served, who: &Person, from: &str, rel: &str) -> (Vec<String>, bool) {
    let (mut names, mut place, mut is_empty) = (Vec::new(), Some(from.to_owned()), false);
    while let Some(path) = place {
        let page = site.get(who, &path).await;
        place = linked(&page, rel);
        let on_it = each(&page.body, "username");
        is_empty |= on_it.is_empty() && place.is_some();
        names.extend(on_it);
    }
    (names, is_empty)
}

/// A page of one looked at five who don't show, and then was empty: clients took that for the end.
#[tokio::test]
async fn a_page_on_which_nobody_shows_leads_on_to_those_who_do() {
    let site = Served::start().await;
    let (ada, ben) = (site.sign_up("ada").await, site.sign_up("ben").await);
    let status = id(&site.says(&ada, "who likes this?").await);
    for name in ["first", "h1", "h2", "h3", "h4", "h5", "h6", "last"] {
        let liker = site.sign_up(name).await;
        site.post(&liker, &format!("/api/v1/statuses/{status}/favourite"), Value::Null).await.ok();
        if name.starts_with('h') {
            site.post(&ben, &format!("/api/v1/accounts/{}/block", liker.id), Value::Null).await.ok();
        }
    }
    let likers = format!("/api/v1/statuses/{status}/favourited_by?limit=1");
    assert_eq!(walk(&site, &ben, &likers, "next").await, (vec!["last".into(), "first".into()], false));
    // Up from the oldest; the end has no link.
    let whole = format!("/api/v1/statuses/{status}/favourited_by?limit=80");
    let mut oldest = likers.clone();
    let oldest = loop {
        let page = site.get(&ben, &oldest).await;
        match linked(&page, "next") {
            Some(next) if each(&page.body, "username") != ["first"] => oldest = next,
            _ => break linked(&page, "prev").unwrap(),
        }
    };
    assert_eq!(walk(&site, &ben, &oldest, "prev").await, (vec!["last".into()], false));
    let end = site.get(&ben, &whole).await;
    assert_eq!((each(&end.body, "username").len(), linked(&end, "next")), (2, None));
    let above = site.get(&ben, &linked(&end, "prev").unwrap()).await;
    assert_eq!((above.body, above.link), (json!([]), None));
    site.end().await;
}

/// Several clients take digits alone out of a link: whatever else stands there was the end of each list for them.
#[tokio::test]
async fn links_of_every_list_name_their_places_by_digits() {
    let site = Served::start().await;
    let (ada, ben) = (site.sign_up("ada").await, site.sign_up("ben").await);
    let mut status = String::new();
    for n in 0..3 {
        status = id(&site.says(&ada, &format!("status {n}")).await);
        for act in ["bookmark", "favourite", "reblog"] {
            site.post(&ben, &format!("/api/v1/statuses/{status}/{act}"), Value::Null).await.ok();
        }
        let other = site.sign_up(&format!("n{n}")).await;
        site.post(&other, &format!("/api/v1/accounts/{}/follow", ada.id), Value::Null).await.ok();
        site.post(&other, &format!("/api/v1/statuses/{status}/favourite"), Value::Null).await.ok();
        for act in ["mute", "block"] {
            let other = site.sign_up(&format!("{act}{n}")).await;
            site.post(&ada, &format!("/api/v1/accounts/{}/{act}", other.id), Value::Null).await.ok();
        }
        let other = site.sign_up(&format!("likes{n}")).await;
        site.post(&other, &format!("/api/v1/statuses/{status}/favourite"), Value::Null).await.ok();
    }
    for (who, path) in [
        (&ben, "/api/v1/bookmarks".to_owned()),
        (&ben, "/api/v1/favourites".into()),
        (&ada, format!("/api/v1/accounts/{}/followers", ada.id)),
        (&ada, format!("/api/v1/statuses/{status}/favourited_by")),
        (&ada, "/api/v1/mutes".into()),
        (&ada, "/api/v1/blocks".into()),
        (&ada, "/api/v1/timelines/public".into()),
        (&ada, "/api/v1/notifications".into()),
    ] {
        let (mut met, mut place) = (0, Some(format!("{path}?limit=1")));
        while let Some(next) = place {
            let page = site.get(who, &next).await;
            met += page.body.as_array().unwrap().len();
            for rel in ["next", "prev"] {
                let Some(link) = linked(&page, rel) else { continue };
                let id = link.split(['?', '&']).find_map(|part| part.split_once("_id=")).unwrap().1;
                assert!(id.bytes().all(|byte| byte.is_ascii_digit()), "{path}: {link}");
            }
            place = linked(&page, "next");
        }
        assert!(met >= 3, "{path}: {met}");
    }
    site.end().await;
}

/// Places of lists are no ids, and clients that begin at 0 were shown nothing.
#[tokio::test]
async fn everything_is_newer_than_a_place_that_is_none_and_nothing_is_older() {
    let site = Served::start().await;
    let (ada, ben) = (site.sign_up("ada").await, site.sign_up("ben").await);
    site.post(&ben, &format!("/api/v1/accounts/{}/follow", ada.id), Value::Null).await.ok();
    let status = id(&site.says(&ada, "hello").await);
    site.post(&ben, &format!("/api/v1/statuses/{status}/bookmark"), Value::Null).await.ok();
    for path in [format!("/api/v1/accounts/{}/followers", ada.id), "/api/v1/bookmarks".into()] {
        for (query, many) in [
            ("since_id=0", 1),
            ("min_id=0", 1),
            ("min_id=117691705739452800", 1),
            ("since_id=x", 1),
            ("max_id=x", 0),
        ] {
            let page = site.get(&ben, &format!("{path}?{query}")).await.ok();
            assert_eq!(page.as_array().unwrap().len(), many, "{path}?{query}");
        }
    }
    site.end().await;
}

/// The page behind an account that had left meanwhile was empty, and the end.
#[tokio::test]
async fn members_of_a_list_are_paged_by_places_that_outlast_who_leaves() {
    let site = Served::start().await;
    let ada = site.sign_up("ada").await;
    let list = id(&site.post(&ada, "/api/v1/lists", json!({ "title": "some" })).await.ok());
    let members = format!("/api/v1/lists/{list}/accounts");
    let mut ids = Vec::new();
    for n in 0..5 {
        let member = site.sign_up(&format!("m{n}")).await.id;
        site.post(&ada, &format!("/api/v1/accounts/{member}/follow"), Value::Null).await.ok();
        site.post(&ada, &members, json!({ "account_ids": [member] })).await.ok();
        ids.push(member);
    }
    ids.sort_unstable_by_key(|id| std::cmp::Reverse(id.parse::<u64>().unwrap()));
    let first = site.get(&ada, &format!("{members}?limit=2")).await;
    assert_eq!(each(&first.body, "id"), ids[..2]);
    let leaves = json!({ "account_ids": [ids[1]] });
    site.send("DELETE", &members, Some(&ada.token), leaves).await.ok();
    let second = site.get(&ada, &linked(&first, "next").unwrap()).await;
    assert_eq!(each(&second.body, "id"), ids[2..4]);
    let third = site.get(&ada, &linked(&second, "next").unwrap()).await;
    assert_eq!((each(&third.body, "id"), linked(&third, "next")), (ids[4..].to_vec(), None));
    let back = site.get(&ada, &linked(&second, "prev").unwrap()).await;
    assert_eq!(each(&back.body, "id"), ids[..1]);
    assert_eq!(each(&site.get(&ada, &format!("{members}?limit=0")).await.ok(), "id").len(), 4);
    site.end().await;
}
