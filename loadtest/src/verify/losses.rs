//! Where writes are acknowledged as soon as a primary has them, a failover may lose the last of them. What may be lost
//! is in doubt from its call on; once all is drained it is looked up, or done again, and counts as it is by then. What
//! else is promised holds all the same: nothing before the failover is lost, and whatever is there shows to all whom it
//! concerns.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt as _};

use super::call::{Call, State, Switch, Tie};
use super::comparisons::Subject;
use super::facts::{Change, Fact, OPEN, Time, Window};
use super::run::{Ended, Run};
use super::told::Reply;
use super::world::{Pair, PostFact, PostNo, Said, World};

/// Calls at the same time.
const AT_ONCE: usize = 16;

/// For so long an edge may stand whose follow is lost, in microseconds: it is looked at a minute after it was written.
const STRAY_MAX: Time = 180_000_000;
/// Between two looks at an edge that must go.
const LOOK: Duration = Duration::from_secs(1);

/// What must be looked up, or done again.
#[derive(Debug, Default)]
pub(crate) struct Doubts {
    posts: Vec<PostNo>,
    again: Vec<(Call, Again)>,
    pub(crate) switches: BTreeMap<u64, Vec<u64>>,
    pub(crate) ties: BTreeMap<u64, Vec<(Tie, PostNo)>>,
}

/// Which fact a call sets that is made again.
#[derive(Debug, Clone, Copy)]
enum Again {
    Lock(u64, bool),
    State(u64, State),
    Hidden(PostNo, bool),
}

impl World {
    /// Whether a failover may have lost what was done between these times.
    pub(crate) fn is_at_risk(&self, start: Time, end: Time) -> bool {
        overlaps(&self.losses, start, end)
    }

    /// The same of what was done since all was drained last: before that it was looked up.
    fn is_in_doubt(&self, (start, end): (Time, Time)) -> bool {
        end > self.drained && self.is_at_risk(start, end)
    }

    /// Whether a follow that is lost may still be listed by whom it was of: edges are looked at a minute after they
    /// were written.
    pub(crate) fn is_stray(&self, pair: Pair, now: Time) -> bool {
        self.strays.get(&pair).is_some_and(|lost| now < lost + STRAY_MAX)
    }

    /// How many of these there may be.
    pub(crate) fn strays(&self, now: Time) -> u64 {
        let strays = self.strays.keys().filter(|pair| self.is_stray(**pair, now)).count();
        u64::try_from(strays).unwrap_or(u64::MAX)
    }

    /// Doubts whatever was done since all was drained last, and may be lost.
    fn doubt(&mut self) -> Doubts {
        let (losses, since) = (std::mem::take(&mut self.losses), self.drained);
        let is_at_risk = |start: Time, end: Time| end > since && overlaps(&losses, start, end);
        let mut doubts = Doubts::default();
        for (account, fact) in &mut self.locks {
            doubts.again.extend(in_doubt(fact, is_at_risk).map(|is_locked| {
                (Call::SetLock { account: *account, is_locked }, Again::Lock(*account, is_locked))
            }));
        }
        for (account, fact) in &mut self.states {
            doubts.again.extend(
                in_doubt(fact, is_at_risk).map(|state| {
                    (Call::SetState { account: *account, state }, Again::State(*account, state))
                }),
            );
        }
        for ((_, by, other), fact) in &mut self.switches {
            if in_doubt(fact, is_at_risk).is_some() {
                doubts.switches.entry(*by).or_default().push(*other);
            }
        }
        for ((what, by, no), fact) in &mut self.ties {
            if in_doubt(fact, is_at_risk).is_some() {
                doubts.ties.entry(*by).or_default().push((*what, *no));
            }
        }
        for (no, post) in self.posts.iter_mut().enumerate() {
            let Some(post) = post else { continue };
            if let Some((id, on)) = post.id.zip(in_doubt(&mut post.hidden, is_at_risk)) {
                doubts.again.push((Call::Hide { post: id, on }, Again::Hidden(no, on)));
            }
            if post.id.is_some() && post.doubt(is_at_risk) {
                doubts.posts.push(no);
            }
        }
        self.doubt_follows(is_at_risk);
        self.losses = losses;
        doubts
    }

    /// Follows that can't be known are looked up anyway, as are requests.
    fn doubt_follows(&mut self, is_at_risk: impl Fn(Time, Time) -> bool + Copy) {
        let is_changed =
            |fact: &Fact<bool>| fact.changes.iter().any(|change| is_at_risk(change.start, change.end));
        let mut pairs: Vec<Pair> =
            self.follows.iter().filter(|(_, fact)| is_changed(fact)).map(|(pair, _)| *pair).collect();
        pairs.extend(self.doubt_locks(is_at_risk));
        for fact in self.follows.values_mut() {
            fact.may_lack(|change| is_at_risk(change.start, change.end));
        }
        let asked =
            self.requests.iter().filter(|(_, r)| r.asked.is_some_and(|asked| is_at_risk(r.began, asked)));
        pairs.extend(asked.map(|(pair, _)| *pair));
        let answered = self.answers.iter().filter(|(_, answered)| is_at_risk(answered.from, answered.to));
        pairs.extend(answered.map(|(pair, _)| *pair));
        for pair in pairs {
            self.requests.entry(pair).or_default().is_disturbed = true;
        }
    }

    /// Whoever was told to wait follows, if it was the lock that is lost (seed 46).
    fn doubt_locks(&mut self, is_at_risk: impl Fn(Time, Time) -> bool) -> Vec<Pair> {
        let told = std::mem::take(&mut self.told_to_wait);
        let may_lack_lock = |(pair, asked): &(Pair, Window)| {
            let mut changes = self.locks.get(&pair.1).into_iter().flat_map(|lock| &lock.changes);
            changes.any(|lock| lock.value && lock.start <= asked.to && is_at_risk(lock.start, lock.end))
        };
        let doubtful: Vec<(Pair, Window)> = told.into_iter().filter(may_lack_lock).collect();
        doubtful.iter().for_each(|(pair, asked)| self.follow_fact(*pair).influenced(true, asked.from));
        doubtful.into_iter().map(|(pair, _)| pair).collect()
    }

    fn done_again(&mut self, what: Again, (start, end): (Time, Time)) {
        match what {
            Again::Lock(account, is_locked) => self.locked(account, is_locked, (start, end)),
            Again::State(account, state) => {
                if let Some(fact) = self.states.get_mut(&account) {
                    fact.change(start, end, state);
                }
            }
            Again::Hidden(no, on) => {
                if let Some(post) = self.post_mut(no) {
                    post.hidden.change(start, end, on);
                }
            }
        }
    }
}

fn overlaps(losses: &[Window], start: Time, end: Time) -> bool {
    losses.iter().any(|loss| start <= loss.to && end >= loss.from)
}

/// The value that a fact has if nothing was lost, where that is in doubt.
fn in_doubt<T: Copy + PartialEq>(fact: &mut Fact<T>, is_at_risk: impl Fn(Time, Time) -> bool) -> Option<T> {
    let is_open = fact.may_lack(|change| is_at_risk(change.start, change.end));
    fact.changes.last().filter(|_| is_open).map(|change| change.value)
}

impl PostFact {
    fn may_be_lost(&self, is_at_risk: impl Fn(Time, Time) -> bool) -> bool {
        !self.is_replicated && self.acknowledged != OPEN && is_at_risk(self.start, self.acknowledged)
    }

    /// Doubts what may be lost of it; whether anything may be.
    fn doubt(&mut self, is_at_risk: impl Fn(Time, Time) -> bool + Copy) -> bool {
        let mut has_lost_edit = false;
        let mut until = OPEN;
        for edit in self.edits.iter_mut().rev() {
            if is_at_risk(edit.start, edit.end) {
                edit.end = until;
                has_lost_edit = true;
            } else {
                until = edit.end;
            }
        }
        let is_deletion_at_risk =
            self.deleted.as_ref().is_some_and(|deleted| is_at_risk(deleted.start, deleted.end));
        self.may_be_lost(is_at_risk) || has_lost_edit || is_deletion_at_risk
    }

    /// It isn't there. Where it may have been lost, it may have gone at any time.
    fn is_gone(&mut self, may_be_lost: bool, now: Time) -> bool {
        let is_lost = may_be_lost && self.deleted.is_none();
        if may_be_lost {
            let end = self.deleted.as_ref().map_or(now, |deleted| deleted.end);
            self.deleted = Some(Change { start: self.start, end, value: () });
        }
        self.settle_edits(now, None);
        is_lost
    }

    /// What it says is known by now.
    fn settle_edits(&mut self, now: Time, text: Option<&str>) {
        let Some(first) = self.edits.iter().find(|edit| edit.end == OPEN).map(|edit| edit.start) else {
            return;
        };
        self.edits.iter_mut().for_each(|edit| edit.end = edit.end.min(now));
        let all = std::iter::once(&self.said).chain(self.edits.iter().map(|edit| &edit.value));
        let said: Option<Said> = all.rev().find(|said| Some(said.text.as_str()) == text).cloned();
        self.edits.extend(said.map(|value| Change { start: first, end: now, value }));
    }
}

/// Doubts what failovers may have lost, and ends the doubts.
pub(crate) async fn settle(run: &Arc<Run>) {
    let doubts = run.world().doubt();
    look_up(run, doubts).await;
}

/// Looks up what is in doubt, or does it again.
pub(crate) async fn look_up(run: &Arc<Run>, doubts: Doubts) {
    let Doubts { posts, again, switches, ties } = run.world().of_who_is_there(doubts);
    stream::iter(posts).for_each_concurrent(AT_ONCE, |no| look_at_post(run, no)).await;
    stream::iter(again).for_each_concurrent(AT_ONCE, |(call, what)| do_again(run, call, what)).await;
    stream::iter(switches)
        .for_each_concurrent(AT_ONCE, |(by, others)| look_at_switches(run, by, others))
        .await;
    stream::iter(ties).for_each_concurrent(AT_ONCE, |(by, ties)| look_at_ties(run, by, ties)).await;
}

impl World {
    /// Whoever is deleted is asked nothing: its ties and switches are gone with it, and every answer is a refusal.
    fn of_who_is_there(&self, mut doubts: Doubts) -> Doubts {
        doubts.switches.retain(|by, _| !self.is_deleted(*by));
        doubts.ties.retain(|by, _| !self.is_deleted(*by));
        doubts
    }
}

/// Waits until nobody lists a follow that is lost: whoever has minutes needs not forgive anybody.
pub(crate) async fn wait_for_strays(run: &Arc<Run>) {
    loop {
        let now = run.now();
        let pairs: Vec<Pair> = {
            let world = run.world();
            world.strays.keys().copied().filter(|pair| world.is_stray(*pair, now)).collect()
        };
        if pairs.is_empty() || run.has_given_up() {
            return;
        }
        for (reader, author) in pairs {
            let limit = 1_000;
            let call = Call::Followers { account: author, descending: false, limit };
            let Ended::Done(Reply::Ids(listed)) = run.call(0, call).await else { continue };
            if !listed.contains(&reader) {
                run.world().strays.remove(&(reader, author));
                run.event("edges of follows that are lost were gone");
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

async fn do_again(run: &Arc<Run>, call: Call, what: Again) {
    let start = run.now();
    match run.call(0, call).await {
        Ended::Done(_) => {
            let end = run.now();
            run.world().done_again(what, (start, end));
            run.event("done again after a failover");
        }
        // A post that is gone is hidden from nobody.
        Ended::Refused { kind, .. } if kind == "NotFound" => {}
        other => run.skipped(Subject::DoneAgain, &other),
    }
}

async fn look_at_post(run: &Arc<Run>, no: PostNo) {
    let Some((id, author)) = run.world().reference(no) else { return };
    let found = match run.call(no, Call::Post { post: id }).await {
        Ended::Done(Reply::Post(found)) => found,
        other => return run.skipped(Subject::Posts, &other),
    };
    let is_deleted = {
        let mut world = run.world();
        let now = run.now();
        let may_be_lost =
            world.post(no).is_some_and(|post| post.may_be_lost(|s, e| world.is_in_doubt((s, e))));
        let Some(post) = world.post_mut(no) else { return };
        let Some(found) = found else {
            if post.is_gone(may_be_lost, now) {
                run.event("posts lost by failovers");
            }
            return;
        };
        let before = post.edits.last().map(|edit| edit.value.text.clone());
        post.settle_edits(now, Some(&found.text));
        if post.edits.last().map(|edit| edit.value.text.clone()) != before {
            run.event("edits lost by failovers");
        }
        post.deleted.map(|deleted| (deleted.start, deleted.end))
    };
    // What was deleted for good must not come back: that is found when all is compared.
    let is_deleted = is_deleted.is_some_and(|when| run.world().is_in_doubt(when));
    if !is_deleted {
        return;
    }
    run.event("deletions lost by failovers");
    if let Ended::Done(_) = run.call(no, Call::Delete { author, post: id }).await {
        let now = run.now();
        if let Some(deleted) = run.world().post_mut(no).and_then(|post| post.deleted.as_mut()) {
            deleted.end = now;
        }
    }
}

async fn look_at_switches(run: &Arc<Run>, by: u64, others: Vec<u64>) {
    let found = match run.call(0, Call::Relations { account: by, others: others.clone() }).await {
        Ended::Done(Reply::Relations(found)) => found,
        other => return run.skipped(Subject::Relations, &other),
    };
    let now = run.now();
    let mut world = run.world();
    for (other, found) in others.into_iter().zip(found) {
        let Some(found) = found else { continue };
        let said = [
            (Switch::Mute, found.mutes),
            (Switch::Block, found.blocks),
            (Switch::Hide, found.hides),
            (Switch::Note, found.notes.is_some()),
            (Switch::Reposts, found.hides_reposts == Some(true)),
            (Switch::LeftOut, found.leaves_out == Some(true)),
        ];
        for (what, is_on) in said {
            if let Some(fact) = world.switches.get_mut(&(what, by, other)).filter(|fact| fact.is_unsure(now))
            {
                fact.settle(now, is_on);
            }
        }
    }
}

/// Of a post that doesn't show to who has tied itself to it, nothing is known then.
async fn look_at_ties(run: &Arc<Run>, by: u64, ties: Vec<(Tie, PostNo)>) {
    let known: Vec<(u64, PostNo)> = {
        let world = run.world();
        ties.iter().filter_map(|(_, no)| Some((world.reference(*no)?.0, *no))).collect()
    };
    for some in known.chunks(40) {
        let posts = some.iter().map(|(id, _)| *id).collect();
        let page = match run.call(0, Call::ByIds { reader: by, posts }).await {
            Ended::Done(Reply::Page(page)) => page,
            other => return run.skipped(Subject::PostsByIds, &other),
        };
        let now = run.now();
        let mut world = run.world();
        for shown in page.posts {
            let Some(said) = shown.ties else { continue };
            let Some(no) = some.iter().find(|(id, _)| *id == shown.id).map(|(_, no)| *no) else { continue };
            for (what, is_tied) in [(Tie::Like, said.likes), (Tie::Bookmark, said.has_bookmarked)] {
                if let Some(fact) = world.ties.get_mut(&(what, by, no)).filter(|fact| fact.is_unsure(now)) {
                    fact.settle(now, is_tied);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::facts::Tri;
    use super::*;
    use crate::verify::call::Reach;
    use crate::verify::steps::PostPlan;

    const LOSS: Window = Window { from: 100, to: 200 };

    fn said(text: &str) -> Said {
        Said { text: text.to_owned(), ..Said::default() }
    }

    fn at(time: Time) -> Window {
        Window { from: time, to: time }
    }

    fn post(start: Time, acknowledged: Time) -> PostFact {
        let fact = PostPlan::new(0, Reach::Public).fact(1, start);
        PostFact { acknowledged, id: Some(start), ..fact }
    }

    /// Four posts: one of before, two from when a failover may have lost them, one of which is on replicas, and one of
    /// after.
    fn world() -> World {
        let replicated = PostFact { is_replicated: true, ..post(120, 130) };
        let posts = [post(80, 90), post(95, 110), replicated, post(201, 210)].map(Some).to_vec();
        World { may_lose: true, losses: vec![LOSS], drained: 50, posts, ..World::default() }
    }

    #[test]
    fn only_what_was_acknowledged_beside_a_failover_and_not_replicated_may_be_lost() {
        let mut world = world();
        assert_eq!(world.doubt().posts, [1]);
        let may_be_lost = [0, 1, 2, 3]
            .map(|no| world.post(no).is_some_and(|post| post.may_be_lost(|s, e| world.is_in_doubt((s, e)))));
        assert_eq!(may_be_lost, [false, true, false, false]);
        let posts = world.posts.iter_mut().flatten().zip(may_be_lost);
        let gone: Vec<bool> = posts.map(|(post, may_be)| post.is_gone(may_be, 300)).collect();
        assert_eq!(gone, [false, true, false, false]);
        let lost = world.post(1).expect("a post");
        assert_eq!([112, 299, 300].map(|time| lost.exists(at(time))), [Tri::Maybe, Tri::Maybe, Tri::No]);
        // Everything else that is gone is a violation: the model still has it.
        let has = |no| world.post(no).map(|post| post.exists(at(300)));
        assert_eq!([0, 2, 3].map(has), [Some(Tri::Yes); 3]);
    }

    /// Seed 60: a like came late, and whoever had made it was deleted by then.
    #[test]
    fn who_is_deleted_is_asked_nothing() {
        let mut world = World::default();
        (1..=2).for_each(|account| world.created(account, false));
        world.buried(2, 10, 20);
        let switches = [(1, vec![2]), (2, vec![1])].into();
        let ties = [(1, vec![(Tie::Like, 0)]), (2, vec![(Tie::Like, 0)])].into();
        let doubts = world.of_who_is_there(Doubts { switches, ties, ..Doubts::default() });
        assert_eq!(doubts.switches.into_keys().collect::<Vec<_>>(), [1]);
        assert_eq!(doubts.ties.into_keys().collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn what_was_drained_before_is_in_doubt_no_more() {
        let mut world = World { drained: 300, ..world() };
        world.follow_fact((1, 2)).change(110, 120, true);
        assert!(world.doubt().posts.is_empty());
        assert_eq!(world.is_following(1, 2, at(310)), Tri::Yes);
    }

    #[test]
    fn a_lost_edit_is_what_the_post_said_before() {
        let mut fact = post(60, 70);
        fact.edits = vec![
            Change { start: 75, end: 80, value: said("kept") },
            Change { start: 115, end: 120, value: said("lost") },
        ];
        assert!(fact.doubt(|start, end| start <= LOSS.to && end >= LOSS.from));
        fact.settle_edits(300, Some("kept"));
        assert_eq!(fact.texts(at(90)), ["kept"]);
        assert_eq!(fact.texts(at(150)), ["kept", "lost", "kept"]);
        assert_eq!(fact.texts(at(300)), ["kept"]);
    }

    /// Seed 46: a lock was lost with its server, so whoever had asked followed; it unfollowed before anybody knew.
    #[test]
    fn who_was_told_to_wait_may_follow_if_the_lock_is_lost() {
        let mut world = world();
        (1..=4).for_each(|account| world.created(account, false));
        world.locked(1, true, (110, 120));
        world.followed((2, 1), 130, 140, false);
        world.followed((3, 1), 130, 140, false);
        world.unfollowed((2, 1), 250, 260);
        // Not one that was locked long ago.
        world.locked(4, true, (10, 20));
        world.followed((2, 4), 130, 140, false);
        let _ = world.doubt();
        let follows = |pair: Pair, time| world.is_following(pair.0, pair.1, at(time));
        assert_eq!([125, 150, 270].map(|time| follows((2, 1), time)), [Tri::No, Tri::Maybe, Tri::No]);
        assert_eq!([125, 150, 270].map(|time| follows((3, 1), time)), [Tri::No, Tri::Maybe, Tri::Maybe]);
        assert_eq!((follows((2, 4), 150), world.waits((3, 1))), (Tri::No, Tri::Maybe));
        assert!(world.told_to_wait.is_empty());
    }

    #[test]
    fn follows_switches_locks_and_requests_are_in_doubt_until_they_are_looked_up() {
        let mut world = world();
        world.created(1, false);
        world.created(2, true);
        world.follow_fact((1, 3)).change(110, 120, true);
        world.switched(Switch::Mute, (1, 2), true, (130, 140));
        world.locked(1, true, (150, 160));
        world.locked(2, false, (20, 30));
        world.followed((2, 1), 170, 180, false);
        let doubts = world.doubt();
        assert_eq!(doubts.switches.get(&1), Some(&vec![2]));
        assert_eq!(doubts.again.len(), 1);
        assert!(matches!(doubts.again[0].1, Again::Lock(1, true)));
        assert_eq!(world.is_following(1, 3, at(210)), Tri::Maybe);
        assert_eq!(world.waits((2, 1)), Tri::Maybe);
        world.done_again(Again::Lock(1, true), (310, 320));
        let lock = |time| world.locks.get(&1).map(|fact| fact.is(at(time), |is| is));
        assert_eq!([165, 320].map(lock), [Some(Tri::Maybe), Some(Tri::Yes)]);
    }
}
