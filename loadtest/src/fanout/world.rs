//! Who follows whom, who posts when, and the numbers in homes: all of it decided by the arguments and the seed. Pure.

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rand::seq::index;

use super::args::FanoutArgs;
use super::system::Kind;
use crate::members::member_id;

/// Edges of all accounts together, above those of one round: with more, accounts post again in a later round.
const EDGES_MAX: u64 = 1_000_000;
/// A member of a follower set, a skiplist's.
pub(crate) const BYTES_PER_EDGE: u64 = 140;
/// Entries that homes are filled with are older than every post.
const FIRST_ENTRY_MS: u64 = 1_700_000_000_000;
const ENTRY_STEP_MS: u64 = 60_000;

/// The accounts of a run: homes and authors, numbered from 0.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) homes: u64,
    pub(crate) followers: u64,
    /// Accounts that post.
    pub(crate) authors: u64,
    pub(crate) posts_per_round: u64,
    seed: u64,
}

impl World {
    pub(crate) fn new(args: &FanoutArgs, seed: u64) -> Self {
        let posts_per_round = args.posts_per_round();
        // One round more than is measured.
        let authors = (posts_per_round * (1 + u64::from(args.rounds)))
            .min(EDGES_MAX / args.followers)
            .max(posts_per_round);
        let homes = args.followers + args.background_homes;
        Self { homes, followers: args.followers, authors, posts_per_round, seed }
    }

    /// Who posts in a round: as long as there are enough accounts, everybody in one round only.
    pub(crate) fn authors_of_round(&self, round: u32) -> impl Iterator<Item = u64> + use<> {
        let (authors, first) = (self.authors, u64::from(round) * self.posts_per_round);
        (first..first + self.posts_per_round).map(move |post| post % authors)
    }

    /// The homes of an account's followers, drawn from all homes, in random order.
    pub(crate) fn followers_of(&self, author: u64) -> Vec<u64> {
        drawn_homes(self.seed, author, self.homes, self.followers)
    }

    /// Follower entries of all accounts.
    fn edges(&self) -> u64 {
        self.authors * self.followers
    }

    /// What the system that needs most takes at its largest, and its name.
    pub(crate) fn bytes(&self, args: &FanoutArgs) -> (u64, &'static str) {
        let bytes = |kind: Kind, copies| {
            let once = self.homes * kind.bytes_per_home(args) + self.edges() * BYTES_PER_EDGE;
            (once * copies, kind.name())
        };
        let alone = args.alone().into_iter().map(|kind| bytes(kind, 1));
        let with_replicas = args.with_replicas().into_iter().map(|kind| bytes(kind, 2));
        alone.chain(with_replicas).max().unwrap_or_default()
    }
}

/// The homes of an account's followers, drawn from so many, in random order.
pub(crate) fn drawn_homes(seed: u64, author: u64, homes: u64, followers: u64) -> Vec<u64> {
    let mut rng = StdRng::seed_from_u64(seed ^ (author << 32));
    index::sample(&mut rng, to_usize(homes), to_usize(followers)).iter().map(|home| home as u64).collect()
}

/// The id of the account that a home belongs to.
pub(crate) fn owner_id(home: u64) -> tideline::Result<u64> {
    Ok(member_id(home)?.get())
}

/// An entry that a home is filled with, the oldest first: its id, as large as a real one, and its time.
pub(crate) fn old_entry(home: u64, entry: u64) -> (u64, u64) {
    let ms = FIRST_ENTRY_MS + entry * ENTRY_STEP_MS;
    (ms << 16 | home & 0xffff, ms)
}

/// The id of a post: its time, and its number in the low bits, so that two in one millisecond differ.
pub(crate) fn post_id(ms: u64, number: u64) -> u64 {
    ms << 16 | number & 0xffff
}

fn to_usize(n: u64) -> usize {
    usize::try_from(n).expect("the arguments' bounds are far below")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use std::collections::HashSet;

    #[derive(Debug, Parser)]
    struct Typed {
        #[command(flatten)]
        args: FanoutArgs,
    }

    fn world(typed: &str) -> World {
        World::new(&Typed::parse_from(format!("fanout {typed}").split(' ')).args, 7)
    }

    #[test]
    fn an_account_with_a_million_followers_posts_once_a_round() {
        let world = world("--followers 1000000");
        assert_eq!((world.posts_per_round, world.authors, world.homes), (1, 1, 1_300_000));
        assert_eq!(world.authors_of_round(3).collect::<Vec<_>>(), [0]);
        assert_eq!(world.edges(), 1_000_000);
    }

    #[test]
    fn posts_of_the_engine_alone_need_memory_for_one_copy() {
        let args = FanoutArgs::of_ours(1_000_000, 50_000, 3).unwrap();
        let world = World::new(&args, 1);
        let once = world.homes * Kind::Tideline.bytes_per_home(&args) + world.edges() * BYTES_PER_EDGE;
        assert_eq!(world.bytes(&args), (once, "tideline"));
    }

    #[test]
    fn small_accounts_post_in_one_round_only() {
        let world = world("--followers 200 --rounds 3");
        assert_eq!((world.posts_per_round, world.authors), (250, 1_000));
        let posting: Vec<u64> = (0..=3).flat_map(|round| world.authors_of_round(round)).collect();
        assert_eq!(posting, (0..1_000).collect::<Vec<_>>());
    }

    #[test]
    fn followers_are_distinct_homes_and_the_seeds_own() {
        let world = world("--followers 500 --background-homes 1000");
        let followers = world.followers_of(1);
        assert_eq!(followers.iter().collect::<HashSet<_>>().len(), 500);
        assert!(followers.iter().all(|home| *home < 1_500));
        assert_eq!(followers, world.followers_of(1));
        assert_ne!(followers, world.followers_of(2));
    }

    #[test]
    fn a_post_is_newer_than_whatever_a_home_was_filled_with() {
        let (oldest, newest) = (old_entry(5, 0), old_entry(u64::from(u32::MAX), 1_999));
        assert!(oldest < newest);
        assert!(newest.1 < 1_750_000_000_000 && newest.0 < post_id(1_750_000_000_000, 1));
    }
}
