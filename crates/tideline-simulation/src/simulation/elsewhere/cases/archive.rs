//! Posts that leave memory, come back, and go for good.

use sha1::{Digest as _, Sha1};

use super::super::super::data::{Bytes, Value};
use super::super::Case;
use super::super::Drawn::Read;
use super::super::Shown::Again;
use super::{AGAIN, AUTHOR, case, data, decided, deletion, followed, hash, list, post, zset};

pub(super) fn cases() -> impl Iterator<Item = Case> {
    let others = [left_with_a_tree(), buried(), accepted()];
    leaving().into_iter().chain(archived()).chain(others).chain(unsettled())
}

const TOKEN: &str = "\0\0\0\0\0\0\0\x03nonce..1";
const ARCHIVED: &[u8] = b"A\0\0\0\0\0\0\0\x03\x01......2";

/// An account some of whose posts are in the archive.
fn archived_account() -> Value {
    hash([("s", "a"), ("p", "3"), ("ar", TOKEN)])
}

/// The same of posts that leave memory. A token is another one each time.
fn leaving() -> Vec<Case> {
    let begin = |o, looked_at: &[u8], warm: &[&[u8]]| {
        let args: [&[u8]; 13] = [
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
            looked_at,
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
    let warm: &[&[u8]] = &[b"\x01......1"];
    // The last one: of an archive that may lose what it has answered.
    vec![
        begin(list(broken_off), b"0", &[]),
        begin(list(whole), b"0", warm),
        begin(list(whole), b"1700000040000", warm),
    ]
}

/// The same of a post that leaves once more, with a list of two pieces. Half of it, and the agenda still has it:
/// whoever looks then finds it gone.
fn left_with_a_tree() -> Case {
    let (tree, stored) = (b"L\0\0\0\0\0\0\x02........\x40", b"the post");
    let length = |len: usize| u32::try_from(len).expect("short").to_be_bytes();
    let one = |score: f64, member: &str| [&length(1)[..], &packed(score, member)].concat();
    let nothing = [length(0), length(0)].concat().repeat(3);
    let listed = [&length(tree.len()), &tree[..], &one(1.0, AUTHOR), &one(2.0, "reader09")].concat();
    let bundle = [&length(stored.len()), &stored[..], &listed, &nothing].concat();
    let digest: String = Sha1::digest(bundle).iter().map(|byte| format!("{byte:02x}")).collect();
    let id: &[u8] = b"\x01......1";
    let args: [&[u8]; 11] = [
        AUTHOR.as_bytes(),
        TOKEN.as_bytes(),
        ARCHIVED,
        b"",
        b"1",
        b"0",
        b"100",
        b"",
        id,
        digest.as_bytes(),
        b"\x02\0\0\0",
    ];
    let entry = format!("\x01......1{AUTHOR}");
    Case {
        function: "archive_move",
        data: data([
            ("a", archived_account()),
            ("o", list([ARCHIVED, b"\x01......3"])),
            ("F", zset([(&*entry, 2.0)])),
            ("w", Value::Text(stored.to_vec())),
            ("l1", Value::Text(tree.to_vec())),
            ("p0", zset([(AUTHOR, 1.0)])),
            ("p1", zset([("reader09", 2.0)])),
        ]),
        keys: &["a", "o", "F", "w", "l1", "l2", "l3", "l4", "p0", "p1"],
        args: args.map(Bytes::from).into(),
        shown: Again(&[], &["F"]),
    }
}

/// The same of an account that was deleted, which the archive is to forget.
fn buried() -> Case {
    let args =
        [AUTHOR, "nonce..2", "128", "1", "0", "1700000000000", "1700000000100", "1", "0", "d", "", "0"];
    let args = args.into_iter().chain(["1700000040000"]).map(Bytes::from).collect();
    Case {
        function: "archive_begin",
        data: data([("a", hash([("s", "d"), ("ar", TOKEN)])), ("o", list([ARCHIVED])), ("z", decided())]),
        keys: &["a", "o", "F"],
        args,
        shown: Again(&[], &["a.ar"]),
    }
}

/// The same of an account that goes by an older archive, with a post that is listed again. The number of posts may be
/// off by what is lost.
fn accepted() -> Case {
    let id: &[u8] = b"\x01......1";
    let args: [&[u8]; 7] =
        [AUTHOR.as_bytes(), TOKEN.as_bytes(), ARCHIVED, b"\x01......0", b"1", b"1700000000000", id];
    let entry = format!("\x01......1{AUTHOR}");
    let outbox = list([ARCHIVED, b"\x01......3"]);
    let data = data([("a", archived_account()), ("o", outbox), ("w", post()), ("F", zset([(&*entry, 9.0)]))]);
    case("archive_accept", Again(&[], &["a.p"]), data, &["a", "o", "F", "w"], args)
}

/// The same of what the archive may lose that it has forgotten. A token is another one each time; an entry that stays
/// is looked at in vain.
fn unsettled() -> Vec<Case> {
    let at = "\0\0\0\0\0\0\0\x09";
    let deletion = |number: &str, id: &str| format!("\0\0\0\0\0\0\0{number}\x01......{id}{at}");
    let (one, other) = (deletion("\x02", "1"), deletion("\x03", "2"));
    let noted = || {
        let noted = format!("\0\0\0\0\0\0\0\x01{one}{other}");
        let entry = format!("E{AUTHOR}");
        let record = hash([("s", "a"), ("ar", TOKEN), ("ae", &noted)]);
        data([("a", record), ("o", list([ARCHIVED])), ("F", zset([(&*entry, 9.0)])), ("z", decided())])
    };
    let settled = |settled: &str| {
        let args: [&[u8]; 2] = [AUTHOR.as_bytes(), settled.as_bytes()];
        case("archive_settled", Again(&[], &["F"]), noted(), &["a", "F"], args)
    };
    let args: [&[u8]; 3] = [AUTHOR.as_bytes(), b"", b"9"];
    let burial = case("archive_settled", Again(&[], &["F"]), noted(), &["a", "F"], args);
    let args: [&[u8]; 5] = [AUTHOR.as_bytes(), b"nonce..2", b"1", b"0", b"100"];
    let again = case("archive_again", Again(&[], &["a.ar"]), noted(), &["a", "o", "F"], args);
    // Counted once more each time.
    let limits = b"\0\0\0\0\0\0\0\0tb\0\x01\0\0\0\0\0\x36\xee\x80\x01\x2c\x01\x2c";
    let counted: [&[u8]; 2] = [limits, b"1700000000000"];
    let counted = case("window_take", Again(&[], &["a.tb"]), noted(), &["a"], counted);
    vec![again, counted, burial, settled(&one), settled(&format!("{one}{other}"))]
}

/// A member of a set as functions take it.
fn packed(score: f64, member: &str) -> Bytes {
    let len = u16::try_from(member.len()).expect("short");
    [&score.to_be_bytes()[..], &len.to_be_bytes(), member.as_bytes()].concat()
}

/// The same of those that come back, and of those that go for good.
fn archived() -> Vec<Case> {
    let (small, one, two) = (packed(3.0, "anybody8"), packed(1.0, AUTHOR), packed(2.0, "reader09"));
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
    let outbox = || list([ARCHIVED, b"\x01......7"]);
    // With a list of two pieces, and what a try that failed has left of it.
    let left =
        || [("a", archived_account()), ("o", outbox()), ("l1", followed()), ("F", zset([(AUTHOR, 1.0)]))];
    let thaw = |function, left: [(&str, Value); 4]| Case {
        function,
        data: data(left),
        keys: &["a", "o", "F", "w", "l1", "l2", "l3", "l4", "p0", "p1"],
        args: args.map(Bytes::from).into(),
        shown: AGAIN,
    };
    let thaws = ["post_thaw", "post_thaw_to_delete"].map(|function| thaw(function, left()));
    // The number of posts is off by one, which nobody counts where the archive has some.
    // It comes before another one, or last.
    let recovered = [b"\x01......5", b"\x01......9"].map(|id| {
        let mut recovered = Case { shown: Again(&[], &["a.p"]), ..thaw("post_recover", left()) };
        recovered.args[1] = id.into();
        recovered
    });
    // Deleted in the archive under the token that was given out last.
    let args = deletion(b"\0\0\0\0", [token, b"nonce..2", b"1700000000000"]);
    let shown = Again(&[Read(10, "a", "ar")], &["a.p", "a.ar", "a.ae", "o"]);
    let there = data([("w", post()), ("a", archived_account()), ("o", outbox())]);
    let deleted = case("post_delete", shown, there, &["w", "o", "a", "j", "F"], args);
    thaws.into_iter().chain([deleted]).chain(recovered).collect()
}
