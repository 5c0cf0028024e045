//! How often an account may do something within a span of time, against a naive count.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::data::{Data, Done, Out, Value};
use super::halves::run;
use crate::functions::TimeLimit;

const RECORD: &[u8] = b"{06S}a";
const SPAN_MS: u64 = 12_000;

fn limit(most: u16) -> TimeLimit {
    TimeLimit { field: "tb", span: Duration::from_millis(SPAN_MS), most }
}

fn account() -> Data {
    let mut data = Data::default();
    data.set(RECORD, Value::Hash([(b"s".to_vec(), b"a".to_vec())].into()));
    data
}

/// Whether it was allowed at that moment; it is counted then.
fn take(data: &mut Data, most: u16, now_ms: u64) -> bool {
    let (done, after): (Done, Data) = run(&limit(most).take(RECORD.to_vec(), now_ms), data);
    *data = after;
    match done {
        Ok(Out::Int(allowed @ (0 | 1))) => allowed == 1,
        other => panic!("{other:?}"),
    }
}

#[test]
fn no_span_of_time_holds_more_than_is_allowed_and_nobody_waits_longer_than_a_part_more() {
    let mut random = StdRng::seed_from_u64(1);
    for _ in 0..200 {
        let (most, mut now) = (random.random_range(1..20), 1_700_000_000_000);
        let (mut data, mut allowed) = (account(), Vec::new());
        for _ in 0..200 {
            let pause_max = [300, 2_000, 30_000][random.random_range(0..3)];
            now += random.random_range(0..pause_max);
            let within = |ms: u64, allowed: &[u64]| allowed.iter().filter(|at| **at + ms > now).count();
            if take(&mut data, most, now) {
                allowed.push(now);
                assert!(within(SPAN_MS, &allowed) <= usize::from(most), "{allowed:?}");
            } else {
                assert!(within(SPAN_MS + SPAN_MS / 12, &allowed) >= usize::from(most), "{now}: {allowed:?}");
            }
        }
    }
}

#[test]
fn a_clock_that_was_far_ahead_keeps_nobody_waiting() {
    let (mut data, now) = (account(), 1_700_000_000_000);
    assert!(take(&mut data, 1, now + 100 * SPAN_MS));
    assert!(take(&mut data, 1, now));
    assert!(!take(&mut data, 1, now));
    // A little ahead: it counts.
    assert!(take(&mut data, 1, now + 2 * SPAN_MS));
    assert!(!take(&mut data, 1, now + 2 * SPAN_MS - SPAN_MS / 6));
}
