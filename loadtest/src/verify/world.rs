//! The model: everything that was said to the engine, and when. Naive on purpose: no timelines, only facts.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::RangeInclusive;

use super::call::{Reach, State, Switch, Tie};
use super::chats::ChatFacts;
use super::facts::{Change, Fact, OPEN, Time, Tri, UNTIL_DRAINED, Window};
use super::groups::GroupFacts;
use super::names::Names;
use super::reports::{ReportFact, ReportNo};
use super::slept::LateWrite;
use super::suspects::Suspect;

/// A post by its place in the plan.
pub(crate) type PostNo = usize;

/// What a post says, and an edit changes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Said {
    pub(crate) text: String,
    pub(crate) tags: Vec<u8>,
    pub(crate) mentions: Vec<u64>,
}

/// What is known about a post.
#[derive(Debug, Clone)]
pub(crate) struct PostFact {
    pub(crate) author: u64,
    pub(crate) reach: Reach,
    pub(crate) only_to: Vec<u64>,
    pub(crate) not_to: Vec<u64>,
    pub(crate) original: Option<PostNo>,
    /// Whether it says something itself.
    pub(crate) has_text: bool,
    pub(crate) parent: Option<PostNo>,
    pub(crate) start: Time,
    /// When it was acknowledged.
    pub(crate) acknowledged: Time,
    /// When its delivery was done.
    pub(crate) delivered: Time,
    /// When it was on all lists that it names, at the latest.
    pub(crate) listed: Time,
    pub(crate) id: Option<u64>,
    pub(crate) deleted: Option<Change<()>>,
    /// Whether a moderator hides it.
    pub(crate) hidden: Fact<bool>,
    pub(crate) edits: Vec<Change<Said>>,
    pub(crate) said: Said,
    /// Else its author's lock has decided how far it goes.
    pub(crate) says_reach: bool,
    pub(crate) has_token: bool,
    /// Whether it was said to be on replicas.
    pub(crate) is_replicated: bool,
    /// It was refused in the end, but an earlier sending may have been carried out.
    pub(crate) is_unsure: bool,
    /// The instance that published it will say when it is delivered.
    pub(crate) is_awaited: bool,
}

impl PostFact {
    pub(crate) fn is_plain_repost(&self) -> bool {
        self.original.is_some() && !self.has_text
    }

    pub(crate) fn exists(&self, window: Window) -> Tri {
        match &self.deleted {
            _ if self.start > window.to => Tri::No,
            Some(deleted) if deleted.end <= window.from => Tri::No,
            Some(deleted) if deleted.start <= window.to => Tri::Maybe,
            _ if self.acknowledged > window.from => Tri::Maybe,
            _ => Tri::Yes,
        }
    }

    /// What it may have said.
    fn all_said(&self, window: Window) -> impl Iterator<Item = &Said> {
        let before = self.edits.partition_point(|edit| edit.end <= window.from);
        let base = before.checked_sub(1).map_or(&self.said, |last| &self.edits[last].value);
        let later = self.edits[before..].iter().filter(move |edit| edit.start <= window.to);
        std::iter::once(base).chain(later.map(|edit| &edit.value))
    }

    /// The texts that it may have had.
    pub(crate) fn texts(&self, window: Window) -> Vec<&str> {
        self.all_said(window).map(|said| said.text.as_str()).collect()
    }

    /// Whether anybody may pass it on.
    pub(crate) fn is_for_all(&self) -> bool {
        let is_open = matches!(self.reach, Reach::Public | Reach::Unlisted);
        is_open && self.only_to.is_empty() && self.not_to.is_empty()
    }

    /// Whether it bears a hashtag, where everybody may look for it.
    pub(crate) fn bears(&self, tag: u8, window: Window) -> Tri {
        if self.reach != Reach::Public || !self.only_to.is_empty() {
            return Tri::No;
        }
        self.says(window, |said| said.tags.contains(&tag))
    }

    /// Whether it mentions an account.
    pub(crate) fn mentions(&self, account: u64, window: Window) -> Tri {
        self.says(window, |said| said.mentions.contains(&account))
    }

    fn says(&self, window: Window, is_so: impl Fn(&Said) -> bool) -> Tri {
        self.may_say(window, |said| Tri::from(is_so(said)))
    }

    /// Whether something is so of what it says, whatever of that a reader may have met.
    pub(crate) fn may_say(&self, window: Window, is_so: impl Fn(&Said) -> Tri) -> Tri {
        let all = self.all_said(window).map(is_so);
        all.reduce(|one, other| if one == other { one } else { Tri::Maybe }).unwrap_or(Tri::No)
    }
}

/// How many of these there are: at least, and at most.
pub(crate) fn range(all: impl Iterator<Item = Tri>) -> RangeInclusive<u64> {
    let count = |(least, most), is| (least + u64::from(is == Tri::Yes), most + u64::from(is != Tri::No));
    let (least, most) = all.fold((0, 0), count);
    least..=most
}

/// What one account has asked of a locked one.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Request {
    /// When it was made.
    pub(crate) began: Time,
    /// When it was acknowledged as requested, if nothing has ended it since.
    pub(crate) asked: Option<Time>,
    /// When an approval began that was acknowledged, of this very request.
    pub(crate) approved: bool,
    /// The other side has done something besides.
    pub(crate) is_disturbed: bool,
}

/// A pair: who, about whom.
pub(crate) type Pair = (u64, u64);

/// Everything.
#[derive(Debug, Default)]
pub(crate) struct World {
    /// What others do shows after so many microseconds.
    pub(crate) visible_within: Time,
    /// When the work was last seen to be drained.
    pub(crate) drained: Time,
    /// Those that are not deleted.
    pub(crate) accounts: Vec<u64>,
    pub(crate) states: HashMap<u64, Fact<State>>,
    /// Those whose followers are all summed up since the work was drained: their records tell how many they are.
    pub(crate) summed: BTreeSet<u64>,
    pub(crate) follows: HashMap<Pair, Fact<bool>>,
    pub(crate) switches: HashMap<(Switch, u64, u64), Fact<bool>>,
    pub(crate) requests: HashMap<Pair, Request>,
    /// When the other side was last told that its answer has been taken.
    pub(crate) answers: HashMap<Pair, Window>,
    /// Whether follows of an account need its approval.
    pub(crate) locks: HashMap<u64, Fact<bool>>,
    pub(crate) ties: HashMap<(Tie, u64, PostNo), Fact<bool>>,
    pub(crate) posts: Vec<Option<PostFact>>,
    pub(crate) by_id: BTreeMap<u64, PostNo>,
    pub(crate) names: Names,
    pub(crate) reports: BTreeMap<ReportNo, ReportFact>,
    pub(crate) chats: ChatFacts,
    pub(crate) groups: GroupFacts,
    /// Whether failovers may lose what was acknowledged, and when they may have.
    pub(crate) may_lose: bool,
    /// Whether an older build reads too, which brings posts home that mention whom their reader mutes or blocks.
    pub(crate) is_beside_an_older: bool,
    /// Whether replicas take over: what nobody has fenced they may not know.
    pub(crate) servers_take_over: bool,
    pub(crate) losses: Vec<Window>,
    /// Who was told to wait for an answer since the work was drained, and when.
    pub(crate) told_to_wait: Vec<(Pair, Window)>,
    /// When somebody was publishing, and was not told at once what came of it.
    pub(crate) unsure_publishes: Vec<(u64, Window)>,
    /// Writes that an instance goes on with, or not, when it wakes.
    pub(crate) late_writes: Vec<LateWrite>,
    /// When instances slept, with whatever tasks they had, until they were killed.
    pub(crate) sleeps: Vec<Window>,
    /// Follows that are lost, or whose edge may have been written by one that had slept: who was told of them lists
    /// them for a while.
    pub(crate) strays: HashMap<Pair, Time>,
    /// Whether these are waited for.
    pub(crate) waits_for_strays: bool,
    /// Whether nobody writes again what an archive has lost.
    pub(crate) loses_for_good: bool,
    /// Answers that are looked at once everything that overlaps them is known.
    pub(crate) suspects: Vec<Suspect>,
}

impl World {
    pub(crate) fn post(&self, no: PostNo) -> Option<&PostFact> {
        self.posts.get(no).and_then(Option::as_ref)
    }

    pub(crate) fn post_mut(&mut self, no: PostNo) -> Option<&mut PostFact> {
        self.posts.get_mut(no).and_then(Option::as_mut)
    }

    /// The id of a post and its author, once it is there.
    pub(crate) fn reference(&self, no: PostNo) -> Option<(u64, u64)> {
        let post = self.post(no)?;
        Some((post.id?, post.author))
    }

    pub(crate) fn follow_fact(&mut self, pair: Pair) -> &mut Fact<bool> {
        self.follows.entry(pair).or_insert_with(|| Fact::new(false))
    }

    pub(crate) fn switch_fact(&mut self, what: Switch, by: u64, other: u64) -> &mut Fact<bool> {
        self.switches.entry((what, by, other)).or_insert_with(|| Fact::new(false))
    }

    pub(crate) fn tie_fact(&mut self, what: Tie, by: u64, post: PostNo) -> &mut Fact<bool> {
        self.ties.entry((what, by, post)).or_insert_with(|| Fact::new(false))
    }

    pub(crate) fn is_tied(&self, what: Tie, by: u64, post: PostNo, window: Window) -> Tri {
        self.ties.get(&(what, by, post)).map_or(Tri::No, |fact| fact.is(window, |is| is))
    }

    /// What is meant by a post when it is liked, answered or passed on: of a plain repost its original.
    pub(crate) fn subject(&self, no: PostNo) -> PostNo {
        let post = self.post(no).filter(|post| post.is_plain_repost());
        post.and_then(|post| post.original).unwrap_or(no)
    }

    pub(crate) fn is_following(&self, reader: u64, author: u64, window: Window) -> Tri {
        self.follows.get(&(reader, author)).map_or(Tri::No, |fact| fact.is(window, |is| is))
    }

    /// Whether one is listed among who follows another: for a while, also one whose follow is lost.
    pub(crate) fn is_listed(&self, pair: Pair, window: Window) -> Tri {
        let is_following = self.is_following(pair.0, pair.1, window);
        if self.is_stray(pair, window.to) { is_following.or(Tri::Maybe) } else { is_following }
    }

    /// How many follow an account: at least, and at most.
    pub(crate) fn followers(&self, author: u64, window: Window) -> RangeInclusive<u64> {
        range(self.accounts.iter().map(|reader| self.is_listed((*reader, author), window)))
    }

    pub(crate) fn is_on(&self, what: Switch, by: u64, other: u64, window: Window) -> Tri {
        self.switches.get(&(what, by, other)).map_or(Tri::No, |fact| fact.is(window, |is| is))
    }

    /// Whether one waits for the answer of another.
    pub(crate) fn waits(&self, pair: Pair) -> Tri {
        let Some(request) = self.requests.get(&pair) else { return Tri::No };
        let Some(asked) = request.asked else { return Tri::Maybe };
        // What is carried out for somebody who is suspended just then comes to nothing.
        let is_same = |account: &u64| {
            self.states.get(account).is_some_and(|fact| fact.changes.iter().all(|change| change.end <= asked))
        };
        let is_untouched = !request.approved && !request.is_disturbed;
        if is_untouched && is_same(&pair.0) && is_same(&pair.1) { Tri::Yes } else { Tri::Maybe }
    }

    /// Nothing is under way any more: posts are wherever they go, and what is deleted has gone.
    pub(crate) fn drained(&mut self, now: Time) {
        self.drained = now;
        for (_, window) in &mut self.unsure_publishes {
            window.to = window.to.min(now);
        }
        for post in self.posts.iter_mut().flatten() {
            post.delivered = post.delivered.min(now);
            post.listed = post.listed.min(now);
            if let Some(deleted) = &mut post.deleted {
                deleted.end = deleted.end.min(now);
            }
        }
    }

    /// Whether a post may show that nobody has been told of: what a try has written shows before it is on replicas, and
    /// is gone if the server fails over before it is. The next try writes another one, and a cache still has the first.
    pub(crate) fn may_be_unheard_of(&self, author: u64, window: Window) -> bool {
        let window = Window { from: window.from.saturating_sub(self.visible_within), ..window };
        let overlaps = |other: &Window| other.from <= window.to && window.from <= other.to;
        let is_unsure = self.unsure_publishes.iter().any(|(by, when)| *by == author && overlaps(when));
        is_unsure || self.is_at_risk(window.from, window.to)
    }

    /// Posts of an author of which nobody has been told whether they are there, and when that was tried; the last of
    /// these.
    pub(crate) fn unsure_posts(&self, author: u64) -> String {
        let posts = self.posts.iter().enumerate().filter_map(|(no, post)| Some((no, post.as_ref()?)));
        let unsure = posts.filter(|(_, post)| post.author == author && post.start > 0 && post.id.is_none());
        let unsure: Vec<_> = unsure.map(|(no, post)| (no, post.start, post.is_unsure, &post.said)).collect();
        let tried: Vec<_> = self.unsure_publishes.iter().filter(|(by, _)| *by == author).collect();
        let last = |many: usize| many.saturating_sub(8);
        format!("{:?}, tried {:?}", &unsure[last(unsure.len())..], &tried[last(tried.len())..])
    }

    /// A post was acknowledged.
    pub(crate) fn published(&mut self, no: PostNo, id: u64, end: Time) {
        if let Some(post) = self.post_mut(no) {
            post.id = Some(id);
            post.acknowledged = end;
            self.by_id.insert(id, no);
        }
    }

    /// `reader` called follow, and was told whether it follows now (or has only asked).
    pub(crate) fn followed(&mut self, pair: Pair, start: Time, end: Time, follows: bool) {
        if follows {
            self.suspects.push(Suspect::Follows(pair, Window { from: start, to: end }));
            let is_gone = self.is_deleted(pair.1);
            let is_locked = self.lock(pair.1, start, end) != Tri::No;
            let was_heard = self.is_heard(pair);
            let fact = self.follow_fact(pair);
            fact.change(start, end, true);
            if is_gone {
                fact.influence(false, start, OPEN);
            }
            self.requests.remove(&pair);
            if is_locked && !was_heard {
                self.may_become_request(pair, start);
            }
            return;
        }
        if self.may_lose {
            self.told_to_wait.push((pair, Window { from: start, to: end }));
        }
        let is_locked = self.lock(pair.1, start, end);
        // An answer, or a block, may have met the request before we were told of that.
        let was_answered = self.answers.get(&pair).is_some_and(|answered| answered.to >= start);
        let is_disturbed =
            was_answered || self.follow_fact(pair).influences.iter().any(|i| i.over.min(i.until) >= start);
        let request = self.requests.entry(pair).or_default();
        if request.asked.is_none() {
            *request = Request { began: start, asked: Some(end), is_disturbed, ..Request::default() };
        }
        // It is unlocked meanwhile: whoever waits follows.
        if is_locked != Tri::Yes {
            request.is_disturbed = true;
            self.follow_fact(pair).influence(true, start, end);
        }
    }

    pub(crate) fn unfollowed(&mut self, pair: Pair, start: Time, end: Time) {
        if let Some(hides) = self.switches.get_mut(&(Switch::Reposts, pair.0, pair.1)) {
            hides.change(start, end, false);
        }
        self.follow_fact(pair).change(start, end, false);
        self.requests.remove(&pair);
    }

    pub(crate) fn switched(&mut self, what: Switch, (by, other): Pair, on: bool, (start, end): (Time, Time)) {
        self.switch_fact(what, by, other).change(start, end, on);
        if what != Switch::Block {
            return;
        }
        let theirs = self.follow_fact((other, by));
        if on {
            theirs.influence(false, start, OPEN);
            self.unfollowed((by, other), start, end);
        } else {
            theirs.over(false, end);
        }
        if let Some(request) = self.requests.get_mut(&(other, by)) {
            request.is_disturbed = true;
        }
    }

    pub(crate) fn lock(&self, account: u64, from: Time, to: Time) -> Tri {
        self.locks.get(&account).map_or(Tri::No, |fact| fact.is(Window { from, to }, |is| is))
    }

    /// Whether an author's side has surely heard of a follow: it was told before the work was last drained.
    fn is_heard(&self, pair: Pair) -> bool {
        let last = self.follows.get(&pair).and_then(|fact| fact.changes.last());
        last.is_some_and(|change| change.value && change.end <= self.drained)
    }

    /// A follow that its author's side may not have heard of when that was locked becomes a request, whenever it hears.
    fn may_become_request(&mut self, pair: Pair, start: Time) {
        self.follow_fact(pair).influence(false, start, UNTIL_DRAINED);
        self.requests.entry(pair).or_default().is_disturbed = true;
    }

    /// An account was locked: who follows it by now does so for good, if it has heard of that. Or it isn't locked any
    /// more: then whoever waits for its answer follows it.
    pub(crate) fn locked(&mut self, account: u64, is_locked: bool, (start, end): (Time, Time)) {
        self.locks.entry(account).or_insert_with(|| Fact::new(false)).change(start, end, is_locked);
        if is_locked {
            let follows = |fact: &Fact<bool>| fact.changes.last().is_some_and(|change| change.value);
            let told = self.follows.iter().filter(|(pair, fact)| pair.1 == account && follows(fact));
            let unheard: Vec<Pair> = told.map(|f| *f.0).filter(|pair| !self.is_heard(*pair)).collect();
            unheard.into_iter().for_each(|pair| self.may_become_request(pair, start));
            return;
        }
        let waiting: Vec<Pair> = self.requests.keys().filter(|pair| pair.1 == account).copied().collect();
        for pair in waiting {
            self.follow_fact(pair).influence(true, start, end);
            if let Some(request) = self.requests.get_mut(&pair) {
                request.is_disturbed = true;
            }
        }
    }

    /// An account is there.
    pub(crate) fn created(&mut self, account: u64, is_locked: bool) {
        let place = self.accounts.partition_point(|other| *other < account);
        self.accounts.insert(place, account);
        self.locks.insert(account, Fact::new(is_locked));
        self.states.insert(account, Fact::new(State::Active));
    }

    /// An account is gone at once, its traces by and by.
    pub(crate) fn buried(&mut self, account: u64, start: Time, end: Time) {
        self.accounts.retain(|other| *other != account);
        if let Some(fact) = self.states.get_mut(&account) {
            fact.change(start, end, State::Deleted);
        }
        for post in self.posts.iter_mut().flatten().filter(|post| post.author == account) {
            // What was being deleted before is gone no later than that.
            post.deleted.get_or_insert(Change { start, end: OPEN, value: () });
        }
        for (_, fact) in self.follows.iter_mut().filter(|f| f.0.0 == account || f.0.1 == account) {
            fact.influence(false, start, OPEN);
        }
        self.requests.retain(|pair, _| pair.0 != account && pair.1 != account);
        self.names.gone(account, start, end);
    }

    /// Whether an account is there.
    pub(crate) fn is_there(&self, account: u64, window: Window) -> Tri {
        self.states.get(&account).map_or(Tri::No, |fact| fact.is(window, |state| state != State::Deleted))
    }

    /// Whether an account was deleted.
    pub(crate) fn is_deleted(&self, account: u64) -> bool {
        let is_end = |fact: &Fact<State>| fact.changes.iter().any(|change| change.value == State::Deleted);
        self.states.get(&account).is_none_or(is_end)
    }

    /// `by` has approved, or turned down, what `requester` had asked.
    pub(crate) fn answered(&mut self, by: u64, requester: u64, yes: bool, (start, end): (Time, Time)) {
        let pair = (requester, by);
        if yes {
            self.follow_fact(pair).influence(true, start, end);
        }
        self.answers.insert(pair, Window { from: start, to: end });
        let Some(request) = self.requests.get_mut(&pair) else { return };
        let is_of_this = request.asked.is_some_and(|asked| asked <= start);
        if yes && is_of_this && !request.is_disturbed {
            request.approved = true;
        } else {
            request.is_disturbed = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_was_told_of_may_show_while_its_author_is_publishing() {
        let world = World { unsure_publishes: vec![(3, Window { from: 10, to: 20 })], ..World::default() };
        let at = |from, to| world.may_be_unheard_of(3, Window { from, to });
        assert!(at(5, 10) && at(12, 13) && at(20, 30) && !at(1, 9) && !at(21, 30));
        assert!(!world.may_be_unheard_of(4, Window { from: 12, to: 13 }));
        // An instance that had read it before the failover.
        let cached = World { visible_within: 5, ..world };
        let at = |from, to| cached.may_be_unheard_of(3, Window { from, to });
        assert!(at(25, 30) && !at(26, 30) && !at(1, 9));
        // Nobody was told of one; whether it is there is known once all is drained.
        let refused = Window { from: 30, to: UNTIL_DRAINED };
        let mut world = World { unsure_publishes: vec![(3, refused)], ..World::default() };
        assert!(world.may_be_unheard_of(3, Window { from: 60, to: 61 }));
        world.drained(50);
        assert!(!world.may_be_unheard_of(3, Window { from: 60, to: 61 }));
    }

    #[test]
    fn a_follow_becomes_a_request_if_its_author_is_locked_before_it_has_heard_of_it() {
        let mut world = World::default();
        (1..=3).for_each(|account| world.created(account, false));
        let at = |time| Window { from: time, to: time };
        world.followed((1, 3), 10, 11, true);
        world.drained(20);
        world.followed((2, 3), 30, 31, true);
        world.locked(3, true, (40, 41));
        // The one was heard of, of the other nobody knows, whatever it is told.
        world.followed((2, 3), 50, 51, true);
        assert_eq!([1, 2].map(|reader| world.is_following(reader, 3, at(60))), [Tri::Yes, Tri::Maybe]);
        assert_eq!([1, 2].map(|reader| world.waits((reader, 3))), [Tri::No, Tri::Maybe]);
        // Locked while it follows.
        world.locked(3, false, (70, 71));
        world.drained(80);
        world.follow_fact((2, 3)).settle(80, false);
        world.locked(3, true, (90, 92));
        world.followed((2, 3), 89, 93, true);
        assert_eq!(world.is_following(2, 3, at(94)), Tri::Maybe);
    }
}
