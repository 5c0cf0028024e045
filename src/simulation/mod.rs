//! A simulation of the whole protocol: the engine itself and the shipped functions, on a cluster that exists in memory
//! only. Every command takes its own time and every function is atomic; everything else interleaves, by one seed:
//! instances freeze and die, replies are lost, requests arrive twice or late, buckets fail over and lose what their
//! replica had not, slots move key by key. docs/testing.md says how to replay a seed and to take a rule out.
//!
//! Nothing of the protocol is spelled here a second time: what is true is read from the stores (`truth`), and pages
//! are compared with that (`checks`).

mod bits;
mod checks;
mod data;
mod history;
mod link;
mod lists;
mod lua;
mod mutations;
mod truth;
mod world;
mod zsets;

use std::collections::BTreeMap;

use history::{Outcome, Shape, live};

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Lives through histories until one is violated. Tells how many there were, and that one.
fn search(first: u64, many: u64, shape: Shape, rules_out: &[&'static str]) -> (u64, Option<(u64, Outcome)>) {
    let mut counts = BTreeMap::<&str, u64>::new();
    for seed in first..first + many {
        let outcome = live(seed, shape, rules_out, false);
        outcome.counts.iter().for_each(|(what, n)| *counts.entry(what).or_default() += n);
        if !outcome.violations.is_empty() {
            return (seed - first + 1, Some((seed, outcome)));
        }
    }
    if rules_out.is_empty() {
        println!("{counts:?}");
    }
    (many, None)
}

fn assert_none_violated(many: u64, shape: Shape) {
    if let Some(seed) = number("TIDELINE_SEED") {
        let outcome = live(seed, shape, &[], true);
        outcome.trace.iter().for_each(|line| println!("{line}"));
        println!("{:?}", outcome.counts);
        assert!(outcome.violations.is_empty(), "seed {seed}: {:#?}", outcome.violations);
        return;
    }
    let first = number("TIDELINE_FIRST").unwrap_or(1);
    let began = std::time::Instant::now();
    let many = number("TIDELINE_HISTORIES").unwrap_or(many);
    let (lived, violated) = search(first, many, shape, &[]);
    println!("{lived} histories from seed {first} on in {:.1?}", began.elapsed());
    if let Some((seed, outcome)) = violated {
        panic!("TIDELINE_SEED={seed} replays: {:#?}", outcome.violations);
    }
}

#[test]
fn a_seed_replays() {
    for seed in 1..4 {
        let [one, other] = [0, 1].map(|_| live(seed, Shape::HARSH, &[], false));
        assert_eq!((one.commands, one.digest), (other.commands, other.digest), "seed {seed}");
    }
}

#[test]
fn no_calm_history_is_violated() {
    assert_none_violated(100, Shape::CALM);
}

#[test]
fn no_harsh_history_is_violated() {
    assert_none_violated(100, Shape::HARSH);
}

/// Takes each rule out, one at a time, and counts the histories until one is violated.
/// `TIDELINE_RULES=fence,busy` only these; `TIDELINE_HISTORIES` the most for each.
#[test]
#[ignore = "takes minutes: the table of docs/testing.md"]
fn every_rule_is_missed_when_it_is_taken_out() {
    let wanted = std::env::var("TIDELINE_RULES").unwrap_or_default();
    let many = number("TIDELINE_HISTORIES").unwrap_or(2_000);
    let first = number("TIDELINE_FIRST").unwrap_or(1);
    for rule in mutations::all() {
        if !wanted.is_empty() && !wanted.split(',').any(|name| name == rule) {
            continue;
        }
        let began = std::time::Instant::now();
        let (lived, violated) = search(first, many, Shape::HARSH, &[rule]);
        let example = violated.map_or("-".into(), |(seed, o)| format!("seed {seed}: {}", o.violations[0]));
        println!(
            "{rule:20} {lived:6} histories {:6.1?}  {}",
            began.elapsed(),
            example.chars().take(150).collect::<String>()
        );
    }
}
