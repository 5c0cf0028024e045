//! Tokens: who is given one, for what, and how it ends.

use serde_json::{Value, json};

use super::browser::Browser;
use super::served::{PASSWORD, Served, URL};

/// RFC 7636, appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

const BACK: &str = "https://app.example/back";

fn query(client_id: &str, redirect: &str) -> String {
    format!(
        "/oauth/authorize?response_type=code&client_id={client_id}&redirect_uri={redirect}&scope=read&state=a%26b&\
         code_challenge={CHALLENGE}&code_challenge_method=S256"
    )
}

/// Agrees once more; gives the code.
async fn agreed_code(browser: &mut Browser<'_>) -> String {
    let agreed = browser.submit("approve", &[]).await;
    let code = agreed.header("location").unwrap().split("code=").nth(1).unwrap();
    code.split('&').next().unwrap().to_owned()
}

#[tokio::test]
async fn a_code_is_given_to_whoever_logs_in_and_agrees_and_is_used_once() {
    let site = Served::start().await;
    site.sign_up("ada").await;
    let (id, secret) = site.client.clone();
    let (mut browser, page) = Browser::open(&site, &query(&id, BACK)).await;
    let policy = page.header("content-security-policy").unwrap();
    // Where an application's address leads on to, no policy of ours may keep browsers from.
    assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("form-action"), "{policy}");
    assert_eq!(page.header("x-frame-options"), Some("DENY"));
    let cookie = browser.cookie.clone();
    let wrong = browser.submit("log_in", &[("username", "ada"), ("password", "wrong")]).await;
    assert!(wrong.text().contains("Wrong name or password"));
    browser.submit("log_in", &[("username", "ada"), ("password", PASSWORD)]).await;
    assert!(browser.page.contains("Authorize a test?") && browser.cookie != cookie);

    // A form of elsewhere, or of another browser, does nothing.
    let form = browser.form("approve", "");
    assert_eq!(browser.post(&form, "https://evil.example").await.status, 403);
    let (mut other, _) = Browser::open(&site, &query(&id, BACK)).await;
    assert_eq!(other.post(&form, URL).await.status, 403);

    let denied = browser.submit("deny", &[]).await;
    assert_eq!(denied.header("location").unwrap(), format!("{BACK}?error=access_denied&state=a%26b"));
    let (mut shown, page) = Browser::open(&site, &query(&id, "urn:ietf:wg:oauth:2.0:oob")).await;
    assert!(page.header("content-security-policy").unwrap().contains("form-action 'self';"));
    shown.submit("log_in", &[("username", "ada"), ("password", PASSWORD)]).await;
    let denied = shown.submit("deny", &[]).await;
    assert!(denied.status == 200 && denied.text().contains("given nothing"), "{}", denied.text());
    let agreed = browser.submit("approve", &[]).await;
    let back = agreed.header("location").unwrap().to_owned();
    let code = back.strip_prefix(&format!("{BACK}?code=")).unwrap().split('&').next().unwrap().to_owned();
    let change = async |code: &str, verifier: &str| {
        let asked = json!({
            "grant_type": "authorization_code", "client_id": id, "client_secret": secret, "code": code,
            "redirect_uri": BACK, "code_verifier": verifier,
        });
        site.send("POST", "/oauth/token", None, asked).await
    };
    let token = change(&code, VERIFIER).await.ok();
    assert_eq!((&token["scope"], &token["token_type"]), (&json!("read"), &json!("Bearer")));
    let token = token["access_token"].as_str().unwrap();
    let me = "/api/v1/accounts/verify_credentials";
    assert_eq!(site.send("GET", me, Some(token), Value::Null).await.ok()["username"], "ada");
    let outside = site.send("POST", "/api/v1/statuses", Some(token), json!({ "status": "x" })).await;
    assert_eq!(
        (outside.status, &outside.body["error"]),
        (403, &json!("This action is outside the authorized scopes"))
    );
    // Whoever brings it again has it from elsewhere: what was given for it ends.
    for _ in 0..2 {
        let again = change(&code, VERIFIER).await;
        assert_eq!((again.status, &again.body["error"]), (400, &json!("invalid_grant")));
        assert_eq!(site.send("GET", me, Some(token), Value::Null).await.status, 401);
    }
    // Whoever guesses has one try.
    let code = agreed_code(&mut browser).await;
    assert_eq!(change(&code, &VERIFIER.replace('d', "e")).await.status, 400);
    assert_eq!(change(&code, VERIFIER).await.status, 400);

    // Of many who bring one at once nobody keeps a token.
    let code = agreed_code(&mut browser).await;
    let told = futures::future::join_all((0..8).map(|_| change(&code, VERIFIER))).await;
    let given: Vec<_> = told.iter().filter(|told| told.status == 200).collect();
    assert!(given.len() < 2 && told.iter().all(|told| matches!(told.status, 200 | 400)));
    for told in given {
        let token = told.body["access_token"].as_str();
        assert_eq!(site.send("GET", me, token, Value::Null).await.status, 401);
    }
    site.end().await;
}

#[tokio::test]
async fn nobody_is_sent_where_the_application_did_not_say() {
    let site = Served::start().await;
    let (id, _) = site.client.clone();
    let elsewhere = [
        query(&id, "https://evil.example/"),
        query(&id, "https://app.example/back/more"),
        query("nobody", BACK),
        query(&id, BACK).replace("response_type=code", "response_type=token"),
        query(&id, BACK).replace("S256", "plain"),
        query(&id, BACK).replace("scope=read", "scope=push"),
    ];
    for query in elsewhere {
        let (browser, answer) = Browser::open(&site, &query).await;
        assert_eq!((answer.status, answer.header("location")), (400, None), "{query}: {}", browser.page);
    }
    for redirect in ["javascript:alert(1)", "data:text/html,x", "nowhere", ""] {
        let asked = json!({ "client_name": "x", "redirect_uris": redirect });
        assert_eq!(site.send("POST", "/api/v1/apps", None, asked).await.status, 422, "{redirect}");
    }
    site.end().await;
}

#[tokio::test]
async fn each_application_has_a_number_of_its_own_and_keeps_it() {
    let site = Served::start().await;
    let asked = json!({ "client_name": "x", "redirect_uris": BACK });
    let one = site.send("POST", "/api/v1/apps", None, asked.clone()).await.ok();
    let other = site.send("POST", "/api/v1/apps", None, asked).await.ok();
    assert_ne!(one["id"], other["id"]);
    let own = json!({
        "grant_type": "client_credentials", "client_id": one["client_id"], "client_secret": one["client_secret"],
    });
    let token = site.send("POST", "/oauth/token", None, own).await.ok();
    let (path, secret) = ("/api/v1/apps/verify_credentials", token["access_token"].as_str());
    let seen = site.send("GET", path, secret, Value::Null).await.ok();
    assert_eq!(seen["id"], one["id"]);
    site.end().await;
}

#[tokio::test]
async fn a_token_is_given_for_a_password_and_ends_when_it_is_revoked() {
    let site = Served::start().await;
    site.sign_up("ada").await;
    let (id, secret) = site.client.clone();
    let log_in = async |name: &str, password: &str, scope: &str| {
        let asked = json!({
            "grant_type": "password", "client_id": id, "client_secret": secret, "username": name,
            "password": password, "scope": scope,
        });
        site.send("POST", "/oauth/token", None, asked).await
    };
    for (name, password, scope, error) in [
        ("ada", "wrong", "read", "invalid_grant"),
        ("nobody", PASSWORD, "read", "invalid_grant"),
        ("ada", PASSWORD, "push", "invalid_scope"),
        ("ada", PASSWORD, "everything", "invalid_scope"),
    ] {
        let refused = log_in(name, password, scope).await;
        assert_eq!((refused.status, &refused.body["error"]), (400, &json!(error)), "{name} {scope}");
    }
    let wrong = json!({ "grant_type": "client_credentials", "client_id": id, "client_secret": "x" });
    let refused = site.send("POST", "/oauth/token", None, wrong).await;
    assert_eq!((refused.status, &refused.body["error"]), (401, &json!("invalid_client")));

    let tokens = [log_in("ada@tide.example", PASSWORD, "read").await, log_in("ADA", PASSWORD, "read").await];
    let tokens = tokens.map(|token| token.ok()["access_token"].as_str().unwrap().to_owned());
    let me = "/api/v1/accounts/verify_credentials";
    let (other, other_secret) = site.application("read").await;
    let revoke = async |id: &str, secret: &str| {
        let asked = json!({ "client_id": id, "client_secret": secret, "token": tokens[0] });
        site.send("POST", "/oauth/revoke", None, asked).await.status
    };
    assert_eq!(revoke(&other, &other_secret).await, 403);
    assert_eq!(site.send("GET", me, Some(&tokens[0]), Value::Null).await.status, 200);
    for _ in 0..2 {
        assert_eq!(revoke(&id, &secret).await, 200);
        let refused = site.send("GET", me, Some(&tokens[0]), Value::Null).await;
        assert_eq!((refused.status, &refused.body["error"]), (401, &json!("The access token is invalid")));
    }
    assert_eq!(site.send("GET", me, Some(&tokens[1]), Value::Null).await.status, 200);
    assert_eq!(site.guest(me).await.status, 401);
    site.end().await;
}

#[tokio::test]
async fn a_site_may_give_no_tokens_for_passwords() {
    let site = Served::start_with(|settings| settings.password_grant = false).await;
    site.sign_up("ada").await;
    let (id, secret) = site.client.clone();
    let asked = json!({
        "grant_type": "password", "client_id": id, "client_secret": secret, "username": "ada", "password": PASSWORD,
    });
    let refused = site.send("POST", "/oauth/token", None, asked).await;
    assert_eq!((refused.status, &refused.body["error"]), (400, &json!("unsupported_grant_type")));
    let told = site.guest("/.well-known/oauth-authorization-server").await.ok();
    assert_eq!(told["grant_types_supported"], json!(["authorization_code", "client_credentials"]));
    site.end().await;
}

#[tokio::test]
async fn an_application_may_have_somebody_log_in_once_more() {
    let site = Served::start().await;
    site.sign_up("ada").await;
    let asked = query(&site.client.0, BACK);
    let (mut browser, _) = Browser::open(&site, &asked).await;
    browser.submit("log_in", &[("username", "ada"), ("password", PASSWORD)]).await;
    for (force, is_asked) in [("", false), ("&force_login=true", true), ("&force_login=false", false)] {
        browser.get(&format!("{asked}{force}")).await;
        let page = &browser.page;
        assert_eq!(
            (page.contains("name=\"password\""), page.contains("Authorize a test?")),
            (is_asked, !is_asked)
        );
    }
    site.end().await;
}

#[tokio::test]
async fn who_guesses_passwords_is_stopped_and_nobody_else_at_the_page_too() {
    let site = Served::start_with(|settings| {
        settings.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
        settings.limits.log_ins = "3/30d".parse().unwrap();
    })
    .await;
    site.sign_up("ada").await;
    let asked = query(&site.client.0, BACK);
    let (mut guesser, _) = Browser::open_from(&site, &asked, "203.0.113.9").await;
    for password in ["one", "two", "three"] {
        let told = guesser.submit("log_in", &[("username", "ada"), ("password", password)]).await;
        assert_eq!(told.status, 200);
        assert!(guesser.page.contains("Wrong name or password"), "{}", guesser.page);
    }
    // The right one, too: whoever tries so often is told nothing any more.
    let told = guesser.submit("log_in", &[("username", "Ada"), ("password", PASSWORD)]).await;
    assert_eq!((told.status, told.header("x-ratelimit-limit")), (429, Some("3")));
    assert!(guesser.page.contains("Too many tries") && told.header("retry-after").is_some());
    let (mut ada, _) = Browser::open_from(&site, &asked, "203.0.113.10").await;
    ada.submit("log_in", &[("username", "ada"), ("password", PASSWORD)]).await;
    assert!(ada.page.contains("Authorize a test?"), "{}", ada.page);
    site.end().await;
}

/// Each of them has the application stay: who met another one at it was told to try again, after its password was
/// right.
#[tokio::test]
async fn many_log_in_through_one_application_at_once() {
    let site = Served::start().await;
    site.sign_up("ada").await;
    let (client, secret) = &site.client;
    let asked = json!({
        "grant_type": "password", "client_id": client, "client_secret": secret, "scope": "read",
        "username": "ada", "password": PASSWORD,
    });
    let tries = (0..40).map(|_| site.send("POST", "/oauth/token", None, asked.clone()));
    for told in futures::future::join_all(tries).await {
        told.ok();
    }
    site.end().await;
}
