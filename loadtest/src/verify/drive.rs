//! Clients: each carries out the steps of its own accounts, one after another, and writes down what was acknowledged.

mod chats;
mod groups;
mod names;
mod posts;
mod reports;
mod rushes;
mod scrolls;

use std::sync::Arc;

use super::call::{Asked, Call, State, Switch, Which};
use super::check::Wrong;
use super::facts::{OPEN, Time, Tri, Window};
use super::gate::Gate;
use super::names::Name;
use super::run::{Ended, Run};
use super::steps::{Action, Place, Step, Walked};
use super::suspects::Suspect;
use super::told::Reply;
use super::world::PostNo;

/// What is counted of refusals that nobody can judge.
const LOST_PERHAPS: &str = "refused where a failover may have lost what was meant";

/// Carries steps out, each client its own, as the gate lets them begin; returns when all are done.
pub(crate) async fn drive(
    run: &Arc<Run>,
    steps: Vec<Step>,
    clients: usize,
    gate: &Arc<Gate>,
) -> anyhow::Result<()> {
    let mut parts: Vec<Vec<(usize, Step)>> = vec![Vec::new(); clients];
    for (number, step) in steps.into_iter().enumerate() {
        parts[step.client].push((number, step));
    }
    let clients = parts.into_iter().map(|part| {
        let (run, gate) = (run.clone(), gate.clone());
        tokio::spawn(async move {
            for (number, step) in part {
                gate.begin(number).await;
                if run.has_given_up() {
                    return;
                }
                Client { run: &run, actor: step.actor, instance: step.instance }.carry_out(step.action).await;
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await?;
    }
    Ok(())
}

/// Who carries out one step.
struct Client<'a> {
    run: &'a Arc<Run>,
    actor: u64,
    instance: usize,
}

impl Client<'_> {
    async fn carry_out(&self, action: Action) {
        let run = self.run;
        // Others may still be creating it: the plan has it before.
        if let Some(other) = action.other() {
            run.known(other).await;
        }
        match action {
            Action::Publish(plan) => self.publish(plan).await,
            Action::Republish(no) => self.republish(no).await,
            Action::Edit(no, tags, mentions) => self.edit(no, tags, mentions).await,
            Action::Delete(no) => self.delete(no).await,
            Action::Hide(no, on) => self.hide(no, on).await,
            Action::Unrepost(no) => self.unrepost(no).await,
            Action::Tie(what, no, on) => self.tie(what, no, on).await,
            Action::Follow(author) => self.follow(author).await,
            Action::Unfollow(author) => {
                let call = Call::Unfollow { reader: self.actor, author };
                if let Some((start, end)) = self.write(call).await {
                    run.world().unfollowed((self.actor, author), start, end);
                }
            }
            Action::Switch(what, other, on) => self.switch(what, other, on).await,
            Action::Approve(requester) => self.answer(requester, true).await,
            Action::Reject(requester) => self.answer(requester, false).await,
            Action::Lock(is_locked) => {
                let call = Call::SetLock { account: self.actor, is_locked };
                if let Some(when) = self.write(call).await {
                    run.world().locked(self.actor, is_locked, when);
                }
            }
            Action::State(state) => {
                let call = Call::SetState { account: self.actor, state };
                if let Some((start, end)) = self.write(call).await
                    && let Some(fact) = run.world().states.get_mut(&self.actor)
                {
                    fact.change(start, end, state);
                }
            }
            Action::Cross(way) => drop(self.write(Call::SetWay { account: self.actor, way }).await),
            Action::Create { is_locked, is_pulled, names } => {
                self.create((is_locked, is_pulled), names).await
            }
            Action::Name(naming) => self.name(naming).await,
            Action::Report(no, target, post) => self.report(no, target, post).await,
            Action::Resolve(no, on) => self.resolve(no, on).await,
            Action::Say(no, members) => self.say(no, members).await,
            Action::Unsay(no) => self.unsay(no).await,
            Action::Leave(members) => self.leave(members).await,
            Action::Gather(what) => self.gather(what).await,
            Action::Bury => {
                if let Some((start, end)) = self.write(Call::DeleteAccount { account: self.actor }).await {
                    run.world().buried(self.actor, start, end);
                }
            }
            Action::Read { limit, hydrate } => {
                run.read(self.instance, Asked { hydrate, ..Asked::home(self.actor, limit) }).await;
            }
            Action::Scroll { limit } => self.scroll(limit).await,
            Action::Walk { which, limits, up, around } => self.walk(which, &limits, up, around).await,
            Action::Range { limit, max, since, min } => {
                let [max, since, min] = [max, since, min].map(|place| self.id_at(place?));
                let asked = Asked { max, since, min, ..Asked::home(self.actor, limit) };
                run.read(self.instance, asked).await;
            }
            Action::Sweep => drop(run.call(self.instance, Call::Sweep).await),
            Action::Warm => drop(run.call(self.instance, Call::Warm { account: self.actor }).await),
            Action::Spread => drop(run.call(self.instance, Call::Spread { account: self.actor }).await),
        }
    }

    /// A write that nothing may refuse: when it began, when it was acknowledged.
    async fn write(&self, call: Call) -> Option<(Time, Time)> {
        let start = self.run.now();
        match self.run.call(self.instance, call.clone()).await {
            Ended::Done(_) => Some((start, self.run.now())),
            // This is the second sending of what made it so.
            Ended::Refused { kind, .. }
                if kind == "NotFound" && matches!(call, Call::DeleteAccount { .. }) =>
            {
                Some((start, self.run.now()))
            }
            Ended::Refused { kind, is_unsure: true, .. }
                if kind == "NotFound" && matches!(call, Call::Delete { .. }) && self.run.is_over_http() =>
            {
                Some((start, self.run.now()))
            }
            Ended::Refused { kind, message, .. } if kind == "NotFound" && is_about_others(&call) => {
                self.missed(&call, start, (&kind, &message));
                None
            }
            // Whoever is suspended only takes back.
            Ended::Refused { kind, .. }
                if kind == "Invalid" && matches!(call, Call::Edit { .. }) && self.is_suspended() =>
            {
                None
            }
            Ended::Refused { kind, message, .. } => {
                self.refused(&kind, None, format!("{call:?} was refused: {kind}: {message}"));
                None
            }
            Ended::Stuck => None,
        }
    }

    async fn create(&self, (is_locked, is_pulled): (bool, bool), names: Vec<Name>) {
        let (run, account) = (self.run, self.actor);
        let is_there = if names.is_empty() {
            self.write(Call::Create { account, is_locked, is_pulled }).await.is_some()
        } else {
            self.sign_up_actor((is_locked, is_pulled), names).await
        };
        if is_there {
            run.world().created(account, is_locked);
        }
        run.tell_published();
    }

    async fn follow(&self, author: u64) {
        let (run, pair, start) = (self.run, (self.actor, author), self.run.now());
        match run.call(self.instance, Call::Follow { reader: self.actor, author }).await {
            Ended::Done(Reply::Flag(follows)) => {
                let mut world = run.world();
                world.followed(pair, start, run.now(), follows);
            }
            // Blocked, or suspended. A try before that may have been carried out.
            Ended::Refused { is_unsure: true, .. } => {
                let mut world = run.world();
                let now = run.now();
                world.follow_fact(pair).influence(true, start, now);
                world.requests.entry(pair).or_default().is_disturbed = true;
            }
            Ended::Refused { kind, message, .. } => {
                let window = Window { from: start, to: run.now() };
                let why = format!("{kind}: {message}");
                run.world().suspects.push(Suspect::Refused(pair, window, why));
            }
            _ => {}
        }
    }

    async fn switch(&self, what: Switch, other: u64, on: bool) {
        let call = Call::Switch { account: self.actor, other, what, on };
        let (run, pair, start) = (self.run, (self.actor, other), self.run.now());
        match run.call(self.instance, call.clone()).await {
            Ended::Done(_) => {
                let mut world = run.world();
                let end = run.now();
                world.switched(what, pair, on, (start, end));
            }
            // The other account is gone. A try before that may have been carried out.
            Ended::Refused { kind, message, is_unsure, .. } if kind == "NotFound" => {
                self.missed(&call, start, (&kind, &message));
                if is_unsure {
                    let mut world = run.world();
                    world.switch_fact(what, self.actor, other).influence(on, start, OPEN);
                }
            }
            // Whoever is suspended only takes back. Its state is its own affair, so no try has found another one.
            Ended::Refused { kind, .. } if kind == "Invalid" && on && self.is_suspended() => {}
            // Of whom the actor doesn't follow there is nothing to leave out.
            Ended::Refused { kind, message, .. } if kind == "Invalid" && on && what == Switch::Reposts => {
                self.missed(&call, start, (&kind, &message));
            }
            Ended::Refused { kind, message, .. } => {
                self.refused(&kind, None, format!("{call:?} was refused: {kind}: {message}"));
            }
            Ended::Stuck => {}
        }
    }

    /// Nothing may refuse that, as far as anybody knows: but a failover may have lost what it is about.
    fn refused(&self, kind: &str, post: Option<PostNo>, text: String) {
        match kind {
            "NotFound" | "Invalid" if self.run.world().may_lose => {
                self.run.event(LOST_PERHAPS);
            }
            _ => self.run.wrong(Wrong::Stuck, self.actor, post, text),
        }
    }

    /// These posts are said not to be there for the actor: somebody may be deleting one at this moment, or shutting the
    /// actor out.
    fn unseen(&self, posts: Vec<PostNo>, start: Time, why: String) {
        let mut world = self.run.world();
        if world.may_lose {
            drop(world);
            return self.run.event(LOST_PERHAPS);
        }
        let window = Window { from: start, to: self.run.now() };
        world.suspects.push(Suspect::Unseen(self.actor, posts, window, why));
    }

    /// The other account, or the post, is said to be gone: somebody may be deleting it at this moment. Or, by another
    /// kind of refusal, not to be followed.
    fn missed(&self, call: &Call, start: Time, (kind, message): (&str, &str)) {
        let mut world = self.run.world();
        if world.may_lose {
            drop(world);
            return self.run.event(LOST_PERHAPS);
        }
        let window = Window { from: start, to: self.run.now() };
        let why = format!("{call:?} was refused: {message}");
        let missed = match *call {
            Call::Unfollow { reader, author } => Suspect::Missed((reader, author), window, why),
            // Whom nobody follows is there.
            Call::Switch { account, other, what: Switch::Reposts, .. } if kind == "Invalid" => {
                Suspect::Unfollowed((account, other), window, why)
            }
            Call::Switch { account, other, .. } => Suspect::Missed((account, other), window, why),
            Call::Hide { post, .. } => match world.by_id.get(&post).copied() {
                Some(no) => Suspect::MissedPost(no, window, why),
                None => return,
            },
            _ => return,
        };
        world.suspects.push(missed);
    }

    fn is_suspended(&self) -> bool {
        let now = self.run.now();
        let is = |state| state == State::Suspended;
        let world = self.run.world();
        world
            .states
            .get(&self.actor)
            .is_some_and(|fact| fact.is(Window { from: now, to: now }, is) == Tri::Yes)
    }

    async fn answer(&self, requester: u64, yes: bool) {
        let (run, account, start) = (self.run, self.actor, self.run.now());
        let asked = {
            let world = run.world();
            let request = world.requests.get(&(requester, account));
            let request = request.filter(|request| !request.approved && !request.is_disturbed);
            request.and_then(|request| request.asked.map(|_| request.began))
        };
        let call =
            if yes { Call::Approve { account, requester } } else { Call::Reject { account, requester } };
        match run.call(self.instance, call).await {
            Ended::Done(_) | Ended::Refused { is_unsure: true, .. } => {
                let mut world = run.world();
                let end = run.now();
                world.answered(account, requester, yes, (start, end));
            }
            Ended::Refused { kind, message, .. } => {
                let why = format!("{kind}: {message}");
                let suspect = |asked| {
                    let window = Window { from: asked, to: run.now() };
                    Suspect::Unanswered((requester, account), window, why)
                };
                let suspect = asked.map(suspect);
                run.world().suspects.extend(suspect);
            }
            _ => {}
        }
    }

    /// The id at a place, if somebody has published there.
    fn id_at(&self, place: Place) -> Option<u64> {
        let (id, _) = self.run.world().reference(place.post)?;
        Some(id.saturating_add_signed(place.offset))
    }

    async fn walk(&self, walked: Walked, limits: &[usize], up: bool, around: Option<PostNo>) {
        let which = match walked {
            Walked::Which(which) => which,
            Walked::Replies(no) => match self.run.world().reference(no) {
                Some((id, _)) => Which::Replies(id),
                None => return,
            },
        };
        let place = around.and_then(|post| self.id_at(Place { post, offset: 0 }));
        let mut asked = Asked { which, ..Asked::home(self.actor, 1) };
        if up {
            asked.min = Some(place.unwrap_or(0));
        } else {
            asked.max = place;
        }
        for (page, limit) in limits.iter().enumerate() {
            asked.limit = *limit;
            let Some(page) = self.run.read(self.instance + page, asked).await else { return };
            match (up, page.next, page.newer) {
                (false, Some(next), _) => asked.cursor = Some(next),
                (true, _, Some(newer)) => asked.min = Some(newer),
                _ => return,
            }
        }
    }
}

/// Whether a call is about an account, or a post, that somebody else may have deleted.
fn is_about_others(call: &Call) -> bool {
    matches!(call, Call::Unfollow { .. } | Call::Hide { .. })
}
