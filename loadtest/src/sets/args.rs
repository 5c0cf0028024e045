//! What can be typed behind `loadtest sets`, with the bounds that keep a run finite.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use tideline::cluster::Seed;

use crate::power_law::PowerLaw;
use crate::typed::whole;

/// Followers of all accounts together, at the beginning: the record holds them all in memory.
const MEMBERS_MAX: u64 = 5_000_000;
/// Operations of a run, for the same reason.
const OPERATIONS_MAX: u64 = 50_000_000;

/// Follows, unfollows and reads on follower sets of very different sizes; at the end every set is compared.
#[derive(Debug, Clone, Args, Serialize)]
pub(crate) struct SetsArgs {
    /// Nodes of a cluster to use, separated by commas: redis://HOST:PORT or rediss://. The run's keys have a prefix
    /// of their own, which it tells, and stay there until `loadtest clean` [default: start 3 primaries with a replica each, and remove them at the end]
    // Not in the report: it may hold a password.
    #[arg(long, value_name = "URL", env = "TIDELINE_CLUSTER", hide_env_values = true, value_delimiter = ',')]
    #[serde(skip)]
    pub(crate) cluster: Vec<Seed>,
    /// How many accounts have a follower set
    #[arg(long, default_value_t = 200, value_parser = whole::<u32>(1..=100_000))]
    pub(crate) accounts: u32,
    /// Followers of the largest account; the one of rank r has this by r^0.8. Accounts are used as often as their
    /// size says. Every second set that is large enough to be spread begins just short of it
    #[arg(long, default_value_t = 2_000, value_parser = whole::<u32>(1..=1_000_000))]
    pub(crate) followers: u32,
    /// Buckets that the sets are spread over: a power of two from 16 to 16384. A set is spread when it has 16 members
    /// for each bucket, and a page of a spread set asks every bucket
    #[arg(long, default_value_t = 32, value_parser = whole::<u16>(16..=16_384))]
    pub(crate) buckets: u16,
    /// Operations that fall due in a second, on average, at random moments
    #[arg(long, default_value_t = 2_000, value_parser = whole::<u32>(1..=100_000))]
    pub(crate) rate: u32,
    /// How long operations fall due; filling before and comparing after come on top
    #[arg(long, default_value_t = 10, value_parser = whole::<u32>(1..=3_600))]
    pub(crate) seconds: u32,
    /// How many of 100 operations are follows and unfollows (3 to 1); the others are look-ups, pages of the newest
    /// 20, and counts (2 to 1 to 1)
    #[arg(long, default_value_t = 20, value_parser = whole::<u32>(0..=100))]
    pub(crate) writers_percent: u32,
    /// Most operations under way at a time. One that falls due beyond it is not sent, and counted as dropped
    #[arg(long, default_value_t = 2_000, value_parser = whole::<u32>(1..=100_000))]
    pub(crate) concurrency: u32,
    /// The same seed plans the same operations at the same moments [default: a new one each time, shown]
    #[arg(long, value_name = "N", value_parser = whole::<u64>(0..))]
    #[serde(skip)]
    pub(crate) seed: Option<u64>,
    /// Also write the result to this file as JSON; loadtest/README.md explains the fields
    #[arg(long, value_parser = crate::report::writable, value_name = "FILE")]
    #[serde(skip)]
    pub(crate) json: Option<PathBuf>,
}

impl SetsArgs {
    /// Refuses what each value allows but all together do not.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let members = PowerLaw::new(self.accounts, self.followers).total();
        anyhow::ensure!(
            members <= MEMBERS_MAX,
            "{} accounts with up to {} followers make {members} in all; {MEMBERS_MAX} are possible",
            self.accounts,
            self.followers
        );
        let operations = u64::from(self.rate) * u64::from(self.seconds);
        anyhow::ensure!(
            operations <= OPERATIONS_MAX,
            "{} operations a second for {} s make {operations}; {OPERATIONS_MAX} are possible",
            self.rate,
            self.seconds
        );
        Ok(())
    }
}
