//! An archive that answers with errors: rights that are taken away, a password that is another one, data that can't be
//! read. Pages end above it as where it doesn't answer.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use metrics_util::debugging::DebuggingRecorder;
use tideline::archive::Archive;
use tideline::{AccountId, Engine, ErrorCode, ErrorKind, ListQuery, PostId, Query};
use tideline_archive::{PostgresArchive, PostgresSettings};
use tideline_local_cluster::LocalPostgres;

use super::archive::{Archived, publish};
use super::archive_rounds::make_due;
use super::{PATIENCE, accounts, drained, eventually, small};
use crate::router::counted;

/// Has a server do something as who may do everything.
pub(super) fn sql(server: &LocalPostgres, statements: &str) {
    let psql = Command::new(server.client("psql"))
        .arg(server.url())
        .args(["-v", "ON_ERROR_STOP=1", "-qc", statements])
        .output()
        .unwrap();
    assert!(psql.status.success(), "{}", String::from_utf8_lossy(&psql.stderr));
}

/// How the role connects that owns the tables, and is nobody else.
pub(super) fn settings(server: &LocalPostgres) -> PostgresSettings {
    let url = server.url();
    let (_, host) = url.rsplit_once('@').unwrap();
    let mut settings = PostgresSettings::new(&format!("postgres://service:first@{host}")).unwrap();
    settings.page_timeout = PATIENCE;
    settings.settles_within = Duration::ZERO;
    settings
}

async fn archived(server: &LocalPostgres) -> Archived {
    sql(
        server,
        "CREATE ROLE service LOGIN PASSWORD 'first'; GRANT CREATE ON DATABASE postgres TO service;
         CREATE FUNCTION public.fails() RETURNS boolean LANGUAGE plpgsql AS
         $$ BEGIN RAISE EXCEPTION 'invalid page in block 0' USING ERRCODE = 'XX001'; END $$;
         CREATE FUNCTION public.fails_to_write() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN RAISE EXCEPTION 'could not read block 7' USING ERRCODE = TG_ARGV[0]; END $$",
    );
    let archive: Arc<dyn Archive> = Arc::new(PostgresArchive::connect(settings(server)).await.unwrap());
    Archived::over(small(), tempfile::tempdir().unwrap(), archive).await
}

/// A page of a profile that ends above the archive, and then nothing.
async fn ends_above(engine: &Engine, (reader, author): (AccountId, AccountId), hot: &[PostId], why: &str) {
    let reader = engine.as_reader(reader);
    let page = reader.read(&Query::profile(author).limit(20)).await.unwrap();
    assert_eq!((page.ids(), page.lacks_archive), (hot.to_vec(), true), "{why}");
    let full =
        reader.read(&Query::profile(author).limit(hot.len()).with_ties().with_likers(3)).await.unwrap();
    assert_eq!((full.ids(), full.lacks_archive), (hot.to_vec(), false), "{why}");
    let next = Query::profile(author).limit(20).after(page.next.unwrap());
    let home = reader.read(&Query::home().limit(20).hydrated()).await.unwrap();
    assert_eq!((home.ids(), home.lacks_archive), (hot.to_vec(), true), "{why}");
    let likes = reader.likes(&ListQuery::default()).await.unwrap();
    assert_eq!((likes.posts[0].id, likes.posts.len(), likes.lacks_archive), (hot[0], 1, true), "{why}");
    // A connection that was cut says so first.
    eventually(why, async || {
        let failure = reader.read(&next).await.unwrap_err();
        assert_eq!((failure.kind(), failure.code()), (ErrorKind::Unavailable, ErrorCode::ArchiveAway));
        failure.to_string().contains(why)
    })
    .await;
}

/// H251.
#[tokio::test]
async fn pages_end_above_an_archive_that_refuses_what_it_is_asked() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let server = LocalPostgres::up().await.unwrap();
    let tenant = archived(&server).await;
    let engine = &tenant.engine;
    let [ada, ben] = accounts(engine, 2).await[..] else { panic!("two were made") };
    engine.follow(ben, ada).await.unwrap();
    let mut posts = publish(engine, ada, 40).await;
    posts.reverse();
    for post in [posts[39], posts[0]] {
        engine.like(ben, post).await.unwrap();
    }
    tenant.left_in_memory(12).await;
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'service'";
    for (breaks, mends, why) in [
        (
            "REVOKE ALL ON ALL TABLES IN SCHEMA tideline FROM service".to_owned(),
            "GRANT ALL ON ALL TABLES IN SCHEMA tideline TO service".to_owned(),
            "permission denied",
        ),
        (
            format!("ALTER ROLE service PASSWORD 'second'; {end}"),
            "ALTER ROLE service PASSWORD 'first'".to_owned(),
            "password authentication failed",
        ),
        (
            "ALTER TABLE tideline.post ENABLE ROW LEVEL SECURITY; ALTER TABLE tideline.owner ENABLE ROW LEVEL SECURITY;
             ALTER TABLE tideline.post FORCE ROW LEVEL SECURITY; ALTER TABLE tideline.owner FORCE ROW LEVEL SECURITY;
             CREATE POLICY broken ON tideline.post USING (public.fails());
             CREATE POLICY broken ON tideline.owner USING (public.fails())"
                .to_owned(),
            "ALTER TABLE tideline.post DISABLE ROW LEVEL SECURITY;
             ALTER TABLE tideline.owner DISABLE ROW LEVEL SECURITY"
                .to_owned(),
            "invalid page",
        ),
    ] {
        sql(&server, &breaks);
        ends_above(engine, (ben, ada), &posts[..12], why).await;
        let is_of_data = why == "invalid page";
        let code = if is_of_data { "internal" } else { "misconfigured" };
        let failures = counted(snapshotter.snapshot(), "tideline_archive_failures_total", [("code", code)]);
        assert!(failures > 0, "{why}");
        if !is_of_data {
            // Who starts hears what is wrong.
            let starts = async {
                let archive = Arc::new(PostgresArchive::connect(settings(&server)).await?);
                let builder = Engine::builder().store(tenant.options.clone()).settings(small());
                builder.archive(archive).start().await.map(drop)
            };
            let refused = starts.await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Misconfigured, "{refused}");
            assert!(refused.to_string().contains(why), "{refused}");
        }
        sql(&server, &mends);
        eventually("the archive answers again", async || engine.as_reader(ben).post(posts[39]).await.is_ok())
            .await;
        let whole = engine.as_reader(ben).read(&Query::profile(ada).limit(100)).await.unwrap();
        assert_eq!((whole.ids(), whole.lacks_archive), (posts.clone(), false));
    }
}

/// H251.
#[tokio::test]
async fn a_round_ends_at_an_archive_that_takes_nothing_from_anybody() {
    let server = LocalPostgres::up().await.unwrap();
    let tenant = archived(&server).await;
    let engine = &tenant.engine;
    let still_there = async |posts: &[PostId]| {
        let in_memory = tenant.in_memory().await;
        posts.iter().filter(|post| in_memory.contains(&post.get())).count()
    };
    let (mut all, mut authors) = (Vec::new(), Vec::new());
    for code in ["58030", "42501", "XX001"] {
        sql(
            &server,
            &format!(
                "CREATE TRIGGER broken BEFORE INSERT OR UPDATE ON tideline.owner
                 EXECUTE FUNCTION public.fails_to_write('{code}')"
            ),
        );
        // The engine's own round may be at these accounts already: then others are needed.
        let (failure, posts) = loop {
            let mut posts = Vec::new();
            // Two of them at least are of one server, of three.
            for author in accounts(engine, 4).await {
                posts.extend(publish(engine, author, 70).await);
                authors.push(author);
            }
            all.extend_from_slice(&posts);
            drained(engine).await;
            if let Err(failure) = engine.archive_due().await {
                break (failure, posts);
            }
        };
        assert_eq!(failure.code(), ErrorCode::ArchiveAway, "{code}: {failure}");
        assert!(failure.to_string().contains("could not read block 7"), "{failure}");
        assert_eq!(still_there(&posts).await, posts.len());
        sql(&server, "DROP TRIGGER broken ON tideline.owner");
        // Those that it was at are begun anew after half a minute: the others don't wait for that.
        let next = accounts(engine, 1).await[0];
        let posts = publish(engine, next, 70).await;
        drained(engine).await;
        eventually("posts leave", async || {
            // A server that has failed several times is left alone a while.
            let _ = engine.archive_due().await;
            still_there(&posts).await == 12
        })
        .await;
    }
    eventually("all posts leave", async || {
        // Those that a round was at would be due after half a minute.
        for author in &authors {
            make_due(engine, *author).await;
        }
        let _ = engine.archive_due().await;
        still_there(&all).await == all.len() / 70 * 12
    })
    .await;
}
