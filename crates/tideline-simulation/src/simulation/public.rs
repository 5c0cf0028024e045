//! The public timeline, once nothing is under way: it lacks nothing of an account's own, and shows nothing that is
//! gone.

use std::collections::BTreeSet;

use super::data::{Data, Value};
use super::halves::{call_of, halves, run};
use super::truth;
use super::world::{World, world};
use crate::engine::Engine;
use crate::ids::{AccountId, PostId};
use crate::post::PostRef;
use crate::stored::public_entries;
use crate::timeline::Query;

/// Pages of a walk.
const PAGES_MAX: usize = 500;

/// The posts of an account that belong on the public timeline.
fn own(world: &World, author: AccountId) -> BTreeSet<u64> {
    let belongs = |id: &u64| truth::post(world, *id, author).is_some_and(|post| post.is_on_public_timeline());
    truth::posts(world, author).all().filter(belongs).collect()
}

/// Each account's walk has all of its own public posts, each post once, and none that is gone.
pub(super) async fn check_public(engine: &Engine, when: &str) {
    for reader in world(|w| w.accounts.clone()) {
        if world(|w| truth::is_deleted(w, reader)) {
            continue;
        }
        let walked = match walk(engine, reader).await {
            Ok(walked) => walked,
            Err(e) => {
                return world(|w| w.violated(format!("{when}: a public page of {reader} fails: {e:?}")));
            }
        };
        let lacks: Vec<u64> = world(|w| {
            let shown = |id: &u64| walked.iter().any(|post| post.id.get() == *id && post.author == reader);
            // A quote shows only to whom shows what it quotes.
            let quotes =
                |id: &u64| truth::post(w, *id, reader).is_some_and(|post| post.header().original.is_some());
            own(w, reader).into_iter().filter(|id| !shown(id) && !quotes(id)).collect()
        });
        let is_gone = |w: &World, post: &PostRef| !own(w, post.author).contains(&post.id.get());
        let gone: Vec<_> = world(|w| walked.iter().filter(|post| is_gone(w, post)).copied().collect());
        let falls = walked.windows(2).all(|two| two[0].id > two[1].id);
        if !lacks.is_empty() || !gone.is_empty() || !falls {
            let what = format!("lacks {lacks:?} of its own, shows {gone:?} that is gone; in order: {falls}");
            world(|w| w.violated(format!("{when}: the public timeline of {reader} {what}")));
        }
    }
}

/// All of the public timeline as an account sees it, page by page.
pub(super) async fn walk(engine: &Engine, reader: AccountId) -> crate::Result<Vec<PostRef>> {
    let (mut walked, mut cursor) = (Vec::new(), None);
    for _ in 0..PAGES_MAX {
        let query = Query { cursor, limit: Some(3), ..Query::public() };
        let page = engine.as_reader(reader).read(&query).await?;
        walked.extend(page.posts.iter().map(|post| PostRef { id: post.id, author: post.author }));
        cursor = page.next;
        if cursor.is_none() {
            return Ok(walked);
        }
    }
    Err(crate::Error::internal("a walk never ends"))
}

fn entry(id: u64, author: u64) -> Vec<u8> {
    [id.to_be_bytes(), author.to_be_bytes()].concat()
}

fn list_of(data: &Data) -> Vec<(u64, u64)> {
    let text = data.text(b"{06S}G").expect("a string").cloned().unwrap_or_default();
    public_entries(&text).map(|post| (post.id.get(), post.author.get())).collect()
}

/// A bucket that knows decision 1, with these entries.
fn bucket(entries: &[(u64, u64)]) -> Data {
    let mut data = Data::default();
    data.set(b"{06S}z", Value::Hash([(b"decision".to_vec(), b"1".to_vec())].into()));
    let list: Vec<u8> = entries.iter().flat_map(|(id, author)| entry(*id, *author)).collect();
    data.set(b"{06S}G", Value::Text(list));
    data
}

/// The rule in words: one at a time, the oldest of who has most; of several the oldest.
fn one_at_a_time(entries: &[(u64, u64)], most: usize) -> Vec<(u64, u64)> {
    let mut left = entries.to_vec();
    while left.len() > most {
        let of = |author: u64| left.iter().filter(|entry| entry.1 == author).count();
        let highest = left.iter().map(|entry| of(entry.1)).max().unwrap_or(0);
        let oldest = left.iter().position(|entry| of(entry.1) == highest).expect("one has most");
        left.remove(oldest);
    }
    left
}

/// H198
#[test]
fn the_oldest_of_who_has_most_leaves_the_public_posts() {
    let mut random = 7_u64;
    let mut draw = |most: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % most
    };
    for _ in 0..300 {
        let many = draw(40);
        // One writes half of it.
        let entries: Vec<(u64, u64)> =
            (1..=many).map(|id| (id, if draw(2) == 0 { 1 } else { draw(8) + 1 })).collect();
        let most = usize::try_from(draw(20)).expect("small");
        let call = |decision: &[u8]| {
            call_of(
                "public_cut",
                [b"{06S}G".to_vec()].into_iter(),
                &[most.to_string().into(), decision.into()],
            )
        };
        let (_, after) = run(&call(b"1"), &bucket(&entries));
        assert_eq!(list_of(&after), one_at_a_time(&entries, most), "{entries:?} down to {most}");
        let (_, after) = run(&call(b"2"), &bucket(&entries));
        assert_eq!(list_of(&after), entries, "its bucket knows another decision");
        for (_, left) in halves(&call(b"1"), &bucket(&entries)) {
            assert_eq!(list_of(&left), entries, "half of a list");
        }
    }
}

#[test]
fn what_is_taken_off_is_one_whole_entry() {
    // The author of the first and the post of the second make an entry that isn't there.
    let entries = [(1, 2), (3, 4), (2, 3), (3, 4)];
    let drop = |posts: &[(u64, u64)]| {
        let args: Vec<_> = posts.iter().map(|(id, author)| entry(*id, *author)).collect();
        let post = |(id, _): &(u64, u64)| [b"{06S}w".to_vec(), id.to_be_bytes().to_vec()].concat();
        let keys = std::iter::once(b"{06S}G".to_vec()).chain(posts.iter().map(post));
        let call = call_of("public_drop", keys, &args);
        list_of(&run(&call, &bucket(&entries)).1)
    };
    assert_eq!(drop(&[(2, 3)]), [(1, 2), (3, 4), (3, 4)]);
    assert_eq!(drop(&[(4, 2)]), entries, "bytes of two");
    assert!(drop(&[(1, 2), (3, 4), (3, 4), (2, 3)]).is_empty());
}

/// A page of an account's must have a post.
pub(super) async fn must_show(engine: &Engine, reader: AccountId, post: PostId, why: &str) {
    match engine.as_reader(reader).read(&Query::public().limit(20)).await {
        Ok(page) if page.ids().contains(&post) => {}
        other => world(|w| w.violated(format!("the public timeline lacks {post}, {why}: {other:?}"))),
    }
}
