//! The forecast: what a service of some size needs under one policy. Pure.

use serde::Serialize;
use tideline::Threshold;

use super::args::Asked;
use super::network::{Network, Pulled, Rule};
use super::work::{Load, Work};
use crate::report::count;
use crate::stats;
use crate::units::Units;

const US: f64 = 1e6;
/// Cores of an instance.
const INSTANCE_CORES: f64 = 2.0;
/// A primary has so many buckets at least, so that each has about as many as any other.
const BUCKETS_A_PRIMARY: f64 = 64.0;
const BUCKETS_LEAST: u64 = 1_024;
const BUCKETS_MOST: u64 = 16_384;
/// Share of a core that is left at least.
const FREE_LEAST: f64 = 0.05;
/// An append-only file grows to twice what is stored before it is rewritten, and the new one lies beside it.
pub(super) const DISK_TIMES: f64 = 3.0;

/// So many of something that is stored.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Stored {
    pub(super) name: &'static str,
    pub(super) many: f64,
    pub(super) bytes_each: f64,
}

impl Stored {
    pub(super) fn bytes(&self) -> f64 {
        self.many * self.bytes_each
    }
}

/// What a service needs under one policy; loadtest/README.md explains the fields.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Forecast {
    pub(super) policy: Rule,
    pub(super) primaries: u64,
    pub(super) primaries_for_cpu: u64,
    pub(super) primaries_for_memory: u64,
    /// Primaries and replicas.
    pub(super) nodes: u64,
    /// Of the primaries.
    pub(super) memory_bytes: f64,
    pub(super) memory_bytes_with_replicas: f64,
    /// Of the posts of a day more.
    pub(super) memory_bytes_a_day: f64,
    pub(super) disk_bytes_per_node: f64,
    /// Of old posts, with their indexes, in PostgreSQL; who likes and answers them takes some 20 bytes each besides.
    pub(super) archive_bytes: f64,
    pub(super) bandwidth_bytes_per_second: f64,
    pub(super) server_cpu_us_per_second: f64,
    pub(super) client_cpu_us_per_second: f64,
    /// At most: they repeat what was written, without deciding what to write.
    pub(super) replica_cpu_us_per_second: f64,
    pub(super) instance_cores: u64,
    pub(super) buckets: u64,
    /// Until the last home has a post of the largest account of those that are pushed.
    pub(super) longest_post_seconds: f64,
    pub(super) pulled: Pulled,
    #[serde(skip)]
    pub(super) work: Vec<Work>,
    #[serde(skip)]
    pub(super) stored: Vec<Stored>,
}

/// What a post takes on PostgreSQL's disk besides its text: 433 bytes were measured of one with 260 bytes, 92 of which
/// are no text (docs/decisions/0052).
const ARCHIVED_BYTES: f64 = 433.0 - 168.0;

/// What it takes under this policy.
pub(super) fn forecast(
    rule: Rule,
    network: &Network,
    asked: &Asked,
    units: &Units,
) -> anyhow::Result<Forecast> {
    let with = |instances: f64| {
        let pulled = network.pulled(rule, asked, units, instances)?;
        anyhow::Ok(of(rule, Load { asked, pulled, instances }, units))
    };
    let forecast = with(asked.instances.unwrap_or(1.0))?;
    match asked.instances {
        Some(_) => Ok(forecast),
        // How many there are is known when their CPU is; what they read anew depends on how many they are, a little.
        None => with((count(forecast.instance_cores) / INSTANCE_CORES).ceil()),
    }
}

fn of(policy: Rule, load: Load<'_>, units: &Units) -> Forecast {
    let Load { asked, pulled, .. } = load;
    let work = load.work(units);
    let [servers, clients] = [0, 1].map(|side| work.iter().map(|work| work.cpu()[side]).sum::<f64>());
    let written: f64 = work.iter().filter(|work| work.is_written).map(|work| work.cpu()[0]).sum();
    let stored = stored(asked, &pulled, units);
    let memory: f64 = stored.iter().map(Stored::bytes).sum();
    let for_cpu = whole(servers / US / asked.utilisation);
    let for_memory = whole(memory / (asked.memory_per_primary * asked.memory_utilisation));
    let primaries = for_cpu.max(for_memory);
    let buckets = whole(count(primaries) * BUCKETS_A_PRIMARY).next_power_of_two();
    let copies = 1.0 + asked.replicas;
    // Where all cores are taken, what is left is what they save now and then.
    let free_cores = (count(primaries) - servers / US).max(FREE_LEAST * count(primaries));
    Forecast {
        policy,
        primaries,
        primaries_for_cpu: for_cpu,
        primaries_for_memory: for_memory,
        nodes: whole(count(primaries) * copies),
        memory_bytes: memory,
        memory_bytes_with_replicas: memory * copies,
        memory_bytes_a_day: super::SECONDS_A_DAY
            * (asked.posts_per_second * bytes_of_a_post(asked, units)
                + asked.messages_per_second * bytes_of_a_message(asked, units)),
        archive_bytes: (asked.stored_posts() - asked.posts_in_memory() + asked.stored_messages()
            - asked.messages_in_memory())
            * (ARCHIVED_BYTES + asked.text_bytes),
        disk_bytes_per_node: memory / count(primaries) * DISK_TIMES,
        bandwidth_bytes_per_second: work.iter().map(|work| work.wire(asked.replicas)).sum(),
        server_cpu_us_per_second: servers,
        client_cpu_us_per_second: clients,
        replica_cpu_us_per_second: asked.replicas * written,
        instance_cores: whole(clients / US / asked.utilisation),
        buckets: buckets.clamp(BUCKETS_LEAST, BUCKETS_MOST),
        longest_post_seconds: post_seconds(largest_pushed(policy, asked), asked, units, free_cores),
        pulled,
        work,
        stored,
    }
}

impl Forecast {
    /// Of servers and instances together.
    pub(super) fn cores(&self) -> f64 {
        (self.server_cpu_us_per_second + self.client_cpu_us_per_second) / US
    }
}

fn bytes_of_a_post(asked: &Asked, units: &Units) -> f64 {
    units.post_bytes + asked.group_posts * units.group_post_bytes + asked.text_bytes
}

fn bytes_of_a_message(asked: &Asked, units: &Units) -> f64 {
    let members = (asked.chat_members - 2.0) * units.message_member_bytes;
    units.post_bytes + units.message_bytes + members + asked.text_bytes
}

fn stored(asked: &Asked, pulled: &Pulled, units: &Units) -> Vec<Stored> {
    let posts = bytes_of_a_post(asked, units);
    let follows = asked.users * asked.mean_following();
    let all = [
        Stored { name: "accounts", many: asked.users, bytes_each: units.account_bytes },
        Stored { name: "follows, on two sides", many: follows, bytes_each: 2.0 * units.edge_bytes },
        Stored { name: "posts", many: asked.posts_in_memory(), bytes_each: posts },
        Stored {
            name: "entries of homes",
            many: asked.users * asked.active * asked.home_posts,
            bytes_each: units.home_entry_bytes,
        },
        // Whoever follows a pulled author has a mark, also without a home.
        Stored {
            name: "marks of pulled authors",
            many: asked.users * pulled.per_reader,
            bytes_each: units.mark_bytes,
        },
        Stored {
            name: "messages",
            many: asked.messages_in_memory(),
            bytes_each: bytes_of_a_message(asked, units),
        },
        // Of everybody who has ever done that.
        Stored {
            name: "counts of limits",
            many: asked.users * asked.kinds_counted(),
            bytes_each: units.window_bytes,
        },
    ];
    all.into_iter().filter(|of| of.many > 0.0).collect()
}

/// Followers of the largest account that is pushed. Whom the cost model pulls depends on more than that: it may be any.
fn largest_pushed(rule: Rule, asked: &Asked) -> f64 {
    match rule {
        Rule::Push | Rule::Cost => asked.largest_followers(),
        Rule::Threshold => asked.largest_followers().min(count(Threshold::default().pull_from)),
        Rule::Pull => 0.0,
    }
}

/// Until so many followers have a post: the longer one of the servers' part, on all cores that they have left (a
/// fan-out goes to
/// all primaries at once), and the instance's part, which is on one.
fn post_seconds(followers: f64, asked: &Asked, units: &Units, free_cores: f64) -> f64 {
    let delivery = if followers < Units::SPREAD_FROM { units.delivery_us } else { units.delivery_spread_us };
    let [server, client] = [0, 1].map(|side| {
        // Measured where followers are few; where calls have many of them, one without a home costs no more than one
        // with.
        let skipped = units.skipped_us[side].min(delivery[side]);
        followers * (asked.active * delivery[side] + (1.0 - asked.active) * skipped)
    });
    (server / free_cores).max(client) / US
}

/// Rounded up, at least one.
fn whole(value: f64) -> u64 {
    stats::whole(value.ceil()).max(1)
}

#[cfg(test)]
mod tests {
    use super::super::args::tests::typed;
    use super::*;

    const LARGE: &str = "--users 500M --posts-per-second 5000 --mean-followers 400 --reads-per-second 300k \
                         --follows-per-second 1000 --fills-per-second 10 --text-bytes 100 --days-kept 2 \
                         --memory-utilisation 0.8 --instances 20";

    fn found(more: &str, units: &Units) -> Forecast {
        let line = format!("{LARGE} {more}");
        let asked = typed(&line.split_whitespace().collect::<Vec<_>>().join(" ")).unwrap();
        let pulled = Pulled {
            authors: 1_000.0,
            per_reader: 5.0,
            posts: 0.2,
            mean_followers: 400.0,
            looks_per_second: 1e4,
        };
        of(Rule::Push, Load { asked: &asked, pulled, instances: 20.0 }, units)
    }

    fn is_about(value: f64, expected: f64) -> bool {
        (value / expected - 1.0).abs() < 1e-9
    }

    #[test]
    fn cpu_is_what_posts_deliveries_and_pages_come_to() {
        let found = found("", &Units::round());
        // 80 of 400 followers have a home; a follow in 80 is of somebody who is pulled.
        let servers = 4_000.0 * (100.0 + 80.0 * 5.0 + 320.0) + 1_000.0 * 50.0 + 300_000.0 * 10.0;
        let servers = servers + 1e4 * 5.0 + 1_000.0 * (79.0 * 80.0 + 40.0) / 80.0 + 10.0 * 400.0 * 2.0;
        let clients = 4_000.0 * 100.0 + 1_000.0 * 20.0 + 300_000.0 * (20.0 + 5.0) + 1e4 * 5.0;
        let clients = clients + 1_000.0 * 40.0 + 10.0 * 400.0 * 3.0;
        assert!(is_about(found.server_cpu_us_per_second, servers), "{}", found.server_cpu_us_per_second);
        assert!(is_about(found.client_cpu_us_per_second, clients), "{}", found.client_cpu_us_per_second);
        assert_eq!(found.instance_cores, 17);
        let written = 4_000.0 * (100.0 + 80.0 * 5.0) + 1_000.0 * 50.0;
        let written = written + 1_000.0 * (79.0 * 80.0 + 40.0) / 80.0 + 10.0 * 400.0 * 2.0;
        assert!(is_about(found.replica_cpu_us_per_second, written), "{}", found.replica_cpu_us_per_second);
    }

    #[test]
    fn memory_decides_on_primaries_where_it_needs_more_of_them() {
        let narrow = found("", &Units::round());
        // Homes 800 GB, follows 8 TB, accounts 50 GB, 864 M posts 432 GB, marks 50 GB.
        assert!(is_about(narrow.memory_bytes, 9.332e12), "{}", narrow.memory_bytes);
        assert!(is_about(narrow.memory_bytes_with_replicas, 2.0 * 9.332e12));
        assert_eq!([narrow.primaries_for_cpu, narrow.primaries_for_memory, narrow.nodes], [13, 467, 934]);
        assert_eq!((narrow.primaries, narrow.buckets), (467, 16_384), "of 25 GB each 80 %");
        assert!(is_about(narrow.memory_bytes_a_day, 432e6 * 500.0), "{}", narrow.memory_bytes_a_day);
        assert!(is_about(narrow.disk_bytes_per_node, 9.332e12 / 467.0 * 3.0));
        let roomy = found("--memory-per-primary 1000T --replicas 0", &Units::round());
        assert_eq!((roomy.primaries, roomy.nodes, roomy.buckets), (13, 13, 1_024));
    }

    #[test]
    fn messages_and_counts_of_limits_take_memory_and_old_messages_lie_in_the_archive() {
        let plain = found("", &Units::round());
        let more =
            found("--messages-per-second 100 --chat-members 4 --group-posts 0.5 --limited", &Units::round());
        // Posts 25 more each; messages of two days, each 400 + 100 + 2 x 30 + 100; counts of three kinds.
        let messages = 100.0 * 86_400.0 * 2.0 * 660.0;
        let expected = 864e6 * 25.0 + messages + 500e6 * 3.0 * 40.0;
        assert!(is_about(more.memory_bytes - plain.memory_bytes, expected), "{more:?}");
        assert!(plain.archive_bytes.abs() < 1.0 && more.archive_bytes.abs() < 1.0, "there is none");
        let hot = found("--messages-per-second 100 --hot-posts 0 --hot-days 1", &Units::round());
        let old = 86_400.0 * (5_000.0 + 100.0) * (ARCHIVED_BYTES + 100.0);
        assert!(is_about(hot.archive_bytes, old), "{}", hot.archive_bytes);
    }

    /// The instance's own part was left out, and the servers' divided by more and more cores.
    #[test]
    fn a_post_to_very_many_takes_the_longer_one_of_the_servers_part_and_the_instances() {
        // 5 M awake x 4, 20 M asleep x 1, on what 467 cores have left.
        let servers = found("", &Units::round());
        let free = 467.0 - servers.server_cpu_us_per_second / US;
        assert!(is_about(servers.longest_post_seconds, 40.0 / free), "{}", servers.longest_post_seconds);
        // 5 M awake x 2, 20 M asleep x 2: no more than a delivery.
        let units = Units { delivery_spread_us: [4.0, 2.0], skipped_us: [1.0, 3.0], ..Units::round() };
        assert!(is_about(found("", &units).longest_post_seconds, 50.0));
        let full = found("--memory-per-primary 1000T --utilisation 1", &Units::round());
        let free =
            (count(full.primaries) - full.server_cpu_us_per_second / US).max(0.05 * count(full.primaries));
        assert!(is_about(full.longest_post_seconds, 40.0 / free), "{}", full.longest_post_seconds);
    }

    #[test]
    fn the_cost_model_is_no_dearer_than_the_better_of_pushing_and_pulling_all() {
        for reads in ["10", "300", "300k"] {
            let asked = typed(&format!("--users 5M --reads-per-second {reads}")).unwrap();
            let network = Network::of(&asked);
            let cores = |rule| forecast(rule, &network, &asked, &Units::round()).unwrap().cores();
            let [push, pull, cost] = [Rule::Push, Rule::Pull, Rule::Cost].map(cores);
            // It does not know what a post's own part costs pushed and pulled.
            assert!(cost <= push.min(pull) * 1.05, "{reads}: {push} {pull} {cost}");
        }
    }
}
