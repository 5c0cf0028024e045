//! What a run has on a cluster of others: keys with a prefix of its own, which is told at its start, so that whatever
//! ends it, they can be removed.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Context as _;
use tideline::cluster::{Router, RouterSettings, Seed};

use crate::keys;

/// What prefixes begin with.
pub(crate) const PREFIX: &str = "loadtest";
pub(crate) const PREFIX_OF_VERIFY: &str = "verify";
/// Digits behind that.
const DIGITS: usize = 8;

/// Of the run of this process: there is one at a time.
static NOW: Mutex<Option<Leftover>> = Mutex::new(None);

/// Keys of a run on a cluster of others.
#[derive(Debug, Clone)]
pub(crate) struct Leftover {
    seeds: Vec<Seed>,
    prefix: String,
}

/// One that nobody else has: on a cluster of others nothing that was there is touched.
pub(crate) fn new_prefix(kind: &str) -> String {
    format!("{kind}-{:0DIGITS$x}:", rand::random::<u32>())
}

/// A prefix that somebody has typed. Only those of load tests are taken: what begins with another one is not ours to
/// remove.
pub(crate) fn parse_prefix(text: &str) -> Result<String, String> {
    let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let plain = text.strip_suffix(':').unwrap_or(text);
    match plain.split_once('-') {
        Some((PREFIX | PREFIX_OF_VERIFY, digits))
            if digits.len() == DIGITS && digits.bytes().all(is_digit) =>
        {
            Ok(format!("{plain}:"))
        }
        _ => Err(format!(
            "no load test has such a prefix: it is {PREFIX}- or {PREFIX_OF_VERIFY}- and {DIGITS} digits (0-9, a-f), as \
             a run tells it at its start"
        )),
    }
}

impl Leftover {
    pub(crate) fn new(seeds: &[Seed], prefix: &str) -> Self {
        Self { seeds: seeds.to_vec(), prefix: prefix.to_owned() }
    }

    /// Tells of keys that stay when the run is over.
    #[cfg(feature = "verify")]
    pub(crate) fn tell_that_they_stay(&self) {
        eprintln!("The keys of this run begin with `{}`; they stay on the cluster. {self}", self.prefix);
    }

    /// Tells of keys that go at the end.
    pub(crate) fn note(self) {
        eprintln!("The keys of this run begin with `{}`; they are removed at the end.", self.prefix);
        *now() = Some(self);
    }

    /// Removes them, and tells how many there were.
    pub(crate) async fn remove(&self) -> anyhow::Result<u64> {
        let router = Router::connect(&self.seeds, &self.prefix, RouterSettings::default(), None).await?;
        keys::remove(&router, &self.prefix)
            .await
            .with_context(|| format!("keys that begin with `{}`", self.prefix))
    }
}

/// How they are removed by hand; without passwords.
impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seeds: Vec<String> = self.seeds.iter().map(ToString::to_string).collect();
        let seeds = seeds.join(",");
        let prefix = self.prefix.trim_end_matches(':');
        write!(f, "To remove them: loadtest clean --cluster {seeds} --prefix {prefix}")
    }
}

/// What the run has at the moment.
pub(crate) fn of_now() -> Option<Leftover> {
    now().clone()
}

/// They are gone.
pub(crate) fn forget() {
    *now() = None;
}

/// Says what is left, if anything is.
pub(crate) fn tell() {
    if let Some(left) = of_now() {
        eprintln!("Keys that begin with `{}` are left on the cluster. {left}", left.prefix);
    }
}

fn now() -> MutexGuard<'static, Option<Leftover>> {
    NOW.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_prefixes_of_load_tests_are_taken() {
        for kind in [PREFIX, PREFIX_OF_VERIFY] {
            let new = new_prefix(kind);
            assert_eq!(parse_prefix(&new).as_ref(), Ok(&new));
            assert_eq!(parse_prefix(new.trim_end_matches(':')), Ok(new));
        }
        let others = " : myapp: loadtest loadtest- loadtest-* loadtest-847245f loadtest-847245f99 loadtest-847245F9 \
                      loadtest-847245f9:x myapp-847245f9";
        for other in others.split(' ') {
            assert!(parse_prefix(other).unwrap_err().contains("no load test has such a prefix"), "{other}");
        }
    }

    #[test]
    fn what_is_told_holds_no_password() {
        let told = |seed: &str| Leftover::new(&[Seed::from(seed)], "loadtest-00000000:").to_string();
        let line =
            "To remove them: loadtest clean --cluster redis://10.0.0.1:7000 --prefix loadtest-00000000";
        assert_eq!(told("redis://10.0.0.1:7000"), line);
        assert!(!told("redis://user:secret@10.0.0.1:7000").contains("secret"));
    }
}
