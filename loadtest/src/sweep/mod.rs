//! `loadtest sweep`: the comparison again and again, while the share of accounts that read grows. Everybody goes on
//! posting as before, and each reader reads as often: where few read, pulling is cheaper, where all do, pushing is.

mod crossing;
mod outcome;

use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use clap::Args;

use crate::bench::{Bench, on_cluster};
use crate::common::End;
use crate::compare::{CompareArgs, Field, LOADING, Measured};
use crate::deadline::Deadline;
use crate::graph::Graph;
use crate::scenario::{Loop, Mix, Scenario};
use crate::stats::whole;
use crate::typed::percent;
use crate::workload::Workload;
use outcome::{Outcome, Point};

/// Of a round and of warming up, unless something else is typed.
const SECONDS: u32 = 1;
/// After so long it ends, unless something else is typed.
const LONGEST_SECONDS: u64 = 900;

/// The comparison over several shares of accounts that read: where pushing becomes cheaper than pulling, and whether
/// the hybrids are the better of both.
#[derive(Debug, Clone, Args)]
pub(crate) struct SweepArgs {
    #[command(flatten)]
    compare: CompareArgs,
    /// Shares of accounts that read, in percent, ascending
    #[arg(long, value_name = "P,...", value_parser = percent, value_delimiter = ',')]
    #[arg(default_values_t = [1.0, 10.0, 30.0, 50.0, 70.0, 90.0, 100.0])]
    shares: Vec<f64>,
}

impl SweepArgs {
    fn scenario(&self) -> anyhow::Result<Scenario> {
        let ascends = self.shares.is_sorted_by(|a, b| a < b);
        let is_possible = |share: &f64| *share > 0.0 && *share <= 100.0;
        anyhow::ensure!(
            ascends && self.shares.iter().all(is_possible),
            "--shares must be above 0, up to 100, and ascending: they are {:?}",
            self.shares
        );
        let mut scenario = self.compare.scenario()?;
        scenario.drive.round_seconds = self.compare.round_seconds.unwrap_or(SECONDS);
        scenario.drive.warm_up_seconds = SECONDS;
        // Whoever logs out leaves its home behind: soon all would have one, whatever the share is.
        let scenario = with_mix(&scenario, Mix { logout: 0.0, ..scenario.mix });
        scenario.check()?;
        for share in &self.shares {
            at_share(&scenario, *share).check().with_context(|| format!("where {share} % read"))?;
        }
        Ok(scenario)
    }
}

/// The scenario with another share of accounts that read.
fn at_share(scenario: &Scenario, share: f64) -> Scenario {
    let mut at = with_mix(scenario, scenario.mix.with_readers(share / scenario.activity.active_percent));
    at.activity.active_percent = share;
    at
}

/// The scenario with a mix of the same posts: in the open loop as many a second as before, beside more or less of the
/// others.
fn with_mix(scenario: &Scenario, mix: Mix) -> Scenario {
    let mut with = scenario.clone();
    if scenario.drive.kind == Loop::Open {
        let rate = f64::from(scenario.drive.rate) * mix.sum() / scenario.mix.sum();
        with.drive.rate = u32::try_from(whole(rate).max(1)).unwrap_or(u32::MAX);
    }
    with.mix = mix;
    with
}

/// Runs the test.
pub(crate) async fn run(args: SweepArgs) -> anyhow::Result<End> {
    let scenario = args.scenario()?;
    let largest = at_share(&scenario, args.shares.last().copied().unwrap_or(100.0));
    args.compare.check_memory(&largest)?;
    let seed = args.compare.common.begin()?;
    let servers = scenario.drive.servers();
    let sweep = async |bench: &Bench| Box::pin(sweep(&args, scenario, bench, seed)).await;
    let outcome = on_cluster(&args.compare.common.cluster, servers, sweep).await?;
    args.compare.common.end(&outcome)
}

async fn sweep(args: &SweepArgs, scenario: Scenario, bench: &Bench, seed: u64) -> anyhow::Result<Outcome> {
    let deadline = Deadline::after(args.compare.longest(LONGEST_SECONDS));
    let graph = Arc::new(scenario.graph.make(seed)?);
    eprintln!("{}: {} accounts, {} follows; seed {seed}.", scenario.name, graph.accounts(), graph.follows());
    let first = at_share(&scenario, args.shares[0]);
    let contestants = args.compare.contestants();
    let workload = Workload::new(graph.clone(), &first.activity, &first.mix, seed);
    let load = Field::load(bench, &first, &contestants, graph.clone(), &workload);
    let mut field = deadline.phase(LOADING, Box::pin(load)).await?;
    let points = all(&mut field, bench, (&scenario, &args.shares), &graph, seed, deadline).await;
    field.stopped().await;
    let points = points?;
    let left_out = args.shares[points.len()..].to_vec();
    let own = (seed, bench.target.is_own());
    Ok(Outcome::new(scenario, own, &graph, points, left_out))
}

/// The comparison at each of these shares, as far as there is time.
async fn all(
    field: &mut Field,
    bench: &Bench,
    (scenario, shares): (&Scenario, &[f64]),
    graph: &Arc<Graph>,
    seed: u64,
    deadline: Deadline,
) -> anyhow::Result<Vec<Point>> {
    let mut points = Vec::new();
    for (number, share) in shares.iter().enumerate() {
        let (began, at) = (Instant::now(), at_share(scenario, *share));
        let part = deadline.of_one(shares.len() - number);
        let Some(mut measured) = measure(field, bench, &at, graph, seed, (part, deadline)).await? else {
            break;
        };
        field.weigh(bench, &mut measured, Some(deadline)).await;
        points.push(Point::new(&at, &measured)?);
        eprintln!("{share} % of all accounts read: {:.0} s", began.elapsed().as_secs_f64());
    }
    Ok(points)
}

/// The comparison at one share; rounds that would not end in its part of the time are left out. Nothing, if the whole
/// time is up before the first one ends; one that is under way then is dropped, and those before it count.
async fn measure(
    field: &mut Field,
    bench: &Bench,
    at: &Scenario,
    graph: &Arc<Graph>,
    seed: u64,
    (part, whole): (Deadline, Deadline),
) -> anyhow::Result<Option<Vec<Measured>>> {
    let workload = Workload::new(graph.clone(), &at.activity, &at.mix, seed);
    let ready = async {
        field.prepare(at, &workload).await?;
        field.warmed_up(at, seed).await
    };
    let Some(warmed_up) = whole.within(ready).await else { return Ok(None) };
    field.measure(bench, warmed_up?, Some(part), Some(whole)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_another_share_everybody_posts_as_before_and_fewer_read_as_often() {
        let text = "name = 'x'\n[graph]\npreset = 'twip'\naccounts = 100\n[mix]\npost = 1\ncheck = 100\n";
        let at = at_share(&Scenario::parse(text).unwrap(), 7.0);
        assert!((at.mix.post - 1.0).abs() < 1e-9 && (at.mix.check - 10.0).abs() < 1e-9);
        assert!((at.activity.active_percent - 7.0).abs() < 1e-9);
    }

    #[test]
    fn in_the_open_loop_posts_fall_due_as_often_as_before() {
        let text = "name = 'x'\n[graph]\npreset = 'twip'\naccounts = 100\n[mix]\npost = 1\ncheck = 99\n[drive]\nrate = \
                    1000\n";
        let rate = |kind: &str| {
            let scenario = Scenario::parse(&format!("{text}loop = '{kind}'\n")).unwrap();
            // Ten posts a second, and of a seventh of 70 % as many checks as before of all.
            [7.0, 70.0, 100.0].map(|share| at_share(&scenario, share).drive.rate)
        };
        assert_eq!(rate("open"), [10 + 99, 1_000, 10 + 1_414]);
        assert_eq!(rate("closed"), [1_000; 3]);
    }
}
