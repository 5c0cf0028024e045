//! Timelines of everybody: the public one, and those of hashtags.

use serde_json::json;

use super::served::{Served, URL, each, id};

#[tokio::test]
async fn the_public_timeline_shows_at_once_what_anybody_says_to_all() {
    let site = Served::start().await;
    let (ada, ben) = (site.sign_up("ada").await, site.sign_up("ben").await);
    let first = site.says(&ada, "low tide").await;
    assert_eq!(each(&site.get(&ben, "/api/v1/timelines/public").await.ok(), "id"), [id(&first)]);
    let says = async |who, rest: serde_json::Value| {
        let mut status = json!({ "status": "so" });
        status.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        id(&site.post(who, "/api/v1/statuses", status).await.ok())
    };
    says(&ben, json!({ "in_reply_to_id": id(&first) })).await;
    for visibility in ["unlisted", "private", "direct"] {
        says(&ben, json!({ "visibility": visibility })).await;
    }
    let own = says(&ada, json!({ "in_reply_to_id": id(&first) })).await;
    site.post(&ben, &format!("/api/v1/statuses/{}/reblog", id(&first)), json!({})).await.ok();
    let second = says(&ben, json!({ "visibility": "public" })).await;
    let all = [second.clone(), own.clone(), id(&first)];
    for path in ["/api/v1/timelines/public", "/api/v1/timelines/public?local=true&limit=40"] {
        assert_eq!(each(&site.guest(path).await.ok(), "id"), all, "{path}");
        assert_eq!(each(&site.get(&ada, path).await.ok(), "id"), all, "{path}");
    }
    for nothing in ["remote=true", "only_media=true"] {
        assert_eq!(site.guest(&format!("/api/v1/timelines/public?{nothing}")).await.ok(), json!([]));
    }
    let page = site.guest("/api/v1/timelines/public?local=true&limit=2").await;
    let path = format!("{URL}/api/v1/timelines/public?local=true&limit=2");
    let link = format!("<{path}&max_id={own}>; rel=\"next\", <{path}&min_id={second}>; rel=\"prev\"");
    assert_eq!((page.link.as_deref(), each(&page.body, "id")), (Some(link.as_str()), all[..2].to_vec()));
    let older = site.guest(&format!("/api/v1/timelines/public?max_id={own}")).await.ok();
    assert_eq!(each(&older, "id"), all[2..]);
    let newer = site.guest(&format!("/api/v1/timelines/public?limit=1&min_id={}", id(&first))).await.ok();
    assert_eq!(each(&newer, "id"), all[1..2]);
    assert_eq!(site.guest(&format!("/api/v1/timelines/public?min_id={second}")).await.ok(), json!([]));

    site.post(&ada, &format!("/api/v1/accounts/{}/block", ben.id), json!({})).await.ok();
    assert_eq!(each(&site.get(&ada, "/api/v1/timelines/public").await.ok(), "id"), all[1..]);
    let path = format!("/api/v1/statuses/{own}");
    site.send("DELETE", &path, Some(&ada.token), serde_json::Value::Null).await.ok();
    assert_eq!(each(&site.guest("/api/v1/timelines/public").await.ok(), "id"), [second, id(&first)]);
    site.end().await;
}

#[tokio::test]
async fn hashtags_are_joined_required_and_left_out() {
    let site = Served::start().await;
    let ada = site.sign_up("ada").await;
    let mut posts = Vec::new();
    for text in ["#ebb", "#flow", "#ebb #flow", "#Ebb #neap", "no tag"] {
        posts.push(id(&site.says(&ada, text).await));
    }
    let [ebb, flow, both, neap, _] = &posts[..] else { panic!("five were posted") };
    for (query, wanted) in [
        ("", vec![neap, both, ebb]),
        ("?any[]=FLOW", vec![neap, both, flow, ebb]),
        ("?any[]=flow&any[]=%23neap&limit=2", vec![neap, both]),
        ("?all[]=flow", vec![both]),
        ("?all=flow", vec![both]),
        ("?none[]=flow", vec![neap, ebb]),
        ("?any[]=flow&none[]=neap&none[]=!", vec![both, flow, ebb]),
        ("?any[]=flow&all[]=ebb&none[]=neap", vec![both, ebb]),
        ("?all[]=nobody", vec![]),
        ("?all[]=!", vec![]),
        ("?any[]=a&any[]=b&any[]=c&any[]=d&any[]=flow", vec![neap, both, ebb]),
        ("?local=true", vec![neap, both, ebb]),
        ("?remote=true", vec![]),
        ("?only_media=true", vec![]),
    ] {
        let page = site.guest(&format!("/api/v1/timelines/tag/ebb{query}")).await.ok();
        assert_eq!(each(&page, "id").iter().collect::<Vec<_>>(), wanted, "{query}");
    }
    for (query, wanted) in
        [("tagged=EBB", vec![neap, both, ebb]), ("tagged=neap", vec![neap]), ("tagged=!", vec![])]
    {
        let page = site.guest(&format!("/api/v1/accounts/{}/statuses?{query}", ada.id)).await.ok();
        assert_eq!(each(&page, "id").iter().collect::<Vec<_>>(), wanted, "{query}");
    }
    let page = site.guest("/api/v1/timelines/tag/ebb?any[]=flow&limit=1").await;
    let path = format!("{URL}/api/v1/timelines/tag/ebb?any%5B%5D=flow&limit=1");
    let link = format!("<{path}&max_id={neap}>; rel=\"next\", <{path}&min_id={neap}>; rel=\"prev\"");
    assert_eq!(page.link.as_deref(), Some(link.as_str()));
    site.end().await;
}
