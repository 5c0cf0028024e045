//! The program as people run it.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use super::documented;

/// A run to its end; each `FILE` of the line is the next of these.
pub(crate) fn loadtest(line: &str, files: &[&Path]) -> Output {
    let mut files = files.iter();
    let words = line.split_whitespace().map(|word| match word {
        "FILE" => files.next().expect("a file for each FILE").as_os_str().to_owned(),
        word => word.into(),
    });
    let mut program = Command::new(env!("CARGO_BIN_EXE_loadtest"));
    program.args(words).env_remove("TIDELINE_CLUSTER").output().expect("the program starts")
}

/// All that it told, as one line: lines end where a terminal does.
pub(crate) fn told(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let all = text(&output.stdout) + &text(&output.stderr);
    all.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A result, every field of which is documented.
pub(crate) fn result(file: &Path) -> Value {
    let json = std::fs::read(file).expect("a result was written");
    let json = serde_json::from_slice(&json).expect("a result is JSON");
    documented::check(&json);
    json
}
