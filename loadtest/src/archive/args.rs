//! What can be typed behind `loadtest archive`, with the bounds that keep a run finite.

use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::backend::BackendKind;
use super::open::noted_at;
use super::world::BYTES_PER_POST;
use crate::common::Common;
use crate::memory;
use crate::typed::whole;

/// What can be measured by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(super) enum Part {
    /// Posts that are all due: how fast they leave memory, and what one costs
    Backlog,
    /// Posts of many authors in an open loop, while what is due leaves
    Open,
    /// What stays in memory of many posts, and what they take on disk
    Memory,
    /// Pages that come to the archive, and pages that don't, with one and without
    Pages,
}

/// What an archive costs, and what it saves: posts that leave memory, all at once and while others are published, and
/// pages.
#[derive(Debug, Clone, Args, Serialize)]
pub(crate) struct ArchiveArgs {
    /// Only these, separated by commas
    #[arg(long, value_name = "PART,...", value_enum, value_delimiter = ',')]
    #[arg(default_values_t = Part::value_variants().to_vec())]
    pub(super) parts: Vec<Part>,
    /// Where posts go; PostgreSQL is started, and removed at the end
    #[arg(long, value_enum, default_value_t = BackendKind::Postgres)]
    pub(super) backend: BackendKind,
    /// How long posts stay that PostgreSQL has, as where a server of it may fail over (30 in a service)
    #[arg(long, default_value_t = 0, value_parser = whole::<u64>(0..=300))]
    pub(super) settle_seconds: u64,
    /// Posts of each author that stay in memory, of the backlog and where memory is measured
    #[arg(long, default_value_t = 5, value_parser = whole::<u32>(1..=1_000))]
    pub(super) hot_posts: u32,
    /// Authors of the backlog
    #[arg(long, default_value_t = 2_000, value_parser = whole::<u32>(1..=1_000_000))]
    pub(super) backlog_authors: u32,
    /// Posts of each of them
    #[arg(long, default_value_t = 250, value_parser = whole::<u32>(1..=100_000))]
    pub(super) backlog_posts: u32,
    /// Authors of the open loop
    #[arg(long, default_value_t = 100_000, value_parser = whole::<u32>(1..=1_000_000))]
    pub(super) open_authors: u32,
    /// Posts of each of these that stay in memory; with twice as many more, or 128, it is looked at at the latest
    #[arg(long, default_value_t = 16, value_parser = whole::<u32>(1..=1_000))]
    pub(super) open_hot_posts: u32,
    /// Posts that fall due in a second
    #[arg(long, default_value_t = 5_000, value_parser = whole::<u32>(1..=100_000))]
    pub(super) rate: u32,
    /// How long the open loop goes on
    #[arg(long, default_value_t = 60, value_parser = whole::<u32>(2..=3_600))]
    pub(super) seconds: u32,
    /// Posts of which memory is measured, of all authors together
    #[arg(long, default_value_t = 1_000_000, value_parser = whole::<u32>(1..=50_000_000))]
    pub(super) posts: u32,
    /// Their authors
    #[arg(long, default_value_t = 10_000, value_parser = whole::<u32>(1..=1_000_000))]
    pub(super) posts_authors: u32,
    /// Authors of the pages; each has 60 posts, of which 30 stay in memory
    #[arg(long, default_value_t = 2_000, value_parser = whole::<u32>(20..=50_000))]
    pub(super) page_authors: u32,
    /// Homes of readers who follow so many of them
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = [200, 2_000])]
    #[arg(value_parser = whole::<u32>(10..=20_000))]
    pub(super) followees: Vec<u32>,
    /// Measured rounds of each kind of page
    #[arg(long, default_value_t = 12, value_parser = whole::<u32>(1..=1_000))]
    pub(super) rounds: u32,
    /// Pages of a round
    #[arg(long, default_value_t = 100, value_parser = whole::<u32>(1..=10_000))]
    pub(super) pages: u32,
    #[command(flatten)]
    #[serde(skip)]
    pub(super) common: Common,
}

impl ArchiveArgs {
    pub(super) fn has(&self, part: Part) -> bool {
        self.parts.contains(&part)
    }

    pub(super) fn settles_within(&self) -> Duration {
        Duration::from_secs(self.settle_seconds)
    }

    /// Refuses what each value allows but all together do not, and what this machine has no memory for.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.common.is_own(),
            "what an archive costs is measured on servers that are started for it, PostgreSQL too: leave --cluster \
             (and TIDELINE_CLUSTER) away"
        );
        anyhow::ensure!(
            self.posts.is_multiple_of(self.posts_authors) && self.posts / self.posts_authors > self.hot_posts,
            "--posts {} are to be the same number for each of --posts-authors {}, and more than --hot-posts {}",
            self.posts,
            self.posts_authors,
            self.hot_posts
        );
        anyhow::ensure!(
            self.backlog_posts > self.hot_posts,
            "--backlog-posts {} are to be more than --hot-posts {}: nothing would leave",
            self.backlog_posts,
            self.hot_posts
        );
        if let Some(most) = self.followees.iter().find(|most| **most > self.page_authors) {
            anyhow::bail!("--followees {most} are more than there are: --page-authors {}", self.page_authors);
        }
        let open = u64::from(self.open_authors) * u64::from(noted_at(self.open_hot_posts));
        let posts = [
            (Part::Backlog, u64::from(self.backlog_authors) * u64::from(self.backlog_posts)),
            (Part::Open, open + u64::from(self.rate) * u64::from(self.seconds)),
            (Part::Memory, self.posts.into()),
        ];
        let most = posts.iter().filter(|(part, _)| self.has(*part)).map(|(_, posts)| *posts).max();
        let most = most.unwrap_or(0);
        memory::check(most * BYTES_PER_POST, &format!("{most} posts take"), "fewer authors or posts")
    }
}
