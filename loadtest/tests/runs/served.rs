//! The program that serves, for tests of another package.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

#[path = "../../../tests/support/cargo.rs"]
mod cargo;

/// The program `tideline`, built for this: cargo builds none for the tests of another package. As `make test` builds
/// it, beside a test of its own: crates that are built with features of a smaller choice of packages would all be built
/// once more.
pub(crate) fn program() -> &'static Path {
    static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
        let place = Path::new(env!("CARGO_BIN_EXE_loadtest")).parent().expect("a program lies in a folder");
        let mut build = cargo::cargo();
        build.args(["test", "--quiet", "--locked", "--workspace", "--no-run", "--test", "commands"]);
        match place.file_name().and_then(|name| name.to_str()) {
            Some("debug") => {}
            Some(profile) => drop(build.args(["--profile", profile])),
            None => unreachable!("a folder without a name"),
        }
        build.arg("--target-dir").arg(place.parent().expect("a folder of programs"));
        assert!(build.status().expect("cargo can be run").success(), "the program could not be built");
        place.join("tideline")
    });
    &PROGRAM
}
