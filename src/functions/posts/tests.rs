//! The two sides of a new post, compared.

use super::*;
use crate::functions::Grounds;
use crate::functions::packed::read::{between, format, names};
use crate::ids::PostId;

const LUA: &str = include_str!("../lua/posts.lua");

const TASK: [u8; 8] = *b"of.task.";

fn publish<'a>(limits: &'a TimeLimits, repost: Option<RepostPlace>) -> Publish<'a> {
    Publish {
        keys: ["clock", "record", "outbox", "home", "journal", "followers"]
            .map(|key| key.as_bytes().to_vec()),
        repost,
        public: Some(PublicPlace { key: b"public".to_vec(), most: 7 }),
        token: Some((b"token".to_vec(), 0)),
        post_head: b"head".to_vec(),
        now_ms: 1_700_000_000_000,
        post: b"post",
        author: AccountId::from_bytes(b"\0\0author").unwrap(),
        journal_most: 1,
        outbox_most: 2,
        reposts_most: 3,
        stays: Some(StayingPosts { posts: 4, ms: u64::MAX }),
        owner: *b"of.owner",
        entry: *b"of.entry",
        fit: HomeFit::new(400, -2, Grounds::Decision(5)),
        limits,
        allowed_under: Some(*b"of.group"),
        tasks: vec![(TASK, b'T', b"rest".to_vec())],
    }
}

fn repost() -> RepostPlace {
    RepostPlace {
        keys: ["reposts", "piece"].map(|key| key.as_bytes().to_vec()),
        leaf: Some((6, 2)),
        original: PostRef {
            id: PostId::new(Buckets::default(), Bucket(1), 1_700_000_000_000, 0).unwrap(),
            author: AccountId::from_bytes(b"\0\0author").unwrap(),
        },
        seen: Some(*b"the.seen"),
        stamp: *b"of.stamp",
    }
}

#[test]
fn both_sides_know_the_packed_numbers_by_the_same_names_and_widths() {
    let limits = TimeLimits::default();
    let buckets = Buckets::new(64).unwrap();
    let numbers = publish(&limits, None).numbers(buckets, Bucket(3), 128);
    assert_eq!(between(LUA, "local PUBLISH_NUMBERS = '", "'"), format(&numbers));
    assert_eq!(
        between(LUA, "post_publish(keys, args)\n  local ", "= struct.unpack(PUBLISH_NUMBERS, args[1])"),
        names(&numbers)
    );
    let values = |numbers: [PackedNumber; 13]| numbers.map(|(.., value)| value);
    let per_ms = sequences(buckets);
    // A token with no time at all is remembered for a moment, and no time is too long.
    let told = |(piece, depth)| {
        [1_700_000_000_000, per_ms, 3 * per_ms, 1, 2, 1, piece, depth, 128, 3, 4, (1 << 48) - 1, 7]
    };
    assert_eq!(values(numbers), told((u32::MAX.into(), 0)));
    assert_eq!(values(publish(&limits, Some(repost())).numbers(buckets, Bucket(3), 128)), told((6, 2)));
}

#[test]
fn texts_stand_in_the_order_that_the_function_reads() {
    let limits = TimeLimits::default();
    let repost = repost();
    let original = repost.original.to_bytes().to_vec();
    let command = publish(&limits, Some(repost)).command(Buckets::new(64).unwrap(), Bucket(3), 128);
    let words: Vec<Vec<u8>> = command.arguments().map(<[u8]>::to_vec).collect();
    let keys =
        ["clock", "record", "outbox", "home", "journal", "followers", "reposts", "piece", "public", "token"];
    assert_eq!(words[3..13], keys.map(|key| key.as_bytes().to_vec()));
    let args = &words[13..];
    let told = |name: &str| -> Vec<u8> {
        match name {
            "author" => b"\0\0author".to_vec(),
            "owner" | "entry" | "stamp" => format!("of.{name}").into_bytes(),
            "limits" => Vec::new(),
            "group_stamp" => b"of.group".to_vec(),
            "original" => original.clone(),
            "stamp_seen" => b"the.seen".to_vec(),
            name => name.as_bytes().to_vec(),
        }
    };
    let named = between(LUA, "local head, ", "= unpack(args, 2, 11)");
    let texts: Vec<Vec<u8>> = std::iter::once("head").chain(named.split(',')).map(told).collect();
    assert_eq!(args[1..11], texts);
    // Lua counts from one.
    let [fit, task, each] = [11, 15, 3];
    let places = format!("{},{},{each}", fit + 1, task + 1);
    assert_eq!(between(LUA, "local PUBLISH_FIT, PUBLISH_TASKS, TASK =", "\n"), places);
    assert_eq!(args[fit + 3], b"5", "the decision is the last of the fit");
    assert_eq!(args[task..], [TASK.to_vec(), b"T".to_vec(), b"rest".to_vec()]);
}
