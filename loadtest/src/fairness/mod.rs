//! `loadtest fairness`: posts of small accounts while a post of a very large one is under way, and while none is.

mod outcome;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::{Args, value_parser};
use serde::Serialize;
use tideline::Engine;
use tideline::post::Draft;

use crate::arrivals::Arrivals;
use crate::bench::Bench;
use crate::drive::{self, Perform};
use crate::fanout::{System as _, Tideline, drawn_homes};
use crate::members::account_id;
use crate::report;
use crate::tally::Tally;
use crate::target::PRIMARIES;
use outcome::Outcome;

/// The large account, and the first small one.
const LARGE: u64 = 0;
const FIRST_SMALL: u64 = 1;
/// Homes beyond those of the large account's followers.
const BACKGROUND: u64 = 10_000;
/// A post is given up after this long.
const POST_MAX: Duration = Duration::from_secs(120);
const AT_ONCE: u32 = 10_000;

/// Small posts going on while one of a million deliveries runs: how long they take until everybody has them, with it and
/// without it.
#[derive(Debug, Clone, Args, Serialize)]
pub(crate) struct FairnessArgs {
    /// Followers of the large account
    #[arg(long, default_value_t = 1_000_000, value_parser = value_parser!(u64).range(1_000..=5_000_000))]
    followers: u64,
    /// Followers of each small account
    #[arg(long, default_value_t = 200, value_parser = value_parser!(u64).range(1..=10_000))]
    small_followers: u64,
    /// Small accounts
    #[arg(long, default_value_t = 200, value_parser = value_parser!(u64).range(1..=100_000))]
    small_accounts: u64,
    /// Small posts that fall due in a second
    #[arg(long, default_value_t = 50, value_parser = value_parser!(u32).range(1..=10_000))]
    rate: u32,
    /// How long small posts go on alone, and how often: so often the large account posts, too
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u32).range(1..=600))]
    seconds: u32,
    /// How often
    #[arg(long, default_value_t = 3, value_parser = value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// The same seed draws the same followers [default: a new one each time, shown]
    #[arg(long, value_name = "N")]
    #[serde(skip)]
    seed: Option<u64>,
    /// Also write the result to this file as JSON; loadtest/README.md explains the fields
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    json: Option<PathBuf>,
}

/// Small posts, and how long they take.
struct Small {
    engine: Engine,
    accounts: u64,
    alone: Tally,
    beside: Tally,
    is_beside: AtomicBool,
}

impl Small {
    async fn post(&self, author: u64) -> anyhow::Result<u64> {
        let mut published = self.engine.publish(account_id(author)?, &Draft::text("a post")).await?;
        Ok(published.delivery.all().await?.delivered)
    }

    fn tally(&self) -> &Tally {
        if self.is_beside.load(Ordering::Relaxed) { &self.beside } else { &self.alone }
    }
}

impl Perform<u64> for Small {
    async fn perform(&self, number: u64, due: Instant) {
        // Counted where it began.
        let tally = self.tally();
        let posted = tokio::time::timeout(POST_MAX, self.post(FIRST_SMALL + number % self.accounts)).await;
        let error = match posted {
            Ok(Ok(_)) => None,
            Ok(Err(e)) => Some(format!("{e}")),
            Err(_) => Some("given_up".to_owned()),
        };
        tally.ended(due.elapsed(), error);
    }

    fn dropped(&self, _: &u64) {
        self.tally().dropped();
    }
}

/// Runs the test; true if every post has reached everybody.
pub(crate) async fn run(args: FairnessArgs) -> anyhow::Result<bool> {
    let seed = args.seed.unwrap_or_else(rand::random);
    let bench = Bench::open(&[], PRIMARIES, 0).await?;
    let outcome = Box::pin(measure(&args, &bench, seed)).await;
    let closed = bench.close().await;
    let outcome = outcome?;
    closed?;
    report::tell(&outcome, args.json.as_deref())?;
    Ok(outcome.is_right())
}

async fn measure(args: &FairnessArgs, bench: &Bench, seed: u64) -> anyhow::Result<Outcome> {
    let homes = args.followers + BACKGROUND;
    eprintln!("Filling {homes} homes; seed {seed}.");
    let system = Tideline::open(bench).await?;
    system.fill(homes).await?;
    system.follow(LARGE, &drawn_homes(seed, LARGE, homes, args.followers)).await?;
    for author in FIRST_SMALL..FIRST_SMALL + args.small_accounts {
        system.follow(author, &drawn_homes(seed, author, homes, args.small_followers)).await?;
    }
    let small = Arc::new(Small {
        engine: system.engine(),
        accounts: args.small_accounts,
        alone: Tally::new(),
        beside: Tally::new(),
        is_beside: false.into(),
    });
    // Not measured: what is new is dearer.
    small.post(LARGE).await?;
    let mut large_s = Vec::new();
    for round in 0..args.rounds {
        let alone = Duration::from_secs(args.seconds.into());
        go_on(&small, args, alone, seed ^ u64::from(round)).await?;
        small.is_beside.store(true, Ordering::Relaxed);
        let began = Instant::now();
        let large = async {
            let delivered = small.post(LARGE).await?;
            anyhow::ensure!(delivered == args.followers, "the large post has reached {delivered}");
            Ok(began.elapsed())
        };
        // About as long as the large one takes; what is due later than that is left out.
        let longest = large_s.last().map_or(alone, |seconds| Duration::from_secs_f64(*seconds));
        let (large, small_ones) = tokio::join!(large, go_on(&small, args, longest, seed ^ u64::from(!round)));
        small_ones?;
        large_s.push(large?.as_secs_f64());
        small.is_beside.store(false, Ordering::Relaxed);
    }
    Outcome::new(args, seed, &large_s, small.alone.summary(), small.beside.summary())
}

/// Small posts for a while.
async fn go_on(small: &Arc<Small>, args: &FairnessArgs, length: Duration, seed: u64) -> anyhow::Result<()> {
    let due = Arrivals::new(args.rate, u32::MAX, seed).take_while(move |at| *at < length);
    drive::open(small, due.zip(0..), length, AT_ONCE, POST_MAX).await?;
    Ok(())
}
