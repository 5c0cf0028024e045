//! Connections: how many there are from one address, whom nobody waits for, which certificate they get.

use std::path::Path;
use std::time::Duration;

use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use tideline_server::http::{CONNECTIONS_CUT, Layers, Listener, ListenerLimits, Tls};
use tokio::net::TcpStream;

use super::client::{self, Client};
use super::{Site, loopback};

/// What takes longer never comes.
const FOR_EVER: Duration = Duration::from_secs(60);

/// How many connections were cut off for that.
fn cut_off(figures: &Snapshotter, why: &str) -> u64 {
    let all = figures.snapshot().into_vec().into_iter();
    let of_why = all.filter(|(key, ..)| {
        key.key().name() == CONNECTIONS_CUT && key.key().labels().any(|label| label.value() == why)
    });
    of_why.map(|(.., value)| if let DebugValue::Counter(many) = value { many } else { 0 }).sum()
}

/// Writes a new certificate of `localhost`, and its key or another one's; gives the certificate.
fn certificate_in(folder: &Path, with_its_key: bool) -> rcgen::Certificate {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = if with_its_key { &made.signing_key } else { &other.signing_key };
    // As certbot does: other files, and then links to them.
    for (name, text) in [("cert.pem", made.cert.pem()), ("key.pem", key.serialize_pem())] {
        let new = folder.join(format!("{name}.new"));
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, folder.join(name)).unwrap();
    }
    made.cert
}

/// Whether who trusts that certificate alone is answered.
async fn is_served_with(site: &Site, certificate: &rcgen::Certificate) -> bool {
    let stream = TcpStream::connect(site.address).await.unwrap();
    let Some(stream) = client::try_tls(stream, certificate.der()).await else { return false };
    Client::new(stream).send("GET", "/health", &[], "").await.status == 200
}

/// Waits until it is.
async fn comes_to_serve(site: &Site, certificate: &rcgen::Certificate) {
    let comes = async {
        while !is_served_with(site, certificate).await {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(FOR_EVER, comes).await.unwrap();
}

#[tokio::test]
async fn a_renewed_certificate_is_taken_up_and_one_that_can_not_be_used_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let first = certificate_in(folder.path(), true);
    let tls = Tls::from_files(&folder.path().join("cert.pem"), &folder.path().join("key.pem")).unwrap();
    let tls = tls.looks_every(Duration::from_millis(2));
    let listeners = vec![Listener::bind(loopback(), Some(tls)).await.unwrap()];
    let site = Site::start_at(listeners, Layers::default(), ListenerLimits::default());
    assert!(is_served_with(&site, &first).await);
    let second = certificate_in(folder.path(), true);
    comes_to_serve(&site, &second).await;
    assert!(!is_served_with(&site, &first).await);
    // The key of another one; no certificate at all; no file.
    let third = certificate_in(folder.path(), false);
    std::fs::write(folder.path().join("key.pem"), "nothing").unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    std::fs::remove_file(folder.path().join("cert.pem")).unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(is_served_with(&site, &second).await && !is_served_with(&site, &third).await);
    // And on with what comes then.
    let fourth = certificate_in(folder.path(), true);
    comes_to_serve(&site, &fourth).await;
}

/// What an address has open beside others was bounded by nothing but the bound on all.
#[tokio::test]
async fn an_address_has_so_many_connections_and_whoever_is_exempt_any_number() {
    let recorder = DebuggingRecorder::new();
    let figures = recorder.snapshotter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let limits = ListenerLimits { address_connections_max: 2, ..ListenerLimits::default() };
    let site = Site::start(Layers::default(), limits.clone()).await;
    let (mut one, mut two) = (site.client().await, site.client().await);
    for client in [&mut one, &mut two] {
        assert_eq!(client.send("GET", "/health", &[], "").await.status, 200);
    }
    assert!(site.client().await.is_closed().await);
    drop(one);
    // As soon as the server has noticed.
    let again = async { while site.client().await.try_send("GET", "/health").await != Some(200) {} };
    tokio::time::timeout(FOR_EVER, again).await.expect("a place is given back");
    assert_eq!(two.send("GET", "/health", &[], "").await.status, 200);
    let cut = cut_off(&figures, "too_many");
    assert!(cut > 0);

    let exempt = vec!["127.0.0.0/8".parse().unwrap()];
    let site = Site::start(Layers::default(), ListenerLimits { exempt, ..limits }).await;
    let mut all = Vec::new();
    for _ in 0..5 {
        all.push(site.client().await);
    }
    for client in &mut all {
        assert_eq!(client.send("GET", "/health", &[], "").await.status, 200);
    }
}

/// Whoever read nothing kept its connection, and what it was answered, for ever.
#[tokio::test]
async fn who_does_not_read_what_it_asked_for_is_cut_off() {
    let recorder = DebuggingRecorder::new();
    let figures = recorder.snapshotter();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let limits = ListenerLimits { write_time: Duration::from_millis(50), ..ListenerLimits::default() };
    let site = Site::start(Layers::default(), limits).await;
    let mut silent = site.client().await;
    // More than what lies between two programs holds.
    silent.begin("GET", "/endless", &[], "").await;
    site.arrived.notified().await;
    // Its answer is dropped, which says so.
    tokio::time::timeout(FOR_EVER, site.dropped.notified()).await.unwrap();
    assert_eq!(cut_off(&figures, "unread"), 1);
    assert_eq!(site.client().await.send("GET", "/long", &[], "").await.status, 200);
}
