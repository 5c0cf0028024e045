//! Pages of several hashtags: compared with a model that looks at every post.

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
    any: Names,
    all: Names,
    none: Names,
}

impl Asked {
    fn of(random: &mut StdRng) -> Self {
        let mut some = |most: usize| -> Names {
            let many = random.random_range(0..=most);
            NAMES.sample(random, many).copied().collect()
        };
        let (any, all, none) = (some(FURTHER_TAGS_MAX), some(1), some(1));
        Self { own: NAMES.choose(random).unwrap(), any, all, none }
    }

    fn further(&self) -> FurtherTags {
        let tags = |names: &Names| names.iter().map(|name| tag(name)).collect();
        FurtherTags { any: tags(&self.any), all: tags(&self.all), none: tags(&self.none) }
    }

    fn shows(&self, has: &Names) -> bool {
        let is_any = has.contains(self.own) || !has.is_disjoint(&self.any);
        is_any && self.all.is_subset(has) && self.none.is_disjoint(has)
    }
}

fn tag(name: &str) -> Tag {
    Tag::new(name).unwrap()
}

struct History {
    engine: Engine,
    people: Vec<AccountId>,
    /// Public posts, with their authors and what they bear now.
    posts: BTreeMap<PostId, (AccountId, Names)>,
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
                let author = self.posts[&post].0;
                self.engine.delete(author, post).await.unwrap();
                self.posts.remove(&post);
            }
            (1 | 2, Some(post)) => {
                let names = self.names();
                let hashtags = Some(names.iter().map(|name| (*name).to_owned()).collect());
                let (author, has) = self.posts.get_mut(&post).unwrap();
                self.engine.edit(*author, post, &Edit { hashtags, ..Edit::default() }).await.unwrap();
                *has = names;
            }
            (3, _) => {
                let (author, names) = (*self.people.choose(&mut self.random).unwrap(), self.names());
                let draft = Draft::text("for few").hashtags(names).visibility(Visibility::Unlisted);
                self.engine.publish(author, &draft).await.unwrap();
            }
            _ => {
                let (author, names) = (*self.people.choose(&mut self.random).unwrap(), self.names());
                let draft = Draft::text("so").hashtags(names.clone());
                let id = self.engine.publish(author, &draft).await.unwrap().id;
                self.posts.insert(id, (author, names));
            }
        }
    }

    async fn compare(&mut self) {
        drained(&self.engine).await;
        let asked = Asked::of(&mut self.random);
        let (further, limit) = (asked.further(), self.random.random_range(1..9));
        let query = Query::tag(tag(asked.own)).limit(limit);
        let read = async |query: Query| -> Page {
            self.engine.as_nobody().read_tagged(&further, &query).await.unwrap()
        };
        let all = self.posts.iter().filter(|(_, (_, has))| asked.shows(has)).map(|(id, _)| *id);
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
    assert!(refused.to_string().contains("Mentions is no hashtag's"), "{refused}");
}
