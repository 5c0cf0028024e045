//! What a search costs at most, and whom it keeps from what: H236, H237.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tideline_archive::{Archive, PostgresArchive, PostgresSettings};
use tideline_model::archive::{IndexChange, SearchAsk};
use tideline_model::error::ErrorKind;

use crate::places::{change as move_in, each_searching_for, eventually, owner, server, settings};
use crate::postgres::raw;
use crate::search::{MINUTE, change, found};

/// What a call looks through at least.
const LEAST: u64 = 300;

/// Posts a minute apart: of each word half, of account 9, whom nobody else finds, each seventh.
async fn fill(archive: &dyn Archive, posts: u64) {
    let words = |n: u64| match n {
        0 => "even old",
        n if n.is_multiple_of(2) => "even",
        _ => "odd",
    };
    let of = |n: u64| if n.is_multiple_of(7) { 9 } else { 1 };
    let all: Vec<IndexChange> =
        (0..posts).map(|n| change(of(n), (n + 1) * MINUTE, (0, 1), words(n))).collect();
    for changes in all.chunks(64) {
        assert!(archive.index(changes).await.expect("it is indexed").iter().all(|is_made| *is_made));
    }
}

fn ask(words: &str) -> SearchAsk {
    let words = words.split_whitespace().map(str::to_owned).collect();
    SearchAsk { words, reader: None, below: u64::MAX, most: 28 }
}

/// Two common words that never meet had a search go through all time in one statement, which ended by its timeout each
/// time, with no page and no cursor.
#[tokio::test(flavor = "multi_thread")]
async fn a_search_without_time_looks_through_some_posts_a_call_and_comes_to_an_end() {
    for (kind, place) in each_searching_for(Duration::ZERO).await {
        let archive = &*place.archive;
        fill(archive, 1_000).await;
        for (words, finds) in [("even odd", 0), ("missing", 0), ("old even", 0), ("old", 0)] {
            let (mut ask, mut ends, mut many) = (ask(words), Vec::new(), 0);
            while ask.below > 0 {
                let page = archive.search(&ask).await.unwrap();
                ends.push(page.from);
                (ask.below, many) = (page.from, many + page.posts.len());
            }
            let all = [1, 2, 3].map(|calls| (1_000 - calls * LEAST + 1) * MINUTE);
            assert_eq!((ends, many), ([&all[..], &[0]].concat(), finds), "{kind:?} {words}");
        }
        // Others' posts aren't found, one's own are.
        assert_eq!(found(archive, "old", Some(9), 28).await, [MINUTE], "{kind:?}");
    }
}

/// However little time there is: windows that are given up lose nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_search_finds_the_same_however_little_time_it_has() {
    for ms in [0, 3, 12, 60] {
        for (kind, place) in each_searching_for(Duration::from_millis(ms)).await {
            let archive = &*place.archive;
            fill(archive, 1_500).await;
            let evens: Vec<u64> =
                (0..1_500).rev().filter(|n| n % 2 == 0 && n % 7 > 0).map(|n| (n + 1) * MINUTE).collect();
            for most in [5, 28, 1_000] {
                assert_eq!(found(archive, "even", None, most).await, evens, "{kind:?}, {ms} ms");
                assert_eq!(found(archive, "even odd", None, most).await, [0; 0], "{kind:?}, {ms} ms");
                assert_eq!(found(archive, "even old", Some(9), most).await, [MINUTE], "{kind:?}, {ms} ms");
            }
        }
    }
}

/// An archive in PostgreSQL with 500 posts, of which to look at one takes an hour: the one of this number.
async fn with_a_dear_post(settings: &PostgresSettings, number: u64) -> Arc<PostgresArchive> {
    let archive = PostgresArchive::connect(settings.clone()).await.expect("an archive");
    archive.change(&[move_in(1, 1, &[10])]).await.expect("an archive");
    fill(&archive, 500).await;
    let dear = format!(
        "SET search_path = \"{}\"; ALTER TABLE search RENAME TO search_rows;
         CREATE FUNCTION dear(tsvector) RETURNS tsvector STABLE LANGUAGE plpgsql AS
            'BEGIN PERFORM pg_sleep(3600); RETURN $1; END';
         CREATE VIEW search AS SELECT bucket, id, version, author, is_public,
            CASE id WHEN {} THEN dear(words) ELSE words END AS words FROM search_rows",
        settings.schema,
        (number + 1) * MINUTE
    );
    raw(&server().await.url()).await.batch_execute(&dear).await.expect("an archive");
    // Connections remember what `search` was.
    drop(archive);
    Arc::new(PostgresArchive::connect(settings.clone()).await.expect("an archive"))
}

/// H236.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_does_not_come_to_in_time_is_left_to_the_next_call() {
    let mut settings = settings(&server().await.url());
    settings.search_timeout = Duration::from_millis(300);
    let archive = with_a_dear_post(&settings, 100).await;
    let page = archive.search(&ask("even odd")).await.unwrap();
    assert!(page.posts.is_empty() && page.from > 101 * MINUTE && page.from <= 201 * MINUTE, "{page:?}");
    // The connection is as good as it was.
    for _ in 0..10 {
        assert_eq!(archive.search(&ask("even")).await.unwrap().posts.len(), 28);
        assert!(archive.owners(&[owner(1)]).await.unwrap()[0].is_some());
    }
}

/// H237.
#[tokio::test(flavor = "multi_thread")]
async fn searches_leave_readers_to_others_and_fail_for_themselves() {
    let mut settings = settings(&server().await.url());
    settings.readers = 4;
    // No search comes to its deadline before all others were refused.
    settings.page_timeout = Duration::from_secs(600);
    let archive = with_a_dear_post(&settings, 499).await;
    let searching = |archive: &Arc<PostgresArchive>| {
        let archive = Arc::clone(archive);
        tokio::spawn(async move { archive.search(&ask("even")).await.unwrap_err() })
    };
    let reads =
        async |archive: &PostgresArchive| archive.owners(&[owner(1)]).await.unwrap()[0].unwrap().token.number;
    // One has its place until its deadline; no other finds one.
    let watcher = raw(&server().await.url()).await;
    let holder = searching(&archive);
    let sleeps = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'
            AND pid IN (SELECT pid FROM pg_locks WHERE relation = '\"{}\".search_rows'::regclass)",
        settings.schema
    );
    eventually("a search that is under way", async || {
        watcher.query_one(&sleeps, &[]).await.unwrap().get::<_, i64>(0) == 1
    })
    .await;
    let others = join_all((0..8).map(|_| searching(&archive))).await;
    for refused in others.into_iter().map(Result::unwrap) {
        assert_eq!(refused.kind(), ErrorKind::Overloaded, "{refused}");
        assert!(refused.to_string().contains("too many searches at once"), "{refused}");
    }
    assert_eq!(reads(&archive).await, 1);
    holder.abort();
    // Failures in a row, until no search is made; pages are, by the same server.
    settings.page_timeout = Duration::from_secs(3);
    let archive = Arc::new(PostgresArchive::connect(settings).await.expect("an archive"));
    let mut failure = searching(&archive).await.unwrap();
    while !failure.to_string().contains("left alone a while") {
        assert_eq!(failure.kind(), ErrorKind::Unavailable, "{failure}");
        failure = searching(&archive).await.unwrap();
    }
    assert_eq!(reads(&archive).await, 1);
}
