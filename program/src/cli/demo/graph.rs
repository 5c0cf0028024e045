//! Follows among the site's accounts, and how much each of them posts: made up from a seed. Pure.

use rand::rngs::StdRng;
use rand::seq::{SliceRandom as _, index};
use rand::{RngExt as _, SeedableRng as _};
use tideline::{AccountId, Mode};

/// The account of rank r (from 1) has `LARGEST_SHARE * accounts / r^EXPONENT` followers: 30 on average of 20,000.
const EXPONENT: f64 = 0.8;
const LARGEST_SHARE: f64 = 0.95;
/// These ranks are pulled; the first one is pushed all the same, so that a large fan-out shows.
const PULLED: std::ops::Range<usize> = 1..4;
/// Share of the accounts that read now and then, in percent; the rest has no home.
const ACTIVE_PERCENT: usize = 40;

/// The site. Accounts are numbered by rank from 0, their ids from 1.
#[derive(Debug)]
pub(super) struct DemoGraph {
    /// By account: whom it follows.
    following: Vec<Vec<usize>>,
    /// By account: its followers. Who has more posts more.
    sizes: Vec<usize>,
    /// Sums of the sizes up to and with this one.
    sums: Vec<usize>,
    /// First those that are active.
    readers: Vec<usize>,
}

impl DemoGraph {
    pub(super) fn new(accounts: u32, seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let count = accounts as usize;
        let mut following = vec![Vec::new(); count];
        let mut sizes = Vec::with_capacity(count);
        for author in 0..count {
            let readers = index::sample(&mut random, count, size(accounts, author));
            let readers = readers.into_iter().filter(|reader| *reader != author);
            sizes.push(readers.map(|reader| following[reader].push(author)).count());
        }
        let sums = sizes.iter().scan(0, |sum, size| {
            *sum += size;
            Some(*sum)
        });
        let sums = sums.collect();
        let mut readers: Vec<usize> = (0..count).collect();
        readers.shuffle(&mut random);
        Self { following, sizes, sums, readers }
    }

    /// Number of accounts.
    pub(super) fn len(&self) -> usize {
        self.sizes.len()
    }

    /// Number of follows.
    pub(super) fn edges(&self) -> usize {
        self.sums.last().copied().unwrap_or(0)
    }

    pub(super) fn id(account: usize) -> tideline::Result<AccountId> {
        AccountId::new(account as u64 + 1)
    }

    pub(super) fn mode(account: usize) -> Mode {
        if PULLED.contains(&account) { Mode::Pull } else { Mode::Push }
    }

    pub(super) fn is_pulled(account: usize) -> bool {
        PULLED.contains(&account)
    }

    /// The accounts that are pulled.
    pub(super) fn pulled() -> impl Iterator<Item = usize> {
        PULLED
    }

    /// Number of an account's followers.
    pub(super) fn followers(&self, account: usize) -> usize {
        self.sizes[account]
    }

    /// The accounts that an account follows.
    pub(super) fn following(&self, account: usize) -> &[usize] {
        &self.following[account]
    }

    /// All follows of the authors that are pulled (or not): who, and whom.
    pub(super) fn follows(&self, of_pulled: bool) -> impl Iterator<Item = (usize, usize)> {
        let of = |(reader, authors): (usize, &'_ Vec<usize>)| {
            authors.iter().map(move |author| (reader, *author)).collect::<Vec<_>>()
        };
        let all = self.following.iter().enumerate().flat_map(of);
        all.filter(move |(_, author)| Self::is_pulled(*author) == of_pulled)
    }

    /// The accounts whose homes are kept.
    pub(super) fn active(&self) -> &[usize] {
        &self.readers[..self.len() * ACTIVE_PERCENT / 100]
    }

    /// The others.
    pub(super) fn dormant(&self) -> &[usize] {
        &self.readers[self.len() * ACTIVE_PERCENT / 100..]
    }

    /// Somebody who posts: the likelier, the more followers it has.
    pub(super) fn author(&self, random: &mut StdRng) -> usize {
        let point = random.random_range(0..self.edges());
        self.sums.partition_point(|sum| *sum <= point)
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to `accounts`")]
#[expect(clippy::cast_precision_loss, reason = "ranks are small")]
fn size(accounts: u32, author: usize) -> usize {
    let rank = (author + 1) as f64;
    (f64::from(accounts) * LARGEST_SHARE / rank.powf(EXPONENT)).round().max(1.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_up_the_same_site() {
        let (one, again, other) = (DemoGraph::new(500, 7), DemoGraph::new(500, 7), DemoGraph::new(500, 8));
        assert_eq!(one.following, again.following);
        assert_eq!(one.readers, again.readers);
        assert_ne!(one.following, other.following);
    }

    #[test]
    fn nearly_all_follow_the_first_account_and_nobody_itself_or_anybody_twice() {
        let graph = DemoGraph::new(20_000, 1);
        assert!((18_500..19_001).contains(&graph.followers(0)), "{}", graph.followers(0));
        assert!((28..33).contains(&(graph.edges() / graph.len())), "{}", graph.edges());
        for (reader, authors) in graph.following.iter().enumerate() {
            assert!(authors.is_sorted_by(|a, b| a < b) && !authors.contains(&reader));
        }
        assert_eq!(graph.follows(true).count() + graph.follows(false).count(), graph.edges());
        assert_eq!(graph.active().len() + graph.dormant().len(), graph.len());
    }
}
