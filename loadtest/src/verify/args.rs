//! What can be typed behind `loadtest verify`, with the bounds that keep a run finite.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::typed::whole;

/// What goes wrong on purpose during a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Chaos {
    /// Instances are killed (SIGKILL), others started.
    KillInstance,
    /// Instances are stopped and go on later (SIGSTOP, SIGCONT).
    FreezeInstance,
    /// Primaries are killed or stopped until a replica takes over.
    Failover,
    /// Slots move, key by key.
    Reshard,
}

/// Who decides which accounts are pushed and which are pulled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Policy {
    /// All are pushed; those that are created otherwise are handed over.
    Push,
    /// All are pulled.
    Pull,
    /// By the number of followers, with thresholds that accounts cross again and again.
    Threshold,
    /// By what either way costs.
    Cost,
    /// The threshold, and besides accounts are told by hand, back and forth.
    Mixed,
}

/// What is broken behind the engine's back, so that this test must find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Sabotage {
    /// An entry disappears from a home.
    HomeEntry,
    /// A post disappears.
    Post,
    /// A follow that nobody has made.
    Follow,
    /// The model believes in a mute that nobody has asked for.
    Mute,
    /// Somebody's edge among an author's followers disappears.
    Edge,
    /// An account's credentials name none of its names any more.
    Name,
    /// All reports disappear.
    Reports,
}

/// Random histories of everything that accounts do, by several clients on several instances; every page that anybody
/// gets is held against a naive model, and in the end everybody's whole timeline.
#[derive(Debug, Clone, Args, Serialize)]
pub(crate) struct VerifyArgs {
    /// Nodes of a cluster to use, separated by commas: redis://HOST:PORT or rediss://. The run's keys have a prefix
    /// of their own, which it tells, and stay there until `loadtest clean` [default: start 3 primaries, and remove them at the end]
    // Not in the report: it may hold a password.
    #[arg(long, value_name = "URL", env = "TIDELINE_CLUSTER", hide_env_values = true, value_delimiter = ',')]
    #[serde(skip)]
    pub(crate) cluster: Vec<String>,
    /// Operations in all: writes, pages, walks
    #[arg(long, default_value_t = 10_000, value_parser = whole::<u32>(1..=10_000_000))]
    pub(crate) operations: u32,
    /// After so many operations everything is left to drain, and every timeline compared
    #[arg(long, default_value_t = 2_500, value_parser = whole::<u32>(1..=100_000))]
    pub(crate) round: u32,
    /// Accounts that act
    #[arg(long, default_value_t = 70, value_parser = whole::<u32>(10..=2_000))]
    pub(crate) accounts: u32,
    /// Clients at the same time; each acts for accounts of its own
    #[arg(long, default_value_t = 8, value_parser = whole::<u32>(1..=100))]
    pub(crate) clients: u32,
    /// Instances of the engine
    #[arg(long, default_value_t = 3, value_parser = whole::<u32>(1..=16))]
    pub(crate) instances: u32,
    /// The setting `visible_within`, in milliseconds [default: by the seed, 0 or 200]
    #[arg(long, value_name = "MS", value_parser = whole::<u64>(0..=5_000))]
    pub(crate) visible_within_ms: Option<u64>,
    /// Who is pushed and who is pulled; what a page shows does not depend on it
    #[arg(long, value_enum, default_value = "mixed")]
    pub(crate) policy: Policy,
    /// What goes wrong meanwhile; the instances are processes of their own then
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) chaos: Vec<Chaos>,
    /// The same seed plans the same operations [default: a new one each time, shown]
    #[arg(long, value_name = "N", value_parser = whole::<u64>(0..))]
    #[serde(skip)]
    pub(crate) seed: Option<u64>,
    /// Also write the result to this file as JSON; loadtest/README.md explains the fields
    #[arg(long, value_parser = crate::report::writable, value_name = "FILE")]
    #[serde(skip)]
    pub(crate) json: Option<PathBuf>,
    /// Break something on purpose before the last comparison
    #[arg(long, value_enum, hide = true)]
    pub(crate) sabotage: Option<Sabotage>,
}

impl VerifyArgs {
    pub(crate) fn has(&self, chaos: Chaos) -> bool {
        self.chaos.contains(&chaos)
    }

    /// Refuses what each value allows but all together do not.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let breaks_servers = self.has(Chaos::Failover) || self.has(Chaos::Reshard);
        anyhow::ensure!(
            self.cluster.is_empty() || !breaks_servers,
            "failover and reshard need a cluster of our own: leave --cluster out"
        );
        anyhow::ensure!(
            self.instances > 1 || !self.has(Chaos::KillInstance),
            "somebody must finish the work of an instance that is killed: --instances 2 or more"
        );
        Ok(())
    }
}
