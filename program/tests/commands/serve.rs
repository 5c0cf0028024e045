//! `tideline serve`, as an operator starts it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tideline::post::Draft;
use tideline::{Engine, NewAccount};
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
    begun(serve(cluster, &[("LISTEN", &listen), ("METRICS_LISTEN", &metrics)]))
}

/// A server, once it serves.
fn begun(mut command: Command) -> Option<Served> {
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

/// Many can read what a server logs, and everybody on its machine with which arguments it was started. Its secrets come
/// by the environment, and by files.
#[tokio::test(flavor = "multi_thread")]
async fn no_secret_of_a_server_stands_in_its_log_or_its_arguments() {
    const SECRET: &str = "pl4nted";
    let cluster = LocalCluster::up(ClusterSpec::ephemeral().password(SECRET)).await.unwrap();
    let urls = cluster.urls().join(",");
    assert!(urls.contains(SECRET), "{urls}");
    let folder = tempfile::tempdir().unwrap();
    let [config, password, log] = ["tideline.toml", "password", "log"].map(|name| folder.path().join(name));
    std::fs::write(&password, SECRET).unwrap();
    let mail = format!(
        "[mail]\nfrom = \"tide@example.org\"\nserver = \"127.0.0.1:1\"\ntls = \"off\"\nuser = \"ada\"\n\
         password_file = \"{}\"\n",
        password.display()
    );
    std::fs::write(&config, mail).unwrap();
    let command = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tideline"));
        command
            .args(["serve", "--config"])
            .arg(&config)
            .env("TIDELINE_CLUSTER", &urls)
            .env("RUST_LOG", "trace");
        command.env("TIDELINE_SERVER_LISTEN", free().to_string());
        command.stderr(std::fs::File::create(&log).unwrap());
        command
    };
    let served = (0..TRIES).find_map(|_| begun(command())).unwrap();
    // Where there is no such file, there is no list of processes that shows it.
    if let Ok(line) = std::fs::read(format!("/proc/{}/cmdline", served.0.id())) {
        let line = String::from_utf8_lossy(&line).into_owned();
        assert!(line.contains("serve") && !line.contains(SECRET), "{line}");
    }
    drop(served);
    let told = |needed: &str| {
        let logged = std::fs::read_to_string(&log).unwrap();
        assert!(logged.contains(needed), "{logged}");
        let shown = logged.lines().find(|line| line.contains(SECRET));
        assert!(shown.is_none(), "{shown:?}");
    };
    told("slot map");
    // An archive that nobody serves: what is told of that names it.
    let archive = format!("postgresql://ada:{SECRET}@127.0.0.1:1/tideline");
    let mut refused =
        Served(command().env("TIDELINE_ARCHIVE", archive).stdout(Stdio::null()).spawn().unwrap());
    let since = std::time::Instant::now();
    while refused.0.try_wait().unwrap().is_none() {
        assert!(since.elapsed() < Duration::from_secs(60), "it serves without its archive");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!refused.0.wait().unwrap().success());
    told("archive at 127.0.0.1:1");
    cluster.down().await.unwrap();
}

#[test]
fn a_site_that_promises_longer_posts_than_the_engine_takes_is_not_served() {
    let settings = [("LISTEN", "127.0.0.1:0"), ("MAX_CHARACTERS", "5001")];
    let output = serve("redis://127.0.0.1:1", &settings).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    // What starts services is told that it won't be better the next time (deploy/tideline.service).
    assert_eq!(output.status.code(), Some(2));
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
    assert!(output.status.code() == Some(2) && told.contains("--cluster"), "{told}");
    assert!(told.contains("; or give --local, which starts one on this machine"), "{told}");
}

// The engine keeps its lease while commands run.
#[tokio::test(flavor = "multi_thread")]
async fn statuses_are_found_by_their_words_where_the_archive_has_search() {
    let cluster = LocalCluster::up(ClusterSpec::ephemeral()).await.unwrap();
    let urls = cluster.urls().join(",");
    let engine = Engine::builder().seeds(cluster.urls()).start().await.unwrap();
    let author = engine.create_account(NewAccount::default()).await.unwrap().value;
    for hour in ["six", "noon", "seven"] {
        engine.publish(author, &Draft::text(format!("High tide at {hour}"))).await.unwrap();
    }
    engine.shutdown(Duration::from_secs(60)).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let archive = format!("sqlite:{}", folder.path().join("posts").display());
    // How many statuses a search finds, with and without that archive.
    let found = |with: bool, searched: &str| {
        let server = (0..TRIES).find_map(|_| {
            let listen = free();
            let mut command = serve(&urls, &[("LISTEN", &listen.to_string())]);
            if with {
                command.env("TIDELINE_ARCHIVE", &archive);
            }
            begun(command).map(|served| (served, listen))
        });
        let (served, listen) = server.unwrap();
        let answer = get(listen, &format!("/api/v2/search?{searched}"));
        drop(served);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        answer.matches("\"uri\":").count() / 2
    };
    assert_eq!(found(false, "q=tide&type=statuses"), 0);
    for arguments in [&["archive", "begin", "--search"][..], &["archive", "index"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tideline"));
        command.args(arguments).env("TIDELINE_CLUSTER", &urls).env("TIDELINE_ARCHIVE", &archive);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    for (searched, many) in [
        ("q=tide&type=statuses", 3),
        ("q=NOON&type=statuses", 1),
        ("q=tide&type=statuses&offset=2", 1),
        ("q=tide&type=statuses&limit=2", 2),
        ("q=low&type=statuses", 0),
        ("q=tide&type=accounts", 0),
    ] {
        assert_eq!(found(true, searched), many, "{searched}");
    }
    cluster.down().await.unwrap();
}
