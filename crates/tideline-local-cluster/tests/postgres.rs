//! A PostgreSQL of a process: it comes and goes with it.

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tideline_local_cluster::LocalPostgres;

/// The port in `postgres://postgres:secret@127.0.0.1:12000/postgres`.
fn port(url: &str) -> u16 {
    let rest = url.rsplit_once("127.0.0.1:").expect("a loopback address").1;
    rest.split('/').next().expect("a port").parse().expect("a port")
}

fn listens(url: &str) -> bool {
    TcpStream::connect(("127.0.0.1", port(url))).is_ok()
}

#[tokio::test]
async fn a_server_that_was_stopped_or_killed_comes_back_where_it_was() {
    let mut server = LocalPostgres::up().await.unwrap();
    let url = server.url();
    assert!(url.ends_with("/postgres") && server.url_of("other").ends_with("/other"), "{url}");
    server.stop().await.unwrap();
    assert!(!server.is_running() && !listens(&url));
    server.start().await.unwrap();
    assert_eq!(server.url(), url);
    server.kill().await.unwrap();
    assert!(!server.is_running() && !listens(&url));
    server.start().await.unwrap();
    // One that is frozen goes too.
    server.freeze();
    drop(server);
    assert!(!listens(&url));
}

async fn run(server: &LocalPostgres, sql: &str) -> tokio_postgres::Client {
    let (client, connection) =
        tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.expect("it serves");
    tokio::spawn(connection);
    client.batch_execute(sql).await.expect("it runs");
    client
}

#[tokio::test]
async fn a_server_goes_back_to_what_it_had_when_it_was_copied() {
    let mut server = LocalPostgres::up().await.unwrap();
    run(&server, "CREATE TABLE t (n int); INSERT INTO t VALUES (1)").await;
    let copy = server.copy().await.unwrap();
    run(&server, "INSERT INTO t VALUES (2); CHECKPOINT; INSERT INTO t VALUES (3)").await;
    assert!(server.start_from(&copy).await.is_err(), "it runs");
    server.kill().await.unwrap();
    server.start_from(&copy).await.unwrap();
    let client = run(&server, "INSERT INTO t VALUES (4)").await;
    let rows = client.query("SELECT n FROM t ORDER BY n", &[]).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.get::<_, i32>(0)).collect::<Vec<_>>(), [1, 4]);
}

#[tokio::test]
async fn two_servers_have_ports_and_passwords_of_their_own() {
    let (one, other) = (LocalPostgres::up().await.unwrap(), LocalPostgres::up().await.unwrap());
    assert_ne!(port(&one.url()), port(&other.url()));
    let secret = |url: &str| url.split(['@', ':']).nth(2).unwrap().to_owned();
    assert_ne!(secret(&one.url()), secret(&other.url()));
    assert!(!format!("{one:?}").contains(&secret(&one.url())), "{one:?}");
}

#[tokio::test]
async fn what_a_server_says_of_wrong_settings_is_told() {
    let error = LocalPostgres::with_settings(&[("shared_buffers", "many")]).await.unwrap_err().to_string();
    assert!(error.contains("ended") && error.contains("shared_buffers"), "{error}");
}

/// The name of the test below, which this program runs again as a process of its own.
const STARTER: &str = "starts_one_and_waits_to_be_killed";
const IS_STARTER: &str = "TIDELINE_TEST_STARTER";

/// Not a test by itself.
#[tokio::test]
async fn starts_one_and_waits_to_be_killed() {
    if std::env::var_os(IS_STARTER).is_some() {
        let server = LocalPostgres::up().await.unwrap();
        println!("serves {}", server.url());
        std::future::pending::<()>().await;
    }
}

#[test]
fn a_server_ends_with_a_process_that_is_killed() {
    let mut starter = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", STARTER, "--nocapture"])
        .env(IS_STARTER, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(starter.stdout.take().unwrap()).lines().map_while(Result::ok);
    let url = lines.find_map(|line| line.split_once("serves ").map(|(_, url)| url.to_owned())).unwrap();
    assert!(listens(&url));
    starter.kill().unwrap();
    starter.wait().unwrap();
    let since = Instant::now();
    while listens(&url) {
        assert!(since.elapsed() < Duration::from_secs(120), "it still serves {}", port(&url));
        std::thread::sleep(Duration::from_millis(10));
    }
}
