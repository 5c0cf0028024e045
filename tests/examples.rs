//! The examples run to their end, each on a cluster that it starts itself.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::PathBuf;
use std::process::Command;

/// `cargo test` builds examples before the tests, into a directory beside theirs; `cargo test --test examples` does not,
/// and then those that were built last are run.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join("examples").join(name);
    if !program.exists() {
        let built =
            Command::new(env!("CARGO")).args(["build", "--locked", "--example", name]).status().unwrap();
        assert!(built.success() && program.exists(), "{} could not be built", program.display());
    }
    program
}

fn run(name: &str, wanted: &[&str]) {
    let output = Command::new(program(name)).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {}\n{text}\n{errors}", output.status);
    for wanted in wanted {
        assert!(text.contains(wanted), "{name} did not print {wanted:?}:\n{text}");
    }
}

#[test]
fn an_engine_is_embedded_in_a_service() {
    run("embed", &["reads: Tide table, page 8", "shut down, 0 tasks left"]);
}

#[test]
fn a_filter_of_ones_own_hides_posts() {
    run("custom_filter", &["without films [\"High tide at six\", \"Low tide at noon\"]", "Hidden(Filtered)"]);
}

#[test]
fn a_policy_of_ones_own_decides_who_is_pulled() {
    run("policy", &["1000 is pulled; ", "reads 2 of its posts", "1000 is pushed again, "]);
}

#[test]
fn a_site_moves_here() {
    run("import", &["200 new accounts", "1001 posts", "100 reads: "]);
}
