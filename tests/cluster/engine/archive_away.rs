//! Pages while the archive is away: what is in memory shows, and a page ends above what only the archive could tell.

use std::sync::Arc;
use std::time::Duration;

use tideline::archive::Archive;
use tideline::post::{Draft, PostRef, Visibility};
use tideline::{AccountId, Engine, ErrorCode, ErrorKind, ListQuery, Moderation, PostId, Query};
use tideline::{Page, Range};
use tideline_archive::{PostgresArchive, PostgresSettings};
use tideline_local_cluster::LocalPostgres;

use super::archive::{Archived, publish};
use super::{PATIENCE, accounts, drained, eventually, never_was, small};

/// A tenant whose archive is a server that the test may kill.
pub(crate) async fn archived(server: &LocalPostgres) -> Archived {
    let mut settings = PostgresSettings::new(&server.url()).unwrap();
    settings.page_timeout = PATIENCE;
    settings.settles_within = Duration::ZERO;
    let archive: Arc<dyn Archive> = Arc::new(PostgresArchive::connect(settings).await.unwrap());
    Archived::over(small(), tempfile::tempdir().unwrap(), archive).await
}

async fn read(engine: &Engine, reader: AccountId, query: Query) -> Page {
    engine.as_reader(reader).read(&query).await.unwrap()
}

async fn is_away(engine: &Engine, reader: AccountId, query: Query) {
    let failure = engine.as_reader(reader).read(&query).await.unwrap_err();
    assert_eq!(
        (failure.kind(), failure.code()),
        (ErrorKind::Unavailable, ErrorCode::ArchiveAway),
        "{failure}"
    );
}

fn newest(posts: &[PostId], most: usize) -> Vec<PostId> {
    posts.iter().rev().take(most).copied().collect()
}

#[tokio::test]
async fn a_page_ends_above_what_only_the_archive_could_tell_and_goes_on_from_there() {
    let mut server = LocalPostgres::up().await.unwrap();
    let tenant = archived(&server).await;
    let engine = &tenant.engine;
    let [ada, ben, cora, dan] = accounts(engine, 4).await[..] else { panic!("four were made") };
    engine.follow(ben, ada).await.unwrap();
    let dans = engine.publish(dan, &Draft::text("passed on")).await.unwrap().id;
    let mut coras = publish(engine, cora, 1).await;
    let passed_on = PostRef { id: dans, author: dan };
    coras.push(engine.publish(cora, &Draft::repost(passed_on)).await.unwrap().id);
    coras.extend(publish(engine, cora, 1).await);
    let answered = engine.publish(cora, &Draft::text("answered")).await.unwrap().id;
    let to = PostRef { id: answered, author: cora };
    let answer = Draft::text("an answer").reply_to(to);
    engine.publish(dan, &answer).await.unwrap();
    coras.push(answered);
    publish(engine, dan, 40).await;
    let posts = publish(engine, ada, 40).await;
    tenant.left_in_memory(12 + 12 + coras.len()).await;
    let says_so = async || {
        let findings = engine.health().await.unwrap().findings;
        findings.iter().any(|finding| finding.text.contains("what lies in the archive can't be read"))
    };
    assert!(!says_so().await);
    server.kill().await.unwrap();
    assert!(says_so().await);

    // A profile ends with what is in memory.
    let page = read(engine, ben, Query::profile(ada).limit(20)).await;
    assert_eq!((page.ids(), page.lacks_archive), (newest(&posts, 12), true));
    let next = page.next.unwrap();
    is_away(engine, ben, Query::profile(ada).limit(20).after(next)).await;
    // A full page lacks nothing.
    let full = read(engine, ben, Query::profile(ada).limit(12)).await;
    assert_eq!((full.ids(), full.lacks_archive), (newest(&posts, 12), false));
    // Up from below the border nothing stands above; from there all does.
    let up = |from| Query::profile(ada).limit(20).range(Range { min_id: Some(from), ..Range::default() });
    is_away(engine, ben, up(posts[10])).await;
    let above = read(engine, ben, up(posts[27])).await;
    assert_eq!((above.ids(), above.lacks_archive), (newest(&posts, 12), false));

    // A home holds what has left memory: each of these posts would have to be asked for.
    let home = read(engine, ben, Query::home().limit(20).hydrated()).await;
    assert_eq!((home.ids(), home.lacks_archive), (newest(&posts, 12), true));
    is_away(engine, ben, Query::home().limit(20).after(home.next.unwrap())).await;

    // A repost is there, and what it passes on is not; a post is there, and its answer is not.
    let profile = Query::profile(cora).limit(20).with_replies(5);
    let cut = read(engine, ben, profile).await;
    assert_eq!((cut.ids(), cut.lacks_archive), (newest(&coras, 2), true));
    assert!(cut.posts.iter().all(|post| post.replies.is_empty()));
    let only_answered = read(engine, ben, profile.limit(1)).await;
    assert_eq!((only_answered.ids(), only_answered.lacks_archive), (vec![answered], true));
    is_away(engine, ben, profile.after(cut.next.unwrap())).await;
    // Up it ends below the repost.
    let up = profile.range(Range { min_id: Some(PostId::from_u64(1).unwrap()), ..Range::default() });
    let below = read(engine, ben, up).await;
    assert_eq!((below.ids(), below.lacks_archive), (vec![coras[0]], true));

    // Nor is a post there deleted, and the reason is told by its name.
    let failure = engine.delete(ada, posts[0]).await.unwrap_err();
    let told = (failure.kind(), failure.code());
    assert_eq!(told, (ErrorKind::Unavailable, ErrorCode::ArchiveAway), "{failure}");

    // What becomes of posts that never left memory asks nobody else.
    let taken_back = engine.publish(ben, &answer).await.unwrap().id;
    engine.delete(ben, taken_back).await.unwrap();
    drained(engine).await;

    server.start().await.unwrap();
    eventually("the archive answers again", async || {
        engine.as_reader(ben).read(&Query::profile(ada).limit(20).after(next)).await.is_ok()
    })
    .await;
    let rest = read(engine, ben, Query::profile(ada).limit(20).after(next)).await;
    assert_eq!((rest.ids(), rest.lacks_archive), (newest(&posts[..28], 20), false));
    let rest = read(engine, ben, Query::home().limit(20).after(home.next.unwrap())).await;
    assert_eq!((rest.ids(), rest.lacks_archive), (newest(&posts[..28], 20), false));
    let rest = read(engine, ben, profile.after(cut.next.unwrap())).await;
    assert_eq!((rest.ids(), rest.lacks_archive), (newest(&coras[..2], 2), false));
    let above = profile.range(Range { min_id: below.newer, ..Range::default() });
    assert_eq!(read(engine, ben, above).await.ids(), newest(&coras[1..], 9));
    let answers = read(engine, ben, profile.limit(1)).await;
    assert_eq!((answers.posts[0].replies.len(), answers.lacks_archive), (1, false));
}

/// H296: of what is there and hidden, no more is told than of what nobody has in memory.
#[tokio::test]
async fn what_is_hidden_is_told_as_what_is_not_there() {
    let mut server = LocalPostgres::up().await.unwrap();
    let tenant = archived(&server).await;
    let engine = &tenant.engine;
    let [ada, cora] = accounts(engine, 2).await[..] else { panic!("two were made") };
    let shown = publish(engine, ada, 1).await[0];
    server.kill().await.unwrap();
    let hidden = Draft::text("aside").visibility(Visibility::Followers);
    let hidden = engine.publish(ada, &hidden).await.unwrap().id;
    let alike = async |post: PostId| {
        let reader = engine.as_reader(cora);
        let answer = Draft::text("so").reply_to(PostRef { id: post, author: ada });
        let refused = [
            reader.post(post).await.map(drop),
            reader.posts(&[post]).await.map(drop),
            reader.likers(post, &ListQuery::default()).await.map(drop),
            reader.conversation(post).await.map(drop),
            engine.like(cora, post).await.map(drop),
            engine.publish(cora, &answer).await.map(drop),
        ];
        refused.map(|outcome| outcome.unwrap_err().code())
    };
    assert_eq!(alike(hidden).await, [ErrorCode::ArchiveAway; 6]);
    assert_eq!(alike(never_was(hidden)).await, [ErrorCode::ArchiveAway; 6]);
    let some = engine.as_reader(cora).posts(&[hidden, never_was(hidden), shown]).await.unwrap();
    let told: Vec<PostId> = some.posts.iter().map(|post| post.id).collect();
    assert_eq!((told, some.untold), (vec![shown], vec![hidden, never_was(hidden)]));
    // Whoever wrote one that nobody sees knows of it.
    let held = Moderation { hidden: Some(true), ..Moderation::default() };
    engine.moderate(shown, held).await.unwrap();
    assert_eq!(engine.as_reader(cora).post(shown).await.unwrap_err().code(), ErrorCode::ArchiveAway);
    engine.as_reader(ada).post(shown).await.unwrap();
}
