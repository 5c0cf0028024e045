//! Imports into a tenant whose old posts are in an archive: it has room for all of them, and nobody else's go by that.

use std::time::Duration;

use tideline::post::Draft;
use tideline::{
    AccountId, Engine, EngineBuilder, EngineSettings, ErrorKind, FsckOptions, ImportedPost, Importer,
    NewAccount, PostId, Result,
};
use tideline_local_cluster::LocalPostgres;

use super::archive::{Archived, walk};
use super::{PATIENCE, archive_away, at_bucket_key, small};

fn builder(archived: &Archived, settings: EngineSettings) -> EngineBuilder {
    Engine::builder().store(archived.options.clone()).settings(settings).archive(archived.archive.clone())
}

/// Goes on once who was there before is gone: nobody has ended it.
async fn once_alone<T>(call: impl AsyncFn() -> Result<T>) -> T {
    loop {
        match call().await {
            Ok(done) => return done,
            Err(e) => assert_eq!(e.kind(), ErrorKind::Conflict, "{e}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// An import that an account begins.
async fn importer(archived: &Archived, settings: EngineSettings, author: AccountId) -> Importer {
    let mut importer = once_alone(async || builder(archived, settings.clone()).import().await).await;
    let account = NewAccount { id: Some(author), ..NewAccount::default() };
    importer.accounts(&[account]).await.unwrap();
    importer
}

/// Posts of which four each have one time.
fn posts(author: AccountId, count: u64) -> Vec<ImportedPost> {
    let draft = |n| Draft::text(format!("post {n} of {author}"));
    (0..count).map(|n| ImportedPost { author, created_ms: 10_000 + n / 4, draft: draft(n) }).collect()
}

async fn import(archived: &Archived, author: AccountId, count: u64) -> Vec<PostId> {
    let mut importer = importer(archived, small(), author).await;
    let ids = importer.posts(&posts(author, count)).await.unwrap();
    importer.finish().await.unwrap();
    ids
}

/// Two accounts of one bucket: posts of one time get ids of one row.
fn neighbours(archived: &Archived) -> [AccountId; 2] {
    let buckets = archived.engine.store().keys().buckets();
    let bucket = buckets.of_account(1);
    let mut of_bucket = (1..)
        .filter(|id| buckets.of_account(*id) == bucket)
        .map(|id| AccountId::new(id).expect("it is no reserved one"));
    std::array::from_fn(|_| of_bucket.next().expect("there are more accounts than buckets"))
}

/// A profile with the texts that were imported, the newest first.
async fn shows(engine: &Engine, author: AccountId, ids: &[PostId]) {
    let newest_first: Vec<PostId> = ids.iter().rev().copied().collect();
    assert_eq!(walk(engine, author, author, 50).await, newest_first, "posts of {author}");
    for id in [ids[0], ids[ids.len() - 1]] {
        let post = engine.stored().post(id).await.unwrap().unwrap();
        assert_eq!(post.header().author, author);
    }
}

/// H220: what is old is in the archive by then, and ids that are there are given to nobody else.
#[tokio::test]
async fn an_import_moves_what_is_old_and_gives_no_id_twice() {
    for archived in Archived::each().await {
        archived.engine.shutdown(PATIENCE).await.unwrap();
        let [ada, ben] = neighbours(&archived);
        let of_ada = import(&archived, ada, 100).await;
        assert_eq!(archived.in_memory().await.len(), 12);
        let of_ben = import(&archived, ben, 60).await;
        assert_eq!(archived.in_memory().await.len(), 12 + 12);
        let engine = builder(&archived, small()).start().await.unwrap();
        shows(&engine, ada, &of_ada).await;
        shows(&engine, ben, &of_ben).await;
    }
}

/// H222.
#[tokio::test]
async fn an_import_that_cannot_ask_the_archive_stores_nothing_and_may_be_begun_anew() {
    let mut server = LocalPostgres::up().await.unwrap();
    let archived = archive_away::archived(&server).await;
    archived.engine.shutdown(PATIENCE).await.unwrap();
    let [ada, ben] = neighbours(&archived);
    let of_ada = import(&archived, ada, 100).await;
    let mut failing = importer(&archived, small(), ben).await;
    server.kill().await.unwrap();
    let failure = failing.posts(&posts(ben, 60)).await.unwrap_err();
    assert_eq!(failure.kind(), ErrorKind::Unavailable, "{failure}");
    // As if its process had been killed.
    drop(failing);
    server.start().await.unwrap();

    let start = async || once_alone(async || builder(&archived, small()).start().await).await;
    let engine = start().await;
    shows(&engine, ada, &of_ada).await;
    let options = FsckOptions { repair: true, pause: Duration::from_millis(50), ..FsckOptions::default() };
    let report = engine.fsck(&options, &|_| ()).await.unwrap();
    assert!(report.findings.is_empty() && report.is_clean(), "{report:#?}");
    engine.shutdown(PATIENCE).await.unwrap();

    let of_ben = import(&archived, ben, 60).await;
    let engine = start().await;
    shows(&engine, ada, &of_ada).await;
    shows(&engine, ben, &of_ben).await;
}

/// H223.
#[tokio::test]
async fn all_that_is_old_of_an_author_with_many_posts_has_left_when_an_import_ends() {
    let settings = || EngineSettings { outbox_posts: 100, ..small() };
    let settles = Archived::that_settles(settings(), Duration::from_millis(50)).await;
    for archived in [Archived::new(settings()).await, settles] {
        archived.engine.shutdown(PATIENCE).await.unwrap();
        let author = AccountId::new(7).unwrap();
        let mut importer = importer(&archived, settings(), author).await;
        // As an import leaves it that was killed while it moved posts of that author.
        let later = (archived.engine.store().router().now_ms() + 3_600_000).to_string();
        let name = String::from_utf8(author.to_bytes().to_vec()).unwrap();
        at_bucket_key(&archived.engine, 'F', author, "ZADD", &[&later, &name]).await;
        let mut ids = importer.posts(&posts(author, 2_000)).await.unwrap();
        importer.finish().await.unwrap();
        assert_eq!(archived.in_memory().await.len(), 12);
        let engine = builder(&archived, settings()).start().await.unwrap();
        ids.push(engine.publish(author, &Draft::text("new")).await.unwrap().id);
        shows(&engine, author, &ids).await;
    }
}
