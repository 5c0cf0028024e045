//! Requests that make no sense, or hardly any: what a site is sent by mistake, and by those who look for mistakes. The
//! same for a test of some thousands, and for the load test, which sends more. Pure.

use std::sync::LazyLock;

use rand::RngExt as _;
use rand::rngs::StdRng;
use serde_json::Value;

/// What is served, as it tells clients: all paths, methods, names of parameters.
const SERVED: &str = include_str!("../../../docs/openapi.json");
/// Paths beside those, and such as hold what is no id; with the methods that make sense there.
const ODD_PATHS: &[(&str, &str)] = &[
    ("POST", "/api/v1/accounts/x/follow"),
    ("GET", "/api/v1/accounts/99999999999999999999"),
    ("GET", "/api/v1/statuses/0/context"),
    ("POST", "/api/v1/statuses/%00/pin"),
    ("GET", "/api/v1/timelines/tag/%F0%9F%8C%8A"),
    ("GET", "/api/v1/timelines/tag/%23%23"),
    ("DELETE", "/api/tideline/v1/sessions/%00"),
    ("GET", "/api/v1/instance/"),
    ("GET", "/users/%00"),
    ("GET", "/tags/%F0%9F%8C%8A"),
    ("GET", "/nowhere"),
    ("GET", "/api//v1"),
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
/// Names of no parameter, and of some in a form of their own.
const ODD_NAMES: &[&str] = &[
    "account_ids[]",
    "status_ids[]",
    "source[privacy]",
    "fields_attributes[0][name]",
    "a[b][c][d][e][f][g][h][i]",
    "x[",
    "]",
    "",
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
    "private",
    "direct",
    "owner",
    "importance",
    "hello",
    "client_credentials",
    "password",
    "authorization_code",
    "null",
    "[]",
    "{}",
    "\"",
    "<script>",
];

/// What requests are made of.
struct Vocabulary {
    /// Methods and paths, with 1 where an id stands.
    routes: Vec<(&'static str, String)>,
    /// Names of parameters.
    names: Vec<&'static str>,
}

static DESCRIPTION: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(SERVED).expect("docs/openapi.json"));
static VOCABULARY: LazyLock<Vocabulary> = LazyLock::new(|| {
    let object = |of: &'static Value| of.as_object().into_iter().flatten();
    let mut routes: Vec<_> = ODD_PATHS.iter().map(|(method, path)| (*method, (*path).to_owned())).collect();
    let mut names = ODD_NAMES.to_vec();
    for (path, operations) in object(&DESCRIPTION["paths"]) {
        let path = path.replace("{name}", "ada").replace("{tag}", "sea");
        let path = path.replace("{id}", "1").replace("{status_id}", "1");
        for (method, operation) in object(operations) {
            let method = METHODS.iter().find(|known| known.eq_ignore_ascii_case(method));
            routes.extend(method.map(|method| (*method, path.clone())));
            names.extend(
                operation["parameters"].as_array().into_iter().flatten().filter_map(|of| of["name"].as_str()),
            );
        }
    }
    for (_, body) in object(&DESCRIPTION["components"]["requestBodies"]) {
        for (_, content) in object(&body["content"]) {
            names.extend(object(&content["schema"]["properties"]).map(|(name, _)| name.as_str()));
        }
    }
    names.sort_unstable();
    names.dedup();
    assert!(routes.len() > 100 && names.len() > 60, "docs/openapi.json tells hardly anything");
    Vocabulary { routes, names }
});

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

fn name(rng: &mut StdRng) -> &'static str {
    pick(rng, &VOCABULARY.names)
}

/// A value, now and then the id of something that is there.
fn value<'a>(rng: &mut StdRng, known: &'a [String]) -> &'a str {
    match known.len() {
        all @ 1.. if rng.random_bool(0.3) => &known[rng.random_range(0..all)],
        _ => pick(rng, VALUES),
    }
}

fn pairs(rng: &mut StdRng, known: &[String]) -> String {
    let pair = |rng: &mut StdRng| format!("{}={}", name(rng), value(rng, known).replace(' ', "+"));
    (0..rng.random_range(0..5)).map(|_| pair(rng)).collect::<Vec<_>>().join("&")
}

fn body(rng: &mut StdRng, known: &[String]) -> (&'static str, String) {
    match rng.random_range(0..5) {
        0 => ("application/x-www-form-urlencoded", pairs(rng, known)),
        1 => {
            let pair = |rng: &mut StdRng| {
                let odd = ["1", "null", "true", "[1,[2]]", "{\"a\":{\"b\":1}}", "1e400", "\"\\u0000\""];
                let value = match rng.random_bool(0.5) {
                    true => pick(rng, &odd).to_owned(),
                    false => Value::from(value(rng, known)).to_string(),
                };
                format!("{:?}:{value}", name(rng))
            };
            let pairs: Vec<String> = (0..rng.random_range(0..4)).map(|_| pair(rng)).collect();
            ("application/json", format!("{{{}}}", pairs.join(",")))
        }
        2 => {
            let part = format!(
                "--b\r\nContent-Disposition: form-data; name=\"{}\"\r\n\r\n{}\r\n--b--\r\n",
                name(rng),
                value(rng, known)
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
    let routes = &VOCABULARY.routes;
    let (own, template) = &routes[rng.random_range(0..routes.len())];
    let method = if rng.random_bool(0.8) { own } else { pick(rng, METHODS) };
    let path = match known.len() {
        all @ 1.. if rng.random_bool(0.5) => {
            template.replace("/1", &format!("/{}", known[rng.random_range(0..all)]))
        }
        _ => template.clone(),
    };
    (method, path)
}

/// Draws one. `known`: ids of things that are there; `tokens`: headers that sign somebody in, beside those that don't.
pub(crate) fn draw(rng: &mut StdRng, known: &[String], tokens: &[String]) -> StrangeRequest {
    let (method, path) = route(rng, known);
    let query = pairs(rng, known).replace(['\u{1f30a}', '"', '<', '>'], "~");
    let path = if query.is_empty() { path } else { format!("{path}?{query}") };
    let (kind, body) = body(rng, known);
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
