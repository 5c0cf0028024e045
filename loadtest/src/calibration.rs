//! What redis-benchmark makes of the same servers before a run, or a pass: how fast the machine was then.

use std::fmt;
use std::path::Path;
use std::time::Instant;

use futures::future::try_join_all;
use serde::Serialize;
use tideline::bucket::tag_of_slot;

use crate::bench::Bench;
use crate::report::count;
use crate::stats::{Spread, median};
use crate::{cpu, guarded};

const PROGRAM: &str = "redis-benchmark";
/// For each node.
const OPERATIONS_PER_NODE: u64 = 333_333;
const CONNECTIONS_PER_NODE: u64 = 4;
const KEYS_PER_NODE: u64 = 100_000;
/// A fraction of a second is what it takes; once its server was gone, it has spun for ever.
const CPU_MAX_SECONDS: u64 = 30;

/// One run of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Calibrated {
    /// In all.
    connections: u64,
    operations_per_second: f64,
    /// Of servers and program together.
    cpu_us: f64,
}

/// All runs of it; loadtest/README.md explains the fields.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Calibration {
    command: String,
    #[serde(skip)]
    name: String,
    runs: usize,
    pub(crate) operations_per_second: f64,
    pub(crate) cpu_us_per_operation: f64,
    pub(crate) cpu_us_spread: Spread,
}

impl Calibration {
    /// Nothing if it never ran.
    pub(crate) fn of(runs: &[Calibrated]) -> Option<Self> {
        let cpu: Vec<f64> = runs.iter().map(|run| run.cpu_us).collect();
        let rates: Vec<f64> = runs.iter().map(|run| run.operations_per_second).collect();
        let name = format!("{PROGRAM} -c {} -P 500", runs.first()?.connections);
        Some(Self {
            command: format!("{name} ZADD k:{{tag}}:RANDOM 1 m"),
            name,
            runs: runs.len(),
            operations_per_second: median(&rates)?,
            cpu_us_per_operation: median(&cpu)?,
            cpu_us_spread: Spread::of(&cpu)?,
        })
    }
}

impl fmt::Display for Calibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rate, cpu) = (self.operations_per_second, self.cpu_us_per_operation);
        let Spread { lowest, highest } = self.cpu_us_spread;
        write!(
            f,
            "{} before that: {rate:.0} small ZADDs a second, {cpu:.2} us each ({lowest:.2}-{highest:.2})",
            self.name
        )
    }
}

/// Runs it on empty servers of our own and empties them again. Nothing if this machine doesn't have it, or if the
/// servers are somebody else's.
pub(crate) async fn run(bench: &Bench) -> anyhow::Result<Option<Calibrated>> {
    let Some(dir) = bench.target.dir() else { return Ok(None) };
    let measured = run_program(bench, dir).await?;
    bench.empty().await?;
    Ok(measured)
}

async fn run_program(bench: &Bench, dir: &Path) -> anyhow::Result<Option<Calibrated>> {
    let now = || bench.target.cpu_time().server.zip(cpu::of_children());
    let (before, began) = (now(), Instant::now());
    let nodes = bench.slots().iter().map(|(node, slot)| {
        let key = format!("k:{{{}}}:__rand_int__", tag_of_slot(*slot));
        let operations = OPERATIONS_PER_NODE.to_string();
        let (port, connections) = (node.port.to_string(), CONNECTIONS_PER_NODE.to_string());
        let keys = KEYS_PER_NODE.to_string();
        let line = [PROGRAM, "-h", &node.host, "-p", &port, "-P", "500", "-q", "-c", &connections];
        let load = ["-n", &operations, "-r", &keys, "ZADD", &key, "1", "m"];
        guarded::run(
            dir,
            CPU_MAX_SECONDS,
            line.into_iter().chain(load).map(str::to_owned).collect::<Vec<_>>(),
        )
    });
    let Ok(ended) = try_join_all(nodes).await else { return Ok(None) };
    let seconds = began.elapsed().as_secs_f64();
    let operations = OPERATIONS_PER_NODE * ended.len() as u64;
    let (Some(before), Some(after), true) = (before, now(), ended.iter().all(|status| status.success()))
    else {
        return Ok(None);
    };
    let used = (after.0 + after.1).saturating_sub(before.0 + before.1);
    let connections = CONNECTIONS_PER_NODE * ended.len() as u64;
    let operations_per_second = count(operations) / seconds;
    Ok(cpu::us_each(Some(used), operations).map(|cpu_us| Calibrated {
        connections,
        operations_per_second,
        cpu_us,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It said 12 for any number of primaries.
    #[test]
    fn it_is_named_by_the_connections_that_it_had() {
        let run = |connections| Calibrated { connections, operations_per_second: 2e6, cpu_us: 0.5 };
        let told = Calibration::of(&[run(36), run(36)]).unwrap();
        assert_eq!(told.command, "redis-benchmark -c 36 -P 500 ZADD k:{tag}:RANDOM 1 m");
        assert!(told.to_string().starts_with("redis-benchmark -c 36 -P 500 before that: 2000000"), "{told}");
    }
}
