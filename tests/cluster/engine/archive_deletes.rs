//! Deletions of what the archive has: many at once, and some of which it can't tell whether they were made.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tideline::archive::Archive;
use tideline::{AccountId, Engine, PostId};
use tideline_archive::PostgresArchive;
use tideline_local_cluster::LocalPostgres;

use super::archive::{Archived, publish, walk};
use super::archive_refuses::{settings, sql};
use super::archive_rounds::{agenda_of, make_due};
use super::archive_settles::{ServerPair, profile};
use super::unreadable::{Harm, fsck, harm};
use super::{accounts, drained, eventually, small};

/// H255: each had the archive forget its post under a token that voided the others'.
#[tokio::test]
async fn posts_of_one_account_are_deleted_at_once_by_two_instances() {
    let (folder, pair) = ServerPair::new().await;
    let archived = Archived::over(small(), folder, pair.clone()).await;
    let engine = &archived.engine;
    let builder = Engine::builder().store(archived.options.clone()).settings(small());
    let other = builder.archive(pair.clone()).start().await.unwrap();
    let [ada, ben] = accounts(engine, 2).await[..] else { panic!("two were made") };
    let posts = publish(engine, ada, 40).await;
    archived.left_in_memory(12).await;
    // As a disk does that has much to do: longer than it takes to ask Redis.
    pair.has_changes_take(Duration::from_millis(20));
    let deletions = posts[..8].iter().enumerate().map(|(n, id)| {
        let by = if n % 2 == 0 { engine } else { &other };
        by.delete(ada, *id)
    });
    for deletion in join_all(deletions).await {
        deletion.unwrap();
    }
    pair.has_changes_take(Duration::ZERO);
    let left: Vec<PostId> = posts[8..].iter().rev().copied().collect();
    for instance in [engine, &other] {
        assert_eq!(walk(instance, ben, ada, 10).await, left);
    }
}

/// H260.
#[tokio::test]
async fn a_burial_of_which_the_archive_cant_tell_keeps_no_other_waiting() {
    let server = LocalPostgres::up().await.unwrap();
    let mut settings = settings(&server);
    settings.settles_within = Duration::from_millis(50);
    sql(&server, "CREATE ROLE service LOGIN PASSWORD 'first'; GRANT CREATE ON DATABASE postgres TO service");
    let archive: Arc<dyn Archive> = Arc::new(PostgresArchive::connect(settings).await.unwrap());
    // No round of its own looks at the first one before it is broken.
    let archived =
        Archived::over(small(), tempfile::tempdir().unwrap(), archive).await.by_hand(small()).await;
    let engine = &archived.engine;
    // So many that some lie on the same server as the first.
    let all = accounts(engine, 13).await;
    for account in &all {
        engine.delete_account(*account).await.unwrap();
    }
    drained(engine).await;
    let (broken, others) = (all[0], &all[1..]);
    let bucket = engine.store().keys().buckets().of_account(broken.get());
    sql(
        &server,
        &format!(
            "INSERT INTO tideline.post (bucket, id, owner, change, stored, parts)
             VALUES ({}, 77, {broken}, 1, '', '\\x010000')",
            bucket.index()
        ),
    );
    let mut looked_at = 0;
    eventually("all others are settled", async || {
        for account in &all {
            make_due(engine, *account).await;
        }
        // It says that something has failed.
        looked_at += usize::from(engine.archive_due().await.is_err());
        let mut open = 0;
        for account in others {
            open += agenda_of(engine, *account).await.iter().filter(|entry| names(entry, *account)).count();
        }
        open == 0
    })
    .await;
    assert!(looked_at > 0, "the one that can't be read was not looked at");
    let left = agenda_of(engine, broken).await;
    assert!(left.iter().any(|entry| names(entry, broken)), "{left:?}");
}

fn names(entry: &[u8], account: AccountId) -> bool {
    entry.ends_with(&account.get().to_be_bytes())
}

/// H292: the archive's own version showed again, at once or when the archive had lost that it should forget it.
#[tokio::test]
async fn what_cant_be_read_in_memory_is_gone_from_the_archive_too_whoever_deletes_it() {
    for (harmed, by_fsck) in
        [Harm::CutOff, Harm::OtherType].into_iter().flat_map(|harm| [(harm, false), (harm, true)])
    {
        let (folder, pair) = ServerPair::new().await;
        let archived = Archived::over(small(), folder, pair.clone()).await.by_hand(small()).await;
        let engine = &archived.engine;
        let [ada, ben] = accounts(engine, 2).await[..] else { panic!("two were made") };
        let posts = publish(engine, ada, 40).await;
        archived.left_in_memory(12).await;
        engine.restore_archived(ada, &posts[3..4]).await.unwrap();
        harm(engine, posts[3], harmed).await;
        pair.cut();
        if by_fsck {
            fsck(engine, true, true).await;
        } else {
            engine.delete(ada, posts[3]).await.unwrap();
            // Deleted is deleted.
            engine.delete(ada, posts[3]).await.unwrap();
        }
        drained(engine).await;
        let left: Vec<PostId> = posts.iter().rev().filter(|id| **id != posts[3]).copied().collect();
        assert_eq!(profile(engine, ben, ada).await.as_ref(), Some(&left), "{harmed:?}, {by_fsck}");
        assert_eq!(engine.stored().account(ada).await.unwrap().posts, 39, "{harmed:?}, {by_fsck}");
        pair.fail_over();
        let shown = profile(engine, ben, ada).await;
        assert!(shown.as_ref().is_none_or(|shown| *shown == left), "{harmed:?}, {by_fsck}: {shown:?}");
        eventually("the archive is told once more", async || {
            make_due(engine, ada).await;
            engine.archive_due().await.unwrap();
            profile(engine, ben, ada).await.is_some_and(|shown| shown == left)
        })
        .await;
    }
}
