//! What is done, decided beforehand from the seed: who does what, at which instance, in which order. The plan imagines
//! that everything is carried out one after another; clients then carry their parts out at the same time.

mod chats;
mod groups;
mod names;
mod posts;
mod scrolls;

use std::collections::BTreeSet;

use rand::rngs::StdRng;
use rand::seq::IteratorRandom;
use rand::{RngExt, SeedableRng};

use super::call::{Reach, State, Switch, Tie, Way, Which};
use super::steps::{Action, Place, Step, Walked};
use super::world::PostNo;
use crate::stats::whole;

/// Accounts that nearly everybody follows.
const FAMOUS: u64 = 4;
/// Posts that may be answered, reposted, changed: the newest so many.
const RECENT: usize = 200;

/// Hashtags that posts bear.
pub(super) const TAGS: u8 = 5;

/// After so many steps a few homes are read whole.
const WHOLE_EVERY: usize = 100;
const WHOLE_AT_ONCE: usize = 4;

/// How often, per step, two accounts change their mind about each other in quick succession.
const BURSTS: f64 = 0.03;

/// How often, per step, an account is created or deleted.
const COMING_AND_GOING: f64 = 0.004;

/// How often, per step, somebody does something about names.
const NAMING: f64 = 0.05;
/// How often, per step, somebody is reported, or a report resolved.
const REPORTING: f64 = 0.01;

/// What the plan imagines.
#[derive(Debug, Default)]
struct Imagined {
    follows: BTreeSet<(u64, u64)>,
    requests: BTreeSet<(u64, u64)>,
    switches: BTreeSet<(u64, u64, u8)>,
    ties: BTreeSet<(u64, Tie, PostNo)>,
    locked: BTreeSet<u64>,
    states: BTreeSet<u64>,
    gone: BTreeSet<u64>,
    /// Author, reach, whether it has an audience of its own; deleted posts are gone.
    posts: Vec<(PostNo, u64, Reach, bool)>,
    /// Plain reposts, with their authors.
    reposts: Vec<(PostNo, u64)>,
    next_post: PostNo,
    names: names::Imagined,
    chats: chats::Imagined,
    groups: groups::Imagined,
    scrolling: scrolls::Scrolling,
}

/// Makes the steps.
#[derive(Debug)]
pub(crate) struct Planner {
    random: StdRng,
    accounts: u64,
    clients: usize,
    /// Whether accounts are told by hand how their posts are delivered.
    crosses: bool,
    /// Whether only that is done which can be looked up when a failover may have lost it.
    is_plain: bool,
    /// Whether an older build, which knows less, carries some of it out.
    is_beside_an_older: bool,
    /// Whether most of it is such that HTTP can say it.
    is_over_http: bool,
    imagined: Imagined,
}

impl Planner {
    pub(crate) fn new(seed: u64, accounts: u64, clients: usize, crosses: bool) -> Self {
        Self {
            random: StdRng::seed_from_u64(seed),
            accounts,
            clients,
            crosses,
            is_plain: false,
            is_beside_an_older: false,
            is_over_http: false,
            imagined: Imagined {
                chats: chats::Imagined::new(seed),
                groups: groups::Imagined::new(seed),
                scrolling: scrolls::Scrolling::new(seed),
                ..Imagined::default()
            },
        }
    }

    /// Accounts come and go, and are named and reported, only where nothing that is acknowledged can be lost.
    pub(crate) fn only_what_can_be_looked_up(&mut self) {
        self.is_plain = true;
    }

    /// Nothing is done that the release before this one doesn't know.
    pub(crate) fn only_what_the_older_knows(&mut self) {
        self.is_beside_an_older = true;
    }

    /// Most posts, and changes of them, are such that HTTP can say them.
    pub(crate) fn mostly_what_http_can_say(&mut self) {
        self.is_over_http = true;
    }

    /// The accounts that are there from the beginning. Some are locked, some are pulled, most sign up.
    pub(crate) fn creations(&mut self) -> Vec<Step> {
        let ids = 1..=self.accounts;
        ids.map(|id| {
            let (is_locked, is_pulled) =
                (id > FAMOUS && self.random.random_bool(0.1), matches!(id, 2 | 9 | 10));
            self.create(id, is_locked, is_pulled)
        })
        .collect()
    }

    fn create(&mut self, account: u64, is_locked: bool, is_pulled: bool) -> Step {
        if is_locked {
            self.imagined.locked.insert(account);
        }
        let names = self.names_of(account);
        self.step(account, Action::Create { is_locked, is_pulled, names })
    }

    /// The follows that everything begins with.
    pub(crate) fn beginnings(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        for reader in 1..=self.accounts {
            let mut followed: BTreeSet<u64> = (1..=FAMOUS).collect();
            followed.retain(|author| self.random.random_bool(if *author < FAMOUS { 0.85 } else { 0.35 }));
            followed.extend((0..10).map(|_| self.somebody()));
            followed.remove(&reader);
            for author in followed {
                self.imagine_follow(reader, author);
                steps.push(self.step(reader, Action::Follow(author)));
            }
        }
        steps
    }

    /// So many further steps.
    pub(crate) fn steps(&mut self, count: usize) -> Vec<Step> {
        let (mut steps, mut whole_at, mut besides) = (Vec::with_capacity(count), WHOLE_EVERY, 0);
        // What chats, groups and scrolls do comes besides: the rest is what it is without them.
        while steps.len() < count + besides {
            if steps.len() >= whole_at + besides {
                whole_at += WHOLE_EVERY;
                steps.extend((0..WHOLE_AT_ONCE).map(|_| self.whole_home()));
            }
            if self.random.random_bool(BURSTS) {
                self.burst(&mut steps);
            } else {
                steps.push(self.next());
            }
            let others = [self.chat(), self.gather(), self.scroll(), self.browse()];
            for step in others.into_iter().flatten() {
                if steps.len() < count + besides {
                    steps.push(step);
                    besides += 1;
                }
            }
        }
        // A burst is not cut short: what it publishes would be awaited in vain.
        steps
    }

    /// So many posts, by everybody in turns.
    pub(crate) fn posts_by_all(&mut self, many: usize) -> Vec<Step> {
        let gone = &self.imagined.gone;
        let all: Vec<u64> = (1..=self.accounts).filter(|account| !gone.contains(account)).collect();
        let post = |author: &u64| {
            let plan = self.plain_post(*author);
            self.step(*author, Action::Publish(plan))
        };
        all.iter().cycle().take(many).map(post).collect()
    }

    /// Somebody whose post somebody else sees, both with names and a report, who reads its home by importance, and
    /// somebody who posts more than it may: whatever is broken on purpose is there, whatever the plan was.
    pub(crate) fn victims(&mut self) -> Vec<Step> {
        let (author, reader) = (self.accounts + 1, self.accounts + 2);
        self.accounts = reader;
        let post = self.plain_post(author);
        let (no, report) = (post.no, self.imagine_report(reader));
        let (own, (rusher, rush)) = (self.plain_post(reader), self.imagined.groups.rush(true));
        let create = |names| Action::Create { is_locked: false, is_pulled: false, names };
        let steps = [
            (author, create(names::own(author))),
            (reader, create(names::own(reader))),
            (reader, Action::Follow(author)),
            (author, Action::Publish(post)),
            (author, Action::Edit(no, Vec::new(), Some(vec![reader]))),
            (reader, Action::Report(report, author, None)),
            (reader, Action::Publish(own)),
            (reader, Action::Scroll { limit: 20 }),
            (rusher, Action::Gather(rush)),
        ];
        steps.into_iter().map(|(actor, action)| self.step(actor, action)).collect()
    }

    /// How many posts there will be.
    pub(crate) fn posts(&self) -> usize {
        self.imagined.next_post
    }

    fn step(&mut self, actor: u64, action: Action) -> Step {
        let client = usize::try_from(actor).unwrap_or(0) % self.clients;
        Step { actor, client, instance: self.random.random_range(0..1_000), action }
    }

    /// An account; low ones come often.
    fn somebody(&mut self) -> u64 {
        loop {
            let account = self.anybody();
            if !self.imagined.gone.contains(&account) {
                return account;
            }
        }
    }

    fn anybody(&mut self) -> u64 {
        let place: f64 = self.random.random::<f64>().powi(2);
        let span = f64::from(u32::try_from(self.accounts).unwrap_or(u32::MAX));
        (1 + whole((place * span).floor())).min(self.accounts)
    }

    /// Another account; often a neighbour, so that two clients keep meeting over one pair.
    fn somebody_but(&mut self, other: u64) -> u64 {
        let neighbour = if other.is_multiple_of(2) { other - 1 } else { other + 1 };
        let is_there = neighbour <= self.accounts && !self.imagined.gone.contains(&neighbour);
        if self.random.random_bool(0.25) && is_there {
            return neighbour;
        }
        loop {
            let account = self.somebody();
            if account != other {
                return account;
            }
        }
    }

    /// Accounts come and go.
    fn come_or_go(&mut self) -> Option<Step> {
        if self.random.random_bool(0.5) {
            self.accounts += 1;
            let (is_locked, is_pulled) = (self.random.random_bool(0.1), self.random.random_bool(0.1));
            return Some(self.create(self.accounts, is_locked, is_pulled));
        }
        let actor = self.somebody();
        if actor <= FAMOUS || self.imagined.gone.len() > usize::try_from(self.accounts / 4).unwrap_or(0) {
            return None;
        }
        self.imagined.gone.insert(actor);
        self.imagined.posts.retain(|post| post.1 != actor);
        self.imagined.follows.retain(|pair| pair.0 != actor && pair.1 != actor);
        self.imagined.requests.retain(|pair| pair.0 != actor && pair.1 != actor);
        self.imagined.switches.retain(|pair| pair.0 != actor && pair.1 != actor);
        self.imagined.ties.retain(|tie| tie.0 != actor);
        self.forget_names_of(actor);
        Some(self.step(actor, Action::Bury))
    }

    fn next(&mut self) -> Step {
        if !self.is_plain
            && self.random.random_bool(COMING_AND_GOING)
            && let Some(step) = self.come_or_go()
        {
            return step;
        }
        let mut actor = self.somebody();
        if !self.is_plain && self.random.random_bool(NAMING) {
            return self.name(actor);
        }
        if !self.is_plain && self.random.random_bool(REPORTING) {
            return self.report(actor);
        }
        let action = match self.random.random_range(0..1_000) {
            0..250 => self.publish(actor),
            250..275 => self.edit(actor),
            275..325 => self.delete(actor),
            325..335 if !self.is_plain => self.own_post(actor).map(Action::Republish),
            335..430 => self.follow(actor),
            430..490 => self.unfollow(actor),
            490..570 => Some(self.switch(actor)),
            570..595 => self.answer(actor),
            595..605 => Some(self.record(actor)),
            605..610 => Some(Action::Warm),
            610..613 => Some(Action::Sweep),
            613..615 => Some(Action::Spread),
            615..635 if self.crosses => {
                if self.random.random_bool(0.5) {
                    actor = self.random.random_range(1..=FAMOUS);
                }
                Some(self.cross())
            }
            635..720 => self.tie(actor),
            720..725 => self.own_repost(actor).map(Action::Unrepost),
            725..735 => self.own_post(actor).map(|no| Action::Hide(no, self.random.random_bool(0.6))),
            325..335 | 615..850 => None,
            850..900 => Some(self.walk(Walked::Which(Which::Home))),
            900..925 => Some(self.range()),
            925..960 => Some(self.list()),
            _ => Some(self.profile()),
        };
        let action = action.unwrap_or_else(|| self.read());
        self.step(actor, action)
    }

    /// What one account does about another, again and again: work that was begun meets its own undoing.
    fn burst(&mut self, steps: &mut Vec<Step>) {
        let reader = self.somebody();
        let author = self.somebody_but(reader);
        for _ in 0..self.random.random_range(2..8) {
            let (actor, action) = match self.random.random_range(0..12) {
                0..4 => {
                    self.imagine_follow(reader, author);
                    (reader, Some(Action::Follow(author)))
                }
                4..7 => {
                    self.imagined.follows.remove(&(reader, author));
                    (reader, Some(Action::Unfollow(author)))
                }
                7 => (author, Some(Action::Switch(Switch::Block, reader, true))),
                8 => (author, Some(Action::Switch(Switch::Block, reader, false))),
                9 => (author, self.publish(author)),
                10 => (author, Some(Action::Approve(reader))),
                _ => (reader, Some(Action::Read { limit: 40, hydrate: false })),
            };
            if let Some(action) = action {
                steps.push(self.step(actor, action));
            }
        }
        // A block that nobody takes back would be the end of most pairs.
        steps.push(self.step(author, Action::Switch(Switch::Block, reader, false)));
        self.imagined.switches.remove(&(author, reader, 1));
    }

    fn limit(&mut self) -> usize {
        if self.random.random_bool(0.2) {
            self.random.random_range(1..4)
        } else {
            self.random.random_range(4..41)
        }
    }

    fn read(&mut self) -> Action {
        Action::Read { limit: self.limit(), hydrate: self.random.random_bool(0.3) }
    }

    fn walk(&mut self, which: Walked) -> Action {
        let around = self.random.random_bool(0.5).then(|| self.recent()).flatten();
        let up = self.random.random_bool(0.4);
        let pages = self.random.random_range(1..8);
        Action::Walk { which, limits: (0..pages).map(|_| self.limit()).collect(), up, around }
    }

    /// All of a home: what deliveries of the next minutes will cut away is missed while it is there.
    fn whole_home(&mut self) -> Step {
        let actor = self.somebody();
        let (which, limits) = (Walked::Which(Which::Home), vec![100; 4]);
        self.step(actor, Action::Walk { which, limits, up: false, around: None })
    }

    fn range(&mut self) -> Action {
        let limit = self.limit();
        let (max, since, min) = match self.random.random_range(0..5) {
            0 => (self.place(), None, None),
            1 => (None, self.place(), None),
            2 => (self.place(), self.place(), None),
            3 => (None, None, self.place()),
            _ => (self.place(), None, self.place()),
        };
        Action::Range { limit, max, since, min }
    }

    fn profile(&mut self) -> Action {
        let (replies, reposts) = (self.random.random_bool(0.7), self.random.random_bool(0.7));
        let account = self.somebody();
        self.walk(Walked::Which(Which::Profile { account, replies, reposts }))
    }

    /// Posts by anybody: what mentions the reader, what bears a hashtag, what answers a post.
    fn list(&mut self) -> Action {
        let which = match self.random.random_range(0..3) {
            0 => Walked::Which(Which::Mentions),
            1 => Walked::Which(Which::Tag(self.random.random_range(0..TAGS))),
            _ => self.recent().map_or(Walked::Which(Which::Mentions), Walked::Replies),
        };
        self.walk(which)
    }

    fn place(&mut self) -> Option<Place> {
        Some(Place { post: self.recent()?, offset: self.random.random_range(-1..=1) })
    }

    fn imagine_follow(&mut self, reader: u64, author: u64) {
        if self.imagined.locked.contains(&author) {
            self.imagined.requests.insert((author, reader));
        } else {
            self.imagined.follows.insert((reader, author));
        }
    }

    fn follow(&mut self, actor: u64) -> Option<Action> {
        let author = self.somebody_but(actor);
        self.imagine_follow(actor, author);
        Some(Action::Follow(author))
    }

    fn unfollow(&mut self, actor: u64) -> Option<Action> {
        let followed = self.imagined.follows.range((actor, 0)..(actor + 1, 0));
        let author = followed.choose(&mut self.random)?.1;
        self.imagined.follows.remove(&(actor, author));
        Some(Action::Unfollow(author))
    }

    /// Mostly taken back again: histories are about changes.
    fn switch(&mut self, actor: u64) -> Action {
        let on = self.imagined.switches.range((actor, 0, 0)..(actor + 1, 0, 0));
        if let Some(switched) = on.choose(&mut self.random).copied()
            && self.random.random_bool(0.6)
        {
            self.imagined.switches.remove(&switched);
            return Action::Switch(what(switched.2), switched.1, false);
        }
        let followed = self.imagined.follows.range((actor, 0)..(actor + 1, 0)).choose(&mut self.random);
        let other = followed.map(|pair| pair.1).filter(|_| self.random.random_bool(0.6));
        let other = other.unwrap_or_else(|| self.somebody_but(actor));
        let number = self.random.random_range(0..if self.is_beside_an_older { 3 } else { 6 });
        self.imagined.switches.insert((actor, other, number));
        if number == 1 {
            self.imagined.follows.remove(&(actor, other));
            self.imagined.follows.remove(&(other, actor));
        }
        Action::Switch(what(number), other, true)
    }

    fn answer(&mut self, actor: u64) -> Option<Action> {
        let waiting = self.imagined.requests.range((actor, 0)..(actor + 1, 0));
        let requester = waiting.choose(&mut self.random)?.1;
        self.imagined.requests.remove(&(actor, requester));
        if self.random.random_bool(0.3) {
            return Some(Action::Reject(requester));
        }
        self.imagined.follows.insert((requester, actor));
        Some(Action::Approve(requester))
    }

    fn cross(&mut self) -> Action {
        Action::Cross(match self.random.random_range(0..5) {
            0 | 1 => Some(Way::Pull),
            2 | 3 => Some(Way::Push),
            _ => None,
        })
    }

    fn record(&mut self, actor: u64) -> Action {
        if self.imagined.states.remove(&actor) {
            return Action::State(State::Active);
        }
        match self.random.random_range(0..4) {
            0 => {
                self.imagined.states.insert(actor);
                Action::State(if self.random.random_bool(0.5) { State::Suspended } else { State::Limited })
            }
            _ if self.imagined.locked.remove(&actor) => Action::Lock(false),
            _ => {
                self.imagined.locked.insert(actor);
                Action::Lock(true)
            }
        }
    }
}

fn what(number: u8) -> Switch {
    match number {
        0 => Switch::Mute,
        1 => Switch::Block,
        2 => Switch::Hide,
        3 => Switch::Note,
        4 => Switch::Reposts,
        _ => Switch::LeftOut,
    }
}
