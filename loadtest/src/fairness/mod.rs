//! `loadtest fairness`: posts of small accounts while a post of a very large one is under way, and while none is.

mod outcome;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;
use tideline::Engine;
use tideline::post::Draft;

use crate::arrivals::Arrivals;
use crate::bench::{Bench, on_cluster};
use crate::common::{Common, End};
use crate::drive::{self, Perform};
use crate::fanout::{self, System as _, Tideline, drawn_homes};
use crate::gauges;
use crate::members::account_id;
use crate::session::kind;
use crate::tally::{Summary, Tally};
use crate::target::PRIMARIES;
use crate::typed::whole;
use outcome::Outcome;

/// The large account, and the first small one.
const LARGE: u64 = 0;
const FIRST_SMALL: u64 = 1;
/// A small post is given up after this long, and a large one after that.
const SMALL_MAX: Duration = Duration::from_secs(120);
const LARGE_MAX: Duration = Duration::from_secs(600);
/// What is under way at the end has so long to end.
const STOPPING_MAX: Duration = Duration::from_secs(30);
const AT_ONCE: u32 = 10_000;

/// Small posts going on while one of a million deliveries runs: how long they take until everybody has them, with it
/// and without it.
#[derive(Debug, Clone, Args, Serialize)]
pub(crate) struct FairnessArgs {
    /// Followers of the large account
    #[arg(long, default_value_t = 1_000_000, value_parser = whole::<u64>(1_000..=5_000_000))]
    followers: u64,
    /// Followers of each small account
    #[arg(long, default_value_t = 200, value_parser = whole::<u64>(1..=1_000))]
    small_followers: u64,
    /// Small accounts
    #[arg(long, default_value_t = 200, value_parser = whole::<u64>(1..=100_000))]
    small_accounts: u64,
    /// Homes beyond those of the large account's followers, just as full; small accounts have followers among all
    #[arg(long, default_value_t = 10_000, value_parser = whole::<u64>(0..=5_000_000))]
    background_homes: u64,
    /// Small posts that fall due in a second
    #[arg(long, default_value_t = 50, value_parser = whole::<u32>(1..=10_000))]
    rate: u32,
    /// How long small posts go on alone in each round; beside a large one as long as that takes
    #[arg(long, default_value_t = 5, value_parser = whole::<u32>(1..=600))]
    seconds: u32,
    /// Rounds: so often the large account posts. Of fewer than six nobody can say how sure the ratios are
    #[arg(long, default_value_t = 6, value_parser = whole::<u32>(1..=100))]
    rounds: u32,
    #[command(flatten)]
    #[serde(skip)]
    common: Common,
}

impl FairnessArgs {
    fn homes(&self) -> u64 {
        self.followers + self.background_homes
    }
}

/// Small posts, and how long they take.
struct Small {
    engine: Engine,
    accounts: u64,
    followers: u64,
    all: Sides,
    rounds: Vec<Sides>,
}

/// Small posts of a stretch of time, alone and beside a large one.
struct Sides([Tally; 2]);

impl Sides {
    fn new() -> Self {
        Self([Tally::new(), Tally::new()])
    }

    fn of(&self, due: Due) -> &Tally {
        &self.0[usize::from(due.is_beside)]
    }

    fn summaries(&self) -> [Summary; 2] {
        self.0.each_ref().map(Tally::summary)
    }
}

/// A post that falls due.
#[derive(Debug, Clone, Copy)]
struct Due {
    number: u64,
    round: usize,
    /// While a large one is under way.
    is_beside: bool,
}

impl Due {
    /// As metrics name it.
    fn system(self) -> &'static str {
        if self.is_beside { "small_beside" } else { "small_alone" }
    }
}

impl Small {
    /// Where it counts: among all, and in its round.
    fn tallies(&self, due: Due) -> [&Tally; 2] {
        [self.all.of(due), self.rounds[due.round].of(due)]
    }
}

impl Perform<Due> for Small {
    async fn perform(&self, due: Due, at: Instant) {
        let author = FIRST_SMALL + due.number % self.accounts;
        let posted = tokio::time::timeout(SMALL_MAX, post(&self.engine, author)).await;
        let error = match posted {
            Ok(Ok(reached)) if reached == self.followers => None,
            Ok(Ok(reached)) => Some(format!("reached_{reached}")),
            Ok(Err(e)) => Some(kind(&e)),
            Err(_) => Some("given_up".to_owned()),
        };
        let took = at.elapsed();
        gauges::fanout(due.system()).record(took);
        self.tallies(due).iter().for_each(|tally| tally.ended(took, error.clone()));
    }

    fn dropped(&self, due: &Due) {
        gauges::dropped(due.system(), "post").increment(1);
        self.tallies(*due).iter().for_each(|tally| tally.dropped());
    }
}

/// Posts, and waits until everybody has it. Tells how many that are.
async fn post(engine: &Engine, author: u64) -> tideline::Result<u64> {
    let mut published = engine.publish(account_id(author)?, &Draft::text("a post")).await?;
    Ok(published.delivery.all().await?.delivered)
}

/// Runs the test.
pub(crate) async fn run(args: FairnessArgs) -> anyhow::Result<End> {
    anyhow::ensure!(
        args.small_followers <= args.homes(),
        "--small-followers {} are more than there are homes: --followers and --background-homes",
        args.small_followers
    );
    if args.common.is_own() {
        fanout::check_memory(args.homes(), args.followers + args.small_accounts * args.small_followers)?;
    }
    let seed = args.common.begin()?;
    let measure = async |bench: &Bench| Box::pin(measure(&args, bench, seed)).await;
    let outcome = on_cluster(&args.common.cluster, (PRIMARIES, 0), measure).await?;
    args.common.end(&outcome)
}

async fn measure(args: &FairnessArgs, bench: &Bench, seed: u64) -> anyhow::Result<Outcome> {
    let system = Tideline::open(bench).await?;
    let outcome = rounds(args, &system, seed).await;
    // What was given up would write keys after ours were removed.
    let stopped = system.engine().shutdown(STOPPING_MAX).await;
    let outcome = outcome?;
    stopped?;
    Ok(outcome)
}

async fn rounds(args: &FairnessArgs, system: &Tideline<'_>, seed: u64) -> anyhow::Result<Outcome> {
    let homes = args.homes();
    eprintln!("Filling {homes} homes; seed {seed}.");
    system.fill(homes).await?;
    system.follow(LARGE, &drawn_homes(seed, LARGE, homes, args.followers)).await?;
    for author in FIRST_SMALL..FIRST_SMALL + args.small_accounts {
        system.follow(author, &drawn_homes(seed, author, homes, args.small_followers)).await?;
    }
    let small = Arc::new(Small {
        engine: system.engine(),
        accounts: args.small_accounts,
        followers: args.small_followers,
        all: Sides::new(),
        rounds: (0..args.rounds).map(|_| Sides::new()).collect(),
    });
    // Not measured: what is new is dearer.
    large(&small.engine, args.followers).await?;
    let mut large_s = Vec::new();
    for round in 0..small.rounds.len() {
        eprintln!("Round {} of {}.", round + 1, args.rounds);
        large_s.push(one_round(args, &small, round, seed).await?.as_secs_f64());
    }
    let by_round: Vec<[Summary; 2]> = small.rounds.iter().map(Sides::summaries).collect();
    Outcome::new(args, seed, &large_s, small.all.summaries(), &by_round)
}

/// Small posts alone, then beside a large one. Tells how long that took.
async fn one_round(
    args: &FairnessArgs,
    small: &Arc<Small>,
    round: usize,
    seed: u64,
) -> anyhow::Result<Duration> {
    let alone = Duration::from_secs(args.seconds.into());
    let seed = seed ^ (round as u64) << 1;
    go_on(small, args.rate, seed, (round, alone), None).await?;
    let is_over = Arc::new(AtomicBool::new(false));
    let large = async {
        let took = large(&small.engine, args.followers).await;
        is_over.store(true, Ordering::Relaxed);
        took
    };
    let beside = go_on(small, args.rate, seed ^ 1, (round, LARGE_MAX), Some(is_over.clone()));
    let (large, beside) = tokio::join!(large, beside);
    beside?;
    large
}

/// A post of the large account: how long until its last delivery.
async fn large(engine: &Engine, followers: u64) -> anyhow::Result<Duration> {
    let began = Instant::now();
    let posted = tokio::time::timeout(LARGE_MAX, post(engine, LARGE)).await;
    let reached = posted.context("the large post has not reached everybody in ten minutes")??;
    anyhow::ensure!(reached == followers, "the large post has reached {reached} of {followers}");
    let took = began.elapsed();
    gauges::fanout("large").record(took);
    Ok(took)
}

/// Small posts for so long at most; beside a large one until that is over.
async fn go_on(
    small: &Arc<Small>,
    rate: u32,
    seed: u64,
    (round, longest): (usize, Duration),
    is_over: Option<Arc<AtomicBool>>,
) -> anyhow::Result<()> {
    let is_beside = is_over.is_some();
    let goes_on = move || is_over.as_ref().is_none_or(|is_over| !is_over.load(Ordering::Relaxed));
    // Asked one post ahead: its time has not come yet.
    let due = Arrivals::new(rate, u32::MAX, seed).take_while(move |at| *at < longest && goes_on());
    let posts = due.zip(0..).map(move |(at, number)| (at, Due { number, round, is_beside }));
    drive::open(small, posts, longest, AT_ONCE, SMALL_MAX).await?;
    Ok(())
}
