//! Statuses that are held back, as their authors and others find them; and those that are refused.

use serde_json::json;
use tideline::{AccountId, ReportQuery};

use super::served::{Served, each, id};

#[tokio::test]
async fn a_link_of_a_new_account_shows_once_a_moderator_says_so_and_repeats_are_refused() {
    let site = Served::start_with(|settings| {
        settings.judge.holds_links_of_new = true;
        settings.judge.refuses_same_text_from = 3;
    })
    .await;
    let (ada, ben) = (site.sign_up("ada").await, site.sign_up("ben").await);
    let plain = id(&site.says(&ada, "Low tide at noon").await);
    let held = id(&site.says(&ada, "Look at https://x.example").await);
    let statuses = format!("/api/v1/accounts/{}/statuses", ada.id);
    assert_eq!(each(&site.get(&ada, &statuses).await.body, "id"), [held.clone(), plain.clone()]);
    assert_eq!(each(&site.get(&ben, &statuses).await.body, "id"), [plain]);
    let path = format!("/api/v1/statuses/{held}");
    assert_eq!(site.get(&ben, &path).await.status, 404);

    let queue = site.engine().reports(&ReportQuery::default()).await.unwrap().reports;
    assert_eq!(queue.len(), 1);
    let moderator = AccountId::new(ben.id.parse().unwrap()).unwrap();
    site.engine().decide_held(queue[0].id, moderator, true).await.unwrap();
    site.get(&ben, &path).await.ok();

    for _ in 0..2 {
        site.says(&ben, "The very same long words").await;
    }
    let refused = site.post(&ben, "/api/v1/statuses", json!({ "status": "the very same long words!" })).await;
    assert_eq!(refused.status, 422);
    assert!(refused.body["error"].as_str().unwrap().contains("the same text"), "{:?}", refused.body);
    site.end().await;
}
