//! What somebody who starts a local cluster relies on: it comes up, keeps its data, mends, explains, and goes away.

mod killed;
mod roles;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tideline_local_cluster::{ClusterSpec, LocalCluster, TlsServerFiles};

const PATIENCE: Duration = Duration::from_secs(30);

/// Sends one inline command and returns the first line of the reply, and the value that follows a length.
fn ask(port: u16, command: &str) -> String {
    try_ask(port, command).unwrap()
}

/// The same, of a server that may not be there.
fn try_ask(port: u16, command: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(format!("{command}\r\n").as_bytes()).ok()?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    if let Some(length) = line.strip_prefix('$').and_then(|length| length.trim().parse::<usize>().ok()) {
        let mut value = vec![0; length];
        reader.read_exact(&mut value).ok()?;
        line = String::from_utf8_lossy(&value).into_owned();
    }
    Some(line.trim().to_owned())
}

fn tideline(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tideline"));
    command.arg("cluster").args(args);
    command
}

fn run(args: &[&str]) -> Output {
    tideline(args).output().unwrap()
}

fn succeed(args: &[&str]) -> String {
    let output = run(args);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{args:?} failed:\n{out}\n{err}");
    out.into_owned()
}

fn ports_in(output: &str) -> Vec<u16> {
    let urls = output.lines().filter_map(|line| line.strip_prefix("redis://127.0.0.1:"));
    urls.map(|port| port.parse().unwrap()).collect()
}

fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "never happened: {what}");
        sleep(Duration::from_millis(20));
    }
}

/// Whether nothing is left of a cluster. Another test's may have got its ports by now.
fn is_gone(ports: &[u16], dir: &Path) -> bool {
    let is_anothers = |port| {
        let told = try_ask(port, "INFO server");
        told.is_some_and(|told| told.contains("config_file:") && !told.contains(&*dir.to_string_lossy()))
    };
    let is_free = |port: &u16| TcpStream::connect(("127.0.0.1", *port)).is_err() || is_anothers(*port);
    !dir.exists() && ports.iter().all(is_free)
}

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), signal).unwrap();
}

/// The pid of a server that has been started in a directory of this test.
fn pid_in(node: &Path) -> u32 {
    fs::read_to_string(node.join("redis.pid")).unwrap().trim().parse().unwrap()
}

/// A persistent cluster's directory; whatever is left in it is ended with the test, failed or not.
struct Scratch {
    dir: PathBuf,
    _parent: tempfile::TempDir,
}

impl Scratch {
    fn new() -> Self {
        let parent = tempfile::tempdir().unwrap();
        Self { dir: parent.path().canonicalize().unwrap().join("cluster"), _parent: parent }
    }

    fn arg(&self) -> String {
        self.dir.display().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = run(&["down", "--wipe", "--dir", &self.arg()]);
    }
}

/// `tideline cluster up --ephemeral`, up and running.
struct Foreground {
    child: Child,
    dir: PathBuf,
    ports: Vec<u16>,
}

impl Foreground {
    fn start(args: &[&str]) -> Self {
        let mut child = tideline(&["up", "--ephemeral"])
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let text: Vec<String> = lines.take_while(|line| !line.starts_with("Press ctrl-C")).collect();
        let dir =
            text.iter().find_map(|line| line.strip_prefix("Redis Cluster in ")).expect("a directory").into();
        Self { child, dir, ports: ports_in(&text.join("\n")) }
    }

    fn signal(&self, sent: Signal) {
        signal(self.child.id(), sent);
    }
}

impl Drop for Foreground {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn data_and_addresses_survive_down_and_up() {
    let scratch = Scratch::new();
    let dir = scratch.arg();
    let up = ["up", "--primaries", "2", "--replicas", "1", "--dir", &dir];
    let ports = ports_in(&succeed(&up));
    assert_eq!(ports.len(), 4);
    // `foo` lies in slot 12182: the second primary's.
    assert_eq!(ask(ports[1], "SET foo bar"), "+OK");
    let status = succeed(&["status", "--dir", &dir]);
    assert!(
        status.contains("healthy") && status.contains("8192-16383") && status.contains("replica"),
        "{status}"
    );

    succeed(&["down", "--dir", &dir]);
    assert!(ports.iter().all(|port| TcpStream::connect(("127.0.0.1", *port)).is_err()));
    let status = run(&["status", "--dir", &dir]);
    let text = String::from_utf8_lossy(&status.stdout).into_owned();
    assert_eq!(status.status.code(), Some(1));
    assert!(text.contains("none of the 4 servers runs") && text.contains("tideline cluster up"), "{text}");

    assert_eq!(ports_in(&succeed(&["up", "--dir", &dir])), ports, "the directory remembers shape and ports");
    assert_eq!(ask(ports[1], "GET foo"), "bar");
    assert_eq!(ports_in(&succeed(&up)), ports, "up on a running cluster changes nothing");

    let other = run(&["up", "--primaries", "5", "--dir", &dir]);
    let text = String::from_utf8_lossy(&other.stderr).into_owned();
    assert!(!other.status.success() && text.contains("2 primaries") && text.contains("--wipe"), "{text}");
    succeed(&["down", "--wipe", "--dir", &dir]);
    assert!(is_gone(&ports, &scratch.dir));
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_that_start_at_the_same_moment_stay_apart() {
    let start = || tokio::spawn(LocalCluster::up(ClusterSpec::ephemeral()));
    let (one, two, three) = tokio::try_join!(start(), start(), start()).unwrap();
    let clusters = [one.unwrap(), two.unwrap(), three.unwrap()];
    let mut urls: Vec<String> = clusters.iter().flat_map(LocalCluster::urls).collect();
    urls.sort();
    urls.dedup();
    assert_eq!(urls.len(), 9);
    for cluster in &clusters {
        let known = ask(cluster.nodes()[0].addr().port, "CLUSTER INFO");
        assert!(
            known.contains("cluster_known_nodes:3") && known.contains("cluster_slots_ok:16384"),
            "{known}"
        );
    }
    for cluster in clusters {
        let (dir, ports) = (cluster.dir().to_owned(), ports_of(&cluster));
        cluster.down().await.unwrap();
        assert!(is_gone(&ports, &dir));
    }
}

fn ports_of(cluster: &LocalCluster) -> Vec<u16> {
    cluster.nodes().iter().map(|node| node.addr().port).collect()
}

#[test]
fn a_dead_node_is_noticed_and_mended_and_a_living_one_is_found_without_its_pid() {
    let scratch = Scratch::new();
    let (dir, arg) = (&scratch.dir, scratch.arg());
    let ports = ports_in(&succeed(&["up", "--replicas", "0", "--dir", &arg]));
    let (dead, living) = (dir.join("node-1"), dir.join("node-2"));
    let (dead_pid, living_pid) = (pid_in(&dead), pid_in(&living));
    signal(dead_pid, Signal::KILL);
    eventually("the node is dead", || TcpStream::connect(("127.0.0.1", ports[1])).is_err());

    let status = run(&["status", "--dir", &arg]);
    let text = String::from_utf8_lossy(&status.stdout).into_owned();
    assert_eq!(status.status.code(), Some(1));
    assert!(text.contains(&format!("127.0.0.1:{} does not run", ports[1])), "{text}");

    // Nobody remembers any pid; a pid file even names a process that is not a server.
    let state = dir.join("cluster.json");
    let mut json: serde_json::Value = serde_json::from_slice(&fs::read(&state).unwrap()).unwrap();
    json["nodes"].as_array_mut().unwrap().iter_mut().for_each(|node| node["pid"] = serde_json::Value::Null);
    fs::write(&state, json.to_string()).unwrap();
    fs::write(dead.join("redis.pid"), std::process::id().to_string()).unwrap();
    fs::remove_file(living.join("redis.pid")).unwrap();

    assert_eq!(ports_in(&succeed(&["up", "--dir", &arg])), ports);
    assert_ne!(pid_in(&dead), dead_pid);
    let status = succeed(&["status", "--dir", &arg]);
    assert!(status.contains(&living_pid.to_string()), "the living server went on: {status}");
    succeed(&["down", "--dir", &arg]);
    assert!(ports.iter().all(|port| TcpStream::connect(("127.0.0.1", *port)).is_err()));
}

#[test]
fn lost_slots_and_a_lost_directory_are_mended_without_losing_the_replicas_data() {
    let scratch = Scratch::new();
    let (dir, arg) = (&scratch.dir, scratch.arg());
    let ports = ports_in(&succeed(&["up", "--primaries", "2", "--replicas", "1", "--dir", &arg]));
    assert_eq!(ask(ports[1], "CLUSTER DELSLOTSRANGE 9000 9999"), "+OK");
    assert!(!run(&["status", "--dir", &arg]).status.success());
    succeed(&["up", "--dir", &arg]);
    assert!(succeed(&["status", "--dir", &arg]).contains("8192-16383"));

    assert_eq!(ask(ports[1], "SET foo bar"), "+OK");
    assert_eq!(ask(ports[1], "WAIT 1 5000"), ":1");
    signal(pid_in(&dir.join("node-1")), Signal::KILL);
    fs::remove_dir_all(dir.join("node-1")).unwrap();
    succeed(&["up", "--dir", &arg]);
    let values = [ask(ports[1], "GET foo"), ask(ports[3], "GET foo")];
    assert!(values.contains(&"bar".to_owned()), "{values:?}");
}

#[test]
fn nothing_survives_a_killed_foreground_cluster_not_even_a_frozen_server() {
    let cluster = Foreground::start(&["--replicas", "0"]);
    assert_eq!(cluster.ports.len(), 3);
    signal(pid_in(&cluster.dir.join("node-1")), Signal::STOP);
    cluster.signal(Signal::KILL);
    eventually("servers and directory are gone", || is_gone(&cluster.ports, &cluster.dir));
}

#[test]
fn an_interrupted_foreground_cluster_ends_in_good_order() {
    let mut cluster = Foreground::start(&["--primaries", "1", "--replicas", "0"]);
    cluster.signal(Signal::INT);
    assert!(cluster.child.wait().unwrap().success());
    assert!(is_gone(&cluster.ports, &cluster.dir), "gone when the command returns");
}

#[test]
fn a_panic_takes_the_cluster_down() {
    let (tell, told) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let cluster = runtime.block_on(LocalCluster::up(ClusterSpec::ephemeral().primaries(1))).unwrap();
        cluster.nodes()[0].freeze().unwrap();
        tell.send((ports_of(&cluster), cluster.dir().to_owned())).unwrap();
        panic!("on purpose, to see what is left");
    });
    let (ports, dir) = told.recv().unwrap();
    assert!(thread.join().is_err());
    assert!(is_gone(&ports, &dir));
}

#[tokio::test]
async fn what_stands_in_the_way_is_explained() {
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let refused = |spec| async { LocalCluster::up(spec).await.unwrap_err().to_string() };
    let text = refused(ClusterSpec::ephemeral().primaries(1).port_base(port)).await;
    assert!(text.contains(&format!("port {port} is taken")) && text.contains("--port-base"), "{text}");

    for port in ["99999", "1023"] {
        let output = run(&["up", "--ephemeral", "--port-base", port]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains(&format!("{port} is not in 1024..=65535")), "{text}");
    }

    let text = refused(ClusterSpec::ephemeral().server("/nowhere/redis-server")).await;
    assert!(text.contains("/nowhere/redis-server") && text.contains("TIDELINE_REDIS_SERVER"), "{text}");

    let place = tempfile::tempdir().unwrap();
    let old = place.path().join("old-server");
    fs::write(&old, "#!/bin/sh\necho 'Redis server v=6.2.14 sha=00000000:0'\n").unwrap();
    fs::set_permissions(&old, fs::Permissions::from_mode(0o755)).unwrap();
    let text = refused(ClusterSpec::ephemeral().server(&old)).await;
    assert!(text.contains("Redis 6.2.14 is too old") && text.contains("7.0.0"), "{text}");

    let text = refused(ClusterSpec::ephemeral().config("no-such-setting", "1")).await;
    assert!(text.contains("no-such-setting") && text.contains("server.log"), "the log is shown: {text}");

    let text = refused(ClusterSpec::ephemeral().primaries(0).replicas(1)).await;
    assert!(text.contains("0 primaries with 1 replica each"), "{text}");

    // Nothing is left of a directory that was made for it; one that was there stays, with what is in it.
    let new = place.path().join("some/where");
    let text = refused(ClusterSpec::default().primaries(1).port_base(port).dir(&new)).await;
    assert!(text.contains("is taken") && !place.path().join("some").exists(), "{text}");
    fs::create_dir(place.path().join("some")).unwrap();
    refused(ClusterSpec::default().primaries(1).port_base(port).dir(&new)).await;
    assert!(place.path().join("some").exists() && !new.exists());

    let path = std::env::var_os("PATH").unwrap();
    let without = std::env::split_paths(&path).filter(|dir| !dir.join("redis-server").exists());
    let without = std::env::join_paths(without.filter(|dir| !dir.join("valkey-server").exists())).unwrap();
    let output =
        tideline(&["up", "--ephemeral"]).env("PATH", without).env_remove("TIDELINE_REDIS_SERVER").output();
    let text = String::from_utf8_lossy(&output.unwrap().stderr).into_owned();
    assert!(text.contains("apt-get install") && text.contains("brew install"), "{text}");

    let text = LocalCluster::open(place.path()).await.unwrap_err().to_string();
    let up = format!("`tideline cluster up --dir {}` starts one", place.path().display());
    assert!(text.contains("there is no cluster") && text.contains(&up), "{text}");
}

#[tokio::test]
async fn a_cluster_speaks_tls_and_only_tls() {
    let place = tempfile::tempdir().unwrap();
    let Some(files) = certificates(place.path()) else {
        eprintln!("not tested: no `openssl` here to make certificates");
        return;
    };
    let spec = ClusterSpec::ephemeral().primaries(2).replicas(1).tls(files);
    let cluster = match LocalCluster::up(spec).await {
        Err(e) if e.to_string().contains("Failed finding TLS support") => {
            eprintln!("not tested: this server was built without TLS");
            return;
        }
        result => result.unwrap(),
    };
    assert!(cluster.urls().iter().all(|url| url.starts_with("rediss://127.0.0.1:")));
    let (from, to) = (cluster.nodes()[0].addr(), cluster.nodes()[1].addr());
    cluster.migrate_slot(0, &to).await.unwrap();
    assert_eq!(cluster.owner_of(0).await.unwrap(), to);
    let mut plain = TcpStream::connect(("127.0.0.1", from.port)).unwrap();
    plain.write_all(b"PING\r\n").unwrap();
    let mut reply = String::new();
    let _ = plain.read_to_string(&mut reply);
    assert!(!reply.contains("PONG"));
}

/// A certificate for 127.0.0.1 and its authority.
fn certificates(dir: &Path) -> Option<TlsServerFiles> {
    let script = "set -e
        openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -days 2 -subj /CN=test-ca
        openssl req -newkey rsa:2048 -nodes -keyout node.key -out node.csr -subj /CN=node
        printf 'subjectAltName=IP:127.0.0.1\\n' > node.ext
        openssl x509 -req -in node.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 \
            -extfile node.ext -out node.crt";
    Command::new("openssl").arg("version").output().ok()?;
    let output = Command::new("sh").args(["-c", script]).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let file = |name| dir.join(name);
    Some(TlsServerFiles { certificate: file("node.crt"), key: file("node.key"), ca: file("ca.crt") })
}
