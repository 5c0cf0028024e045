//! What a service does in a second, and what one of each thing takes: CPU of the servers, of the instances, bytes on
//! the wire.
//! Pure.

use std::time::Duration;

use serde::Serialize;
use tideline::AccountFacts;

use super::args::Asked;
use super::network::Pulled;
use crate::report::count;
use crate::systems::PAGE;
use crate::units::Units;

/// CPU of the servers and of an instance in microseconds, and bytes that the servers receive and send.
type Cost = [f64; 3];

/// An id of an outbox, as a server sends it.
const ID_WIRE_BYTES: f64 = 14.0;
/// So many of them a look at an outbox asks for: a page, and what tells whether there is more.
const LOOK_IDS: usize = PAGE + 2;
/// Posts of a home that a page by importance scores.
const CANDIDATES: f64 = 120.0;

/// A service under one policy.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load<'a> {
    pub(super) asked: &'a Asked,
    pub(super) pulled: Pulled,
    pub(super) instances: f64,
}

/// Something that is done again and again.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Work {
    pub(super) name: &'static str,
    pub(super) per_second: f64,
    pub(super) server_us: f64,
    pub(super) client_us: f64,
    pub(super) wire_bytes: f64,
    /// Whether replicas get it too.
    pub(super) is_written: bool,
}

impl Work {
    /// Of one that is so many of each of these.
    fn read(name: &'static str, per_second: f64, parts: &[(f64, Cost)]) -> Self {
        let [server_us, client_us, wire_bytes] =
            [0, 1, 2].map(|side| parts.iter().map(|(many, each)| many * each[side]).sum());
        Self { name, per_second, server_us, client_us, wire_bytes, is_written: false }
    }

    fn written(name: &'static str, per_second: f64, parts: &[(f64, Cost)]) -> Self {
        Self { is_written: true, ..Self::read(name, per_second, parts) }
    }

    /// CPU of the servers and of the instances in a second.
    pub(super) fn cpu(&self) -> [f64; 2] {
        [self.server_us, self.client_us].map(|us| us * self.per_second)
    }

    /// Bytes in a second, with those to replicas.
    pub(super) fn wire(&self, replicas: f64) -> f64 {
        let times = if self.is_written { 1.0 + replicas } else { 1.0 };
        self.per_second * self.wire_bytes * times
    }
}

fn cost([server, client]: [f64; 2], wire_bytes: f64) -> Cost {
    [server, client, wire_bytes]
}

impl Load<'_> {
    /// All that is done.
    pub(super) fn work(&self, units: &Units) -> Vec<Work> {
        let Self { asked, pulled, .. } = self;
        let text = (asked.text_bytes, [0.0, 0.0, 1.0]);
        let pushed = asked.posts_per_second * (1.0 - pulled.posts);
        let followers = pushed * pulled.mean_followers;
        // By importance all candidates are loaded, whatever shows of them.
        let loaded = asked.posts_per_page + asked.by_importance * (CANDIDATES - asked.posts_per_page);
        let shown = asked.reads_per_second * loaded;
        let follows_of_pulled = (pulled.per_reader / asked.mean_following().max(1.0)).min(1.0);
        let publish = (1.0, cost(units.publish_us, units.publish_wire_bytes));
        let publish_pulled = (1.0, cost(units.publish_pulled_us, units.publish_pulled_wire_bytes));
        let delivery = (1.0, cost(units.delivery_us, units.delivery_wire_bytes));
        let skipped = (1.0, cost(units.skipped_us, units.skipped_wire_bytes));
        // Posts and pulled outboxes come out of caches: nothing of them travels.
        let page = [
            (1.0, cost(units.check_us, units.page_wire_bytes)),
            (asked.posts_per_page, cost(units.shown_us(), 0.0)),
            (pulled.per_reader, cost(units.pull_us, 0.0)),
        ];
        // Scored are the candidates of its window, whatever it shows of them.
        let by_importance = [
            (1.0, cost(units.ranked_us, units.ranked_wire_bytes)),
            (pulled.per_reader, cost(units.pull_us, 0.0)),
        ];
        let permit = (if asked.limited { 1.0 } else { 0.0 }, cost(units.permit_us, units.permit_wire_bytes));
        let into_group = [(1.0, cost(units.group_post_us, units.group_post_wire_bytes)), permit];
        let further = asked.chat_members - 2.0;
        let message = [
            (1.0, cost(units.message_us, units.message_wire_bytes)),
            (further, cost(units.message_member_us, units.message_member_wire_bytes)),
            permit,
            text,
        ];
        let post_anew = [(1.0, cost(units.load_us, units.load_post_wire_bytes)), text];
        let author_anew = [(1.0, cost(units.load_us, units.load_account_wire_bytes))];
        let ids = (asked.stored_posts() / asked.users + 1.0).min(count(LOOK_IDS as u64));
        let look = [(1.0, cost(units.look_us, units.look_wire_bytes)), (ids, [0.0, 0.0, ID_WIRE_BYTES])];
        let follow = [
            (1.0 - follows_of_pulled, cost(units.follow_us, units.follow_wire_bytes)),
            (follows_of_pulled, cost(units.follow_pulled_us, units.follow_pulled_wire_bytes)),
        ];
        let fill = [(asked.mean_following(), cost(units.fill_us, units.fill_wire_bytes))];
        let all = [
            Work::written("posts, pushed", pushed, &[publish, text]),
            Work::written("deliveries to homes", followers * asked.active, &[delivery]),
            Work::read("followers without a home", followers * (1.0 - asked.active), &[skipped]),
            Work::written("posts, pulled", asked.posts_per_second * pulled.posts, &[publish_pulled, text]),
            Work::written(
                "posts into groups: what is more",
                asked.posts_per_second * asked.group_posts,
                &into_group,
            ),
            Work::written("messages", asked.messages_per_second, &message),
            Work::read("pages", asked.reads_per_second * (1.0 - asked.by_importance), &page),
            Work::read("pages by importance", asked.reads_per_second * asked.by_importance, &by_importance),
            Work::read("posts in no cache", self.anew(shown, self.posts_on_show()), &post_anew),
            Work::read("authors in no cache", self.anew(shown, asked.users), &author_anew),
            Work::read("looks at pulled outboxes", pulled.looks_per_second, &look),
            Work::written("follows", asked.follows_per_second, &follow),
            Work::written("homes that are filled", asked.fills_per_second, &fill),
        ];
        all.into_iter().filter(|work| work.per_second > 0.0).collect()
    }

    /// How often an instance uses one of so many things that it has not read within `visible_within`. Things that
    /// are used
    /// alike are as many caches of one thing.
    fn anew(&self, used_per_second: f64, things: f64) -> f64 {
        AccountFacts::looks_per_second(used_per_second, things * self.instances, self.asked.within())
    }

    /// Posts that stand on anybody's newest page at a time: those that came within the time in which a page is
    /// filled anew,
    /// or within that for which a cache remembers, if that is longer. All are taken to be shown as often as any other.
    fn posts_on_show(&self) -> f64 {
        let asked = self.asked;
        let newest = asked.posts_per_page * asked.users / asked.mean_following().max(1.0);
        newest.max(asked.posts_per_second * asked.visible_within).min(asked.stored_posts())
    }
}

impl Asked {
    pub(super) fn within(&self) -> Duration {
        Duration::from_secs_f64(self.visible_within)
    }
}

#[cfg(test)]
mod tests {
    use super::super::args::tests::typed;
    use super::*;

    fn each(line: &str, name: &str) -> Work {
        let asked = typed(line).unwrap();
        let pulled = Pulled {
            authors: 10.0,
            per_reader: 5.0,
            posts: 0.2,
            mean_followers: 400.0,
            looks_per_second: 7.0,
        };
        let load = Load { asked: &asked, pulled, instances: 20.0 };
        load.work(&Units::round()).into_iter().find(|work| work.name == name).unwrap()
    }

    fn is_about(value: f64, expected: f64) -> bool {
        (value / expected - 1.0).abs() < 1e-9
    }

    #[test]
    fn a_page_that_shows_less_costs_less() {
        // 6 + 4 and for each post 0.2 + 0.8, for each of five pulled authors 0 + 1.
        for (posts, server, client) in [(0.0, 6.0, 9.0), (5.0, 7.0, 13.0), (20.0, 10.0, 25.0)] {
            let found = each(&format!("--users 5M --posts-per-page {posts}"), "pages");
            assert!(is_about(found.server_us, server) && is_about(found.client_us, client), "{found:?}");
        }
    }

    #[test]
    fn messages_posts_into_groups_and_pages_by_importance_cost_what_one_of_each_does() {
        let of = |more: &str, name| each(&format!("--users 5M {more}"), name);
        // 200 + 100, for each of three further members 10 + 5, and what counts it 20 + 10.
        let chat = "--messages-per-second 10 --chat-members 5";
        for (limited, server, client) in [("", 230.0, 115.0), (" --limited", 250.0, 125.0)] {
            let found = of(&format!("{chat}{limited}"), "messages");
            assert!(is_about(found.server_us, server) && is_about(found.client_us, client), "{found:?}");
            assert!(found.is_written && is_about(found.per_second, 10.0), "{found:?}");
        }
        let found = of("--group-posts 0.25 --limited", "posts into groups: what is more");
        assert!(is_about(found.per_second, 25.0) && is_about(found.server_us, 70.0), "{found:?}");
        let found = of("--by-importance 0.1", "pages by importance");
        assert!(is_about(found.per_second, 1_000.0) && is_about(found.client_us, 85.0), "{found:?}");
        assert!(is_about(of("--by-importance 0.1", "pages").per_second, 9_000.0));
        let uncached = of("--by-importance 0.5 --visible-within 0", "posts in no cache");
        assert!(is_about(uncached.per_second, 10_000.0 * 70.0), "{uncached:?}");
    }

    #[test]
    fn what_few_read_is_read_anew_each_time_and_what_many_do_once_for_each_cache() {
        let of = |reads: &str| {
            each(
                &format!("--users 500M --mean-followers 400 --reads-per-second {reads}"),
                "posts in no cache",
            )
        };
        assert!((of("1").per_second / 20.0 - 1.0).abs() < 0.01, "{:?}", of("1"));
        // A reader whose 400 bring 20 posts has seen those of a twentieth of all accounts.
        assert!((of("1e13").per_second / (25e6 * 20.0) - 1.0).abs() < 0.01, "{:?}", of("1e13"));
        let uncached = each("--users 500M --reads-per-second 10k --visible-within 0", "authors in no cache");
        assert!(is_about(uncached.per_second, 200_000.0), "{uncached:?}");
    }

    #[test]
    fn texts_travel_and_what_is_written_travels_to_replicas_too() {
        let (post, page) = (each("--users 5M", "posts, pushed"), each("--users 5M", "pages"));
        let wire = Units::round().publish_wire_bytes + 150.0;
        assert!(is_about(post.wire(2.0), 100.0 * 0.8 * wire * 3.0), "{post:?}");
        assert!(is_about(page.wire(2.0), page.wire(0.0)), "{page:?}");
        // 2.6 M posts of 5 M accounts are stored each day for 30 days: 51.8 of an account, and a look asks for 22 at
        // most.
        let look = each("--users 5M", "looks at pulled outboxes");
        assert!(is_about(look.wire_bytes, Units::round().look_wire_bytes + 22.0 * 14.0), "{look:?}");
    }
}
