//! `loadtest sets`: follower sets of very different sizes under follows, unfollows and reads, then compared.
//!
//! `plan` decides what is done and when, `perform` does it; `record` holds what was acknowledged, `compare`
//! holds the sets against it. Plan, record and comparison do no I/O.

mod args;
mod compare;
mod outcome;
mod perform;
mod plan;
mod record;
mod stock;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tideline::{Store, StoreOptions};

use crate::arrivals::Arrivals;
use crate::drive;
use crate::leftover::{self, Leftover, new_prefix};
use crate::power_law::PowerLaw;
use crate::report;
use crate::target::{PRIMARIES, Target};
pub(crate) use args::SetsArgs;
use outcome::Outcome;
use perform::Performer;
use plan::{Plan, start_sizes};

/// Replicas of each primary, where the cluster is our own.
const REPLICAS: u16 = 1;
/// Filling and comparing are given up after this long each.
const STOCK_MAX: Duration = Duration::from_secs(600);

/// Runs the test; true if nothing was wrong.
pub(crate) async fn run(args: SetsArgs) -> anyhow::Result<bool> {
    args.check()?;
    let target = Target::open(args.cluster.clone(), (PRIMARIES, REPLICAS).into()).await?;
    let outcome = load(&args, &target).await;
    // Also after a failure: what we started goes, and its end is not what the caller wants to hear of then.
    let closed = target.close().await;
    let outcome = outcome?;
    closed?;
    report::tell(&outcome, args.json.as_deref())?;
    Ok(outcome.is_right())
}

async fn load(args: &SetsArgs, target: &Target) -> anyhow::Result<Outcome> {
    let seed = args.seed.unwrap_or_else(rand::random);
    let prefix = new_prefix(leftover::PREFIX);
    let options = StoreOptions {
        prefix: prefix.clone(),
        buckets: Some(args.buckets),
        ..StoreOptions::new(target.seeds())
    };
    let store = Store::open(options).await?;
    for finding in store.router().findings().iter().filter(|_| !target.is_own()) {
        eprintln!("Note: {finding}");
    }
    if !target.is_own() {
        Leftover::new(&target.seeds(), &prefix).tell_that_they_stay();
    }
    let law = PowerLaw::new(args.accounts, args.followers);
    let changes = u64::from(args.rate) * u64::from(args.seconds) * u64::from(args.writers_percent) / 100;
    let start = start_sizes(&law, store.sets().spread_at(), changes);
    let performer = Arc::new(Performer::new(perform::open_sets(&store, start.len())?));

    let members: u64 = start.iter().sum();
    eprintln!("Filling {} sets with {members} followers; seed {seed}.", start.len());
    tokio::time::timeout(STOCK_MAX, stock::fill(&performer, &start))
        .await
        .context("filling took too long")??;
    let spread_before = stock::count_spread(&performer).await?;

    eprintln!("Running {} operations a second for {} s.", args.rate, args.seconds);
    let arrivals = Arrivals::new(args.rate, args.seconds, seed);
    // Another stream of random numbers than the arrivals', of the same seed.
    let plan = Plan::new(law, start, args.writers_percent, arrivals, seed ^ u64::MAX);
    let (cpu_before, began) = (target.cpu_time(), Instant::now());
    let length = Duration::from_secs(args.seconds.into());
    let punctuality = {
        let planned = plan.map(|planned| (planned.at, planned));
        drive::open(&performer, planned, length, args.concurrency, perform::OPERATION_MAX).await?
    };
    let wall = began.elapsed();
    let cpu = target.cpu_time().since(&cpu_before);

    eprintln!("Comparing every set with what was acknowledged.");
    let differences = tokio::time::timeout(STOCK_MAX, stock::compare(&performer))
        .await
        .context("comparing took too long")??;
    let spread_after = stock::count_spread(&performer).await?;
    let spread = [spread_before, spread_after];
    Outcome::new(args, seed, &performer, punctuality, (wall, cpu), spread, differences)
}
