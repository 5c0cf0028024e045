//! Posts: published, again with the same token, edited, deleted, hidden, liked and bookmarked.

use std::time::Duration;

use super::Client;
use crate::verify::call::{Asked, Call, PostSpec, Reach, Tie};
use crate::verify::check::Wrong;
use crate::verify::comparisons::Subject;
use crate::verify::content::{Extent, text_of};
use crate::verify::facts::{Change, OPEN, Time, Tri, UNTIL_DRAINED, Window};
use crate::verify::run::{Ended, GONE};
use crate::verify::steps::PostPlan;
use crate::verify::told::Reply;
use crate::verify::world::{PostFact, PostNo, Said, World};

/// So many read so much of their homes, as soon as a post is said to be delivered.
const READERS: usize = 8;
const NEWEST: usize = 20;

impl Client<'_> {
    pub(super) async fn publish(&self, plan: PostPlan) {
        let (run, no, ack) = (self.run, plan.no, plan.ack);
        // Without a token a second sending would be a second post, but of a plain repost.
        let may_repeat = plan.has_token || plan.original.is_some() && !plan.has_text;
        let named = [plan.original, plan.parent];
        let Some(references) = self.references(named).await else {
            run.count("publish", |counts| counts.skipped += 1);
            return self.never(no);
        };
        self.all_known(&plan.mentions).await;
        let start = run.now();
        let post = {
            let mut world = run.world();
            let meant = |no: Option<PostNo>| no.map(|no| world.subject(no));
            let (original, parent) = (meant(plan.original), meant(plan.parent));
            let mut fact = PostFact { original, parent, ..plan.fact(self.actor, start) };
            if !fact.says_reach {
                fact.reach = reach_by_lock(&world, self.actor, start);
            }
            let post = PostSpec { ack, ..fact.spec(no, references) };
            world.posts[no] = Some(fact);
            post
        };
        let call = Call::Publish { author: self.actor, post };
        let (ended, tries) = match may_repeat {
            true => run.repeat(self.instance, call).await,
            false => (run.once(self.instance, call).await, 1),
        };
        let window = Window { from: start, to: run.now() };
        if tries > 1 || !matches!(ended, Ended::Done(_) | Ended::Refused { is_unsure: false, .. }) {
            // Of one that nobody was told of nobody knows how long it shows before a failover takes it away.
            let to = if matches!(ended, Ended::Done(_)) { window.to } else { UNTIL_DRAINED };
            run.world().unsure_publishes.push((self.actor, Window { to, ..window }));
        }
        match ended {
            Ended::Done(Reply::Published { id, is_delivered, is_replicated, .. }) => {
                if let Some(post) = run.world().post_mut(no) {
                    post.is_replicated = is_replicated;
                }
                self.published(no, id, is_delivered, window).await;
            }
            Ended::Refused { kind, message, is_unsure } => {
                let is_once = !may_repeat && is_passing(&kind);
                let why = format!("post {no} was refused: {kind}: {message}");
                if kind == "NotFound" {
                    self.unseen(named.into_iter().flatten().collect(), start, why);
                } else if !is_once && !self.may_not_publish(named[0], &kind) {
                    self.refused(&kind, Some(no), why);
                }
                if is_unsure { self.unsure(no) } else { self.never(no) }
            }
            _ => self.unsure(no),
        }
        run.tell_published();
    }

    /// Others may still be creating whom a post mentions: who isn't there is on no list.
    async fn all_known(&self, mentioned: &[u64]) {
        for account in mentioned {
            self.run.known(*account).await;
        }
    }

    /// What a post passes on and answers, once others have published that; `None`: one of these never came to be.
    async fn references(&self, named: [Option<PostNo>; 2]) -> Option<[Option<(u64, u64)>; 2]> {
        let mut references = [None, None];
        for (reference, no) in references.iter_mut().zip(named) {
            if let Some(no) = no {
                let is_unsure = |world: &World| world.post(no).is_some_and(|post| post.is_unsure);
                *reference = Some(self.run.reference(no, is_unsure).await?);
            }
        }
        Some(references)
    }

    async fn published(&self, no: PostNo, id: u64, is_delivered: bool, window: Window) {
        let (is_new, says_reach, wrong) = {
            let mut world = self.run.world();
            let known = world.by_id.get(&id).copied();
            let wrong = wrongly_answered(&world, (no, known), window);
            if known.is_none() {
                world.published(no, id, window.to);
            }
            let says_reach = world.post(no).is_none_or(|post| post.says_reach);
            (known.is_none(), says_reach, wrong)
        };
        if let Some(why) = wrong {
            let text = format!("it was answered as {id}: {why}");
            self.run.wrong(Wrong::Doubled, self.actor, Some(no), text);
        }
        if !is_new {
            // It has reposted that already: once is enough.
            return self.never(no);
        }
        let is_repost = self.run.world().post(no).is_some_and(|post| post.original.is_some());
        // One that is reposted already has the id of that repost.
        if !is_repost && self.run.is_of_another_time(id, window) {
            let text = format!("its id {id} is of another time than that at which it was published");
            self.run.wrong(Wrong::Reordered, self.actor, Some(no), text);
        }
        // From now on it must show, or once its delivery is done. Fewer follow anybody here than are meant by "first".
        if is_delivered {
            self.delivered(no, window.to).await;
        } else {
            self.await_delivery(no, id);
        }
        if !says_reach {
            self.look_at_reach(no, id).await;
        }
    }

    /// Some of those who must have a post that was acknowledged as delivered read as soon as it must show, which is
    /// `visible_within` later: after another moment it would be there in any case.
    async fn delivered(&self, no: PostNo, now: Time) {
        let run = self.run;
        let (readers, within) = {
            let mut world = run.world();
            if let Some(post) = world.post_mut(no) {
                post.delivered = post.delivered.min(now);
            }
            let now = Window { from: now, to: now };
            let follows = |reader: &u64| world.is_following(*reader, self.actor, now) == Tri::Yes;
            // From the end: the first ones follow many, and others follow them.
            let readers: Vec<u64> =
                world.accounts.iter().rev().copied().filter(follows).take(READERS).collect();
            (readers, Duration::from_micros(world.visible_within))
        };
        tokio::time::sleep(within).await;
        let read = readers.into_iter().map(|reader| run.read(self.instance + 1, Asked::home(reader, NEWEST)));
        futures::future::join_all(read).await;
    }

    /// How far a post goes that left that to its author's lock.
    async fn look_at_reach(&self, no: PostNo, id: u64) {
        let found = match self.run.call(self.instance, Call::Post { post: id }).await {
            Ended::Done(Reply::Post(found)) => found.map(|found| found.reach),
            other => return self.run.skipped(Subject::Posts, &other),
        };
        let wanted = self.run.world().post(no).map(|post| post.reach);
        if found.is_some() && found != wanted {
            let text = format!("post {id} goes to {found:?}, by its author's lock it must go to {wanted:?}");
            self.run.wrong(Wrong::Leaked, self.actor, Some(no), text);
        }
    }

    /// What a post passes on must not be passed on; or its author is suspended.
    fn may_not_publish(&self, original: Option<PostNo>, kind: &str) -> bool {
        // Takes the world itself.
        if kind == "Invalid" && self.is_suspended() {
            return true;
        }
        let world = self.run.world();
        let is_for_few = |no: PostNo| world.post(world.subject(no)).is_none_or(|post| !post.is_for_all());
        kind == "Invalid" && original.is_some_and(is_for_few)
    }

    /// A post that was refused, or answered with another one, or whose original was refused: there is none.
    fn never(&self, no: PostNo) {
        let nothing = PostPlan::new(no, Reach::Public).fact(self.actor, 0);
        self.run.world().posts[no] = Some(PostFact { is_unsure: true, ..nothing });
        self.run.tell_published();
    }

    /// A post that was refused in the end, or got stuck: nobody needs to wait for it.
    fn unsure(&self, no: PostNo) {
        if let Some(post) = self.run.world().post_mut(no) {
            post.is_unsure = true;
        }
        self.run.tell_published();
    }

    /// Notes when the delivery is done, if the instance that began it lives so long.
    fn await_delivery(&self, no: PostNo, id: u64) {
        let (run, instance) = (self.run.clone(), self.run.pool.instance(self.instance));
        if let Some(post) = run.world().post_mut(no) {
            post.is_awaited = true;
        }
        let told = tokio::spawn(async move {
            let is_done = matches!(instance.call(Call::Delivered { post: id }).await, Some(Reply::Done));
            let now = run.now();
            match run.world().post_mut(no) {
                Some(post) if is_done => post.delivered = post.delivered.min(now),
                // It doesn't know.
                Some(post) => post.is_awaited = false,
                None => {}
            }
        });
        self.run.awaits(no, told);
    }

    /// Publishing again with the same token gives the same post, also if it was edited or deleted meanwhile.
    pub(super) async fn republish(&self, no: PostNo) {
        let Some((id, _)) = self.own(no).await else { return };
        let post = {
            let world = self.run.world();
            let Some(post) = world.post(no).filter(|post| post.has_token) else { return };
            post.spec(no, [post.original, post.parent].map(|named| world.reference(named?)))
        };
        let call = Call::Publish { author: self.actor, post };
        match self.run.call(self.instance, call).await {
            Ended::Done(Reply::Published { id: again, is_repeat: true, .. }) if again == id => {}
            Ended::Done(reply) => {
                let text = format!("published again with the same token: {reply:?}, it was {id}");
                self.run.wrong(Wrong::Doubled, self.actor, Some(no), text);
            }
            Ended::Refused { kind, message, .. } => {
                let text = format!("published again with the same token: refused: {kind}: {message}");
                self.run.wrong(Wrong::Lost, self.actor, Some(no), text);
            }
            Ended::Stuck => {}
        }
    }

    /// A post of the actor's own, which is the last of its steps or was refused.
    async fn own(&self, no: PostNo) -> Option<(u64, u64)> {
        self.run.reference(no, |world| world.post(no).is_some_and(|post| post.is_unsure)).await
    }

    pub(super) async fn edit(&self, no: PostNo, tags: Vec<u8>, mentions: Option<Vec<u64>>) {
        let Some((id, _)) = self.own(no).await else { return };
        self.all_known(mentions.as_deref().unwrap_or_default()).await;
        let before = {
            let world = self.run.world();
            let post = world.post(no).filter(|post| post.has_text);
            post.map(|post| {
                (post.edits.len(), post.edits.last().map_or(&post.said, |edit| &edit.value).clone())
            })
        };
        let Some((edits, before)) = before else { return };
        let text = text_of(no, edits + 1, Extent::of(&before.text), &tags);
        let said = Said {
            text: text.clone(),
            tags: tags.clone(),
            mentions: mentions.clone().unwrap_or(before.mentions),
        };
        if let Some(post) = self.run.world().post_mut(no) {
            post.listed = OPEN;
        }
        let call = Call::Edit { author: self.actor, post: id, text, tags, mentions };
        if let Some((start, end)) = self.write(call).await
            && let Some(post) = self.run.world().post_mut(no)
        {
            post.edits.push(Change { start, end, value: said });
        }
    }

    /// A moderator hides a post, or shows it again.
    pub(super) async fn hide(&self, no: PostNo, on: bool) {
        let Some((id, _)) = self.own(no).await else { return };
        if let Some((start, end)) = self.write(Call::Hide { post: id, on }).await
            && let Some(post) = self.run.world().post_mut(no)
        {
            post.hidden.change(start, end, on);
        }
    }

    /// Takes a repost back, by what was reposted.
    pub(super) async fn unrepost(&self, no: PostNo) {
        let Some((id, _)) = self.own(no).await else { return };
        let start = self.run.now();
        let call = Call::Unrepost { account: self.actor, post: id };
        // Whatever this very call tells, it is gone: an earlier sending may have taken it away.
        if let Ended::Done(_) = self.run.call(self.instance, call).await
            && let Some(post) = self.run.world().post_mut(no)
        {
            post.deleted.get_or_insert(Change { start, end: self.run.now(), value: () });
        }
    }

    pub(super) async fn tie(&self, what: Tie, no: PostNo, on: bool) {
        let run = self.run;
        let Some((id, _)) = run.reference(no, |world| world.post(no).is_some_and(|p| p.is_unsure)).await
        else {
            return;
        };
        let subject = run.world().subject(no);
        let start = run.now();
        let call = Call::Tie { account: self.actor, post: id, what, on };
        match run.call(self.instance, call.clone()).await {
            Ended::Done(_) => {
                let mut world = run.world();
                let end = run.now();
                let named =
                    world.post(no).map_or(Tri::No, |post| post.exists(Window { from: start, to: end }));
                let fact = world.tie_fact(what, self.actor, subject);
                match no == subject || named == Tri::Yes {
                    true => fact.change(start, end, on),
                    // Of a repost that is gone nobody knows what it stood for.
                    false => fact.influence(on, start, OPEN),
                }
            }
            // It is gone, or not for the actor. A try before that may have been carried out.
            Ended::Refused { kind, message, is_unsure, .. } if kind == "NotFound" => {
                self.unseen(vec![no], start, format!("{call:?} was refused: {message}"));
                if is_unsure {
                    run.world().tie_fact(what, self.actor, subject).influence(on, start, OPEN);
                }
            }
            Ended::Refused { kind, .. } if kind == "Invalid" && on && self.is_suspended() => {}
            Ended::Refused { kind, message, .. } => {
                self.refused(&kind, Some(no), format!("{call:?} was refused: {kind}: {message}"));
            }
            Ended::Stuck => {}
        }
    }

    pub(super) async fn delete(&self, no: PostNo) {
        let Some((id, _)) = self.own(no).await else { return };
        let call = Call::Delete { author: self.actor, post: id };
        if let Some((start, end)) = self.write(call).await
            && let Some(post) = self.run.world().post_mut(no)
        {
            post.deleted = Some(Change { start, end, value: () });
        }
    }
}

/// Whether an error of that kind goes by itself, so that others would send the call again.
fn is_passing(kind: &str) -> bool {
    matches!(kind, "Conflict" | "Overloaded" | "Unavailable" | "Unknown") || kind == GONE
}

/// How far a post goes that says nothing of it. Only its author locks its account, and does one thing after another.
fn reach_by_lock(world: &World, author: u64, now: Time) -> Reach {
    let is_locked = world.locks.get(&author).map(|fact| fact.is(Window { from: now, to: now }, |is| is));
    if is_locked == Some(Tri::Yes) { Reach::Followers } else { Reach::Public }
}

/// Why a post can't have been answered as one that is known, or as a new one. Only who has reposted a post already gets
/// its repost again, and nothing else. (Whether the engine calls a post a repeat tells nothing: it sends things again
/// itself.)
fn wrongly_answered(
    world: &World,
    (no, known): (PostNo, Option<PostNo>),
    window: Window,
) -> Option<&'static str> {
    // Of what it knows something may be lost, or a deletion.
    let post = world.post(no).filter(|_| !world.may_lose)?;
    let is_same = |other: &PostFact| {
        let is_pair = post.is_plain_repost() && other.is_plain_repost();
        is_pair && (other.author, other.original) == (post.author, post.original)
    };
    let Some(known) = known else {
        let mut others = world.posts.iter().flatten().filter(|other| is_same(other));
        let is_second = others.any(|other| other.exists(window) == Tri::Yes);
        return is_second.then_some("it was reposted before");
    };
    let may_be = |other: &PostFact| is_same(other) && other.exists(window) != Tri::No;
    (!world.post(known).is_some_and(may_be)).then_some("that is another post")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Account 1 has published 0, reposted 9 as 1 (which is gone from 30 on) and as 2, and begun to do so again, as 3.
    fn world() -> World {
        let repost = |no| PostPlan { original: Some(9), has_text: false, ..PostPlan::new(no, Reach::Public) };
        let plans = [PostPlan::new(0, Reach::Public), repost(1), repost(2), repost(3)];
        let mut posts: Vec<PostFact> = plans.into_iter().map(|plan| plan.fact(1, 10)).collect();
        posts[0].acknowledged = 20;
        posts[1].acknowledged = 20;
        posts[1].deleted = Some(Change { start: 25, end: 30, value: () });
        posts[2].start = 50;
        posts[2].acknowledged = 60;
        World { posts: posts.into_iter().map(Some).collect(), ..World::default() }
    }

    fn is_right(no: PostNo, known: Option<PostNo>, (from, to): (Time, Time)) -> bool {
        wrongly_answered(&world(), (no, known), Window { from, to }).is_none()
    }

    #[test]
    fn only_who_has_reposted_a_post_gets_its_repost_again() {
        assert!(
            is_right(0, None, (10, 20)) && !is_right(0, Some(1), (10, 20)) && !is_right(3, Some(0), (70, 80))
        );
        // While it is there, or may be; and no other one then.
        assert!(is_right(3, Some(1), (21, 24)) && !is_right(3, None, (21, 24)));
        assert!(is_right(3, Some(1), (21, 28)) && is_right(3, None, (21, 28)));
        assert!(!is_right(3, Some(1), (31, 40)) && is_right(3, None, (31, 40)));
        assert!(is_right(3, Some(2), (70, 80)) && !is_right(3, None, (70, 80)));
    }
}
