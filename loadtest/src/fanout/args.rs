//! What can be typed behind `loadtest fanout`, with the bounds that keep a run finite.

use clap::Args;
use serde::Serialize;

use super::system::Kind;
use crate::common::Common;
use crate::typed::whole;

/// Homes of all accounts; more would not fit into any memory that this is meant for.
const HOMES_MAX: u64 = 10_000_000;
/// Deliveries of all rounds of one system.
const DELIVERIES_MAX: u64 = 1_000_000_000;

/// Posts of accounts with many followers: how long deliveries take and what they cost, in several systems that take
/// turns on the same servers.
#[derive(Debug, Clone, Args, Serialize)]
pub(crate) struct FanoutArgs {
    /// Followers of each account that posts
    #[arg(long, default_value_t = 1_000_000, value_parser = whole::<u64>(1..=5_000_000))]
    pub(crate) followers: u64,
    /// Homes beside those of one account's followers: they make the memory that is touched real. Followers are drawn
    /// at random from all homes
    #[arg(long, default_value_t = 300_000, value_parser = whole::<u64>(0..=5_000_000))]
    pub(crate) background_homes: u64,
    /// How often all systems take turns; each starts from empty servers
    #[arg(long, default_value_t = 3, value_parser = whole::<u32>(1..=100))]
    pub(crate) passes: u32,
    /// Measured rounds of a system in each of its turns, after one that is not measured
    #[arg(long, default_value_t = 2, value_parser = whole::<u32>(1..=100))]
    pub(crate) rounds: u32,
    /// Deliveries of a round, at least: accounts with fewer followers post as often as it takes, each account once
    #[arg(long, default_value_t = 50_000, value_parser = whole::<u64>(1..=10_000_000))]
    pub(crate) round_deliveries: u64,
    /// Posts under way at a time
    #[arg(long, default_value_t = 8, value_parser = whole::<u64>(1..=256))]
    pub(crate) posts_at_once: u64,
    /// Entries of a full home of `books_per_node`; from 129 on Redis keeps them in skiplists
    #[arg(long, default_value_t = 112, value_parser = whole::<u64>(16..=2_000))]
    pub(crate) books_cap: u64,
    /// Entries of a full home of `list`
    #[arg(long, default_value_t = 400, value_parser = whole::<u64>(16..=2_000))]
    pub(crate) list_cap: u64,
    /// How many of 100 deliveries of `list` are followed by LTRIM: Misskey trims one home in ten
    #[arg(long, default_value_t = 10, value_parser = whole::<u32>(1..=100))]
    pub(crate) list_trim_percent: u32,
    /// Only these systems, separated by commas [default: all]
    #[arg(long, value_name = "NAME", value_enum, value_delimiter = ',')]
    pub(crate) systems: Vec<Kind>,
    /// Leave out the rows with a replica for each primary
    #[arg(long)]
    pub(crate) skip_replicas: bool,
    #[command(flatten)]
    #[serde(skip)]
    pub(crate) common: Common,
}

impl FanoutArgs {
    /// As if posts of the engine alone had been asked for, without replicas.
    pub(crate) fn of_ours(followers: u64, deliveries: u64, rounds: u32) -> Result<Self, clap::Error> {
        #[derive(Debug, clap::Parser)]
        struct Typed {
            #[command(flatten)]
            args: FanoutArgs,
        }
        let typed = format!(
            "fanout --followers {followers} --round-deliveries {deliveries} --rounds {rounds} --background-homes 20000 \
             --systems tideline --passes 1 --skip-replicas"
        );
        <Typed as clap::Parser>::try_parse_from(typed.split(' ')).map(|Typed { mut args }| {
            // The environment may name one; whoever asks says where.
            args.common.cluster.clear();
            args
        })
    }

    /// Posts of a round.
    pub(crate) fn posts_per_round(&self) -> u64 {
        self.round_deliveries.div_ceil(self.followers)
    }

    /// Those that take turns; the first is what the others are compared with in the table.
    pub(crate) fn alone(&self) -> Vec<Kind> {
        Kind::ALL.into_iter().filter(|kind| self.systems.is_empty() || self.systems.contains(kind)).collect()
    }

    /// Those that are measured with replicas too, where the cluster is our own.
    pub(crate) fn with_replicas(&self) -> Vec<Kind> {
        let is_possible = self.common.is_own() && !self.skip_replicas;
        self.alone().into_iter().filter(|kind| is_possible && *kind != Kind::List).collect()
    }

    /// Refuses what each value allows but all together do not.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let homes = self.followers + self.background_homes;
        anyhow::ensure!(homes <= HOMES_MAX, "{homes} homes in all; {HOMES_MAX} are possible");
        let rounds = u64::from(self.passes) * (1 + u64::from(self.rounds));
        let deliveries = rounds * (self.round_deliveries + self.followers);
        anyhow::ensure!(
            deliveries <= DELIVERIES_MAX,
            "{rounds} rounds make about {deliveries} deliveries; {DELIVERIES_MAX} are possible"
        );
        Ok(())
    }
}
