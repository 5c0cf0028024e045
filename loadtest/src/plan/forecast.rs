//! The forecast: what a service of some size needs. Pure; every figure carries the formula that it came from.

use std::time::Duration;

use serde::Serialize;

use super::celebrity::{Celebrity, celebrity};
use super::network::Pulled;
use super::quantity::{bytes, count, time};
use super::units::Units;
use super::work::{self, Work};
use crate::report::many;

pub(super) const US: f64 = 1e6;
pub(super) const SECONDS_A_DAY: f64 = 86_400.0;
/// A primary has so many buckets at least, so that each has about as many as any other.
const BUCKETS_A_PRIMARY: f64 = 64.0;
/// Share of a core that is left at least.
const FREE_LEAST: f64 = 0.05;
const BUCKETS_LEAST: u64 = 1_024;
const BUCKETS_MOST: u64 = 16_384;

/// What is asked.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Asked {
    pub(crate) users: f64,
    pub(crate) posts_per_second: f64,
    /// That a post goes to, of all posts.
    pub(crate) mean_followers: f64,
    pub(crate) mean_following: f64,
    pub(crate) reads_per_second: f64,
    pub(crate) posts_per_page: f64,
    pub(crate) follows_per_second: f64,
    /// Readers who come back and have no home.
    pub(crate) fills_per_second: f64,
    /// Share of users that have a home.
    pub(crate) active: f64,
    pub(crate) pulled: Pulled,
    pub(crate) replicas: f64,
    /// Share of a core that a primary may use on average.
    pub(crate) utilisation: f64,
    pub(crate) memory_per_primary: f64,
    /// Share of it that keys and values may take.
    pub(crate) memory_utilisation: f64,
    pub(crate) home_posts: f64,
    pub(crate) stored_posts: f64,
    pub(crate) text_bytes: f64,
    pub(crate) celebrity_followers: f64,
    pub(crate) celebrity_posts_per_day: f64,
    pub(crate) instances: f64,
    pub(crate) visible_within_s: f64,
    /// How long a page takes.
    pub(crate) page_s: f64,
}

impl Asked {
    pub(super) fn visible_within(&self) -> Duration {
        Duration::from_secs_f64(self.visible_within_s)
    }
}

/// A figure with the formula that it came from.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) formula: String,
}

/// What it needs.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Forecast {
    pub(crate) primaries: u64,
    /// So many their CPU takes, and so many their memory.
    pub(crate) primaries_for_cpu: u64,
    pub(crate) primaries_for_memory: u64,
    /// Primaries and replicas.
    pub(crate) nodes: u64,
    pub(crate) instance_cores: u64,
    pub(crate) memory_bytes: f64,
    pub(crate) memory_bytes_with_replicas: f64,
    pub(crate) bandwidth_bytes_per_second: f64,
    pub(crate) buckets: u64,
    pub(crate) server_cpu_us_per_second: f64,
    pub(crate) client_cpu_us_per_second: f64,
    /// At most.
    pub(crate) replica_cpu_us_per_second: f64,
    pub(crate) celebrity: Celebrity,
    pub(crate) lines: Vec<Line>,
}

/// CPU of the servers and of the client in a second, and how it is put together.
fn cpu(all: &[Work]) -> ([f64; 2], Vec<Line>) {
    let sums = [0, 1].map(|side| all.iter().map(|work| work.cpu()[side]).sum());
    let sum = |name: &str, us| Line {
        name: name.to_owned(),
        value: format!("{} a second", time(us)),
        formula: "the sum of these: servers + instances, in each second".to_owned(),
    };
    let mut lines: Vec<Line> = all.iter().map(Work::cpu_line).collect();
    lines.extend([sum("CPU of the primaries", sums[0]), sum("CPU of the instances", sums[1])]);
    (sums, lines)
}

/// CPU of the replicas in a second, at most: they repeat what was written, without deciding what to write.
fn replicas_cpu(all: &[Work], asked: &Asked) -> (f64, Line) {
    let us =
        asked.replicas * all.iter().filter(|work| work.is_written).map(|work| work.cpu()[0]).sum::<f64>();
    let line = Line {
        name: "CPU of the replicas, at most".to_owned(),
        value: format!("{} a second", time(us)),
        formula: format!("{} x the primaries' part of what is written", asked.replicas),
    };
    (us, line)
}

/// Bytes that the servers receive and send in a second, and how they are put together.
fn bandwidth(all: &[Work], asked: &Asked) -> (f64, Vec<Line>) {
    let sum = all.iter().map(|work| work.wire(asked.replicas)).sum();
    let mut lines: Vec<Line> = all.iter().map(|work| work.wire_line(asked.replicas)).collect();
    lines.push(Line {
        name: "bandwidth, all nodes".to_owned(),
        value: format!("{}/s", bytes(sum)),
        formula: "the sum of these: what the servers receive and send".to_owned(),
    });
    (sum, lines)
}

fn memory(asked: &Asked, units: &Units) -> (f64, Line) {
    let homes = asked.users * asked.active * asked.home_posts * units.home_entry_bytes;
    let edges = asked.users * asked.mean_following * 2.0 * units.edge_bytes;
    // Whoever follows a pulled author has a mark, also without a home.
    let marks = asked.users * asked.pulled.per_reader * units.mark_bytes;
    let accounts = asked.users * units.account_bytes;
    let posts = asked.stored_posts * (units.post_bytes + asked.text_bytes);
    let all = homes + edges + marks + accounts + posts;
    let formula = format!(
        "homes {} ({} x {} x {} entries x {} B) + follows {} ({} x {:.1} x 2 x {} B) + accounts {} ({} x {} B) + posts {} ({} x ({} B + {} B of text)) + \
         marks {} ({} x {:.1} pulled x {} B)",
        bytes(homes),
        count(asked.users),
        asked.active,
        asked.home_posts,
        units.home_entry_bytes,
        bytes(edges),
        count(asked.users),
        asked.mean_following,
        units.edge_bytes,
        bytes(accounts),
        count(asked.users),
        units.account_bytes,
        bytes(posts),
        count(asked.stored_posts),
        units.post_bytes,
        asked.text_bytes,
        bytes(marks),
        count(asked.users),
        asked.pulled.per_reader,
        units.mark_bytes,
    );
    (all, Line { name: "memory of the primaries".to_owned(), value: bytes(all), formula })
}

/// What a day's posts take, day after day.
fn growth(asked: &Asked, units: &Units) -> Line {
    let posts = asked.posts_per_second * SECONDS_A_DAY;
    let each = units.post_bytes + asked.text_bytes;
    let days = asked.stored_posts / posts.max(1.0);
    Line {
        name: "memory: a day more of posts".to_owned(),
        value: bytes(posts * each),
        formula: format!(
            "{} posts x ({} B + {} B of text); the engine deletes no post by itself: what is stored above is of {} days",
            count(posts),
            units.post_bytes,
            asked.text_bytes,
            count(days)
        ),
    }
}

/// What it takes.
pub(crate) fn forecast(asked: &Asked, units: &Units) -> Forecast {
    let all = work::all(asked, units);
    let ([servers, clients], mut lines) = cpu(&all);
    let (replicas, replicas_line) = replicas_cpu(&all, asked);
    lines.push(replicas_line);
    let (memory, memory_line) = memory(asked, units);
    let (bandwidth, bandwidth_lines) = bandwidth(&all, asked);
    let for_cpu = servers / US / asked.utilisation;
    let for_memory = memory / (asked.memory_per_primary * asked.memory_utilisation);
    let primaries = whole(for_cpu.max(for_memory));
    let buckets = whole(crate::report::count(primaries) * BUCKETS_A_PRIMARY).next_power_of_two();
    let buckets = buckets.clamp(BUCKETS_LEAST, BUCKETS_MOST);
    let instance_cores = whole(clients / US / asked.utilisation);
    let (celebrity, celebrity_lines) = celebrity(asked, units, free_cores(primaries, servers));
    lines.extend([memory_line, growth(asked, units)]);
    lines.push(Line {
        name: "primaries".to_owned(),
        value: primaries.to_string(),
        formula: format!(
            "the larger one of {for_cpu:.1} (CPU, {:.0} % of a core each) and {for_memory:.1} (memory, {:.0} % of {} each), rounded up",
            asked.utilisation * 100.0,
            asked.memory_utilisation * 100.0,
            bytes(asked.memory_per_primary)
        ),
    });
    let nodes = whole(crate::report::count(primaries) * (1.0 + asked.replicas));
    lines.push(Line {
        name: "primaries and replicas".to_owned(),
        value: format!("{nodes}, with {}", bytes(memory * (1.0 + asked.replicas))),
        formula: format!(
            "x (1 + {}), and their memory likewise",
            many(asked.replicas, "replica", "replicas")
        ),
    });
    lines.push(Line {
        name: "cores for instances".to_owned(),
        value: instance_cores.to_string(),
        formula: format!("their CPU at {:.0} % of a core", asked.utilisation * 100.0),
    });
    lines.extend(bandwidth_lines);
    lines.push(Line {
        name: "buckets (B)".to_owned(),
        value: buckets.to_string(),
        formula: format!(
            "{BUCKETS_A_PRIMARY} for each primary, a power of two from {BUCKETS_LEAST} to {BUCKETS_MOST}; fixed for good, so \
             think of what you grow to"
        ),
    });
    lines.extend(celebrity_lines);
    Forecast {
        primaries,
        primaries_for_cpu: whole(for_cpu),
        primaries_for_memory: whole(for_memory),
        nodes,
        instance_cores,
        memory_bytes: memory,
        memory_bytes_with_replicas: memory * (1.0 + asked.replicas),
        bandwidth_bytes_per_second: bandwidth,
        buckets,
        server_cpu_us_per_second: servers,
        client_cpu_us_per_second: clients,
        replica_cpu_us_per_second: replicas,
        celebrity,
        lines,
    }
}

/// Cores of so many primaries that are free beside that load. Where all are taken, what is left is what they save now and then.
pub(super) fn free_cores(primaries: u64, server_cpu_us_per_second: f64) -> f64 {
    let cores = crate::report::count(primaries);
    (cores - server_cpu_us_per_second / US).max(FREE_LEAST * cores)
}

/// Rounded up, at least one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative, and far below 2^53"
)]
fn whole(value: f64) -> u64 {
    (value.ceil() as u64).max(1)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::plan) fn asked() -> Asked {
        Asked {
            users: 500e6,
            posts_per_second: 5_000.0,
            mean_followers: 400.0,
            mean_following: 400.0,
            reads_per_second: 300_000.0,
            posts_per_page: 20.0,
            follows_per_second: 1_000.0,
            fills_per_second: 10.0,
            active: 0.2,
            pulled: Pulled {
                authors: 1_000.0,
                per_reader: 5.0,
                posts: 0.2,
                mean_followers: 400.0,
                looks_per_second: None,
            },
            replicas: 1.0,
            utilisation: 0.5,
            memory_per_primary: 25e9,
            memory_utilisation: 0.8,
            home_posts: 400.0,
            stored_posts: 1e9,
            text_bytes: 100.0,
            celebrity_followers: 25e6,
            celebrity_posts_per_day: 10.0,
            instances: 20.0,
            visible_within_s: 1.0,
            page_s: 0.0,
        }
    }

    pub(in crate::plan) fn is_about(value: f64, expected: f64) -> bool {
        (value / expected - 1.0).abs() < 1e-9
    }

    #[test]
    fn cpu_is_what_posts_deliveries_and_pages_come_to() {
        let found = forecast(&asked(), &Units::round());
        // 1.5 M pulls a second of 20,000 outboxes in caches.
        let looks = 1.5e6 / (1.0 + 1.5e6 / 20_000.0);
        // A follow in 80 is of somebody who is pulled.
        let servers = 4_000.0 * (100.0 + 80.0 * 5.0 + 320.0) + 1_000.0 * 50.0 + 300_000.0 * 10.0;
        let servers = servers + looks * 5.0 + 1_000.0 * (79.0 * 80.0 + 40.0) / 80.0 + 10.0 * 400.0 * 2.0;
        let clients = 4_000.0 * 100.0
            + 1_000.0 * 20.0
            + 300_000.0 * (20.0 + 5.0)
            + looks * 5.0
            + 1_000.0 * 40.0
            + 10.0 * 400.0 * 3.0;
        assert!(is_about(found.server_cpu_us_per_second, servers), "{}", found.server_cpu_us_per_second);
        assert!(is_about(found.client_cpu_us_per_second, clients), "{}", found.client_cpu_us_per_second);
        assert_eq!(found.instance_cores, 17);
    }

    #[test]
    fn memory_decides_on_primaries_where_it_needs_more_of_them() {
        let found = forecast(&asked(), &Units::round());
        // Homes 800 GB, follows 8 TB, accounts 50 GB, posts 500 GB, marks 50 GB.
        assert!(is_about(found.memory_bytes, 9.40e12), "{}", found.memory_bytes);
        assert!(is_about(found.memory_bytes_with_replicas, 2.0 * 9.40e12));
        assert_eq!([found.primaries_for_cpu, found.primaries_for_memory, found.nodes], [14, 470, 940]);
        assert_eq!(found.primaries, 470, "of 25 GB each 80 %");
        let roomy = Asked { memory_per_primary: 1e15, ..asked() };
        assert_eq!(forecast(&roomy, &Units::round()).primaries, 14);
        assert_eq!((found.buckets, forecast(&roomy, &Units::round()).buckets), (16_384, 1_024));
    }

    #[test]
    fn posts_are_told_as_growth() {
        let found = forecast(&asked(), &Units::round());
        let line = found.lines.iter().find(|line| line.name.contains("a day more")).unwrap();
        // 432 M posts of 500 B; 1 G are stored.
        assert_eq!(line.value, "216 GB");
        assert!(
            line.formula.contains("deletes no post by itself") && line.formula.ends_with("of 2.31 days"),
            "{line:?}"
        );
    }

    #[test]
    fn a_celebrity_is_dear_to_push_and_cheap_to_pull() {
        let all = forecast(&asked(), &Units::round());
        let found = all.celebrity;
        // 5 M awake x 4 + 20 M asleep x 1.
        assert!(is_about(found.pushed_us_per_post, 200.0 + 40e6), "{}", found.pushed_us_per_post);
        // All primaries work at it with what they have left, of 470 cores most.
        let free = 470.0 - all.server_cpu_us_per_second / 1e6;
        assert!(free > 450.0 && is_about(found.pushed_seconds_per_post, 40.0001 / free), "{free}");
        // 5 M of 100 M readers: 15,000 of the pages a second, and nearly 20 looks.
        let looks = 15_000.0 / (1.0 + 15_000.0 / 20.0);
        let day = 10.0 * 70.0 + 86_400.0 * (15_000.0 * 1.0 + looks * 10.0);
        assert!(is_about(found.pulled_us_per_day, day), "{} {day}", found.pulled_us_per_day);
        // Who has few followers pays for each what small accounts pay; whose primaries are full waits for what they save.
        let small = Asked { celebrity_followers: 10_000.0, ..asked() };
        let small = forecast(&small, &Units::round()).celebrity;
        assert!(is_about(small.pushed_us_per_post, 200.0 + 2_000.0 * 5.0 + 8_000.0));
        let full = Asked { utilisation: 1.0, memory_per_primary: 1e15, ..asked() };
        let full = forecast(&full, &Units::round());
        let free = crate::report::count(full.primaries) - full.server_cpu_us_per_second / 1e6;
        assert!(free > 0.35 && is_about(full.celebrity.pushed_seconds_per_post, 40.0001 / free), "{free}");
    }

    /// Its own part was left out, and the servers' divided by more and more cores.
    #[test]
    fn the_instance_that_carries_a_fan_out_does_its_part_on_one_core() {
        let units = Units { delivery_spread_us: [4.0, 2.0], skipped_us: [1.0, 3.0], ..Units::round() };
        let found = forecast(&asked(), &units);
        // 5 M awake x 2, 20 M asleep x 2: no more than a delivery, however many followers the calls have that were measured.
        assert!(is_about(found.celebrity.pushed_seconds_per_post, 50.0001), "{:?}", found.celebrity);
        let line = found.lines.iter().find(|line| line.name == "celebrity, pushed: a post").unwrap();
        assert!(line.value.ends_with("50.0 s until the last home"), "{line:?}");
        assert!(line.formula.ends_with("and the instance's, 50.0 s, which is on one core"), "{line:?}");
        assert!(line.formula.contains("the servers' part, 40.0 s / 4"), "{line:?}");
    }

    #[test]
    fn replicas_repeat_what_is_written_and_nothing_else() {
        let of = |replicas| {
            let found = forecast(&Asked { replicas, ..asked() }, &Units::round());
            (found.replica_cpu_us_per_second, found.server_cpu_us_per_second)
        };
        let written = 4_000.0 * (100.0 + 80.0 * 5.0) + 1_000.0 * 50.0 + 1_000.0 * (79.0 * 80.0 + 40.0) / 80.0;
        assert!(is_about(of(2.0).0, 2.0 * (written + 10.0 * 400.0 * 2.0)), "{}", of(2.0).0);
        assert!(of(0.0).0.abs() < 1e-9 && is_about(of(0.0).1, of(2.0).1));
    }

    #[test]
    fn every_figure_shows_its_formula() {
        let found = forecast(&asked(), &Units::round());
        assert!(found.lines.len() >= 9);
        assert!(found.lines.iter().all(|line| line.formula.len() > 10 && !line.value.contains("NaN")));
    }
}
