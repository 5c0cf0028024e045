//! `loadtest compare`: one workload through push, pull, both hybrids and the textbooks' pull.
//!
//! `field` has all systems on the same servers, each with its network, and lets them take turns; `turns` is what these have
//! shown, `outcome` what is told of it, `page` the same as a page with charts.

mod args;
mod field;
mod outcome;
mod page;
mod turns;

use std::sync::Arc;

use crate::bench::Bench;
use crate::calibration::{self, Calibration};
use crate::scenario::Scenario;
use crate::strict::End;
use crate::workload::Workload;
use crate::{gauges, report};
pub(crate) use args::CompareArgs;
pub(crate) use field::{Field, expected, warm_up_operations};
use outcome::Outcome;
pub(crate) use outcome::{Row, Verdict, cost_ratio, rows, unmet, unsure, verdicts};
pub(crate) use turns::{Measured, Sample};

/// Runs the test.
pub(crate) async fn run(args: CompareArgs) -> anyhow::Result<End> {
    let scenario = args.scenario()?;
    if let Some(address) = args.metrics {
        gauges::serve(address)?;
    }
    let seed = args.seed.unwrap_or_else(rand::random);
    let bench = Bench::open(&args.cluster, scenario.drive.primaries, 0).await?;
    let outcome = Box::pin(compare(&args, scenario, &bench, seed)).await;
    let left = bench.leave().await;
    let outcome = outcome?;
    left?;
    report::tell(&outcome, args.json.as_deref())?;
    if let Some(file) = &args.html {
        report::write_page(file, &page::of(&outcome))?;
    }
    if let Some(file) = &args.svg {
        report::write(file, &crate::page::image(&page::cpu_chart(&outcome.rows)))?;
    }
    Ok(args.strict.end(outcome.is_right(), &unmet(&outcome.rows, &outcome.verdicts)))
}

async fn compare(
    args: &CompareArgs,
    scenario: Scenario,
    bench: &Bench,
    seed: u64,
) -> anyhow::Result<Outcome> {
    let calibrated: Vec<_> = calibration::run(bench).await?.into_iter().collect();
    let graph = Arc::new(scenario.graph.make(seed)?);
    let mut workload = Workload::new(graph.clone(), &scenario.activity, &scenario.mix, seed);
    eprintln!("{}: {} accounts, {} follows; seed {seed}.", scenario.name, graph.accounts(), graph.follows());
    let mut field = Field::load(bench, &scenario, &args.contestants(), graph.clone(), &workload).await?;
    field.prepare(&scenario, &workload).await?;
    let mut measured = field.measure(bench, &scenario, &mut workload, seed, None).await?;
    field.weigh(bench, &mut measured, None).await;
    let own = (seed, bench.target.is_own());
    Outcome::new(scenario, own, &graph, &measured, Calibration::of(&calibrated))
}
