//! What a run of `compare` has done, as a plan asks for it. Networks and policies are pure, so both are made again.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use serde::Deserialize;
use tideline::Way;

use super::forecast::{Asked, US};
use super::network::Pulled;
use crate::compare::expected;
use crate::graph::Graph;
use crate::report::count;
use crate::scenario::{Loop, Scenario};
use crate::stats::{Spread, median};
use crate::systems::{Contestant, home_posts, ways};
use crate::workload::{Op, Workload};

/// A result of `compare`, as far as it is needed.
#[derive(Debug, Deserialize)]
pub(super) struct Run {
    pub(super) scenario: Scenario,
    seed: u64,
    rows: Vec<Row>,
}

/// A system's figures.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Row {
    pub(super) system: Contestant,
    rounds: usize,
    accounts_pulled: u64,
    /// Runs of earlier versions don't tell.
    #[serde(default)]
    warm_up_operations: Option<u64>,
    operations_per_second: f64,
    pub(super) server_cpu_us_per_operation: Option<f64>,
    pub(super) client_cpu_us_per_operation: Option<f64>,
    pub(super) cpu_us_per_operation: Option<Median>,
    pub(super) memory_bytes: Option<f64>,
    /// Runs of earlier versions don't tell.
    #[serde(default)]
    pub(super) wire_bytes_per_operation: Option<f64>,
    posts_per_page: f64,
    read_p50_us: u64,
    operations: BTreeMap<String, Counts>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Median {
    pub(super) median: f64,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct Counts {
    succeeded: u64,
    /// Runs of earlier versions don't tell.
    #[serde(default)]
    mean_us: Option<f64>,
}

/// Who has a home in a run.
#[derive(Debug, Clone, Copy)]
struct Homes {
    /// How many of a round's operations have one filled, in the round in the middle.
    fills: f64,
    /// The share of all accounts that have one, in the round in the middle.
    middle: f64,
    /// The same when all rounds are over.
    end: f64,
}

/// What a plan is asked for, so that it forecasts this run.
#[derive(Debug)]
pub(super) struct Load {
    /// As it was in the round in the middle, which is what `compare` tells CPU time of.
    pub(super) middle: Asked,
    /// The share of accounts that have a home when memory is measured.
    pub(super) active_at_end: f64,
    pub(super) operations_per_second: f64,
}

/// A network, and whoever posts and reads in it.
#[derive(Debug)]
pub(super) struct World {
    scenario: Scenario,
    graph: Arc<Graph>,
    seed: u64,
}

impl Run {
    pub(super) fn read(file: &Path) -> anyhow::Result<Self> {
        let read = || anyhow::Ok(std::fs::read_to_string(file)?);
        let text = read().with_context(|| format!("{} cannot be read", file.display()))?;
        serde_json::from_str(&text)
            .with_context(|| format!("{} is no result of `loadtest compare --json`", file.display()))
    }

    /// Those that are the engine's.
    pub(super) fn rows(&self) -> anyhow::Result<Vec<&Row>> {
        let rows: Vec<&Row> = self.rows.iter().filter(|row| row.system != Contestant::BooksPull).collect();
        ensure!(!rows.is_empty(), "none of the engine's policies was measured: they are what is forecast");
        Ok(rows)
    }

    /// How many operations were under way on average, of the engine's policies in the one that had the fewest and in the one that had most.
    /// Nothing of an open loop that doesn't tell how long they took.
    pub(super) fn under_way(&self) -> Option<[f64; 2]> {
        let drive = &self.scenario.drive;
        if drive.kind == Loop::Closed {
            return Some([count(drive.at_once as u64); 2]);
        }
        let all: Vec<f64> = self.rows().ok()?.into_iter().map(Row::under_way).collect::<Option<_>>()?;
        Spread::of(&all).map(|Spread { lowest, highest }| [lowest, highest])
    }

    pub(super) fn world(&self) -> anyhow::Result<World> {
        let scenario = self.scenario.clone();
        let graph = Arc::new(scenario.graph.make(self.seed).context("its network cannot be made again")?);
        Ok(World { scenario, graph, seed: self.seed })
    }
}

impl World {
    fn workload(&self) -> Workload {
        Workload::new(self.graph.clone(), &self.scenario.activity, &self.scenario.mix, self.seed)
    }

    /// Who has a home: those who act were given one before, and whoever takes the place of one of them comes without. At the end of
    /// warming up all who act then look at theirs.
    fn homes(&self, warmed_up: usize, rounds: usize, length: usize) -> Homes {
        let mut workload = self.workload();
        let mut has_home = vec![false; self.graph.accounts()];
        workload.active().iter().for_each(|reader| has_home[*reader as usize] = true);
        let mut homes = workload.active().len();
        let mut fills = |operations: &[Op]| {
            let readers = operations.iter().filter_map(|op| match op {
                Op::Check { reader } | Op::Read { reader } => Some(*reader as usize),
                _ => None,
            });
            let before = homes;
            homes += readers.filter(|reader| !std::mem::replace(&mut has_home[*reader], true)).count();
            (before, homes)
        };
        fills(&workload.take(warmed_up));
        let (_, warm) = fills(&workload.looks());
        let of_rounds: Vec<_> = (0..rounds).map(|_| fills(&workload.take(length))).collect();
        let figure = |of: &dyn Fn(f64, f64) -> f64| {
            let rounds =
                of_rounds.iter().map(|(before, after)| of(count(*before as u64), count(*after as u64)));
            median(&rounds.collect::<Vec<f64>>())
        };
        let accounts = count(self.graph.accounts() as u64);
        let end = count(of_rounds.last().map_or(warm, |(_, after)| *after) as u64) / accounts;
        Homes {
            fills: figure(&|before, after| after - before).unwrap_or(0.0) / count(length.max(1) as u64),
            middle: figure(&|before, after| f64::midpoint(before, after) / accounts).unwrap_or(end),
            end,
        }
    }
}

impl Row {
    /// What the plan of this load is asked for.
    pub(super) fn asked(&self, world: &World) -> anyhow::Result<Load> {
        let World { scenario, graph, .. } = world;
        let workload = world.workload();
        let ways = ways(self.system, scenario, graph, &expected(scenario, &workload))?;
        let pulled = ways.iter().filter(|way| **way == Way::Pull).count() as u64;
        ensure!(
            pulled == self.accounts_pulled,
            "{} has pulled {} accounts in this run and would pull {pulled} now: the run is of another version",
            self.system.name(),
            self.accounts_pulled
        );
        let (mix, users) = (&scenario.mix, count(graph.accounts() as u64));
        let all = mix.sum();
        let per_second = |share: f64| self.operations_per_second * share / all;
        let homes = self.homes(world);
        // What was done while it warmed up was not counted, and is stored all the same.
        let with_warm_up = 1.0 + self.warm_up(world) / self.done().max(1.0);
        let done =
            |kind: &str| self.operations.get(kind).map_or(0.0, |of| count(of.succeeded)) * with_warm_up;
        let follows = count(graph.follows() as u64) + done("subscribe") - done("unsubscribe");
        let posts = Posts::of(graph, &ways, &workload.posts_share());
        let history = count(scenario.activity.history);
        let delivered = done("post") * (1.0 - posts.pulled) * posts.mean_followers / users;
        let home = |reader| {
            (count(graph.following(reader).len() as u64) * history + delivered).min(f64::from(home_posts()))
        };
        let readers = u32::try_from(graph.accounts())?;
        let pulls = graph.followers().iter().zip(&ways).filter(|(_, way)| **way == Way::Pull);
        let middle = Asked {
            users,
            posts_per_second: per_second(mix.post),
            // What a post of them all goes to is not asked.
            mean_followers: posts.mean_followers,
            mean_following: follows / users,
            reads_per_second: per_second(mix.check + mix.read),
            posts_per_page: self.posts_per_page,
            follows_per_second: per_second(mix.subscribe + mix.unsubscribe),
            fills_per_second: self.operations_per_second * homes.fills,
            active: homes.middle,
            pulled: Pulled {
                authors: count(pulled),
                per_reader: pulls.map(|(followers, _)| f64::from(*followers)).sum::<f64>() / users,
                posts: posts.pulled,
                mean_followers: posts.mean_followers,
                looks_per_second: None,
            },
            home_posts: (0..readers).map(home).sum::<f64>() / users,
            stored_posts: users * history + done("post"),
            text_bytes: count(scenario.activity.text_chars as u64),
            instances: count(scenario.drive.instances as u64),
            visible_within_s: scenario.policies.visible_within().as_secs_f64(),
            page_s: count(self.read_p50_us) / 1e6,
            // Of these nothing is asked.
            replicas: 0.0,
            utilisation: 1.0,
            memory_per_primary: f64::MAX,
            memory_utilisation: 1.0,
            celebrity_followers: 0.0,
            celebrity_posts_per_day: 0.0,
        };
        Ok(Load { middle, active_at_end: homes.end, operations_per_second: self.operations_per_second })
    }
}

impl Row {
    /// As many as fall due while one takes its time (Little's law).
    fn under_way(&self) -> Option<f64> {
        let took = |of: &Counts| Some(count(of.succeeded) * of.mean_us?);
        let took: f64 = self.operations.values().map(took).sum::<Option<f64>>()?;
        Some(self.operations_per_second * took / self.done().max(1.0) / US)
    }

    /// Operations of all rounds.
    fn done(&self) -> f64 {
        count(self.operations.values().map(|counts| counts.succeeded).sum())
    }

    /// How many were done before, to warm up; about, where that isn't told.
    fn warm_up(&self, world: &World) -> f64 {
        let about = || self.operations_per_second * f64::from(world.scenario.drive.warm_up_seconds);
        self.warm_up_operations.map_or_else(about, count)
    }

    /// Who has had a home while this was measured.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative, and small")]
    fn homes(&self, world: &World) -> Homes {
        let length = self.done() / count(self.rounds.max(1) as u64);
        world.homes(self.warm_up(world) as usize, self.rounds, length as usize)
    }
}

/// Who posts.
struct Posts {
    /// Of those who are pushed, on average over their posts.
    mean_followers: f64,
    /// The share of posts by those who are pulled.
    pulled: f64,
}

impl Posts {
    fn of(graph: &Graph, ways: &[Way], shares: &[f64]) -> Self {
        let (mut pushed, mut all, mut followers) = (0.0, 0.0, 0.0);
        for ((way, share), of) in ways.iter().zip(shares).zip(graph.followers()) {
            all += share;
            if *way == Way::Push {
                pushed += share;
                followers += share * f64::from(*of);
            }
        }
        let mean_followers = if pushed > 0.0 { followers / pushed } else { 0.0 };
        Self { mean_followers, pulled: 1.0 - pushed / all }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_are_filled_for_those_who_come_in_the_place_of_others() {
        let text = |logout| {
            format!(
                "name = 'x'\n[graph]\npreset = 'twip'\naccounts = 300\n[mix]\ncheck = 9\nlogout = {logout}\n"
            )
        };
        let world = |logout| {
            let scenario = Scenario::parse(&text(logout)).unwrap();
            World { graph: Arc::new(scenario.graph.make(1).unwrap()), scenario, seed: 1 }
        };
        let nobody_comes = world(0).homes(100, 3, 100);
        assert!(nobody_comes.fills.abs() < 1e-9, "{nobody_comes:?}");
        // In a round of a thousand a hundred come, a third of whom have been there by its middle, and most of them look.
        let first = world(1).homes(0, 1, 1_000).fills;
        assert!((0.01..0.1).contains(&first), "{first}");
        assert!(world(1).homes(100_000, 1, 100).fills.abs() < 1e-9, "all have been there");
        assert!(world(1).homes(0, 9, 2_000).fills < first, "in the end all have been there");
    }

    #[test]
    fn so_many_have_a_home_as_have_come_until_then() {
        let text = |logout| {
            format!(
                "name = 'x'\n[graph]\npreset = 'twip'\naccounts = 1000\n[mix]\ncheck = 9\nlogout = {logout}\n\
                 [activity]\nactive_percent = 20\n"
            )
        };
        let homes = |logout, length| {
            let scenario = Scenario::parse(&text(logout)).unwrap();
            let graph = Arc::new(scenario.graph.make(1).unwrap());
            World { graph, scenario, seed: 1 }.homes(0, 3, length)
        };
        let none_come = homes(0, 1_000);
        assert!((none_come.middle - 0.2).abs() < 1e-9 && (none_come.end - 0.2).abs() < 1e-9, "{none_come:?}");
        // About 100 come.
        let some = homes(1, 333);
        assert!(0.2 < some.middle && some.middle < some.end && some.end < 0.5, "{some:?}");
        let all = homes(1, 100_000);
        assert!((all.middle - 1.0).abs() < 1e-9 && (all.end - 1.0).abs() < 1e-9, "{all:?}");
    }

    #[test]
    fn posts_count_by_how_often_their_authors_post() {
        // 0 has two followers, 1 has one, 2 has none.
        let graph = Graph::new(3, vec![(1, 0), (2, 0), (0, 1)]);
        let ways = [Way::Push, Way::Push, Way::Pull];
        let posts = Posts::of(&graph, &ways, &[2.0, 0.5, 0.5]);
        assert!((posts.mean_followers - (2.0 * 2.0 + 0.5) / 2.5).abs() < 1e-9);
        assert!((posts.pulled - 0.5 / 3.0).abs() < 1e-9);
        let none = Posts::of(&graph, &[Way::Pull; 3], &[1.0; 3]);
        assert!(none.mean_followers.abs() < 1e-9 && (none.pulled - 1.0).abs() < 1e-9);
    }
}
