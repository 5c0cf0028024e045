//! Finding the server program.

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::preload;
use tideline_model::error::{Error, Result};

/// Names the server program, before the PATH is searched.
const VARIABLE: &str = "TIDELINE_REDIS_SERVER";
/// Programs that are looked for on the PATH, in this order.
const NAMES: [&str; 2] = ["redis-server", "valkey-server"];
/// Redis Functions, sharded options and `cluster-port` begin here.
const OLDEST_REDIS: BinaryVersion = BinaryVersion(7, 0, 0);
/// Valkey has all of this from here on.
const OLDEST_VALKEY: BinaryVersion = BinaryVersion(7, 2, 0);

/// A server program that is new enough.
#[derive(Debug, Clone)]
pub(super) struct ServerBinary {
    pub(super) path: PathBuf,
    /// The library that its allocator comes from, if it was built without a good one.
    pub(super) jemalloc: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct BinaryVersion(u32, u32, u32);

impl fmt::Display for BinaryVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

impl ServerBinary {
    /// The program at `wanted`, or else of [`VARIABLE`], or else on the PATH; checked for its version.
    pub(super) fn find(wanted: Option<&Path>) -> Result<Self> {
        let path = match (wanted, env::var_os(VARIABLE)) {
            (Some(path), _) => path.to_owned(),
            (None, Some(path)) if !path.is_empty() => path.into(),
            _ => NAMES.iter().find_map(|name| on_path(name)).ok_or_else(missing)?,
        };
        // A relative path would mean something else in the node's directory, where the server starts.
        let path =
            if path.components().count() > 1 { std::path::absolute(&path).unwrap_or(path) } else { path };
        let shown = path.display();
        let output = Command::new(&path).arg("--version").output().map_err(|e| {
            Error::misconfigured(format!(
                "cannot run the server program {shown}: {e}; set {VARIABLE} to a redis-server or valkey-server"
            ))
        })?;
        let version = String::from_utf8_lossy(&output.stdout);
        check_version(&version).map_err(|e| e.context(shown))?;
        let jemalloc = preload::jemalloc_for(&path, &version);
        Ok(Self { path, jemalloc })
    }
}

/// The first executable of that name on the PATH.
pub(super) fn on_path(name: &str) -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders).map(|folder| folder.join(name)).find(|file| file.is_file())
}

fn missing() -> Error {
    Error::misconfigured(format!(
        "no redis-server and no valkey-server found on the PATH. Install one (Debian and Ubuntu: apt-get install \
         redis-server; Fedora: dnf install valkey; Alpine: apk add redis; Arch: pacman -S valkey; macOS: brew \
         install redis) or set {VARIABLE} to the program"
    ))
}

fn check_version(text: &str) -> Result<()> {
    let is_valkey = text.to_ascii_lowercase().contains("valkey");
    let (name, oldest) = if is_valkey { ("Valkey", OLDEST_VALKEY) } else { ("Redis", OLDEST_REDIS) };
    let Some(version) = parse_version(text) else {
        return Err(Error::misconfigured(format!(
            "`--version` printed {:?}, which is neither Redis nor Valkey",
            text.lines().next().unwrap_or_default()
        )));
    };
    if version < oldest {
        return Err(Error::misconfigured(format!(
            "{name} {version} is too old: {name} {oldest} or later is needed"
        )));
    }
    Ok(())
}

/// Finds `v=7.0.15` in `Redis server v=7.0.15 sha=00000000:0 malloc=…`.
fn parse_version(text: &str) -> Option<BinaryVersion> {
    let number = text.split_whitespace().find_map(|word| word.strip_prefix("v="))?;
    let mut parts = number.split(['.', '-']).map(|part| part.parse().ok());
    Some(BinaryVersion(
        parts.next()??,
        parts.next().flatten().unwrap_or(0),
        parts.next().flatten().unwrap_or(0),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tideline_model::error::ErrorKind;

    #[test]
    fn versions_that_lack_what_we_need_are_refused() {
        for good in ["Redis server v=7.0.0 sha=0", "Redis server v=8.2.3-rc1", "Valkey server v=7.2.11 sha=1"]
        {
            check_version(good).unwrap();
        }
        let old = check_version("Redis server v=6.2.14 sha=00000000:0 malloc=jemalloc").unwrap_err();
        assert!(old.to_string().contains("Redis 6.2.14 is too old"), "{old}");
        let strange = check_version("bash 5.2").unwrap_err();
        assert_eq!(strange.kind(), ErrorKind::Misconfigured);
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = ServerBinary::find(Some(Path::new("/nowhere/redis-server"))).unwrap_err();
        assert!(error.to_string().contains("/nowhere/redis-server"), "{error}");
    }
}
