//! The program `tideline`, for tests of other packages than its own.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

#[path = "cargo.rs"]
mod cargo;

/// The program, built for this: cargo builds none for the tests of another package. As `make test` builds it, beside a
/// test of its own: crates that are built with features of a smaller choice of packages would all be built once more,
/// while other tests run.
pub(crate) fn program() -> &'static Path {
    static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
        let test = std::env::current_exe().unwrap();
        let place = test.ancestors().nth(2).unwrap();
        let mut build = cargo::cargo();
        build.args(["test", "--quiet", "--locked", "--workspace", "--no-run", "--test", "commands"]);
        match place.file_name().and_then(|name| name.to_str()).unwrap() {
            "debug" => {}
            profile => drop(build.args(["--profile", profile])),
        }
        build.arg("--target-dir").arg(place.parent().unwrap());
        assert!(build.status().unwrap().success(), "the program could not be built");
        place.join("tideline")
    });
    &PROGRAM
}
