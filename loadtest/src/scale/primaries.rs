//! A load on clusters of several sizes, which are all there at the same time and take turns in short rounds, so that
//! the machine's good and bad minutes are those of all: does a delivery, and a page, cost the same on each?

use clap::ValueEnum;
use serde::Serialize;

use super::ScaleArgs;
use super::phases::{At, Cost, Network, check, posts, reads};
use crate::bench::{Bench, on_clusters};
use crate::compare::{Bounds, Contender, Measured, cost_ratio, take_turns, warm_up};
use crate::deadline::Deadline;
use crate::memory;
use crate::report::many;
use crate::scenario::Mix;
use crate::stats::Estimate;
use crate::systems::Contestant;

/// About what a server takes that has nothing yet, ...
const BYTES_PER_SERVER: u64 = 12 << 20;
/// ... the instances of a network, ...
const BYTES_PER_CLUSTER: u64 = 200 << 20;
/// ... an account with its posts and its home, ...
const BYTES_PER_ACCOUNT: u64 = 14_000;
/// ... and a follow, on both sides.
const BYTES_PER_FOLLOW: u64 = 80;

/// How the load goes along with the primaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(super) enum Load {
    /// The same operations at once for each primary, of the same network: that of the largest cluster
    PerPrimary,
    /// The same operations at once on all clusters, of the same network: those of the largest one
    Same,
    /// The same for each primary: a network and operations at once that grow along with the cluster
    Growing,
}

/// On so many primaries.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Point {
    pub(super) primaries: u16,
    pub(super) accounts: usize,
    pub(super) rounds: usize,
    /// With its share of the post's own part.
    pub(super) delivery: Cost,
    pub(super) page: Cost,
    /// What these cost in those of the fewest primaries, round by round.
    pub(super) delivery_ratio: Estimate,
    pub(super) page_ratio: Estimate,
}

impl ScaleArgs {
    /// Of clusters, ascending.
    fn sizes(&self) -> Vec<u16> {
        let mut sizes = self.primaries.clone();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// A larger network costs more by itself, since less of it fits a processor's caches.
    fn network_on(&self, primaries: u16) -> Network {
        let most = self.most_primaries();
        let (peopled_for, busy_for) = match self.load {
            Load::PerPrimary => (most, primaries),
            Load::Same => (most, most),
            Load::Growing => (primaries, primaries),
        };
        Network { at_once: self.at_once * u32::from(busy_for), ..self.network(peopled_for) }
    }

    /// About what all clusters and their instances take.
    fn bytes_of_all(&self, sizes: &[u16]) -> u64 {
        let bytes = |primaries: &u16| {
            let accounts = u64::from(self.network_on(*primaries).accounts);
            let network = accounts * (BYTES_PER_ACCOUNT + u64::from(self.mean) * BYTES_PER_FOLLOW);
            network + u64::from(*primaries) * BYTES_PER_SERVER + BYTES_PER_CLUSTER
        };
        sizes.iter().map(bytes).sum()
    }
}

/// A delivery and a page on clusters of all these sizes.
pub(super) async fn points(args: &ScaleArgs, seed: u64, until: Deadline) -> anyhow::Result<Vec<Point>> {
    let sizes = args.sizes();
    let what = "all clusters are there at the same time, which takes";
    memory::check(args.bytes_of_all(&sizes), what, "fewer or smaller --primaries, or fewer --accounts")?;
    on_clusters(&sizes, async |benches| {
        let mut all = Vec::with_capacity(benches.len());
        for (bench, primaries) in benches.iter().zip(&sizes) {
            let network = args.network_on(*primaries);
            all.push(At::load(bench, network, Contestant::PushOnly, seed, until).await?);
            eprintln!("{}: loaded.", many(*primaries, "primary", "primaries"));
        }
        // Before anything is posted: pages show posts that are in the caches.
        let pages = measure(&all, reads(), seed, until).await;
        let posted = match pages.is_ok() {
            true => measure(&all, posts(), seed, until).await,
            false => Ok(Vec::new()),
        };
        // Their engines end before their servers do.
        for at in &all {
            at.stopped().await;
        }
        let (pages, posted) = (pages?, posted?);
        let point = |number: usize| {
            let (page, delivery) = (&pages[number], &posted[number]);
            let (mean, first_mean) = (all[number].mean(), all[0].mean());
            let known = "CPU time cannot be read on this machine";
            let ratio = |of: &Measured, to| cost_ratio(of, to).ok_or_else(|| anyhow::anyhow!(known));
            anyhow::Ok(Point {
                primaries: sizes[number],
                accounts: all[number].accounts(),
                rounds: delivery.samples.len().min(page.samples.len()),
                delivery: Cost::of(delivery)?.by(mean),
                page: Cost::of(page)?,
                delivery_ratio: ratio(delivery, &posted[0])?.by(mean / first_mean),
                page_ratio: ratio(page, &pages[0])?,
            })
        };
        (0..sizes.len()).map(point).collect()
    })
    .await
}

/// All do the same operations, and take turns.
async fn measure(all: &[At<'_>], mix: Mix, seed: u64, until: Deadline) -> anyhow::Result<Vec<Measured>> {
    let mut contenders: Vec<Contender> = all.iter().flat_map(|at| at.contenders(mix)).collect();
    let benches: Vec<&Bench> = all.iter().map(|at| at.bench).collect();
    let rounds = all.first().map_or(0, At::rounds);
    let warm = warm_up(&mut contenders).await?;
    let bounds = Bounds { begun_until: Some(until), ..Bounds::default() };
    let measured = take_turns(&mut contenders, &benches, (rounds, warm), seed, bounds).await?;
    measured.iter().try_for_each(|one| check(one, rounds))?;
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Typed {
        #[command(flatten)]
        args: ScaleArgs,
    }

    #[test]
    fn clusters_have_the_load_of_the_largest_one_or_one_that_grows_along() {
        let of = |typed: &str| {
            let line = format!("scale --primaries 9,1,3,3 --accounts 200 --at-once 10 {typed}");
            let args = Typed::parse_from(line.split_whitespace()).args;
            let sizes = args.sizes();
            let networks = sizes.iter().map(|size| args.network_on(*size));
            let loads: Vec<_> = networks.map(|network| (network.accounts, network.at_once)).collect();
            (loads, args.bytes_of_all(&sizes))
        };
        let ((each, _), (same, more), (growing, less)) = (of(""), of("--load same"), of("--load growing"));
        assert_eq!(each, [(1_800, 10), (1_800, 30), (1_800, 90)]);
        assert_eq!(same, [(1_800, 90); 3]);
        assert_eq!(growing, [(200, 10), (600, 30), (1_800, 90)]);
        assert!(less < more, "{less} {more}");
    }
}
