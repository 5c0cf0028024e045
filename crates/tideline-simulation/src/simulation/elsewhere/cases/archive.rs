//! Posts that leave memory, come back, and go for good.

use super::super::super::data::{Bytes, Value};
use super::super::Case;
use super::super::Drawn::Read;
use super::super::Shown::Again;
use super::{AGAIN, AUTHOR, case, data, decided, followed, hash, list, post, zset};

pub(super) fn cases() -> impl Iterator<Item = Case> {
    leaving().into_iter().chain(archived())
}

const TOKEN: &str = "\0\0\0\0\0\0\0\x03nonce..1";
const ARCHIVED: &[u8] = b"A\0\0\0\0\0\0\0\x03\x01......2";

/// An account some of whose posts are in the archive.
fn archived_account() -> Value {
    hash([("s", "a"), ("p", "3"), ("ar", TOKEN)])
}

/// The same of posts that leave memory. A token is another one each time.
fn leaving() -> Vec<Case> {
    let begin = |o, warm: &[&[u8]]| {
        let args: [&[u8]; 12] = [
            AUTHOR.as_bytes(),
            b"nonce..2",
            b"128",
            b"1",
            b"0",
            b"1700000000000",
            b"1700000000100",
            b"1",
            b"0",
            b"",
            b"",
            b"0",
        ];
        let entry = format!("\x01......1{AUTHOR}");
        let agenda = zset([(AUTHOR, 1.0), (&entry, 2.0)]);
        Case {
            function: "archive_begin",
            data: data([("a", archived_account()), ("o", o), ("z", decided()), ("F", agenda)]),
            keys: &["a", "o", "F"],
            args: args.iter().chain(warm).map(|arg| Bytes::from(*arg)).collect(),
            shown: Again(&[], &["a.ar"]),
        }
    };
    let broken_off =
        [&b"F\0\0\0\0\0\0\0\0"[..], b"\x01......1", ARCHIVED, b"\x01......3", b"\x01......4", b"\x01......5"];
    let whole = [ARCHIVED, b"\x01......3", b"\x01......4", b"\x01......5"];
    vec![begin(list(broken_off), &[]), begin(list(whole), &[b"\x01......1"])]
}

/// The same of those that come back, and of those that go for good.
fn archived() -> Vec<Case> {
    let member = |score: f64, member: &str| {
        let len = u16::try_from(member.len()).expect("short");
        [&score.to_be_bytes()[..], &len.to_be_bytes(), member.as_bytes()].concat()
    };
    let (small, one, two) = (member(3.0, "anybody8"), member(1.0, AUTHOR), member(2.0, "reader09"));
    let id: &[u8] = b"\x01......1";
    let (author, token) = (AUTHOR.as_bytes(), TOKEN.as_bytes());
    let tree: &[u8] = b"L\0\0\0\0\0\0\x02........\x40";
    let args: [&[u8]; 15] = [
        author,
        id,
        token,
        b"the post",
        b"100",
        b"\0\0\0\x02",
        b"",
        b"",
        b"",
        tree,
        &small,
        b"",
        b"",
        &one,
        &two,
    ];
    let outbox = || list([ARCHIVED, b"\x01......3"]);
    // With a list of two pieces, and what a try that failed has left of it.
    let left = [("a", archived_account()), ("o", outbox()), ("l1", followed()), ("F", zset([(AUTHOR, 1.0)]))];
    let thaw = Case {
        function: "post_thaw",
        data: data(left),
        keys: &["a", "o", "F", "w", "l1", "l2", "l3", "l4", "p0", "p1"],
        args: args.map(Bytes::from).into(),
        shown: AGAIN,
    };
    // Deleted in the archive under the token that was given out last.
    let args: [&[u8]; 12] =
        [author, b"\x01......2", b"\0\0\0\0", b"", b"-1", b"0", b"", b"", b"0", b"100", token, b"nonce..2"];
    let shown = Again(&[Read(10, "a", "ar")], &["a.p", "a.ar", "o"]);
    let there = data([("w", post()), ("a", archived_account()), ("o", outbox())]);
    vec![thaw, case("post_delete", shown, there, &["w", "o", "a", "j"], args)]
}
