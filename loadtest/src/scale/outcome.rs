//! The result: what the JSON holds, and the tables made of it.

use std::fmt;

use serde::Serialize;

use super::ScaleArgs;
use super::phases::{Cost, Point};
use crate::fanout::FollowersCost;
use crate::plan::Units;
use crate::report;

/// Everything that a run tells; loadtest/README.md explains the fields.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Outcome {
    command: &'static str,
    settings: ScaleArgs,
    seed: u64,
    points: Vec<Point>,
    followers: Vec<FollowersCost>,
    units: Option<Units>,
}

impl Outcome {
    pub(super) fn new(
        args: &ScaleArgs,
        seed: u64,
        points: Vec<Point>,
        followers: Vec<FollowersCost>,
        units: Option<Units>,
    ) -> Self {
        Self { command: "scale", settings: args.clone(), seed, points, followers, units }
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
            writeln!(f, "The same load per primary\n{}", self.points_table())?;
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
            ("one more pulled author of a page", units.pull_us),
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
        Ok(())
    }
}
