//! What the archive of one tenant, account or instance must not take from others.

use std::sync::Arc;

use tideline::archive::{Archive as _, ArchiveToken, ArchivedPost, Owner, OwnerChange, Prerequisite};
use tideline::post::{Draft, Edit, PostRef};
use tideline::{AccountId, Engine, EngineSettings, ErrorCode, ErrorKind};
use tideline_archive::SqliteArchive;
use tideline_local_cluster::ClusterSpec;
use tokio::time::timeout;

use super::super::harness::{options, order, own};
use super::abuse::at_charter;
use super::archive::{Archived, publish};
use super::{PATIENCE, accounts, all_keys, at_key, drained, eventually, letter_and_name, small, tenant};

/// H178: they fell due again and again, all movers were at them without a pause, and nothing else moved.
#[tokio::test]
async fn posts_that_came_back_of_an_account_that_is_deleted_are_due_no_more() {
    let archived = Archived::new(small()).await;
    let engine = &archived.engine;
    let [ada, ben] = accounts(engine, 2).await[..] else { panic!("two were made") };
    let posts = publish(engine, ada, 40).await;
    archived.left_in_memory(12).await;
    for post in &posts[..4] {
        engine.like(ben, *post).await.unwrap();
    }
    engine.delete_account(ada).await.unwrap();
    drained(engine).await;
    let agendas = async || all_keys(engine).await.iter().filter(|key| letter_and_name(key).0 == 'F').count();
    eventually("nothing is due", async || {
        timeout(PATIENCE, engine.archive_due()).await.expect("it comes to an end").unwrap();
        agendas().await == 0
    })
    .await;
}

/// H183: both would have shown posts of accounts that have one number.
#[tokio::test]
async fn two_tenants_never_have_one_archive() {
    // Nothing was moved there so far.
    let archived = Archived::new(small()).await;
    let options = tenant(1_000);
    let first = Engine::builder().store(options.clone()).settings(small()).start().await.unwrap();
    first.shutdown(PATIENCE).await.unwrap();
    let builder = || Engine::builder().store(options.clone()).settings(small());
    let refused = builder().archive(archived.archive.clone()).begin_archive(9, 0).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Misconfigured, "{refused}");
    assert!(refused.to_string().contains("another tenant"), "{refused}");
    // It has none by that, and begins one of its own.
    builder().start().await.unwrap().shutdown(PATIENCE).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let own = Arc::new(SqliteArchive::open(folder.path().join("posts")).await.unwrap());
    let nothing_stays = builder().archive(own.clone()).begin_archive(0, 0).await.unwrap_err();
    assert_eq!(nothing_stays.kind(), ErrorKind::Invalid, "{nothing_stays}");
    assert_eq!(own.name().await.unwrap(), None);
    builder().archive(own.clone()).begin_archive(9, 0).await.unwrap();
    builder().archive(own).start().await.unwrap();
}

/// Or nobody could make room.
#[tokio::test]
async fn where_no_memory_is_left_posts_in_the_archive_can_be_deleted() {
    let cluster = own(ClusterSpec::ephemeral()).await;
    let folder = tempfile::tempdir().unwrap();
    let archive = Arc::new(SqliteArchive::open(folder.path().join("posts")).await.unwrap());
    let archived = Archived::at(options(cluster.urls()), small(), folder, archive.clone()).await;
    let engine = &archived.engine;
    let [ada, ben] = accounts(engine, 2).await[..] else { panic!("two were made") };
    let posts = publish(engine, ada, 40).await;
    archived.left_in_memory(12).await;
    for node in cluster.nodes() {
        order(&node.addr(), "CONFIG SET maxmemory 1").await;
    }
    let failure = engine.like(ben, posts[2]).await.unwrap_err();
    assert!(failure.to_string().contains("OOM"), "{failure}");
    engine.delete(ada, posts[3]).await.unwrap();
    assert_eq!(archive.size().await.unwrap().posts, 27);
    assert!(engine.as_reader(ben).posts(&[posts[3]]).await.unwrap().posts.is_empty());
}

#[tokio::test]
async fn posts_that_have_to_stay_in_memory_keep_nobody_from_publishing() {
    let settings = EngineSettings { outbox_posts: 100, ..small() };
    let options = tenant(1_000);
    let first = Engine::builder().store(options.clone()).settings(settings.clone()).start().await.unwrap();
    first.shutdown(PATIENCE).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let archive = Arc::new(SqliteArchive::open(folder.path().join("posts")).await.unwrap());
    let builder = || Engine::builder().store(options.clone()).settings(settings.clone());
    builder().archive(archive.clone()).begin_archive(12, 30).await.unwrap();
    let engine = builder().archive(archive).start().await.unwrap();
    let [ada] = accounts(&engine, 1).await[..] else { panic!("one was made") };
    let posts = publish(&engine, ada, 700).await;
    assert_eq!(at_key(&engine, 'o', ada, "LLEN", &[]).await.int().unwrap(), 701);
    assert_eq!(engine.archive_due().await.unwrap().left, 0);
    assert!(engine.stored().post(posts[0]).await.unwrap().is_some());
}

/// H185: an instance may have stood still while the archive was begun.
#[tokio::test]
async fn an_instance_without_the_archive_that_was_begun_takes_nothing_for_gone() {
    let options = tenant(1_000);
    let engine = Engine::builder().store(options.clone()).settings(small()).start().await.unwrap();
    let [ada] = accounts(&engine, 1).await[..] else { panic!("one was made") };
    let post = engine.publish(ada, &Draft::text("is there")).await.unwrap().id;
    let gone = engine.publish(ada, &Draft::text("is gone")).await.unwrap().id;
    engine.delete(ada, gone).await.unwrap();
    assert_eq!(engine.stored().post(gone).await.unwrap(), None);
    let number = (engine.decision().number + 1).to_string();
    let name = "0123456789abcdef0123456789abcdef";
    let fields = ["decision", &number, "archive", name, "hot_posts", "12", "hot_days", "0"];
    at_charter(engine.store(), "HSET", &fields).await;
    eventually("it hears of it", async || engine.stored().post(gone).await.is_err()).await;
    let failure = engine.stored().post(gone).await.unwrap_err();
    assert_eq!(failure.kind(), ErrorKind::Misconfigured, "{failure}");
    assert_eq!(
        engine.edit(ada, gone, &Default::default()).await.unwrap_err().kind(),
        ErrorKind::Misconfigured
    );
    assert!(engine.stored().post(post).await.unwrap().is_some());
}

/// Bookmarks bring nothing back, and what it takes back always goes.
#[tokio::test]
async fn an_account_brings_back_no_more_than_it_may() {
    let archived = Archived::new(EngineSettings { brought_back_max: 5, ..small() }).await;
    let engine = &archived.engine;
    let [ada, ben, cid] = accounts(engine, 3).await[..] else { panic!("three were made") };
    let posts = publish(engine, ada, 40).await;
    let of = |id| PostRef { id, author: ada };
    archived.left_in_memory(12).await;
    engine.like(ben, posts[0]).await.unwrap();
    engine.repost(ben, posts[1]).await.unwrap();
    engine.publish(ben, &Draft::text("so").reply_to(of(posts[2]))).await.unwrap();
    engine.publish(ben, &Draft::text("so").quoting(of(posts[3]))).await.unwrap();
    engine.like(ben, posts[4]).await.unwrap();
    let refused = engine.like(ben, posts[5]).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::TooOften, "{refused}");
    let bound = refused.frequency_bound().unwrap();
    assert!(bound.most == 5 && !bound.again_in.is_zero(), "{bound:?}");
    let refused = engine.publish(ben, &Draft::text("so").reply_to(of(posts[5]))).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::TooOften, "{refused}");
    engine.bookmark(ben, posts[5]).await.unwrap();
    engine.like(ben, posts[39]).await.unwrap();
    engine.unlike(ben, posts[0]).await.unwrap();
    engine.like(cid, posts[5]).await.unwrap();
}

/// H226: its own posts are as many as it has written, and each of them came back.
#[tokio::test]
async fn an_account_edits_no_more_old_posts_than_it_may() {
    let archived = Archived::new(EngineSettings { brought_back_max: 5, ..small() }).await;
    let engine = &archived.engine;
    let [ada, ben] = accounts(engine, 2).await[..] else { panic!("two were made") };
    let posts = publish(engine, ada, 40).await;
    archived.left_in_memory(12).await;
    let edit = Edit { text: Some("anew".into()), ..Edit::default() };
    for post in &posts[..5] {
        engine.edit(ada, *post, &edit).await.unwrap();
    }
    let refused = engine.edit(ada, posts[5], &edit).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::TooOften, "{refused}");
    assert!(!archived.in_memory().await.contains(&posts[5].get()));
    // What is in memory needs not be brought back, and what is nowhere is not.
    engine.edit(ada, posts[39], &edit).await.unwrap();
    assert_eq!(engine.edit(ben, posts[5], &edit).await.unwrap_err().kind(), ErrorKind::NotFound);
    engine.delete(ada, posts[6]).await.unwrap();
    assert_eq!(engine.edit(ada, posts[6], &edit).await.unwrap_err().kind(), ErrorKind::NotFound);
}

/// A post's id that a failover has given twice, say.
#[tokio::test]
async fn an_account_whose_post_the_archive_has_of_another_one_keeps_no_others_in_memory() {
    let archived = Archived::new(small()).await;
    let Archived { engine, archive, .. } = &archived;
    let [ada, ben] = accounts(engine, 2).await[..] else { panic!("two were made") };
    let first = publish(engine, ada, 1).await[0];
    let buckets = engine.store().keys().buckets();
    let somebody = AccountId::new(1 << 40).unwrap();
    let taken = OwnerChange {
        owner: Owner { bucket: buckets.of_account(somebody.get()), account: somebody },
        token: ArchiveToken { number: 1, nonce: [0; 8] },
        needs: Prerequisite::default(),
        upto: first,
        posts: vec![(ArchivedPost::new(first, somebody, 1, b"another one".to_vec()), Vec::new())],
        erased: Vec::new(),
        buries: false,
    };
    archive.change(&[taken]).await.unwrap().remove(0).unwrap();
    publish(engine, ada, 39).await;
    publish(engine, ben, 40).await;
    archived.left_in_memory(40 + 12).await;
}

/// Stops the engine, changes what stays in memory, and starts it again.
async fn keeping(archived: Archived, hot_posts: Option<u32>, hot_days: Option<u32>) -> Archived {
    let Archived { engine, options, archive, folder } = archived;
    let settings = EngineSettings { brought_back_max: 1, ..small() };
    let builder = || {
        let of = Engine::builder().store(options.clone()).settings(settings.clone());
        of.archive(archive.clone())
    };
    let served = builder().keep_in_memory(hot_posts, hot_days).await.unwrap_err();
    assert_eq!(served.kind(), ErrorKind::Conflict, "{served}");
    engine.shutdown(PATIENCE).await.unwrap();
    let decided = builder().keep_in_memory(hot_posts, hot_days).await.unwrap();
    // Whoever isn't sure whether it was done does it again.
    assert_eq!(builder().keep_in_memory(hot_posts, hot_days).await.unwrap(), decided);
    let engine = builder().start().await.unwrap();
    assert_eq!(engine.decision(), decided);
    Archived { engine, options, archive, folder }
}

#[tokio::test]
async fn what_stays_in_memory_can_be_changed() {
    let archived = Archived::new(small()).await;
    let [ada] = accounts(&archived.engine, 1).await[..] else { panic!("one was made") };
    let mut posts = publish(&archived.engine, ada, 40).await;
    archived.left_in_memory(12).await;

    let archived = keeping(archived, Some(20), None).await;
    posts.extend(publish(&archived.engine, ada, 60).await);
    archived.left_in_memory(20).await;
    // Less: nobody has posted since, and still they leave.
    let archived = keeping(archived, Some(5), None).await;
    eventually("all but five leave", async || {
        archived.engine.archive_due().await.unwrap();
        archived.in_memory().await.len() == 5
    })
    .await;

    // Longer: what has left stays there, and who brings it back is counted, young as it is.
    let archived = keeping(archived, None, Some(30)).await;
    let engine = &archived.engine;
    let decided = engine.decision().archive.unwrap();
    assert_eq!((decided.hot_posts, decided.hot_days, decided.left_after_days), (5, 30, 0));
    publish(engine, ada, 40).await;
    engine.archive_all().await.unwrap();
    assert_eq!(archived.in_memory().await.len(), 45);
    let [ben] = accounts(engine, 1).await[..] else { panic!("one was made") };
    engine.like(ben, posts[0]).await.unwrap();
    let refused = engine.like(ben, posts[1]).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::TooOften, "{refused}");
}
