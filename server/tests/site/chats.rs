//! Chats, as clients find them: statuses that are direct, conversations, and calls of our own for the rest.

use std::collections::HashMap;

use serde_json::{Value, json};
use tideline::{AccountId, AccountLimit};

use super::served::{Person, Served, each, id};

const CHATS: &str = "/api/tideline/v1/chats";
const CONVERSATIONS: &str = "/api/v1/conversations";

/// A direct status, as any client posts it.
async fn direct(site: &Served, by: &Person, text: &str, answers: Option<&Value>) -> Value {
    let answers = answers.map(id);
    let said = json!({ "status": text, "visibility": "direct", "in_reply_to_id": answers });
    site.post(by, "/api/v1/statuses", said).await.ok()
}

async fn conversations(site: &Served, of: &Person) -> Value {
    site.get(of, CONVERSATIONS).await.ok()
}

#[tokio::test]
async fn what_is_direct_is_a_message_and_what_answers_it_is_in_the_same_chat() {
    let site = Served::start().await;
    let (ada, ben, cleo) = (site.sign_up("ada").await, site.sign_up("ben").await, site.sign_up("cleo").await);
    let first = direct(&site, &ada, "@ben low tide?", None).await;
    assert_eq!((&first["visibility"], &first["account"]["username"]), (&json!("direct"), &json!("ada")));
    assert_eq!((first.get("group"), each(&first["mentions"], "username")), (None, vec!["ben".to_owned()]));
    let of_ben = conversations(&site, &ben).await;
    let chat = id(&of_ben[0]);
    assert_eq!((&of_ben[0]["unread"], &of_ben[0]["unread_count"]), (&json!(true), &json!(1)));
    assert_eq!(of_ben[0]["request"], json!(true), "ben follows nobody");
    assert_eq!(each(&of_ben[0]["accounts"], "username"), ["ada"]);
    assert_eq!(of_ben[0]["last_status"]["id"], first["id"]);

    // Whatever it says of how far it goes, or whom it names: the chat has the members that it has.
    let answer = direct(&site, &ben, "@ada @cleo at noon", Some(&first)).await;
    assert_eq!((&answer["in_reply_to_id"], &answer["in_reply_to_account_id"]), (&first["id"], &Value::Null));
    let unsaid = json!({ "status": "then noon", "in_reply_to_id": id(&answer) });
    let unsaid = site.post(&ada, "/api/v1/statuses", unsaid).await.ok();
    assert_eq!(unsaid["visibility"], json!("direct"));
    // An answer that all may read tells nobody what it answers.
    let aloud = json!({ "status": "at noon!", "in_reply_to_id": id(&first), "visibility": "public" });
    let aloud = site.post(&ben, "/api/v1/statuses", aloud).await.ok();
    assert_eq!((&aloud["in_reply_to_id"], &aloud["in_reply_to_account_id"]), (&Value::Null, &Value::Null));
    // Nor does one in another chat.
    let other = id(&site.post(&ada, CHATS, json!({ "account_ids": [cleo.id] })).await.ok());
    let elsewhere = json!({ "status": "noon, says ben", "in_reply_to_id": id(&first), "chat": other });
    let elsewhere = site.post(&ada, "/api/v1/statuses", elsewhere).await.ok();
    assert_eq!(elsewhere["in_reply_to_id"], Value::Null);
    site.send("DELETE", &format!("/api/v1/statuses/{}", id(&elsewhere)), Some(&ada.token), Value::Null)
        .await
        .ok();
    assert_eq!(conversations(&site, &cleo).await, json!([]));
    for status in [&first, &answer, &unsaid] {
        assert_eq!(site.get(&cleo, &format!("/api/v1/statuses/{}", id(status))).await.status, 404);
    }
    let messages = format!("{CHATS}/{chat}/statuses");
    let all = [id(&unsaid), id(&answer), id(&first)];
    for reader in [&ada, &ben] {
        assert_eq!(each(&site.get(reader, &messages).await.ok(), "id"), all);
    }
    assert_eq!(each(&site.get(&ben, &format!("{messages}?max_id={}", all[0])).await.ok(), "id"), all[1..]);
    assert_eq!(site.get(&cleo, &messages).await.status, 404);
    let context = site.get(&ben, &format!("/api/v1/statuses/{}/context", id(&answer))).await.ok();
    assert_eq!(each(&context["ancestors"], "id"), all[2..]);
    // Another one mentions the same: the same chat; and one more: another one.
    let again = direct(&site, &ben, "@ada still there?", None).await;
    assert_eq!(each(&site.get(&ada, &messages).await.ok(), "id")[0], id(&again));
    direct(&site, &ben, "@ada @cleo all three", None).await;
    assert_eq!(conversations(&site, &ada).await.as_array().unwrap().len(), 2);
    // It is nobody's account.
    for path in ["", "/statuses", "/followers"] {
        assert_eq!(site.get(&ada, &format!("/api/v1/accounts/{chat}{path}")).await.status, 404, "{path}");
    }
    assert_eq!(site.post(&ada, &format!("/api/v1/accounts/{chat}/follow"), Value::Null).await.status, 404);
    site.end().await;
}

#[tokio::test]
async fn a_conversation_is_read_put_aside_and_left() {
    let site = Served::start().await;
    let (ada, ben, cleo) = (site.sign_up("ada").await, site.sign_up("ben").await, site.sign_up("cleo").await);
    direct(&site, &ada, "@ben one", None).await;
    let chat = id(&conversations(&site, &ben).await[0]);
    let read = site.post(&ben, &format!("{CONVERSATIONS}/{chat}/read"), Value::Null).await.ok();
    assert_eq!(
        (&read["id"], &read["unread"], &read["request"]),
        (&json!(chat), &json!(false), &json!(false))
    );
    assert_eq!(conversations(&site, &ben).await[0]["unread"], json!(false));
    let hide = site.send("DELETE", &format!("{CONVERSATIONS}/{chat}"), Some(&ben.token), Value::Null).await;
    assert_eq!(hide.ok(), json!({}));
    assert_eq!(conversations(&site, &ben).await, json!([]));
    direct(&site, &ada, "@ben two", None).await;
    assert_eq!(conversations(&site, &ben).await[0]["unread_count"], json!(1));
    // Whoever is in none is told of none.
    for path in [format!("{CONVERSATIONS}/{chat}/read"), format!("{CHATS}/{chat}/leave")] {
        assert_eq!(site.post(&cleo, &path, Value::Null).await.status, 404);
    }
    let hide = site.send("DELETE", &format!("{CONVERSATIONS}/{chat}"), Some(&cleo.token), Value::Null).await;
    assert_eq!(hide.status, 404);

    // One of three, by a call of our own: it is there before anybody has written.
    let all = json!({ "account_ids": [ben.id, cleo.id] });
    let three = site.post(&ada, CHATS, all).await.ok();
    assert_eq!((&three["last_status"], three["accounts"].as_array().unwrap().len()), (&Value::Null, 2));
    let three = id(&three);
    let said = json!({ "status": "all three", "chat": three });
    let said = site.post(&cleo, "/api/v1/statuses", said).await.ok();
    assert_eq!(said["visibility"], json!("direct"));
    let got = site.get(&ben, &format!("{CHATS}/{three}")).await.ok();
    assert_eq!((&got["last_status"]["id"], &got["unread_count"]), (&said["id"], &json!(1)));
    site.post(&ben, &format!("{CHATS}/{three}/leave"), Value::Null).await.ok();
    for path in [String::new(), "/statuses".into()] {
        assert_eq!(site.get(&ben, &format!("{CHATS}/{three}{path}")).await.status, 404);
    }
    assert_eq!(site.get(&ben, &format!("/api/v1/statuses/{}", id(&said))).await.status, 404);
    let again = json!({ "status": "may I?", "chat": three });
    assert_eq!(site.post(&ben, "/api/v1/statuses", again).await.status, 404);
    assert_eq!(each(&conversations(&site, &ben).await, "id"), std::slice::from_ref(&chat));
    assert_eq!(site.get(&ben, "/api/v1/blocks").await.ok(), json!([]), "it is no affair of people");

    // It is found under no name, and nobody is on terms with it.
    for path in [format!("?id[]={chat}"), format!("/lookup?acct=id{chat}")] {
        let found = site.get(&ben, &format!("/api/v1/accounts{path}")).await;
        assert!(found.status == 404 || found.body == json!([]), "{path}: {:?}", found.body);
    }
    for deed in ["block", "unblock", "mute", "note"] {
        let path = format!("/api/v1/accounts/{chat}/{deed}");
        assert_eq!(site.post(&ben, &path, Value::Null).await.status, 404, "{path}");
    }
    // What is meant for a chat goes nowhere else.
    let own = json!({ "status": "for one", "visibility": "direct", "chat": ada.id });
    assert_eq!(site.post(&ada, "/api/v1/statuses", own).await.status, 404);

    // Who blocks is not written to.
    site.post(&ben, &format!("/api/v1/accounts/{}/block", ada.id), Value::Null).await.ok();
    let said = json!({ "status": "@ben?", "visibility": "direct" });
    assert_eq!(site.post(&ada, "/api/v1/statuses", said).await.status, 403);
    site.end().await;
}

#[tokio::test]
async fn all_others_are_told_of_a_message_and_who_sends_it_again_sends_it_once() {
    let site = Served::start().await;
    let (ada, ben, cleo) = (site.sign_up("ada").await, site.sign_up("ben").await, site.sign_up("cleo").await);
    let bearer = format!("Bearer {}", ada.token);
    let send = async |text: &'static str| {
        let said = json!({ "status": text, "visibility": "direct" }).to_string();
        let headers = [
            ("Content-Type", "application/json"),
            ("Authorization", bearer.as_str()),
            ("Idempotency-Key", text),
        ];
        let answer = site.connect().await.send("POST", "/api/v1/statuses", &headers, &said).await;
        let told: Value = serde_json::from_slice(&answer.body).unwrap();
        (answer.status, told["id"].as_str().map(str::to_owned))
    };
    let mut sent = HashMap::new();
    for text in ["@ben once", "@ben @cleo once"] {
        let (first, again) = (send(text).await, send(text).await);
        assert_eq!((first.0, &first), (200, &again));
        sent.insert(text, first);
    }
    // Who has left meanwhile is told what it had sent, and is out all the same.
    let three = id(&conversations(&site, &cleo).await[0]);
    site.post(&ada, &format!("{CHATS}/{three}/leave"), Value::Null).await.ok();
    let two = id(&conversations(&site, &ada).await[0]);
    site.post(&ada, &format!("{CHATS}/{two}/leave"), Value::Null).await.ok();
    for text in ["@ben once", "@ben @cleo once"] {
        assert_eq!(send(text).await, sent[text], "{text}");
    }
    for left in [two, three] {
        assert_eq!(site.get(&ada, &format!("{CHATS}/{left}")).await.status, 404);
    }
    let of_cleo = conversations(&site, &cleo).await;
    assert_eq!((of_cleo.as_array().unwrap().len(), &of_cleo[0]["unread_count"]), (1, &json!(1)));
    let told = site.get(&ben, "/api/v1/notifications").await.ok();
    assert_eq!(each(&told, "type"), ["mention", "mention"]);
    assert_eq!(told[0]["account"]["username"], json!("ada"));
    assert_eq!(told[0]["status"]["visibility"], json!("direct"));
    for (by, told) in [(&ada, 2), (&cleo, 0)] {
        let of = format!("/api/v1/notifications?account_id={}", by.id);
        assert_eq!(site.get(&ben, &of).await.ok().as_array().unwrap().len(), told, "of {}", by.id);
    }
    assert_eq!(each(&site.get(&cleo, "/api/v1/notifications").await.ok(), "type"), ["mention"]);
    // What one writes to oneself nobody else sees.
    let own = json!({ "status": "remember", "visibility": "direct" });
    let own = site.post(&ada, "/api/v1/statuses", own).await.ok();
    let first = &conversations(&site, &ada).await[0];
    // Clients take the first account for granted.
    assert_eq!(
        (&first["last_status"]["id"], each(&first["accounts"], "id")),
        (&own["id"], vec![ada.id.clone()])
    );
    let gone =
        site.send("DELETE", &format!("/api/v1/statuses/{}", id(&own)), Some(&ada.token), Value::Null).await;
    gone.ok();
    assert_eq!(conversations(&site, &ada).await, json!([]));
    site.end().await;
}

/// The last status of a page is where some clients go on; others follow the links.
#[tokio::test]
async fn pages_of_conversations_go_by_their_last_statuses_and_end_at_both_ends() {
    let site = Served::start().await;
    let ada = site.sign_up("ada").await;
    let (ben, cleo, dora) =
        (site.sign_up("ben").await, site.sign_up("cleo").await, site.sign_up("dora").await);
    let first = direct(&site, &ben, "@ada @cleo one", None).await;
    let second = direct(&site, &dora, "@ada two", None).await;
    for text in ["three", "four"] {
        let said = json!({ "status": text, "in_reply_to_id": id(&first) });
        site.post(&cleo, "/api/v1/statuses", said).await.ok();
    }
    site.post(&ada, &format!("/api/v1/accounts/{}/mute", cleo.id), Value::Null).await.ok();
    let page = async |query: String| {
        let told = site.get(&ada, &format!("{CONVERSATIONS}?limit=1{query}")).await;
        let lasts = told.body.as_array().unwrap().iter().map(|of| id(&of["last_status"])).collect::<Vec<_>>();
        (lasts, told.link)
    };
    let links =
        |link: Option<String>| ["max_id=", "min_id="].map(|to| link.as_ref().is_some_and(|l| l.contains(to)));
    let (lasts, link) = page(String::new()).await;
    assert_eq!((lasts, links(link)), (vec![id(&second)], [true, true]));
    let (lasts, link) = page(format!("&max_id={}", id(&second))).await;
    assert_eq!((lasts, links(link)), (vec![id(&first)], [false, true]));
    let (lasts, link) = page(format!("&min_id={}", id(&first))).await;
    assert_eq!((lasts, links(link)), (vec![id(&second)], [true, true]));
    for end in [format!("&min_id={}", id(&second)), format!("&max_id={}", id(&first))] {
        assert_eq!(page(end).await, (vec![], None));
    }
    site.end().await;
}

#[tokio::test]
async fn an_answer_is_sent_once_also_by_who_has_left_its_chat_since() {
    let site = Served::start().await;
    let (ada, ben, cleo) = (site.sign_up("ada").await, site.sign_up("ben").await, site.sign_up("cleo").await);
    let first = direct(&site, &ben, "@ada @cleo one", None).await;
    let chat = id(&conversations(&site, &cleo).await[0]);
    let answer = json!({ "status": "two", "in_reply_to_id": id(&first) }).to_string();
    let send = async |by: &Person| {
        let bearer = format!("Bearer {}", by.token);
        let headers =
            [("Content-Type", "application/json"), ("Authorization", &bearer), ("Idempotency-Key", "once")];
        let told = site.connect().await.send("POST", "/api/v1/statuses", &headers, &answer).await;
        (told.status, serde_json::from_slice::<Value>(&told.body).unwrap()["id"].clone())
    };
    let sent = send(&ada).await;
    assert_eq!(sent.0, 200);
    site.post(&ada, &format!("{CHATS}/{chat}/leave"), Value::Null).await.ok();
    assert_eq!(send(&ada).await, sent);
    assert_eq!(site.get(&ada, &format!("{CHATS}/{chat}")).await.status, 404, "she is out all the same");
    // Whoever has sent nothing learns nothing.
    site.post(&cleo, &format!("{CHATS}/{chat}/leave"), Value::Null).await.ok();
    assert_eq!(send(&cleo).await.0, 404);
    site.end().await;
}

/// Opening the chat took the only permit, and the status was refused, each day anew (H274).
#[tokio::test]
async fn who_may_send_one_direct_status_sends_it_also_to_several() {
    let site = Served::start().await;
    let (ada, ben, _cleo) =
        (site.sign_up("ada").await, site.sign_up("ben").await, site.sign_up("cleo").await);
    let one = [(AccountLimit::DirectPosts, Some(1))];
    site.engine().limit_account(AccountId::new(ada.id.parse().unwrap()).unwrap(), &one).await.unwrap();
    let sent = direct(&site, &ada, "@ben @cleo low tide?", None).await;
    for status in ["@ben @cleo and now?", "@ben?"] {
        let said = json!({ "status": status, "visibility": "direct" });
        assert_eq!(site.post(&ada, "/api/v1/statuses", said).await.status, 429, "{status}");
    }
    direct(&site, &ben, "At noon", Some(&sent)).await;
    assert_eq!(conversations(&site, &ada).await.as_array().unwrap().len(), 1);
    site.end().await;
}
