//! Imports into a tenant whose old posts are in an archive: it has room for all of them, and nobody else's go by that.

use std::process::Command;
use std::time::Duration;

use tideline::post::Draft;
use tideline::{
    AccountId, Engine, EngineBuilder, EngineSettings, ErrorCode, ErrorKind, FsckOptions, ImportedPost,
    Importer, NewAccount, PostId, Result,
};
use tideline_local_cluster::LocalPostgres;

use super::archive::{Archived, walk};
use super::{PATIENCE, archive_away, at_bucket_key, eventually, small};

fn builder(archived: &Archived, settings: EngineSettings) -> EngineBuilder {
    Engine::builder().store(archived.options.clone()).settings(settings).archive(archived.archive.clone())
}

/// Calls until it isn't refused for this reason.
async fn once_unless<T>(refusal: ErrorCode, mut call: impl AsyncFnMut() -> Result<T>) -> T {
    loop {
        match call().await {
            Ok(done) => return done,
            Err(e) => assert_eq!(e.code(), refusal, "{e}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Goes on once who was there before is gone: nobody has ended it.
async fn once_alone<T>(call: impl AsyncFn() -> Result<T>) -> T {
    once_unless(ErrorCode::Conflict, call).await
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

fn psql(server: &LocalPostgres, text: &str) -> String {
    let mut command = Command::new(server.client("psql"));
    let output = command.args(["-d", &server.url(), "-Atqc", text]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Has whoever changes what the archive has do this first.
fn before_changes(server: &LocalPostgres, does: &str) {
    let function = format!(
        "CREATE FUNCTION tideline.first() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {does}; RETURN NULL; END $$"
    );
    psql(server, &function);
    let trigger = "CREATE TRIGGER first BEFORE INSERT ON tideline.post EXECUTE FUNCTION tideline.first()";
    psql(server, trigger);
}

fn as_before(server: &LocalPostgres) {
    psql(server, "DROP FUNCTION tideline.first() CASCADE");
}

/// H254: the ids of what was stored are told, though moving it has failed, and it moves later.
#[tokio::test]
async fn an_import_whose_archive_dies_while_it_moves_posts_tells_their_ids_and_goes_on() {
    let mut server = LocalPostgres::up().await.unwrap();
    let archived = archive_away::archived(&server).await;
    archived.engine.shutdown(PATIENCE).await.unwrap();
    let author = AccountId::new(7).unwrap();
    let mut importer = importer(&archived, small(), author).await.moved_at_once(100);
    let posts = posts(author, 150);
    before_changes(&server, "PERFORM pg_sleep(3600)");
    let killed = async {
        let moving = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
        eventually("posts are moving", async || psql(&server, moving).trim() != "0").await;
        server.kill().await.unwrap();
    };
    let (stored, ()) = tokio::join!(importer.posts(&posts[..100]), killed);
    let mut ids = stored.unwrap();
    assert_eq!(archived.in_memory().await.len(), 100);
    server.start().await.unwrap();
    as_before(&server);
    eventually("the archive answers again", async || archived.archive.size().await.is_ok()).await;
    ids.extend(importer.posts(&posts[100..]).await.unwrap());
    importer.finish().await.unwrap();
    assert_eq!(archived.in_memory().await.len(), 12);
    shows(&builder(&archived, small()).start().await.unwrap(), author, &ids).await;
}

/// H254: it ends where memory would, and before anything of a call is stored.
#[tokio::test]
async fn an_import_whose_posts_cannot_move_is_refused_more_and_has_then_stored_nothing() {
    let server = LocalPostgres::up().await.unwrap();
    let archived = archive_away::archived(&server).await;
    archived.engine.shutdown(PATIENCE).await.unwrap();
    let author = AccountId::new(7).unwrap();
    let mut importer = importer(&archived, small(), author).await.moved_at_once(100);
    let posts = posts(author, 250);
    let too_many = importer.posts(&posts[..101]).await.unwrap_err();
    assert_eq!(too_many.kind(), ErrorKind::Invalid, "{too_many}");
    before_changes(&server, "RAISE EXCEPTION USING ERRCODE = '53100', MESSAGE = 'No space left on device'");
    let mut ids = importer.posts(&posts[..100]).await.unwrap();
    ids.extend(importer.posts(&posts[100..200]).await.unwrap());
    for _ in 0..2 {
        let refused = importer.posts(&posts[200..]).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::ArchiveAway, "{refused}");
        assert!(refused.to_string().contains("nothing of this call was stored"), "{refused}");
    }
    assert_eq!(archived.in_memory().await.len(), 200);
    importer.finish().await.unwrap_err();
    as_before(&server);
    ids.extend(once_unless(ErrorCode::ArchiveAway, async || importer.posts(&posts[200..]).await).await);
    importer.finish().await.unwrap();
    assert_eq!(archived.in_memory().await.len(), 12);
    shows(&builder(&archived, small()).start().await.unwrap(), author, &ids).await;
}
