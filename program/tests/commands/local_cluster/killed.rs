//! Those that are killed while they start a cluster.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use super::{Scratch, eventually, is_gone, run, succeed, tideline, try_ask};
use crate::own_temporary;

/// What an `up` has reached when it is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reached {
    /// Nothing is written down yet.
    Directory,
    WrittenDown,
    /// A server has been started.
    FirstPid,
    Answers,
    /// A server knows whose the slots are; they may not be all it has to know.
    Slots,
}

impl Reached {
    const ALL: [Self; 5] = [Self::Directory, Self::WrittenDown, Self::FirstPid, Self::Answers, Self::Slots];

    fn is_so(self, dir: &Path) -> bool {
        let node = dir.join("node-0");
        let answers = |question, part| {
            port_of(&node).is_some_and(|port| try_ask(port, question).is_some_and(|told| told.contains(part)))
        };
        match self {
            Self::Directory => dir.exists(),
            Self::WrittenDown => dir.join("cluster.json").exists(),
            Self::FirstPid => node.join("redis.pid").exists(),
            Self::Answers => answers("PING", "PONG"),
            Self::Slots => answers("CLUSTER INFO", "cluster_slots_assigned:16384"),
        }
    }
}

/// The port that a node's configuration names, once it is written.
fn port_of(node: &Path) -> Option<u16> {
    let conf = fs::read_to_string(node.join("redis.conf")).ok()?;
    conf.lines().find_map(|line| line.strip_prefix("port "))?.trim().parse().ok()
}

#[test]
fn an_up_that_was_killed_at_any_moment_is_finished_by_the_next_or_removed_by_down() {
    for (reached, is_finished) in Reached::ALL.into_iter().flat_map(|at| [(at, true), (at, false)]) {
        // Where nothing is written down there is no cluster to remove.
        if reached == Reached::Directory && !is_finished {
            continue;
        }
        let scratch = Scratch::new();
        let arg = scratch.arg();
        let mut up = tideline(&["up", "--primaries", "1", "--replicas", "1", "--dir", &arg])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        eventually("it has come so far", || reached.is_so(&scratch.dir));
        up.kill().unwrap();
        up.wait().unwrap();
        if is_finished {
            succeed(&["up", "--primaries", "1", "--replicas", "1", "--dir", &arg]);
            succeed(&["status", "--dir", &arg]);
        } else {
            // One that was killed while it wrote down how far it is leaves a part of that.
            fs::write(scratch.dir.join("cluster.json.new"), "{").unwrap();
        }
        let down = run(&["down", "--wipe", "--dir", &arg]);
        let told = String::from_utf8_lossy(&down.stderr);
        assert!(down.status.success(), "{reached:?}, {is_finished}: {told}");
        assert!(!scratch.dir.exists(), "{reached:?}, {is_finished}");
    }
}

#[test]
fn a_foreground_cluster_that_is_killed_while_it_starts_leaves_nothing() {
    for reached in [Reached::Directory, Reached::FirstPid, Reached::Answers, Reached::Slots] {
        // Its temporary directory is ours, to see what is left there.
        let place = own_temporary();
        let mut up = tideline(&["up", "--ephemeral"]);
        let mut up =
            up.env("TMPDIR", place.path()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let ours = || {
            let names = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap());
            let is_ours =
                |entry: &fs::DirEntry| !entry.file_name().to_string_lossy().starts_with("tideline-ports");
            names.filter(is_ours).map(|entry| entry.path()).next()
        };
        eventually("it has come so far", || ours().is_some_and(|dir| reached.is_so(&dir)));
        let dir = ours().unwrap();
        let ports: Vec<u16> = (0..3).filter_map(|node| port_of(&dir.join(format!("node-{node}")))).collect();
        up.kill().unwrap();
        up.wait().unwrap();
        eventually("its servers and its directory are gone", || is_gone(&ports, &dir) && ours().is_none());
    }
}
