//! Functions that random histories don't call, or too seldom for each of their commands to fail there: on data made for
//! them, where each of their commands fails in turn.

use std::collections::BTreeSet;

use super::data::{Bytes, Data, Value};
use super::halves::{call_of, halves, run};

/// What shows that half of a function is nothing half-done.
enum Shown {
    /// It writes once: half of it is nothing.
    Once,
    /// Whoever calls it again, with these arguments drawn anew, ends where one call leads that doesn't fail; but for
    /// [`LOOSE`].
    Again(&'static [(usize, &'static [u8])]),
}

use Shown::Once;

const AGAIN: Shown = Shown::Again(&[]);

/// Whose keys differ then: the number of posts, which fsck, who calls it, counts afterwards; entries in the journal
/// that stand for nothing; stamps, which are taken anew.
const LOOSE: [(&str, &str); 4] =
    [("outbox_mend", "a"), ("approve", "j"), ("change", "c"), ("change", "s@hides")];

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

fn data<const N: usize>(of: [(&str, Value); N]) -> Data {
    let mut data = Data::default();
    of.into_iter().for_each(|(rest, value)| data.set(&key(rest), value));
    data
}

fn hash<const N: usize>(fields: [(&str, &str); N]) -> Value {
    Value::Hash(fields.map(|(field, value)| (field.into(), value.into())).into())
}

fn zset<const N: usize>(members: [(&str, f64); N]) -> Value {
    Value::Zset(members.map(|(member, score)| (member.into(), score)).into())
}

fn list<const N: usize>(items: [&[u8]; N]) -> Value {
    Value::List(items.map(Bytes::from).into())
}

const AUTHOR: &str = "author07";

/// A post of that author, as far as functions look at it.
fn post() -> Value {
    let mut post = vec![0; 100];
    post[0] = 1;
    post[8..16].copy_from_slice(AUTHOR.as_bytes());
    Value::Text(post)
}

/// An outbox: its floor, and ids.
fn outbox<const N: usize>(ids: [&[u8; 8]; N]) -> Value {
    let floor = std::iter::once(b"F\0\0\0\0\0\0\0\0".to_vec());
    Value::List(floor.chain(ids.map(|id| id.to_vec())).collect())
}

fn case<const N: usize>(
    function: &'static str,
    shown: Shown,
    data: Data,
    keys: &'static [&'static str],
    args: [&[u8]; N],
) -> Case {
    Case { function, data, keys, args: args.map(Bytes::from).into(), shown }
}

fn account() -> Value {
    account_with("3")
}

fn account_with(posts: &str) -> Value {
    hash([("s", "a"), ("g", "12345678"), ("p", posts), ("nd", "100 1"), ("nh", "2")])
}

fn decided() -> Value {
    hash([("decision", "1")])
}

fn ids() -> Value {
    outbox([b"\x01......1", b"\x01......2", b"\x01......3"])
}

fn tree() -> Value {
    Value::Text([b"L\0\0\0\0\0\0\x05........".as_slice(), &[0; 16]].concat())
}

fn followed() -> Value {
    zset([(AUTHOR, 5.0)])
}

/// Who writes once.
fn writes_once() -> Vec<Case> {
    let report = |rest: &str| format!("12345678{rest}").into_bytes();
    vec![
        case(
            "journal_add",
            Once,
            data([("j", hash([("entry..1", "owner..1")]))]),
            &["j"],
            [b"100", b"entry..2", b"owner..1"],
        ),
        case("account_create", Once, data([]), &["a"], [b"s", b"a"]),
        case("clock_ids", Once, data([]), &["c"], [b"1700000000000", b"16", b"3"]),
        case("clock_stamps", Once, data([]), &["c"], [b"1", b"1700000000000"]),
        case("field_drop", Once, data([("r", hash([("x", "1"), ("y", "2")]))]), &["r"], [b"x", b"1"]),
        case(
            "home_drop",
            Once,
            data([("h", list([b"\0\0\0\0\0\0\0\0\x81nonce.."]))]),
            &["h"],
            [b"\x81nonce.."],
        ),
        case(
            "journal_claim",
            Once,
            data([("j", hash([("entry", "owner..1D")]))]),
            &["j"],
            [b"entry", b"owner..1", b"owner..2"],
        ),
        case("list_drop", Once, data([("l", zset([("x", 1.0)])), ("n", tree())]), &["w", "l", "n"], []),
        case(
            "list_recount",
            Once,
            data([("w", post()), ("l", zset([("x", 1.0)]))]),
            &["w", "l"],
            [AUTHOR.as_bytes(), b"64"],
        ),
        case("orphan_drop", Once, data([("x", followed()), ("y", followed())]), &["a", "x", "y"], []),
        case("piece_drop", Once, data([("p", followed())]), &["s", "p"], [b"0"]),
        case(
            "posts_recount",
            Once,
            data([("a", account()), ("o", ids())]),
            &["a", "o"],
            [b"3", b"\x01......3", b"2"],
        ),
        case(
            "profile_set",
            Once,
            data([("a", account()), ("i", Value::Text(report("old")))]),
            &["a", "i"],
            [b"12345678", b"87654321new"],
        ),
        case(
            "set_recount",
            Once,
            data([("s", tree()), ("p", followed())]),
            &["s", "p"],
            [&[b"L".as_slice(), &[0; 16]].concat(), b"1"],
        ),
    ]
}

/// Who is called again, and who is so with an argument drawn anew.
fn called_again() -> Vec<Case> {
    // Neither one delivery nor two make it tidy itself: histories do that.
    let home = || list([&[[0; 8], [0xff; 8]].concat(), b"\x01......1author07", b"\x01......2author07"]);
    let record = b"\x01......4author07";
    vec![
        case("followers_counted", AGAIN, data([("a", account())]), &["a"], [b"100 1", b"7", b"200"]),
        case(
            "home_deliver",
            AGAIN,
            data([("s", zset([("1", 1.0), ("2", 2.0)])), ("h1", home()), ("h2", home())]),
            &["s", "s"],
            [b"-1", b"0", b"{06S}h", record, b"100", b"50", b"100", b"own"],
        ),
        case(
            "home_deliver_to",
            AGAIN,
            data([
                ("s@following:1", followed()),
                ("s@following:2", followed()),
                ("h1", home()),
                ("h2", home()),
            ]),
            &["h1"],
            [b"{06S}", AUTHOR.as_bytes(), record, b"100", b"50", b"100", b"own", b"1", b"2"],
        ),
        case(
            "marks_add",
            AGAIN,
            data([("s@following:1", followed()), ("s@following:2", followed())]),
            &["m1"],
            [b"{06S}", AUTHOR.as_bytes(), b"mark", b"stamp..1", b"1", b"2"],
        ),
        case(
            "marks_piece",
            AGAIN,
            data([
                ("s", zset([("1", 1.0), ("2", 2.0)])),
                ("s@following:1", followed()),
                ("s@following:2", followed()),
            ]),
            &["s", "s"],
            [b"-1", b"0", b"{06S}", AUTHOR.as_bytes(), b"mark", b"stamp..1"],
        ),
        case(
            "post_moderate",
            AGAIN,
            data([("w", post())]),
            &["w"],
            [b"\0\0\0\0", b"\x01\x02\x03\x04", b"\x01"],
        ),
    ]
}

/// The same of outboxes.
fn outboxes_again() -> Vec<Case> {
    vec![
        case("outbox_cut", AGAIN, data([("o", ids()), ("z", decided())]), &["o"], [b"1", b"1"]),
        case(
            "outbox_import",
            AGAIN,
            data([("a", account()), ("o", ids())]),
            &["a", "o"],
            [b"\x01......4", b"\x01......5"],
        ),
        case(
            "outbox_import",
            AGAIN,
            data([("a", account_with("0"))]),
            &["a", "o"],
            [b"\x01......4", b"\x01......5"],
        ),
        // H134
        case(
            "outbox_mend",
            AGAIN,
            data([
                ("w", post()),
                ("a", account()),
                ("o", outbox([b"\x01......1", b"\x01......3", b"\x01......4"])),
            ]),
            &["w", "o", "a"],
            [AUTHOR.as_bytes(), b"\x01......2"],
        ),
    ]
}

/// The same of answers and reports.
fn answers_and_reports() -> Vec<Case> {
    vec![
        case(
            "approve",
            Shown::Again(&[(1, b"entry..2")]),
            data([("a", account())]),
            &["a", "v", "j"],
            [
                b"\0\0\0\0\0\0\0\0\0\x64\x01\0\0\0\0\0\x01\x01",
                b"entry..1",
                b"owner..1P",
                b"reader.7",
                b"",
                b"request1",
                b"",
            ],
        ),
        case(
            "report_add",
            AGAIN,
            data([]),
            &["r", "d", "n", "k"],
            [b"100", b"10", b"\x01......1", AUTHOR.as_bytes(), b"12345678{\"reporter\":7,", b"1000"],
        ),
        // Full: the newest one of account 7 makes room.
        case(
            "report_add",
            AGAIN,
            data([("r", reports()), ("n", hash([("\0\0\0\0\0\0\0\x07", "2")]))]),
            &["r", "d", "n", "k"],
            [b"3", b"10", b"id.....4", AUTHOR.as_bytes(), b"12345678{\"reporter\":9,", b"1000"],
        ),
        case(
            "report_move",
            AGAIN,
            data([("r", reports()), ("n", hash([(AUTHOR, "2")]))]),
            &["r", "d", "n"],
            [b"id.....1", b"12345678", b"87654321{\"reporter\":7,", b"100", AUTHOR.as_bytes()],
        ),
        case(
            "report_move",
            AGAIN,
            data([("d", reports()), ("r", hash([]))]),
            &["d", "r", "n"],
            [b"id.....1", b"12345678", b"87654321{\"reporter\":7,", b"", AUTHOR.as_bytes()],
        ),
    ]
}

/// Reports: two by one account, and one by another.
fn reports() -> Value {
    hash([
        ("id.....1", "12345678{\"reporter\":7,"),
        ("id.....2", "12345678{\"reporter\":77,"),
        ("id.....3", "12345678{\"reporter\":7,"),
    ])
}

/// Somebody hides from one more, and from one less (H128, H155).
fn hides() -> Vec<Case> {
    let hidden = || zset([("reader.1", 1.0), ("reader.2", 2.0)]);
    let head = |takes_stamp| [b"\x01\x8b\xcf\xe5h\0\0\0\0\x64\x02", &[takes_stamp][..], &[0; 6]].concat();
    let place = |is_put| [&[is_put][..], b"\xff\xff\xff\xff\0\0\0\0\x80\0\0\x01,"].concat();
    let of = |keys, is_put, reader: &[u8]| {
        let data = data([("a", account()), ("s@hides", hidden())]);
        case("change", AGAIN, data, keys, [&*head(is_put), &place(is_put), reader, b"nh"])
    };
    vec![
        of(&["a", "s@hides", "s@hides"], 0, b"reader.1"),
        of(&["a", "s@hides", "s@hides", "c"], 1, b"reader.3"),
    ]
}

/// Whether a record tells of fewer from whom an account hides than there are: who reads that asks for none.
fn says_less(data: &Data) -> bool {
    let told = data.hash(&key("a")).ok().flatten().and_then(|record| record.get(&b"nh"[..]));
    let told = told.map_or(0, |told| super::data::number(told).expect("a number"));
    data.zset(&key("s@hides")).ok().flatten().is_some_and(|hidden| hidden.len() > told)
}

fn cases() -> impl Iterator<Item = Case> {
    [writes_once(), called_again(), outboxes_again(), answers_and_reports()]
        .into_iter()
        .flatten()
        .chain(hides())
}

/// What is there, as those see it who look: what stands twice in a home shows once.
fn seen(function: &str, mut data: Data) -> Data {
    for (_, rest) in LOOSE.iter().filter(|(of, _)| *of == function) {
        data.remove(&key(rest));
    }
    for home in ["h1", "h2"].map(key).iter().filter(|home| data.has(home)).collect::<Vec<_>>() {
        let home = data.list_mut(home).expect("a list");
        home.dedup();
    }
    data
}

/// The functions that are shown here.
pub(super) fn functions() -> BTreeSet<&'static str> {
    cases().map(|case| case.function).collect()
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
                Shown::Again(drawn) => {
                    let mut args = args.clone();
                    drawn.iter().for_each(|(at, arg)| args[*at] = arg.to_vec());
                    let again = call_of(function, keys.iter().map(|rest| key(rest)), &args);
                    let (answer, after) = run(&again, &left);
                    let is_whole = seen(function, after) == seen(function, whole.clone());
                    assert!(is_whole, "{function}, whose command {at} failed, ends elsewhere: {answer:?}");
                }
            }
        }
    }
}
