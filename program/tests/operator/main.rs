//! Commands for whoever runs a site, as they are typed.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::process::Command;

mod moderate;
mod tokens;

/// Whether a command worked, what it prints, what it says beside that.
fn tideline(cluster: &str, arguments: &[&str]) -> (bool, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tideline"));
    let output = command.args(arguments).env("TIDELINE_CLUSTER", cluster).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}
