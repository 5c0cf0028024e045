//! A real Prometheus scrapes a run and a server, and answers every query of the dashboard with data.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tideline_local_cluster::{ClusterSpec, LocalCluster};
use tokio::runtime::Runtime;

use super::addresses;
use super::program::program;

/// So long the run is scraped and queries are asked again.
const PATIENCE: Duration = Duration::from_secs(240);
const PAUSE: Duration = Duration::from_secs(1);

/// Killed with this value.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn deployed(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy").join(name);
    fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

/// Whether to go on without them: whoever wants that has to say so, or nobody would notice.
fn does_without() -> bool {
    if std::env::var_os("TIDELINE_WITHOUT_PROMETHEUS").is_some_and(|value| !value.is_empty()) {
        eprintln!("NOT CHECKED: TIDELINE_WITHOUT_PROMETHEUS is set");
        return true;
    }
    for program in ["prometheus", "promtool"] {
        let here = Command::new(program).arg("--version").output();
        assert!(
            here.is_ok(),
            "{program} is not on the PATH: run scripts/install-tools.sh prometheus, or set \
             TIDELINE_WITHOUT_PROMETHEUS=1"
        );
    }
    false
}

/// What is asked by the panels.
fn queries() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&deployed("grafana/tideline.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.filter_map(|panel| panel["targets"].as_array()).flatten();
    targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect()
}

/// The body of an answer; none, if there is none yet.
fn get(address: SocketAddr, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer.split_once("\r\n\r\n")?.1.to_owned())
}

/// The results of a query; none, if there is no answer yet.
fn ask(prometheus: SocketAddr, query: &str) -> Option<Vec<Value>> {
    let escaped: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let json: Value =
        serde_json::from_str(&get(prometheus, &format!("/api/v1/query?query={escaped}"))?).ok()?;
    assert_ne!(json["status"], "error", "{query}: {json}");
    Some(json["data"]["result"].as_array()?.clone())
}

/// Something that is a number.
fn has_data(results: &[Value]) -> bool {
    results
        .iter()
        .any(|one| one["value"][1].as_str().is_some_and(|value| value.parse().is_ok_and(f64::is_finite)))
}

/// A server of a site, and the cluster that it works on.
struct Site {
    _server: Killed,
    _cluster: LocalCluster,
    _runtime: Runtime,
}

impl Site {
    fn start(dir: &Path, address: SocketAddr, metrics: SocketAddr) -> Self {
        let runtime = Runtime::new().unwrap();
        let cluster = runtime.block_on(LocalCluster::up(ClusterSpec::ephemeral().primaries(1))).unwrap();
        let mut server = Command::new(program());
        // What is set for this process is not meant for the server.
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TIDELINE_"))
        {
            server.env_remove(name);
        }
        let server = server
            .args(["serve", "--listen", &address.to_string(), "--public-url", "http://localhost:3000"])
            .env("TIDELINE_CLUSTER", cluster.urls().join(","))
            .env("TIDELINE_SERVER_METRICS_LISTEN", metrics.to_string())
            .current_dir(dir)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { _server: Killed(server), _cluster: cluster, _runtime: runtime }
    }
}

fn start_prometheus(dir: &Path, address: SocketAddr, run: SocketAddr, site: SocketAddr) -> Killed {
    // As it is deployed, but for where the run and the server are, and oftener.
    let [run, site] = [run, site].map(|scraped| scraped.to_string());
    let config = deployed("prometheus.yml")
        .replace("host.docker.internal:9100", &run)
        .replace("- server:9000", &format!("- {site}"))
        .replace("scrape_interval: 5s", "scrape_interval: 1s");
    assert!([&run[..], &site, " 1s"].iter().all(|put| config.contains(put)), "{config}");
    let file = dir.join("prometheus.yml");
    fs::write(&file, config).unwrap();
    let checked = Command::new("promtool").args(["check", "config"]).arg(&file).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    let server = Command::new("prometheus")
        .arg(format!("--config.file={}", file.display()))
        .arg(format!("--storage.tsdb.path={}", dir.join("data").display()))
        .arg(format!("--web.listen-address={address}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    Killed(server)
}

#[test]
fn every_query_of_the_dashboard_is_answered_with_data_while_a_run_and_a_server_are_scraped() {
    if does_without() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let scenario = dir.path().join("run.toml");
    let text = "name = 'scraped'\n[graph]\npreset = 'twip'\naccounts = 200\nmean = 20\n[mix]\npost = 2\ncheck = 10\n\
                subscribe = 1\nunsubscribe = 1\nlogout = 1\n[drive]\nat_once = 16\nbuckets = 64\nrounds = 200\n";
    fs::write(&scenario, text).unwrap();
    let [scraped, prometheus, site, of_site] = addresses::free();
    let run = Command::new(env!("CARGO_BIN_EXE_loadtest"))
        .args(["compare", "--seed", "7", "--metrics", &scraped.to_string(), "--scenario"])
        .arg(&scenario)
        .env_remove("TIDELINE_CLUSTER")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let _run = Killed(run);
    let _site = Site::start(dir.path(), site, of_site);
    let _server = start_prometheus(dir.path(), prometheus, scraped, of_site);

    let mut open = queries();
    assert!(open.len() >= 20 && open.iter().any(|query| query.contains("tideline_http_")), "{open:?}");
    let until = Instant::now() + PATIENCE;
    while !open.is_empty() {
        assert!(Instant::now() < until, "no data for {open:#?}");
        std::thread::sleep(PAUSE);
        // Whether there is such a page or not: it is a request.
        get(site, "/api/v1/instance");
        open.retain(|query| !ask(prometheus, query).is_some_and(|results| has_data(&results)));
    }
}

/// A query that ends in `or vector(0)` has an answer whatever it asks for.
#[test]
fn the_dashboard_asks_for_metrics_that_are_documented() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let documented: String = ["../docs/metrics.md", "README.md"]
        .iter()
        .map(|file| fs::read_to_string(root.join(file)).unwrap_or_else(|e| panic!("{file}: {e}")))
        .collect();
    let mut known = 0;
    for query in queries() {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        for name in query.split(|c| !is_name(c)) {
            if !(name.starts_with("tideline_") || name.starts_with("loadtest_")) {
                continue;
            }
            let plain = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
            let is_known = |name: &str| documented.contains(&format!("`{name}`"));
            assert!(
                is_known(name) || plain.is_some_and(is_known),
                "{name}, of {query}, is in no table of metrics"
            );
            known += 1;
        }
    }
    assert!(known >= 20, "{known} names");
}
