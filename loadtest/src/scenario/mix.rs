//! How often each kind of operation occurs.

use anyhow::ensure;
use serde::{Deserialize, Serialize};

/// Shares of the operations, in proportion to each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Mix {
    /// Somebody posts, active or not.
    pub(crate) post: f64,
    /// Somebody looks for what is new since the last look: up to 20, with posts and authors.
    pub(crate) check: f64,
    /// Somebody reads the newest 20, with posts and authors.
    pub(crate) read: f64,
    /// Somebody follows one more, the likelier the more that one is followed.
    pub(crate) subscribe: f64,
    /// Somebody unfollows one of those that it followed at the beginning.
    pub(crate) unsubscribe: f64,
    /// Somebody stops acting, and one who was away takes its place: its next check is a first one. Homes stay.
    pub(crate) logout: f64,
}

impl Mix {
    fn shares(&self) -> [f64; 6] {
        [self.post, self.check, self.read, self.subscribe, self.unsubscribe, self.logout]
    }

    pub(super) fn check(&self) -> anyhow::Result<()> {
        let shares = self.shares();
        ensure!(shares.iter().all(|s| s.is_finite() && *s >= 0.0), "[mix]: shares must not be negative");
        ensure!(shares.iter().sum::<f64>() > 0.0, "[mix]: nobody would do anything");
        Ok(())
    }

    /// The same posts, while those who read are so many times as many.
    pub(crate) fn with_readers(&self, times: f64) -> Self {
        Self {
            post: self.post,
            check: self.check * times,
            read: self.read * times,
            subscribe: self.subscribe * times,
            unsubscribe: self.unsubscribe * times,
            logout: self.logout * times,
        }
    }

    /// Checks and reads for each post.
    pub(crate) fn reads_per_post(&self) -> f64 {
        (self.check + self.read) / self.post
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_readers_leave_posts_as_they_are() {
        let mix = Mix { post: 1.0, check: 100.0, ..Mix::default() };
        let fewer = mix.with_readers(0.1);
        assert!((fewer.post - 1.0).abs() < 1e-9 && (fewer.reads_per_post() - 10.0).abs() < 1e-9);
    }
}
