//! `loadtest scale`: a load on more and more primaries, and posts to more and more followers: does one
//! delivery, and one page, cost the same? And what one of each thing costs here, for `loadtest plan --units`.

mod differences;
mod modes;
mod outcome;
mod phases;
mod primaries;

use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::common::{Common, End};
use crate::deadline::Deadline;
use crate::fanout;
use crate::typed::whole;
use outcome::Outcome;
use phases::Network;
use primaries::Load;

/// After this long nothing more is begun: what is missing is left out, and it says so. Of a measurement that has begun
/// there is one round at least.
const LONGEST: Duration = Duration::from_secs(30 * 60);

/// What can be measured by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(super) enum Part {
    /// A load on more and more primaries
    Primaries,
    /// Posts to more and more followers
    Followers,
    /// What one of each thing costs
    Units,
}

/// A load on 1, 3, 6 and 9 primaries in turns, and posts to 1,000 and up to millions of followers: what a delivery
/// and a page cost; and the costs that `plan --units` takes.
#[derive(Debug, Clone, Args, Serialize)]
pub(crate) struct ScaleArgs {
    /// Only these, separated by commas
    #[arg(long, value_name = "PART,...", value_enum, value_delimiter = ',')]
    #[arg(default_values_t = Part::value_variants().to_vec())]
    parts: Vec<Part>,
    /// Clusters of so many primaries, which are all there at the same time
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = [1, 3, 6, 9])]
    #[arg(value_parser = whole::<u16>(1..=32))]
    primaries: Vec<u16>,
    /// How the load goes along with the primaries
    #[arg(long, value_enum, default_value_t = Load::PerPrimary)]
    load: Load,
    /// Followers of the accounts whose posts are measured on three primaries
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = whole::<u64>(1..=5_000_000))]
    #[arg(default_values_t = [1_000, 10_000, 100_000, 1_000_000])]
    followers: Vec<u64>,
    /// Deliveries of a round of these posts, at least
    #[arg(long, default_value_t = 50_000, value_parser = whole::<u64>(1..=10_000_000))]
    deliveries: u64,
    /// Accounts for each primary of the largest cluster (with `--load growing` of each cluster), and of the three of
    /// `units`
    #[arg(long, default_value_t = 1_000, value_parser = whole::<u32>(200..=100_000))]
    accounts: u32,
    /// Followers of each of them
    #[arg(long, default_value_t = 100, value_parser = whole::<u32>(10..=1_000))]
    mean: u32,
    /// Operations under way at once for each of these primaries
    #[arg(long, default_value_t = 64, value_parser = whole::<u32>(1..=10_000))]
    at_once: u32,
    /// Measured rounds of each
    #[arg(long, default_value_t = 12, value_parser = whole::<u32>(2..=100))]
    pub(super) rounds: u32,
    /// About how long a round takes
    #[arg(long, default_value_t = 1, value_parser = whole::<u32>(1..=60))]
    round_seconds: u32,
    #[command(flatten)]
    #[serde(skip)]
    common: Common,
}

impl ScaleArgs {
    fn most_primaries(&self) -> u16 {
        self.primaries.iter().copied().max().unwrap_or(1)
    }

    fn network(&self, primaries: u16) -> Network {
        Network {
            accounts: self.accounts * u32::from(primaries),
            mean: self.mean,
            history: phases::HISTORY,
            active: true,
            is_cached: true,
            at_once: self.at_once * u32::from(primaries),
            rounds: self.rounds,
            round_seconds: self.round_seconds,
        }
    }
}

/// What there is still time for, and whether anything was left out.
struct Clock {
    began: Instant,
    until: Deadline,
    is_whole: bool,
}

impl Clock {
    /// What comes of this; nothing, if it is too late or if it fails: what was measured until then isn't lost for want
    /// of memory, say. Both is said.
    async fn begin<T>(&mut self, what: &str, work: impl Future<Output = anyhow::Result<T>>) -> Option<T> {
        let done = if self.until.allows(Duration::ZERO) {
            eprintln!("{:.0} s after the start: {what}.", self.began.elapsed().as_secs_f64());
            work.await.inspect_err(|e| eprintln!("Left out: {what}: {e:#}")).ok()
        } else {
            eprintln!("{} minutes are over. Left out: {what}.", LONGEST.as_secs() / 60);
            None
        };
        self.is_whole &= done.is_some();
        done
    }
}

/// Runs the test.
pub(crate) async fn run(args: ScaleArgs) -> anyhow::Result<End> {
    let has = |part| args.parts.contains(&part);
    anyhow::ensure!(
        args.common.is_own() || !has(Part::Primaries),
        "a cluster that is there has as many primaries as it has: leave --cluster out, and TIDELINE_CLUSTER unset, or \
         ask for `--parts followers,units`"
    );
    let seed = args.common.begin()?;
    let mut clock = Clock { began: Instant::now(), until: Deadline::after(LONGEST), is_whole: true };
    let mut points = Vec::new();
    if has(Part::Primaries) {
        let measured = Box::pin(primaries::points(&args, seed, clock.until));
        let measured = clock.begin(&format!("the load on {:?} primaries", args.primaries), measured).await;
        points.extend(measured.into_iter().flatten());
    }
    let mut units = None;
    if has(Part::Units) {
        let measured = Box::pin(phases::units(&args, seed, clock.until));
        units = clock.begin("what one of each thing costs", measured).await;
    }
    let mut followers = Vec::new();
    for count in args.followers.iter().copied().filter(|_| has(Part::Followers)) {
        let cost = fanout::cost_of_ours(&args.common.cluster, count, args.deliveries, args.rounds, seed);
        followers.extend(clock.begin(&format!("posts to {count} followers"), Box::pin(cost)).await);
    }
    let is_empty = points.is_empty() && units.is_none() && followers.is_empty();
    anyhow::ensure!(!is_empty, "nothing was measured: why is said above");
    args.common.end(&Outcome::new(&args, (seed, clock.is_whole), points, followers, units))
}
