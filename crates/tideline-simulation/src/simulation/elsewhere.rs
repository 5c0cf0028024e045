//! Functions that random histories don't call, or too seldom for each of their commands to fail there: on data made for
//! them, where each of their commands fails in turn.

mod cases;

use std::collections::BTreeSet;

use super::data::{Bytes, Data};
use super::halves::{self, call_of, halves, run};
use super::lua::{self, Site};
use cases::cases;

/// What shows that half of a function is nothing half-done.
enum Shown {
    /// It writes once: half of it is nothing.
    Once,
    /// Whoever calls it again, with these arguments drawn anew, ends where one call leads that doesn't fail; but for
    /// these keys.
    Again(&'static [Drawn], &'static [&'static str]),
}

/// What a caller puts in an argument's place when it calls again.
enum Drawn {
    /// What it has drawn anew.
    Is(usize, &'static [u8]),
    /// What stands in a field of a key by then.
    Read(usize, &'static str, &'static str),
}

use Drawn::{Is, Read};
use Shown::{Again, Once};

struct Case {
    function: &'static str,
    data: Data,
    keys: &'static [&'static str],
    args: Vec<Bytes>,
    shown: Shown,
}

fn key(rest: &str) -> Bytes {
    format!("{{06S}}{rest}").into_bytes()
}

/// What stands in a field; nothing if it isn't there.
fn field_of(data: &Data, rest: &str, field: &str) -> Bytes {
    let hash = data.hash(&key(rest)).expect("a hash");
    hash.and_then(|hash| hash.get(field.as_bytes()).cloned()).unwrap_or_default()
}

/// Whether a record tells of fewer from whom an account hides than there are: who reads that asks for none.
fn says_less(data: &Data) -> bool {
    let told = data.hash(&key("a")).ok().flatten().and_then(|record| record.get(&b"nh"[..]));
    let told = told.map_or(0, |told| super::data::number(told).expect("a number"));
    data.zset(&key("s@hides")).ok().flatten().is_some_and(|hidden| hidden.len() > told)
}

/// What is there, as those see it who look, but for some keys, or fields of keys (`a.p`): what stands twice in a home
/// shows once.
fn seen(mut data: Data, loose: &[&str]) -> Data {
    for rest in loose {
        match rest.split_once('.') {
            Some((rest, field)) => {
                let hash = data.hash_mut(&key(rest)).expect("a hash");
                hash.remove(field.as_bytes());
            }
            None => drop(data.remove(&key(rest))),
        }
    }
    for home in ["h1", "h2"].map(key).iter().filter(|home| data.has(home)).collect::<Vec<_>>() {
        let home = data.list_mut(home).expect("a list");
        home.dedup();
    }
    data
}

/// The places that fail here.
pub(super) fn sites() -> BTreeSet<Site> {
    lua::take_sites();
    for Case { function, data, keys, args, .. } in cases() {
        halves(&call_of(function, keys.iter().map(|rest| key(rest)), &args), &data);
    }
    halves::what_is_left_of_a_home_that_is_written_anew_is_true();
    halves::what_is_left_of_a_home_that_is_cut_is_true();
    halves::a_post_is_published_at_once_or_not_at_all();
    halves::what_is_reposted_once_more_stays_as_it_is();
    lua::take_sites().into_iter().filter(|(_, failed)| *failed > 0).map(|(site, _)| site).collect()
}

#[test]
fn half_of_a_function_is_nothing_half_done() {
    for Case { function, data, keys, args, shown } in cases() {
        let call = call_of(function, keys.iter().map(|rest| key(rest)), &args);
        let (answer, whole) = run(&call, &data);
        assert!(answer.is_ok() && whole != data, "{function} does nothing: {answer:?}");
        let halves = halves(&call, &data);
        assert!(!halves.is_empty());
        for (at, (_, left)) in halves.into_iter().enumerate() {
            assert!(
                !says_less(&left),
                "{function}, whose command {at} fails, has told of fewer than there are"
            );
            match shown {
                Once => assert_eq!(left, data, "{function}, whose command {at} fails, has written something"),
                Again(drawn, loose) => {
                    let mut args = args.clone();
                    for drawn in drawn {
                        match drawn {
                            Is(at, arg) => args[*at] = arg.to_vec(),
                            Read(at, of, field) => args[*at] = field_of(&left, of, field),
                        }
                    }
                    let again = call_of(function, keys.iter().map(|rest| key(rest)), &args);
                    let (answer, after) = run(&again, &left);
                    let is_whole = seen(after, loose) == seen(whole.clone(), loose);
                    assert!(is_whole, "{function}, whose command {at} failed, ends elsewhere: {answer:?}");
                }
            }
        }
    }
}
