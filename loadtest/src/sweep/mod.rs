//! `loadtest sweep`: the comparison again and again, while the share of accounts that read grows. Everybody goes on posting as
//! before, and each reader reads as often: where few read, pulling is cheaper, where all do, pushing is.

mod outcome;
mod page;

use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;

use crate::bench::Bench;
use crate::calibration::{self, Calibration};
use crate::compare::{CompareArgs, Field};
use crate::scenario::Scenario;
use crate::workload::Workload;
use crate::{gauges, report};
use outcome::{Outcome, Point};

/// Of a round and of warming up, unless something else is typed.
const SECONDS: u32 = 1;
/// A sweep takes no longer: points that would not fit in any more are left out, and it says so.
const LONGEST: Duration = Duration::from_secs(15 * 60);

/// The comparison over several shares of accounts that read: where pushing becomes cheaper than pulling, and whether the
/// hybrids are the better of both.
#[derive(Debug, Clone, Args)]
pub(crate) struct SweepArgs {
    #[command(flatten)]
    compare: CompareArgs,
    /// Shares of accounts that read, in percent, ascending
    #[arg(long, value_name = "P,...", value_delimiter = ',', default_values_t = [1.0, 10.0, 30.0, 50.0, 70.0, 90.0, 100.0])]
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
        scenario.mix.logout = 0.0;
        scenario.check()?;
        Ok(scenario)
    }
}

/// The scenario with another share of accounts that read.
fn at_share(scenario: &Scenario, share: f64) -> Scenario {
    let mut at = scenario.clone();
    at.mix = scenario.mix.with_readers(share / scenario.activity.active_percent);
    at.activity.active_percent = share;
    at
}

/// Runs the test; true if everything was carried out.
pub(crate) async fn run(args: SweepArgs) -> anyhow::Result<bool> {
    let scenario = args.scenario()?;
    if let Some(address) = args.compare.metrics {
        gauges::serve(address)?;
    }
    let seed = args.compare.seed.unwrap_or_else(rand::random);
    let bench = Bench::open(&args.compare.cluster, scenario.drive.primaries, 0).await?;
    let outcome = Box::pin(sweep(&args, scenario, &bench, seed)).await;
    let left = bench.leave().await;
    let outcome = outcome?;
    left?;
    report::tell(&outcome, args.compare.json.as_deref())?;
    if let Some(file) = &args.compare.html {
        report::write_page(file, &page::of(&outcome))?;
    }
    Ok(outcome.is_right())
}

async fn sweep(args: &SweepArgs, scenario: Scenario, bench: &Bench, seed: u64) -> anyhow::Result<Outcome> {
    let began = Instant::now();
    let calibrated: Vec<_> = calibration::run(bench).await?.into_iter().collect();
    let graph = Arc::new(scenario.graph.make(seed)?);
    let workload =
        |scenario: &Scenario| Workload::new(graph.clone(), &scenario.activity, &scenario.mix, seed);
    eprintln!("{}: {} accounts, {} follows; seed {seed}.", scenario.name, graph.accounts(), graph.follows());
    let first = at_share(&scenario, args.shares[0]);
    let contestants = args.compare.contestants();
    let mut field = Field::load(bench, &first, &contestants, graph.clone(), &workload(&first)).await?;
    let (mut points, mut longest) = (Vec::new(), Duration::ZERO);
    for share in &args.shares {
        let point_began = Instant::now();
        // The next one has more homes and reads than those before.
        if began.elapsed() + longest * 3 / 2 > LONGEST {
            eprintln!("{} minutes are over: {share} % and more are left out.", LONGEST.as_secs() / 60);
            break;
        }
        let at = at_share(&scenario, *share);
        let mut workload = workload(&at);
        field.prepare(bench, &at, &workload).await?;
        let measured = field.measure(bench, &at, &mut workload, seed).await?;
        points.push(Point::new(*share, &at, &measured)?);
        longest = longest.max(point_began.elapsed());
        eprintln!("{share} % of all accounts read: {:.0} s", point_began.elapsed().as_secs_f64());
    }
    let own = (seed, bench.target.is_own());
    Ok(Outcome::new(scenario, own, &graph, points, Calibration::of(&calibrated)))
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
}
