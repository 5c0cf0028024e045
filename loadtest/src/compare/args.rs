//! What can be typed behind `loadtest compare` and `loadtest sweep`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::check_memory;
use crate::common::Common;
use crate::scenario::Scenario;
use crate::systems::Contestant;
use crate::typed::{percent, whole};

/// One workload through push, pull, both hybrids and the textbooks' pull, on the same servers: throughput, CPU,
/// latencies, memory.
#[derive(Debug, Clone, Args, Serialize)]
pub(crate) struct CompareArgs {
    /// What is done: a TOML file, or the name of one of loadtest/scenarios, which are in the program: small, twip, ...
    /// `reference.toml` explains every setting
    #[arg(long, value_name = "FILE", default_value = "small")]
    pub(crate) scenario: PathBuf,
    /// Only these, separated by commas; what the ratios are to comes first [default: all]
    #[arg(long, value_name = "NAME", value_enum, value_delimiter = ',')]
    pub(crate) systems: Vec<Contestant>,
    /// Instead of the scenario's: measured rounds of each system
    #[arg(long, value_name = "N", value_parser = whole::<u32>(2..=1_000))]
    pub(crate) rounds: Option<u32>,
    /// Instead of the scenario's: about how long a round takes
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..=600))]
    pub(crate) round_seconds: Option<u32>,
    /// Instead of the scenario's: how many accounts a made-up network has
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1..))]
    pub(crate) accounts: Option<usize>,
    /// Instead of the scenario's: operations under way at once
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1..=100_000))]
    pub(crate) at_once: Option<usize>,
    /// Instead of the scenario's: the share of accounts that read, in percent. `sweep` goes over several
    #[arg(long, value_name = "P", value_parser = percent)]
    pub(crate) active_percent: Option<f64>,
    /// It ends after so long: rounds that don't fit in are left out, which is said [default: 3600; of `sweep`, which
    /// gives each share an equal part of the time that is left, 900]
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1..=86_400))]
    #[serde(skip)]
    longest_seconds: Option<u64>,
    #[command(flatten)]
    #[serde(skip)]
    pub(crate) common: Common,
}

impl CompareArgs {
    /// The scenario, with what was typed beside it.
    pub(crate) fn scenario(&self) -> anyhow::Result<Scenario> {
        let mut scenario = Scenario::read(&self.scenario)?;
        if let Some(rounds) = self.rounds {
            scenario.drive.rounds = rounds as usize;
        }
        scenario.drive.round_seconds = self.round_seconds.unwrap_or(scenario.drive.round_seconds);
        scenario.drive.at_once = self.at_once.unwrap_or(scenario.drive.at_once);
        scenario.activity.active_percent = self.active_percent.unwrap_or(scenario.activity.active_percent);
        scenario.graph.accounts = self.accounts.or(scenario.graph.accounts);
        scenario.check()?;
        let is_twice = |nth: usize| self.systems[..nth].contains(&self.systems[nth]);
        if let Some(nth) = (0..self.systems.len()).find(|nth| is_twice(*nth)) {
            anyhow::bail!("--systems names {} twice", self.systems[nth].name());
        }
        Ok(scenario)
    }

    /// Refuses what this machine has no memory for, before anything is started; of a file nobody knows until it is
    /// read.
    pub(crate) fn check_memory(&self, scenario: &Scenario) -> anyhow::Result<()> {
        let Some(size) = scenario.graph.size()? else { return Ok(()) };
        check_memory(scenario, &self.contestants(), size, self.common.is_own())
    }

    /// When it has to end, if nothing else was typed than this.
    pub(crate) fn longest(&self, default_seconds: u64) -> Duration {
        Duration::from_secs(self.longest_seconds.unwrap_or(default_seconds))
    }

    /// Those that take turns.
    pub(crate) fn contestants(&self) -> Vec<Contestant> {
        if self.systems.is_empty() { Contestant::ALL.to_vec() } else { self.systems.clone() }
    }
}
