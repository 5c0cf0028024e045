//! Commands of the program, as those type them who run a site. One program of tests, since most of them wait: for
//! servers that start, and for what they do.

#![expect(clippy::unwrap_used, reason = "in helpers too, a failed step is a failed test")]

mod accounts;
mod archive;
mod demo;
mod local_cluster;
mod moderate;
mod serve;
mod tokens;

use std::process::Command;

use rustix::process::getuid;
use tempfile::TempDir;

/// A temporary directory of a program's own, to see what it leaves there; its ports are taken from the same as all
/// others', or two would get the same ones.
fn own_temporary() -> TempDir {
    let place = tempfile::tempdir().unwrap();
    let ports = format!("tideline-ports-{}", getuid().as_raw());
    let shared = std::env::temp_dir().join(&ports);
    std::fs::create_dir_all(&shared).unwrap();
    std::os::unix::fs::symlink(shared, place.path().join(ports)).unwrap();
    place
}

/// Whether a command worked, what it prints, what it says beside that.
fn tideline(cluster: &str, arguments: &[&str]) -> (bool, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tideline"));
    let output = command.args(arguments).env("TIDELINE_CLUSTER", cluster).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

/// Whoever starts a program by a compose file passes on variables that nobody has filled in.
#[test]
fn a_variable_that_is_empty_counts_as_none() {
    let told = |value: Option<&str>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tideline"));
        for name in ["TIDELINE_CLUSTER", "TIDELINE_CONFIG", "TIDELINE_ARCHIVE", "TIDELINE_ENGINE_PAGE_LENGTH"]
        {
            command.env_remove(name);
            value.map(|value| command.env(name, value));
        }
        let output = command.arg("fsck").output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, without) = told(None);
    assert!(code != Some(0) && without.contains("TIDELINE_CLUSTER"), "{without}");
    assert_eq!(told(Some("")), (code, without));
}
