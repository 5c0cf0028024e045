//! What is deployed, checked as far as it can be without a container engine: the compose file as data, the servers'
//! settings by a server that was started with them, and the script that makes the cluster by letting it make some; the
//! image and the service by what they say.

#![expect(clippy::unwrap_used, reason = "a helper of a test stops the test where it stands")]

mod compose;
mod create;
mod image;
mod server;
mod service;
mod settings;

use std::path::{Path, PathBuf};

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn deployed(name: &str) -> PathBuf {
    repository().join("deploy").join(name)
}
