//! Limits: what two servers of a site count together, and what becomes of that while Redis is away.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tideline::cluster::Command;
use tideline::sharded::SetSettings;
use tideline_server::config::ServerSettings;
use tideline_server::limits::{Limit, LimitSettings};
use tideline_server::service;

use super::client::Answer;
use super::faults::{TOKENS, keys};
use super::served::{PASSWORD, Served, connect};

const RULES: &str = "/api/v1/instance/rules";
const HOME: &str = "/api/v1/timelines/home";

/// A limit whose span doesn't end while a test runs.
fn within_a_month(most: u32) -> Limit {
    format!("{most}/30d").parse().unwrap()
}

/// Limits but these are off, and whoever connects may say for whom.
fn limited(settings: &mut ServerSettings, limits: LimitSettings) {
    settings.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    settings.limits = limits;
}

/// Asks a server, from an address, with a token or without.
async fn ask(at: SocketAddr, from: &str, (method, path): (&str, &str), token: &str, body: Value) -> Answer {
    let bearer = format!("Bearer {token}");
    let mut headers = vec![("Content-Type", "application/json"), ("X-Forwarded-For", from)];
    headers.extend((!token.is_empty()).then_some(("Authorization", bearer.as_str())));
    let body = if body.is_null() { String::new() } else { body.to_string() };
    connect(at).await.send(method, path, &headers, &body).await
}

async fn get(at: SocketAddr, from: &str, path: &str, token: &str) -> Answer {
    ask(at, from, ("GET", path), token, Value::Null).await
}

/// What headers say is left, of how much.
fn left(answer: &Answer) -> Option<(u32, u32)> {
    let number = |name| answer.header(name).map(|number| number.parse().unwrap());
    number("x-ratelimit-remaining").zip(number("x-ratelimit-limit"))
}

#[tokio::test]
async fn servers_count_together_what_somebody_asks_and_say_how_much_is_left() {
    let limits =
        LimitSettings { token: within_a_month(20), paging: within_a_month(3), ..LimitSettings::default() };
    let site = Served::start_with(|settings| limited(settings, limits)).await;
    let other = site.another().await;
    let servers = [site.address(), other.address()];
    let (ada, bea) = (site.sign_up("ada").await, site.sign_up("bea").await);
    for n in 0..20 {
        let answer = get(servers[n % 2], "203.0.113.1", HOME, &ada.token).await;
        assert_eq!((answer.status, left(&answer)), (200, Some((19 - u32::try_from(n).unwrap(), 20))));
        let reset = answer.header("x-ratelimit-reset").unwrap();
        assert!(reset.len() == "2026-11-27T11:30:00.000000Z".len() && reset.ends_with("000Z"), "{reset}");
    }
    for at in servers {
        let refused = get(at, "203.0.113.2", HOME, &ada.token).await;
        assert_eq!((refused.status, left(&refused)), (429, Some((0, 20))));
        assert_eq!(refused.text(), r#"{"error":"Too many requests"}"#);
        assert!(refused.header("retry-after").unwrap().parse::<u64>().unwrap() > 0);
        // Neither somebody else, nor who asks as nobody, nor who is connected from this machine itself.
        assert_eq!(get(at, "203.0.113.1", HOME, &bea.token).await.status, 200);
        assert_eq!(get(at, "203.0.113.1", RULES, "").await.status, 200);
    }
    // A further page counts however it is asked for.
    let further = [
        ("HEAD", format!("{HOME}?max_id=9"), Value::Null),
        ("GET", format!("{HOME}?max%5Fid=9"), Value::Null),
        ("GET", HOME.to_owned(), json!({ "max_id": "9" })),
    ];
    for status in [200, 429] {
        for (method, path, body) in &further {
            let told = ask(servers[0], "203.0.113.1", (method, path), &bea.token, body.clone()).await;
            assert_eq!(told.status, status, "{method} {path} {body}");
        }
    }
    assert_eq!(get(servers[0], "203.0.113.1", HOME, &bea.token).await.status, 200);
    let direct = site.get(&ada, HOME).await;
    assert_eq!(direct.status, 200);
    other.end().await;
    site.end().await;
}

#[tokio::test]
async fn addresses_are_limited_together_where_nobody_in_particular_asks() {
    let limits =
        LimitSettings { address: within_a_month(6), sign_ups: within_a_month(2), ..LimitSettings::off() };
    let site = Served::start_with(|settings| limited(settings, limits)).await;
    let other = site.another().await;
    let servers = [site.address(), other.address()];
    // Whoever has one address of IPv6 has a whole network of them.
    for n in 0..6 {
        let from = format!("2001:db8:1:2::{n}");
        assert_eq!(get(servers[n % 2], &from, RULES, "").await.status, 200);
    }
    assert_eq!(get(servers[1], "2001:db8:1:2::99", RULES, "").await.status, 429);
    assert_eq!(get(servers[1], "2001:db8:1:3::99", RULES, "").await.status, 200);
    // A token that is none is nobody's.
    for _ in 0..6 {
        assert_eq!(get(servers[0], "198.51.100.1", HOME, "wrong").await.status, 401);
    }
    assert_eq!(get(servers[0], "198.51.100.1", HOME, "wrong").await.status, 429);
    let mut told = Vec::new();
    for n in 0..3 {
        let name = format!("new{n}");
        let email = format!("{name}@tide.example");
        let asked = json!({ "username": name, "email": email, "password": PASSWORD, "agreement": true });
        let sign_up = ("POST", "/api/v1/accounts");
        told.push(ask(servers[n % 2], "198.51.100.7", sign_up, site.app_token(), asked).await.status);
    }
    assert_eq!(told, [200, 200, 429]);
    other.end().await;
    site.end().await;
}

#[tokio::test]
async fn a_stranger_who_guesses_locks_nobody_out() {
    let limits = LimitSettings {
        log_ins: within_a_month(3),
        log_ins_address: within_a_month(5),
        ..LimitSettings::off()
    };
    let site = Served::start_with(|settings| limited(settings, limits)).await;
    let other = site.another().await;
    let servers = [site.address(), other.address()];
    for name in ["ada", "bea"] {
        site.sign_up(name).await;
    }
    let (id, secret) = site.client.clone();
    let log_in = async |at: usize, from: &str, name: &str, password: &str| {
        let asked = json!({
            "grant_type": "password", "client_id": id, "client_secret": secret, "username": name,
            "password": password,
        });
        ask(servers[at % 2], from, ("POST", "/oauth/token"), "", asked).await.status
    };
    let mut told = Vec::new();
    for n in 0..4 {
        told.push(log_in(n, "203.0.113.1", "ada", "wrong").await);
    }
    assert_eq!(told, [400, 400, 400, 429]);
    assert_eq!(log_in(0, "203.0.113.1", "ADA", PASSWORD).await, 429);
    // Ada herself, from where she is.
    assert_eq!(log_in(0, "203.0.113.2", "ada", PASSWORD).await, 200);
    // Who tries one name after the other is stopped by the address.
    assert_eq!(log_in(1, "203.0.113.1", "bea", "wrong").await, 400);
    assert_eq!(log_in(0, "203.0.113.1", "cy", "wrong").await, 400);
    for name in ["bea", "dan"] {
        assert_eq!(log_in(1, "203.0.113.1", name, PASSWORD).await, 429);
    }
    assert_eq!(log_in(1, "203.0.113.3", "bea", PASSWORD).await, 200);
    other.end().await;
    site.end().await;
}

/// Anybody who had an application could fill Redis with tokens for it, each for a month.
#[tokio::test]
async fn an_applications_own_tokens_are_few_and_those_that_nobody_uses_end_soon() {
    let limits = LimitSettings { application_tokens: within_a_month(3), ..LimitSettings::off() };
    let site = Served::start_with(|settings| limited(settings, limits)).await;
    let other = site.another().await;
    let servers = [site.address(), other.address()];
    let asked = json!({
        "client_id": site.client.0, "client_secret": site.client.1, "grant_type": "client_credentials",
        "scope": "read",
    });
    let before = keys(&site.cluster, TOKENS).await;
    let mut told = Vec::new();
    for n in 0..4 {
        let token = ("POST", "/oauth/token");
        told.push(ask(servers[n % 2], "203.0.113.1", token, "", asked.clone()).await);
    }
    let statuses: Vec<u16> = told.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses, [200, 200, 200, 429]);
    assert!(told[3].header("retry-after").is_some() && left(&told[3]) == Some((0, 3)));
    let elsewhere = ask(servers[0], "203.0.113.2", ("POST", "/oauth/token"), "", asked.clone()).await;
    assert_eq!(elsewhere.status, 200);
    let mut new = keys(&site.cluster, TOKENS).await;
    new.retain(|token| !before.contains(token));
    let hours = async || {
        let mut hours = Vec::new();
        for (node, key) in &new {
            let left = site.cluster.ask(node, Command::new("TTL").arg(key)).await.unwrap().int().unwrap();
            hours.push(left / 3_600);
        }
        hours
    };
    assert!(
        new.len() == 4 && hours().await.iter().all(|hours| (4..=6).contains(hours)),
        "{:?}",
        hours().await
    );
    let token: Value = serde_json::from_slice(&told[0].body).unwrap();
    let token = token["access_token"].as_str().unwrap();
    for address in servers {
        let me = get(address, "203.0.113.1", "/api/v1/apps/verify_credentials", token).await;
        assert_eq!(me.status, 200);
    }
    let mut hours = hours().await;
    hours.sort_unstable();
    assert!(hours[2] <= 6 && (29 * 24..=30 * 24).contains(&hours[3]), "{hours:?}");
    other.end().await;
    site.end().await;
}

#[tokio::test]
async fn pages_of_an_account_that_very_many_follow_have_a_limit_of_their_own() {
    let limits = LimitSettings { large_lists: within_a_month(2), ..LimitSettings::off() };
    let sets = SetSettings { spread_at: Some(6), ..SetSettings::default() };
    let site = Served::start_on(sets, |settings| limited(settings, limits)).await;
    let (ada, bea) = (site.sign_up("ada").await, site.sign_up("bea").await);
    for n in 0..3 {
        let follower = site.sign_up(&format!("f{n}")).await;
        site.post(&follower, &format!("/api/v1/accounts/{}/follow", ada.id), Value::Null).await.ok();
    }
    site.post(&ada, &format!("/api/v1/accounts/{}/follow", bea.id), Value::Null).await.ok();
    let list = |id: &str, what: &str| format!("/api/v1/accounts/{id}/{what}");
    let large = list(&ada.id, "followers");
    let mut told = Vec::new();
    for _ in 0..3 {
        told.push(get(site.address(), "203.0.113.1", &large, "").await.status);
    }
    assert_eq!(told, [200, 200, 429]);
    // An account's own count is another one, and the same from everywhere.
    for (from, status) in [("203.0.113.1", 200), ("203.0.113.2", 200), ("203.0.113.3", 429)] {
        assert_eq!(get(site.address(), from, &large, &bea.token).await.status, status);
    }
    for small in [list(&bea.id, "followers"), list(&ada.id, "following")] {
        for _ in 0..3 {
            assert_eq!(get(site.address(), "203.0.113.1", &small, "").await.status, 200, "{small}");
        }
    }
    // A service has no limits.
    let service = service::create(site.registration(), "walker", "read").await.unwrap();
    for _ in 0..3 {
        assert_eq!(get(site.address(), "203.0.113.9", &large, &service).await.status, 200);
    }
    site.end().await;
}

/// Whoever knew both names of an account had twice as many tries.
#[tokio::test]
async fn an_account_is_tried_as_often_by_both_of_its_names_as_by_one() {
    let limits = LimitSettings { log_ins: within_a_month(3), ..LimitSettings::off() };
    let site = Served::start_with(|settings| limited(settings, limits)).await;
    site.sign_up("ada").await;
    let (id, secret) = site.client.clone();
    let log_in = async |from: &str, name: &str, password: &str| {
        let asked = json!({
            "grant_type": "password", "client_id": id, "client_secret": secret, "username": name,
            "password": password,
        });
        ask(site.address(), from, ("POST", "/oauth/token"), "", asked).await
    };
    let mail = "ada@tide.example";
    for name in ["ada", "ada", mail] {
        assert_eq!(log_in("203.0.113.1", name, "wrong").await.status, 400, "{name}");
    }
    // The right one is told as a wrong one, as of anybody's name: nobody learns whose address that is.
    let (right, nobodys) =
        (log_in("203.0.113.1", mail, PASSWORD).await, log_in("203.0.113.1", "dan", "wrong").await);
    assert_eq!((right.status, right.text()), (400, nobodys.text()));
    assert_eq!(log_in("203.0.113.2", mail, PASSWORD).await.status, 200);
    site.end().await;
}

#[tokio::test]
async fn while_redis_is_away_an_instance_goes_by_its_own_counts() {
    let limits = LimitSettings { address: within_a_month(5), ..LimitSettings::off() };
    let site = Served::start_with(|settings| limited(settings, limits)).await;
    for node in site.cluster.nodes() {
        node.kill().unwrap();
    }
    let mut told = Vec::new();
    for _ in 0..7 {
        told.push(get(site.address(), "203.0.113.1", RULES, "").await.status);
    }
    assert_eq!(told, [200, 200, 200, 200, 200, 429, 429]);
    assert_eq!(get(site.address(), "203.0.113.2", RULES, "").await.status, 200);
    site.cluster.down().await.unwrap();
}
