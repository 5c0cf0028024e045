//! Limits of an account's own, as moderators give them, and what they hear of who reaches one.

use serde_json::{Value, json};
use tideline::AccountId;
use tideline_server::accounts::{AccountRole, set_role};

use super::served::{Served, id};

#[tokio::test]
async fn a_moderator_limits_an_account_and_hears_that_it_reaches_that() {
    let site = Served::start().await;
    let (ada, ben) = (site.sign_up("ada").await, site.sign_up("ben").await);
    let scopes = "read admin:read:reports admin:read:accounts admin:write:accounts";
    let token = site.token(&site.application(scopes).await, "ben", scopes).await;
    let limits = format!("/api/tideline/v1/accounts/{}/limits", ada.id);
    let send = async |method: &str, body: Value| site.send(method, &limits, Some(&token), body).await;
    assert_eq!(send("GET", Value::Null).await.status, 403, "it is no moderator's");
    assert_eq!(site.post(&ada, &limits, json!({ "posts": 9 })).await.status, 403, "nobody gives itself more");
    let moderator = AccountId::new(ben.id.parse().unwrap()).unwrap();
    set_role(site.registration(), moderator, AccountRole::Moderator).await.unwrap();

    let told = send("GET", Value::Null).await.ok();
    assert_eq!((&told["own"]["posts"], &told["usual"]["posts"]), (&Value::Null, &json!("60000/1h")));
    assert_eq!(told["usual"]["followed_accounts"], "2000");
    let told = send("POST", json!({ "posts": 1, "followed_accounts": "5000" })).await.ok();
    assert_eq!((&told["own"]["posts"], &told["own"]["followed_accounts"]), (&json!(1), &json!(5_000)));
    for wrong in [json!("many"), json!(0), json!(-1), json!(70_000), json!([5])] {
        assert_eq!(send("POST", json!({ "posts": wrong })).await.status, 422, "{wrong}");
    }
    let nobody = "/api/tideline/v1/accounts/77/limits";
    assert_eq!(site.send("GET", nobody, Some(&token), Value::Null).await.status, 404);

    site.says(&ada, "Low tide at noon").await;
    let refused = site.post(&ada, "/api/v1/statuses", json!({ "status": "And again" })).await;
    assert_eq!(refused.status, 429, "{:?}", refused.body);
    let queue = format!("/api/tideline/v1/reports?account_id={}", ada.id);
    let noted = loop {
        let told = site.send("GET", &queue, Some(&token), Value::Null).await.ok();
        if let [report] = &told["reports"].as_array().unwrap()[..] {
            break report.clone();
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    assert_eq!((&noted["category"], &noted["account_id"]), (&json!("limit"), &Value::Null));
    assert_eq!((id(&noted).is_empty(), &noted["statuses"]), (false, &json!([])));
    assert!(noted["comment"].as_str().unwrap().contains("`limits.posts`"), "{noted}");

    let told = send("POST", json!({ "posts": "" })).await.ok();
    assert_eq!((&told["own"]["posts"], &told["own"]["followed_accounts"]), (&Value::Null, &json!(5_000)));
    site.says(&ada, "And again").await;
    site.end().await;
}
