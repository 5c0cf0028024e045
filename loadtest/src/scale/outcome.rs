//! The result: what the JSON holds, and the tables made of it.

use std::fmt;

use serde::Serialize;

use super::ScaleArgs;
use super::modes::Modes;
use super::phases::{Cost, Point};
use crate::fanout::FollowersCost;
use crate::plan::Units;
use crate::report;
use crate::stats::SURE_FROM;

/// A cost is flat, if it grows to no more than so many times from the first number of primaries to the last.
const GROWTH_MAX: f64 = 1.1;

/// Everything that a run tells; loadtest/README.md explains the fields.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Outcome {
    command: &'static str,
    settings: ScaleArgs,
    seed: u64,
    points: Vec<Point>,
    verdicts: Vec<Verdict>,
    followers: Vec<FollowersCost>,
    units: Option<Units>,
    /// The engine's settings that follow from them.
    modes: Option<Modes>,
}

/// What one of these costs on the last point's primaries, held against the first's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Verdict {
    cost: &'static str,
    first: u16,
    last: u16,
    /// Of medians.
    ratio: f64,
    is_flat: bool,
}

impl Verdict {
    /// Of deliveries and of pages, from the fewest primaries to the most; nothing, unless there are two points.
    fn of(points: &[Point]) -> Vec<Self> {
        let by = |point: &&Point| point.primaries;
        let (Some(first), Some(last)) = (points.iter().min_by_key(by), points.iter().max_by_key(by)) else {
            return Vec::new();
        };
        if first.primaries == last.primaries {
            return Vec::new();
        }
        let judge = |cost: &'static str, of: &Cost, to: &Cost| {
            let ratio = of.both_us.median / to.both_us.median;
            Self { cost, first: first.primaries, last: last.primaries, ratio, is_flat: ratio <= GROWTH_MAX }
        };
        vec![judge("delivery", &last.delivery, &first.delivery), judge("page", &last.read, &first.read)]
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cost, first, last, ratio, is_flat } = self;
        let said = if *is_flat { "flat within 10 %" } else { "more than 10 % dearer" };
        let last = report::many(*last, "primary", "primaries");
        write!(f, "A {cost} with {last} costs {ratio:.2} times what it costs with {first}: {said}")
    }
}

impl Outcome {
    pub(super) fn new(
        args: &ScaleArgs,
        seed: u64,
        points: Vec<Point>,
        followers: Vec<FollowersCost>,
        units: Option<Units>,
    ) -> Self {
        Self {
            command: "scale",
            settings: args.clone(),
            seed,
            verdicts: Verdict::of(&points),
            points,
            followers,
            modes: units.as_ref().map(Modes::of),
            units,
        }
    }

    /// What is claimed (costs are flat) and is not so, or could not be judged.
    pub(super) fn unmet(&self) -> Vec<String> {
        if self.verdicts.is_empty() {
            let needed = "the load has to be measured on two numbers of primaries (--parts primaries)";
            return vec![format!("whether costs are flat could not be judged: {needed}")];
        }
        if (self.settings.rounds as usize) < SURE_FROM {
            let rounds = self.settings.rounds;
            return vec![format!(
                "whether costs are flat could not be judged in {rounds} rounds: {SURE_FROM} are needed"
            )];
        }
        self.verdicts.iter().filter(|verdict| !verdict.is_flat).map(ToString::to_string).collect()
    }

    fn points_table(&self) -> comfy_table::Table {
        let mut table = report::new_table();
        table.set_header([
            "primaries",
            "delivery us (servers + client)",
            "to the first",
            "page us (servers + client)",
            "to the first",
        ]);
        let Some(first) = self.points.first() else { return table };
        let told = |cost: &Cost| {
            let (both, server, client) = (cost.both_us, cost.server_us, cost.client_us);
            format!("{:.2} ({:.2}-{:.2}: {server:.2} + {client:.2})", both.median, both.low, both.high)
        };
        let ratio = |of: &Cost, to: &Cost| format!("{:.2} x", of.both_us.median / to.both_us.median);
        for point in &self.points {
            table.add_row([
                point.primaries.to_string(),
                told(&point.delivery),
                ratio(&point.delivery, &first.delivery),
                told(&point.read),
                ratio(&point.read, &first.read),
            ]);
        }
        report::align_figures(&mut table);
        table
    }

    fn followers_table(&self) -> comfy_table::Table {
        let mut table = report::new_table();
        table.set_header(["followers", "delivery us (servers + client)", "last delivery s"]);
        for cost in &self.followers {
            let (server, client) = (cost.server_us, cost.client_us);
            table.add_row([
                cost.followers.to_string(),
                format!("{:.2} ({server:.2} + {client:.2})", server + client),
                format!("{:.3}", cost.last_seconds),
            ]);
        }
        report::align_figures(&mut table);
        table
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Seed {}", self.seed)?;
        if !self.points.is_empty() {
            writeln!(f, "The same network and load\n{}", self.points_table())?;
            self.verdicts.iter().try_for_each(|verdict| writeln!(f, "{verdict}"))?;
        }
        if !self.followers.is_empty() {
            let place = if self.settings.cluster.is_empty() { ", on three primaries" } else { "" };
            writeln!(f, "Posts to so many followers{place}\n{}", self.followers_table())?;
        }
        let Some(units) = &self.units else { return Ok(()) };
        writeln!(
            f,
            "One of each thing, CPU us of servers and client, {} operations at once:",
            units.at_once
        )?;
        for (name, [server, client]) in [
            ("a post, without its deliveries", units.publish_us),
            ("a delivery", units.delivery_us),
            ("a follower without a home", units.skipped_us),
            ("a post that is pulled", units.publish_pulled_us),
            ("a look for news that finds none", units.check_us),
            ("a page of 20, with posts and authors", units.read_us),
            ("a post or an author of a page that is in no cache", units.load_us),
            ("one more pulled author of a page", units.pull_us),
            ("a look at an outbox that is in no cache", units.look_us),
            ("a follow", units.follow_us),
            ("a follow of a pulled author", units.follow_pulled_us),
            ("a home that is filled, for each account followed", units.fill_us),
        ] {
            writeln!(f, "    {name}: {server:.2} + {client:.2}")?;
        }
        let stored = [
            ("an entry of a home", units.home_entry_bytes),
            ("a follow, on one of its two sides", units.edge_bytes),
            ("a pull mark", units.mark_bytes),
            ("an account", units.account_bytes),
            ("a post with its place in the outbox, without its text", units.post_bytes),
        ];
        let on_the_wire = [
            ("a post, without its deliveries and its text", units.publish_wire_bytes),
            ("a delivery", units.delivery_wire_bytes),
            ("a follower without a home", units.skipped_wire_bytes),
            ("a post that is pulled, without its text", units.publish_pulled_wire_bytes),
            ("a page", units.page_wire_bytes),
            ("a follow", units.follow_wire_bytes),
            ("a follow of a pulled author", units.follow_pulled_wire_bytes),
            ("a home that is filled, for each account followed", units.fill_wire_bytes),
        ];
        for (what, rows) in [("bytes", &stored[..]), ("bytes on the wire", &on_the_wire[..])] {
            writeln!(f, "and {what}:")?;
            rows.iter().try_for_each(|(name, bytes)| writeln!(f, "    {name}: {bytes:.1}"))?;
        }
        writeln!(f, "{}", units.told())?;
        let Some(modes) = &self.modes else { return Ok(()) };
        writeln!(
            f,
            "For the cost model, in the file of the engine's settings (deploy/tideline.toml):\n\n{modes}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Estimate;

    fn point(primaries: u16, delivery: f64, read: f64) -> Point {
        let cost = |us: f64| Cost {
            server_us: us / 2.0,
            client_us: us / 2.0,
            wire_bytes: 1.0,
            both_us: Estimate { median: us, low: us, high: us },
        };
        Point { primaries, delivery: cost(delivery), read: cost(read) }
    }

    #[test]
    fn costs_are_held_from_the_first_primaries_to_the_last() {
        let verdicts = Verdict::of(&[point(1, 10.0, 20.0), point(3, 30.0, 5.0), point(9, 10.9, 22.1)]);
        let told: Vec<(&str, bool)> =
            verdicts.iter().map(|verdict| (verdict.cost, verdict.is_flat)).collect();
        assert_eq!(told, [("delivery", true), ("page", false)]);
        assert_eq!(
            verdicts[1].to_string(),
            "A page with 9 primaries costs 1.10 times what it costs with 1: more than 10 % dearer"
        );
        assert_eq!(Verdict::of(&[point(1, 10.0, 20.0)]), []);
        let typed_the_other_way = [point(9, 10.0, 40.0), point(1, 10.0, 20.0)];
        assert!(!Verdict::of(&typed_the_other_way)[1].is_flat);
    }
}
