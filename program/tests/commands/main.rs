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

/// Whether a command worked, what it prints, what it says beside that.
fn tideline(cluster: &str, arguments: &[&str]) -> (bool, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tideline"));
    let output = command.args(arguments).env("TIDELINE_CLUSTER", cluster).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}
