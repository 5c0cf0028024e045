//! Clients: each carries out the steps of its own accounts, one after another, and writes down what was acknowledged.

use std::sync::Arc;

use super::call::{Asked, Call, PostSpec, Reply, State, Switch, Tie, Which};
use super::check::Wrong;
use super::facts::{Change, Fact, OPEN, Time, Tri, Window};
use super::run::{Ended, Run};
use super::steps::{Action, Place, PostPlan, Step, Walked};
use super::world::{PostFact, PostNo, Said};

/// Carries steps out, each client its own; returns when all are done.
pub(crate) async fn drive(run: &Arc<Run>, steps: Vec<Step>, clients: usize) -> anyhow::Result<()> {
    let mut parts: Vec<Vec<Step>> = vec![Vec::new(); clients];
    for step in steps {
        parts[step.client].push(step);
    }
    let clients = parts.into_iter().map(|part| {
        let run = run.clone();
        tokio::spawn(async move {
            for step in part {
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
            Action::Edit(no, tags) => self.edit(no, tags).await,
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
            Action::Create { is_locked, is_pulled } => {
                let call = Call::Create { account: self.actor, is_locked, is_pulled };
                if self.write(call).await.is_some() {
                    run.world().created(self.actor, is_locked);
                }
                run.tell_published();
            }
            Action::Bury => {
                if let Some((start, end)) = self.write(Call::DeleteAccount { account: self.actor }).await {
                    run.world().buried(self.actor, start, end);
                }
            }
            Action::Read { limit, hydrate } => {
                run.read(self.instance, Asked { hydrate, ..Asked::home(self.actor, limit) }).await;
            }
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
            // The other account is gone, or this call is the second sending of what made it so.
            Ended::Refused { kind, .. } if kind == "NotFound" && may_miss(&call) => {
                matches!(call, Call::DeleteAccount { .. }).then(|| (start, self.run.now()))
            }
            // Whoever is suspended only takes back.
            Ended::Refused { kind, .. }
                if kind == "Invalid" && matches!(call, Call::Edit { .. }) && self.is_suspended() =>
            {
                None
            }
            Ended::Refused { kind, message, .. } => {
                let text = format!("{call:?} was refused: {kind}: {message}");
                self.run.wrong(Wrong::Stuck, self.actor, None, text);
                None
            }
            Ended::Stuck => None,
        }
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
            Ended::Refused { kind, is_unsure, .. } if kind == "NotFound" => {
                if is_unsure {
                    let mut world = run.world();
                    world.switch_fact(what, self.actor, other).influence(on, start, OPEN);
                }
            }
            // Whoever is suspended only takes back. Its state is its own affair, so no try has found another one.
            Ended::Refused { kind, .. } if kind == "Invalid" && on && self.is_suspended() => {}
            Ended::Refused { kind, message, .. } => {
                let text = format!("{call:?} was refused: {kind}: {message}");
                run.wrong(Wrong::Stuck, self.actor, None, text);
            }
            Ended::Stuck => {}
        }
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
        let call =
            if yes { Call::Approve { account, requester } } else { Call::Reject { account, requester } };
        match run.call(self.instance, call).await {
            Ended::Done(_) | Ended::Refused { is_unsure: true, .. } => {
                let mut world = run.world();
                let end = run.now();
                world.answered(account, requester, yes, (start, end));
            }
            _ => {}
        }
    }

    async fn publish(&self, plan: PostPlan) {
        let run = self.run;
        let mut references = [None, None];
        for (reference, no) in references.iter_mut().zip([plan.original, plan.parent]) {
            if let Some(no) = no {
                *reference = run.reference(no, |world| world.post(no).is_some_and(|p| p.is_unsure)).await;
                if reference.is_none() {
                    run.count("publish", |counts| counts.skipped += 1);
                    self.never(plan.no);
                    return;
                }
            }
        }
        // Others may still be creating them: who isn't there is on no list.
        for mentioned in &plan.mentions {
            run.known(*mentioned).await;
        }
        let text = if plan.has_text { text_of(plan.no, 0) } else { String::new() };
        let start = run.now();
        let fact = PostFact {
            author: self.actor,
            reach: plan.reach,
            only_to: plan.only_to.clone(),
            not_to: plan.not_to.clone(),
            original: plan.original,
            has_text: plan.has_text,
            parent: plan.parent,
            mentions: plan.mentions.clone(),
            start,
            acknowledged: OPEN,
            delivered: OPEN,
            listed: OPEN,
            id: None,
            deleted: None,
            hidden: Fact::new(false),
            edits: Vec::new(),
            said: (text.clone(), plan.tags.clone()),
            is_unsure: false,
        };
        {
            let mut world = run.world();
            let meant = |no: Option<PostNo>| no.map(|no| world.subject(no));
            let fact = PostFact { original: meant(fact.original), parent: meant(fact.parent), ..fact };
            world.posts[plan.no] = Some(fact);
        }
        let post = PostSpec {
            text,
            reach: plan.reach,
            only_to: plan.only_to,
            not_to: plan.not_to,
            original: references[0],
            parent: references[1],
            mentions: plan.mentions,
            tags: plan.tags,
            token: token_of(plan.no),
        };
        match run.call(self.instance, Call::Publish { author: self.actor, post }).await {
            // It has reposted that already: once is enough.
            Ended::Done(Reply::Published { id, .. }) if run.world().by_id.contains_key(&id) => {
                self.never(plan.no)
            }
            Ended::Done(Reply::Published { id, .. }) => {
                {
                    let mut world = run.world();
                    world.published(plan.no, id, run.now());
                }
                self.await_delivery(plan.no, id);
            }
            _ => self.never(plan.no),
        }
        run.tell_published();
    }

    /// A post that was refused, or whose original was: nobody needs to wait for it.
    fn never(&self, no: PostNo) {
        let mut world = self.run.world();
        match world.post_mut(no) {
            Some(post) => post.is_unsure = true,
            None => world.posts[no] = Some(never(self.actor)),
        }
        drop(world);
        self.run.tell_published();
    }

    /// Notes when the delivery is done, if the instance that began it lives so long.
    fn await_delivery(&self, no: PostNo, id: u64) {
        let (run, instance) = (self.run.clone(), self.run.pool.instance(self.instance));
        tokio::spawn(async move {
            if let Some(Reply::Done) = instance.call(Call::Delivered { post: id }).await {
                let now = run.now();
                if let Some(post) = run.world().post_mut(no) {
                    post.delivered = post.delivered.min(now);
                }
            }
        });
    }

    /// Publishing again with the same token gives the same post, also if it was edited or deleted meanwhile.
    async fn republish(&self, no: PostNo) {
        let Some((id, _)) = self.own(no).await else { return };
        let post = {
            let world = self.run.world();
            let Some(post) = world.post(no) else { return };
            PostSpec {
                text: post.said.0.clone(),
                mentions: post.mentions.clone(),
                tags: post.said.1.clone(),
                reach: post.reach,
                only_to: post.only_to.clone(),
                not_to: post.not_to.clone(),
                original: post.original.and_then(|no| world.reference(no)),
                parent: post.parent.and_then(|no| world.reference(no)),
                token: token_of(no),
            }
        };
        let call = Call::Publish { author: self.actor, post };
        match self.run.call(self.instance, call).await {
            Ended::Done(Reply::Published { id: again, is_repeat: true }) if again == id => {}
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

    async fn edit(&self, no: PostNo, tags: Vec<u8>) {
        let Some((id, _)) = self.own(no).await else { return };
        let (number, has_text) = {
            let world = self.run.world();
            world.post(no).map_or((0, false), |post| (post.edits.len() + 1, post.has_text))
        };
        if !has_text {
            return;
        }
        let text = text_of(no, number);
        let said: Said = (text, tags);
        if let Some(post) = self.run.world().post_mut(no) {
            post.listed = OPEN;
        }
        let call = Call::Edit { author: self.actor, post: id, text: said.0.clone(), tags: said.1.clone() };
        if let Some((start, end)) = self.write(call).await
            && let Some(post) = self.run.world().post_mut(no)
        {
            post.edits.push(Change { start, end, value: said });
        }
    }

    /// A moderator hides a post, or shows it again.
    async fn hide(&self, no: PostNo, on: bool) {
        let Some((id, _)) = self.own(no).await else { return };
        if let Some((start, end)) = self.write(Call::Hide { post: id, on }).await
            && let Some(post) = self.run.world().post_mut(no)
        {
            post.hidden.change(start, end, on);
        }
    }

    /// Takes a repost back, by what was reposted.
    async fn unrepost(&self, no: PostNo) {
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

    async fn tie(&self, what: Tie, no: PostNo, on: bool) {
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
            Ended::Refused { kind, is_unsure, .. } if kind == "NotFound" => {
                if is_unsure {
                    run.world().tie_fact(what, self.actor, subject).influence(on, start, OPEN);
                }
            }
            Ended::Refused { kind, .. } if kind == "Invalid" && on && self.is_suspended() => {}
            Ended::Refused { kind, message, .. } => {
                let text = format!("{call:?} was refused: {kind}: {message}");
                run.wrong(Wrong::Stuck, self.actor, Some(no), text);
            }
            Ended::Stuck => {}
        }
    }

    async fn delete(&self, no: PostNo) {
        let Some((id, _)) = self.own(no).await else { return };
        let call = Call::Delete { author: self.actor, post: id };
        if let Some((start, end)) = self.write(call).await
            && let Some(post) = self.run.world().post_mut(no)
        {
            post.deleted = Some(Change { start, end, value: () });
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

/// Whether a call may name an account that somebody else has deleted, or be a second sending of a deletion.
fn may_miss(call: &Call) -> bool {
    matches!(call, Call::Unfollow { .. } | Call::DeleteAccount { .. } | Call::Hide { .. })
}

/// What a post says after so many edits.
fn text_of(no: PostNo, edits: usize) -> String {
    format!("post {no}, edit {edits}")
}

fn token_of(no: PostNo) -> String {
    format!("token-{no}")
}

/// A post that there never was.
fn never(author: u64) -> PostFact {
    PostFact {
        author,
        reach: super::call::Reach::Public,
        only_to: Vec::new(),
        not_to: Vec::new(),
        original: None,
        has_text: true,
        parent: None,
        mentions: Vec::new(),
        start: 0,
        acknowledged: OPEN,
        delivered: OPEN,
        listed: OPEN,
        id: None,
        deleted: None,
        hidden: Fact::new(false),
        edits: Vec::new(),
        said: (String::new(), Vec::new()),
        is_unsure: true,
    }
}
