//! How often each kind of operation occurs.

use anyhow::ensure;
use serde::{Deserialize, Serialize};

/// A share that is not 0: below it would be none where shares are whole numbers, and all together have to fit into one.
const SHARE_LEAST: f64 = 1e-5;
const SHARE_MOST: f64 = 1e9;

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
    /// By kind, in the order of the operations' kinds.
    pub(crate) fn shares(&self) -> [f64; 6] {
        [self.post, self.check, self.read, self.subscribe, self.unsubscribe, self.logout]
    }

    pub(super) fn check(&self) -> anyhow::Result<()> {
        let shares = self.shares();
        let is_possible = |share: &f64| *share == 0.0 || (SHARE_LEAST..=SHARE_MOST).contains(share);
        ensure!(
            shares.iter().all(is_possible),
            "[mix]: shares must not be negative; they are 0, or from 0.00001 to 1,000,000,000: {shares:?}"
        );
        ensure!(self.sum() > 0.0, "[mix]: nobody would do anything");
        Ok(())
    }

    /// All shares together.
    pub(crate) fn sum(&self) -> f64 {
        self.shares().iter().sum()
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
    fn shares_that_cannot_be_told_from_none_or_overflow_are_refused() {
        let check = |post: f64| Mix { post, ..Mix::default() }.check();
        for impossible in [0.0, -1.0, f64::NAN, f64::INFINITY, 9e-6, 1.1e9] {
            assert!(check(impossible).is_err(), "{impossible}");
        }
        assert!(check(-1.0).unwrap_err().to_string().contains("must not be negative"));
        for possible in [SHARE_LEAST, 1.0, SHARE_MOST] {
            check(possible).unwrap();
        }
    }

    #[test]
    fn fewer_readers_leave_posts_as_they_are() {
        let mix = Mix { post: 1.0, check: 100.0, ..Mix::default() };
        let fewer = mix.with_readers(0.1);
        assert!((fewer.post - 1.0).abs() < 1e-9 && (fewer.reads_per_post() - 10.0).abs() < 1e-9);
    }
}
