//! What can be typed behind `loadtest serve`, with the bounds that keep a run finite.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use crate::common::Common;
use crate::site::Program;
use crate::typed::whole;

/// Home pages over HTTP, as clients of Mastodon read them: what one costs, beside what it can't do without (the
/// engine's page, and an answer of as many bytes); how long one takes; whether each is right.
#[derive(Debug, Clone, Args, Serialize)]
pub(crate) struct ServeArgs {
    /// Accounts that read
    #[arg(long, default_value_t = 4_000, value_parser = whole::<u32>(20..=100_000))]
    pub(super) readers: u32,
    /// Whom each of them follows, of the others
    #[arg(long, default_value_t = 60, value_parser = whole::<u32>(1..=2_000))]
    pub(super) followees: u32,
    /// Posts of each that are there at the beginning
    #[arg(long, default_value_t = 5, value_parser = whole::<u32>(1..=100))]
    pub(super) history: u32,
    /// Letters of each post
    #[arg(long, default_value_t = 400, value_parser = whole::<usize>(1..=5_000))]
    pub(super) text_chars: usize,
    /// Connections, which stay open; each reads the next page once it has the last one
    #[arg(long, default_value_t = 64, value_parser = whole::<u32>(1..=1_000))]
    pub(super) connections: u32,
    /// Posts a second meanwhile
    #[arg(long, default_value_t = 20, value_parser = whole::<u32>(0..=10_000))]
    pub(super) posts_rate: u32,
    /// Likes a second meanwhile
    #[arg(long, default_value_t = 50, value_parser = whole::<u32>(0..=10_000))]
    pub(super) likes_rate: u32,
    /// Accounts a second that change their names meanwhile
    #[arg(long, default_value_t = 5, value_parser = whole::<u32>(0..=10_000))]
    pub(super) renames_rate: u32,
    /// Measured rounds; in each all kinds of turns have one
    #[arg(long, default_value_t = 12, value_parser = whole::<u32>(1..=1_000))]
    pub(super) rounds: u32,
    /// How long each turn takes
    #[arg(long, default_value_t = 4, value_parser = whole::<u64>(1..=600))]
    pub(super) turn_seconds: u64,
    /// Posts whose cost is measured, in each of as many rounds
    #[arg(long, default_value_t = 200, value_parser = whole::<u32>(1..=100_000))]
    pub(super) posts: u32,
    /// Followers of those who write these: the accounts that have about as many
    #[arg(long, default_value_t = 50, value_parser = whole::<u32>(1..=100_000))]
    pub(super) followers: u32,
    /// Pages a second of the open loop [default: a quarter of what the closed loop did]
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..=1_000_000))]
    pub(super) rate: Option<u32>,
    /// How long each turn of the open loop takes
    #[arg(long, default_value_t = 10, value_parser = whole::<u32>(1..=3_600))]
    pub(super) open_seconds: u32,
    /// Turns of the open loop, of each kind
    #[arg(long, default_value_t = 6, value_parser = whole::<u32>(1..=1_000))]
    pub(super) open_rounds: u32,
    /// Have somebody sign up or log in all the time in every second turn of the open loop: passwords are hashed
    /// meanwhile
    #[arg(long)]
    pub(super) passwords: bool,
    /// Of so many pages one is compared, byte for byte, with one of a server that remembers nothing; 0: none
    #[arg(long, default_value_t = 100, value_parser = whole::<u32>(0..=1_000_000))]
    pub(super) compare_every: u32,
    /// Pages of a site that runs: http://HOST:PORT. Nothing is started or written there, and pages are read as --tokens
    /// says
    #[arg(long, value_name = "URL", requires = "tokens", conflicts_with_all = ["cluster", "passwords"])]
    #[serde(skip)]
    pub(super) url: Option<String>,
    /// A file with the tokens of those who read at --url, one a line
    #[arg(long, value_name = "FILE", requires = "url")]
    #[serde(skip)]
    pub(super) tokens: Option<PathBuf>,
    #[command(flatten)]
    pub(super) program: Program,
    #[command(flatten)]
    #[serde(skip)]
    pub(super) common: Common,
}

impl ServeArgs {
    pub(super) fn turn(&self) -> Duration {
        Duration::from_secs(self.turn_seconds)
    }

    /// All writes of a second.
    pub(super) fn writes_rate(&self) -> u32 {
        self.posts_rate + self.likes_rate + self.renames_rate
    }

    /// Refuses what each value allows but all together do not.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.followees < self.readers,
            "--followees {} of --readers {}: nobody follows itself",
            self.followees,
            self.readers
        );
        Ok(())
    }
}
