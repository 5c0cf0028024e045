//! The forecast: what a service of some size needs. Pure; every figure carries the formula that it came from.

use serde::Serialize;

use super::quantity::{bytes, count, time};
use super::units::Units;

const SECONDS_A_DAY: f64 = 86_400.0;
const US: f64 = 1e6;
/// A primary has so many buckets at least, so that each has about as many as any other.
const BUCKETS_A_PRIMARY: f64 = 64.0;
const BUCKETS_LEAST: u64 = 1_024;
const BUCKETS_MOST: u64 = 16_384;

/// What is asked.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Asked {
    pub(crate) users: f64,
    pub(crate) posts_per_second: f64,
    pub(crate) mean_followers: f64,
    pub(crate) mean_following: f64,
    pub(crate) reads_per_second: f64,
    /// Share of users that have a home.
    pub(crate) active: f64,
    pub(crate) pulled_per_reader: f64,
    pub(crate) replicas: f64,
    /// Share of a core that a primary may use on average.
    pub(crate) utilisation: f64,
    pub(crate) memory_per_primary: f64,
    pub(crate) home_posts: f64,
    pub(crate) stored_posts: f64,
    pub(crate) celebrity_followers: f64,
    pub(crate) celebrity_posts_per_day: f64,
    pub(crate) instances: f64,
    pub(crate) visible_within_s: f64,
}

/// A figure with the formula that it came from.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Line {
    pub(crate) name: &'static str,
    pub(crate) value: String,
    pub(crate) formula: String,
}

/// What it needs.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Forecast {
    pub(crate) primaries: u64,
    pub(crate) instance_cores: u64,
    pub(crate) memory_bytes: f64,
    pub(crate) memory_bytes_with_replicas: f64,
    pub(crate) bandwidth_bytes_per_second: f64,
    pub(crate) buckets: u64,
    pub(crate) server_cpu_us_per_second: f64,
    pub(crate) client_cpu_us_per_second: f64,
    pub(crate) celebrity: Celebrity,
    pub(crate) lines: Vec<Line>,
}

/// What one very large account costs, pushed and pulled.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Celebrity {
    pub(crate) pushed_us_per_post: f64,
    pub(crate) pushed_seconds_per_post: f64,
    pub(crate) pushed_us_per_day: f64,
    pub(crate) pulled_us_per_post: f64,
    pub(crate) pulled_us_per_day: f64,
    pub(crate) marks_bytes: f64,
    pub(crate) promotion_us: f64,
}

/// CPU of the servers and of the client in a second, and how it is put together.
fn cpu(asked: &Asked, units: &Units) -> ([f64; 2], Vec<Line>) {
    let Asked { posts_per_second, mean_followers, active, reads_per_second, pulled_per_reader, .. } = *asked;
    let awake = mean_followers * active;
    let asleep = mean_followers - awake;
    let side = |side: usize| {
        let post = units.publish_us[side] + awake * units.delivery_us[side] + asleep * units.skipped_us[side];
        let read = units.read_us[side] + pulled_per_reader * units.pull_us[side];
        (post, read)
    };
    let (servers, clients) = (side(0), side(1));
    let of = |(post, read): (f64, f64)| posts_per_second * post + reads_per_second * read;
    let line = |name, (post, read): (f64, f64), side: usize| Line {
        name,
        value: format!("{} a second", time(of((post, read)))),
        formula: format!(
            "{} posts/s x ({} publish + {} awake x {} + {} asleep x {}) + {} reads/s x ({} + {pulled_per_reader} pulled x {})",
            count(posts_per_second),
            time(units.publish_us[side]),
            count(awake),
            time(units.delivery_us[side]),
            count(asleep),
            time(units.skipped_us[side]),
            count(reads_per_second),
            time(units.read_us[side]),
            time(units.pull_us[side]),
        ),
    };
    (
        [of(servers), of(clients)],
        vec![line("CPU of the servers", servers, 0), line("CPU of the instances", clients, 1)],
    )
}

fn memory(asked: &Asked, units: &Units) -> (f64, Line) {
    let homes = asked.users * asked.active * asked.home_posts * units.home_entry_bytes;
    let edges = asked.users * asked.mean_following * 2.0 * units.edge_bytes;
    let marks = asked.users * asked.active * asked.pulled_per_reader * units.mark_bytes;
    let accounts = asked.users * units.account_bytes;
    let posts = asked.stored_posts * units.post_bytes;
    let all = homes + edges + marks + accounts + posts;
    let formula = format!(
        "homes {} ({} x {} x {} entries x {} B) + follows {} ({} x {} x 2 x {} B) + accounts {} ({} x {} B) + posts {} ({} x {} B) + \
         marks {} ({} x {} x {} pulled x {} B)",
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
        bytes(marks),
        count(asked.users),
        asked.active,
        asked.pulled_per_reader,
        units.mark_bytes,
    );
    (all, Line { name: "memory of the primaries", value: bytes(all), formula })
}

fn bandwidth(asked: &Asked, units: &Units) -> (f64, Line) {
    let deliveries = asked.posts_per_second * asked.mean_followers * asked.active * units.delivery_wire_bytes;
    let (publishes, reads) =
        (asked.posts_per_second * units.publish_wire_bytes, asked.reads_per_second * units.read_wire_bytes);
    let all = (deliveries + publishes) * (1.0 + asked.replicas) + reads;
    let formula = format!(
        "(deliveries {}/s ({} posts/s x {} followers x {} x {} B) + posts {}/s (x {} B)) x (1 + {} replicas) + pages {}/s ({} x {} B)",
        bytes(deliveries),
        count(asked.posts_per_second),
        asked.mean_followers,
        asked.active,
        units.delivery_wire_bytes,
        bytes(publishes),
        units.publish_wire_bytes,
        asked.replicas,
        bytes(reads),
        count(asked.reads_per_second),
        units.read_wire_bytes,
    );
    (all, Line { name: "bandwidth, all nodes", value: format!("{}/s", bytes(all)), formula })
}

/// Servers and client together.
fn both(unit: [f64; 2]) -> f64 {
    unit[0] + unit[1]
}

fn celebrity(asked: &Asked, units: &Units, primaries: f64) -> (Celebrity, Vec<Line>) {
    let followers = asked.celebrity_followers;
    let awake = followers * asked.active;
    let server_us = awake * units.delivery_us[0] + (followers - awake) * units.skipped_us[0];
    let pushed = both(units.publish_us)
        + awake * both(units.delivery_us)
        + (followers - awake) * both(units.skipped_us);
    let reads = awake * asked.reads_per_second / (asked.users * asked.active).max(1.0) * SECONDS_A_DAY;
    let looks = (asked.instances / asked.visible_within_s * SECONDS_A_DAY).min(reads);
    let pulled_day = asked.celebrity_posts_per_day * both(units.publish_us)
        + reads * both(units.pull_us)
        + looks * both(units.look_us);
    let found = Celebrity {
        pushed_us_per_post: pushed,
        pushed_seconds_per_post: server_us / US / (primaries * asked.utilisation),
        pushed_us_per_day: pushed * asked.celebrity_posts_per_day,
        pulled_us_per_post: both(units.publish_us),
        pulled_us_per_day: pulled_day,
        marks_bytes: followers * units.mark_bytes,
        promotion_us: followers * both(units.promote_us),
    };
    let followed = count(followers);
    let lines = vec![
        Line {
            name: "celebrity, pushed: a post",
            value: format!(
                "{} of CPU, {:.1} s until the last home",
                time(pushed),
                found.pushed_seconds_per_post
            ),
            formula: format!(
                "{} publish + {followed} followers: {} awake x {} + {} asleep x {}; in time: the servers' part / ({primaries} primaries x {})",
                time(both(units.publish_us)),
                count(awake),
                time(both(units.delivery_us)),
                count(followers - awake),
                time(both(units.skipped_us)),
                asked.utilisation
            ),
        },
        Line {
            name: "celebrity, pushed: a day",
            value: format!("{} of CPU", time(found.pushed_us_per_day)),
            formula: format!("{} posts a day x {}", asked.celebrity_posts_per_day, time(pushed)),
        },
        Line {
            name: "celebrity, pulled: a day",
            value: format!("{} of CPU", time(pulled_day)),
            formula: format!(
                "{} posts x {} + {} pages of its followers x {} + {} looks ({} instances, one each {} s) x {}",
                asked.celebrity_posts_per_day,
                time(both(units.publish_us)),
                count(reads),
                time(both(units.pull_us)),
                count(looks),
                asked.instances,
                asked.visible_within_s,
                time(both(units.look_us))
            ),
        },
        Line {
            name: "celebrity, from pushed to pulled",
            value: format!("{} of CPU, {} of marks", time(found.promotion_us), bytes(found.marks_bytes)),
            formula: format!(
                "{followed} followers x {} and {} B",
                time(both(units.promote_us)),
                units.mark_bytes
            ),
        },
    ];
    (found, lines)
}

/// What it takes.
pub(crate) fn forecast(asked: &Asked, units: &Units) -> Forecast {
    let ([servers, clients], mut lines) = cpu(asked, units);
    let (memory, memory_line) = memory(asked, units);
    let (bandwidth, bandwidth_line) = bandwidth(asked, units);
    let for_cpu = servers / US / asked.utilisation;
    let for_memory = memory / asked.memory_per_primary;
    let primaries = whole(for_cpu.max(for_memory));
    let buckets = whole(crate::report::count(primaries) * BUCKETS_A_PRIMARY).next_power_of_two();
    let buckets = buckets.clamp(BUCKETS_LEAST, BUCKETS_MOST);
    let instance_cores = whole(clients / US / asked.utilisation);
    let (celebrity, celebrity_lines) = celebrity(asked, units, crate::report::count(primaries));
    lines.push(memory_line);
    lines.push(Line {
        name: "primaries",
        value: primaries.to_string(),
        formula: format!(
            "the larger one of {for_cpu:.1} (CPU, {:.0} % of a core each) and {for_memory:.1} (memory, {} each), rounded up",
            asked.utilisation * 100.0,
            bytes(asked.memory_per_primary)
        ),
    });
    lines.push(Line {
        name: "cores for instances",
        value: instance_cores.to_string(),
        formula: format!("their CPU at {:.0} % of a core", asked.utilisation * 100.0),
    });
    lines.push(bandwidth_line);
    lines.push(Line {
        name: "buckets (B)",
        value: buckets.to_string(),
        formula: format!(
            "{BUCKETS_A_PRIMARY} for each primary, a power of two from {BUCKETS_LEAST} to {BUCKETS_MOST}; fixed for good, so \
             think of what you grow to"
        ),
    });
    lines.extend(celebrity_lines);
    Forecast {
        primaries,
        instance_cores,
        memory_bytes: memory,
        memory_bytes_with_replicas: memory * (1.0 + asked.replicas),
        bandwidth_bytes_per_second: bandwidth,
        buckets,
        server_cpu_us_per_second: servers,
        client_cpu_us_per_second: clients,
        celebrity,
        lines,
    }
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
mod tests {
    use super::*;

    fn asked() -> Asked {
        Asked {
            users: 500e6,
            posts_per_second: 5_000.0,
            mean_followers: 400.0,
            mean_following: 400.0,
            reads_per_second: 300_000.0,
            active: 0.2,
            pulled_per_reader: 5.0,
            replicas: 1.0,
            utilisation: 0.5,
            memory_per_primary: 25e9,
            home_posts: 400.0,
            stored_posts: 1e9,
            celebrity_followers: 25e6,
            celebrity_posts_per_day: 10.0,
            instances: 20.0,
            visible_within_s: 1.0,
        }
    }

    fn units() -> Units {
        Units {
            publish_us: [100.0, 100.0],
            delivery_us: [5.0, 0.0],
            skipped_us: [1.0, 0.0],
            read_us: [10.0, 20.0],
            pull_us: [0.0, 1.0],
            look_us: [5.0, 5.0],
            edge_bytes: 20.0,
            home_entry_bytes: 20.0,
            mark_bytes: 20.0,
            account_bytes: 100.0,
            post_bytes: 500.0,
            ..Units::default()
        }
    }

    fn is_about(value: f64, expected: f64) -> bool {
        (value / expected - 1.0).abs() < 1e-9
    }

    #[test]
    fn cpu_is_what_posts_deliveries_and_pages_come_to() {
        let found = forecast(&asked(), &units());
        // 5,000 x (100 + 80 x 5 + 320 x 1) + 300,000 x 10, and 5,000 x 100 + 300,000 x (20 + 5).
        assert!(is_about(found.server_cpu_us_per_second, 7_100_000.0), "{}", found.server_cpu_us_per_second);
        assert!(is_about(found.client_cpu_us_per_second, 8_000_000.0), "{}", found.client_cpu_us_per_second);
        assert_eq!(found.instance_cores, 16);
    }

    #[test]
    fn memory_decides_on_primaries_where_it_needs_more_of_them() {
        let found = forecast(&asked(), &units());
        // Homes 800 GB, follows 8 TB, accounts 50 GB, posts 500 GB, marks 10 GB.
        assert!(is_about(found.memory_bytes, 9.36e12), "{}", found.memory_bytes);
        assert!(is_about(found.memory_bytes_with_replicas, 2.0 * 9.36e12));
        assert_eq!(found.primaries, 375);
        let roomy = Asked { memory_per_primary: 1e15, ..asked() };
        assert_eq!(forecast(&roomy, &units()).primaries, 15);
        assert_eq!((found.buckets, forecast(&roomy, &units()).buckets), (16_384, 1_024));
    }

    #[test]
    fn a_celebrity_is_dear_to_push_and_cheap_to_pull() {
        let found = forecast(&asked(), &units()).celebrity;
        // 5 M awake x 5 + 20 M asleep x 1.
        assert!(is_about(found.pushed_us_per_post, 200.0 + 45e6), "{}", found.pushed_us_per_post);
        assert!(is_about(found.pushed_seconds_per_post, 45.0 / 187.5));
        // 5 M of 100 M readers: 15,000 of the pages a second, and 20 looks.
        let day = 10.0 * 200.0 + 86_400.0 * (15_000.0 * 1.0 + 20.0 * 10.0);
        assert!(is_about(found.pulled_us_per_day, day), "{} {day}", found.pulled_us_per_day);
    }

    #[test]
    fn every_figure_shows_its_formula() {
        let found = forecast(&asked(), &units());
        assert!(found.lines.len() >= 9);
        assert!(found.lines.iter().all(|line| line.formula.len() > 10 && !line.value.contains("NaN")));
    }
}
