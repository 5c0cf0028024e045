//! What stands behind the addresses that clients are given: pages for who follows a link, pictures of who has none.

use serde_json::{Value, json};

use super::client::Answer;
use super::served::{Served, URL, connect, id};

async fn open(site: &Served, path: &str) -> Answer {
    let path = path.strip_prefix(URL).unwrap();
    connect(site.address()).await.send("GET", path, &[], "").await
}

#[tokio::test]
async fn every_address_that_clients_are_given_leads_somewhere() {
    let site = Served::start().await;
    let ada = site.sign_up("ada").await;
    let profile =
        json!({ "display_name": "Ada <b>", "note": "salt <i> & https://tide.example", "indexable": false });
    site.send("PATCH", "/api/v1/accounts/update_credentials", Some(&ada.token), profile).await.ok();
    let status = site.says(&ada, "the tide <script>alert(1)</script> comes #tide").await;
    let account = site.guest(&format!("/api/v1/accounts/{}", ada.id)).await.ok();
    let texts = |of: &Value, names: &[&str]| {
        names.iter().map(|n| of[n].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for url in texts(&account, &["url", "uri"]) {
        let page = open(&site, &url).await;
        assert_eq!((page.status, page.header("x-robots-tag")), (200, Some("noindex")), "{url}");
        let page = page.text();
        assert!(
            page.contains("<h1>Ada &lt;b&gt;</h1>") && page.contains("salt &lt;i&gt; &amp; <a href"),
            "{page}"
        );
        assert!(page.contains("<strong>@ada@tide.example:3000</strong>"), "{page}");
    }
    for url in texts(&status, &["url", "uri"]) {
        let page = open(&site, &url).await;
        assert_eq!(page.status, 200, "{url}");
        let policy = page.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'") && page.header("x-frame-options") == Some("DENY"));
        let page = page.text();
        assert!(page.contains("the tide &lt;script&gt;") && !page.contains("<script"), "{page}");
        let day = &status["created_at"].as_str().unwrap()[..10];
        assert!(page.contains("Ada &lt;b&gt;</a>") && page.contains(&format!("{day}, ")), "{page}");
    }
    let tag = texts(&status["tags"][0], &["url"]);
    assert!(open(&site, &tag[0]).await.text().contains("<h1>#tide</h1>"));
    for url in texts(&account, &["avatar", "avatar_static", "header", "header_static"]) {
        let picture = open(&site, &url).await;
        assert_eq!((picture.status, picture.header("content-type")), (200, Some("image/png")), "{url}");
        assert!(
            picture.body.starts_with(b"\x89PNG")
                && picture.header("cache-control").unwrap().contains("max-age")
        );
    }
    let instance = site.guest("/api/v2/instance").await.ok();
    assert_eq!(open(&site, instance["thumbnail"]["url"].as_str().unwrap()).await.status, 200);
    site.end().await;
}

#[tokio::test]
async fn what_not_everybody_may_see_has_the_page_of_what_is_not_there() {
    let site = Served::start().await;
    let (ada, ben) = (site.sign_up("ada").await, site.sign_up("ben").await);
    let hers = |status: &Value| format!("{URL}/@ada/{}", id(status));
    let says = async |visibility: &str| {
        let said = json!({ "status": "for some", "visibility": visibility });
        site.post(&ada, "/api/v1/statuses", said).await.ok()
    };
    let mut hidden = vec![hers(&says("private").await), hers(&says("direct").await)];
    let shown = says("unlisted").await;
    assert_eq!(open(&site, &hers(&shown)).await.status, 200);
    // By somebody else's name.
    hidden.push(format!("{URL}/@ben/{}", id(&shown)));
    let carl = site.sign_up("carl").await;
    let of = tideline::AccountId::new(carl.id.parse().unwrap()).unwrap();
    let state = Some(tideline::AccountState::Suspended);
    site.engine().update_account(of, &tideline::AccountUpdate { state, ..Default::default() }).await.unwrap();
    hidden.extend(
        ["carl", "nobody", "x y", "ada/0", "ada/x"]
            .map(|name| format!("{URL}/@{}", name.replace(' ', "%20"))),
    );
    hidden.push(format!("{URL}/users/nobody/statuses/1"));
    hidden.push(format!("{URL}/tags/%23%23"));
    let gone = id(&site.says(&ben, "gone").await);
    site.send("DELETE", &format!("/api/v1/statuses/{gone}"), Some(&ben.token), Value::Null).await.ok();
    hidden.push(format!("{URL}/@ben/{gone}"));
    let mut pages = Vec::new();
    for url in hidden {
        let page = open(&site, &url).await;
        assert_eq!(page.status, 404, "{url}");
        pages.push(page.text());
    }
    assert!(pages.iter().all(|page| *page == pages[0] && page.contains("Nothing here")), "{pages:#?}");
    site.end().await;
}
