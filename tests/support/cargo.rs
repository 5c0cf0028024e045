//! Cargo, called by a test.

use std::process::Command;

/// Cargo as a person calls it. What it has told a test of its package would have build scripts of other crates run
/// again, and all that needs them built again, here and by whoever builds next.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    for (name, _) in std::env::vars_os() {
        let is_of_package =
            |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        if name.to_str().is_some_and(is_of_package) {
            cargo.env_remove(name);
        }
    }
    cargo
}
