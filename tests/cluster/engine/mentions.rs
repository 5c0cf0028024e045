//! Timelines that are lists: what mentions one, what bears a hashtag, what answers a post. Against a naive model.

use std::collections::BTreeSet;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tideline::post::{Draft, Edit, PostRef, Tag, Visibility};
use tideline::{AccountId, Engine, EngineSettings, ErrorKind, PostId, Query, Range, Timeline};

use super::{accounts, drained, engine, engine_with, small, tenant};

const TAGS: [&str; 3] = ["tide", "Stra\u{df}e", "\u{6d77}"];

pub(crate) fn tag(name: &str) -> Tag {
    Tag::new(name).unwrap()
}

fn on(timeline: Timeline) -> Query {
    Query { timeline, ..Query::default() }
}

/// All of a timeline, newest first, page by page.
pub(crate) async fn walk(
    engine: &Engine,
    reader: AccountId,
    timeline: Timeline,
    mut limit: impl FnMut() -> usize,
) -> Vec<PostId> {
    let (mut ids, mut query) = (Vec::new(), on(timeline));
    for _ in 0..1_000 {
        let page = engine.as_reader(reader).read(&query.limit(limit())).await.unwrap();
        ids.extend(page.ids());
        match page.next {
            Some(next) => query = query.after(next),
            None => return ids,
        }
    }
    panic!("the walk does not end; so far {ids:?}");
}

/// The same from the oldest on.
pub(crate) async fn walk_up(
    engine: &Engine,
    reader: AccountId,
    timeline: Timeline,
    mut limit: impl FnMut() -> usize,
) -> Vec<PostId> {
    let (mut ids, mut from) = (Vec::new(), PostId::from_u64(0).unwrap());
    loop {
        let range = Range { min_id: Some(from), ..Range::default() };
        let page = engine.as_reader(reader).read(&on(timeline).range(range).limit(limit())).await.unwrap();
        ids.splice(0..0, page.ids());
        match page.newer {
            Some(newer) if newer > from => from = newer,
            _ => return ids,
        }
    }
}

/// A post as the model knows it.
#[derive(Debug, Clone)]
struct Known {
    id: PostId,
    author: AccountId,
    visibility: Visibility,
    only_to: Vec<AccountId>,
    mentions: Vec<AccountId>,
    tags: Vec<String>,
    reply_to: Option<PostId>,
}

#[derive(Debug, Default)]
struct Model {
    posts: Vec<Known>,
    follows: BTreeSet<(AccountId, AccountId)>,
    mutes: BTreeSet<(AccountId, AccountId)>,
    blocks: BTreeSet<(AccountId, AccountId)>,
}

impl Model {
    fn sees(&self, reader: AccountId, post: &Known) -> bool {
        let pair = (reader, post.author);
        let is_blocked = self.blocks.contains(&pair) || self.blocks.contains(&(post.author, reader));
        let admits = match post.visibility {
            Visibility::Public | Visibility::Unlisted => true,
            Visibility::Followers => self.follows.contains(&pair) || post.mentions.contains(&reader),
            Visibility::Direct => post.only_to.contains(&reader),
        };
        reader == post.author || (admits && !is_blocked)
    }

    fn lists(&self, reader: AccountId, post: &Known, timeline: Timeline) -> bool {
        match timeline {
            Timeline::Mentions => reader != post.author && post.mentions.contains(&reader),
            Timeline::Tag(of) => {
                post.visibility == Visibility::Public && post.tags.iter().any(|name| tag(name) == of)
            }
            Timeline::Replies(parent) => post.reply_to == Some(parent),
            _ => panic!("no list"),
        }
    }

    fn page(&self, reader: AccountId, timeline: Timeline) -> Vec<PostId> {
        let shows = |post: &&Known| {
            self.lists(reader, post, timeline)
                && self.sees(reader, post)
                && !self.mutes.contains(&(reader, post.author))
        };
        let mut ids: Vec<PostId> = self.posts.iter().filter(shows).map(|post| post.id).collect();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        ids
    }
}

fn some<T: Clone>(random: &mut StdRng, of: &[T]) -> Vec<T> {
    of.iter().filter(|_| random.random_bool(0.4)).cloned().collect()
}

/// Hashtags as people write them.
fn some_tags(random: &mut StdRng) -> Vec<String> {
    let written = |name: &str, loud: bool| if loud { name.to_uppercase() } else { name.to_owned() };
    let tags = some(random, &TAGS);
    // The sharp s in capitals is another tag.
    tags.iter().map(|name| written(name, *name == "tide" && random.random_bool(0.5))).collect()
}

async fn act(engine: &Engine, model: &mut Model, people: &[AccountId], random: &mut StdRng) {
    let of = |random: &mut StdRng| people[random.random_range(0..people.len())];
    let (one, other) = (of(random), of(random));
    match random.random_range(0..20) {
        0..10 => {
            let visibility = match random.random_range(0..8) {
                0 => Visibility::Unlisted,
                1 => Visibility::Followers,
                2 => Visibility::Direct,
                _ => Visibility::Public,
            };
            let (mut mentions, tags) = (some(random, people), some_tags(random));
            if visibility == Visibility::Direct && mentions.is_empty() {
                mentions.push(other);
            }
            let parent = model.posts.iter().rfind(|post| model.sees(one, post)).cloned();
            let parent = parent.filter(|_| random.random_bool(0.3));
            let draft =
                Draft::text("so").visibility(visibility).mentions(mentions.clone()).hashtags(tags.clone());
            let draft = match &parent {
                Some(parent) => draft.reply_to(PostRef { id: parent.id, author: parent.author }),
                None => draft,
            };
            let id = engine.publish(one, &draft).await.unwrap().id;
            let (reply_to, only_to) = (parent.map(|parent| parent.id), mentions.clone());
            model.posts.push(Known { id, author: one, visibility, only_to, mentions, tags, reply_to });
        }
        10..14 if !model.posts.is_empty() => {
            let at = random.random_range(0..model.posts.len());
            let post = &mut model.posts[at];
            let edit = Edit {
                mentions: random.random_bool(0.5).then(|| some(random, people)),
                hashtags: Some(some_tags(random)),
                ..Edit::default()
            };
            engine.edit(post.author, post.id, &edit).await.unwrap();
            post.tags = edit.hashtags.unwrap();
            post.mentions = edit.mentions.unwrap_or_else(|| post.mentions.clone());
        }
        14 if !model.posts.is_empty() => {
            let gone = model.posts.swap_remove(random.random_range(0..model.posts.len()));
            engine.delete(gone.author, gone.id).await.unwrap();
        }
        15 if one != other && model.follows.insert((one, other)) => {
            let blocked = model.blocks.contains(&(one, other)) || model.blocks.contains(&(other, one));
            if engine.follow(one, other).await.is_err() {
                assert!(blocked);
            }
            if blocked {
                model.follows.remove(&(one, other));
            }
        }
        16 if one != other && model.mutes.insert((one, other)) => {
            engine.mute(one, other).await.unwrap();
        }
        17 if model.mutes.remove(&(one, other)) => drop(engine.unmute(one, other).await.unwrap()),
        18 if one != other && model.blocks.insert((one, other)) => {
            engine.block(one, other).await.unwrap();
            // Unblocked before that was carried out, the other's follow would stay.
            drained(engine).await;
            model.follows.remove(&(one, other));
            model.follows.remove(&(other, one));
        }
        19 if model.blocks.remove(&(one, other)) => drop(engine.unblock(one, other).await.unwrap()),
        _ => {}
    }
}

#[tokio::test]
async fn lists_show_what_a_naive_model_shows() {
    let engine = engine().await;
    for seed in 1..=3u64 {
        println!("seed {seed}");
        let people = accounts(&engine, 4).await;
        let (mut model, mut random) = (Model::default(), StdRng::seed_from_u64(seed));
        // Posts of one seed are those of its people; those of other seeds are under the same hashtags.
        let others: BTreeSet<PostId> = {
            let mut all = BTreeSet::new();
            for name in TAGS {
                all.extend(walk(&engine, people[0], Timeline::Tag(tag(name)), || 100).await);
            }
            all
        };
        for round in 0..4 {
            for _ in 0..40 {
                act(&engine, &mut model, &people, &mut random).await;
            }
            drained(&engine).await;
            let parents: Vec<PostId> = model.posts.iter().filter_map(|post| post.reply_to).collect();
            let mut timelines = vec![Timeline::Mentions];
            timelines.extend(TAGS.map(|name| Timeline::Tag(tag(name))));
            timelines.extend(parents.last().map(|parent| Timeline::Replies(*parent)));
            for (reader, timeline) in people.iter().flat_map(|r| timelines.iter().map(move |t| (*r, *t))) {
                if let Timeline::Replies(parent) = timeline {
                    let parent = model.posts.iter().find(|post| post.id == parent);
                    if !parent.is_some_and(|parent| model.sees(reader, parent)) {
                        let refused = engine.as_reader(reader).read(&on(timeline)).await.unwrap_err();
                        assert_eq!(refused.kind(), ErrorKind::NotFound);
                        continue;
                    }
                }
                let wanted = model.page(reader, timeline);
                let ours = |mut ids: Vec<PostId>| {
                    ids.retain(|id| !others.contains(id));
                    ids
                };
                let what = format!("seed {seed}, round {round}, {timeline:?} of {reader}");
                let down = walk(&engine, reader, timeline, || random.random_range(1..9)).await;
                assert_eq!(ours(down), wanted, "{what}");
                let up = walk_up(&engine, reader, timeline, || random.random_range(1..9)).await;
                assert_eq!(ours(up), wanted, "{what}, upwards");
                if let Some(since) = wanted.get(random.random_range(0..=wanted.len())) {
                    let range = Range { since_id: Some(*since), ..Range::default() };
                    let page =
                        engine.as_reader(reader).read(&on(timeline).range(range).limit(100)).await.unwrap();
                    let newer: Vec<PostId> = wanted.iter().copied().filter(|id| id > since).collect();
                    assert_eq!(ours(page.ids()), newer, "{what}, since {since}");
                }
            }
        }
    }
}

#[tokio::test]
async fn lists_lose_their_oldest_and_nothing_else() {
    let settings = EngineSettings { mentions_max: 20, tag_posts_max: 30, ..small() };
    let engine = engine_with(tenant(40), settings).await;
    let people = accounts(&engine, 2).await;
    let [author, reader] = people[..] else { panic!("two were made") };
    let of_tag = Timeline::Tag(tag("tide"));
    let mut posts = Vec::new();
    for n in 0..150 {
        let draft = Draft::text(format!("{n}")).mentions([reader]).hashtags(["tide"]);
        posts.insert(0, engine.publish(author, &draft).await.unwrap().id);
        if n % 10 != 9 {
            continue;
        }
        drained(&engine).await;
        for (timeline, most) in [(Timeline::Mentions, 20), (of_tag, 30)] {
            let shown = walk(&engine, reader, timeline, || 7).await;
            assert_eq!(shown, posts[..shown.len()], "{timeline:?}");
            let (least, slack) = (most.min(posts.len()), 8 + 2);
            assert!((least..=most + slack).contains(&shown.len()), "{timeline:?}: {} of {n}", shown.len());
            assert_eq!(walk_up(&engine, reader, timeline, || 7).await, shown);
        }
    }
    // What is deleted makes no room for what has left.
    let shown = walk(&engine, reader, of_tag, || 100).await;
    for gone in &shown[..5] {
        engine.delete(author, *gone).await.unwrap();
    }
    drained(&engine).await;
    assert_eq!(walk(&engine, reader, of_tag, || 100).await, shown[5..]);
}

#[tokio::test]
async fn what_a_post_says_now_counts_at_once() {
    let engine = engine().await;
    let people = accounts(&engine, 3).await;
    let [author, reader, other] = people[..] else { panic!("three were made") };
    let draft = Draft::text("@reader #Tide").mentions([reader, author]).hashtags(["Tide"]);
    let post = engine.publish(author, &draft).await.unwrap().id;
    drained(&engine).await;
    let shown =
        async |whom: AccountId, query: Query| engine.as_reader(whom).read(&query).await.unwrap().ids();
    assert_eq!(shown(reader, Query::mentions()).await, [post]);
    // Whoever mentions itself knows.
    assert_eq!(shown(author, Query::mentions()).await, []);
    assert_eq!(shown(other, Query::tag(tag("#TIDE"))).await, [post]);
    let page = engine.as_reader(reader).read(&Query::mentions().hydrated()).await.unwrap();
    assert_eq!(page.posts[0].post.as_ref().unwrap().content().text, "@reader #Tide");
    assert_eq!(page.posts[0].account.as_ref().unwrap().id, author);

    let to = |mentions: &[AccountId], tags: &[&str]| Edit {
        mentions: Some(mentions.to_vec()),
        hashtags: Some(tags.iter().map(ToString::to_string).collect()),
        ..Edit::default()
    };
    engine.edit(author, post, &to(&[other], &["sea"])).await.unwrap();
    assert_eq!(shown(reader, Query::mentions()).await, []);
    assert_eq!(shown(reader, Query::tag(tag("tide"))).await, []);
    drained(&engine).await;
    assert_eq!(shown(other, Query::mentions()).await, [post]);
    assert_eq!(shown(reader, Query::tag(tag("sea"))).await, [post]);
    engine.edit(author, post, &to(&[reader], &["tide"])).await.unwrap();
    assert_eq!(shown(reader, Query::mentions()).await, [post]);
    assert_eq!(shown(reader, Query::tag(tag("tide"))).await, [post]);
    engine.delete(author, post).await.unwrap();
    for query in [Query::mentions(), Query::tag(tag("tide")), Query::tag(tag("sea"))] {
        assert_eq!(shown(reader, query).await, []);
    }
}

#[tokio::test]
async fn mentions_of_nobody_and_of_who_goes_leave_no_list() {
    let engine = engine().await;
    let people = accounts(&engine, 3).await;
    let [author, gone, stays] = people[..] else { panic!("three were made") };
    let nobody = AccountId::new(77).unwrap();
    let of = |account| engine.store().sets().of_account::<AccountId>(account, "mentions").unwrap();
    for by in [author, gone] {
        let draft = Draft::text("all").mentions([gone, stays, nobody]).hashtags(["tide"]);
        engine.publish(by, &draft).await.unwrap();
    }
    drained(&engine).await;
    assert_eq!(of(gone).len().await.unwrap(), 1);
    assert_eq!(of(stays).len().await.unwrap(), 2);
    assert_eq!(of(nobody).len().await.unwrap(), 0);
    engine.delete_account(gone).await.unwrap();
    drained(&engine).await;
    assert_eq!(of(gone).len().await.unwrap(), 0);
    assert_eq!(of(stays).len().await.unwrap(), 1);
    assert_eq!(engine.as_reader(stays).read(&Query::tag(tag("tide"))).await.unwrap().posts.len(), 1);
    // Mentioned when it is gone already.
    engine.publish(author, &Draft::text("where are you?").mentions([gone])).await.unwrap();
    drained(&engine).await;
    assert_eq!(of(gone).len().await.unwrap(), 0);
}
