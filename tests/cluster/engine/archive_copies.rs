//! A tenant that grows from a file to PostgreSQL.

use std::sync::Arc;
use std::time::Duration;

use tideline::archive::Archive;
use tideline::bucket::Bucket;
use tideline::post::{Draft, PostRef};
use tideline::{
    AccountId, Engine, EngineBuilder, EngineSettings, ErrorKind, FsckOptions, ListQuery, PostId, Query,
};
use tideline_archive::copy;
use tideline_local_cluster::LocalPostgres;

use super::archive::{Archived, postgres, publish, walk};
use super::{PATIENCE, accounts, drained, eventually, small};

fn builder(archived: &Archived, archive: &Arc<dyn Archive>) -> EngineBuilder {
    Engine::builder().store(archived.options.clone()).settings(small()).archive(archive.clone())
}

fn bucket_of(engine: &Engine, account: AccountId) -> Bucket {
    engine.store().keys().buckets().of_account(account.get())
}

async fn mentions(engine: &Engine, reader: AccountId) -> Vec<PostId> {
    let page = engine.as_reader(reader).read(&Query::mentions().limit(100)).await.unwrap();
    assert!(!page.lacks_archive);
    page.ids()
}

async fn likers(engine: &Engine, reader: AccountId, post: PostId) -> Vec<AccountId> {
    let page = engine.as_reader(reader).likers(post, &ListQuery::default()).await.unwrap();
    page.accounts.iter().map(|account| account.id).collect()
}

async fn finds_nothing(engine: &Engine) {
    let options = FsckOptions { pause: Duration::from_millis(50), ..FsckOptions::default() };
    let report = engine.fsck(&options, &|_| ()).await.unwrap();
    assert!(report.findings.is_empty() && report.is_clean(), "{report:#?}");
}

#[tokio::test]
async fn a_tenant_goes_on_with_a_copy_of_its_archive_in_another_place() {
    // Mentions go on in the archive, too.
    let archived = Archived::new(EngineSettings { mentions_max: 20, ..small() }).await;
    let engine = &archived.engine;
    let [ada, ben, cora] = accounts(engine, 3).await[..] else { panic!("three were made") };
    let mut posts = publish(engine, ada, 50).await;
    for author in [ben, cora] {
        engine.like(author, posts[3]).await.unwrap();
    }
    let to = PostRef { id: posts[4], author: ada };
    engine.publish(ben, &Draft::text("an answer").reply_to(to)).await.unwrap();
    engine.delete(ada, posts.remove(7)).await.unwrap();
    for n in 0..40 {
        engine.publish(ben, &Draft::text(format!("to ada {n}")).mentions([ada])).await.unwrap();
    }
    archived.left_in_memory(24).await;
    engine.delete(ada, posts.remove(8)).await.unwrap();
    drained(engine).await;
    eventually("mentions leave memory", async || {
        engine.archive_due().await.unwrap();
        !archived.archive.walk_lists(bucket_of(engine, ada), None, 1).await.unwrap().is_empty()
    })
    .await;
    let shown = async |engine: &Engine| {
        let profiles = [walk(engine, cora, ada, 7).await, walk(engine, cora, ben, 100).await];
        (profiles, likers(engine, cora, posts[3]).await, mentions(engine, ada).await)
    };
    let before = shown(engine).await;
    assert_eq!((before.0[0].len(), before.1.len(), before.2.len()), (48, 2, 40));

    let new = postgres(Duration::ZERO).await;
    let served = builder(&archived, &archived.archive).hold_stopped().await.unwrap_err();
    assert_eq!(served.kind(), ErrorKind::Conflict, "{served}");
    engine.shutdown(PATIENCE).await.unwrap();
    let another = builder(&archived, &new).hold_stopped().await.unwrap_err();
    assert_eq!(another.kind(), ErrorKind::Misconfigured, "{another}");
    let held = builder(&archived, &archived.archive).hold_stopped().await.unwrap();
    assert_eq!(Some(held.archive().name), archived.archive.name().await.unwrap());
    let copied = copy(&*archived.archive, &*new, held.buckets(), |_| ()).await.unwrap();
    // Nobody starts beside it, nor with a copy that lacks its name.
    let beside = builder(&archived, &archived.archive).start().await.unwrap_err();
    assert_eq!(beside.kind(), ErrorKind::Conflict, "{beside}");
    held.still_held().await.unwrap();
    held.release().await.unwrap();
    let nameless = builder(&archived, &new).start().await.unwrap_err();
    assert_eq!(nameless.kind(), ErrorKind::Misconfigured, "{nameless}");
    let count = copied.adopt().await.unwrap();
    assert_eq!((count.owners, count.posts, count.members), (2, 36 + 29, 3));
    assert!(count.listed > 0);

    // Several may now.
    let engine = builder(&archived, &new).start().await.unwrap();
    let second = builder(&archived, &new).start().await.unwrap();
    assert_eq!(shown(&engine).await, before);
    finds_nothing(&engine).await;
    let more = publish(&second, ada, 40).await;
    engine.unlike(ben, posts[3]).await.unwrap();
    drained(&engine).await;
    drained(&second).await;
    let grown = Archived { engine, archive: new, ..archived };
    grown.left_in_memory(24).await;
    let all: Vec<PostId> = posts.iter().chain(&more).rev().copied().collect();
    assert_eq!(walk(&grown.engine, cora, ada, 20).await, all);
    assert_eq!(likers(&second, cora, posts[3]).await, [cora]);
    finds_nothing(&second).await;
}

/// H256.
#[tokio::test]
async fn who_stood_still_while_an_instance_started_holds_the_tenant_no_more() {
    let archived = Archived::new(small()).await;
    archived.engine.shutdown(PATIENCE).await.unwrap();
    let (holds, held) = tokio::sync::oneshot::channel();
    let (goes_on, waits) = std::sync::mpsc::channel();
    let builder = self::builder(&archived, &archived.archive);
    // What renews the hold runs only while something else there does.
    let frozen = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let tenant = runtime.block_on(builder.hold_stopped()).unwrap();
        holds.send(()).unwrap();
        waits.recv().unwrap();
        runtime.block_on(tenant.still_held())
    });
    held.await.unwrap();
    let mut started = None;
    eventually("the hold is over", async || {
        started = self::builder(&archived, &archived.archive).start().await.ok();
        started.is_some()
    })
    .await;
    goes_on.send(()).unwrap();
    assert_eq!(frozen.await.unwrap().unwrap_err().kind(), ErrorKind::Conflict);
}

/// As docs/archive.md says of the old archive: what has left memory since is missing there, and that is told.
#[tokio::test]
async fn who_starts_with_the_old_archive_is_told_that_it_is_behind() {
    let server = LocalPostgres::up().await.unwrap();
    let archived = super::archive_away::archived(&server).await;
    let [ada, ben] = accounts(&archived.engine, 2).await[..] else { panic!("two were made") };
    publish(&archived.engine, ada, 40).await;
    archived.left_in_memory(12).await;
    archived.engine.shutdown(PATIENCE).await.unwrap();
    let new = postgres(Duration::ZERO).await;
    let held = builder(&archived, &archived.archive).hold_stopped().await.unwrap();
    let copied = copy(&*archived.archive, &*new, held.buckets(), |_| ()).await.unwrap();
    copied.adopt().await.unwrap();
    held.release().await.unwrap();
    let grown = Archived {
        engine: builder(&archived, &new).start().await.unwrap(),
        options: archived.options.clone(),
        archive: new,
        folder: tempfile::tempdir().unwrap(),
    };
    publish(&grown.engine, ada, 40).await;
    grown.left_in_memory(12).await;
    grown.engine.shutdown(PATIENCE).await.unwrap();
    let engine = builder(&archived, &archived.archive).start().await.unwrap();
    eventually("a page that lacks what the old archive lacks", async || {
        let page = engine.as_reader(ben).read(&Query::profile(ada).limit(40)).await.unwrap();
        page.lacks_archive && page.posts.len() == 12
    })
    .await;
}
