//! `tideline serve`, as an operator starts it.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use tideline_local_cluster::{ClusterSpec, LocalCluster};

/// Tries to have two ports that nobody else takes meanwhile.
const TRIES: usize = 5;

fn serve(cluster: &str, settings: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tideline"));
    command.args(["serve", "--cluster", cluster]);
    command.envs(settings.iter().map(|(name, value)| (format!("TIDELINE_SERVER_{name}"), *value)));
    command
}

/// An address that is free just now.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// What is answered to a plain request.
fn get(at: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(at).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// A server that serves; killed at the end, whatever becomes of the test.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server with metrics; `None`: somebody else has taken one of the ports.
fn started(cluster: &str, listen: SocketAddr, metrics: SocketAddr) -> Option<Served> {
    let (listen, metrics) = (listen.to_string(), metrics.to_string());
    let mut command = serve(cluster, &[("LISTEN", &listen), ("METRICS_LISTEN", &metrics)]);
    let mut served = Served(command.stdout(Stdio::piped()).spawn().unwrap());
    let told = BufReader::new(served.0.stdout.take().unwrap());
    told.lines().map_while(Result::ok).any(|line| line.starts_with("Serving ")).then_some(served)
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_have_an_address_of_their_own() {
    let cluster = LocalCluster::up(ClusterSpec::ephemeral()).await.unwrap();
    let urls = cluster.urls().join(",");
    let (served, listen, metrics) = (0..TRIES)
        .find_map(|_| {
            let (listen, metrics) = (free(), free());
            started(&urls, listen, metrics).map(|served| (served, listen, metrics))
        })
        .unwrap();
    assert!(get(listen, "/api/v1/instance/rules").starts_with("HTTP/1.1 200"));
    let told = get(metrics, "/metrics");
    assert!(told.contains("tideline_http_requests_total{route=\"/api/v1/instance/rules\""), "{told}");
    // Not where clients ask.
    assert!(get(listen, "/metrics").starts_with("HTTP/1.1 404"));
    drop(served);
    cluster.down().await.unwrap();
}

#[test]
fn a_site_that_promises_longer_posts_than_the_engine_takes_is_not_served() {
    let settings = [("LISTEN", "127.0.0.1:0"), ("MAX_CHARACTERS", "5001")];
    let output = serve("redis://127.0.0.1:1", &settings).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(
        told.contains("max_characters under [server] is 5001; text_chars under [engine] allows 5000"),
        "{told}"
    );
}

#[test]
fn whoever_names_no_cluster_is_told_how_to_and_of_the_one_on_this_machine() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tideline"));
    let output = command.arg("serve").env("TIDELINE_SERVER_LISTEN", "127.0.0.1:0").output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && told.contains("--cluster"), "{told}");
    assert!(told.contains("; or give --local, which starts one on this machine"), "{told}");
}
