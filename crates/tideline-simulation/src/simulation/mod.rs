//! A simulation of the whole protocol: the engine itself and the shipped functions, on a cluster that exists in memory
//! only. Every command takes its own time and every function is atomic; everything else interleaves, by one seed:
//! instances freeze and die, replies are lost, requests arrive twice or late, buckets fail over and lose what their
//! replica had not, slots move key by key. docs/testing.md says how to replay a seed and to take a rule out.
//!
//! Nothing of the protocol is spelled here a second time: what is true is read from the stores (`truth`), and pages
//! are compared with that (`checks`).

mod archive;
mod bits;
mod checks;
mod data;
mod disturbances;
mod elsewhere;
mod ends;
mod gates;
mod halves;
mod history;
mod index;
mod instances;
mod link;
mod lists;
mod lists_of_posts;
mod locks;
mod lua;
mod moving;
mod mutations;
mod names;
mod operations;
mod own_ties;
mod people;
mod proofs;
mod public;
mod scripts;
mod shape;
mod torn;
mod truth;
mod windows;
mod world;
mod zsets;

use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU64, Ordering};

use history::{Outcome, live};
use shape::Shape;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// What came of a number of histories.
#[derive(Default)]
struct Found {
    lived: u64,
    /// What clients did, what went wrong, what was left.
    counts: BTreeMap<&'static str, u64>,
    /// Where commands of functions could be made to fail.
    sites: torn::Reached,
    /// The first one that was violated, and its seed.
    violated: Option<(u64, Outcome)>,
}

/// Lives through a history: its seed, its shape, rules that are out, whether it is traced.
type Live = fn(u64, Shape, &[&'static str], bool) -> Outcome;

/// Lives through histories, on all cores, until one is violated.
fn search(first: u64, many: u64, shape: Shape, live: Live) -> Found {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let first_violated = AtomicU64::new(u64::MAX);
    let part = |thread: u64| {
        let mut found = Found::default();
        for seed in (first + thread..first + many).step_by(usize::try_from(threads).unwrap_or(1)) {
            if first_violated.load(Ordering::Relaxed) < seed {
                break;
            }
            let outcome = live(seed, shape, &[], false);
            found.lived += 1;
            outcome.counts.iter().for_each(|(what, n)| *found.counts.entry(what).or_default() += n);
            torn::note(&mut found.sites, seed, &outcome.sites);
            if !outcome.violations.is_empty() {
                first_violated.fetch_min(seed, Ordering::Relaxed);
                found.violated = Some((seed, outcome));
                break;
            }
        }
        found
    };
    std::thread::scope(|scope| {
        let part = &part;
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || part(thread))).collect();
        let mut all = Found::default();
        for found in running.into_iter().map(|thread| thread.join().expect("no panic")) {
            all.lived += found.lived;
            found.counts.iter().for_each(|(what, n)| *all.counts.entry(what).or_default() += n);
            torn::merge(&mut all.sites, found.sites);
            let is_first = |(seed, _): &(u64, Outcome)| all.violated.as_ref().is_none_or(|(s, _)| seed < s);
            if found.violated.as_ref().is_some_and(is_first) {
                all.violated = found.violated;
            }
        }
        all
    })
}

fn assert_none_violated(many: u64, shape: Shape, live: Live) -> Option<Found> {
    if let Some(seed) = number("TIDELINE_SEED") {
        torn::site_asked_for().into_iter().for_each(lua::fail_first);
        let outcome = live(seed, shape, &[], true);
        outcome.trace.iter().for_each(|line| println!("{line}"));
        println!("{:?}", outcome.counts);
        assert!(outcome.violations.is_empty(), "seed {seed}: {:#?}", outcome.violations);
        return None;
    }
    let is_random = std::env::var("TIDELINE_SEED").is_ok_and(|seed| seed == "random");
    let begin = if is_random { rand::random::<u32>().into() } else { 1 };
    let first = number("TIDELINE_FIRST").unwrap_or(begin);
    let began = std::time::Instant::now();
    let many = number("TIDELINE_HISTORIES").unwrap_or(many);
    let found = search(first, many, shape, live);
    println!("{} histories from seed {first} on in {:.1?}: {:?}", found.lived, began.elapsed(), found.counts);
    if let Some((seed, outcome)) = found.violated {
        panic!("TIDELINE_SEED={seed} replays: {:#?}", outcome.violations);
    }
    Some(found)
}

/// The same of everything; and all that goes wrong has met something that was under way.
fn assert_all_met(many: u64, shape: Shape) -> Option<Found> {
    let found = assert_none_violated(many, shape, live)?;
    let missed = shape.wrongs().into_iter().filter(|what| !found.counts.contains_key(what));
    let missed: Vec<_> = missed.collect();
    assert!(missed.is_empty(), "of what goes wrong this met nothing that was under way: {missed:?}");
    Some(found)
}

#[test]
fn a_seed_replays() {
    for live in [live, people::live as Live] {
        for seed in 1..4 {
            let [one, other] = [0, 1].map(|_| live(seed, Shape::HARSH, &[], false));
            assert_eq!((one.commands, one.digest), (other.commands, other.digest), "seed {seed}");
        }
    }
}

#[test]
fn no_calm_history_is_violated() {
    assert_all_met(80, Shape::CALM);
}

#[test]
fn no_harsh_history_is_violated() {
    let Some(found) = assert_all_met(100, Shape::HARSH) else { return };
    let cut = found.counts[history::CUT_OUTBOXES];
    assert!(cut > 0, "no post has left its outbox, so no floor was looked at");
}

#[test]
fn no_cached_history_is_violated() {
    assert_all_met(60, Shape::CACHED);
}

#[test]
fn no_parted_history_is_violated() {
    let Some(found) = assert_all_met(60, Shape::PARTED) else { return };
    let [checked, beside] = [history::PAGES, history::STALE_PAGES].map(|what| found.counts[what]);
    assert!(
        beside < checked,
        "{beside} pages came beside a stale read, {checked} were held against the model"
    );
}

#[test]
fn no_hollow_history_shows_what_is_hidden() {
    assert_all_met(30, Shape::HOLLOW);
}

/// Of every function that writes: also those that few histories come to.
#[test]
fn every_command_of_every_function_may_fail() {
    // Both first: a seed that is asked for is one of either kind.
    let lived = assert_all_met(80, Shape::TORN);
    let archived = assert_all_met(200, Shape::ARCHIVED_TORN);
    let lived = lived.zip(archived).zip(assert_none_violated(80, Shape::TORN, people::live));
    let Some(((found, archived), names)) = lived else { return };
    let mut failed = torn::fail_the_rest(found.sites, Shape::TORN, live);
    failed.append(&mut torn::fail_the_rest(archived.sites, Shape::ARCHIVED_TORN, live));
    failed.append(&mut torn::fail_the_rest(names.sites, Shape::TORN, people::live));
    torn::assert_covered(failed);
}

#[test]
fn no_archived_history_is_violated() {
    let Some(found) = assert_all_met(80, Shape::ARCHIVED) else { return };
    assert!(found.counts[history::ARCHIVED_POSTS] > 0, "no post has left memory");
    assert!(found.counts[history::FOUND_POSTS] > 0, "no post is found by its words");
}

#[test]
fn no_archived_history_is_violated_with_caches_or_where_nothing_goes_wrong() {
    assert_all_met(40, Shape::ARCHIVED_CACHED);
    assert_all_met(60, Shape::ARCHIVED_CALM);
}

#[test]
fn no_history_is_violated_where_posts_leave_for_their_age() {
    for shape in [Shape::AGED, Shape::AGED_TORN] {
        let Some(found) = assert_all_met(60, shape) else { return };
        for what in [history::HOURS, history::ARCHIVED_POSTS, history::WARM_POSTS] {
            assert!(found.counts.get(what).is_some_and(|many| *many > 0), "no {what}");
        }
    }
}

#[test]
fn an_account_that_is_deleted_is_not_found_by_its_words() {
    let outcome = scripts::play(scripts::archive::searched::buried_with_its_words, &[], false);
    assert!(outcome.violations.is_empty(), "{:#?}", outcome.violations);
}

#[test]
fn no_name_is_two_peoples() {
    assert_none_violated(150, Shape::HARSH, people::live);
}

#[test]
fn no_name_is_two_peoples_where_nothing_goes_wrong() {
    assert_none_violated(60, Shape::CALM, people::live);
}

#[test]
fn a_home_is_not_filled_from_a_primary_that_was_replaced() {
    let outcome = scripts::play(scripts::homes::filled_from_a_deposed_primary, &[], false);
    assert!(outcome.violations.is_empty(), "{:#?}", outcome.violations);
}

#[test]
fn nothing_is_at_rest_while_a_sleeper_goes_on() {
    let outcome = scripts::play(scripts::strays::a_sleeper_goes_on_without_its_entry, &[], false);
    assert!(outcome.violations.is_empty(), "{:#?}", outcome.violations);
}

#[test]
fn what_comes_along_with_a_page_takes_two_trips() {
    let outcome = scripts::play(scripts::trips::of_a_full_page, &[], false);
    assert!(outcome.violations.is_empty(), "{:#?}", outcome.violations);
}

#[test]
fn an_account_that_goes_takes_its_public_posts_along() {
    let outcome = scripts::play(scripts::public::buried, &[], false);
    assert!(outcome.violations.is_empty(), "{:#?}", outcome.violations);
}

#[test]
fn a_feed_that_exists_only_here_is_read_as_others_are() {
    let outcome = scripts::play(scripts::feeds::of_pictures, &[], false);
    assert!(outcome.violations.is_empty(), "{:#?}", outcome.violations);
}

#[test]
fn a_page_goes_on_below_a_floor_where_something_does() {
    let outcome = scripts::play(scripts::feeds::below_its_floor, &[], false);
    assert!(outcome.violations.is_empty(), "{:#?}", outcome.violations);
}

/// What these shapes excuse still leaves them something to find: one of their first histories is violated without such
/// a rule. With all rules they are clean, as above.
#[test]
fn parted_torn_and_hollow_histories_find_something() {
    for (rule, shape, many) in proofs::FOUND_BY_A_SHAPE {
        let is_found = (1..=*many).any(|seed| !live(seed, *shape, &[rule], false).violations.is_empty());
        assert!(is_found, "{rule} is not missed in {many} histories");
    }
}

/// Every rule is missed when it is taken out, as `proofs` says; and what shows that is clean while the rule holds.
/// `TIDELINE_RULES=fence,busy`: only these.
#[test]
fn every_rule_is_missed_when_it_is_taken_out() {
    let wanted = std::env::var("TIDELINE_RULES").unwrap_or_default();
    let named: Vec<&str> = proofs::ALL.iter().map(|(rule, _)| *rule).collect();
    let mut all = mutations::all();
    all.retain(|rule| !named.contains(rule));
    assert!(all.is_empty(), "nothing shows that {all:?} are needed");
    let mut wrong = Vec::new();
    for (rule, proof) in proofs::ALL {
        if !wanted.is_empty() && !wanted.split(',').any(|name| name == *rule) {
            continue;
        }
        let began = std::time::Instant::now();
        let is_traced = !wanted.is_empty();
        let held = catch_unwind(|| proof.holds(rule, is_traced));
        match held.unwrap_or_else(|_| Err("a panic".into())) {
            Ok(shown) => println!("{rule:20} {:6.1?}  {}", began.elapsed(), first_of(&shown)),
            Err(why) => wrong.push(format!("{rule}: {}", first_of(&why))),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn first_of(text: &str) -> String {
    text.chars().take(200).collect()
}
