//! `loadtest compare`: one workload through push, pull, both hybrids and the textbooks' pull.
//!
//! `field` has all systems on the same servers, each with its network; `rounds` lets them take turns; `turns` is what
//! these have shown, `verdict` what is claimed of hybrids, `outcome` what is told of it all.

mod args;
mod field;
mod memory;
mod outcome;
mod rounds;
mod turns;
mod verdict;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tideline::cluster::describe_programs;

use crate::bench::{Bench, on_cluster};
use crate::common::End;
use crate::deadline::Deadline;
use crate::scenario::Scenario;
use crate::workload::Workload;
pub(crate) use args::CompareArgs;
pub(crate) use field::Field;
pub(crate) use memory::check_memory;
use outcome::Outcome;
pub(crate) use outcome::{Row, caveat, cut, rows};
pub(crate) use rounds::{Bounds, Contender, take_turns, warm_up};
pub(crate) use turns::{Measured, Sample};
pub(crate) use verdict::{Verdict, cost_ratio, unmet, unsure, verdicts};

/// After so long it ends, unless something else is typed: rounds that don't fit in are left out.
const LONGEST_SECONDS: u64 = 3_600;
/// So much longer the round may take that was begun last, and looking at the keys after it.
const OVERTIME_MAX: Duration = Duration::from_secs(5 * 60);

/// Phases, and what to do if they take too long.
pub(crate) const LOADING: &str = "loading the network (choose fewer --accounts, or more --longest-seconds)";
const FILLING: &str = "filling homes (choose fewer --accounts, or more --longest-seconds)";
const MEASURING: &str = "measuring (choose fewer --round-seconds, or more --longest-seconds)";

/// Runs the test.
pub(crate) async fn run(args: CompareArgs) -> anyhow::Result<End> {
    let scenario = args.scenario()?;
    args.check_memory(&scenario)?;
    let seed = args.common.begin()?;
    let servers = scenario.drive.servers();
    let compare = async |bench: &Bench| Box::pin(compare(&args, scenario, bench, seed)).await;
    let outcome = on_cluster(&args.common.cluster, servers, compare).await?;
    args.common.end(&outcome)
}

async fn compare(
    args: &CompareArgs,
    scenario: Scenario,
    bench: &Bench,
    seed: u64,
) -> anyhow::Result<Outcome> {
    let programs = bench.router.programs();
    eprintln!("Servers: {}.", describe_programs(programs.iter().map(|(_, program)| program)));
    let until = Deadline::after(args.longest(LONGEST_SECONDS));
    let graph = Arc::new(scenario.graph.make(seed)?);
    let workload = Workload::new(graph.clone(), &scenario.activity, &scenario.mix, seed);
    eprintln!("{}: {} accounts, {} follows; seed {seed}.", scenario.name, graph.accounts(), graph.follows());
    let contestants = args.contestants();
    let load = Field::load(bench, &scenario, &contestants, graph.clone(), &workload);
    let mut field = until.phase(LOADING, Box::pin(load)).await?;
    let measured = measure(&mut field, bench, &scenario, &workload, seed, until).await;
    field.stopped().await;
    let own = (seed, bench.target.is_own());
    Outcome::new(scenario, own, &graph, &measured?)
}

async fn measure(
    field: &mut Field,
    bench: &Bench,
    scenario: &Scenario,
    workload: &Workload,
    seed: u64,
    until: Deadline,
) -> anyhow::Result<Vec<Measured>> {
    until.phase(FILLING, field.prepare(scenario, workload)).await?;
    let at_last = until.later(OVERTIME_MAX);
    let warmed_up = at_last.phase(MEASURING, field.warmed_up(scenario, seed)).await?;
    let measured = field.measure(bench, warmed_up, Some(until), Some(at_last)).await?;
    let mut measured = measured.with_context(|| format!("{MEASURING}: no round ended in time"))?;
    field.weigh(bench, &mut measured, Some(at_last)).await;
    Ok(measured)
}
