//! Pages of chosen accounts, as the timelines of lists are: compared with a model that looks at every post.

use std::collections::{BTreeMap, BTreeSet};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use tideline::post::{Draft, PostRef, Visibility};
use tideline::{
    AccountId, AccountState, AccountUpdate, CHOSEN_MAX, ChosenAuthors, ChosenReplies, Engine, EngineSettings,
    ErrorKind, Page, PostId, Query, Range, RankedFeed,
};

use super::archive::{Archived, publish};
use super::ranked::ranked_scroll;
use super::{accounts, drained, engine, small};
use crate::harness::seeded;

const RULES: [ChosenReplies; 3] = [ChosenReplies::Followed, ChosenReplies::Chosen, ChosenReplies::None];

/// What the model knows of a post.
#[derive(Clone, Copy)]
struct Told {
    author: AccountId,
    reply_to: Option<AccountId>,
    reposts: Option<PostId>,
    visibility: Visibility,
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
    without_reposts: Edges,
}

impl Model {
    /// Whether the reader may see a post at all, and if it is a repost, what that reposts.
    fn may_see(&self, reader: AccountId, post: PostId) -> bool {
        let Some(told) = self.posts.get(&post) else { return false };
        let author = told.author;
        if self.suspended.contains(&author) {
            return false;
        }
        let is_own = author == reader;
        let keeps_away = self.blocks.contains(&(author, reader))
            || self.hides.contains(&(author, reader))
            || self.blocks.contains(&(reader, author));
        let is_for_all = told.visibility == Visibility::Public;
        let is_for_reader = is_for_all || self.follows.contains(&(reader, author));
        (is_own || (!keeps_away && is_for_reader)) && told.reposts.is_none_or(|of| self.may_see(reader, of))
    }

    fn counts(&self, reader: AccountId, author: AccountId) -> bool {
        author == reader || self.follows.contains(&(reader, author))
    }

    fn shows(&self, reader: AccountId, chosen: &ChosenAuthors, post: PostId) -> bool {
        let told = self.posts[&post];
        let author = told.author;
        if !chosen.authors.contains(&author) || !self.counts(reader, author) || !self.may_see(reader, post) {
            return false;
        }
        let is_muted = |whom: AccountId| self.mutes.contains(&(reader, whom));
        let is_others = author != reader;
        let of = told.reposts.map(|of| self.posts[&of].author);
        let is_left_out = told.reposts.is_some() && self.without_reposts.contains(&(reader, author));
        if is_others && (is_muted(author) || of.is_some_and(is_muted) || is_left_out) {
            return false;
        }
        let Some(to) = told.reply_to else { return true };
        if is_others && (is_muted(to) || self.blocks.contains(&(reader, to))) {
            return false;
        }
        to == author
            || to == reader
            || match chosen.replies {
                ChosenReplies::Followed => self.follows.contains(&(reader, to)),
                ChosenReplies::Chosen => chosen.authors.contains(&to) && self.counts(reader, to),
                _ => false,
            }
    }

    /// What shows between two ids, oldest first.
    fn between(&self, reader: AccountId, chosen: &ChosenAuthors, (above, below): (u64, u64)) -> Vec<PostId> {
        let all = self.posts.keys().copied();
        all.filter(|id| above < id.get() && id.get() < below && self.shows(reader, chosen, *id)).collect()
    }

    /// A page of these, newest first: several reposts of one original show once, at the newest.
    fn page(&self, ids: impl Iterator<Item = PostId>, limit: usize, is_up: bool) -> Vec<PostId> {
        let (mut page, mut reposted) = (Vec::new(), BTreeMap::new());
        for id in ids {
            if page.len() == limit {
                break;
            }
            if let Some(of) = self.posts[&id].reposts {
                match reposted.get(&of) {
                    Some(_) if !is_up => continue,
                    Some(older) => page.retain(|post| post != older),
                    None => {}
                }
                reposted.insert(of, id);
            }
            page.push(id);
        }
        if is_up {
            page.reverse();
        }
        page
    }
}

struct History {
    engine: Engine,
    people: Vec<AccountId>,
    model: Model,
    random: StdRng,
    /// Whether anybody reposts.
    has_reposts: bool,
    /// Posts that there ever were: which of them are drawn, to be deleted say, goes by their ids, so by the time.
    published: usize,
}

impl History {
    fn person(&mut self) -> AccountId {
        *self.people.choose(&mut self.random).unwrap()
    }

    async fn publish(&mut self) {
        let author = self.person();
        let posts: Vec<PostId> = self.model.posts.keys().copied().collect();
        let other = posts.choose(&mut self.random).map(|id| (*id, self.model.posts[id]));
        let visibility =
            if self.random.random_ratio(1, 5) { Visibility::Followers } else { Visibility::Public };
        let mut told = Told { author, reply_to: None, reposts: None, visibility };
        let draft = match other {
            Some((id, of)) if self.has_reposts && self.random.random_ratio(1, 4) => {
                (told.reposts, told.visibility) = (Some(id), Visibility::Public);
                if of.reposts.is_some() || of.visibility != Visibility::Public {
                    return;
                }
                Draft::repost(PostRef { id, author: of.author })
            }
            Some((id, of)) if of.reposts.is_none() && self.random.random_ratio(1, 2) => {
                told.reply_to = Some(of.author);
                Draft::text("so").reply_to(PostRef { id, author: of.author }).visibility(visibility)
            }
            _ => Draft::text("hello").visibility(visibility),
        };
        // What its author may not do comes to nothing.
        let Ok(published) = self.engine.publish(author, &draft).await else { return };
        if !published.is_repeat {
            self.model.posts.insert(published.id, told);
            self.published += 1;
        }
    }

    async fn change(&mut self) {
        let (one, other) = (self.person(), self.person());
        if one == other {
            return;
        }
        // Who is suspended only takes back: what it may not do comes to nothing.
        let (pair, engine, model) = ((one, other), &self.engine, &mut self.model);
        match self.random.random_range(0..12) {
            0..=3 => {
                let is_made = engine.follow(one, other).await.is_ok();
                model.follows.extend(is_made.then_some(pair));
            }
            4 => {
                engine.unfollow(one, other).await.unwrap();
                model.follows.remove(&pair);
                model.without_reposts.remove(&pair);
            }
            5 if model.mutes.remove(&pair) => drop(engine.unmute(one, other).await.unwrap()),
            5 => {
                let is_made = engine.mute(one, other).await.is_ok();
                model.mutes.extend(is_made.then_some(pair));
            }
            6 if model.blocks.remove(&pair) => drop(engine.unblock(one, other).await.unwrap()),
            6 if self.random.random_ratio(1, 2) => {
                let is_made = engine.block(one, other).await.is_ok();
                if is_made {
                    // Unblocked before that was carried out, the other one goes on following.
                    drained(engine).await;
                    model.blocks.insert(pair);
                    for pair in [pair, (other, one)] {
                        model.follows.remove(&pair);
                        model.without_reposts.remove(&pair);
                    }
                }
            }
            7 if model.hides.remove(&pair) => drop(engine.show_to(one, other).await.unwrap()),
            7 => {
                let is_made = engine.hide_from(one, other).await.is_ok();
                model.hides.extend(is_made.then_some(pair));
            }
            8 if model.follows.contains(&pair) => {
                let is_made = engine.hide_reposts(one, other).await.is_ok();
                model.without_reposts.extend(is_made.then_some(pair));
            }
            9 if self.random.random_ratio(1, 4) => {
                let is_suspended = !model.suspended.remove(&one);
                if is_suspended {
                    model.suspended.insert(one);
                }
                let state = if is_suspended { AccountState::Suspended } else { AccountState::Active };
                let update = AccountUpdate { state: Some(state), ..AccountUpdate::default() };
                engine.update_account(one, &update).await.unwrap();
            }
            10 => {
                let posts: Vec<PostId> = model.posts.keys().copied().collect();
                let Some(gone) = posts.choose(&mut self.random) else { return };
                engine.delete(model.posts[gone].author, *gone).await.unwrap();
                model.posts.remove(gone);
                // What reposts it shows nothing any more.
                model.posts.retain(|_, told| told.reposts != Some(*gone));
            }
            _ => {}
        }
    }

    /// Reads as somebody, some of the accounts, in every way.
    async fn compare(&mut self) {
        drained(&self.engine).await;
        let reader = self.person();
        let count = self.random.random_range(0..=self.people.len());
        let authors: Vec<AccountId> = self.people.sample(&mut self.random, count).copied().collect();
        let chosen = ChosenAuthors::of(authors).replies(*RULES.choose(&mut self.random).unwrap());
        let limit = self.random.random_range(1..12);
        let all = self.model.between(reader, &chosen, (0, u64::MAX));
        let read =
            async |query: Query| self.engine.as_reader(reader).read_chosen(&chosen, &query).await.unwrap();
        let big = read(Query::home().limit(100)).await;
        assert_eq!(big.ids(), self.model.page(all.iter().rev().copied(), 100, false), "{chosen:?}");

        let (mut query, mut below, mut met) = (Query::home().limit(limit).hydrated(), u64::MAX, Vec::new());
        loop {
            let page: Page = read(query).await;
            let older = self.model.between(reader, &chosen, (0, below));
            assert_eq!(
                page.ids(),
                self.model.page(older.into_iter().rev(), limit, false),
                "down from {below}"
            );
            assert!(page.posts.iter().all(|post| post.post.is_some() && post.account.is_some()));
            met.extend(page.ids());
            let (Some(next), Some(last)) = (page.next, page.ids().pop()) else { break };
            // In either way of saying it.
            below = last.get();
            let range = Range { max_id: Some(last), ..Range::default() };
            query = if self.random.random() {
                query.after(next)
            } else {
                Query { cursor: None, ..query }.range(range)
            };
        }
        let (mut above, mut met_up) = (PostId::from_u64(1).unwrap(), Vec::new());
        loop {
            let range = Range { min_id: Some(above), ..Range::default() };
            let page = read(Query::home().limit(limit).range(range)).await;
            let newer = self.model.between(reader, &chosen, (above.get(), u64::MAX));
            assert_eq!(page.ids(), self.model.page(newer.into_iter(), limit, true), "up from {above}");
            met_up.extend(page.ids().into_iter().rev());
            let Some(newest) = page.ids().first().copied() else { break };
            above = newest;
        }
        let shows_twice = self.model.posts.values().filter_map(|told| told.reposts).count() > 0;
        let ranked = ranked_scroll(&self.engine, reader, &RankedFeed::Chosen(chosen.clone()), limit).await;
        let each: BTreeSet<PostId> = ranked.iter().copied().collect();
        assert_eq!(each.len(), ranked.len(), "by importance a post stands twice");
        assert!(each.iter().all(|id| all.contains(id)));
        if !shows_twice {
            assert!(all.iter().all(|id| each.contains(id)), "by importance a post is missing");
            assert_eq!(met, all.iter().rev().copied().collect::<Vec<_>>());
            assert_eq!(met_up, all);
        }
        if let Some(since_id) = all.choose(&mut self.random).copied() {
            let range = Range { since_id: Some(since_id), ..Range::default() };
            let newer = self.model.between(reader, &chosen, (since_id.get(), u64::MAX));
            let page = read(Query::home().limit(limit).range(range)).await;
            assert_eq!(page.ids(), self.model.page(newer.into_iter().rev(), limit, false));
        }
    }
}

async fn random_history(test: &str, has_reposts: bool, settings: EngineSettings) {
    for part in 0..3 {
        let seed: u64 = seeded(test).random::<u64>() + part;
        let engine = super::engine_with(super::tenant(40), settings.clone()).await;
        let people = accounts(&engine, 7).await;
        let random = StdRng::seed_from_u64(seed);
        let model = Model::default();
        let mut history = History { engine, people, model, random, has_reposts, published: 0 };
        for _ in 0..25 {
            for _ in 0..8 {
                history.publish().await;
                history.change().await;
            }
            history.compare().await;
        }
        assert!(history.published > 60, "{}", history.published);
    }
}

#[tokio::test]
async fn pages_of_chosen_accounts_show_what_a_look_at_every_post_would() {
    random_history("chosen", true, small()).await;
}

#[tokio::test]
async fn pages_of_chosen_accounts_together_are_one_big_page_both_ways() {
    random_history("chosen without reposts", false, small()).await;
}

#[tokio::test]
async fn a_list_goes_on_where_homes_have_ended_and_in_the_archive() {
    for archived in Archived::each().await {
        let engine = &archived.engine;
        let [reader, ada, ben, cid] = accounts(engine, 4).await[..] else { panic!("four were made") };
        for author in [ada, ben, cid] {
            engine.follow(reader, author).await.unwrap();
        }
        let mut posts = Vec::new();
        for _ in 0..8 {
            posts.extend(publish(engine, ada, 5).await);
            posts.extend(publish(engine, ben, 5).await);
            publish(engine, cid, 2).await;
        }
        posts.sort_unstable();
        // Of each twelve are kept, and of few all.
        archived.left_in_memory(12 + 12 + 16).await;
        let chosen = ChosenAuthors::of([ada, ben]);
        let read = async |query: Query| engine.as_reader(reader).read_chosen(&chosen, &query).await.unwrap();
        let (mut query, mut down) = (Query::home().limit(9).hydrated(), Vec::new());
        loop {
            let page = read(query).await;
            down.extend(page.ids());
            let Some(next) = page.next else { break };
            query = query.after(next);
        }
        down.reverse();
        assert_eq!(down, posts);
        let (mut above, mut up) = (PostId::from_u64(1).unwrap(), Vec::new());
        loop {
            let range = Range { min_id: Some(above), ..Range::default() };
            let page = read(Query::home().limit(9).range(range)).await;
            up.extend(page.ids().into_iter().rev());
            let Some(newest) = page.ids().first().copied() else { break };
            above = newest;
        }
        assert_eq!(up, posts);
    }
}

#[tokio::test]
async fn what_is_no_part_of_a_home_and_too_many_accounts_are_refused() {
    let engine = engine().await;
    let [reader, author] = accounts(&engine, 2).await[..] else { panic!("two were made") };
    let many = ChosenAuthors::of((1..=CHOSEN_MAX as u64 + 1).map(crate::harness::account));
    let one = ChosenAuthors::of([author]);
    for (chosen, query) in
        [(&many, Query::home()), (&one, Query::profile(author)), (&one, Query::home().limit(101))]
    {
        let refused = engine.as_reader(reader).read_chosen(chosen, &query).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    }
    let nobody = engine.as_reader(crate::harness::account(77)).read_chosen(&one, &Query::home()).await;
    assert_eq!(nobody.unwrap_err().kind(), ErrorKind::NotFound);
    let most = ChosenAuthors::of((1..CHOSEN_MAX as u64).map(crate::harness::account).chain([author]));
    engine.follow(reader, author).await.unwrap();
    let post = engine.publish(author, &Draft::text("x")).await.unwrap().id;
    let page = engine.as_reader(reader).read_chosen(&most, &Query::home()).await.unwrap();
    assert_eq!((page.ids(), page.next), (vec![post], None));
    let none = engine.as_reader(reader).read_chosen(&ChosenAuthors::default(), &Query::home()).await.unwrap();
    assert_eq!(none, Page::default());
    assert_eq!(walk_chosen_by(&engine, author, &one).await, [post], "it may choose itself");
}

async fn walk_chosen_by(engine: &Engine, reader: AccountId, chosen: &ChosenAuthors) -> Vec<PostId> {
    engine.as_reader(reader).read_chosen(chosen, &Query::home()).await.unwrap().ids()
}
