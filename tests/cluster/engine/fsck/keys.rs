//! Sets, keys and work that are out of step, made so on purpose.

use std::time::Duration;

use tideline::EngineSettings;
use tideline::FindingKind::*;
use tideline::post::Draft;
use tideline::sharded::SpreadStep;

use super::broken::home_entry;
use super::*;
use crate::engine::{engine, engine_with, small, tenant, walk_home};

#[tokio::test]
async fn members_where_nobody_looks_are_removed_and_trees_count_right_again() {
    // In a wrong bucket.
    let spread = engine().await;
    let (author, readers) = followed(&spread, 60).await;
    let name = set_name("followers", author);
    let wrong = (bucket_of(&spread, readers[0]) + 1) % 16;
    raw(&spread, wrong, ('t', &name), "ZADD", &[b"5", &readers[0].to_bytes()]).await;
    let report = fsck(&spread, false).await;
    // The part there may have a tree.
    assert_eq!(kinds(&report), [CountWrong, MemberMisplaced], "{report:#?}");
    heals(&spread, &[CountWrong, MemberMisplaced]).await;

    // In a wrong piece; and not in the right one.
    let local = engine().await;
    let (author, readers) = followed(&local, 30).await;
    let (bucket, name) = (bucket_of(&local, author), set_name("followers", author));
    let piece = |number: u8| [format!("{number:x}:").as_bytes(), &name].concat();
    let (zero, one) = (piece(0), piece(1));
    let lies_in_zero = async |reader: &AccountId| {
        !raw(&local, bucket, ('p', &zero), "ZSCORE", &[&reader.to_bytes()]).await.is_nil()
    };
    let mut moved = None;
    for reader in &readers {
        if lies_in_zero(reader).await {
            moved = Some(*reader);
        }
    }
    let moved = moved.unwrap();
    raw(&local, bucket, ('p', &zero), "ZREM", &[&moved.to_bytes()]).await;
    raw(&local, bucket, ('p', &one), "ZADD", &[b"5", &moved.to_bytes()]).await;
    heals(&local, &[EdgeMissing, MemberMisplaced]).await;
    assert!(lies_in_zero(&moved).await);
    raw(&local, bucket, ('s', &name), "BITFIELD", &[b"SET", b"u56", b"8", b"7"]).await;
    heals(&local, &[CountWrong, TreeCountWrong]).await;
    assert_eq!(
        local.store().sets().of_account::<AccountId>(author, "followers").unwrap().len().await.unwrap(),
        30
    );
}

#[tokio::test]
async fn a_spreading_that_has_come_to_a_halt_is_finished_and_what_it_left_goes() {
    for step in [SpreadStep::Begun, SpreadStep::Guarded, SpreadStep::CopiedSome, SpreadStep::Proven] {
        let engine = engine().await;
        let (author, readers) = followed(&engine, 30).await;
        let followers = engine.store().sets().of_account::<AccountId>(author, "followers").unwrap();
        followers.spread_until(|at| at == step).await.unwrap_err();
        heals(&engine, &[SpreadHalted]).await;
        let id = post(&engine, author).await;
        drained(&engine).await;
        assert_eq!(followers.len().await.unwrap(), 30);
        for reader in readers {
            assert_eq!(walk_home(&engine, reader, 10).await, [id]);
        }
    }
    let engine = engine().await;
    let (author, _) = followed(&engine, 30).await;
    let followers = engine.store().sets().of_account::<AccountId>(author, "followers").unwrap();
    followers.spread_until(|at| at == SpreadStep::Ended).await.unwrap_err();
    heals(&engine, &[SpreadLeftover]).await;
    assert_eq!(followers.len().await.unwrap(), 30);
}

#[tokio::test]
async fn pieces_parts_and_guards_of_nothing_go() {
    let engine = engine().await;
    let (author, _) = followed(&engine, 30).await;
    let name = set_name("followers", author);
    let bucket = bucket_of(&engine, author);
    raw(&engine, bucket, ('p', &[b"7f:", name.as_slice()].concat()), "ZADD", &[b"1", &author.to_bytes()])
        .await;
    heals(&engine, &[PieceOrphaned]).await;
    raw(&engine, bucket, ('g', &name), "SET", &[b"12345678", b"PX", b"100000"]).await;
    heals(&engine, &[GuardLeft]).await;
    let few = accounts(&engine, 1).await[0];
    let of_few = set_name("followers", few);
    raw(&engine, bucket, ('t', &of_few), "ZADD", &[b"1", &author.to_bytes()]).await;
    heals(&engine, &[PartOrphaned]).await;
    // Of a set that is about to be spread: it becomes a part, and what doesn't belong there goes.
    raw(&engine, bucket, ('t', &name), "ZADD", &[b"1", &author.to_bytes()]).await;
    let report = fsck(&engine, true).await;
    assert_eq!(kinds(&report), [EdgeNeedless, PartOrphaned], "{report:#?}");
    assert!(report.is_clean(), "{report:#?}");
    drained(&engine).await;
    assert!(fsck(&engine, false).await.findings.is_empty());
}

#[tokio::test]
async fn keys_of_nobody_go_and_keys_that_nobody_knows_stay() {
    let engine = engine().await;
    let author = accounts(&engine, 1).await[0];
    let nobody = AccountId::new(4_711).unwrap();
    let bucket = bucket_of(&engine, nobody);
    raw_of(&engine, nobody, 'h', "RPUSH", &[&home_entry(0, u64::MAX)]).await;
    raw_of(&engine, nobody, 'm', "HSET", &[&author.to_bytes(), b"12345678"]).await;
    raw_of(&engine, nobody, 'o', "RPUSH", &[b"F\0\0\0\0\0\0\0\0"]).await;
    raw_of(&engine, nobody, 'r', "HSET", &[&author.to_bytes(), b"12345678"]).await;
    raw_of(&engine, nobody, 'x', "HSET", &[b"l", b"nobody"]).await;
    raw(&engine, bucket, ('s', &set_name("mutes", nobody)), "ZADD", &[b"1", &author.to_bytes()]).await;
    raw(&engine, 3, ('t', &set_name("followers", nobody)), "ZADD", &[b"1", &author.to_bytes()]).await;
    heals(&engine, &[KeyOrphaned]).await;
    for letter in ['h', 'm', 'o', 'r', 'x'] {
        let is_left = raw_of(&engine, nobody, letter, "EXISTS", &[]).await.int().unwrap();
        assert_eq!(is_left, 0, "a key `{letter}` of nobody");
    }
    let other = AccountId::new(4_712).unwrap();
    raw(&engine, bucket_of(&engine, other), ('d', b""), "ZADD", &[b"1", &other.to_bytes()]).await;
    heals(&engine, &[KeyOrphaned]).await;

    // A post of nobody does no harm.
    let id = post(&engine, author).await;
    drained(&engine).await;
    let stored = raw(&engine, bucket_of(&engine, author), ('w', &id.get().to_be_bytes()), "GET", &[]).await;
    let mut stored = stored.bytes().unwrap().to_vec();
    stored[8..16].copy_from_slice(&nobody.to_bytes());
    let buckets = engine.store().keys().buckets();
    let id = PostId::new(buckets, buckets.get(bucket).unwrap(), id.unix_ms() + 1, 0).unwrap();
    raw(&engine, bucket, ('w', &id.get().to_be_bytes()), "SET", &[&stored]).await;
    assert!(fsck(&engine, false).await.is_clean());
    heals(&engine, &[PostOrphaned]).await;

    // What this release doesn't know may be a later one's; what can't be read has no right value.
    raw(&engine, 5, ('z', b"later"), "SET", &[b"?"]).await;
    raw(&engine, 5, ('j', b""), "HSET", &[b"12345678", b"12345678?"]).await;
    raw_of(&engine, author, 'h', "SET", &[b"?"]).await;
    for repair in [false, true] {
        let report = fsck(&engine, repair).await;
        assert_eq!(kinds(&report), [KeyUnknown, Unreadable, EntryUnknown], "{report:#?}");
        assert!(!report.is_clean() && report.findings.values().all(|f| f.left() == f.found));
    }
}

#[tokio::test]
async fn tokens_end_and_name_posts() {
    let engine = engine().await;
    let author = accounts(&engine, 1).await[0];
    let draft = Draft::text("once").token("form-1");
    let id = engine.publish(author, &draft).await.unwrap().id;
    drained(&engine).await;
    let bucket = bucket_of(&engine, author);
    let key = [author.to_bytes().as_slice(), b"form-1"].concat();
    raw(&engine, bucket, ('k', &key), "PERSIST", &[]).await;
    heals(&engine, &[TokenEndless]).await;
    assert_eq!(engine.publish(author, &draft).await.unwrap().id, id);
    // A post that was deleted keeps its token.
    engine.delete(author, id).await.unwrap();
    drained(&engine).await;
    assert!(fsck(&engine, false).await.findings.is_empty());
    let never = (id.get() + (1 << 20)).to_be_bytes();
    raw(&engine, bucket, ('k', &key), "SET", &[&never, b"PX", b"1000000"]).await;
    heals(&engine, &[TokenOfNoPost]).await;
    // A report's token may name one that is gone: nobody notes which there were.
    let reporter = accounts(&engine, 1).await[0];
    let key = [author.to_bytes().as_slice(), &reporter.to_bytes(), b"form-1"].concat();
    raw(&engine, bucket, ('K', &key), "SET", &[&never, b"PX", b"1000000"]).await;
    assert!(fsck(&engine, false).await.findings.is_empty());
    raw(&engine, bucket, ('K', &key), "PERSIST", &[]).await;
    heals(&engine, &[TokenEndless]).await;
}

#[tokio::test]
async fn work_that_nobody_does_and_leases_that_nobody_can_read_are_found() {
    let store = tenant(40);
    let engine = engine_with(store.clone(), small()).await;
    let (author, readers) = followed(&engine, 1).await;
    assert_eq!(engine.shutdown(Duration::from_secs(10)).await.unwrap(), 0);
    // What a dead instance left: an edge that is to be looked at.
    let followers = engine.store().sets().of_account(author, "followers").unwrap();
    followers.add(&[(author, 1.0)]).await.unwrap();
    let entry = [b"goneGONE".as_slice(), b"P", &author.to_bytes(), &author.to_bytes(), &[0]].concat();
    raw(&engine, bucket_of(&engine, author), ('j', b""), "HSET", &[b"12345678", &entry]).await;
    let observer = Engine::builder().store(store.clone()).settings(small()).observe().await.unwrap();
    // The needless edge is that entry's affair, and so is how many follow.
    let report = fsck(&observer, false).await;
    assert_eq!((kinds(&report), report.in_flight), (vec![EntryStale], 2), "{report:#?}");
    assert!(observer.fsck(&options(true), &|_| {}).await.is_err());
    // An instance that searches too seldom for it.
    let settings = EngineSettings { scan_period: Duration::from_secs(600), ..small() };
    let engine = engine_with(store, settings).await;
    heals(&engine, &[EntryStale]).await;
    assert_eq!(followers.score(&author).await.unwrap(), None);
    assert!(followers.score(&readers[0]).await.unwrap().is_some());
    raw(&engine, 0, ('v', b""), "HSET", &[b"odd", b"9999999999999"]).await;
    heals(&engine, &[LeaseUnreadable]).await;
}
