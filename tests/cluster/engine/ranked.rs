//! Timelines by importance: what a scroll shows, whatever becomes of scores, posts and follows between its pages.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use tideline::post::{Draft, PostRef, Visibility};
use tideline::{
    AccountId, ChosenAuthors, DeliveryWay, Engine, EngineSettings, ErrorKind, PostId, PostScorer, Query,
    RANKED_CURSOR_LEN_MAX, RankedCursor, RankedFeed, RankedPage, RankedQuery, Score, ScoreFacts,
};
use tideline_local_cluster::LocalPostgres;

use super::archive::{Archived, publish};
use super::{a_millisecond, accounts, archive_away, drained, engine, engine_with, small, tenant};
use crate::harness::seeded;

/// Whatever a post's score was, it is another one the next time.
#[derive(Debug, Default)]
struct Whim(AtomicU64);

impl PostScorer for Whim {
    fn score(&self, _: &ScoreFacts<'_>) -> Score {
        let asked = self.0.fetch_add(1, Ordering::Relaxed);
        let whim = (asked.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32;
        Score::of([("whim", f64::from(whim))])
    }
}

async fn read(engine: &Engine, reader: AccountId, query: &RankedQuery) -> RankedPage {
    engine.as_reader(reader).read_ranked(query).await.unwrap()
}

fn ids(page: &RankedPage) -> Vec<PostId> {
    page.posts.iter().map(|post| post.id).collect()
}

/// All that a scroll shows, in its order.
pub(super) async fn ranked_scroll(
    engine: &Engine,
    reader: AccountId,
    feed: &RankedFeed,
    limit: usize,
) -> Vec<PostId> {
    let (mut query, mut met) = (RankedQuery::of(feed.clone()).limit(limit), Vec::new());
    loop {
        let page = read(engine, reader, &query).await;
        assert!(page.posts.len() <= limit && !page.lacks_archive);
        assert!(page.posts.iter().all(|post| post.post.is_some() && post.account.is_some()));
        met.extend(ids(&page));
        let Some(next) = page.next else { return met };
        let text = next.to_string();
        assert!(text.len() <= RANKED_CURSOR_LEN_MAX, "{text}");
        query = query.after(text.parse().unwrap());
    }
}

/// All that a walk by time shows.
async fn walk(engine: &Engine, reader: AccountId, mut query: Query) -> Vec<PostId> {
    let mut met = Vec::new();
    loop {
        let page = engine.as_reader(reader).read(&query).await.unwrap();
        met.extend(page.ids());
        let Some(next) = page.next else { return met };
        query = query.after(next);
    }
}

/// What is done while somebody scrolls.
struct Disturbed {
    engine: Engine,
    /// Who scrolls, and whom it follows.
    people: Vec<AccountId>,
    random: StdRng,
    posts: Vec<PostRef>,
    deleted: BTreeSet<PostId>,
    /// Who isn't followed any more.
    left: BTreeSet<AccountId>,
}

impl Disturbed {
    async fn begin(engine: &Engine, mut random: StdRng) -> Self {
        let people = accounts(engine, 9).await;
        let (reader, authors) = people.split_first().unwrap();
        for (at, author) in authors.iter().enumerate() {
            engine.follow(*reader, *author).await.unwrap();
            if at % 3 == 0 {
                engine.set_way(*author, Some(DeliveryWay::Pull)).await.unwrap();
            }
        }
        let mut posts = Vec::new();
        for _ in 0..random.random_range(150..330) {
            let author = *people.choose(&mut random).unwrap();
            let id = engine.publish(author, &Draft::text("hello")).await.unwrap().id;
            posts.push(PostRef { id, author });
        }
        drained(engine).await;
        let (deleted, left) = (BTreeSet::new(), BTreeSet::new());
        Self { engine: engine.clone(), people, random, posts, deleted, left }
    }

    fn shows(&self, post: &PostRef) -> bool {
        !self.deleted.contains(&post.id) && !self.left.contains(&post.author)
    }

    async fn disturb(&mut self) {
        let (post, reader) = (*self.posts.choose(&mut self.random).unwrap(), self.people[0]);
        match self.random.random_range(0..8) {
            0 => {
                self.engine.delete(post.author, post.id).await.unwrap();
                self.deleted.insert(post.id);
            }
            1..=4 if self.shows(&post) => drop(self.engine.like(reader, post.id).await.unwrap()),
            5 if self.left.is_empty() && post.author != reader => {
                self.engine.unfollow(reader, post.author).await.unwrap();
                self.left.insert(post.author);
            }
            _ => drop(self.engine.publish(post.author, &Draft::text("new")).await.unwrap()),
        }
    }
}

/// Between any two pages every score changes, posts are liked, deleted and published, somebody is unfollowed: each post
/// that was there when the scroll began, and still shows, is on it once; nothing else is.
#[tokio::test]
async fn a_scroll_shows_each_post_once_whatever_happens_between_its_pages() {
    for part in 0..4 {
        let seed: u64 = seeded("ranked").random::<u64>() + part;
        let options = tenant(40);
        let one = Engine::builder().store(options.clone()).settings(small()).scorer(Whim::default());
        let one = one.start().await.unwrap();
        let other = engine_with(options, EngineSettings { home_posts: 40, ..small() }).await;
        let mut world = Disturbed::begin(&one, StdRng::seed_from_u64(seed)).await;
        let began = world.posts.clone();
        let (mut met, mut query) = (Vec::new(), RankedQuery::of(RankedFeed::Home));
        loop {
            let engine = if world.random.random() { &one } else { &other };
            query = query.limit(world.random.random_range(1..60));
            let page = read(engine, world.people[0], &query).await;
            for post in &page.posts {
                let post = PostRef { id: post.id, author: post.author };
                assert!(world.shows(&post), "seed {seed}: {} shows", post.id);
            }
            met.extend(ids(&page));
            let Some(next) = page.next else { break };
            query = query.after(next);
            for _ in 0..3 {
                world.disturb().await;
            }
        }
        let once: BTreeSet<PostId> = met.iter().copied().collect();
        assert_eq!(once.len(), met.len(), "seed {seed}: a post stands twice");
        let missing: Vec<_> =
            began.iter().filter(|post| world.shows(post) && !once.contains(&post.id)).collect();
        assert!(missing.is_empty(), "seed {seed}: never shown: {missing:?}");
        let began: BTreeSet<PostId> = began.iter().map(|post| post.id).collect();
        assert!(once.is_subset(&began), "seed {seed}: newer than the scroll");
    }
}

#[tokio::test]
async fn to_its_end_a_scroll_shows_what_a_walk_by_time_shows() {
    for archived in Archived::each().await {
        let engine = &archived.engine;
        let [reader, ada, ben] = accounts(engine, 3).await[..] else { panic!("three were made") };
        for author in [ada, ben] {
            engine.follow(reader, author).await.unwrap();
            publish(engine, author, 100).await;
        }
        archived.left_in_memory(12 + 12).await;
        let by_time: BTreeSet<PostId> = walk(engine, reader, Query::home()).await.into_iter().collect();
        assert_eq!(by_time.len(), 200);
        for limit in [1, 7, 100] {
            let scroll = ranked_scroll(engine, reader, &RankedFeed::Home, limit).await;
            assert_eq!((scroll.len(), scroll.into_iter().collect::<BTreeSet<_>>()), (200, by_time.clone()));
        }
        let adas: BTreeSet<PostId> = walk(engine, reader, Query::profile(ada)).await.into_iter().collect();
        for feed in [RankedFeed::Profile(ada), RankedFeed::Chosen(ChosenAuthors::of([ada]))] {
            let scroll = ranked_scroll(engine, reader, &feed, 30).await;
            assert_eq!((scroll.len(), scroll.into_iter().collect::<BTreeSet<_>>()), (100, adas.clone()));
        }
    }
}

/// What others say of a post, and whom the reader cares for, bring it up; of one author two stand together at most.
#[tokio::test]
async fn reactions_and_the_readers_own_acts_bring_posts_up_and_are_told_term_by_term() {
    let engine = engine().await;
    let people = accounts(&engine, 6).await;
    let [reader, ada, ben, cid, dee, eve] = people[..] else { panic!("six were made") };
    for author in [ada, ben, cid] {
        engine.follow(reader, author).await.unwrap();
    }
    let post = async |author: AccountId| engine.publish(author, &Draft::text("x")).await.unwrap().id;
    let (liked, adas, cids) = (post(ada).await, post(ada).await, post(cid).await);
    // Of one millisecond Ada's could be the newest.
    a_millisecond(&engine).await;
    let bens = [post(ben).await, post(ben).await, post(ben).await];
    for who in [dee, eve, ben] {
        engine.like(who, liked).await.unwrap();
    }
    // The reader cares for Cid, who has written nothing that anybody likes but it.
    engine.bookmark(reader, cids).await.unwrap();
    engine.publish(reader, &Draft::text("yes").reply_to(PostRef { id: cids, author: cid })).await.unwrap();
    drained(&engine).await;
    let told = engine.inspect_ranking(reader).await.unwrap();
    let page = read(&engine, reader, &RankedQuery::of(RankedFeed::Home).with_ties()).await;
    assert_eq!(told.posts.iter().map(|post| post.id).collect::<Vec<_>>(), ids(&page));
    assert!(told.hidden.is_empty());
    let term = |id: PostId, name: &str| {
        let post = told.posts.iter().find(|post| post.id == id).unwrap();
        post.score.terms().iter().find(|(term, _)| *term == name).unwrap().1
    };
    // One reply, and no like, is three likes.
    assert_eq!((term(liked, "reactions"), term(cids, "reactions")), (4f64.ln(), 4f64.ln()));
    assert_eq!((term(liked, "affinity"), term(adas, "affinity"), term(bens[0], "affinity")), (0.0, 0.0, 0.0));
    let cares = term(cids, "affinity");
    assert!((1.05..1.11).contains(&cares), "two acts of just now: {cares}");
    let order = ids(&page);
    let place = |id: PostId| order.iter().position(|of| *of == id).unwrap();
    assert_eq!((place(cids), place(liked)), (0, 1), "{told:?}");
    // Ben's are the newest, and still not all three together while others are left.
    let bens: Vec<usize> = bens.into_iter().map(place).collect();
    assert!(bens.iter().max().unwrap() - bens.iter().min().unwrap() > 2, "{order:?}");
    assert!(page.posts[0].ties.unwrap().is_bookmarked);
    for post in &told.posts {
        let sum: f64 = post.score.terms().iter().map(|(_, term)| term).sum();
        assert_eq!(post.total, sum);
    }
}

/// A cursor is data: one that names what its reader may not see shows nothing of that, on any instance.
#[tokio::test]
async fn a_cursor_that_somebody_has_made_up_shows_no_more_than_the_reader_may_see() {
    let options = tenant(40);
    let (one, other) = (engine_with(options.clone(), small()).await, engine_with(options, small()).await);
    let [reader, ada, stranger] = accounts(&one, 3).await[..] else { panic!("three were made") };
    one.follow(reader, ada).await.unwrap();
    let of_all = publish(&one, ada, 3).await;
    let direct = one
        .publish(ada, &Draft::text("not for you").visibility(Visibility::Direct).mentions([stranger]))
        .await
        .unwrap()
        .id;
    let strangers = one.publish(stranger, &Draft::text("not followed")).await.unwrap().id;
    let private = Draft::text("for others").visibility(Visibility::Followers);
    let private = one.publish(stranger, &private).await.unwrap().id;
    drained(&one).await;
    // As the stranger sees them, they are a window of its own.
    let window = async |who: AccountId, feed: RankedFeed| {
        let page = read(&one, who, &RankedQuery::of(feed).limit(1)).await;
        (ids(&page), page.next.unwrap())
    };
    for (who, feed) in
        [(stranger, RankedFeed::Home), (ada, RankedFeed::Home), (ada, RankedFeed::Profile(ada))]
    {
        let (_, cursor) = window(who, feed).await;
        for engine in [&one, &other] {
            let forged = RankedQuery::of(RankedFeed::Home).after(cursor.clone());
            for post in ids(&read(engine, reader, &forged).await) {
                assert!(of_all.contains(&post), "{post} shows; {direct}, {strangers}, {private} may not");
            }
        }
    }
    // What is deleted, or no longer for the reader, is passed over.
    let first = read(&one, reader, &RankedQuery::of(RankedFeed::Home).limit(1)).await;
    let gone = of_all.iter().find(|id| ids(&first)[0] != **id).unwrap();
    one.delete(ada, *gone).await.unwrap();
    let next = RankedQuery::of(RankedFeed::Home).after(first.next.clone().unwrap());
    let rest = read(&other, reader, &next).await;
    assert_eq!((rest.posts.len(), rest.next), (1, None));
    one.unfollow(reader, ada).await.unwrap();
    assert_eq!(ids(&read(&other, reader, &next).await), []);
}

#[tokio::test]
async fn a_page_by_importance_ends_above_what_only_the_archive_could_tell() {
    let mut server = LocalPostgres::up().await.unwrap();
    let tenant = archive_away::archived(&server).await;
    let engine = &tenant.engine;
    let [ada, ben] = accounts(engine, 2).await[..] else { panic!("two were made") };
    engine.follow(ben, ada).await.unwrap();
    let posts = publish(engine, ada, 40).await;
    tenant.left_in_memory(12).await;
    let home = || RankedQuery::of(RankedFeed::Home);
    let first = read(engine, ben, &home().limit(20)).await;
    let next = first.next.clone().unwrap();
    server.kill().await.unwrap();
    let away = async |query: &RankedQuery| {
        let refused = engine.as_reader(ben).read_ranked(query).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unavailable, "{refused}");
    };
    // What is left of a window lies in the archive.
    away(&home().after(next.clone())).await;
    // A window ends above it.
    let begun = read(engine, ben, &home().limit(20)).await;
    let shown: BTreeSet<PostId> = ids(&begun).into_iter().collect();
    assert_eq!((shown, begun.lacks_archive), (posts[28..].iter().copied().collect(), true));
    let full = read(engine, ben, &home().limit(5)).await;
    assert_eq!((full.posts.len(), full.lacks_archive), (5, false));
    let rest = read(engine, ben, &home().limit(20).after(full.next.unwrap())).await;
    assert_eq!((rest.posts.len(), rest.lacks_archive), (7, true));
    let behind = rest.next.unwrap();
    away(&home().after(behind.clone())).await;
    server.start().await.unwrap();
    crate::harness::eventually("the archive answers again", async || {
        engine.as_reader(ben).read_ranked(&home().after(next.clone())).await.is_ok()
    })
    .await;
    let rest = read(engine, ben, &home().limit(30).after(behind)).await;
    assert_eq!((rest.posts.len(), rest.next), (28, None));
    let rest = read(engine, ben, &home().limit(30).after(next)).await;
    let all: BTreeSet<PostId> = ids(&first).into_iter().chain(ids(&rest)).collect();
    assert_eq!((rest.posts.len(), all.len()), (20, 40));
}

#[tokio::test]
async fn what_is_no_page_by_importance_is_refused() {
    let engine = engine().await;
    let [reader] = accounts(&engine, 1).await[..] else { panic!("one was made") };
    let nobody = crate::harness::account(77);
    for (who, query, kind) in [
        (reader, RankedQuery::default().limit(0), ErrorKind::Invalid),
        (reader, RankedQuery::default().limit(101), ErrorKind::Invalid),
        (reader, RankedQuery::of(RankedFeed::Profile(nobody)), ErrorKind::NotFound),
        (nobody, RankedQuery::default(), ErrorKind::NotFound),
    ] {
        let refused = engine.as_reader(who).read_ranked(&query).await.unwrap_err();
        assert_eq!(refused.kind(), kind, "{refused}");
    }
    let many = ChosenAuthors::of((1..=1_001).map(crate::harness::account));
    let refused = engine.as_reader(reader).read_ranked(&RankedQuery::of(RankedFeed::Chosen(many))).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    let none = read(&engine, reader, &RankedQuery::default()).await;
    assert_eq!(none, RankedPage::default());
    assert!("i".parse::<RankedCursor>().is_err());
}
