//! Posts that are found by their words.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tideline::archive::{Archive, IndexChange, IndexKey, IndexVersion, IndexedPost};
use tideline::bucket::Bucket;
use tideline::post::{Draft, Edit, SearchWords, Visibility};
use tideline::{AccountId, Engine, ErrorCode, ErrorKind, Moderation, PostId, Query, Range, Viewer};
use tideline_archive::{PostgresArchive, PostgresSettings, SqliteArchive};
use tideline_local_cluster::LocalPostgres;

use super::archive::{Archived, publish};
use super::{PATIENCE, accounts, drained, eventually, small};

fn query(text: &str) -> Query {
    Query::search(SearchWords::new(text).unwrap())
}

/// All that a search finds, page by page.
async fn found(viewer: Viewer<'_>, text: &str, limit: usize) -> Vec<PostId> {
    let (mut ids, mut query) = (Vec::new(), query(text).limit(limit));
    loop {
        let page = viewer.read(&query).await.unwrap();
        assert!(page.ids().len() <= limit && !page.lacks_archive);
        ids.extend(page.ids());
        let Some(next) = page.next else { return ids };
        query = query.after(next);
    }
}

async fn by(engine: &Engine, reader: AccountId, text: &str) -> Vec<PostId> {
    found(*engine.as_reader(reader), text, 7).await
}

/// All posts that the index has, whoever may find them.
async fn indexed(archived: &Archived) -> BTreeSet<PostId> {
    let mut all = BTreeSet::new();
    for bucket in tideline::bucket::Buckets::default().all() {
        all.extend(
            archived.archive.walk_index(bucket, None, 1_000).await.unwrap().into_iter().map(|(id, _)| id),
        );
    }
    all
}

fn newest_first(ids: &[PostId]) -> Vec<PostId> {
    ids.iter().rev().copied().collect()
}

#[tokio::test]
async fn posts_are_found_from_publishing_to_deletion_wherever_they_lie() {
    for archived in Archived::each().await {
        live(archived).await;
    }
}

async fn live(archived: Archived) {
    let before = archived.engine.create_account(Default::default()).await.unwrap().value;
    let old = publish(&archived.engine, before, 40).await;
    archived.left_in_memory(12).await;
    let refused = archived.engine.as_nobody().read(&query("post")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Misconfigured, "{refused}");
    assert!(refused.to_string().contains("tideline archive begin --search"), "{refused}");
    assert_eq!(archived.engine.index_all().await.unwrap_err().kind(), ErrorKind::Misconfigured);

    let archived = archived.searched(small()).await;
    let engine = &archived.engine;
    let [ada, ben] = accounts(engine, 2).await[..] else { panic!("two were made") };
    let mut all = publish(engine, ada, 40).await;
    drained(engine).await;
    // What was there before isn't found until it was gone through.
    assert_eq!(by(engine, ben, "POST").await, newest_first(&all));
    assert!(engine.index_all().await.unwrap().posts >= 80);
    all.splice(0..0, old.iter().copied());
    for limit in [1, 7, 100] {
        assert_eq!(found(engine.as_nobody(), "Póst", limit).await, newest_first(&all));
    }
    archived.left_in_memory(24).await;
    assert_eq!(by(engine, ben, "post").await, newest_first(&all));
    assert_eq!(by(engine, ben, "3 post").await, [all[43], old[3]]);

    // In the archive and in memory: edited, and deleted.
    for post in [all[41], all[79]] {
        let edit = Edit { text: Some("something else".into()), ..Edit::default() };
        engine.edit(ada, post, &edit).await.unwrap();
    }
    for post in [all[42], all[78]] {
        engine.delete(ada, post).await.unwrap();
    }
    drained(engine).await;
    assert_eq!(by(engine, ben, "else").await, [all[79], all[41]]);
    let left: Vec<PostId> =
        all.iter().copied().filter(|id| ![41, 42, 78, 79].map(|n| all[n]).contains(id)).collect();
    assert_eq!(by(engine, ben, "post").await, newest_first(&left));
    let there: BTreeSet<PostId> =
        all.iter().copied().filter(|id| ![42, 78].map(|n| all[n]).contains(id)).collect();
    assert_eq!(indexed(&archived).await, there);

    engine.delete_account(ada).await.unwrap();
    drained(engine).await;
    assert_eq!(indexed(&archived).await, old.iter().copied().collect());
    // Gone through once more it is the same.
    engine.index_all().await.unwrap();
    assert_eq!(by(engine, ben, "post").await, newest_first(&old));
}

#[tokio::test]
async fn who_searches_finds_what_it_may_see_and_its_own() {
    let archived = Archived::new(small()).await.searched(small()).await;
    let engine = &archived.engine;
    let [ada, ben, cora, dan] = accounts(engine, 4).await[..] else { panic!("four were made") };
    engine.follow(ben, ada).await.unwrap();
    let mut posts = Vec::new();
    for visibility in [Visibility::Public, Visibility::Unlisted, Visibility::Followers] {
        posts.push(engine.publish(ada, &Draft::text("the tide").visibility(visibility)).await.unwrap().id);
    }
    let warned = Draft {
        content: tideline::post::Content {
            content_warning: Some("Tide!".into()),
            ..Draft::text("see above").content
        },
        ..Draft::default()
    };
    posts.push(engine.publish(ada, &warned).await.unwrap().id);
    let only = Draft::text("a tide for one").only_to([ben]);
    posts.push(engine.publish(ada, &only).await.unwrap().id);
    engine
        .publish(cora, &Draft::repost(tideline::post::PostRef { id: posts[0], author: ada }))
        .await
        .unwrap();
    drained(engine).await;
    let public = vec![posts[3], posts[0]];
    assert_eq!(by(engine, ada, "tide").await, newest_first(&posts), "one's own");
    assert_eq!(by(engine, ben, "tide").await, public, "a follower");
    assert_eq!(found(engine.as_nobody(), "tide", 5).await, public);

    engine.mute(ben, ada).await.unwrap();
    engine.block(ada, cora).await.unwrap();
    engine.moderate(posts[0], Moderation { hidden: Some(true), ..Moderation::default() }).await.unwrap();
    drained(engine).await;
    assert!(by(engine, ben, "tide").await.is_empty(), "who mutes");
    assert!(by(engine, cora, "tide").await.is_empty(), "who is blocked");
    assert_eq!(by(engine, dan, "tide").await, [posts[3]], "what is hidden");

    let up = query("tide").range(Range { min_id: Some(posts[0]), ..Range::default() });
    let refused = engine.as_reader(dan).read(&up).await.unwrap_err();
    assert!(refused.kind() == ErrorKind::Invalid && refused.to_string().contains("newest down"), "{refused}");
    let since = query("tide").range(Range { since_id: Some(posts[3]), ..Range::default() });
    assert!(engine.as_reader(ada).read(&since).await.unwrap().ids() == [posts[4]]);
}

/// H236: a page asked for more two dozen times, each as long as a search may take.
#[tokio::test]
async fn a_page_ends_with_what_a_search_has_found_in_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let archive = SqliteArchive::open(folder.path().join("posts")).await.unwrap();
    let archive: Arc<dyn Archive> = Arc::new(archive.search_timeout(Duration::ZERO));
    let archived = Archived::over(small(), folder, archive).await.searched(small()).await;
    let engine = &archived.engine;
    let [ada] = accounts(engine, 1).await[..] else { panic!("one was made") };
    let old = |n: u64| IndexChange {
        key: IndexKey { bucket: Bucket(1), post: PostId::from_u64(n << 16).unwrap() },
        seen: None,
        version: IndexVersion([1; 8]),
        post: Some(IndexedPost { author: ada, is_public: true, words: vec!["ebb".into()] }),
    };
    for first in (0..650).step_by(65) {
        let changes: Vec<IndexChange> = (first + 1..first + 65).map(old).collect();
        archived.archive.index(&changes).await.unwrap();
    }
    let posts = publish(engine, ada, 10).await;
    drained(engine).await;
    let (mut pages, mut query) = (Vec::new(), query("post").limit(40));
    loop {
        let page = engine.as_reader(ada).read(&query).await.unwrap();
        pages.push(page.ids());
        let Some(next) = page.next else { break };
        query = query.after(next);
    }
    // 300 posts of the index each.
    assert_eq!(pages, [newest_first(&posts), Vec::new(), Vec::new()]);
}

#[tokio::test]
async fn while_the_archive_is_away_posts_wait_for_the_index_and_nobody_waits_for_them() {
    let mut server = LocalPostgres::up().await.unwrap();
    let mut settings = PostgresSettings::new(&server.url()).unwrap();
    settings.page_timeout = PATIENCE;
    settings.settles_within = Duration::ZERO;
    let archive: Arc<dyn Archive> = Arc::new(PostgresArchive::connect(settings).await.unwrap());
    // Fewer places than posts that wait.
    let few = tideline::EngineSettings { tasks_max: 40, tasks_at_once: 8, ..small() };
    let archived = Archived::over(small(), tempfile::tempdir().unwrap(), archive).await.searched(few).await;
    let engine = &archived.engine;
    let [ada, ben] = accounts(engine, 2).await[..] else { panic!("two were made") };
    let first = publish(engine, ada, 3).await;
    drained(engine).await;
    server.kill().await.unwrap();

    let mut posts = first.clone();
    for n in 0..60 {
        eventually("it is published", async || {
            match engine.publish(ada, &Draft::text(format!("post {n}"))).await {
                Ok(post) => {
                    posts.push(post.id);
                    true
                }
                Err(e) if e.kind() == ErrorKind::Overloaded => false,
                Err(e) => panic!("{e}"),
            }
        })
        .await;
    }
    engine.delete(ada, first[1]).await.unwrap();
    let away = engine.as_reader(ben).read(&query("post")).await.unwrap_err();
    assert_eq!(away.code(), ErrorCode::ArchiveAway, "{away}");
    // Home timelines know of nothing.
    assert_eq!(engine.as_reader(ada).read(&Query::home().limit(10)).await.unwrap().ids().len(), 10);

    server.start().await.unwrap();
    posts.retain(|post| *post != first[1]);
    eventually("all are found", async || match engine.as_reader(ben).read(&query("post").limit(100)).await {
        Ok(page) => page.ids() == newest_first(&posts),
        Err(e) if e.code() == ErrorCode::ArchiveAway => false,
        Err(e) => panic!("{e}"),
    })
    .await;
    eventually("nothing else is in the index", async || indexed(&archived).await.len() == posts.len()).await;
}
