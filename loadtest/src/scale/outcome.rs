//! The result: what the JSON holds, and the tables made of it.

use std::fmt;

use serde::Serialize;

use super::ScaleArgs;
use super::modes::Modes;
use super::phases::Cost;
use super::primaries::{Load, Point};
use crate::common::Told;
use crate::judgement::{Judgement, too_few};
use crate::report::{Part, Report, figures, header, many, row};
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
    #[serde(skip)]
    is_whole: bool,
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
        let Self { cost, first, last, ratio, judgement, .. } = self;
        let said = match judgement {
            Judgement::Worse => "more than 10 % dearer".to_owned(),
            Judgement::NotWorse => "flat within 10 %".to_owned(),
            unsure => unsure.unsure(self.rounds),
        };
        let last = many(*last, "primary", "primaries");
        let ratio = ratio.told(2);
        write!(f, "A {cost} with {last} costs {ratio} times what it costs with {first}: {said}")
    }
}

impl Outcome {
    pub(super) fn new(
        args: &ScaleArgs,
        (seed, is_whole): (u64, bool),
        points: Vec<Point>,
        followers: Vec<FollowersCost>,
        units: Option<Units>,
    ) -> Self {
        Self {
            command: "scale",
            settings: args.clone(),
            seed,
            is_whole,
            verdicts: Verdict::of(&points),
            points,
            followers,
            modes: units.as_ref().map(Modes::of),
            units,
        }
    }

    fn points_table(&self) -> Part {
        let load = match self.settings.load {
            Load::PerPrimary => {
                "The same network, and the same operations at once for each primary, in turns"
            }
            Load::Same => "The same network and operations at once, in turns",
            Load::Growing => "The same network and operations at once for each primary, in turns",
        };
        let (delivery, page) = ("delivery us (servers + client)", "page us (servers + client)");
        let told = |Cost { server_us, client_us, both_us: Estimate { median, low, high }, .. }: &Cost| {
            format!("{median:.2} ({low:.2}-{high:.2}: {server_us:.2} + {client_us:.2})")
        };
        let cells = |point: &Point| {
            let delivery = [told(&point.delivery), point.delivery_ratio.told(2)];
            let page = [told(&point.page), point.page_ratio.told(2)];
            row(&point.primaries.to_string(), delivery.into_iter().chain(page).map(Some))
        };
        let header = header("primaries", [delivery, "to the first", page, "to the first"]);
        Part::Table(load.to_owned(), header, self.points.iter().map(cells).collect())
    }

    fn followers_table(&self) -> Part {
        let place = if self.settings.common.is_own() { ", on three primaries" } else { "" };
        let cells = |cost: &FollowersCost| {
            let (server, client) = (cost.server_us, cost.client_us);
            let delivery = format!("{:.2} ({server:.2} + {client:.2})", server + client);
            row(
                &cost.followers.to_string(),
                [delivery, format!("{:.3}", cost.last_seconds)].map(Some).into_iter(),
            )
        };
        let header = header("followers", ["delivery us (servers + client)", "last delivery s"]);
        Part::Table(
            format!("Posts to so many followers{place}"),
            header,
            self.followers.iter().map(cells).collect(),
        )
    }
}

/// What one of each thing costs, and what it takes where it is stored.
fn unit_tables(units: &Units) -> [Part; 2] {
    let cells = |(name, [server, client], wire): (&str, [f64; 2], Option<f64>)| {
        let wire = wire.map_or(String::new(), |bytes| format!("{bytes:.1}"));
        row(name, [format!("{server:.2}"), format!("{client:.2}"), wire].map(Some).into_iter())
    };
    let costs = [
        ("a post, without its deliveries (and its text)", units.publish_us, Some(units.publish_wire_bytes)),
        ("a delivery", units.delivery_us, Some(units.delivery_wire_bytes)),
        ("a follower without a home", units.skipped_us, Some(units.skipped_wire_bytes)),
        (
            "a post that is pulled (without its text)",
            units.publish_pulled_us,
            Some(units.publish_pulled_wire_bytes),
        ),
        ("a look for news that finds none", units.check_us, Some(units.page_wire_bytes)),
        ("a page of 20, with posts and authors", units.read_us, Some(units.page_wire_bytes)),
        ("a post or an author of a page that is in no cache", units.load_us, None),
        ("one more pulled author of a page", units.pull_us, None),
        ("a look at an outbox that is in no cache", units.look_us, None),
        ("a follow", units.follow_us, Some(units.follow_wire_bytes)),
        ("a follow of a pulled author", units.follow_pulled_us, Some(units.follow_pulled_wire_bytes)),
        ("a home that is filled, for each account followed", units.fill_us, Some(units.fill_wire_bytes)),
    ];
    let stored = [
        ("an entry of a home", units.home_entry_bytes),
        ("a follow, on one of its two sides", units.edge_bytes),
        ("a pull mark", units.mark_bytes),
        ("an account", units.account_bytes),
        ("a post with its place in the outbox, without its text", units.post_bytes),
    ];
    let stored = stored.map(|(name, bytes)| figures(name, 1, [Some(bytes)].into_iter()));
    let heading = format!("What one of each thing costs, {} operations at once", units.at_once);
    let columns = ["servers us", "client us", "bytes on the wire"];
    [
        Part::Table(heading, header("", columns), costs.map(cells).to_vec()),
        Part::Table("What is stored".to_owned(), header("", ["bytes"]), stored.to_vec()),
    ]
}

impl Told for Outcome {
    fn report(&self) -> Report {
        let mut parts = vec![Part::Text(format!("Seed {}", self.seed))];
        if !self.points.is_empty() {
            parts.push(self.points_table());
            parts.extend(self.verdicts.iter().map(|verdict| Part::Text(verdict.to_string())));
        }
        if !self.followers.is_empty() {
            parts.push(self.followers_table());
        }
        if let Some((units, modes)) = self.units.as_ref().zip(self.modes) {
            parts.extend(unit_tables(units));
            parts.push(Part::Text(units.told()));
            let file = "For the cost model, in the file of the engine's settings (deploy/tideline.toml):";
            parts.push(Part::Text(format!("{file}\n\n{modes}")));
        }
        Report { title: "What one of each thing costs".to_owned(), parts }
    }

    /// Whether nothing was left out.
    fn is_right(&self) -> bool {
        self.is_whole
    }

    /// Costs are flat.
    fn unmet(&self) -> Vec<String> {
        if self.verdicts.is_empty() {
            let needed = "the load has to be measured on two numbers of primaries (--parts primaries)";
            return vec![format!("whether costs are flat could not be judged: {needed}")];
        }
        self.verdicts.iter().filter_map(Verdict::unmet).collect()
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
