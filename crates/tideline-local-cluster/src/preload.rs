//! jemalloc for servers that were built without it: a delivery costs half of what it costs with libc's allocator.

use std::env;
use std::path::Path;
use std::process::Command;

/// Any value but the empty one leaves servers the allocator that they were built with.
const VARIABLE: &str = "TIDELINE_WITHOUT_JEMALLOC";
/// By this name all distributions have it, and the loader knows where.
const LIBRARY: &str = "libjemalloc.so.2";
const PRELOAD: &str = "LD_PRELOAD";

/// The library to preload into the server `program`, which said this of its version; `None` if it has an allocator
/// of its own, or this machine doesn't have the library.
pub(super) fn jemalloc_for(program: &Path, version: &str) -> Option<&'static str> {
    (uses_libc(version) && loads(program)).then_some(LIBRARY)
}

/// `Valkey server v=9.1.2 sha=00000000:1 malloc=libc bits=64 build=…`
fn uses_libc(version: &str) -> bool {
    version.split_whitespace().any(|word| word == "malloc=libc")
}

/// Whether the loader takes it for this program: of one that it can't find or use it complains.
fn loads(program: &Path) -> bool {
    let tried = Command::new(program).arg("--version").env(PRELOAD, LIBRARY).output();
    tried.is_ok_and(|output| output.status.success() && output.stderr.is_empty())
}

/// The variable to add to the environment `env` of a server so that `library` is preloaded, behind what is preloaded
/// anyway. `None`: there or in our own environment stands that it is not wanted.
pub(super) fn variable(library: &str, env: &[(String, String)]) -> Option<(String, String)> {
    let get = |name: &str| {
        let own = env.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.clone());
        own.or_else(|| env::var(name).ok()).filter(|value| !value.is_empty())
    };
    if get(VARIABLE).is_some() {
        return None;
    }
    let value = get(PRELOAD).map_or_else(|| library.to_owned(), |others| format!("{others}:{library}"));
    Some((PRELOAD.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_server_with_the_c_librarys_allocator_is_given_another_one() {
        assert!(uses_libc("Valkey server v=9.1.2 sha=00000000:1 malloc=libc bits=64 build=1536df31c0395150"));
        assert!(!uses_libc("Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=ae4d"));
        // A program that was built with it is not even tried out.
        assert_eq!(jemalloc_for(Path::new("/nowhere/redis-server"), "malloc=jemalloc-5.3.0"), None);
        assert_eq!(jemalloc_for(Path::new("/nowhere/redis-server"), "malloc=libc"), None);
    }

    #[test]
    fn what_a_test_preloads_stays_in_front() {
        let env = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<Vec<_>>()
        };
        let skewed = env(&[("LD_PRELOAD", "/tmp/skew.so"), ("CLOCK_SKEW_FILE", "/tmp/a")]);
        assert_eq!(variable(LIBRARY, &skewed).unwrap().1, "/tmp/skew.so:libjemalloc.so.2");
        assert_eq!(variable(LIBRARY, &env(&[(VARIABLE, "1")])), None);
    }
}
