//! The result: what the JSON holds, and the tables made of it.

use std::fmt;

use serde::Serialize;

use super::ScaleArgs;
use super::modes::Modes;
use super::phases::Cost;
use super::primaries::{Load, Point};
use crate::judgement::{Judgement, too_few};
use crate::report;
use crate::stats::Estimate;
use crate::units::{FollowersCost, Units};

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
    /// Round by round.
    ratio: Estimate,
    rounds: usize,
    /// Whether it is more than 10 % dearer.
    judgement: Judgement,
}

impl Verdict {
    /// Of deliveries and of pages, from the fewest primaries to the most; nothing, unless there are two points.
    fn of(points: &[Point]) -> Vec<Self> {
        let [first, .., last] = points else { return Vec::new() };
        let judge = |(cost, ratio)| Self {
            cost,
            first: first.primaries,
            last: last.primaries,
            ratio,
            rounds: last.rounds,
            judgement: Judgement::of(&ratio, GROWTH_MAX, last.rounds),
        };
        [("delivery", last.delivery_ratio), ("page", last.page_ratio)].map(judge).into()
    }

    /// What is claimed, if it is not so, or could not be judged at all.
    fn unmet(&self) -> Option<String> {
        match self.judgement {
            Judgement::TooFewRounds => {
                Some(too_few(&format!("whether a {} costs the same", self.cost), self.rounds))
            }
            Judgement::Worse => Some(self.to_string()),
            Judgement::NotWorse | Judgement::Open => None,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cost, first, last, ratio: Estimate { median, low, high }, judgement, .. } = self;
        let said = match judgement {
            Judgement::Worse => "more than 10 % dearer".to_owned(),
            Judgement::NotWorse => "flat within 10 %".to_owned(),
            unsure => unsure.unsure(self.rounds),
        };
        let last = report::many(*last, "primary", "primaries");
        write!(
            f,
            "A {cost} with {last} costs {median:.2} ({low:.2}-{high:.2}) times what it costs with {first}: {said}"
        )
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
        self.verdicts.iter().filter_map(Verdict::unmet).collect()
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
        let told = |cost: &Cost| {
            let (both, server, client) = (cost.both_us, cost.server_us, cost.client_us);
            format!("{:.2} ({:.2}-{:.2}: {server:.2} + {client:.2})", both.median, both.low, both.high)
        };
        let ratio = |of: Estimate| format!("{:.2} ({:.2}-{:.2})", of.median, of.low, of.high);
        for point in &self.points {
            table.add_row([
                point.primaries.to_string(),
                told(&point.delivery),
                ratio(point.delivery_ratio),
                told(&point.page),
                ratio(point.page_ratio),
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
            let load = match self.settings.load {
                Load::PerPrimary => {
                    "The same network, and the same operations at once for each primary, in turns"
                }
                Load::Same => "The same network and operations at once, in turns",
                Load::Growing => "The same network and operations at once for each primary, in turns",
            };
            writeln!(f, "{load}\n{}", self.points_table())?;
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

    fn point(primaries: u16, delivery: Estimate, page: Estimate) -> Point {
        let both_us = Estimate { median: 1.0, low: 1.0, high: 1.0 };
        let cost = Cost { server_us: 0.5, client_us: 0.5, wire_bytes: 1.0, both_us };
        let (delivery_ratio, page_ratio) = (delivery, page);
        Point { primaries, accounts: 1, rounds: 6, delivery: cost, page: cost, delivery_ratio, page_ratio }
    }

    /// The sizes were measured one after the other: 1.08 and 1.58 were told of the same code, as if both were sure.
    #[test]
    fn costs_are_held_from_the_first_primaries_to_the_last_by_their_whole_intervals() {
        let ratio = |low, high| Estimate { median: f64::midpoint(low, high), low, high };
        let one = point(1, ratio(1.0, 1.0), ratio(1.0, 1.0));
        let three = point(3, ratio(3.0, 3.0), ratio(3.0, 3.0));
        let judged = |delivery, page| Verdict::of(&[one, three, point(9, delivery, page)]);
        let verdicts = judged(ratio(0.9, 1.1), ratio(1.2, 1.4));
        let told: Vec<_> = verdicts.iter().map(|verdict| (verdict.cost, verdict.judgement)).collect();
        assert_eq!(told, [("delivery", Judgement::NotWorse), ("page", Judgement::Worse)]);
        let dearer = "A page with 9 primaries costs 1.30 (1.20-1.40) times what it costs with 1: more than 10 % dearer";
        assert_eq!(verdicts.iter().filter_map(Verdict::unmet).collect::<Vec<_>>(), [dearer]);
        let open = judged(ratio(1.08, 1.58), ratio(0.9, 1.1))[0];
        assert_eq!((open.judgement, open.unmet()), (Judgement::Open, None));
        assert_eq!(Verdict::of(&[one]), []);
    }
}
