//! The listeners and the layers, over real connections: a small client speaks HTTP to a small router.

#![expect(clippy::unwrap_used, reason = "helpers of tests, too")]

#[expect(dead_code, reason = "what is held against a contract is the other test program's")]
mod client;
mod connections;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Path};
use axum::http::StatusCode;
use axum::routing::{any, get, post};
use metrics_util::debugging::DebugValue;
use tideline_server::http::{
    ClientAddress, Json, Layers, Listener, ListenerLimits, Params, PathId, Readiness, RequestId,
    RequestsUnderWay, Shutdown, Tls, serve,
};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use client::Client;

/// A server that a test has started.
struct Site {
    address: std::net::SocketAddr,
    shutdown: Shutdown,
    is_well: Arc<AtomicBool>,
    /// Lets `/wait` go on, and tells that somebody is there.
    go_on: Arc<Notify>,
    arrived: Arc<Notify>,
    /// Tells that nobody makes the answer of `/endless` any more, or that `/write` has come to its end.
    dropped: Arc<Notify>,
    under_way: RequestsUnderWay,
    served: JoinHandle<usize>,
}

impl Site {
    async fn start(layers: Layers, limits: ListenerLimits) -> Self {
        Self::start_at(vec![Listener::bind(loopback(), None).await.unwrap()], layers, limits)
    }

    fn start_at(listeners: Vec<Listener>, layers: Layers, limits: ListenerLimits) -> Self {
        let address = listeners[0].address().unwrap();
        let (shutdown, is_well) = (Shutdown::default(), Arc::new(AtomicBool::new(true)));
        let [go_on, arrived, dropped] = [(); 3].map(|()| Arc::new(Notify::new()));
        let probe = is_well.clone();
        let readiness = Readiness::new(shutdown.clone(), move || {
            let is_well = probe.load(Ordering::SeqCst);
            async move { is_well }
        });
        let (router, under_way) = layers.around(routes(&go_on, &arrived, &dropped), readiness);
        let end = shutdown.clone();
        let served = tokio::spawn(async move { serve(listeners, router, &end, limits).await });
        Self { address, shutdown, is_well, go_on, arrived, dropped, under_way, served }
    }

    async fn client(&self) -> Client<TcpStream> {
        Client::new(TcpStream::connect(self.address).await.unwrap())
    }
}

fn loopback() -> std::net::SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

/// Says when it is dropped.
struct TellsEnd(Arc<Notify>);

impl Drop for TellsEnd {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

fn routes(go_on: &Arc<Notify>, arrived: &Arc<Notify>, dropped: &Arc<Notify>) -> Router {
    let (go_on, comes, dropped) = (go_on.clone(), arrived.clone(), dropped.clone());
    let (arrived, writes) = (arrived.clone(), [go_on.clone(), arrived.clone(), dropped.clone()]);
    let write = move || async move {
        let [go_on, arrived, written] = writes;
        arrived.notify_one();
        go_on.notified().await;
        written.notify_one();
        "written"
    };
    let wait = move || async move {
        arrived.notify_one();
        go_on.notified().await;
        "waited"
    };
    let endless = move || async move {
        comes.notify_one();
        let tells = TellsEnd(dropped);
        Body::from_stream(futures::stream::repeat_with(move || {
            let _held = &tells;
            Ok::<_, std::io::Error>(vec![b'x'; 64 * 1024])
        }))
    };
    let who = async |client: ClientAddress, Extension(id): Extension<RequestId>| {
        format!("{} {}", client.0, id.as_str())
    };
    Router::new()
        .route("/api/v1/echo", any(async |params: Params| Json(params.texts("x"))))
        .route("/api/v1/items/{id}", get(async |id: PathId| format!("item {}", id.0)))
        .route("/api/v1/tags/{tag}", get(async |tag: Path<String>| format!("tag {}", tag.0)))
        .route("/who", get(who))
        .route("/wait", get(wait))
        .route("/write", post(write))
        .route("/endless", get(endless))
        .route("/panic", any(async || panics()))
        .route("/long", get(async || "tide ".repeat(1_000)))
}

fn panics() -> StatusCode {
    panic!("as planned")
}

#[tokio::test]
async fn parameters_come_in_each_form_and_refusals_in_json() {
    let site = Site::start(Layers::default(), ListenerLimits::default()).await;
    let mut client = site.client().await;
    let json = [("Content-Type", "application/json")];
    let answer = client.send("DELETE", "/api/v1/echo?y=1", &json, r#"{"x": [1, "b"]}"#).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, r#"["1","b"]"#));
    assert_eq!(answer.header("content-type"), Some("application/json; charset=utf-8"));
    let answer = client.send("GET", "/api/v1/echo?x[]=a&x[]=b", &[], "").await;
    assert_eq!(answer.text(), r#"["a","b"]"#);
    let answer = client.send("POST", "/api/v1/echo", &json, "{").await;
    assert_eq!(answer.status, 400);
    assert!(answer.text().starts_with(r#"{"error":"The body is not JSON"#), "{}", answer.text());
    let answer = client.send("POST", "/api/v1/echo", &[("Content-Type", "text/html")], "x").await;
    assert_eq!(answer.status, 415);
    for (method, path, status) in [("GET", "/api/v1/nothing", 404), ("POST", "/api/v1/items/1", 405)] {
        let answer = client.send(method, path, &[], "").await;
        assert_eq!(answer.status, status);
        assert!(answer.text().starts_with(r#"{"error":"#), "{}", answer.text());
        if status == 405 {
            assert!(answer.text().contains("does not take POST"), "{}", answer.text());
            assert_eq!(answer.header("allow"), Some("GET,HEAD"));
        }
    }
    let mut client = site.client().await;
    client.begin("POST", "/api/v1/echo", &[json[0], ("Content-Length", "1048577")], "").await;
    assert_eq!(client.answer().await.status, 413);
}

#[tokio::test]
async fn a_slash_at_the_end_changes_nothing() {
    let site = Site::start(Layers::default(), ListenerLimits::default()).await;
    let mut client = site.client().await;
    for path in ["/api/v1/items/7", "/api/v1/items/7/", "/api/v1/items/7/?a=1"] {
        assert_eq!(client.send("GET", path, &[], "").await.text(), "item 7", "{path}");
    }
    assert_eq!(client.send("GET", "/api/v1/echo/?x=1", &[], "").await.text(), r#"["1"]"#);
}

#[tokio::test]
async fn what_is_no_id_in_a_path_is_not_found() {
    let site = Site::start(Layers::default(), ListenerLimits::default()).await;
    let mut client = site.client().await;
    for id in ["9223372036854775807", "007"] {
        assert_eq!(client.send("GET", &format!("/api/v1/items/{id}"), &[], "").await.status, 200, "{id}");
    }
    for id in
        ["0", "-1", "+1", "@ada", "9223372036854775808", "1%2F2", "%ff", "1.0", "99999999999999999999999"]
    {
        let answer = client.send("GET", &format!("/api/v1/items/{id}"), &[], "").await;
        let wanted = r#"{"error":"Record not found"}"#;
        assert_eq!((answer.status, answer.text().as_str()), (404, wanted), "{id}");
    }
    assert_eq!(client.send("GET", "/api/v1/tags/a%C3%A4", &[], "").await.text(), "tag a\u{e4}");
    for path in ["/api/v1/tags/%FF", "/api/v1/tags/a%C3", "/%FF"] {
        let answer = client.send("GET", path, &[], "").await;
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.text().starts_with(r#"{"error":"#), "{path}: {}", answer.text());
    }
}

#[tokio::test]
async fn a_head_that_is_too_long_is_refused_and_others_go_on() {
    let site = Site::start(Layers::default(), ListenerLimits::default()).await;
    let fits = "x".repeat(14 * 1024);
    assert_eq!(site.client().await.send("GET", "/long", &[("X-Pad", &fits)], "").await.status, 200);
    let long = "x".repeat(17 * 1024);
    assert_eq!(site.client().await.send("GET", "/long", &[("X-Pad", &long)], "").await.status, 431);
    assert_eq!(site.client().await.send("GET", "/long", &[], "").await.status, 200);
}

#[tokio::test]
async fn requests_above_the_bound_are_refused_and_health_is_answered() {
    let site = Site::start(Layers { requests_max: 1, ..Layers::default() }, ListenerLimits::default()).await;
    let mut waiting = site.client().await;
    waiting.begin("GET", "/wait", &[], "").await;
    site.arrived.notified().await;
    let mut client = site.client().await;
    let refused = client.send("GET", "/long", &[], "").await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    assert!(refused.text().contains("please try again"), "{}", refused.text());
    let health = client.send("GET", "/health", &[], "").await;
    assert_eq!((health.status, health.text().as_str()), (200, "OK"));
    assert_eq!(client.send("GET", "/ready", &[], "").await.status, 200);
    site.go_on.notify_one();
    assert_eq!(waiting.answer().await.text(), "waited");
    assert_eq!(client.send("GET", "/long", &[], "").await.status, 200);
}

/// Bodies that trickle in kept everybody out, who only wants to read, too.
#[tokio::test]
async fn bodies_that_are_not_sent_keep_nobody_from_reading() {
    let site = Site::start(Layers { requests_max: 2, ..Layers::default() }, ListenerLimits::default()).await;
    let mut slow = site.client().await;
    slow.begin("POST", "/api/v1/echo", &[("Content-Length", "100")], "x=").await;
    let mut client = site.client().await;
    // Until the slow one has come to its body.
    while client.send("POST", "/api/v1/echo", &[], "x=1").await.status != 503 {}
    assert_eq!(client.send("GET", "/long", &[], "").await.status, 200);
}

/// Longer than any test machine stands still.
const LONG: Duration = Duration::from_secs(60);

/// Whoever shut the page too early had another password, and whoever knew the old one stayed logged in.
#[tokio::test]
async fn what_writes_goes_on_without_its_client_and_after_its_time() {
    let site = Site::start(Layers::default(), ListenerLimits::default()).await;
    let mut client = site.client().await;
    client.begin("POST", "/write", &[], "").await;
    site.arrived.notified().await;
    drop(client);
    // The server learns that nobody is there, which nothing tells: what was cut off then never comes to its end.
    assert!(timeout(Duration::from_millis(100), site.under_way.ended()).await.is_err(), "it is under way");
    let ended = tokio::spawn({
        let under_way = site.under_way.clone();
        async move { under_way.ended().await }
    });
    site.go_on.notify_one();
    timeout(LONG, site.dropped.notified()).await.expect("it goes on");
    timeout(LONG, ended).await.expect("nothing is under way").unwrap();

    // It has as long again, which is longer than this machine stands still.
    let layers = Layers { request_time: Duration::from_secs(2), ..Layers::default() };
    let site = Site::start(layers, ListenerLimits::default()).await;
    let refused = site.client().await.send("POST", "/write", &[], "").await;
    assert_eq!(refused.status, 503);
    site.go_on.notify_one();
    timeout(LONG, site.dropped.notified()).await.expect("it comes to its end");
    timeout(LONG, site.under_way.ended()).await.expect("nothing is under way");
}

/// Two addresses that sent their bodies one byte after the other took all places for these.
#[tokio::test]
async fn one_client_has_a_part_of_the_places_for_bodies() {
    let trusted_proxies = tideline_server::http::TrustedProxies(vec!["127.0.0.0/8".parse().unwrap()]);
    let layers = Layers { trusted_proxies, requests_max: 160, ..Layers::default() };
    let most = 10;
    let site = Site::start(layers, ListenerLimits::default()).await;
    let from = |address: &'static str| [("x-forwarded-for", address), ("Content-Length", "1")];
    let mut slow = Vec::new();
    for _ in 0..most {
        let mut client = site.client().await;
        client.begin("POST", "/write", &from("192.0.2.1"), "").await;
        timeout(LONG, site.arrived.notified()).await.expect("it has a place");
        slow.push(client);
    }
    let refused = site.client().await.send("POST", "/write", &from("192.0.2.1"), "x").await;
    assert_eq!(refused.status, 503);
    let mut other = site.client().await;
    other.begin("POST", "/write", &from("192.0.2.2"), "x").await;
    site.arrived.notified().await;
    for _ in 0..=most {
        site.go_on.notify_one();
        site.dropped.notified().await;
    }
    assert_eq!(other.answer().await.status, 200);
}

#[tokio::test]
async fn a_request_that_takes_too_long_is_refused() {
    let layers = Layers { request_time: Duration::from_millis(50), ..Layers::default() };
    let site = Site::start(layers, ListenerLimits::default()).await;
    let refused = site.client().await.send("GET", "/wait", &[], "").await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
}

#[tokio::test]
async fn further_connections_wait_until_one_ends() {
    let limits = ListenerLimits { connections_max: 1, ..ListenerLimits::default() };
    let site = Site::start(Layers::default(), limits).await;
    let mut first = site.client().await;
    assert_eq!(first.send("GET", "/health", &[], "").await.status, 200);
    let mut second = site.client().await;
    second.begin("GET", "/long", &[], "").await;
    // As long as the first is open the second isn't served: both being served would be seen here, sooner or later.
    assert!(tokio::time::timeout(Duration::from_millis(100), second.answer()).await.is_err());
    drop(first);
    assert_eq!(second.answer().await.status, 200);
}

#[tokio::test]
async fn a_handler_that_panics_is_a_500_and_its_connection_lives_on() {
    let site = Site::start(Layers::default(), ListenerLimits::default()).await;
    let mut client = site.client().await;
    let answer = client.send("GET", "/panic", &[], "").await;
    assert_eq!(answer.status, 500);
    assert!(
        answer.text().starts_with(r#"{"error":"#) && !answer.text().contains("planned"),
        "{}",
        answer.text()
    );
    assert!(answer.header("x-request-id").is_some());
    // What it had written by then nobody knows.
    let answer = client.send("POST", "/panic", &[], "").await;
    assert!(answer.status == 500 && answer.text().contains("carried out, or not"), "{}", answer.text());
    assert_eq!(client.send("GET", "/long", &[], "").await.status, 200);
}

#[tokio::test]
async fn requests_are_counted_by_route_and_status_and_no_path_is_told() {
    let recorder = metrics_util::debugging::DebuggingRecorder::new();
    let figures = recorder.snapshotter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let site = Site::start(Layers::default(), ListenerLimits::default()).await;
    let mut client = site.client().await;
    for path in ["/api/v1/items/17", "/api/v1/items/18/", "/api/v1/secret?token=17", "/panic"] {
        client.send("GET", path, &[], "").await;
    }
    client.send("MAKEUP", "/long", &[], "").await;
    let mut gone = site.client().await;
    gone.begin("GET", "/wait", &[], "").await;
    site.arrived.notified().await;
    drop(gone);
    site.shutdown.begin();
    site.served.await.unwrap();
    let mut counted = Vec::new();
    for (key, _, _, value) in figures.snapshot().into_vec() {
        let labels: Vec<&str> = key.key().labels().map(|label| label.value()).collect();
        match value {
            DebugValue::Counter(n) => counted.push(format!("{} {} {n}", key.key().name(), labels.join(" "))),
            DebugValue::Gauge(n) => counted.push(format!("{} {n}", key.key().name())),
            DebugValue::Histogram(_) => {}
        }
    }
    counted.sort();
    let wanted = [
        "tideline_http_panics_total /panic 1",
        "tideline_http_requests_in_flight 0",
        "tideline_http_requests_total /api/v1/items/{id} GET 200 2",
        "tideline_http_requests_total /long other 405 1",
        "tideline_http_requests_total /panic GET 500 1",
        "tideline_http_requests_total /wait GET gone 1",
        "tideline_http_requests_total none GET 404 1",
    ];
    assert_eq!(counted, wanted);
}

#[tokio::test]
async fn requests_have_names() {
    let site = Site::start(Layers::default(), ListenerLimits::default()).await;
    let mut client = site.client().await;
    let answer = client.send("GET", "/who", &[("X-Request-Id", "mine-1")], "").await;
    assert_eq!((answer.header("x-request-id"), answer.text().as_str()), (Some("mine-1"), "127.0.0.1 mine-1"));
    let answer = client.send("GET", "/who", &[("X-Request-Id", "not plain")], "").await;
    let made = answer.header("x-request-id").unwrap().to_owned();
    assert_eq!((made.len(), answer.text()), (32, format!("127.0.0.1 {made}")));
}

#[tokio::test]
async fn only_a_trusted_proxy_says_for_whom_it_speaks() {
    let forwarded = [("X-Forwarded-For", "6.6.6.6, 1.2.3.4"), ("X-Request-Id", "a")];
    let site = Site::start(Layers::default(), ListenerLimits::default()).await;
    assert_eq!(site.client().await.send("GET", "/who", &forwarded, "").await.text(), "127.0.0.1 a");
    let trusted_proxies = tideline_server::http::TrustedProxies(vec!["127.0.0.0/8".parse().unwrap()]);
    let layers = Layers { trusted_proxies, ..Layers::default() };
    let site = Site::start(layers, ListenerLimits::default()).await;
    assert_eq!(site.client().await.send("GET", "/who", &forwarded, "").await.text(), "1.2.3.4 a");
}

#[tokio::test]
async fn browsers_may_ask_for_what_needs_no_cookie() {
    let site = Site::start(Layers::default(), ListenerLimits::default()).await;
    let mut client = site.client().await;
    let asks = [("Origin", "https://app.example"), ("Access-Control-Request-Method", "PATCH")];
    let answer = client.send("OPTIONS", "/api/v1/items/7", &asks, "").await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, Some("*")));
    assert!(answer.header("access-control-allow-methods").unwrap().contains("PATCH"));
    assert!(answer.header("access-control-allow-headers").unwrap().contains("Idempotency-Key"));
    assert!(client.send("OPTIONS", "/wait", &asks, "").await.header("access-control-allow-origin").is_none());
    let answer = client.send("GET", "/api/v1/items/7", &[("Authorization", "Bearer x")], "").await;
    assert!(answer.header("access-control-expose-headers").unwrap().contains("Link"));
    assert_eq!(answer.header("cache-control"), Some("private, no-store"));
    // A refusal can be read there, too.
    let refused = client.send("POST", "/oauth/token", &[], "").await;
    let (origin, cache) = (refused.header("access-control-allow-origin"), refused.header("cache-control"));
    assert_eq!((refused.status, origin, cache), (404, Some("*"), Some("private, no-store")));
    assert!(client.send("GET", "/who", &[], "").await.header("access-control-allow-origin").is_none());
}

#[tokio::test]
async fn answers_are_compressed_for_who_takes_it() {
    let site = Site::start(Layers::default(), ListenerLimits::default()).await;
    let mut client = site.client().await;
    let plain = client.send("GET", "/long", &[], "").await;
    assert_eq!((plain.header("content-encoding"), plain.body.len()), (None, 5_000));
    let gzip = client.send("GET", "/long", &[("Accept-Encoding", "gzip")], "").await;
    assert_eq!(gzip.header("content-encoding"), Some("gzip"));
    assert!(gzip.body.len() < 500 && gzip.body.starts_with(&[0x1f, 0x8b]), "{}", gzip.body.len());
}

#[tokio::test]
async fn a_shutdown_lets_requests_end_and_idle_connections_go() {
    let site = Site::start(Layers::default(), ListenerLimits::default()).await;
    let (mut waiting, mut idle) = (site.client().await, site.client().await);
    assert_eq!(idle.send("GET", "/ready", &[], "").await.status, 200);
    waiting.begin("GET", "/wait", &[], "").await;
    site.arrived.notified().await;
    site.shutdown.begin();
    assert!(idle.is_closed().await);
    assert!(!site.served.is_finished());
    site.go_on.notify_one();
    let answer = waiting.answer().await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "waited"));
    assert_eq!(site.served.await.unwrap(), 0);
}

#[tokio::test]
async fn what_does_not_end_in_time_is_cut_off() {
    let limits = ListenerLimits { drain_time: Duration::from_millis(50), ..ListenerLimits::default() };
    let site = Site::start(Layers::default(), limits).await;
    let mut waiting = site.client().await;
    waiting.begin("GET", "/wait", &[], "").await;
    site.arrived.notified().await;
    site.shutdown.begin();
    assert_eq!(site.served.await.unwrap(), 1);
    assert!(waiting.is_closed().await);
}

#[tokio::test]
async fn who_is_ill_is_not_ready() {
    let site = Site::start(Layers::default(), ListenerLimits::default()).await;
    site.is_well.store(false, Ordering::SeqCst);
    let mut client = site.client().await;
    assert_eq!(client.send("GET", "/ready", &[], "").await.status, 503);
    assert_eq!(client.send("GET", "/health", &[], "").await.status, 200);
    let shutdown = Shutdown::default();
    let readiness = Readiness::new(shutdown.clone(), async || true);
    assert!(readiness.is_ready().await);
    shutdown.begin();
    assert!(!readiness.is_ready().await);
}

#[tokio::test]
async fn a_hundred_connections_are_served_again_and_again() {
    let site = Arc::new(Site::start(Layers::default(), ListenerLimits::default()).await);
    let clients = (0..100).map(|n| {
        let site = site.clone();
        tokio::spawn(async move {
            let mut client = site.client().await;
            for m in 0..10 {
                let answer = client.send("GET", &format!("/api/v1/echo?x={n}-{m}"), &[], "").await;
                assert_eq!(answer.text(), format!("[\"{n}-{m}\"]"));
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
}

#[tokio::test]
async fn the_same_is_served_with_tls() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let listeners = vec![
        Listener::bind(loopback(), Some(Tls::from_files(&certificate, &key).unwrap())).await.unwrap(),
        Listener::bind(loopback(), None).await.unwrap(),
    ];
    let plain = listeners[1].address().unwrap();
    let site = Site::start_at(listeners, Layers::default(), ListenerLimits::default());
    let mut client = Client::new(client::with_tls(site.client().await.into_inner(), made.cert.der()).await);
    assert_eq!(client.send("GET", "/health", &[], "").await.text(), "OK");
    let mut client = Client::new(TcpStream::connect(plain).await.unwrap());
    assert_eq!(client.send("GET", "/health", &[], "").await.text(), "OK");
    // Who speaks no TLS there is let go, and nobody else notices.
    let mut client = site.client().await;
    client.begin("GET", "/health", &[], "").await;
    client.drain().await;
    let refused = Tls::from_files(&key, &key).map(drop).unwrap_err().to_string();
    assert!(refused.contains("key.pem: no certificate can be read in it"), "{refused}");
    let refused = Tls::from_files(&certificate, &certificate).map(drop).unwrap_err().to_string();
    assert!(refused.contains("cert.pem: no key can be read in it"), "{refused}");
}
