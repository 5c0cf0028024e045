//! How often an account may do something within a span of time, against a naive count.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::data::{Data, Done, Out, Value};
use super::halves::run;
use crate::functions::{TimeLimit, TimeLimits};

const RECORD: &[u8] = b"{06S}a";
const SPAN_MS: u64 = 12_000;
const PART_MS: u64 = SPAN_MS / 12;
const NEW_MS: u64 = 60_000;

fn limit(field: &'static str, most: u16, cost: u16) -> TimeLimit {
    let span = Duration::from_millis(SPAN_MS);
    TimeLimit { field, span, most, most_new: most.div_ceil(2), cost, words: ("tried", "tries") }
}

fn limits(limits: impl IntoIterator<Item = TimeLimit>) -> TimeLimits {
    TimeLimits { new_for: Duration::from_millis(NEW_MS), limits: limits.into_iter().collect() }
}

fn account(registered_ms: Option<u64>) -> Data {
    let at = registered_ms.map(|ms| (b"at".to_vec(), ms.to_string().into_bytes()));
    let mut data = Data::default();
    data.set(RECORD, Value::Hash([(b"s".to_vec(), b"a".to_vec())].into_iter().chain(at).collect()));
    data
}

/// Counts it at that moment, or tells which limit is reached, how often one may, and until how many parts have begun.
fn take(data: &mut Data, limits: &TimeLimits, now_ms: u64) -> Result<(), (i64, i64, i64)> {
    let (done, after): (Done, Data) = run(&limits.take(RECORD.to_vec(), now_ms), data);
    *data = after;
    let Ok(Out::Items(told)) = done else { panic!("{done:?}") };
    match told.as_slice() {
        [Out::Bulk(word)] if word == b"ok" => Ok(()),
        [Out::Bulk(word), Out::Int(number), Out::Int(most), Out::Int(parts)] if word == b"often" => {
            Err((*number, *most, *parts))
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn no_span_of_time_holds_more_than_is_allowed_and_whoever_waits_is_told_how_long() {
    let mut random = StdRng::seed_from_u64(1);
    for _ in 0..200 {
        let (most, mut now) = (random.random_range(1..20), 1_700_000_000_000);
        let (mut data, mut allowed) = (account(None), Vec::new());
        for _ in 0..200 {
            let pause_max = [300, 2_000, 30_000][random.random_range(0..3)];
            now += random.random_range(0..pause_max);
            let cost = random.random_range(1..4);
            let within = |ms: u64, allowed: &[(u64, u16)]| -> u16 {
                allowed.iter().filter(|(at, _)| *at + ms > now).map(|(_, cost)| cost).sum()
            };
            match take(&mut data, &limits([limit("tb", most, cost)]), now) {
                Ok(()) => {
                    allowed.push((now, cost));
                    assert!(within(SPAN_MS, &allowed) <= most, "{allowed:?}");
                }
                Err((number, of, parts)) => {
                    assert_eq!((number, of), (0, most.into()));
                    assert!(within(SPAN_MS + PART_MS, &allowed) + cost > most, "{now}: {allowed:?}");
                    assert_eq!(parts == 0, cost > most);
                    // It may once they have begun, and not a moment before.
                    let again = (now / PART_MS + u64::try_from(parts).unwrap()) * PART_MS;
                    let may =
                        |ms: u64| take(&mut data.clone(), &limits([limit("tb", most, cost)]), ms).is_ok();
                    assert!(parts == 0 || (may(again) && !may(again - 1)), "{now}, {parts}: {allowed:?}");
                }
            }
        }
    }
}

#[test]
fn a_clock_that_was_far_ahead_keeps_nobody_waiting() {
    let (mut data, now) = (account(None), 1_700_000_000_000);
    let once = limits([limit("tb", 1, 1)]);
    let mut takes = |now_ms| take(&mut data, &once, now_ms).is_ok();
    assert!(takes(now + 100 * SPAN_MS));
    assert!(takes(now));
    assert!(!takes(now));
    // A little ahead: it counts.
    assert!(takes(now + 2 * SPAN_MS));
    assert!(!takes(now + 2 * SPAN_MS - SPAN_MS / 6));
}

#[test]
fn what_counts_against_several_limits_counts_against_all_or_none_and_a_new_account_may_less() {
    let now = 1_700_000_000_000;
    let (mut old, mut new) = (account(Some(now - NEW_MS)), account(Some(now - NEW_MS + 1)));
    let both = |of_second| limits([limit("lp", 4, 1), limit("ld", 6, of_second)]);
    for _ in 0..2 {
        assert_eq!(take(&mut old, &both(3), now), Ok(()));
    }
    // The second limit is reached, so the first counts nothing either: two of four are left.
    assert_eq!(take(&mut old, &both(1), now), Err((1, 6, 13)));
    let first = limits([limit("lp", 4, 1)]);
    for _ in 0..2 {
        assert_eq!(take(&mut old, &first, now), Ok(()));
    }
    assert_eq!(take(&mut old, &first, now), Err((0, 4, 13)));
    for _ in 0..2 {
        assert_eq!(take(&mut new, &first, now), Ok(()));
    }
    assert_eq!(take(&mut new, &first, now), Err((0, 2, 13)));
    // It isn't new any more, and has had two of four.
    assert_eq!(take(&mut new, &first, now + 1), Ok(()));
}
