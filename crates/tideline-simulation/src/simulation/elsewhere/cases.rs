//! The calls that fail, and the data that are made for them.

mod archive;
mod inboxes;
mod reports;

use super::super::data::{Bytes, Data, Value};
use super::Drawn::{Is, Read};
use super::Shown::{self, Again, Once};
use super::{Case, key};

const AGAIN: Shown = Again(&[], &[]);

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

fn ticket() -> Data {
    data([("X", Value::Text(b"+12345678value".into()))])
}

/// The arguments of a deletion of a post that is no repost. `seen`: what stands there; `forgotten`: the token under
/// which the archive has forgotten it, the next one's random bytes, and when that is looked at.
fn deletion<'a>(seen: &'a [u8], forgotten: [&'a [u8]; 3]) -> [&'a [u8]; 14] {
    let [token, nonce, looked_at] = forgotten;
    let (id, repost): (&[u8], [&[u8]; 6]) = (b"\x01......2", [b"", b"-1", b"0", b"", b"", b"0"]);
    let [original, piece, depth, stamp_seen, stamp, score] = repost;
    let author = AUTHOR.as_bytes();
    [author, id, seen, original, piece, depth, stamp_seen, stamp, score, b"100", token, nonce, looked_at, b""]
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

/// Two public posts.
fn public() -> Value {
    Value::Text(b"\x01......1author07\x01......2author07".to_vec())
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
        case("ticket_put", Once, data([]), &["X"], [b"12345678value", b"1000"]),
        case("ticket_replace", Once, ticket(), &["X"], [b"12345678", b"87654321new", b"1000"]),
        case("ticket_take", Once, ticket(), &["X"], [b"1000"]),
        case("ticket_drop", Once, ticket(), &["X"], [b"12345678", b"caller.1", b"1000"]),
        case("counter_add", Once, data([("C", Value::Text(b"3".into()))]), &["C"], [b"2", b"1000"]),
        case("counter_add", Once, data([]), &["C"], [b"2", b"1000"]),
        case("names_drop", Once, data([("Q", zset([("account7", 5.0)]))]), &["Q"], [b"5", b"account7"]),
        case("names_add", AGAIN, data([("Q", zset([("account7", 5.0)]))]), &["Q"], [b"1", b"6", b"account8"]),
        case("account_create", Once, data([]), &["a"], [b"s", b"a"]),
        case("clock_ids", Once, data([]), &["c"], [b"1700000000000", b"16", b"3"]),
        case("clock_ticks", Once, data([]), &["c"], [b"1", b"1700000000000"]),
        case("field_drop", Once, data([("r", hash([("x", "1"), ("y", "2")]))]), &["r"], [b"x", b"1"]),
        case(
            "home_drop",
            Once,
            data([("h", list([b"\0\0\0\0\0\0\0\0\x81nonce.."]))]),
            &["h"],
            [b"\x81nonce.."],
        ),
        case(
            "journal_take_over",
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
    let entry = b"\x01......4author07";
    vec![
        case("followers_counted", AGAIN, data([("a", account())]), &["a"], [b"100 1", b"7", b"200"]),
        case(
            "home_deliver",
            AGAIN,
            data([("s", zset([("1", 1.0), ("2", 2.0)])), ("h1", home()), ("h2", home())]),
            &["s", "s"],
            [b"-1", b"0", b"{06S}h", entry, b"100", b"50", b"100", b"own"],
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
            [b"{06S}", AUTHOR.as_bytes(), entry, b"100", b"50", b"100", b"own", b"1", b"2"],
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
        // The number of posts fsck, who calls it, counts afterwards.
        case(
            "outbox_mend",
            Again(&[], &["a.p"]),
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

/// The same of answers, names and documents.
fn answers_and_documents() -> Vec<Case> {
    let half_settled = [("n", "attempt1"), ("t", "100"), ("v", "attempt1"), ("u", "ada"), ("w", "")];
    vec![
        // An attempt that has been settled half-way (H132).
        case(
            "claims_void",
            AGAIN,
            data([("a", account()), ("x", hash(half_settled))]),
            &["a", "x", "y"],
            [b"attempt1", b"90000", b"60000"],
        ),
        case(
            "approve",
            // Entries in the journal that stand for nothing.
            Again(&[Is(1, b"entry..2")], &["j"]),
            data([("a", account())]),
            &["a", "v", "j"],
            [
                b"\0\0\0\0\0\0\0\0\0\x64\x01\0\0\0\0\0\x01\x01\0",
                b"entry..1",
                b"owner..1P",
                b"reader.7",
                b"",
                b"request1",
                b"",
                b"",
            ],
        ),
        // A document grows.
        case(
            "document_set",
            Once,
            data([("a", account()), ("V", hash([("name", "12345678old")]))]),
            &["a", "V"],
            [
                b"\0\0\0\0\0\0\0\0\0\x64\x01\0\0\0\0\0\0\x01\0",
                b"name",
                b"12345678",
                b"87654321newer",
                b"",
                b"13",
            ],
        ),
        // A document goes.
        case(
            "document_set",
            AGAIN,
            data([("a", account()), ("V", hash([("name", "12345678old")]))]),
            &["a", "V"],
            [
                b"\0\0\0\0\0\0\0\0\0\x64\x01\0\0\0\0\x01\0\x01\0",
                b"ds",
                b"stamp..2",
                b"name",
                b"12345678",
                b"",
                b"",
                b"",
            ],
        ),
    ]
}

/// Somebody hides from one more, and from one less (H128, H155).
fn hides() -> Vec<Case> {
    let hidden = || zset([("reader.1", 1.0), ("reader.2", 2.0)]);
    let head = |takes_tick| [b"\x01\x8b\xcf\xe5h\0\0\0\0\x64\x02", &[takes_tick][..], &[0; 7]].concat();
    let place = |is_put| [&[is_put][..], b"\xff\xff\xff\xff\0\0\0\0\x80\0\0\x01,"].concat();
    let of = |keys, is_put, reader: &[u8]| {
        let data = data([("a", account()), ("s@hides", hidden())]);
        // Ticks are taken anew.
        case(
            "change",
            Again(&[], &["c", "s@hides"]),
            data,
            keys,
            [&*head(is_put), &place(is_put), reader, b"nh"],
        )
    };
    vec![
        of(&["a", "s@hides", "s@hides"], 0, b"reader.1"),
        of(&["a", "s@hides", "s@hides", "c"], 1, b"reader.3"),
    ]
}

/// Records of a tenant, what a bucket knows of it, and the living.
fn tenants_and_leases() -> Vec<Case> {
    vec![
        case(
            "tenant_begin",
            AGAIN,
            data([]),
            &["i"],
            [b"3", b"1024", b"decision", b"1", b"home_posts", b"9"],
        ),
        case("decision_set", AGAIN, data([]), &["z"], [b"1", b"decision", b"1"]),
        case(
            "lease_renew",
            AGAIN,
            data([("v", hash([("dead...1", "5.9"), ("living.1", "7.9")]))]),
            &["v"],
            [b"", b"9", b"dead...1", b"5.9"],
        ),
        case(
            "lease_renew",
            AGAIN,
            data([("v", hash([("living.1", "7.9")]))]),
            &["v"],
            [b"living.1".as_slice(), b"0"],
        ),
        // Some have come since they were summed up.
        case("followers_counted", AGAIN, data([("a", account())]), &["a"], [b"90 1", b"7", b"200"]),
        // Its note says once more that somebody has come.
        case(
            "join",
            Again(&[], &["E"]),
            data([("a", account()), ("o", ids())]),
            &["a", "o", "s", "s", "s@blocks", "l", "u", "E", "I"],
            [b"", b"5", b"-1", b"0", b"100", b"1000", b"5", b"reader.1", AUTHOR.as_bytes(), b"1000", b""],
        ),
    ]
}

/// Posts that are taken back, or whose outbox says something else.
fn posts_that_go() -> Vec<Case> {
    const ORIGINAL: &str = "original";
    let reposted = || zset([(ORIGINAL, 5.0)]);
    let delete = |shown, reposts, keys, piece: &[u8]| {
        let data = [("w", post()), ("a", account()), ("o", ids()), ("x", reposts), ("p", reposted())];
        let args = [AUTHOR.as_bytes(), b"\x01......2", b"\0\0\0\0", ORIGINAL.as_bytes(), piece, b"0", b""];
        let rest: [&[u8]; 7] = [b"stamp..2", b"5", b"100", b"", b"", b"0", b""];
        let args: Vec<Bytes> = args.into_iter().chain(rest).map(Bytes::from).collect();
        Case { function: "post_delete", data: self::data(data), keys, args, shown }
    };
    // The number of posts, and of members of a set with a tree, fsck counts.
    vec![
        delete(
            Again(&[Read(6, "a", "i")], &["a.p"]),
            reposted(),
            &["w", "o", "a", "j", "F", "x", "x"],
            b"-1",
        ),
        delete(
            Again(&[Read(6, "a", "i")], &["a.p", "x"]),
            tree(),
            &["w", "o", "a", "j", "F", "x", "p"],
            b"0",
        ),
        // It can't be read.
        case(
            "post_delete",
            Again(&[], &["a.p"]),
            data([("w", Value::Text(b"torn".to_vec())), ("a", account()), ("o", ids())]),
            &["w", "o", "a", "j", "F"],
            deletion(b"text:torn", [b"", b"", b"0"]),
        ),
        case(
            "outbox_mend",
            Again(&[], &["a.p"]),
            data([("a", account()), ("o", ids())]),
            &["w", "o", "a"],
            [AUTHOR.as_bytes(), b"\x01......2"],
        ),
        case(
            "outbox_mend",
            Once,
            data([("w", post()), ("o", outbox([b"\x01......1", b"\x81......2", b"\x01......3"]))]),
            &["w", "o", "a"],
            [AUTHOR.as_bytes(), b"\x01......2"],
        ),
        // Its own first sending, which failed before the number.
        case(
            "outbox_import",
            AGAIN,
            data([("a", account_with("0")), ("o", ids())]),
            &["a", "o"],
            [b"\x01......2", b"\x01......3"],
        ),
        case("piece_drop", Once, data([("s", tree()), ("p", followed())]), &["s", "p"], [b"1"]),
        case("public_cut", AGAIN, data([("G", public()), ("z", decided())]), &["G"], [b"1", b"1"]),
        case("public_cut", AGAIN, data([("G", public()), ("z", decided())]), &["G"], [b"0", b"1"]),
        case("public_drop", AGAIN, data([("G", public())]), &["G", "w"], [b"\x01......1author07"]),
    ]
}

/// Somebody leaves a list of a post: the clock of removals moves on each time.
fn lists_of_posts() -> Vec<Case> {
    let leaves = |shown, keys, piece: &[u8]| {
        let data = data([("w", post()), ("l", followed()), ("n", tree())]);
        let args: [&[u8]; 11] =
            [AUTHOR.as_bytes(), b"64", b"-", piece, b"0", b"100", b"", AUTHOR.as_bytes(), b"1000", b"", b""];
        case("list_set", shown, data, keys, args)
    };
    vec![
        leaves(Again(&[], &["D"]), &["w", "l", "l", "D"], b"-1"),
        // Of a set with a tree fsck counts the members, which the post tells.
        leaves(Again(&[], &["D", "n", "w"]), &["w", "n", "l", "D"], b"0"),
    ]
}

pub(super) fn cases() -> impl Iterator<Item = Case> {
    [writes_once(), called_again(), outboxes_again(), answers_and_documents(), reports::cases()]
        .into_iter()
        .flatten()
        .chain(archive::cases())
        .chain(hides())
        .chain(tenants_and_leases())
        .chain(posts_that_go())
        .chain(lists_of_posts())
        .chain(inboxes::cases())
}
