//! What can be typed behind `loadtest kills`, with the bounds that keep a run finite.

use clap::Args;
use serde::Serialize;

use crate::report::Files;
use crate::site::Program;
use crate::typed::whole;

/// Servers of a site are killed (kill -9) and started again while clients write over HTTP; in the end all that was
/// answered has to be there, once, and nothing else.
#[derive(Debug, Clone, Args, Serialize)]
pub(crate) struct KillsArgs {
    /// How often something is killed: one server or the other, both at once, every fifth time a primary of Redis,
    /// whose replica takes over
    #[arg(long, default_value_t = 50, value_parser = whole::<u32>(0..=10_000))]
    pub(super) kills: u32,
    /// People who write, each doing one thing after the other
    #[arg(long, default_value_t = 12, value_parser = whole::<u32>(3..=200))]
    pub(super) people: u32,
    /// What has to be answered between two kills
    #[arg(long, default_value_t = 150, value_parser = whole::<u64>(1..=100_000))]
    pub(super) answers: u64,
    /// Leave the primaries of Redis alone: servers of the site are killed only
    #[arg(long)]
    pub(super) without_failovers: bool,
    /// The same seed has people choose the same things [default: a new one each time, shown]
    #[arg(long, value_name = "N", value_parser = whole::<u64>(0..))]
    pub(super) seed: Option<u64>,
    #[command(flatten)]
    pub(super) program: Program,
    #[command(flatten)]
    #[serde(skip)]
    pub(super) files: Files,
}

impl KillsArgs {
    /// Whether the nth kill is one of a primary of Redis.
    pub(super) fn is_failover(&self, nth: u32) -> bool {
        !self.without_failovers && nth % 5 == 4
    }

    /// Whether any is.
    pub(super) fn has_failovers(&self) -> bool {
        (0..self.kills).any(|nth| self.is_failover(nth))
    }
}
