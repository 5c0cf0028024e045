//! Mentions and hashtags beyond their bounds: in the archive, and on the same pages.

use std::collections::BTreeSet;

use tideline::archive::{ListKey, ListPlace, PageOrder, PostListAsk};
use tideline::post::Draft;
use tideline::sharded::SortedSet;
use tideline::{AccountId, Engine, EngineSettings, PostId, Timeline};

use super::archive::Archived;
use super::mentions::{tag, walk, walk_up};
use super::{accounts, drained, eventually, small};

/// Posts that a list keeps in memory.
const MOST: u32 = 20;

/// Members of the mentions in memory.
async fn in_memory(engine: &Engine, account: AccountId) -> u64 {
    let list: SortedSet<AccountId> = engine.store().sets().of_account(account, "mentions").unwrap();
    list.len().await.unwrap()
}

/// The posts of somebody's mentions that the archive has.
async fn in_archive(archived: &Archived, account: AccountId) -> BTreeSet<PostId> {
    let bucket = archived.engine.store().keys().buckets().of_account(account.get());
    let list = ListKey { bucket, name: [&b"m"[..], &account.get().to_be_bytes()].concat() };
    let edge = ListPlace { unix_ms: u64::MAX >> 17, post: PostId::from_u64(u64::MAX >> 1).unwrap() };
    let ask = PostListAsk { list, edge, most: 1_000 };
    let page = archived.archive.list_pages(&[ask], PageOrder::NewestFirst).await.unwrap().remove(0);
    page.posts.iter().map(|post| post.place.post).collect()
}

#[tokio::test]
async fn mentions_and_hashtags_go_on_in_the_archive() {
    let settings = || EngineSettings { mentions_max: MOST, tag_posts_max: MOST, ..small() };
    for archived in Archived::each_with(settings).await {
        let engine = &archived.engine;
        let [ada, ben, cid, dan] = accounts(engine, 4).await[..] else { panic!("four were made") };
        let (of_tag, mut posts) = (Timeline::Tag(tag("tide")), Vec::new());
        for n in 0..90 {
            // One writes most of it.
            let author = if n % 3 == 0 { cid } else { ben };
            let draft = Draft::text("so").mentions([ada]).hashtags(["Tide"]);
            posts.push((engine.publish(author, &draft).await.unwrap().id, author));
        }
        // Those of one millisecond are in the order of their buckets.
        posts.sort_unstable();
        posts.reverse();
        drained(engine).await;
        eventually("the list is cut", async || {
            engine.archive_due().await.unwrap();
            in_memory(engine, ada).await <= u64::from(MOST) + 8 + 3
        })
        .await;
        let ids = |posts: &[(PostId, AccountId)]| posts.iter().map(|(id, _)| *id).collect::<Vec<_>>();
        for timeline in [Timeline::Mentions, of_tag] {
            assert_eq!(walk(engine, ada, timeline, || 7).await, ids(&posts), "{timeline:?}");
            assert_eq!(walk_up(engine, ada, timeline, || 7).await, ids(&posts), "{timeline:?}");
        }
        // What is deleted goes from there, too.
        for at in [89, 40, 0] {
            let (id, author) = posts.remove(at);
            engine.delete(author, id).await.unwrap();
        }
        drained(engine).await;
        assert_eq!(walk(engine, ada, Timeline::Mentions, || 100).await, ids(&posts));
        let there = in_archive(&archived, ada).await;
        assert!(there.len() > 50 && there.iter().all(|id| ids(&posts).contains(id)), "{there:?}");
        // Whoever is blocked is hidden there, as anywhere.
        engine.block(ada, cid).await.unwrap();
        drained(engine).await;
        let of_ben: Vec<_> = posts.iter().filter(|(_, author)| *author == ben).copied().collect();
        assert_eq!(walk(engine, ada, Timeline::Mentions, || 7).await, ids(&of_ben));
        engine.delete_account(ada).await.unwrap();
        drained(engine).await;
        assert_eq!(in_archive(&archived, ada).await, BTreeSet::new(), "of a deleted account");
        assert_eq!(walk(engine, dan, of_tag, || 7).await, ids(&posts));
    }
}

/// As an instance does it, in its own time.
#[tokio::test]
async fn a_lower_bound_moves_what_is_beyond_it() {
    let archived = Archived::new(EngineSettings { mentions_max: 60, ..small() }).await;
    let engine = &archived.engine;
    let [ada, ben] = accounts(engine, 2).await[..] else { panic!("two were made") };
    let mut posts = Vec::new();
    for _ in 0..50 {
        posts.insert(0, engine.publish(ben, &Draft::text("so").mentions([ada])).await.unwrap().id);
    }
    drained(engine).await;
    let change = engine.decision().change().set("mentions_max", "20").unwrap();
    let removed = engine.decide(&change).await.unwrap();
    assert_eq!(removed.mentions.entries, 30, "{removed:?}");
    eventually("the list is cut", async || {
        engine.archive_due().await.unwrap();
        in_memory(engine, ada).await == u64::from(MOST) + 3
    })
    .await;
    assert_eq!(walk(engine, ada, Timeline::Mentions, || 7).await, posts);
}
