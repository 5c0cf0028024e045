//! Pages of several hashtags, and of an account's posts with some: compared with a model that looks at every post.

use std::collections::{BTreeMap, BTreeSet};

use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use tideline::post::{Draft, Edit, Tag, Visibility};
use tideline::{AccountId, Engine, ErrorKind, FURTHER_TAGS_MAX, FurtherTags, Page, PostId, Query, Range};

use super::{accounts, drained, engine};
use crate::harness::seeded;

const NAMES: [&str; 6] = ["ebb", "flow", "tide", "neap", "spring", "slack"];

type Names = BTreeSet<&'static str>;

/// What a page is asked for.
#[derive(Debug)]
struct Asked {
    own: &'static str,
    /// Of whose posts alone, whatever the page's own hashtag were.
    of: Option<AccountId>,
    any: Names,
    all: Names,
    none: Names,
}

impl Asked {
    fn new(random: &mut StdRng, people: &[AccountId]) -> Self {
        let mut some = |most: usize| -> Names {
            let many = random.random_range(0..=most);
            NAMES.sample(random, many).copied().collect()
        };
        let (any, all, none) = (some(FURTHER_TAGS_MAX), some(1), some(1));
        let of = people.choose(random).copied().filter(|_| random.random_bool(0.4));
        Self { own: NAMES.choose(random).unwrap(), of, any, all, none }
    }

    fn further(&self) -> FurtherTags {
        let tags = |names: &Names| names.iter().map(|name| tag(name)).collect();
        FurtherTags { any: tags(&self.any), all: tags(&self.all), none: tags(&self.none) }
    }

    fn query(&self) -> Query {
        self.of.map_or_else(|| Query::tag(tag(self.own)), Query::profile)
    }

    fn shows(&self, post: &Posted) -> bool {
        let Posted { author, names, is_public } = post;
        let is_there = match self.of {
            Some(of) => *author == of && (self.any.is_empty() || !names.is_disjoint(&self.any)),
            None => *is_public && (names.contains(self.own) || !names.is_disjoint(&self.any)),
        };
        is_there && self.all.is_subset(names) && self.none.is_disjoint(names)
    }
}

fn tag(name: &str) -> Tag {
    Tag::new(name).unwrap()
}

/// A post, as it is now.
struct Posted {
    author: AccountId,
    names: Names,
    is_public: bool,
}

struct History {
    engine: Engine,
    people: Vec<AccountId>,
    posts: BTreeMap<PostId, Posted>,
    random: StdRng,
}

impl History {
    fn names(&mut self) -> Names {
        let many = self.random.random_range(0..4);
        NAMES.sample(&mut self.random, many).copied().collect()
    }

    async fn step(&mut self) {
        let post = self.posts.keys().copied().collect::<Vec<_>>().choose(&mut self.random).copied();
        match (self.random.random_range(0..10), post) {
            (0, Some(post)) => {
                let author = self.posts[&post].author;
                self.engine.delete(author, post).await.unwrap();
                self.posts.remove(&post);
            }
            (1 | 2, Some(post)) => {
                let names = self.names();
                let hashtags = Some(names.iter().map(|name| (*name).to_owned()).collect());
                let posted = self.posts.get_mut(&post).unwrap();
                self.engine.edit(posted.author, post, &Edit { hashtags, ..Edit::default() }).await.unwrap();
                posted.names = names;
            }
            (drawn, _) => {
                let (author, names) = (*self.people.choose(&mut self.random).unwrap(), self.names());
                let is_public = drawn != 3;
                let visibility = if is_public { Visibility::Public } else { Visibility::Unlisted };
                let draft = Draft::text("so").hashtags(names.clone()).visibility(visibility);
                let id = self.engine.publish(author, &draft).await.unwrap().id;
                self.posts.insert(id, Posted { author, names, is_public });
            }
        }
    }

    async fn compare(&mut self) {
        drained(&self.engine).await;
        let asked = Asked::new(&mut self.random, &self.people);
        let (further, limit) = (asked.further(), self.random.random_range(1..9));
        let query = asked.query().limit(limit);
        let read = async |query: Query| -> Page {
            self.engine.as_nobody().read_tagged(&further, &query).await.unwrap()
        };
        let all = self.posts.iter().filter(|(_, post)| asked.shows(post)).map(|(id, _)| *id);
        let mut all: Vec<PostId> = all.collect();
        all.reverse();
        let (mut walked, mut next) = (Vec::new(), Some(query));
        while let Some(query) = next {
            let page = read(query).await;
            walked.extend(page.ids());
            next = page.next.map(|next| query.after(next));
        }
        assert_eq!(walked, all, "{asked:?}");
        let Some(from) = self.posts.keys().copied().collect::<Vec<_>>().choose(&mut self.random).copied()
        else {
            return;
        };
        let above: Vec<PostId> = all.iter().copied().filter(|id| *id > from).collect();
        let page = read(query.range(Range { min_id: Some(from), ..Range::default() })).await;
        assert_eq!(page.ids(), above[above.len().saturating_sub(limit)..], "{asked:?}, up from {from}");
        let page = read(query.range(Range { since_id: Some(from), ..Range::default() })).await;
        assert_eq!(page.ids(), above[..limit.min(above.len())], "{asked:?}, since {from}");
        let below: Vec<PostId> = all.iter().copied().filter(|id| *id < from).take(limit).collect();
        let page = read(query.range(Range { max_id: Some(from), ..Range::default() })).await;
        assert_eq!(page.ids(), below, "{asked:?}, below {from}");
    }
}

#[tokio::test]
async fn pages_of_several_hashtags_show_what_a_look_at_every_post_would() {
    let random = seeded("pages_of_several_hashtags_show_what_a_look_at_every_post_would");
    let engine = engine().await;
    let people = accounts(&engine, 4).await;
    let mut history = History { engine, people, posts: BTreeMap::new(), random };
    for step in 0..160 {
        history.step().await;
        if step % 8 == 7 {
            history.compare().await;
        }
    }
}

#[tokio::test]
async fn further_hashtags_have_a_bound_and_go_with_one() {
    let engine = engine().await;
    let tags: Vec<Tag> = NAMES.iter().take(FURTHER_TAGS_MAX + 1).map(|name| tag(name)).collect();
    let many = FurtherTags { all: tags, ..FurtherTags::default() };
    let refused = engine.as_nobody().read_tagged(&many, &Query::tag(tag("tide"))).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(refused.to_string().contains("too many hashtags in `all`: 5; at most 4 a page"), "{refused}");
    let further = FurtherTags::default();
    let refused = engine.as_nobody().read_tagged(&further, &Query::mentions()).await.unwrap_err();
    assert!(refused.to_string().contains("Mentions is no hashtag's and no account's"), "{refused}");
}
