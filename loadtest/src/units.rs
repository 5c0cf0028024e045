//! What one of each thing costs: measured on this machine (`loadtest scale`), or as it was measured for
//! docs/benchmarks.md.

use std::path::Path;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::report;
use crate::systems::PAGE;

/// What deliveries to so many followers have cost.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct FollowersCost {
    pub(crate) followers: u64,
    pub(crate) server_us: f64,
    pub(crate) client_us: f64,
    /// Until a post's last delivery.
    pub(crate) last_seconds: f64,
}

/// CPU time in microseconds and bytes. What a file does not tell is as in docs/benchmarks.md.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Units {
    /// Where they are from.
    pub(crate) source: String,
    /// Operations under way when they were measured: more of them share system calls, and cost less.
    pub(crate) at_once: usize,
    /// Names of those that were not measured with the others, but stand in docs/benchmarks.md: of another machine.
    pub(crate) not_measured: Vec<String>,
    /// Names of those that are 0, because what was to cost more didn't.
    pub(crate) below_noise: Vec<String>,
    /// CPU of the servers and of the client; a post that is pushed, without its deliveries.
    pub(crate) publish_us: [f64; 2],
    /// A post that is pulled.
    pub(crate) publish_pulled_us: [f64; 2],
    pub(crate) delivery_us: [f64; 2],
    /// A delivery to one of very many followers, who lie in all buckets: each call has more of them.
    pub(crate) delivery_spread_us: [f64; 2],
    /// A follower who has no home.
    pub(crate) skipped_us: [f64; 2],
    /// A post into a group: more than one that isn't.
    pub(crate) group_post_us: [f64; 2],
    /// A message to one.
    pub(crate) message_us: [f64; 2],
    /// The same, for each further member of its chat.
    pub(crate) message_member_us: [f64; 2],
    /// What counts an act against limits, where that is not written in the writer's bucket.
    pub(crate) permit_us: [f64; 2],
    /// A look for news that finds none.
    pub(crate) check_us: [f64; 2],
    /// A page of 20 with posts and authors.
    pub(crate) read_us: [f64; 2],
    /// The same by importance, whose window of candidates is in the caches.
    pub(crate) ranked_us: [f64; 2],
    /// A post, or an account, of a page that is in no cache.
    pub(crate) load_us: [f64; 2],
    /// One more pulled author of a page, from the cache.
    pub(crate) pull_us: [f64; 2],
    /// A look at an outbox that is in no cache.
    pub(crate) look_us: [f64; 2],
    /// A follow of somebody who is pushed, its completion included.
    pub(crate) follow_us: [f64; 2],
    /// A follow of somebody who is pulled.
    pub(crate) follow_pulled_us: [f64; 2],
    /// A home that is filled when its reader comes back, for each account that the reader follows.
    pub(crate) fill_us: [f64; 2],
    /// A follower of an account that becomes pulled, once.
    pub(crate) promote_us: [f64; 2],
    /// One guaranteed entry of a home, all of the home's own included.
    pub(crate) home_entry_bytes: f64,
    /// A follow on one of its two sides.
    pub(crate) edge_bytes: f64,
    pub(crate) mark_bytes: f64,
    /// An account, and what its lists take before they have many members.
    pub(crate) account_bytes: f64,
    /// A post with its place in the outbox, without its text.
    pub(crate) post_bytes: f64,
    /// More than that: of one in a group, of a message to one, of each further member of its chat.
    pub(crate) group_post_bytes: f64,
    pub(crate) message_bytes: f64,
    pub(crate) message_member_bytes: f64,
    /// What counts how often an account has done something.
    pub(crate) window_bytes: f64,
    /// What servers receive and send for it, as for all that follow. A post that is pushed, without its deliveries
    /// and its text.
    pub(crate) publish_wire_bytes: f64,
    /// Without its text.
    pub(crate) publish_pulled_wire_bytes: f64,
    pub(crate) delivery_wire_bytes: f64,
    pub(crate) skipped_wire_bytes: f64,
    pub(crate) group_post_wire_bytes: f64,
    /// Without its text, as the next one.
    pub(crate) message_wire_bytes: f64,
    pub(crate) message_member_wire_bytes: f64,
    pub(crate) permit_wire_bytes: f64,
    /// A page, whatever it shows: what is in the caches does not travel.
    pub(crate) page_wire_bytes: f64,
    /// The same by importance.
    pub(crate) ranked_wire_bytes: f64,
    /// A post that is in no cache, without its text.
    pub(crate) load_post_wire_bytes: f64,
    pub(crate) load_account_wire_bytes: f64,
    /// Without the ids that it brings.
    pub(crate) look_wire_bytes: f64,
    pub(crate) follow_wire_bytes: f64,
    pub(crate) follow_pulled_wire_bytes: f64,
    pub(crate) fill_wire_bytes: f64,
}

impl Default for Units {
    /// Two cores, Redis 7.0.15, three primaries, loopback: docs/benchmarks.md.
    fn default() -> Self {
        Self {
            source: "docs/benchmarks.md (2 cores, Redis 7.0.15, three primaries)".to_owned(),
            at_once: 1_023,
            not_measured: Vec::new(),
            below_noise: Vec::new(),
            publish_us: [55.2, 39.0],
            publish_pulled_us: [37.1, 12.7],
            delivery_us: [6.8, 1.3],
            delivery_spread_us: [5.4, 0.3],
            skipped_us: [0.9, 0.6],
            group_post_us: [93.6, 152.0],
            message_us: [209.0, 238.0],
            message_member_us: [13.4, 12.9],
            permit_us: [22.6, 21.0],
            check_us: [8.9, 13.3],
            read_us: [12.4, 35.7],
            ranked_us: [24.8, 132.0],
            load_us: [2.7, 2.2],
            pull_us: [0.09, 1.08],
            look_us: [3.7, 1.2],
            follow_us: [151.5, 69.0],
            follow_pulled_us: [187.4, 84.6],
            fill_us: [4.6, 2.9],
            promote_us: [6.6, 0.1],
            home_entry_bytes: 21.0,
            edge_bytes: 21.4,
            mark_bytes: 21.5,
            account_bytes: 537.3,
            post_bytes: 191.4,
            group_post_bytes: 47.0,
            message_bytes: 90.0,
            message_member_bytes: 39.0,
            window_bytes: 40.0,
            publish_wire_bytes: 887.1,
            publish_pulled_wire_bytes: 580.0,
            delivery_wire_bytes: 97.4,
            skipped_wire_bytes: 87.9,
            group_post_wire_bytes: 2_139.0,
            message_wire_bytes: 4_051.0,
            message_member_wire_bytes: 473.5,
            permit_wire_bytes: 170.0,
            page_wire_bytes: 1_110.9,
            ranked_wire_bytes: 3_454.0,
            load_post_wire_bytes: 130.0,
            load_account_wire_bytes: 240.0,
            look_wire_bytes: 150.0,
            follow_wire_bytes: 1_775.1,
            follow_pulled_wire_bytes: 2_386.2,
            fill_wire_bytes: 317.6,
        }
    }
}

impl Units {
    /// From so many followers on, more or less, they lie in all buckets, and each of these has enough for a call of
    /// its own.
    pub(crate) const SPREAD_FROM: f64 = 50_000.0;

    /// One more post on a page.
    pub(crate) fn shown_us(&self) -> [f64; 2] {
        let page = report::count(PAGE as u64);
        [0, 1].map(|side| (self.read_us[side] - self.check_us[side]).max(0.0) / page)
    }

    /// Where they are from, and what is to be known of them.
    pub(crate) fn told(&self) -> String {
        let mut told = format!(
            "Costs of one of each thing are from {}, {} operations at once.",
            self.source, self.at_once
        );
        if !self.not_measured.is_empty() {
            told += &format!(
                " Not measured there, but of another machine (docs/benchmarks.md): {}.",
                self.not_measured.join(", ")
            );
        }
        if !self.below_noise.is_empty() {
            told += &format!(" Below noise there, and so 0: {}.", self.below_noise.join(", "));
        }
        told
    }

    /// Those that `loadtest scale --json FILE` has measured.
    pub(crate) fn read(file: &Path) -> anyhow::Result<Self> {
        #[derive(Deserialize)]
        struct Scale {
            units: Option<Units>,
            #[serde(default)]
            followers: Vec<FollowersCost>,
        }
        let text =
            std::fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
        let scale: Scale = serde_json::from_str(&text)
            .with_context(|| format!("{} is no result of `loadtest scale --json`", file.display()))?;
        let mut units = scale
            .units
            .with_context(|| format!("{} has no units: they were left out of that run", file.display()))?;
        let most = scale.followers.iter().max_by_key(|cost| cost.followers);
        if let Some(cost) = most.filter(|cost| report::count(cost.followers) >= Self::SPREAD_FROM) {
            units.delivery_spread_us = [cost.server_us, cost.client_us];
            units.not_measured.retain(|name| name != "delivery_spread_us");
        }
        Ok(units)
    }
}

#[cfg(test)]
impl Units {
    /// Round numbers: what they come to is reckoned in the head.
    pub(crate) fn round() -> Self {
        Self {
            publish_us: [100.0, 100.0],
            publish_pulled_us: [50.0, 20.0],
            delivery_us: [5.0, 0.0],
            delivery_spread_us: [4.0, 0.0],
            skipped_us: [1.0, 0.0],
            group_post_us: [50.0, 60.0],
            message_us: [200.0, 100.0],
            message_member_us: [10.0, 5.0],
            permit_us: [20.0, 10.0],
            ranked_us: [20.0, 80.0],
            check_us: [6.0, 4.0],
            read_us: [10.0, 20.0],
            follow_us: [80.0, 40.0],
            follow_pulled_us: [40.0, 40.0],
            fill_us: [2.0, 3.0],
            pull_us: [0.0, 1.0],
            load_us: [0.0; 2],
            look_us: [5.0, 5.0],
            edge_bytes: 20.0,
            home_entry_bytes: 20.0,
            mark_bytes: 20.0,
            account_bytes: 100.0,
            post_bytes: 400.0,
            group_post_bytes: 50.0,
            message_bytes: 100.0,
            message_member_bytes: 30.0,
            window_bytes: 40.0,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_of_another_machine_is_told_until_it_is_measured() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("scale.json");
        let read = |followers: u64| {
            let units = Units {
                not_measured: vec!["delivery_spread_us".to_owned(), "promote_us".to_owned()],
                below_noise: vec!["pull_us (servers)".to_owned()],
                ..Units::round()
            };
            let cost =
                json!({ "followers": followers, "server_us": 2.0, "client_us": 0.5, "last_seconds": 1.0 });
            let scale = json!({ "units": units, "followers": [cost] });
            std::fs::write(&file, scale.to_string()).unwrap();
            Units::read(&file).unwrap()
        };
        let told = read(1_000).told();
        assert!(
            told.contains("another machine (docs/benchmarks.md): delivery_spread_us, promote_us."),
            "{told}"
        );
        assert!(told.contains("and so 0: pull_us (servers)."), "{told}");
        let many = read(100_000);
        assert_eq!((many.delivery_spread_us, many.not_measured.len()), ([2.0, 0.5], 1));
        let clear = Units { not_measured: vec!["promote_us".to_owned()], ..Units::round() }.told();
        assert!(clear.contains("promote_us") && !clear.contains("noise"), "{clear}");
        assert!(!Units::default().told().contains("Not measured"), "{}", Units::default().told());
    }
}
