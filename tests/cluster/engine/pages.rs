//! Which part of a timeline a page shows.

use tideline::post::Draft;
use tideline::{Cursor, ErrorKind, PostId, Query, Range};

use super::{accounts, drained, engine, walk_home};

#[tokio::test]
async fn ranges_mean_what_they_mean_in_mastodon() {
    // Of posts 1 to 10 with a limit of 3, for a reader with a home and for one without.
    let engine = engine().await;
    let people = accounts(&engine, 3).await;
    for reader in &people[1..] {
        engine.follow(*reader, people[0]).await.unwrap();
    }
    engine.warm(people[1]).await.unwrap();
    let mut posts = vec![PostId::from_u64(0).unwrap()];
    for n in 1..=10 {
        posts.push(engine.publish(people[0], &Draft::text(format!("{n}"))).await.unwrap().id);
    }
    drained(&engine).await;
    let cases: [(Range, &[usize]); 6] = [
        (Range { since_id: Some(posts[2]), ..Range::default() }, &[10, 9, 8]),
        (Range { since_id: Some(posts[8]), ..Range::default() }, &[10, 9]),
        (Range { min_id: Some(posts[2]), ..Range::default() }, &[5, 4, 3]),
        (Range { min_id: Some(posts[2]), max_id: Some(posts[5]), ..Range::default() }, &[4, 3]),
        (Range { max_id: Some(posts[3]), ..Range::default() }, &[2, 1]),
        (Range { min_id: Some(posts[10]), ..Range::default() }, &[]),
    ];
    for reader in people {
        for (range, wanted) in cases {
            let page = engine.as_reader(reader).read(&Query::home().range(range).limit(3)).await.unwrap();
            let wanted: Vec<PostId> = wanted.iter().map(|n| posts[*n]).collect();
            assert_eq!(page.ids(), wanted, "{range:?}");
        }
    }
}

#[tokio::test]
async fn going_up_from_any_post_meets_all_newer_ones_once() {
    let engine = engine().await;
    let people = accounts(&engine, 4).await;
    for author in &people[1..] {
        engine.follow(people[0], *author).await.unwrap();
    }
    let mut posts = Vec::new();
    for n in 0..90 {
        posts.push(engine.publish(people[1 + n % 3], &Draft::text(format!("{n}"))).await.unwrap().id);
        if n == 30 {
            engine.warm(people[0]).await.unwrap();
        }
    }
    drained(&engine).await;
    // Two authors may post in one millisecond.
    posts.sort_unstable();
    for first in [0, 20, 60, 85] {
        let mut met = Vec::new();
        let mut from = posts[first];
        loop {
            let range = Range { min_id: Some(from), ..Range::default() };
            let page = engine.as_reader(people[0]).read(&Query::home().range(range).limit(7)).await.unwrap();
            met.extend(page.ids().into_iter().rev());
            match page.newer {
                Some(newer) if newer > from && !page.posts.is_empty() => from = newer,
                _ => break,
            }
        }
        assert_eq!(met, posts[first + 1..], "from {first}");
    }
}

#[tokio::test]
async fn cursors_need_no_post_and_pages_end_somewhere() {
    let engine = engine().await;
    let people = accounts(&engine, 2).await;
    engine.follow(people[1], people[0]).await.unwrap();
    let mut posts = Vec::new();
    for n in 0..60 {
        posts.insert(0, engine.publish(people[0], &Draft::text(format!("{n}"))).await.unwrap().id);
    }
    // What a cursor names may be deleted.
    let query = Query::home().limit(10);
    let first = engine.as_reader(people[1]).read(&query).await.unwrap();
    engine.delete(people[0], first.posts[9].id).await.unwrap();
    let text = first.next.unwrap().to_string();
    let second =
        engine.as_reader(people[1]).read(&query.after(text.parse::<Cursor>().unwrap())).await.unwrap();
    assert_eq!(second.ids(), posts[10..20]);
    posts.remove(9);
    for limit in [1, 3, 59, 60, 100] {
        assert_eq!(walk_home(&engine, people[1], limit).await, posts, "pages of {limit}");
    }
    for limit in [0, 101] {
        let refused = engine.as_reader(people[1]).read(&Query::home().limit(limit)).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid);
    }
    let nobody = crate::harness::account(77);
    assert_eq!(engine.as_reader(nobody).read(&query).await.unwrap_err().kind(), ErrorKind::NotFound);
}
