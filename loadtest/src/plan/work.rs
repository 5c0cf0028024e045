//! What a service does again and again, and what that costs: CPU of the servers, of the client, bytes on the wire. Pure.

use tideline::Facts;

use super::forecast::{Asked, Line};
use super::quantity::{bytes, count, times};
use super::units::Units;
use crate::report::{count as count_of, many};
use crate::systems::PAGE;

/// CPU of the servers and of the client in microseconds, and bytes that the servers receive and send.
pub(super) type Cost = [f64; 3];

/// An id of an outbox, as a server sends it.
const ID_WIRE_BYTES: f64 = 14.0;
/// So many of them a look at an outbox asks for: a page, and what tells whether there is more.
const LOOK_IDS: usize = PAGE + 2;

/// Something that is done again and again.
pub(super) struct Work {
    pub(super) name: &'static str,
    pub(super) per_second: f64,
    /// How often, as a formula.
    rate: String,
    /// What one of it takes.
    parts: Vec<Part>,
    /// Whether replicas get it too.
    pub(super) is_written: bool,
}

/// So many of something.
struct Part {
    many: f64,
    what: &'static str,
    each: Cost,
}

fn cost([server, client]: [f64; 2], wire_bytes: f64) -> Cost {
    [server, client, wire_bytes]
}

fn one(each: Cost) -> Part {
    Part { many: 1.0, what: "", each }
}

fn some(many: f64, what: &'static str, each: Cost) -> Part {
    Part { many, what, each }
}

/// Nothing but bytes.
fn text(asked: &Asked) -> Part {
    some(asked.text_bytes, "bytes of text", [0.0, 0.0, 1.0])
}

impl Work {
    fn read(name: &'static str, per_second: f64, parts: Vec<Part>) -> Self {
        let rate = format!("{}/s", count(per_second));
        Self { name, per_second, rate, parts, is_written: false }
    }

    fn written(name: &'static str, per_second: f64, parts: Vec<Part>) -> Self {
        Self { is_written: true, ..Self::read(name, per_second, parts) }
    }

    /// Of one.
    pub(super) fn each(&self) -> Cost {
        [0, 1, 2].map(|side| self.parts.iter().map(|part| part.many * part.each[side]).sum())
    }

    /// CPU of the servers and of the client in a second.
    pub(super) fn cpu(&self) -> [f64; 2] {
        let [server, client, _] = self.each();
        [server, client].map(|us| us * self.per_second)
    }

    /// Bytes in a second, with those to replicas.
    pub(super) fn wire(&self, replicas: f64) -> f64 {
        let times = if self.is_written { 1.0 + replicas } else { 1.0 };
        self.per_second * self.each()[2] * times
    }

    /// What it takes of one kind, as a formula; parts that take nothing of it are left out.
    fn formula(&self, takes: impl Fn(&Cost) -> bool, told: impl Fn(&Cost) -> String) -> String {
        let part = |Part { many, what, each }: &Part| match *what {
            "" => told(each),
            what => format!("{} {what} x {}", count(*many), told(each)),
        };
        let parts: Vec<String> = self.parts.iter().filter(|part| takes(&part.each)).map(part).collect();
        match parts.as_slice() {
            [part] => format!("{} x {part}", self.rate),
            parts => format!("{} x ({})", self.rate, parts.join(" + ")),
        }
    }

    pub(super) fn cpu_line(&self) -> Line {
        let formula = self.formula(|each| each[0] + each[1] > 0.0, |each| times([each[0], each[1]]));
        Line { name: format!("CPU: {}", self.name), value: times(self.cpu()), formula }
    }

    pub(super) fn wire_line(&self, replicas: f64) -> Line {
        let formula = self.formula(|each| each[2] > 0.0, |each| bytes(each[2]));
        let written = if self.is_written {
            format!(" x (1 + {})", many(replicas, "replica", "replicas"))
        } else {
            String::new()
        };
        Line {
            name: format!("bandwidth: {}", self.name),
            value: format!("{}/s", bytes(self.wire(replicas))),
            formula: formula + &written,
        }
    }
}

/// All that is done.
pub(super) fn all(asked: &Asked, units: &Units) -> Vec<Work> {
    let all = [
        pushed_posts(asked, units),
        asleep(asked, units),
        pulled_posts(asked, units),
        pages(asked, units),
        posts_anew(asked, units),
        authors_anew(asked, units),
        looks(asked, units),
        follows(asked, units),
        fills(asked, units),
    ];
    all.into_iter().filter(|work| work.per_second > 0.0).collect()
}

fn pushed_per_second(asked: &Asked) -> f64 {
    asked.posts_per_second * (1.0 - asked.pulled.posts)
}

/// Posts whose deliveries come with them.
fn pushed_posts(asked: &Asked, units: &Units) -> Work {
    let parts = vec![
        one(cost(units.publish_us, units.publish_wire_bytes)),
        text(asked),
        some(
            asked.pulled.mean_followers * asked.active,
            "awake",
            cost(units.delivery_us, units.delivery_wire_bytes),
        ),
    ];
    Work::written("posts, pushed", pushed_per_second(asked), parts)
}

/// Followers without a home, where nothing is written.
fn asleep(asked: &Asked, units: &Units) -> Work {
    let asleep = asked.pulled.mean_followers * (1.0 - asked.active);
    let parts = vec![some(asleep, "asleep", cost(units.skipped_us, units.skipped_wire_bytes))];
    Work::read("their followers without a home", pushed_per_second(asked), parts)
}

fn pulled_posts(asked: &Asked, units: &Units) -> Work {
    let parts = vec![one(cost(units.publish_pulled_us, units.publish_pulled_wire_bytes)), text(asked)];
    Work::written("posts, pulled", asked.posts_per_second * asked.pulled.posts, parts)
}

pub(super) fn pages(asked: &Asked, units: &Units) -> Work {
    let parts = vec![
        one(cost(units.check_us, units.page_wire_bytes)),
        // Out of caches: nothing travels.
        some(asked.posts_per_page, "posts", cost(units.shown_us(), 0.0)),
        some(asked.pulled.per_reader, "pulled", cost(units.pull_us, 0.0)),
    ];
    Work::read("pages", asked.reads_per_second, parts)
}

/// What of so many things an instance uses and has not read within `visible_within_s`, and how that is reckoned. `under_way_s`:
/// for how long whoever else comes has to ask, too.
fn anew(asked: &Asked, used: (f64, &str), things: (f64, &str), under_way_s: f64) -> (f64, String) {
    let Asked { visible_within_s, instances, .. } = *asked;
    let ((used_per_second, used), (things, what)) = (used, things);
    // Things that are used alike are as many caches of one thing.
    let alone = Facts::looks_per_second(used_per_second, things * instances, asked.visible_within());
    let beside = 1.0 + used_per_second * under_way_s / (things * instances).max(1.0);
    let per_second = alone * beside;
    let beside =
        if under_way_s > 0.0 { format!(" x {beside:.2} who come while it is read") } else { String::new() };
    let rate = format!(
        "{}/s ({} {used}/s / (1 + {visible_within_s} s x that / ({} {what} x {instances} instances)){beside})",
        count(per_second),
        count(used_per_second),
        count(things),
    );
    (per_second, rate)
}

/// Posts that stand on anybody's newest page at a time: those that came within the time in which a page is filled anew, or
/// within that for which a cache remembers, if that is longer.
fn posts_on_show(asked: &Asked) -> f64 {
    let newest = asked.posts_per_page * asked.users / asked.mean_following.max(1.0);
    newest.max(asked.posts_per_second * asked.visible_within_s).min(asked.stored_posts)
}

/// Posts that pages show, and that no instance has in its cache. All on show are taken to be shown as often as any other:
/// where few of them are shown to many, it is less.
pub(super) fn posts_anew(asked: &Asked, units: &Units) -> Work {
    let shown = asked.reads_per_second * asked.posts_per_page;
    let (per_second, rate) =
        anew(asked, (shown, "shown"), (posts_on_show(asked), "posts on newest pages"), asked.page_s);
    let parts = vec![one(cost(units.load_us, units.load_post_wire_bytes)), text(asked)];
    Work { rate, ..Work::read("posts read anew", per_second, parts) }
}

/// Their authors, likewise.
pub(super) fn authors_anew(asked: &Asked, units: &Units) -> Work {
    let shown = asked.reads_per_second * asked.posts_per_page;
    let (per_second, rate) = anew(asked, (shown, "shown"), (asked.users, "accounts"), asked.page_s);
    let parts = vec![one(cost(units.load_us, units.load_account_wire_bytes))];
    Work { rate, ..Work::read("authors read anew", per_second, parts) }
}

/// Looks at pulled outboxes: the more often one is pulled, the less they add.
pub(super) fn looks(asked: &Asked, units: &Units) -> Work {
    let pulls = asked.reads_per_second * asked.pulled.per_reader;
    // Whoever comes meanwhile waits for the same answer.
    let (per_second, rate) = match asked.pulled.looks_per_second {
        Some(looks) => (looks, looks_by_author(asked, pulls, looks)),
        None => anew(asked, (pulls, "pulls"), (asked.pulled.authors, "pulled authors"), 0.0),
    };
    let parts = vec![
        one(cost(units.look_us, units.look_wire_bytes)),
        some(look_ids(asked.stored_posts / asked.users), "ids", [0.0, 0.0, ID_WIRE_BYTES]),
    ];
    Work { rate, ..Work::read("looks at pulled outboxes", per_second, parts) }
}

/// How looks are reckoned where it is known how often each author is pulled.
fn looks_by_author(asked: &Asked, pulls: f64, looks: f64) -> String {
    let Asked { visible_within_s, instances, .. } = asked;
    format!(
        "{}/s ({} pulls/s; of each author's r a second r / (1 + {visible_within_s} s x r / {instances} instances), for {} pulled authors)",
        count(looks),
        count(pulls),
        count(asked.pulled.authors)
    )
}

/// Ids that a look at an outbox brings, of an account with so many posts; also the outbox' own first element.
fn look_ids(posts: f64) -> f64 {
    (posts + 1.0).min(count_of(LOOK_IDS as u64))
}

/// Follows of those who are pulled and of those who are pushed, in proportion to the follows that there are.
fn follows(asked: &Asked, units: &Units) -> Work {
    let pulled = (asked.pulled.per_reader / asked.mean_following.max(1.0)).min(1.0);
    let parts = vec![
        some(1.0 - pulled, "of pushed ones", cost(units.follow_us, units.follow_wire_bytes)),
        some(pulled, "of pulled ones", cost(units.follow_pulled_us, units.follow_pulled_wire_bytes)),
    ];
    Work::written("follows", asked.follows_per_second, parts)
}

fn fills(asked: &Asked, units: &Units) -> Work {
    let parts = vec![some(asked.mean_following, "followed", cost(units.fill_us, units.fill_wire_bytes))];
    Work::written("homes that are filled", asked.fills_per_second, parts)
}

#[cfg(test)]
mod tests {
    use super::super::forecast::forecast;
    use super::super::forecast::tests::{asked, is_about};
    use super::super::network::Pulled;
    use super::*;

    #[test]
    fn a_page_that_shows_less_costs_less() {
        let of = |posts_per_page| {
            let pulled = Pulled { per_reader: 0.0, ..asked().pulled };
            let asked = Asked { posts_per_page, pulled, ..asked() };
            pages(&asked, &Units::round()).each()
        };
        for (posts, server, client) in [(0.0, 6.0, 4.0), (5.0, 7.0, 8.0), (20.0, 10.0, 20.0)] {
            let found = of(posts);
            assert!(is_about(found[0], server) && is_about(found[1], client), "{posts}: {found:?}");
        }
    }

    #[test]
    fn an_outbox_that_is_seldom_pulled_is_looked_at_each_time_and_another_once_for_each_cache() {
        let of = |reads_per_second| looks(&Asked { reads_per_second, ..asked() }, &Units::round()).per_second;
        assert!((of(1.0) / 5.0 - 1.0).abs() < 0.01, "{}", of(1.0));
        assert!((of(1e9) / 20_000.0 - 1.0).abs() < 0.01, "{}", of(1e9));
    }

    #[test]
    fn what_few_read_is_read_anew_each_time_and_what_many_do_once_for_each_cache() {
        let units = Units { load_us: [2.0, 3.0], ..Units::round() };
        let of = |reads_per_second| {
            let asked = Asked { reads_per_second, ..asked() };
            posts_anew(&asked, &units).per_second + authors_anew(&asked, &units).per_second
        };
        // 20 posts and their authors. A reader whose 400 bring 20 posts has seen those of a twentieth of all accounts.
        assert!((of(1.0) / 40.0 - 1.0).abs() < 0.01, "{}", of(1.0));
        let things = 20.0 * (25e6 + 500e6);
        assert!((of(1e13) / things - 1.0).abs() < 0.01, "{}", of(1e13));
        let [plain, more] = [&Units::round(), &units].map(|u| forecast(&asked(), u).server_cpu_us_per_second);
        assert!(is_about(more - plain, of(300_000.0) * 2.0), "{more} {plain}");
    }

    #[test]
    fn whoever_comes_while_something_is_read_anew_reads_it_too() {
        let of = |page_s| {
            let asked = Asked { page_s, posts_per_page: 0.001, ..asked() };
            posts_anew(&asked, &Units::round()).per_second
        };
        // 300 are shown a second, of the 5,000 posts of the last second, on 20 instances: a second each.
        assert!(is_about(of(2.0) / of(0.0), 1.0 + 300.0 * 2.0 / 100_000.0), "{} {}", of(2.0), of(0.0));
    }

    #[test]
    fn the_wire_carries_texts_looks_and_fills_and_to_replicas_what_is_written() {
        let units = Units {
            publish_wire_bytes: 900.0,
            publish_pulled_wire_bytes: 800.0,
            delivery_wire_bytes: 90.0,
            skipped_wire_bytes: 60.0,
            page_wire_bytes: 1_200.0,
            load_post_wire_bytes: 130.0,
            load_account_wire_bytes: 270.0,
            look_wire_bytes: 120.0,
            follow_wire_bytes: 800.0,
            follow_pulled_wire_bytes: 400.0,
            fill_wire_bytes: 200.0,
            ..Units::round()
        };
        let asked = asked();
        let found = forecast(&asked, &units).bandwidth_bytes_per_second;
        let written = 4_000.0 * (900.0 + 100.0 + 80.0 * 90.0)
            + 1_000.0 * (800.0 + 100.0)
            + 1_000.0 * (79.0 * 800.0 + 400.0) / 80.0
            + 10.0 * 400.0 * 200.0;
        let anew = |used: f64, things: f64| used / (1.0 + used / (things * 20.0));
        // An account has two posts, and its outbox an element of its own.
        let read = 4_000.0 * 320.0 * 60.0
            + 300_000.0 * 1_200.0
            + anew(6e6, 25e6) * 230.0
            + anew(6e6, 500e6) * 270.0
            + anew(1.5e6, 1_000.0) * (120.0 + 3.0 * 14.0);
        assert!(is_about(found, 2.0 * written + read), "{found} {written} {read}");
        let alone = forecast(&Asked { replicas: 0.0, ..asked }, &units).bandwidth_bytes_per_second;
        assert!(is_about(alone, written + read), "{alone}");
    }

    #[test]
    fn a_formula_names_what_it_reckons_with_and_leaves_out_what_costs_nothing() {
        let work = pushed_posts(&asked(), &Units::round());
        let [cpu, wire] = [work.cpu_line(), work.wire_line(1.0)];
        assert_eq!(cpu.name, "CPU: posts, pushed");
        assert!(!cpu.formula.contains("text") && cpu.formula.contains("80.0 awake x (5.00 us"), "{cpu:?}");
        assert!(
            wire.formula.contains("100 bytes of text x 1.00 B") && wire.formula.ends_with("(1 + 1 replica)"),
            "{wire:?}"
        );
        assert!((look_ids(2.0) - 3.0).abs() < 1e-9 && (look_ids(1e6) - 22.0).abs() < 1e-9);
    }
}
