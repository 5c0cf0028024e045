//! Services: backends that act for any account of a site, and for nobody who is not theirs.

use std::fmt::Write as _;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use serde_json::{Value, json};
use tideline::cluster::Command;
use tideline::{AccountId, AccountState, AccountUpdate};
use tideline_server::service;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::client::Answer;
use super::faults::{fill, keys};
use super::served::{Served, id};

const ACCOUNTS: &str = "/api/tideline/v1/accounts";
const HOME: &str = "/api/v1/timelines/home";
const RULES: &str = "/api/v1/instance/rules";
const STATUSES: &str = "/api/v1/statuses";

/// Once a day a service waited for its token to be written anew, and was refused where that could not be.
#[tokio::test]
async fn a_service_goes_on_where_its_use_can_not_be_noted() {
    let site = Served::start().await;
    let token = service::create(site.registration(), "walker", "read").await.unwrap();
    let tokens = keys(&site.cluster, "site:{*}XS*").await;
    let (node, key) = &tokens[0];
    // As if it had been used last in 1970.
    let value = site.cluster.ask(node, Command::new("GET").arg(key)).await.unwrap();
    let value = value.bytes().unwrap().to_vec();
    // A sign, eight bytes, and JSON, whose fields stay in their order.
    let (head, json) = value.split_at(9);
    let json = std::str::from_utf8(json).unwrap();
    let (fields, _) = json.rsplit_once(':').unwrap();
    assert!(fields.ends_with("\"used_ms\""), "{json}");
    let old = [head, fields.as_bytes(), b":0}"].concat();
    site.cluster.ask(node, Command::new("SET").arg(key).arg(&old)).await.unwrap();
    fill(&site.cluster, true).await;
    assert_eq!(site.send("GET", "/api/v1/timelines/public", Some(&token), Value::Null).await.status, 200);
    fill(&site.cluster, false).await;
    site.end().await;
}

/// Asks with a token, and as somebody.
async fn ask(
    site: &Served,
    (token, acts_as): (&str, &str),
    (method, path): (&str, &str),
    body: Value,
) -> (u16, Value) {
    let bearer = format!("Bearer {token}");
    let mut headers = vec![("Content-Type", "application/json")];
    headers.extend((!token.is_empty()).then_some(("Authorization", bearer.as_str())));
    headers.extend((!acts_as.is_empty()).then_some(("Tideline-Act-As", acts_as)));
    let text = if body.is_null() { String::new() } else { body.to_string() };
    let answer: Answer = site.connect().await.send(method, path, &headers, &text).await;
    let told = serde_json::from_slice(&answer.body).unwrap_or(Value::Null);
    (answer.status, told)
}

/// The same, of which the test expects that it is done.
async fn done(site: &Served, who: (&str, &str), call: (&str, &str), body: Value) -> Value {
    let (status, told) = ask(site, who, call, body).await;
    assert_eq!(status, 200, "{call:?}: {told}");
    told
}

#[tokio::test]
async fn a_backend_has_accounts_for_its_users_and_acts_for_them() {
    let site = Served::start().await;
    let shop = service::create(site.registration(), "shop", "read write follow").await.unwrap();
    let (nobody, ada, bea) = ((shop.as_str(), ""), (shop.as_str(), "42"), (shop.as_str(), "43"));
    let since = "2019-02-03T04:05:06.000Z";
    let wanted = json!({ "id": 42, "username": "Ada", "display_name": "Ada L.", "created_at": since });
    // Asked twice, it is the same account.
    for _ in 0..2 {
        let made = done(&site, nobody, ("POST", ACCOUNTS), wanted.clone()).await;
        assert_eq!(
            (&made["id"], &made["username"], &made["display_name"], &made["created_at"]),
            (&json!("42"), &json!("Ada"), &json!("Ada L."), &json!(since))
        );
    }
    let made = done(&site, nobody, ("POST", ACCOUNTS), json!({ "id": "43" })).await;
    assert_eq!((&made["id"], &made["username"]), (&json!("43"), &json!("id43")));
    let found = site.guest("/api/v1/accounts/lookup?acct=id43").await.ok();
    assert_eq!(id(&found), "43");
    // Who has a name is not found under its id as well.
    assert_eq!(site.guest("/api/v1/accounts/lookup?acct=id42").await.status, 404);
    let made = done(&site, nobody, ("POST", ACCOUNTS), json!({ "username": "cy" })).await;
    assert!(id(&made).parse::<u64>().unwrap() > 43);
    for (wanted, why) in [
        (json!({ "id": 42, "username": "eve" }), "is the account of"),
        (json!({ "id": 42, "group": true }), "was made as something else"),
        (json!({ "id": 44, "username": "ada" }), "taken"),
        (json!({ "id": 44, "username": "id7" }), "reserved"),
        (json!({ "id": 44, "username": "no name" }), "Validation failed"),
        (json!({ "id": 0 }), "a number from 1"),
        (json!({ "id": "ada" }), "a number from 1"),
        (json!({ "id": 44, "created_at": "3000-01-01" }), "a moment since 1970 that is not to come"),
        (json!({ "id": 44, "created_at": "yesterday" }), "a moment since 1970 that is not to come"),
    ] {
        let (status, told) = ask(&site, nobody, ("POST", ACCOUNTS), wanted.clone()).await;
        assert_eq!(status, 422, "{wanted}: {told}");
        assert!(told["error"].as_str().unwrap().contains(why), "{wanted}: {told}");
    }
    assert_eq!(ask(&site, nobody, ("GET", "/api/v1/accounts/44"), Value::Null).await.0, 404);
    // Whoever says nothing of a lock changes nothing.
    for (asked, is_locked) in [
        (json!({ "locked": true }), true),
        (json!({}), true),
        (json!({ "locked": false, "group": false }), false),
    ] {
        let mut asked = asked;
        asked["id"] = 42.into();
        assert_eq!(done(&site, nobody, ("POST", ACCOUNTS), asked).await["locked"], is_locked);
    }

    let followed = done(&site, ada, ("POST", "/api/v1/accounts/43/follow"), Value::Null).await;
    assert_eq!(followed["following"], true);
    let said = done(&site, bea, ("POST", STATUSES), json!({ "status": "from a backend" })).await;
    assert_eq!(said["account"]["id"], "43");
    let path = format!("{STATUSES}/{}", id(&said));
    for _ in 0..100 {
        let home = done(&site, ada, ("GET", HOME), Value::Null).await;
        if home.as_array().unwrap().iter().any(|status| status["id"] == said["id"]) {
            // It may do for each what that one may do, and no more.
            assert_eq!(ask(&site, ada, ("DELETE", &path), Value::Null).await.0, 404);
            done(&site, bea, ("DELETE", &path), Value::Null).await;
            site.end().await;
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("what was posted is in nobody's home");
}

#[tokio::test]
async fn a_service_may_do_what_its_token_says_until_it_is_revoked_and_nobody_else_acts_for_others() {
    let site = Served::start().await;
    let ada = site.sign_up("ada").await;
    let registration = site.registration();
    let reads = service::create(registration, "reader", "read").await.unwrap();
    let as_ada = (reads.as_str(), ada.id.as_str());
    done(&site, as_ada, ("GET", HOME), Value::Null).await;
    let me = done(&site, as_ada, ("GET", "/api/v1/accounts/verify_credentials"), Value::Null).await;
    assert_eq!(me["username"], "ada");
    // Scopes.
    for call in [("POST", STATUSES), ("POST", ACCOUNTS), ("POST", "/api/v1/lists")] {
        let (status, told) = ask(&site, as_ada, call, json!({ "status": "x", "title": "x" })).await;
        assert_eq!(
            (status, told["error"].as_str()),
            (403, Some("This action is outside the authorized scopes"))
        );
    }
    // Nobody named, no account, no number.
    for (named, status) in [("", 422), ("9999999", 404), ("ada", 400), ("0", 400), ("-1", 400)] {
        assert_eq!(ask(&site, (&reads, named), ("GET", HOME), Value::Null).await.0, status, "{named:?}");
    }
    // What everybody may see needs nobody.
    let path = format!("/api/v1/accounts/{}", ada.id);
    done(&site, (&reads, ""), ("GET", &path), Value::Null).await;
    // The header is for services, and services are no applications.
    assert_eq!(ask(&site, (&ada.token, "42"), ("GET", HOME), Value::Null).await.0, 403);
    assert_eq!(ask(&site, (&ada.token, &ada.id), ("GET", HOME), Value::Null).await.0, 403);
    assert_eq!(ask(&site, ("", &ada.id), ("GET", HOME), Value::Null).await.0, 401);
    let unknown = format!("tds_{}", "x".repeat(43));
    assert_eq!(ask(&site, (&unknown, &ada.id), ("GET", HOME), Value::Null).await.0, 401);
    // A token of somebody may begin like a service's.
    assert_eq!(ask(&site, ("tds_short", &ada.id), ("GET", HOME), Value::Null).await.0, 403);
    assert_eq!(ask(&site, (&ada.token, ""), ("POST", ACCOUNTS), json!({ "id": 42 })).await.0, 403);
    for call in [("GET", "/api/v1/apps/verify_credentials"), ("POST", "/api/v1/accounts")] {
        assert_eq!(ask(&site, as_ada, call, json!({ "username": "eve" })).await.0, 403, "{call:?}");
    }

    // Also where nobody looks at who asks.
    for path in [RULES, &path, "/oauth/authorize", "/"] {
        assert_eq!(ask(&site, (&ada.token, &ada.id), ("GET", path), Value::Null).await.0, 403, "{path}");
        assert_eq!(ask(&site, ("", &ada.id), ("GET", path), Value::Null).await.0, 401, "{path}");
    }
    done(&site, as_ada, ("GET", RULES), Value::Null).await;
    // As whoever could do nothing itself.
    let update = |state| AccountUpdate { state: Some(state), ..AccountUpdate::default() };
    let id = AccountId::new(ada.id.parse().unwrap()).unwrap();
    for (state, status) in [(AccountState::Suspended, 403), (AccountState::Active, 200)] {
        site.engine().update_account(id, &update(state)).await.unwrap();
        // Within what an instance may remember.
        for n in 0.. {
            let told = ask(&site, as_ada, ("GET", HOME), Value::Null).await.0;
            if told == status && ask(&site, as_ada, ("GET", RULES), Value::Null).await.0 == status {
                break;
            }
            assert!(n < 200, "{state}: {told}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    let again = service::create(registration, "reader", "read").await.unwrap_err();
    assert!(again.to_string().contains("there is a token called \"reader\" already"), "{again}");
    let listed = service::list(registration).await.unwrap();
    assert_eq!((listed.len(), listed[0].scopes.as_deref()), (1, Some("read")));
    service::revoke(registration, "reader").await.unwrap();
    assert!(service::list(registration).await.unwrap().is_empty());
    service::revoke(registration, "reader").await.unwrap_err();
    // Within what an instance may remember.
    for n in 0.. {
        let (status, _) = ask(&site, as_ada, ("GET", HOME), Value::Null).await;
        if status == 401 {
            break;
        }
        assert!(n < 200 && status == 200, "{status}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    site.end().await;
}

/// Keeps lines of what services do.
struct Log;

fn lines() -> &'static Mutex<Vec<String>> {
    static LINES: OnceLock<Mutex<Vec<String>>> = OnceLock::new();
    LINES.get_or_init(Mutex::default)
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, "{}={value:?} ", field.name());
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "tideline_server::service"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        lines().lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn the_log_names_the_service_and_whom_it_acts_for_at_each_act() {
    let _ = tracing::subscriber::set_global_default(Log);
    let site = Served::start().await;
    let secret = service::create(site.registration(), "logged", "read write follow").await.unwrap();
    done(&site, (&secret, ""), ("POST", ACCOUNTS), json!({ "id": 4711 })).await;
    done(&site, (&secret, "4711"), ("POST", STATUSES), json!({ "status": "what nobody logs" })).await;
    let told: Vec<String> =
        lines().lock().unwrap().iter().filter(|line| line.contains("service=\"logged\"")).cloned().collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains(r#"method="POST""#) && told[0].contains(ACCOUNTS), "{told:?}");
    assert!(told[1].contains("account=4711") && told[1].contains(r#"route="/api/v1/statuses""#), "{told:?}");
    assert!(
        told.iter().all(|line| !line.contains(&secret[4..]) && !line.contains("nobody logs")),
        "{told:?}"
    );
    site.end().await;
}
