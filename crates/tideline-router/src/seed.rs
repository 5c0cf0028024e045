//! The place where a cluster is found, without showing how one comes in.

use std::fmt;

/// A node of a cluster to begin with: `redis://` or `rediss://`, `[user[:password]@]host[:port]`.
///
/// What is shown of it, by `{}` and by `{:?}`, leaves out user and password; [`Seed::url`] has all.
#[derive(Clone, PartialEq, Eq)]
pub struct Seed(String);

impl Seed {
    /// The whole URL, the password included.
    pub fn url(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A password may hold what a URL ends a host with: nothing before the last `@` is shown.
        let Some((secret, place)) = self.0.rsplit_once('@') else { return f.write_str(&self.0) };
        let scheme = ["redis://", "rediss://"].into_iter().find(|scheme| secret.starts_with(scheme));
        write!(f, "{}***@{place}", scheme.unwrap_or_default())
    }
}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

impl From<String> for Seed {
    fn from(url: String) -> Self {
        Self(url)
    }
}

impl From<&String> for Seed {
    fn from(url: &String) -> Self {
        Self(url.clone())
    }
}

impl From<&str> for Seed {
    fn from(url: &str) -> Self {
        Self(url.to_owned())
    }
}

impl From<&Self> for Seed {
    fn from(seed: &Self) -> Self {
        seed.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_shows_neither_user_nor_password() {
        for (url, shown) in [
            ("redis://host:7000", "redis://host:7000"),
            ("host", "host"),
            ("redis://:pass@host:7000", "redis://***@host:7000"),
            ("rediss://user:pass@host", "rediss://***@host"),
            ("user:pass@host:1", "***@host:1"),
            ("redis://user:p/a?s#s@x@[::1]:1", "redis://***@[::1]:1"),
        ] {
            let seed = Seed::from(url);
            assert_eq!((seed.to_string(), format!("{seed:?}")), (shown.to_owned(), format!("{shown:?}")));
            assert_eq!(seed.url(), url);
        }
    }
}
