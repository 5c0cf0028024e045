//! Rounds in which something fails: all else goes on, and nothing is forgotten.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tempfile::TempDir;
use tideline::archive::{ListKey, ListPlace, PageOrder, PostListAsk};
use tideline::cluster::{Command, Replicas, Request};
use tideline::post::{Draft, PostRef};
use tideline::sharded::SortedSet;
use tideline::{AccountId, Engine, EngineSettings, PostId};
use tideline_local_cluster::ClusterSpec;

use super::archive::{Archived, publish};
use super::archive_settles::ServerPair;
use super::away::server_of;
use super::notifications::told;
use super::{accounts, at_bucket_key, drained, eventually, small};
use crate::harness::{options, order, own, replicated};

/// Mentions that a list keeps in memory, and members that are its own numbers.
const MOST: u32 = 20;
const NUMBERS: u64 = 3;

/// A tenant with a pair of archives.
async fn over_a_pair() -> (Archived, Arc<ServerPair>) {
    let (folder, pair): (TempDir, _) = ServerPair::new().await;
    let settings = EngineSettings { mentions_max: MOST, keeps_notifications: true, ..small() };
    (Archived::over(settings, folder, pair.clone()).await, pair)
}

fn mentions(engine: &Engine, account: AccountId) -> SortedSet<PostRef> {
    engine.store().sets().of_account(account, "mentions").unwrap().pinned()
}

/// Puts so many posts on somebody's mentions that nobody wrote.
async fn mention(engine: &Engine, account: AccountId, author: AccountId, count: u32) {
    let id = |n: u32| PostId::from_u64((1_700_000_000_000 + u64::from(n)) << 16).unwrap();
    let posts: Vec<(PostRef, f64)> =
        (0..count).map(|n| (PostRef { id: id(n), author }, 1.7e12 + f64::from(n))).collect();
    for some in posts.chunks(100) {
        mentions(engine, account).add(some).await.unwrap();
    }
}

/// Posts of somebody's mentions that the archive has.
async fn in_archive(archived: &Archived, account: AccountId) -> usize {
    let bucket = archived.engine.store().keys().buckets().of_account(account.get());
    let list = ListKey { bucket, name: [&b"m"[..], &account.get().to_be_bytes()].concat() };
    let mut edge = ListPlace { unix_ms: u64::MAX >> 17, post: PostId::from_u64(u64::MAX >> 1).unwrap() };
    let mut posts = 0;
    loop {
        let ask = PostListAsk { list: list.clone(), edge, most: 1_000 };
        let page = archived.archive.list_pages(&[ask], PageOrder::NewestFirst).await.unwrap().remove(0);
        posts += page.posts.len();
        let Some(last) = page.posts.last() else { return posts };
        edge = last.place;
    }
}

/// How many entries the agenda of an account's bucket has.
async fn noted(engine: &Engine, account: AccountId) -> i64 {
    at_bucket_key(engine, 'F', account, "ZCARD", &[]).await.int().unwrap()
}

/// What the agenda of an account's bucket names.
pub(super) async fn agenda_of(engine: &Engine, account: AccountId) -> Vec<Vec<u8>> {
    let entries = at_bucket_key(engine, 'F', account, "ZRANGE", &["0", "-1"]).await.into_array().unwrap();
    entries.iter().map(|entry| entry.bytes().unwrap().to_vec()).collect()
}

/// Has all that an agenda names looked at now.
pub(super) async fn make_due(engine: &Engine, account: AccountId) {
    for entry in agenda_of(engine, account).await {
        note(engine, account, &entry).await;
    }
}

/// Has an agenda name something that is looked at now.
async fn note(engine: &Engine, account: AccountId, entry: &[u8]) {
    let (keys, buckets) = (engine.store().keys(), engine.store().keys().buckets());
    let bucket = buckets.of_account(account.get());
    let agenda = format!("{}{{{}}}F", keys.prefix(), buckets.tag(bucket));
    let command = Command::new("ZADD").arg(&agenda).arg("1").arg(entry);
    engine.store().router().call(Request::write(buckets.slot(bucket), command)).await.unwrap();
}

/// Has all be moved that an account's agenda names, until its mentions are as short as they should be. The instance
/// does so by itself, too.
async fn cut(engine: &Engine, account: AccountId) {
    eventually("the list is cut", async || {
        make_due(engine, account).await;
        engine.archive_due().await.unwrap();
        mentions(engine, account).len().await.unwrap() <= u64::from(MOST) + NUMBERS
    })
    .await;
}

/// H235.
#[tokio::test]
async fn a_list_that_is_much_too_long_loses_nothing_that_the_archive_has_lost() {
    let (archived, pair) = over_a_pair().await;
    let engine = &archived.engine;
    let [ada, ben, cid] = accounts(engine, 3).await[..] else { panic!("three were made") };
    // More than one call of the archive takes, and fewer than make it refuse more.
    mention(engine, ada, cid, 4_160).await;
    pair.loses_a_list.store(true, Ordering::SeqCst);
    engine.publish(ben, &Draft::text("so").mentions([ada])).await.unwrap();
    drained(engine).await;
    engine.archive_due().await.unwrap();
    let there = mentions(engine, ada).len().await.unwrap();
    assert!(there >= 4_161, "{there} are in memory, and the archive has lost what it was told");
    cut(engine, ada).await;
    assert_eq!(in_archive(&archived, ada).await as u64 + u64::from(MOST), 4_161);
}

/// H293.
#[tokio::test]
async fn a_list_that_needs_several_cuts_is_due_again_at_once() {
    let (archived, _) = over_a_pair().await;
    let engine = &archived.engine;
    let [ada, ben, cid] = accounts(engine, 3).await[..] else { panic!("three were made") };
    mention(engine, ada, cid, 8_300).await;
    engine.publish(ben, &Draft::text("so").mentions([ada])).await.unwrap();
    // Nobody says that it is due but who finds it too long, the first time, and who cuts it, once with each of these.
    eventually("the list is cut", async || {
        engine.archive_due().await.unwrap();
        mentions(engine, ada).len().await.unwrap() <= u64::from(MOST) + NUMBERS + 1
    })
    .await;
    drained(engine).await;
    eventually("the list is looked at no more", async || noted(engine, ada).await == 0).await;
}

/// H231.
#[tokio::test]
async fn a_list_that_takes_no_more_is_looked_at_until_it_does() {
    let (archived, pair) = over_a_pair().await;
    let engine = &archived.engine;
    let [ada, ben, cid] = accounts(engine, 3).await[..] else { panic!("three were made") };
    // Nobody has noted it, as when a cut of it came to nothing.
    mention(engine, ada, cid, 4_200).await;
    pair.forgets_lists.store(true, Ordering::SeqCst);
    engine.publish(ben, &Draft::text("so").mentions([ada])).await.unwrap();
    eventually("the list is noted", async || noted(engine, ada).await == 1).await;
    engine.archive_due().await.unwrap();
    assert_eq!(noted(engine, ada).await, 1, "what the archive has lost is looked at again");
    let there = mentions(engine, ada).len().await.unwrap();
    assert!((4_200..4_200 + NUMBERS).contains(&there), "{there}: it takes no more, and gives up none");
    pair.forgets_lists.store(false, Ordering::SeqCst);
    // With the new one it is not too long: that may come before the last cut, or after it.
    eventually("it is cut, and the new one has come", async || {
        make_due(engine, ada).await;
        engine.archive_due().await.unwrap();
        mentions(engine, ada).len().await.unwrap() == u64::from(MOST) + NUMBERS + 1
    })
    .await;
}

/// H291.
#[tokio::test]
async fn a_list_that_takes_no_more_tells_nobody() {
    let (archived, pair) = over_a_pair().await;
    let engine = &archived.engine;
    let [ada, ben, cid] = accounts(engine, 3).await[..] else { panic!("three were made") };
    // As many as it takes: it grows no further by itself.
    mention(engine, ada, cid, 4 * MOST + 4_096).await;
    pair.forgets_lists.store(true, Ordering::SeqCst);
    engine.publish(ben, &Draft::text("so").mentions([ada])).await.unwrap();
    // Whoever finds that it is too long has it cut: by then it was tried.
    eventually("the list is noted", async || noted(engine, ada).await == 1).await;
    assert_eq!(told(engine, ada).await, []);
    pair.forgets_lists.store(false, Ordering::SeqCst);
    eventually("it is told once it is on the list", async || {
        make_due(engine, ada).await;
        engine.archive_due().await.unwrap();
        let by: Vec<AccountId> = told(engine, ada).await.into_iter().map(|(_, by, _)| by).collect();
        assert!(by.is_empty() || by == [ben], "{by:?}");
        by == [ben]
    })
    .await;
}

/// H230.
#[tokio::test]
async fn a_server_without_its_replica_keeps_nothing_else_in_memory() {
    let cluster = own(replicated()).await;
    let (folder, pair) = ServerPair::new().await;
    let mut options = options(cluster.urls());
    options.router.replicas = Replicas::Required;
    options.router.deadline = Duration::from_secs(3);
    let archived = Archived::at(options, small(), folder, pair).await;
    let engine = &archived.engine;
    let server = cluster.nodes()[0].addr();
    let mut people = accounts(engine, 12).await;
    // Ids are drawn: all may lie elsewhere.
    while !people.iter().any(|account| server_of(engine, *account) == server) {
        people.extend(accounts(engine, 1).await);
    }
    let mut posts = BTreeSet::new();
    let (there, elsewhere): (Vec<_>, Vec<_>) =
        people.iter().partition(|account| server_of(engine, **account) == server);
    for author in &people {
        let of_author = publish(engine, *author, 20).await;
        posts.extend(of_author.iter().filter(|_| elsewhere.contains(&author)).map(|id| id.get()));
    }
    drained(engine).await;
    assert!(!there.is_empty() && !elsewhere.is_empty(), "accounts lie everywhere");
    cluster.replica_of(&server).await.unwrap().kill().unwrap();
    eventually("who looks after it is told", async || {
        for author in &people {
            note(engine, *author, &author.get().to_be_bytes()).await;
        }
        engine.archive_due().await.is_err()
    })
    .await;
    // Twelve of each stay. The instance may be about to move some by itself.
    eventually("what lies elsewhere leaves", async || {
        archived.in_memory().await.intersection(&posts).count() == 12 * elsewhere.len()
    })
    .await;
}

/// H234.
#[tokio::test]
async fn where_no_memory_is_left_for_a_list_posts_leave_all_the_same() {
    let cluster = own(ClusterSpec::ephemeral()).await;
    let (folder, pair) = ServerPair::new().await;
    let settings = EngineSettings { mentions_max: MOST, ..small() };
    let archived = Archived::at(options(cluster.urls()), settings, folder, pair.clone()).await;
    let engine = &archived.engine;
    let [ada, ben, cid] = accounts(engine, 3).await[..] else { panic!("three were made") };
    // So that it stays too long.
    pair.forgets_lists.store(true, Ordering::SeqCst);
    mention(engine, ada, cid, 60).await;
    engine.publish(ben, &Draft::text("so").mentions([ada])).await.unwrap();
    let posts: BTreeSet<u64> = publish(engine, ada, 40).await.iter().map(|id| id.get()).collect();
    drained(engine).await;
    make_due(engine, ada).await;
    for node in cluster.nodes() {
        order(&node.addr(), "CONFIG SET maxmemory 1").await;
    }
    eventually("posts leave memory", async || {
        // Of the list it fails.
        let _ = engine.archive_due().await;
        archived.in_memory().await.intersection(&posts).count() == 12
    })
    .await;
}

/// H233.
#[tokio::test]
async fn entries_that_nobody_knows_keep_nothing_behind_them_in_memory() {
    let (archived, _) = over_a_pair().await;
    let engine = &archived.engine;
    let [ada] = accounts(engine, 1).await[..] else { panic!("one was made") };
    // As a later release may leave them: more than are read at once.
    for n in 0..70 {
        note(engine, ada, &[b'?', n]).await;
    }
    publish(engine, ada, 40).await;
    archived.left_in_memory(12).await;
}
