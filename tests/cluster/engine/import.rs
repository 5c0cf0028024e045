//! Bulk loading.

use tideline::post::{Draft, PostRef};
use tideline::{AccountId, Engine, ErrorKind, ImportedEdge, ImportedPost, NewAccount, Query};

use super::{drained, engine, small, tenant, walk_home};
use crate::harness::{account, eventually};

const PEOPLE: u64 = 120;

fn people() -> Vec<NewAccount> {
    (1..=PEOPLE).map(|id| NewAccount { id: Some(account(id)), ..NewAccount::default() }).collect()
}

fn edge(reader: u64, author: u64, since_ms: u64) -> ImportedEdge {
    ImportedEdge { reader: account(reader), author: account(author), since_ms }
}

#[tokio::test]
async fn what_was_imported_is_there_as_if_it_had_been_said() {
    let options = tenant(40);
    let mut importer = Engine::builder().store(options.clone()).settings(small()).import().await.unwrap();
    assert_eq!(importer.accounts(&people()).await.unwrap(), PEOPLE);
    assert_eq!(importer.accounts(&people()).await.unwrap(), 0);
    // All follow the first one, whose followers are spread by that; the second follows all.
    let mut edges: Vec<ImportedEdge> = (2..=PEOPLE).map(|reader| edge(reader, 1, 1_000 + reader)).collect();
    edges.extend((3..=PEOPLE).map(|author| edge(2, author, 2_000 + author)));
    importer.edges(&edges).await.unwrap();
    let post = |author: u64, n: u64| ImportedPost {
        author: account(author),
        created_ms: 10_000 + n,
        draft: Draft::text(format!("post {n} of {author}")),
    };
    let posts: Vec<ImportedPost> = (0..300).map(|n| post(1 + n % 3, n)).collect();
    let mut ids = importer.posts(&posts).await.unwrap();
    let reply = Draft::text("so it is").reply_to(PostRef { id: ids[0], author: account(1) });
    let reply = ImportedPost { draft: reply, ..post(1, 400) };
    ids.extend(importer.posts(&[reply]).await.unwrap());
    importer.finish().await.unwrap();

    let engine = Engine::builder().store(options).settings(small()).start().await.unwrap();
    let of = |authors: &[u64]| {
        let mut of: Vec<_> =
            (0..301).filter(|n| authors.contains(&if *n == 300 { 1 } else { 1 + n % 3 })).collect();
        of.reverse();
        of.into_iter().map(|n| ids[usize::try_from(n).unwrap()]).collect::<Vec<_>>()
    };
    assert_eq!(walk_home(&engine, account(50), 20).await, of(&[1]));
    assert_eq!(walk_home(&engine, account(2), 20).await, of(&[1, 2, 3]));
    assert_eq!(engine.stored().counts(account(1)).await.unwrap(), (0, PEOPLE - 1));
    assert_eq!(engine.stored().counts(account(2)).await.unwrap(), (PEOPLE - 1, 0));
    assert_eq!(engine.stored().account(account(2)).await.unwrap().following, PEOPLE - 1);
    assert_eq!(engine.stored().account(account(2)).await.unwrap().posts, 100);
    // And it goes on from there.
    engine.unfollow(account(50), account(1)).await.unwrap();
    let published = engine.publish(account(1), &Draft::text("now")).await.unwrap();
    drained(&engine).await;
    assert_eq!(walk_home(&engine, account(50), 20).await, []);
    assert_eq!(
        engine.as_reader(account(51)).read(&Query::home().limit(1)).await.unwrap().ids(),
        [published.id]
    );
}

#[tokio::test]
async fn an_import_and_engines_exclude_each_other() {
    let serving = engine().await;
    let options = tenant(40);
    let busy = tideline::StoreOptions { prefix: serving.store().keys().prefix().into(), ..options.clone() };
    let refused = Engine::builder().store(busy).settings(small()).import().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    let mut importer = Engine::builder().store(options.clone()).settings(small()).import().await.unwrap();
    let start = || Engine::builder().store(options.clone()).settings(small()).start();
    assert_eq!(start().await.unwrap_err().kind(), ErrorKind::Conflict);
    importer.finish().await.unwrap();
    start().await.unwrap();
}

#[tokio::test]
async fn an_import_refuses_what_makes_no_sense() {
    let mut importer = Engine::builder().store(tenant(40)).settings(small()).import().await.unwrap();
    importer.accounts(&people()).await.unwrap();
    let kind = |outcome: tideline::Result<()>| outcome.unwrap_err().kind();
    assert_eq!(kind(importer.edges(&[edge(1, 1, 5)]).await), ErrorKind::Invalid);
    assert_eq!(kind(importer.edges(&[edge(1, 2, u64::MAX >> 12)]).await), ErrorKind::Invalid);
    assert_eq!(kind(importer.edges(&[edge(9_999, 2, 5)]).await), ErrorKind::NotFound);
    assert_eq!(kind(importer.edges(&[edge(2, 9_999, 5)]).await), ErrorKind::NotFound);
    let post = |author: AccountId, created_ms| ImportedPost { author, created_ms, draft: Draft::text("x") };
    importer.posts(&[post(account(1), 500)]).await.unwrap();
    let older = importer.posts(&[post(account(1), 400)]).await.map(drop);
    assert_eq!(kind(older), ErrorKind::Invalid);
    for draft in [Draft::text("x").group(account(2)), Draft::text("x").chat(account(2))] {
        let elsewhere = ImportedPost { draft, ..post(account(1), 600) };
        assert_eq!(kind(importer.posts(&[elsewhere]).await.map(drop)), ErrorKind::Invalid);
    }
    let nobody = importer.posts(&[post(account(9_999), 500)]).await.map(drop);
    assert_eq!(kind(nobody), ErrorKind::NotFound);
    let without_id = importer.accounts(&[NewAccount::default()]).await.map(drop);
    assert_eq!(kind(without_id), ErrorKind::Invalid);
}

#[tokio::test]
async fn posts_of_one_second_get_ids_of_their_own() {
    // Sites that keep whole seconds: many posts of one bucket with one time, author by author, over two sessions.
    let options = tenant(40);
    let open = async || Engine::builder().store(options.clone()).settings(small()).import().await.unwrap();
    let mut importer = open().await;
    importer.accounts(&people()).await.unwrap();
    let posts = |of: std::ops::Range<u64>| -> Vec<ImportedPost> {
        let post = |author: u64, n: u64| ImportedPost {
            author: account(author),
            created_ms: 1_600_000_000_000 + n / 300 * 1_000,
            draft: Draft::text(format!("{n} of {author}")),
        };
        of.flat_map(|author| (0..600).map(move |n| post(author, n))).collect()
    };
    let mut ids = importer.posts(&posts(1..20)).await.unwrap();
    importer.finish().await.unwrap();
    let mut importer = open().await;
    ids.extend(importer.posts(&posts(20..40)).await.unwrap());
    importer.finish().await.unwrap();
    let distinct: std::collections::HashSet<_> = ids.iter().collect();
    assert_eq!(distinct.len(), 39 * 600);
    let engine = Engine::builder().store(options).settings(small()).start().await.unwrap();
    for author in [1, 19, 20, 39] {
        assert_eq!(walk_home(&engine, account(author), 100).await.len(), 600);
    }
}

#[tokio::test]
async fn homes_that_are_there_know_what_is_imported() {
    let options = tenant(40);
    let start = async || Engine::builder().store(options.clone()).settings(small()).start().await.unwrap();
    let engine = start().await;
    let people = super::accounts(&engine, 2).await;
    engine.warm(people[0]).await.unwrap();
    engine.shutdown(crate::harness::PATIENCE).await.unwrap();
    let mut importer = Engine::builder().store(options.clone()).settings(small()).import().await.unwrap();
    let post = ImportedPost { author: people[1], created_ms: 5_000, draft: Draft::text("from before") };
    let ids = importer.posts(&[post]).await.unwrap();
    importer.edges(&[ImportedEdge { reader: people[0], author: people[1], since_ms: 4_000 }]).await.unwrap();
    importer.finish().await.unwrap();
    assert_eq!(walk_home(&start().await, people[0], 20).await, ids);
}

#[tokio::test]
async fn follows_of_pulled_authors_are_imported_with_what_pulls_them() {
    let options = tenant(40);
    let mut importer = Engine::builder().store(options.clone()).settings(small()).import().await.unwrap();
    let celebrity =
        NewAccount { id: Some(account(500)), mode: tideline::Mode::Pull, ..NewAccount::default() };
    importer.accounts(&people()).await.unwrap();
    importer.accounts(&[celebrity]).await.unwrap();
    importer.edges(&[edge(1, 500, 10), edge(1, 2, 10), edge(3, 500, 10)]).await.unwrap();
    importer.finish().await.unwrap();
    let engine = Engine::builder().store(options).settings(small()).start().await.unwrap();
    engine.warm(account(1)).await.unwrap();
    let mut posts = Vec::new();
    for author in [500, 2, 500] {
        posts.insert(0, engine.publish(account(author), &Draft::text("later")).await.unwrap().id);
    }
    drained(&engine).await;
    posts.sort_unstable_by(|a, b| b.cmp(a));
    assert_eq!(walk_home(&engine, account(1), 20).await, posts);
}

#[tokio::test]
async fn homes_that_were_filled_beside_an_import_are_dropped_at_its_end() {
    let options = tenant(40);
    let builder = || Engine::builder().store(options.clone()).settings(small());
    let engine = builder().start().await.unwrap();
    let people = super::accounts(&engine, 2).await;
    engine.shutdown(crate::harness::PATIENCE).await.unwrap();
    let mut importer = builder().import().await.unwrap();
    // As an engine that was frozen past its lease and hasn't looked yet.
    assert!(builder().observe().await.unwrap().warm(people[0]).await.unwrap());
    let post = ImportedPost { author: people[1], created_ms: 5_000, draft: Draft::text("from before") };
    let ids = importer.posts(&[post]).await.unwrap();
    importer.edges(&[ImportedEdge { reader: people[0], author: people[1], since_ms: 4_000 }]).await.unwrap();
    importer.finish().await.unwrap();
    assert_eq!(walk_home(&builder().start().await.unwrap(), people[0], 20).await, ids);
}

#[tokio::test]
async fn an_import_holds_its_tenant_between_its_calls() {
    let options = tenant(40);
    let builder = || Engine::builder().store(options.clone()).settings(small());
    let mut importer = builder().import().await.unwrap();
    // Longer than its lease.
    tokio::time::sleep(small().lease_ttl * 2).await;
    assert_eq!(builder().start().await.unwrap_err().kind(), ErrorKind::Conflict);
    importer.accounts(&people()).await.unwrap();
    importer.finish().await.unwrap();
    builder().start().await.unwrap();
}

#[tokio::test]
async fn an_engine_that_was_frozen_past_its_lease_gives_way_to_an_import() {
    let options = tenant(40);
    let builder = || Engine::builder().store(options.clone()).settings(small());
    let (frozen, is_frozen) = tokio::sync::oneshot::channel();
    let (thaw, is_thawed) = std::sync::mpsc::channel::<()>();
    let (store, settings) = (options.clone(), small());
    // A runtime of its own, whose only thread is held up.
    let engine = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let engine = Engine::builder().store(store).settings(settings).start().await.unwrap();
            let author = super::accounts(&engine, 1).await[0];
            frozen.send(()).unwrap();
            is_thawed.recv().unwrap();
            eventually("the engine stops", async || {
                let refused = engine.publish(author, &Draft::text("beside an import")).await.err();
                refused.is_some_and(|e| e.kind() == ErrorKind::Unavailable)
            })
            .await;
            assert!(!engine.health().await.unwrap().is_well);
        });
    });
    is_frozen.await.unwrap();
    let mut importer = loop {
        match builder().import().await {
            Ok(importer) => break importer,
            Err(e) => assert_eq!(e.kind(), ErrorKind::Conflict),
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    };
    thaw.send(()).unwrap();
    tokio::task::spawn_blocking(|| engine.join().unwrap()).await.unwrap();
    // The import was not disturbed.
    importer.accounts(&people()).await.unwrap();
    importer.finish().await.unwrap();
}
