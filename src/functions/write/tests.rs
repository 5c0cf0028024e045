//! The two sides of a conditional write, compared.

use std::time::Duration;

use super::*;
use crate::functions::TimeLimit;
use crate::functions::packed::read::{between, format, names};

const LUA: &str = include_str!("../lua/write.lua");

const PLACE: MemberPlace = MemberPlace { is_put: true, leaf: None, piece_most: 128, set_most: 300 };

fn key(rest: &str) -> Vec<u8> {
    format!("{{06S}}{rest}").into_bytes()
}

fn following() -> [Vec<u8>; 2] {
    ["s@following:1"; 2].map(key)
}

fn words(write: BucketWrite, home: Option<Vec<u8>>) -> Vec<String> {
    let command = write.command(1_700_000_000_000, || key("c"), home, (|| key("j"), 9));
    command.arguments().map(|arg| arg.escape_ascii().to_string()).collect()
}

#[test]
fn both_sides_know_the_packed_numbers_by_the_same_names_and_widths() {
    let between = |from, to| between(LUA, from, to);
    let (head, place) = (Head::default().numbers(1, 2, true), PLACE.numbers());
    assert_eq!(between("local WRITE_HEAD = '", "'"), format(&head));
    assert_eq!(between("local WRITE_PLACE = '", "'"), format(&place));
    assert_eq!(between("(keys, args)\n  local ", "= struct.unpack(WRITE_HEAD"), names(&head));
    assert_eq!(between("local is_put", "= struct.unpack(WRITE_PLACE"), names(&place).replace("is_put", ""));
    assert!(place[0].0 == "is_put");
    assert_eq!(
        between("local THERE, ACTIVE =", "\n"),
        format!("{},{}", LeastState::There as u8, LeastState::Active as u8)
    );
}

#[test]
fn keys_and_arguments_stand_in_the_order_that_the_function_reads() {
    let mut write = BucketWrite::new("change", &key("a1"), LeastState::Active)
        .compare([("g", ExpectedValue::Exactly(Some(*b"12345678"))), ("t", ExpectedValue::Anything)])
        .set("g", b"87654321");
    write.entry(b"entry..1", b"value");
    let cell = Cell {
        field: b"author.7",
        must_be: ExpectedValue::Exactly(None),
        becomes: None,
        most: Some(3),
        bytes_most: None,
    };
    write.cell(&key("m1"), cell);
    write.member(&following(), PLACE, b"author.7", "nf");
    let limit = TimeLimit {
        field: "lf",
        span: Duration::from_secs(1),
        most: 5,
        most_new: 2,
        cost: 1,
        words: ("followed", "limits.follows"),
    };
    write.limits(&TimeLimits { new_for: Duration::ZERO, limits: vec![limit] });
    let words = words(write, Some(key("h1")));
    let keys = ["a1", "m1", "s@following:1", "s@following:1", "c", "h1", "j"];
    assert_eq!(words[2..10], [&["7".to_owned()][..], &keys.map(|rest| format!("{{06S}}{rest}"))].concat());
    let head = r"\x01\x8b\xcf\xe5h\x00\x00\x00\x00\t\x02\x01\x01\x00\x02\x01\x01\x01\x01";
    let place = r"\x01\xff\xff\xff\xff\x00\x00\x00\x00\x80\x00\x00\x01,";
    let args =
        [head, "g", "t", "12345678", "*", "g", "87654321", "entry..1", "value", "author.7", "", "", "3", ""];
    let limits =
        r"\x00\x00\x00\x00\x00\x00\x00\x00lf\x00\x01\x00\x00\x00\x00\x00\x00\x03\xe8\x00\x05\x00\x02";
    assert_eq!(words[10..], [&args[..], &[place, "author.7", "nf", limits]].concat());
}

#[test]
fn a_write_names_only_keys_that_it_needs() {
    let mut write = BucketWrite::new("change", &key("a1"), LeastState::Recorded);
    write.member(&following(), MemberPlace { is_put: false, ..PLACE }, b"author.7", "");
    // In a slot that moves one that is not there holds the call up.
    assert_eq!(words(write, None)[2..6], ["3", "{06S}a1", "{06S}s@following:1", "{06S}s@following:1"]);
}

#[test]
fn an_answer_says_what_was_made_or_why_not() {
    let answer = |items: Vec<Reply>| WriteAnswer::parse(Reply::of_items(items)).unwrap();
    let (word, number) = (|word: &str| Reply::text_of(word), Reply::of_int);
    let made = |told| WriteAnswer::Made(MadeWrite { has_changed: true, told });
    assert_eq!(answer(vec![word("ok"), number(1)]), made(None));
    let told = vec![word("ok"), number(1), number(77), word(""), word("12345678"), Reply::of_nil()];
    let before = vec![Some(*b"12345678"), None];
    assert_eq!(answer(told), made(Some(FloorAnswer { since: 77, floor: None, before })));
    let refused = |items, refusal| assert_eq!(answer(items), WriteAnswer::Refused(refusal));
    refused(vec![word("gone")], WriteRefusal::NoRecord);
    refused(vec![word("state"), word("s")], WriteRefusal::State(b's'));
    refused(vec![word("busy")], WriteRefusal::Busy);
    refused(vec![word("room"), number(0)], WriteRefusal::NoRoom(0));
    refused(vec![word("bytes"), number(1)], WriteRefusal::TooLarge(1));
    refused(vec![word("tree"), number(1), word("L")], WriteRefusal::Tree(1, b"L".to_vec()));
    for unknown in [vec![], vec![word("full")], vec![word("later"), number(1)]] {
        assert!(WriteAnswer::parse(Reply::of_items(unknown)).is_err());
    }
}
