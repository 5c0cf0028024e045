//! `loadtest fanout`: posts to many followers, and what a delivery costs in several systems.
//!
//! `world` decides who follows whom, `system` is what every system can do, `measure` lets one have its turn, `bench`
//! is the servers. Every system keeps the same homes, of the same accounts, in its own way, on servers that were
//! emptied before.

mod args;
mod books;
mod books_per_node;
mod deliveries;
mod followers;
mod list;
mod measure;
mod memory;
mod outcome;
mod system;
#[cfg(test)]
mod tests;
mod tideline;
mod world;

use std::collections::BTreeMap;

use anyhow::Context as _;

use ::tideline::cluster::Seed;

use crate::bench::{Bench, on_cluster};
use crate::target::PRIMARIES;
use crate::units::FollowersCost;
use crate::{gauges, report};
pub(crate) use args::FanoutArgs;
use measure::Turn;
pub(crate) use memory::{available as available_memory, check_ours as check_memory};
use outcome::Outcome;
use system::Kind;
pub(crate) use system::System;
pub(crate) use tideline::Tideline;
use world::World;
pub(crate) use world::drawn_homes;

/// Replicas of each primary in the rows with replicas.
const REPLICAS: u16 = 1;

/// What the passes over some systems have shown.
#[derive(Debug, Default)]
struct Passes {
    turns: BTreeMap<Kind, Vec<Turn>>,
}

/// Runs the test; true if every home that was looked at was right.
pub(crate) async fn run(args: FanoutArgs) -> anyhow::Result<bool> {
    args.check()?;
    let seed = args.seed.unwrap_or_else(rand::random);
    let world = World::new(&args, seed);
    if args.cluster.is_empty() {
        memory::check(&args, &world)?;
    }
    if let Some(address) = args.metrics {
        gauges::serve(address)?;
    }
    let alone = passes(&args, &world, 0, &args.alone()).await?;
    let with_replicas = match args.with_replicas().as_slice() {
        [] => Passes::default(),
        kinds => passes(&args, &world, REPLICAS, kinds).await?,
    };
    let outcome = Outcome::new(&args, seed, &world, &alone.turns, &with_replicas.turns)?;
    report::tell(&outcome, args.json.as_deref())?;
    Ok(outcome.is_right())
}

/// Posts of accounts with so many followers, with the engine alone.
pub(crate) async fn cost_of_ours(
    cluster: &[Seed],
    followers: u64,
    deliveries: u64,
    rounds: u32,
    seed: u64,
) -> anyhow::Result<FollowersCost> {
    let args = FanoutArgs::of_ours(followers, deliveries, rounds)?;
    args.check()?;
    let world = World::new(&args, seed);
    if cluster.is_empty() {
        memory::check(&args, &world)?;
    }
    let turn = async |bench: &Bench| Box::pin(measure::turn(bench, &args, &world, Kind::Tideline)).await;
    let samples = on_cluster(cluster, (PRIMARIES, 0), turn).await?.samples;
    let middle = |figure: &dyn Fn(&measure::Sample) -> Option<f64>| {
        let all: Option<Vec<f64>> = samples.iter().map(figure).collect();
        crate::stats::median(&all.unwrap_or_default()).context("CPU time cannot be read on this machine")
    };
    Ok(FollowersCost {
        followers,
        server_us: middle(&|sample| sample.server_us)?,
        client_us: middle(&|sample| sample.client_us)?,
        last_seconds: middle(&|sample| Some(sample.times.last.as_secs_f64()))?,
    })
}

/// Lets systems take turns on a cluster.
async fn passes(args: &FanoutArgs, world: &World, replicas: u16, kinds: &[Kind]) -> anyhow::Result<Passes> {
    let turns = async |bench: &Bench| Box::pin(take_turns(args, world, bench, kinds)).await;
    on_cluster(&args.cluster, (PRIMARIES, replicas), turns).await
}

async fn take_turns(
    args: &FanoutArgs,
    world: &World,
    bench: &Bench,
    kinds: &[Kind],
) -> anyhow::Result<Passes> {
    let mut passes = Passes::default();
    for pass in 1..=args.passes {
        for kind in kinds {
            eprintln!("Pass {pass} of {}: {} with {} homes.", args.passes, kind.name(), world.homes);
            let turn = measure::turn(bench, args, world, *kind).await;
            passes.turns.entry(*kind).or_default().push(turn?);
            bench.empty().await?;
        }
    }
    Ok(passes)
}
