//! Requests that make no sense: each is answered, and none breaks anything.

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::served::Served;

/// Requests; each is one connection's next one.
const REQUESTS: usize = 3_000;

const PATHS: &[&str] = &[
    "/api/v1/accounts",
    "/api/v1/accounts/1",
    "/api/v1/accounts/x/follow",
    "/api/v1/accounts/99999999999999999999",
    "/api/v1/accounts/relationships",
    "/api/v1/accounts/lookup",
    "/api/v1/accounts/update_credentials",
    "/api/v1/accounts/1/statuses",
    "/api/v1/accounts/1/followers",
    "/api/v1/statuses",
    "/api/v1/statuses/1",
    "/api/v1/statuses/0/context",
    "/api/v1/statuses/1/favourite",
    "/api/v1/statuses/%00/pin",
    "/api/v1/statuses/1/mute",
    "/api/v1/timelines/home",
    "/api/v1/timelines/public",
    "/api/v1/timelines/tag/%F0%9F%8C%8A",
    "/api/v1/timelines/tag/%23%23",
    "/api/v1/timelines/list/1",
    "/api/v1/notifications",
    "/api/v1/notifications/1/dismiss",
    "/api/v1/markers",
    "/api/v1/lists",
    "/api/v1/lists/1/accounts",
    "/api/v2/search",
    "/api/v1/apps",
    "/oauth/token",
    "/oauth/authorize",
    "/oauth/revoke",
    "/auth/account",
    "/auth/password",
    "/auth/reset",
    "/auth/confirm",
    "/api/v1/emails/confirmations",
    "/api/tideline/v1/sessions",
    "/api/tideline/v1/sessions/%00",
    "/api/v1/instance/",
    "/api/v1/bookmarks",
    "/api/v1/favourites",
    "/api/v1/mutes",
    "/nowhere",
    "/",
    "/api//v1",
];
const NAMES: &[&str] = &[
    "act",
    "reason",
    "invite_code",
    "id",
    "id[]",
    "limit",
    "max_id",
    "min_id",
    "since_id",
    "q",
    "type",
    "status",
    "visibility",
    "in_reply_to_id",
    "title",
    "account_ids[]",
    "username",
    "email",
    "password",
    "agreement",
    "grant_type",
    "client_id",
    "client_secret",
    "scope",
    "redirect_uri",
    "redirect_uris",
    "client_name",
    "offset",
    "duration",
    "source[privacy]",
    "fields_attributes[0][name]",
    "a[b][c][d][e][f][g][h][i]",
    "x[",
    "]",
    "",
    "spoiler_text",
    "language",
    "pinned",
    "acct",
    "token",
    "code",
];
const VALUES: &[&str] = &[
    "",
    "0",
    "-1",
    "1",
    "9223372036854775808",
    "18446744073709551616",
    "true",
    "x",
    "%00",
    "%ff",
    "%",
    "@ada",
    "s0",
    "\u{1f30a}",
    "public",
    "direct",
    "client_credentials",
    "password",
    "authorization_code",
    "null",
    "[]",
    "{}",
    "\"",
    "<script>",
];

fn pick<'a>(rng: &mut StdRng, of: &[&'a str]) -> &'a str {
    of[rng.random_range(0..of.len())]
}

fn pairs(rng: &mut StdRng) -> String {
    let pair = |rng: &mut StdRng| format!("{}={}", pick(rng, NAMES), pick(rng, VALUES).replace(' ', "+"));
    (0..rng.random_range(0..5)).map(|_| pair(rng)).collect::<Vec<_>>().join("&")
}

fn body(rng: &mut StdRng) -> (&'static str, String) {
    match rng.random_range(0..5) {
        0 => ("application/x-www-form-urlencoded", pairs(rng)),
        1 => {
            let pair = |rng: &mut StdRng| {
                let value =
                    pick(rng, &["1", "null", "true", "[1,[2]]", "{\"a\":{\"b\":1}}", "1e400", "\"\\u0000\""]);
                format!("{:?}:{value}", pick(rng, NAMES))
            };
            let pairs: Vec<String> = (0..rng.random_range(0..4)).map(|_| pair(rng)).collect();
            ("application/json", format!("{{{}}}", pairs.join(",")))
        }
        2 => {
            let part = format!(
                "--b\r\nContent-Disposition: form-data; name=\"{}\"\r\n\r\n{}\r\n--b--\r\n",
                pick(rng, NAMES),
                pick(rng, VALUES)
            );
            ("multipart/form-data; boundary=b", part)
        }
        3 => (
            "application/json",
            (0..rng.random_range(0..40)).map(|_| char::from(rng.random_range(32..127u8))).collect(),
        ),
        _ => ("text/plain", pick(rng, VALUES).to_owned()),
    }
}

#[tokio::test]
async fn whatever_somebody_sends_is_answered_and_is_nobodys_fault_here() {
    let site = Served::start().await;
    let ada = site.sign_up("ada").await;
    let bearer = format!("Bearer {}", ada.token);
    let mut rng = StdRng::seed_from_u64(7);
    for n in 0..REQUESTS {
        let method = pick(&mut rng, &["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"]);
        if method == "HEAD" {
            continue;
        }
        let path = pick(&mut rng, PATHS);
        let query = pairs(&mut rng).replace(['\u{1f30a}', '"', '<', '>'], "~");
        let path = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
        let (kind, body) = body(&mut rng);
        let token = pick(&mut rng, &[&bearer, "Bearer x", "Basic eDp5", "Bearer", ""]);
        let headers =
            [("Content-Type", kind), ("Authorization", token), ("Idempotency-Key", pick(&mut rng, VALUES))];
        let headers = headers.map(|(name, value)| (name, if value.is_ascii() { value } else { "x" }));
        let answer = site.connect().await.send(method, &path, &headers, &body).await;
        assert!(answer.status < 500, "request {n}: {method} {path} {kind} {body:?}: {}", answer.text());
    }
    assert_eq!(site.guest("/api/v1/accounts/lookup?acct=ada").await.status, 200);
    site.end().await;
}
