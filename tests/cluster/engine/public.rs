//! The public timeline: compared with a model that looks at every post; what a bucket keeps of it; from when on.

use std::collections::{BTreeMap, BTreeSet};

use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use tideline::post::{Draft, PostRef, Visibility};
use tideline::{
    AccountId, AccountState, AccountUpdate, Engine, EngineSettings, ErrorKind, FindingKind, FsckOptions,
    ListMembership, NewAccount, PostId, Query, Range, StoreOptions, Viewer,
};

use super::{accounts, at_bucket_key, drained, engine_with, small, tenant};
use crate::harness::seeded;

/// An engine whose tenant keeps so many public posts in each of few buckets.
fn keeping(public_posts: u32) -> (StoreOptions, EngineSettings) {
    let options = StoreOptions { buckets: Some(16), ..tenant(40) };
    (options, EngineSettings { public_posts, ..small() })
}

async fn engine_keeping(public_posts: u32) -> Engine {
    let (options, settings) = keeping(public_posts);
    engine_with(options, settings).await
}

/// Accounts that share a bucket.
async fn neighbours(engine: &Engine, count: usize) -> Vec<AccountId> {
    let buckets = engine.store().keys().buckets();
    let ids = (1..).filter(|id| buckets.of_account(*id) == buckets.of_account(1));
    let ids: Vec<AccountId> = ids.take(count).map(|id| AccountId::new(id).unwrap()).collect();
    for id in &ids {
        engine.create_account(NewAccount { id: Some(*id), ..NewAccount::default() }).await.unwrap();
    }
    ids
}

async fn say(engine: &Engine, author: AccountId) -> PostId {
    engine.publish(author, &Draft::text("hello")).await.unwrap().id
}

/// All of the public timeline, page by page.
async fn walk(viewer: Viewer<'_>, limit: usize) -> Vec<PostId> {
    let (mut ids, mut query) = (Vec::new(), Query::public().limit(limit));
    for _ in 0..10_000 {
        let page = viewer.read(&query).await.unwrap();
        ids.extend(page.ids());
        match page.next {
            Some(next) => query = query.after(next),
            None => return ids,
        }
    }
    panic!("the walk does not end; so far {ids:?}");
}

/// What the model knows of a post.
#[derive(Clone, Copy)]
struct Told {
    author: AccountId,
    /// Whether it is public, names no readers, reposts nothing and answers nobody else.
    is_public: bool,
    is_repost: bool,
    /// Whether everybody may read it.
    is_open: bool,
    quotes: Option<AccountId>,
}

/// One account to another.
type Edges = BTreeSet<(AccountId, AccountId)>;

/// Everything that was done, looked at whole for each question.
#[derive(Default)]
struct Model {
    posts: BTreeMap<PostId, Told>,
    follows: Edges,
    mutes: Edges,
    blocks: Edges,
    hides: Edges,
    suspended: BTreeSet<AccountId>,
    limited: BTreeSet<AccountId>,
}

impl Model {
    /// Whether a reader, or a guest, may see what an account says to all.
    fn may_see(&self, reader: Option<AccountId>, author: AccountId) -> bool {
        let is_own = reader == Some(author);
        let kept_away = reader.is_some_and(|reader| {
            let pairs = [(author, reader), (reader, author)];
            pairs.iter().any(|pair| self.blocks.contains(pair)) || self.hides.contains(&(author, reader))
        });
        let follows = reader.is_some_and(|reader| self.follows.contains(&(reader, author)));
        let is_let_in = !self.limited.contains(&author) || follows;
        !self.suspended.contains(&author) && (is_own || !kept_away && is_let_in)
    }

    fn shows(&self, reader: Option<AccountId>, told: &Told) -> bool {
        let mutes = |of| reader.is_some_and(|reader| reader != of && self.mutes.contains(&(reader, of)));
        let is_own = reader == Some(told.author);
        let quote_shows = told.quotes.is_none_or(|of| self.may_see(reader, of) && (is_own || !mutes(of)));
        told.is_public && self.may_see(reader, told.author) && !mutes(told.author) && quote_shows
    }

    /// What shows between two ids, oldest first.
    fn between(&self, reader: Option<AccountId>, (above, below): (u64, u64)) -> Vec<PostId> {
        let all = self
            .posts
            .iter()
            .filter(|(id, told)| above < id.get() && id.get() < below && self.shows(reader, told));
        all.map(|(id, _)| *id).collect()
    }
}

struct History {
    /// Two instances of one tenant.
    engines: [Engine; 2],
    people: Vec<AccountId>,
    model: Model,
    random: StdRng,
}

impl History {
    fn person(&mut self) -> AccountId {
        *self.people.choose(&mut self.random).unwrap()
    }

    async fn publish(&mut self) {
        let author = self.person();
        let other = self.person();
        // Of a repost its original is meant.
        let posts = self.model.posts.iter().filter(|(_, told)| !told.is_repost);
        let posts: Vec<PostId> = posts.map(|(id, _)| *id).collect();
        let target =
            posts.choose(&mut self.random).map(|id| PostRef { id: *id, author: self.model.posts[id].author });
        let mut told = Told { author, is_public: true, is_repost: false, is_open: true, quotes: None };
        let draft = Draft::text("hello");
        let draft = match (self.random.random_range(0..12), target) {
            (0, Some(target)) => {
                told.is_public = target.author == author;
                draft.reply_to(target)
            }
            (1, Some(target)) if self.model.posts[&target.id].is_open => {
                told.quotes = Some(target.author);
                draft.quoting(target)
            }
            (2, Some(target)) => {
                (told.is_public, told.is_repost) = (false, true);
                Draft::repost(target)
            }
            (3, _) => {
                told.is_public = false;
                draft.visibility(Visibility::Unlisted)
            }
            (4, _) => {
                (told.is_public, told.is_open) = (false, false);
                draft.visibility(Visibility::Followers)
            }
            (5, _) => {
                (told.is_public, told.is_open) = (false, false);
                draft.only_to([other])
            }
            (6, _) if other != author => {
                (told.is_public, told.is_open) = (false, false);
                draft.not_to([other])
            }
            (7, _) => draft.visibility(Visibility::Public),
            _ => draft,
        };
        // What its author may not do comes to nothing.
        let engine = &self.engines[usize::from(self.random.random::<bool>())];
        let Ok(published) = engine.publish(author, &draft).await else { return };
        if !published.is_repeat {
            self.model.posts.insert(published.id, told);
        }
    }

    async fn change(&mut self) {
        let (one, other) = (self.person(), self.person());
        if one == other {
            return;
        }
        let (pair, engine, model) = ((one, other), &self.engines[0], &mut self.model);
        match self.random.random_range(0..9) {
            0 | 1 => {
                let is_made = engine.follow(one, other).await.is_ok();
                model.follows.extend(is_made.then_some(pair));
            }
            2 if model.mutes.remove(&pair) => drop(engine.unmute(one, other).await.unwrap()),
            2 => {
                let is_made = engine.mute(one, other).await.is_ok();
                model.mutes.extend(is_made.then_some(pair));
            }
            3 if model.blocks.remove(&pair) => drop(engine.unblock(one, other).await.unwrap()),
            3 => {
                let is_made = engine.block(one, other).await.is_ok();
                if is_made {
                    // Unblocked before that was carried out, the other one goes on following.
                    drained(engine).await;
                    model.blocks.insert(pair);
                    model.follows.remove(&pair);
                    model.follows.remove(&(other, one));
                }
            }
            4 if model.hides.remove(&pair) => drop(engine.show_to(one, other).await.unwrap()),
            4 => {
                let is_made = engine.hide_from(one, other).await.is_ok();
                model.hides.extend(is_made.then_some(pair));
            }
            5 => {
                model.suspended.remove(&one);
                model.limited.remove(&one);
                let state = match self.random.random_range(0..3) {
                    0 => AccountState::Suspended,
                    1 => AccountState::Limited,
                    _ => AccountState::Active,
                };
                model.suspended.extend((state == AccountState::Suspended).then_some(one));
                model.limited.extend((state == AccountState::Limited).then_some(one));
                let update = AccountUpdate { state: Some(state), ..AccountUpdate::default() };
                engine.update_account(one, &update).await.unwrap();
            }
            _ => {
                let posts: Vec<PostId> = model.posts.keys().copied().collect();
                let Some(gone) = posts.choose(&mut self.random) else { return };
                // A quote stands for itself once what it quotes is gone: a model of that is another test's affair.
                if model.posts.values().any(|told| told.quotes == Some(model.posts[gone].author)) {
                    return;
                }
                engine.delete(model.posts[gone].author, *gone).await.unwrap();
                model.posts.remove(gone);
            }
        }
    }

    /// Reads as somebody, or as a guest, in every way.
    async fn compare(&mut self) {
        let reader = (!self.random.random_ratio(1, 4)).then(|| self.person());
        let engine = self.engines[usize::from(self.random.random::<bool>())].clone();
        let viewer = || reader.map_or(engine.as_nobody(), |reader| *engine.as_reader(reader));
        let limit = self.random.random_range(1..15);
        let all = self.model.between(reader, (0, u64::MAX));
        let downwards: Vec<PostId> = all.iter().rev().copied().collect();
        assert_eq!(walk(viewer(), limit).await, downwards, "as {reader:?}");
        let Some(from) =
            self.model.posts.keys().copied().collect::<Vec<_>>().choose(&mut self.random).copied()
        else {
            return;
        };
        let page = async |range: Range| {
            viewer().read(&Query::public().limit(limit).range(range).hydrated()).await.unwrap().ids()
        };
        let above = self.model.between(reader, (from.get(), u64::MAX));
        let mut next_to_it: Vec<PostId> = above.iter().take(limit).copied().collect();
        next_to_it.reverse();
        assert_eq!(page(Range { min_id: Some(from), ..Range::default() }).await, next_to_it);
        let newest: Vec<PostId> = above.iter().rev().take(limit).copied().collect();
        assert_eq!(page(Range { since_id: Some(from), ..Range::default() }).await, newest);
        let below = self.model.between(reader, (0, from.get()));
        let older: Vec<PostId> = below.iter().rev().take(limit).copied().collect();
        assert_eq!(page(Range { max_id: Some(from), ..Range::default() }).await, older);
    }
}

#[tokio::test]
async fn public_pages_show_what_a_look_at_every_post_would() {
    let random = seeded("public_pages_show_what_a_look_at_every_post_would");
    let (options, settings) = keeping(2_000);
    let engines =
        [engine_with(options.clone(), settings.clone()).await, engine_with(options, settings).await];
    let people = accounts(&engines[0], 6).await;
    let mut history = History { engines, people, model: Model::default(), random };
    for step in 0..400 {
        match history.random.random_range(0..10) {
            0..=5 => history.publish().await,
            6..=8 => history.change().await,
            _ => {}
        }
        if step % 12 == 0 {
            history.compare().await;
        }
    }
    history.compare().await;
}

/// A locked account's posts are for its followers, unless it says otherwise.
#[tokio::test]
async fn the_lock_decides_where_a_post_says_nothing() {
    let engine = engine_keeping(100).await;
    let author =
        engine.create_account(NewAccount { is_locked: true, ..NewAccount::default() }).await.unwrap();
    say(&engine, *author).await;
    let public = Draft::text("to all").visibility(Visibility::Public);
    let public = engine.publish(*author, &public).await.unwrap().id;
    assert_eq!(walk(engine.as_nobody(), 10).await, [public]);
}

/// However much somebody posts, and whether it deletes that or not, it takes the place of its own posts alone.
#[tokio::test]
async fn who_posts_much_shortens_nobody_elses_public_posts() {
    const MOST: u32 = 16;
    let engine = engine_keeping(MOST).await;
    let [ada, ben, flooder] = neighbours(&engine, 3).await[..] else { panic!("three were made") };
    let mut kept = Vec::new();
    for author in [ada, ben, ada, ben, ada] {
        kept.push(say(&engine, author).await);
    }
    for n in 0..200 {
        let post = say(&engine, flooder).await;
        if n % 3 == 0 {
            engine.delete(flooder, post).await.unwrap();
        }
    }
    let shown = walk(engine.as_nobody(), 7).await;
    assert!(kept.iter().all(|post| shown.contains(post)), "{shown:?} lacks some of {kept:?}");
    let bytes = at_bucket_key(&engine, 'G', ada, "STRLEN", &[]).await.count().unwrap();
    let most = u64::from(MOST);
    assert!((most..=most + most / 8).contains(&(bytes / 16)), "{bytes} bytes");
    // Its newest are there, as many as have room.
    let newest = say(&engine, flooder).await;
    let listing = engine.inspect_post(newest).await.unwrap().listings.remove(0);
    assert_eq!((&*listing.list, listing.place), ("the public timeline", ListMembership::On));
    assert_eq!(walk(engine.as_nobody(), 7).await[0], newest);
    // Others have as much of it in the end as they want.
    for _ in 0..60 {
        say(&engine, ada).await;
    }
    let shown = walk(*engine.as_reader(ben), 40).await;
    assert!(kept[1] < kept[3] && shown.contains(&kept[1]) && shown.contains(&kept[3]), "{shown:?}");
}

#[tokio::test]
async fn it_is_kept_from_when_the_tenant_decides_so_and_goes_when_it_decides_that() {
    let (options, settings) = keeping(0);
    let engine = engine_with(options, settings).await;
    let [author] = accounts(&engine, 1).await[..] else { panic!("one was made") };
    say(&engine, author).await;
    let refused = engine.as_nobody().read(&Query::public()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Misconfigured);
    assert!(refused.to_string().contains("tenant set public_posts=256"), "{refused}");
    let decide = async |posts: &str| {
        let change = engine.decision().change().set("public_posts", posts).unwrap();
        let excess = engine.excess(&change).await.unwrap();
        let removed = engine.decide(&change).await.unwrap();
        assert_eq!(removed, excess);
        removed.public
    };
    assert_eq!(decide("100").await.entries, 0);
    assert!(walk(engine.as_nobody(), 10).await.is_empty(), "what was posted before is not among them");
    let mut posts = Vec::new();
    for _ in 0..9 {
        posts.push(say(&engine, author).await);
    }
    posts.reverse();
    assert_eq!(walk(engine.as_nobody(), 4).await, posts);
    let removed = decide("5").await;
    assert_eq!((removed.lists, removed.entries), (1, 4));
    assert_eq!(walk(engine.as_nobody(), 4).await, posts[..5]);
    assert_eq!(decide("0").await.entries, 5);
    assert!(engine.as_nobody().read(&Query::public()).await.is_err());
    assert!(at_bucket_key(&engine, 'G', author, "GET", &[]).await.is_nil());
    assert!(engine.decision().change().set("public_posts", "2001").is_err());
}

#[tokio::test]
async fn what_is_gone_leaves_the_public_posts_and_fsck_finds_what_has_not() {
    let engine = engine_keeping(100).await;
    let [ada, ben, cat] = neighbours(&engine, 3).await[..] else { panic!("three were made") };
    let mut posts = Vec::new();
    for author in [ada, ben, cat, ben] {
        posts.push(say(&engine, author).await);
    }
    engine.delete(ben, posts[1]).await.unwrap();
    engine.delete_account(cat).await.unwrap();
    drained(&engine).await;
    let entries = async || at_bucket_key(&engine, 'G', ada, "STRLEN", &[]).await.count().unwrap() / 16;
    assert_eq!(entries().await, 2);
    let options = FsckOptions::default();
    let report = engine.fsck(&options, &|_| {}).await.unwrap();
    assert!(report.is_clean() && !report.findings.contains_key(&FindingKind::PublicNeedless), "{report:?}");
    // As an earlier release leaves it, which deletes a post and knows nothing of the list.
    let list = at_bucket_key(&engine, 'G', ada, "GET", &[]).await.bytes().unwrap().to_vec();
    engine.delete(ada, posts[0]).await.unwrap();
    let key = {
        let keys = engine.store().keys();
        let bucket = keys.buckets().of_account(ada.get());
        (format!("{}{{{}}}G", keys.prefix(), keys.buckets().tag(bucket)), keys.buckets().slot(bucket))
    };
    let put_back = tideline::cluster::Command::new("SET").arg(&key.0).arg(&list);
    engine.store().router().call(tideline::cluster::Request::write(key.1, put_back)).await.unwrap();
    assert_eq!(walk(engine.as_nobody(), 10).await, [posts[3]], "it shows nowhere");
    let found = engine.fsck(&options, &|_| {}).await.unwrap();
    assert!(found.is_clean() && found.findings.contains_key(&FindingKind::PublicNeedless), "{found:?}");
    engine.fsck(&FsckOptions { repair: true, ..options }, &|_| {}).await.unwrap();
    assert_eq!(entries().await, 1);
}
