//! `loadtest scale`: the same load per primary on more and more primaries, and posts to more and more followers: does one
//! delivery, and one page, cost the same? And what one of each thing costs here, for `loadtest plan --units`.

mod outcome;
mod phases;

use std::path::PathBuf;

use clap::{Args, value_parser};
use serde::Serialize;

use crate::fanout;
use crate::report;
use outcome::Outcome;
use phases::{At, Network};

/// The same load per primary on 1, 3, 6 and 9 primaries, and posts to 1,000 and up to millions of followers: what a delivery
/// and a page cost; and the costs that `plan --units` takes.
#[derive(Debug, Clone, Args, Serialize)]
pub(crate) struct ScaleArgs {
    /// Clusters of so many primaries
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = [1, 3, 6, 9], value_parser = value_parser!(u16).range(1..=32))]
    primaries: Vec<u16>,
    /// Followers of the accounts whose posts are measured on three primaries; none with an empty list
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = [1_000, 10_000, 100_000, 1_000_000], value_parser = value_parser!(u64).range(1..=5_000_000))]
    followers: Vec<u64>,
    /// Accounts for each primary
    #[arg(long, default_value_t = 1_000, value_parser = value_parser!(u32).range(200..=100_000))]
    accounts: u32,
    /// Followers of each of them
    #[arg(long, default_value_t = 100, value_parser = value_parser!(u32).range(10..=1_000))]
    mean: u32,
    /// Operations under way at once for each primary
    #[arg(long, default_value_t = 64, value_parser = value_parser!(u32).range(1..=10_000))]
    at_once: u32,
    /// Measured rounds of each
    #[arg(long, default_value_t = 6, value_parser = value_parser!(u32).range(2..=100))]
    rounds: u32,
    /// About how long a round takes
    #[arg(long, default_value_t = 2, value_parser = value_parser!(u32).range(1..=60))]
    round_seconds: u32,
    /// The same seed makes the same network and operations [default: a new one each time, shown]
    #[arg(long, value_name = "N")]
    #[serde(skip)]
    seed: Option<u64>,
    /// Also write the result to this file as JSON; loadtest/README.md explains the fields
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    json: Option<PathBuf>,
}

impl ScaleArgs {
    fn network(&self, primaries: u16, active: bool) -> Network {
        Network {
            primaries,
            accounts: self.accounts * u32::from(primaries),
            mean: self.mean,
            active,
            at_once: self.at_once * u32::from(primaries),
            rounds: self.rounds,
            round_seconds: self.round_seconds,
        }
    }
}

/// Runs the test; true if everything was carried out.
pub(crate) async fn run(args: ScaleArgs) -> anyhow::Result<bool> {
    let seed = args.seed.unwrap_or_else(rand::random);
    let mut points = Vec::new();
    for primaries in &args.primaries {
        let at = At::open(args.network(*primaries, true), seed).await?;
        points.push(phases::point(at).await?);
    }
    let units = phases::units(&args, seed).await?;
    let mut followers = Vec::new();
    for count in &args.followers {
        followers.push(fanout::cost_of_ours(*count, seed).await?);
    }
    let outcome = Outcome::new(&args, seed, points, followers, units);
    report::tell(&outcome, args.json.as_deref())?;
    Ok(true)
}
