//! What the load test's processes can be seen to have been started with.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::Duration;

use tideline_local_cluster::{ClusterSpec, LocalCluster};

const SECRET: &str = "pl4nted";

/// The command lines of a process's children, and theirs.
fn lines_below(pid: u32) -> BTreeSet<String> {
    let mut parents = BTreeSet::from([pid]);
    let mut lines = BTreeSet::new();
    loop {
        let before = parents.len();
        for entry in std::fs::read_dir("/proc").expect("a list of processes").flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            let read = |file: &str| std::fs::read(entry.path().join(file)).unwrap_or_default();
            let status = String::from_utf8_lossy(&read("status")).into_owned();
            let parent =
                status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse::<u32>().ok());
            if parent.is_some_and(|parent| parents.contains(&parent)) {
                parents.insert(pid);
                lines.insert(String::from_utf8_lossy(&read("cmdline")).replace('\0', " "));
            }
        }
        if parents.len() == before {
            return lines;
        }
    }
}

/// Each instance of `verify` had the seeds among its arguments, which everybody on the machine can read.
#[tokio::test]
async fn no_password_stands_among_the_arguments_of_a_process() {
    let cluster = LocalCluster::up(ClusterSpec::ephemeral().password(SECRET)).await.expect("a cluster");
    let dir = tempfile::tempdir().expect("a directory for the result");
    let file = dir.path().join("verify.json");
    let mut run = Command::new(env!("CARGO_BIN_EXE_loadtest"))
        .args(["verify", "--seed", "1", "--operations", "300", "--chaos", "kill-instance", "--json"])
        .arg(&file)
        .env("TIDELINE_CLUSTER", cluster.urls().join(","))
        .env("RUST_LOG", "trace")
        .stdout(Stdio::from(std::fs::File::create(dir.path().join("out")).expect("a file")))
        .stderr(Stdio::from(std::fs::File::create(dir.path().join("err")).expect("a file")))
        .spawn()
        .expect("the program starts");
    let mut lines = BTreeSet::new();
    let ended = loop {
        lines.append(&mut lines_below(run.id()));
        if let Some(ended) = run.try_wait().expect("a child") {
            break ended;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    cluster.down().await.expect("it ends");
    let read = |name: &str| {
        String::from_utf8_lossy(&std::fs::read(dir.path().join(name)).unwrap_or_default()).into_owned()
    };
    let (told, result) = (read("out") + &read("err"), read("verify.json"));
    assert!(lines.iter().any(|line| line.contains("verify-worker")), "no instance was met: {lines:?}");
    for line in &lines {
        assert!(!line.contains(SECRET), "a process was started with the password: {line}");
    }
    assert!(!result.is_empty() && !result.contains(SECRET), "{result}");
    let shown = told.lines().find(|line| line.contains(SECRET));
    assert!(shown.is_none(), "{shown:?}");
    assert!(ended.success(), "{told}");
}
