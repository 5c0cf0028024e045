//! Who follows whom: made up from a seed, or read from a file. Pure, apart from the reading.
//!
//! `degree` is how degrees are distributed, `presets` the shapes of networks that were published, `generate` makes a
//! graph of a shape, `edge_list` reads one.

mod degree;
mod edge_list;
mod generate;
mod presets;

pub(crate) use degree::Degree;
pub(crate) use edge_list::read as read_edge_list;
pub(crate) use generate::generate;
pub(crate) use presets::{FOLLOWERS_EXPONENT, Preset, Shape};

/// Most accounts of a graph: their numbers are kept in 32 bits, and a graph has to fit into memory.
pub(crate) const ACCOUNTS_MAX: u64 = 10_000_000;
/// Most follows of a graph, of 8 bytes each while it is made.
pub(crate) const FOLLOWS_MAX: usize = 500_000_000;
/// Most that an account follows: what the engine allows, with room for what it follows during a run.
pub(crate) const FOLLOWING_MAX: usize = 19_000;

/// Accounts are numbered from 0. Nobody follows itself, or anybody twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Graph {
    /// Where an account's part of `authors` begins; one more than there are accounts.
    starts: Vec<usize>,
    /// Whom accounts follow, one after the other.
    authors: Vec<u32>,
    /// By account: its followers.
    followers: Vec<u32>,
}

impl Graph {
    /// A graph of so many accounts; follows of oneself and doubled ones are left out.
    pub(crate) fn new(accounts: usize, mut follows: Vec<(u32, u32)>) -> Self {
        follows.retain(|(reader, author)| reader != author);
        follows.sort_unstable();
        follows.dedup();
        let mut starts = vec![0; accounts + 1];
        let mut followers = vec![0; accounts];
        for (reader, author) in &follows {
            starts[*reader as usize + 1] += 1;
            followers[*author as usize] += 1;
        }
        for reader in 0..accounts {
            starts[reader + 1] += starts[reader];
        }
        Self { starts, authors: follows.into_iter().map(|(_, author)| author).collect(), followers }
    }

    /// How many accounts there are.
    pub(crate) fn accounts(&self) -> usize {
        self.followers.len()
    }

    /// How many follows.
    pub(crate) fn follows(&self) -> usize {
        self.authors.len()
    }

    /// Whom an account follows, ascending.
    pub(crate) fn following(&self, reader: u32) -> &[u32] {
        let reader = reader as usize;
        &self.authors[self.starts[reader]..self.starts[reader + 1]]
    }

    /// How many follow each account.
    pub(crate) fn followers(&self) -> &[u32] {
        &self.followers
    }

    /// All follows, by reader: who follows, and whom.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let readers = 0..u32::try_from(self.accounts()).unwrap_or(u32::MAX);
        readers.flat_map(|reader| self.following(reader).iter().map(move |author| (reader, *author)))
    }

    /// Of each account's followers, those for whom `counts` says yes.
    pub(crate) fn followers_that(&self, counts: impl Fn(u32) -> bool) -> Vec<u32> {
        let mut sums = vec![0; self.accounts()];
        for (_, author) in self.all().filter(|(reader, _)| counts(*reader)) {
            sums[author as usize] += 1;
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubled_follows_and_those_of_oneself_are_left_out() {
        let graph = Graph::new(4, vec![(2, 1), (0, 1), (2, 1), (2, 2), (2, 0)]);
        assert_eq!((graph.accounts(), graph.follows()), (4, 3));
        assert_eq!([graph.following(0), graph.following(1), graph.following(2)], [&[1][..], &[], &[0, 1]]);
        assert_eq!(graph.followers(), [1, 2, 0, 0]);
        assert_eq!(graph.all().collect::<Vec<_>>(), [(0, 1), (2, 0), (2, 1)]);
        assert_eq!(graph.followers_that(|reader| reader == 2), [1, 1, 0, 0]);
    }
}
