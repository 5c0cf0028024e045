//! One system's turn: filled, measured, looked at.

use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use metrics::Histogram;

use super::args::FanoutArgs;
use super::deliveries::{Delivered, Deliveries, Times};
use super::system::{Kind, System};
use super::world::World;
use crate::bench::Bench;
use crate::report::count;
use crate::stats::median;
use crate::{cpu, gauges};

/// Homes looked at after a turn, of the last post's followers.
const LOOKS: usize = 200;

/// What one round has shown.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) deliveries: u64,
    pub(crate) wall: Duration,
    pub(crate) server_us: Option<f64>,
    pub(crate) client_us: Option<f64>,
    /// Medians over the posts of the round.
    pub(crate) times: Times,
}

/// What one turn has shown.
#[derive(Debug, Clone)]
pub(crate) struct Turn {
    pub(crate) samples: Vec<Sample>,
    pub(crate) bytes_per_entry: f64,
    pub(crate) homes_looked_at: u64,
    /// Homes that are not full, or longer than they may be, or without the last post.
    pub(crate) homes_wrong: u64,
}

/// Lets a system have its turn on empty servers.
pub(crate) async fn turn(
    bench: &Bench,
    args: &FanoutArgs,
    world: &World,
    kind: Kind,
) -> anyhow::Result<Turn> {
    let system = kind.open(bench, args).await?;
    let before = bench.used_memory().await?;
    system.fill(world.homes).await?;
    let filled = bench.used_memory().await?.saturating_sub(before);
    for author in 0..world.authors {
        system.follow(author, &world.followers_of(author)).await?;
    }
    bench.wait_for_replicas().await?;

    let lag = gauges::fanout(kind.name());
    let (mut samples, mut last, mut number) = (Vec::new(), (0, 0), 0);
    for nth in 0..=args.rounds {
        let posts: Vec<(u64, u64)> = world.authors_of_round(nth).zip(number..).collect();
        number += posts.len() as u64;
        let (sample, newest) = round(bench, args, &*system, &posts, &lag).await?;
        let expected = world.followers * posts.len() as u64;
        anyhow::ensure!(
            sample.deliveries == expected,
            "{}: {} deliveries were acknowledged and {expected} were to be made",
            kind.name(),
            sample.deliveries
        );
        // The first one is 5 to 20 % dearer, which is not how homes behave that have long been full.
        if nth > 0 {
            samples.push(sample);
        }
        last = (posts[posts.len() - 1].0, newest);
    }
    let (homes_looked_at, homes_wrong) = look(&*system, args, world, kind, last).await?;
    let bytes_per_entry = count(filled) / count(world.homes * kind.cap(args));
    Ok(Turn { samples, bytes_per_entry, homes_looked_at, homes_wrong })
}

/// Posts of these authors with these numbers; also returns the id of the last one.
async fn round(
    bench: &Bench,
    args: &FanoutArgs,
    system: &dyn System,
    posts: &[(u64, u64)],
    lag: &Histogram,
) -> anyhow::Result<(Sample, u64)> {
    let at_once = usize::try_from(args.posts_at_once)?;
    let (cpu_before, began) = (bench.cpu_time().await?, Instant::now());
    let posted: Vec<(Delivered, u64)> = stream::iter(posts)
        .map(|(author, number)| post(system, *author, *number))
        .buffered(at_once)
        .inspect_ok(|(delivered, _)| lag.record(delivered.times[3]))
        .try_collect()
        .await?;
    let wall = began.elapsed();
    // What replicas do is part of the cost, and they may be behind.
    bench.wait_for_replicas().await?;
    let cpu = bench.cpu_time().await?.since(&cpu_before);
    let deliveries = posted.iter().map(|(delivered, _)| delivered.count).sum();
    let sample = Sample {
        deliveries,
        wall,
        server_us: cpu::us_each(cpu.server, deliveries),
        client_us: cpu::us_each(cpu.client, deliveries),
        times: median_times(&posted.iter().map(|(delivered, _)| delivered.times).collect::<Vec<_>>()),
    };
    Ok((sample, posted.last().map_or(0, |(_, id)| *id)))
}

async fn post(system: &dyn System, author: u64, number: u64) -> anyhow::Result<(Delivered, u64)> {
    let deliveries = Deliveries::begin();
    let id = system.post(author, number, &deliveries).await?;
    Ok((deliveries.end(), id))
}

fn median_times(times: &[Times]) -> Times {
    std::array::from_fn(|at| median(&times.iter().map(|times| times[at]).collect::<Vec<_>>()).unwrap_or(0.0))
}

/// Looks into homes that the last post went to: how many, and how many of them are wrong.
pub(crate) async fn look(
    system: &dyn System,
    args: &FanoutArgs,
    world: &World,
    kind: Kind,
    (author, post_id): (u64, u64),
) -> anyhow::Result<(u64, u64)> {
    let allowed = kind.cap(args)..=kind.cap(args) + kind.overhang(args);
    let mut wrong = 0;
    let homes: Vec<u64> = world.followers_of(author).into_iter().take(LOOKS).collect();
    for home in &homes {
        let found = system.look(*home, post_id).await?;
        wrong += u64::from(!found.has_post || !allowed.contains(&found.entries));
    }
    Ok((homes.len() as u64, wrong))
}
