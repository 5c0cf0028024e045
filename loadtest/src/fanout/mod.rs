//! `loadtest fanout`: posts to many followers, and what a delivery costs in several systems.
//!
//! `world` decides who follows whom, `system` is what every system can do, `measure` lets one have its turn, `bench`
//! is the servers. Every system keeps the same homes, of the same accounts, in its own way, on servers that were
//! emptied before.

mod args;
mod deliveries;
mod measure;
mod others;
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
use crate::common::End;
use crate::memory::{self, bytes_per_home};
use crate::systems::home_posts;
use crate::target::PRIMARIES;
use crate::units::FollowersCost;
pub(crate) use args::FanoutArgs;
use measure::Turn;
use outcome::{Outcome, Row};
use system::Kind;
pub(crate) use system::System;
pub(crate) use tideline::Tideline;
use world::World;
pub(crate) use world::drawn_homes;

/// Replicas of each primary in the rows with replicas.
const REPLICAS: u16 = 1;

/// What the passes over some systems have shown.
type Turns = BTreeMap<Kind, Vec<Turn>>;

/// Refuses what this machine has no memory for.
fn check_memory_of(args: &FanoutArgs, world: &World) -> anyhow::Result<()> {
    let (bytes, name) = world.bytes(args);
    let what = format!("{name} with {} homes takes", world.homes);
    memory::check(bytes, &what, "fewer --followers, fewer --background-homes, or --skip-replicas")
}

/// The same for homes of the engine alone.
pub(crate) fn check_memory(homes: u64, edges: u64) -> anyhow::Result<()> {
    let bytes = homes * bytes_per_home(home_posts().into()) + edges * world::BYTES_PER_EDGE;
    let what = format!("tideline with {homes} homes takes");
    memory::check(bytes, &what, "fewer --followers, fewer --background-homes")
}

/// Runs the test: right, if every home that was looked at was.
pub(crate) async fn run(args: FanoutArgs) -> anyhow::Result<End> {
    args.check()?;
    let seed = args.common.begin()?;
    let world = World::new(&args, seed);
    if args.common.is_own() {
        check_memory_of(&args, &world)?;
    }
    let alone = passes(&args, &world, 0, &args.alone()).await?;
    let with_replicas = match args.with_replicas().as_slice() {
        [] => Turns::new(),
        kinds => passes(&args, &world, REPLICAS, kinds).await?,
    };
    args.common.end(&Outcome::new(&args, seed, &world, &alone, &with_replicas)?)
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
        check_memory_of(&args, &world)?;
    }
    let turn = async |bench: &Bench| Box::pin(measure::turn(bench, &args, &world, Kind::Tideline)).await;
    let row = Row::new(&args, Kind::Tideline, &[on_cluster(cluster, (PRIMARIES, 0), turn).await?])?;
    let known = "CPU time cannot be read on this machine";
    Ok(FollowersCost {
        followers,
        server_us: row.server_cpu_us_per_delivery.context(known)?,
        client_us: row.client_cpu_us_per_delivery.context(known)?,
        last_seconds: row.last_seconds,
    })
}

/// Lets systems take turns on a cluster.
async fn passes(args: &FanoutArgs, world: &World, replicas: u16, kinds: &[Kind]) -> anyhow::Result<Turns> {
    let take_turns = async |bench: &Bench| {
        let mut turns = Turns::new();
        for pass in 1..=args.passes {
            for kind in kinds {
                eprintln!("Pass {pass} of {}: {} with {} homes.", args.passes, kind.name(), world.homes);
                let turn = Box::pin(measure::turn(bench, args, world, *kind)).await?;
                turns.entry(*kind).or_default().push(turn);
                bench.empty().await?;
            }
        }
        Ok(turns)
    };
    on_cluster(&args.common.cluster, (PRIMARIES, replicas), take_turns).await
}
