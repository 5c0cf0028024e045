//! What is measured: one interface for all systems, and the list of them.

use futures::future::BoxFuture;
use serde::Serialize;

use super::args::FanoutArgs;
use super::deliveries::Deliveries;
use super::others::Others;
use super::tideline::Tideline;
use crate::bench::Bench;
use crate::memory::bytes_per_home;
use crate::systems::home_posts;

/// A way to keep homes and to deliver posts to them. It lives from one emptying of the servers to the next.
///
/// The calls come in this order: homes are filled, followers follow, posts are posted, homes are looked at.
pub(crate) trait System: Send + Sync {
    /// Makes the homes with numbers below `homes`, each full.
    fn fill(&self, homes: u64) -> BoxFuture<'_, anyhow::Result<()>>;

    /// Lets the owners of these homes follow the author, who had no followers.
    fn follow<'a>(&'a self, author: u64, followers: &'a [u64]) -> BoxFuture<'a, anyhow::Result<()>>;

    /// Posts and delivers, and returns when nothing of it is left to do: the post's id. Every delivery is noted when
    /// it is acknowledged. `number` differs from post to post.
    fn post<'a>(
        &'a self,
        author: u64,
        number: u64,
        deliveries: &'a Deliveries,
    ) -> BoxFuture<'a, anyhow::Result<u64>>;

    /// What is in a home.
    fn look(&self, home: u64, post_id: u64) -> BoxFuture<'_, anyhow::Result<Look>>;
}

/// What a look into a home found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) entries: u64,
    pub(crate) has_post: bool,
}

/// The systems, by name.
// The report keeps a system of the name in `outcome::OURS` apart from the baselines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// Ours.
    Tideline,
    /// The algorithm of "Redis in Action", chapter 8, with commands collected for each node.
    BooksPerNode,
    /// Misskey's.
    List,
}

impl Kind {
    /// All, in the order of their turns and of the table.
    pub(crate) const ALL: [Self; 3] = [Self::Tideline, Self::BooksPerNode, Self::List];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tideline => super::outcome::OURS,
            Self::BooksPerNode => "books_per_node",
            Self::List => "list",
        }
    }

    /// Entries of a full home.
    pub(crate) fn cap(self, args: &FanoutArgs) -> u64 {
        match self {
            Self::BooksPerNode => args.books_cap,
            Self::List => args.list_cap,
            Self::Tideline => home_posts().into(),
        }
    }

    /// Entries by which a home may be longer for a while.
    pub(crate) fn overhang(self, args: &FanoutArgs) -> u64 {
        match self {
            Self::BooksPerNode => 0,
            // Until the next watermark, and what comes before its home is cut.
            Self::Tideline => 48,
            // As long as chance may leave a home without a trim: less than once in 10^9.
            Self::List if args.list_trim_percent == 100 => 0,
            Self::List => 2_000 / u64::from(args.list_trim_percent),
        }
    }

    /// About what a full home takes, as measured; for the question whether there is enough memory.
    pub(crate) fn bytes_per_home(self, args: &FanoutArgs) -> u64 {
        /// Up to here a sorted set is one compact block (`zset-max-listpack-entries`).
        const LISTPACK_ENTRIES: u64 = 128;
        let cap = self.cap(args);
        match self {
            Self::BooksPerNode if cap <= LISTPACK_ENTRIES => 200 + 24 * cap,
            Self::BooksPerNode => 200 + 132 * cap,
            Self::List | Self::Tideline => bytes_per_home(cap),
        }
    }

    /// Makes the system ready on empty servers.
    pub(crate) async fn open<'a>(
        self,
        bench: &'a Bench,
        args: &FanoutArgs,
    ) -> anyhow::Result<Box<dyn System + 'a>> {
        Ok(match self {
            Self::Tideline => Box::new(Tideline::open(bench).await?),
            Self::BooksPerNode | Self::List => Box::new(Others::open(bench, self, args)),
        })
    }
}
