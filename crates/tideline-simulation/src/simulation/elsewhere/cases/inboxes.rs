//! Inboxes: what comes with what it tells of, and what is taken off.

use super::*;

const FOLLOW: &[u8] = b"freader.1since..1";
const LIKE: &[u8] = b"lreader.1\x01......1";
const OF_MEMBER: &[u8] = b"lreader.1\x01......1group..1";

/// An inbox with so many entries: the first is of the like, the last of a follow.
fn inbox(many: u64) -> Value {
    let entry = |n: u64| {
        let told = match n {
            1 => LIKE.to_vec(),
            _ if n == many => b"freader.2since..1".to_vec(),
            n => [b"mreader.3".as_slice(), &n.to_be_bytes()].concat(),
        };
        [n.to_be_bytes().to_vec(), told].concat()
    };
    Value::List((1..=many).map(entry).collect())
}

/// What an account is told, and what is taken off.
pub(super) fn cases() -> Vec<Case> {
    const KEYS: &[&str] = &["w", "l", "l", "D", "I"];
    let like = |shown, inbox, sign: &'static [u8], score: &'static [u8], when: &'static [u8]| {
        let listed = zset([("reader.1", 5.0)]);
        let mut data = data([("w", post()), ("I", inbox)]);
        if sign == b"-" {
            data.set(&key("l"), listed);
        }
        let args: [&[u8]; 11] =
            [AUTHOR.as_bytes(), b"64", sign, b"-1", b"0", b"100", score, b"reader.1", when, LIKE, b"1000"];
        case("list_set", shown, data, KEYS, args)
    };
    let blank = || Value::List(vec![b"\0\0\0\0\0\0\0\x01-".to_vec()]);
    let owner = || data([("a", account()), ("I", inbox(3))]);
    vec![
        // It is cut, or the next one that comes has it cut; its last entry is blank, and gets what comes; one in the
        // middle, or the last one, is taken off.
        like(Again(&[], &["I"]), inbox(271), b"+", b"5", b""),
        like(AGAIN, blank(), b"+", b"5", b""),
        like(Again(&[], &["D"]), inbox(3), b"-", b"", b"1000"),
        like(Again(&[], &["D"]), inbox(1), b"-", b"", b"1000"),
        case(
            "join",
            Again(&[], &["E"]),
            data([("a", account()), ("o", ids()), ("I", inbox(3))]),
            &["a", "o", "s", "s", "s@blocks", "l", "u", "E", "I"],
            [b"", b"5", b"-1", b"0", b"100", b"1000", b"5", b"reader.1", AUTHOR.as_bytes(), b"1000", FOLLOW],
        ),
        case("inbox_add", AGAIN, owner(), &["I", "a"], [FOLLOW, b"1000"]),
        // What came onto a list of a member's post.
        case("inbox_add", AGAIN, owner(), &["I", "a"], [OF_MEMBER, b"1000"]),
        // An older one of the same account goes.
        case("inbox_add", AGAIN, owner(), &["I", "a"], [b"freader.2since..2".as_slice(), b"1000"]),
        case(
            "inbox_drop",
            AGAIN,
            owner(),
            &["I"],
            [b"".as_slice(), &1_u64.to_be_bytes(), &3_u64.to_be_bytes()],
        ),
        case("inbox_drop", AGAIN, owner(), &["I"], [&2_u64.to_be_bytes()]),
        case(
            "waiting_set",
            Again(&[], &["E"]),
            owner(),
            &["l", "E", "I", "a"],
            [b"reader.1".as_slice(), b"request1", AUTHOR.as_bytes(), b"1000", b"rreader.1request1"],
        ),
        case(
            "set_add",
            AGAIN,
            owner(),
            &["s", "I"],
            [
                b"-1".as_slice(),
                b"0",
                b"100",
                b"",
                b"",
                b"",
                b"",
                b"",
                b"1000",
                b"",
                b"mreader.1\x01......2",
                b"7",
                b"\x01......2reader.1",
            ],
        ),
    ]
}
