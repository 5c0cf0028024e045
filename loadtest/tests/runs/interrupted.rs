//! Runs on a cluster of others that are interrupted, and what is left of them.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use redis::cluster_async::ClusterConnection;
use rustix::process::{Pid, Signal, kill_process};
use tideline_local_cluster::{ClusterSpec, LocalCluster};

const PATIENCE: Duration = Duration::from_secs(180);
const PAUSE: Duration = Duration::from_millis(20);

/// A run, and what it has told until now. Killed with this value.
struct Run {
    child: Child,
    told: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Run {
    fn start(cluster: &LocalCluster, line: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_loadtest"))
            .args(line.split(' '))
            .args(["--cluster", &cluster.urls().join(",")])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let told = Arc::new(Mutex::new(String::new()));
        let (lines, all) = (BufReader::new(child.stderr.take().unwrap()).lines(), told.clone());
        let reader = std::thread::spawn(move || {
            lines.map_while(Result::ok).for_each(|line| *all.lock().unwrap() += &(line + "\n"));
        });
        Self { child, told, reader: Some(reader) }
    }

    fn told(&self) -> String {
        self.told.lock().unwrap().clone()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Its exit code; none, if a signal has killed it.
    fn ended(&mut self) -> Option<i32> {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                self.reader.take().unwrap().join().unwrap();
                return status.code();
            }
            assert!(Instant::now() < until, "it does not end: {}", self.told());
            std::thread::sleep(PAUSE);
        }
    }

    /// Waits until so many keys and more are there.
    async fn until_keys(&mut self, keys: u64, connection: &mut ClusterConnection) {
        let until = Instant::now() + PATIENCE;
        while keys_of(connection).await < keys {
            assert!(self.child.try_wait().unwrap().is_none() && Instant::now() < until, "{}", self.told());
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Three primaries that somebody else has a key on.
async fn cluster_of_others() -> (LocalCluster, ClusterConnection) {
    let cluster = LocalCluster::up(ClusterSpec::ephemeral().primaries(3).replicas(0)).await.unwrap();
    let client = redis::cluster::ClusterClient::new(cluster.urls()).unwrap();
    let mut connection = client.get_async_connection().await.unwrap();
    redis::cmd("SET").arg("loadtest-of-others").arg("kept").exec_async(&mut connection).await.unwrap();
    (cluster, connection)
}

async fn keys_of(connection: &mut ClusterConnection) -> u64 {
    redis::cmd("DBSIZE").query_async(connection).await.unwrap()
}

/// It left 67,597 keys, and had not said what they begin with.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_run_removes_its_keys_and_nothing_else() {
    let (cluster, mut connection) = cluster_of_others().await;
    for (line, signal, code) in [
        ("compare --systems push_only --accounts 500 --rounds 1000 --seed 7", Signal::INT, 130),
        // A part that fails is left out there, and the next one begun.
        ("scale --parts units,followers --accounts 200 --rounds 100 --seed 7", Signal::TERM, 143),
    ] {
        let mut run = Run::start(&cluster, line);
        run.until_keys(200, &mut connection).await;
        run.signal(signal);
        assert_eq!(run.ended(), Some(code), "{}", run.told());
        let told = run.told();
        assert!(told.contains("The keys of this run begin with `loadtest-"), "{told}");
        assert!(told.contains(" keys are removed, no more are left."), "{told}");
        assert_eq!(keys_of(&mut connection).await, 1, "{told}");
    }
    cluster.down().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_interrupted_removal_leaves_is_told_with_what_removes_it() {
    let (cluster, mut connection) = cluster_of_others().await;
    let mut run = Run::start(&cluster, "compare --systems push_only --accounts 500 --rounds 1000 --seed 7");
    run.until_keys(200, &mut connection).await;
    // So that removing them takes longer than it takes to say so.
    cluster.nodes().iter().for_each(|node| node.freeze().unwrap());
    run.signal(Signal::INT);
    run.signal(Signal::TERM);
    let code = run.ended();
    cluster.nodes().iter().for_each(|node| node.thaw().unwrap());
    let told = run.told();
    assert!(matches!(code, Some(130 | 143)), "{code:?}: {told}");
    assert!(told.contains("are left on the cluster") && !told.contains("error"), "{told}");
    let (_, line) = told.rsplit_once("To remove them: loadtest ").unwrap();

    assert!(keys_of(&mut connection).await > 200, "{told}");
    let mut clean = Command::new(env!("CARGO_BIN_EXE_loadtest"));
    let output = tokio::task::block_in_place(|| clean.args(line.split_whitespace()).output().unwrap());
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains(" keys that begin with `loadtest-"), "{line}: {said}");
    assert_eq!(keys_of(&mut connection).await, 1, "{said}");
    cluster.down().await.unwrap();
}
