//! What all commands that put load on servers have in common: options, and how one ends. `--strict`: what a command
//! claims of what it measured reaches its exit code.

use std::net::SocketAddr;

use clap::Args;
use serde::Serialize;
use tideline::cluster::Seed;

use crate::gauges;
use crate::report::{Files, Report};
use crate::typed::whole;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// All was carried out, and nothing is wrong.
    Right,
    /// Something was not carried out, or is not as it has to be.
    Wrong,
    /// A claim is not met, and that was asked for.
    Unmet,
}

impl From<bool> for End {
    fn from(is_right: bool) -> Self {
        if is_right { Self::Right } else { Self::Wrong }
    }
}

/// What a command tells in the end: as JSON, and as a report.
pub(crate) trait Told: Serialize {
    fn report(&self) -> Report;

    /// Whether everything was carried out, and is as it has to be.
    fn is_right(&self) -> bool;

    /// What is claimed and is not so, or could not be judged at all.
    fn unmet(&self) -> Vec<String> {
        Vec::new()
    }
}

/// What can be typed behind each of them.
#[derive(Debug, Clone, Args)]
pub(crate) struct Common {
    /// Nodes of a cluster to use, separated by commas: redis://HOST:PORT. The run's keys have a prefix of their own,
    /// which it tells, and are removed again, also when it is interrupted; CPU time is what its primaries tell
    /// [default: start one, and remove it at the end]
    #[arg(long, value_name = "URL", env = "TIDELINE_CLUSTER", hide_env_values = true, value_delimiter = ',')]
    pub(crate) cluster: Vec<Seed>,
    /// Serve all metrics at this address while it runs: for Prometheus, or a browser at /metrics
    #[arg(long, value_name = "HOST:PORT")]
    metrics: Option<SocketAddr>,
    /// The same seed makes the same network, followers and operations [default: a new one each time, shown]
    #[arg(long, value_name = "N", value_parser = whole::<u64>(0..))]
    seed: Option<u64>,
    #[command(flatten)]
    files: Files,
    /// Exit code 3, if a claim is not met or could not be judged: which one is told. Without this it is told only
    #[arg(long = "strict")]
    is_strict: bool,
}

impl Common {
    /// Whether the cluster is started here.
    pub(crate) fn is_own(&self) -> bool {
        self.cluster.is_empty()
    }

    /// Serves metrics if that was asked for, before any engine is started; tells the seed of the run.
    pub(crate) fn begin(&self) -> anyhow::Result<u64> {
        gauges::start(self.metrics)?;
        Ok(self.seed.unwrap_or_else(rand::random))
    }

    /// Tells an outcome; claims count only if that was asked for.
    pub(crate) fn end(&self, outcome: &impl Told) -> anyhow::Result<End> {
        self.files.tell(outcome, &outcome.report())?;
        Ok(end(self.is_strict, outcome.is_right(), &outcome.unmet()))
    }
}

/// How a command ends that was carried out (or not), and whose claims these are not met. What was not carried out is
/// worse: claims of it say nothing.
fn end(is_strict: bool, is_right: bool, unmet: &[String]) -> End {
    if !is_right || !is_strict || unmet.is_empty() {
        return is_right.into();
    }
    unmet.iter().for_each(|claim| eprintln!("not met (--strict): {claim}"));
    End::Unmet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_count_only_if_that_was_asked_for_and_all_was_carried_out() {
        let unmet = ["it costs more".to_owned()];
        assert_eq!([end(true, true, &[]), end(true, true, &unmet)], [End::Right, End::Unmet]);
        assert_eq!([end(true, false, &[]), end(true, false, &unmet)], [End::Wrong; 2]);
        assert_eq!([end(false, true, &unmet), end(false, false, &unmet)], [End::Right, End::Wrong]);
    }
}
