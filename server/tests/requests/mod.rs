//! Requests that make no sense, or hardly any: what a site is sent by mistake, and by those who look for mistakes. The
//! same for a test of some thousands, and for the load test, which sends more. Pure.

use rand::RngExt as _;
use rand::rngs::StdRng;

/// Paths, with the methods that make sense there.
const PATHS: &[(&[&str], &str)] = &[
    (&["GET", "POST"], "/api/v1/accounts"),
    (&["GET"], "/api/v1/accounts/1"),
    (&["POST"], "/api/v1/accounts/1/follow"),
    (&["POST"], "/api/v1/accounts/1/unfollow"),
    (&["POST"], "/api/v1/accounts/1/mute"),
    (&["POST"], "/api/v1/accounts/1/unblock"),
    (&["POST"], "/api/v1/accounts/1/note"),
    (&["POST"], "/api/v1/accounts/1/remove_from_followers"),
    (&["POST"], "/api/v1/accounts/x/follow"),
    (&["GET"], "/api/v1/accounts/99999999999999999999"),
    (&["GET"], "/api/v1/accounts/relationships"),
    (&["GET"], "/api/v1/accounts/lookup"),
    (&["GET"], "/api/v1/accounts/search"),
    (&["GET"], "/api/v1/accounts/verify_credentials"),
    (&["PATCH"], "/api/v1/accounts/update_credentials"),
    (&["GET"], "/api/v1/accounts/1/statuses"),
    (&["GET"], "/api/v1/accounts/1/followers"),
    (&["GET"], "/api/v1/accounts/1/lists"),
    (&["GET"], "/api/v1/preferences"),
    (&["POST"], "/api/tideline/v1/accounts"),
    (&["GET"], "/api/v1/follow_requests"),
    (&["POST"], "/api/v1/follow_requests/1/authorize"),
    (&["GET", "POST"], "/api/v1/statuses"),
    (&["GET", "PUT", "DELETE"], "/api/v1/statuses/1"),
    (&["GET"], "/api/v1/statuses/0/context"),
    (&["GET"], "/api/v1/statuses/1/context"),
    (&["GET"], "/api/v1/statuses/1/source"),
    (&["GET"], "/api/v1/statuses/1/history"),
    (&["POST"], "/api/v1/statuses/1/favourite"),
    (&["POST"], "/api/v1/statuses/1/unfavourite"),
    (&["POST"], "/api/v1/statuses/1/bookmark"),
    (&["POST"], "/api/v1/statuses/1/reblog"),
    (&["POST"], "/api/v1/statuses/1/unreblog"),
    (&["GET"], "/api/v1/statuses/1/favourited_by"),
    (&["POST"], "/api/v1/statuses/1/pin"),
    (&["POST"], "/api/v1/statuses/%00/pin"),
    (&["POST"], "/api/v1/statuses/1/mute"),
    (&["GET"], "/api/v1/timelines/home"),
    (&["GET"], "/api/v1/timelines/public"),
    (&["GET"], "/api/v1/timelines/tag/%F0%9F%8C%8A"),
    (&["GET"], "/api/v1/timelines/tag/%23%23"),
    (&["GET"], "/api/v1/timelines/list/1"),
    (&["GET"], "/api/v1/notifications"),
    (&["GET"], "/api/v1/notifications/unread_count"),
    (&["POST"], "/api/v1/notifications/1/dismiss"),
    (&["POST"], "/api/v1/notifications/clear"),
    (&["GET", "POST"], "/api/v1/markers"),
    (&["GET", "POST"], "/api/v1/lists"),
    (&["GET", "PUT", "DELETE"], "/api/v1/lists/1"),
    (&["GET", "POST", "DELETE"], "/api/v1/lists/1/accounts"),
    (&["GET"], "/api/v2/search"),
    (&["POST"], "/api/v1/apps"),
    (&["POST"], "/oauth/token"),
    (&["GET", "POST"], "/oauth/authorize"),
    (&["POST"], "/oauth/revoke"),
    (&["GET", "POST"], "/auth/account"),
    (&["GET", "POST"], "/auth/password"),
    (&["GET", "POST"], "/auth/reset"),
    (&["GET", "POST"], "/auth/confirm"),
    (&["POST"], "/api/v1/emails/confirmations"),
    (&["GET"], "/api/tideline/v1/sessions"),
    (&["DELETE"], "/api/tideline/v1/sessions/%00"),
    (&["GET"], "/api/v1/instance/"),
    (&["GET"], "/api/v1/bookmarks"),
    (&["GET"], "/api/v1/favourites"),
    (&["GET"], "/api/v1/mutes"),
    (&["GET"], "/@ada"),
    (&["GET"], "/@ada/1"),
    (&["GET"], "/users/%00"),
    (&["GET"], "/tags/%F0%9F%8C%8A"),
    (&["GET"], "/nowhere"),
    (&["GET"], "/"),
    (&["GET"], "/api//v1"),
];
const METHODS: &[&str] =
    &["GET", "GET", "POST", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"];
const NO_TOKENS: &[&str] = &["Bearer x", "Basic eDp5", "Bearer", "", "Bearer tds_x"];
const HEADERS: [&str; 8] = [
    "Idempotency-Key",
    "Accept-Language",
    "Accept-Encoding",
    "X-Forwarded-For",
    "Cookie",
    "Origin",
    "Tideline-Act-As",
    "X-Request-Id",
];
const HEADER_VALUES: &[&str] = &[
    "x",
    "",
    "0",
    "de, en;q=0.5, *;q=0",
    "gzip, br;q=2",
    "::1, 10.0.0.1",
    "tideline_session=x; tideline_session=y",
    "null",
    "https://evil.example",
    "9223372036854775808",
    "a b\tc",
    "\"",
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

/// A request, with what is known of it.
#[derive(Debug, Clone)]
pub(crate) struct StrangeRequest {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

fn pick(rng: &mut StdRng, of: &[&'static str]) -> &'static str {
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

/// A path with a method, mostly one of its own, and with ids of things that are there in some of them.
fn route(rng: &mut StdRng, known: &[String]) -> (&'static str, String) {
    let (methods, template) = PATHS[rng.random_range(0..PATHS.len())];
    let method = if rng.random_bool(0.8) { pick(rng, methods) } else { pick(rng, METHODS) };
    let path = match known.len() {
        all @ 1.. if rng.random_bool(0.5) => {
            template.replace("/1", &format!("/{}", known[rng.random_range(0..all)]))
        }
        _ => template.to_owned(),
    };
    (method, path)
}

/// Draws one. `known`: ids of things that are there; `tokens`: headers that sign somebody in, beside those that don't.
pub(crate) fn draw(rng: &mut StdRng, known: &[String], tokens: &[String]) -> StrangeRequest {
    let (method, path) = route(rng, known);
    let query = pairs(rng).replace(['\u{1f30a}', '"', '<', '>'], "~");
    let path = if query.is_empty() { path } else { format!("{path}?{query}") };
    let (kind, body) = body(rng);
    let token = match rng.random_range(0..=tokens.len()) {
        nth if nth < tokens.len() => tokens[nth].clone(),
        _ => pick(rng, NO_TOKENS).to_owned(),
    };
    let mut headers = vec![("Content-Type", kind.to_owned()), ("Authorization", token)];
    for name in HEADERS {
        if rng.random_bool(0.3) {
            let value = pick(rng, HEADER_VALUES);
            headers.push((name, value.to_owned()));
        }
    }
    StrangeRequest { method, path, headers, body }
}
