//! deploy/create-cluster.sh, let loose on servers that run with deploy/redis.conf.

use std::process::{Command, Output};

use tempfile::TempDir;

use crate::deployed;
use crate::server::{Server, data_dir, on_path};

/// Servers and their directories; a server can be restarted on another port with its old files.
struct Nodes {
    dirs: Vec<TempDir>,
    servers: Vec<Server>,
}

impl Nodes {
    fn start(count: usize) -> Self {
        let dirs: Vec<_> = (0..count).map(|_| data_dir()).collect();
        let servers = dirs.iter().map(|dir| Server::start_anywhere(dir.path())).collect();
        Self { dirs, servers }
    }

    /// Stops all, and starts each where another one was: what containers' addresses may do after a `down`.
    fn swap_addresses(&mut self) {
        let mut ports: Vec<_> = self.servers.iter().map(|server| server.port).collect();
        ports.rotate_left(1);
        self.servers.clear();
        self.servers =
            self.dirs.iter().zip(ports).map(|(dir, port)| Server::start(dir.path(), port)).collect();
    }

    fn create(&self, replicas: u32) -> Output {
        let addresses: Vec<_> =
            self.servers.iter().map(|server| format!("127.0.0.1:{}", server.port)).collect();
        Command::new("sh")
            .arg(deployed("create-cluster.sh"))
            .env("NODES", addresses.join(" "))
            .env("REPLICAS", replicas.to_string())
            .output()
            .unwrap()
    }

    fn created(&self, replicas: u32) -> String {
        let output = self.create(replicas);
        let said =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{said}");
        said
    }

    fn assert_whole(&self, replicas: usize) {
        for server in &self.servers {
            let info = server.ask(&["CLUSTER", "INFO"]).concat();
            assert!(info.contains("cluster_state:ok"), "{info}");
            assert!(info.contains("cluster_slots_ok:16384"), "{info}");
            let nodes = server.ask(&["CLUSTER", "NODES"]).concat();
            assert_eq!(nodes.lines().count(), self.servers.len(), "{nodes}");
            assert_eq!(nodes.lines().filter(|line| line.contains("slave")).count(), replicas, "{nodes}");
        }
    }
}

/// The script runs where these are; with TIDELINE_REDIS_SERVER set a machine may have none of them.
fn can_run() -> bool {
    let can =
        on_path("timeout").is_some() && (on_path("redis-cli").or_else(|| on_path("valkey-cli"))).is_some();
    if !can {
        eprintln!("skipped: the script needs timeout, and redis-cli or valkey-cli");
    }
    can
}

#[test]
fn a_cluster_is_made_then_left_alone_then_found_again_at_other_addresses() {
    if !can_run() {
        return;
    }
    let mut nodes = Nodes::start(6);
    nodes.created(1);
    nodes.assert_whole(3);

    let said = nodes.created(1);
    assert!(said.contains("nothing to do"), "{said}");

    nodes.swap_addresses();
    let said = nodes.created(1);
    assert!(said.contains("introducing them"), "{said}");
    nodes.assert_whole(3);
}

#[test]
fn an_attempt_that_was_broken_off_is_begun_anew() {
    if !can_run() {
        return;
    }
    let nodes = Nodes::start(3);
    nodes.servers[0].ask(&["CLUSTER", "ADDSLOTSRANGE", "0", "5460"]);
    nodes.servers[1].ask(&["CLUSTER", "MEET", "127.0.0.1", &nodes.servers[0].port.to_string()]);
    let said = nodes.created(0);
    assert!(said.contains("beginning anew"), "{said}");
    nodes.assert_whole(0);
}

#[test]
fn nodes_with_data_that_are_no_whole_cluster_are_left_as_they_are() {
    if !can_run() {
        return;
    }
    let nodes = Nodes::start(3);
    let first = &nodes.servers[0];
    first.ask(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
    let set = || first.ask(&["SET", "kept", "1"]) == ["OK"];
    // A primary waits a moment before it serves after its first slots.
    while !set() {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let output = nodes.create(0);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("Nothing was changed"));
    assert_eq!(first.ask(&["GET", "kept"]), ["1"]);
}
