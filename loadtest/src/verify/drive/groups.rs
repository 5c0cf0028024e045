//! Groups: founded, joined, left, posted into, looked at.

use std::time::Duration;

use tideline::REPORTS_OPEN_OF_ONE_MAX;

use super::Client;
use crate::verify::call::{Call, Tie};
use crate::verify::check::Wrong;
use crate::verify::facts::{Fact, OPEN, Time, Tri, Window};
use crate::verify::group_call::{GroupCall, LetIn};
use crate::verify::groups::{
    GROUPS, GroupNo, MEMBERS, POSTED, PostedFact, RefusedLike, account_of, is_held, is_private, kind_of,
    owner_of, wrongs_of_a_look,
};
use crate::verify::run::Ended;
use crate::verify::steps::{Gathering, Rush};
use crate::verify::told::Reply;
use crate::verify::world::World;
use crate::verify::written::{Written, WrittenNo, text_of};

/// What was done to it is known by now, until the next change.
fn settled(fact: &mut Fact<bool>, start: Time, end: Time, value: bool) {
    fact.change(start, end, value);
    fact.over(value, end);
}

fn posted(world: &mut World, no: WrittenNo) -> Option<&mut Written> {
    Some(&mut world.groups.posted.get_mut(&no)?.written)
}

impl Client<'_> {
    pub(super) async fn gather(&self, what: Gathering) {
        // Others may be founding them still.
        let needs_none = matches!(what, Gathering::Found | Gathering::Rush(Rush::Alone));
        if !needs_none && !self.run.world().groups.are_founded {
            return;
        }
        let (by, at) = (self.actor, account_of);
        match what {
            Gathering::Found => self.found_groups().await,
            Gathering::Enter(no) => {
                let let_in = is_private(no).then(|| LetIn::Invited(owner_of(no)));
                self.change_membership(no, GroupCall::Enter { by, group: at(no), let_in }, true).await;
            }
            Gathering::Ask(no) => {
                let let_in = Some(LetIn::Answered(owner_of(no)));
                self.change_membership(no, GroupCall::Enter { by, group: at(no), let_in }, true).await;
            }
            Gathering::Exit(no) => {
                self.change_membership(no, GroupCall::Exit { by, group: at(no) }, false).await;
            }
            Gathering::TurnedOut(no) => {
                let call = GroupCall::TurnOut { group: at(no), by: owner_of(no), member: by };
                self.change_membership(no, call, false).await;
            }
            Gathering::Ban(no, on) => self.ban(no, on).await,
            Gathering::Promote(no, on) => self.promote(no, on).await,
            Gathering::Post(group, no) => self.post_into(group, no).await,
            Gathering::Remove(no) => {
                let call = |post| Call::Group(GroupCall::Remove { by, post });
                let may = |world: &World, window| {
                    let of = world.groups.posted.get(&no);
                    of.map_or(Tri::Yes, |of| {
                        Tri::from(of.written.by == by).or(world.groups.is_on_staff(of.group, by, window))
                    })
                };
                self.take_back((POSTED, no), call, |world| posted(world, no), may).await;
            }
            Gathering::Like(no, on) => self.like_in_group(no, on).await,
            Gathering::Release(no) => self.release(no).await,
            Gathering::Look(group) => self.look_at_group(group).await,
            Gathering::Rush(rush) => self.rush(rush).await,
        }
    }

    async fn found_groups(&self) {
        let run = self.run;
        let people = MEMBERS.into_iter().chain((0..GROUPS).map(owner_of));
        let create = |account| Call::Create { account, is_locked: false, is_pulled: false };
        let found = |group| GroupCall::Found {
            group: account_of(group),
            owner: owner_of(group),
            kind: kind_of(group),
        };
        let are_founded = self.all_done(people.map(create).chain((0..GROUPS).map(found).map(Call::Group)));
        run.world().groups.are_founded = are_founded.await;
    }

    /// Whether all of this was done, one after another. Nothing may keep it from that.
    pub(super) async fn all_done(&self, calls: impl Iterator<Item = Call>) -> bool {
        let run = self.run;
        for call in calls {
            if !matches!(run.call(self.instance, call.clone()).await, Ended::Done(_)) {
                let text = format!("{call:?} was not done: what needs it is left out");
                run.wrong(Wrong::Stuck, self.actor, None, text);
                return false;
            }
        }
        true
    }

    /// Nothing may refuse that, but a ban: members are nowhere else, and what they do is done one after another.
    async fn change_membership(&self, group: GroupNo, call: GroupCall, is_in: bool) {
        let (run, start) = (self.run, self.run.now());
        let is_banned = is_in && run.world().groups.is_banned(group, self.actor);
        if !is_in {
            // Who goes has no role any more.
            run.world().groups.moderation(group, self.actor).influence(false, start, OPEN);
        }
        let ended = run.call(self.instance, Call::Group(call.clone())).await;
        let mut world = run.world();
        if !is_in && matches!(ended, Ended::Done(_)) {
            settled(world.groups.moderation(group, self.actor), start, run.now(), false);
        }
        let fact = world.groups.membership(group, self.actor);
        match ended {
            Ended::Refused { .. } if is_banned => {}
            Ended::Done(_) if is_banned => {
                drop(world);
                run.wrong(Wrong::Leaked, self.actor, None, format!("{call:?} was done, and it is banned"));
            }
            Ended::Done(Reply::Flag(false)) => {
                fact.influence(is_in, start, OPEN);
                drop(world);
                let text = format!("{call:?}: whoever is invited waits for nothing");
                run.wrong(Wrong::Stuck, self.actor, None, text);
            }
            Ended::Done(_) => fact.change(start, run.now(), is_in),
            Ended::Refused { kind, message, .. } => {
                fact.influence(is_in, start, OPEN);
                drop(world);
                run.wrong(Wrong::Stuck, self.actor, None, format!("{call:?} was refused: {kind}: {message}"));
            }
            Ended::Stuck => fact.influence(is_in, start, OPEN),
        }
    }

    async fn ban(&self, group: GroupNo, on: bool) {
        let (run, me, owner) = (self.run, self.actor, owner_of(group));
        let call = GroupCall::Ban { group: account_of(group), by: owner, member: me, on };
        if on {
            self.change_membership(group, call, false).await;
            run.world().groups.banned.insert((group, me));
        } else if self.write(Call::Group(call)).await.is_some() {
            // An instance may remember the ban for so long.
            let remembered = run.world().visible_within;
            tokio::time::sleep(Duration::from_micros(remembered)).await;
            run.world().groups.banned.remove(&(group, me));
        }
    }

    /// Makes a member a moderator, or takes that back.
    async fn promote(&self, group: GroupNo, on: bool) {
        let (run, me, start) = (self.run, self.actor, self.run.now());
        {
            let mut world = run.world();
            // It is in, or out: whatever is done to a member is over before that.
            if world.groups.is_member(group, me, Window { from: start, to: start }) != Tri::Yes {
                return;
            }
            // Others use a role while that is under way.
            world.groups.moderation(group, me).influence(on, start, OPEN);
        }
        let call = GroupCall::Promote { group: account_of(group), by: owner_of(group), member: me, on };
        if let Some((start, end)) = self.write(Call::Group(call)).await {
            settled(run.world().groups.moderation(group, me), start, end, on);
        }
    }

    async fn post_into(&self, group: GroupNo, no: WrittenNo) {
        let (run, me, start) = (self.run, self.actor, self.run.now());
        let call = GroupCall::Post { by: me, group: Some(account_of(group)), text: text_of(POSTED, no) };
        let ended = run.call(self.instance, Call::Group(call)).await;
        let may_post = run.world().groups.may_post(group, me, Window { from: start, to: run.now() });
        let (id, is_unsure) = match ended {
            Ended::Done(Reply::Said { id, .. }) => {
                if may_post == Tri::No {
                    let text = format!("number {no} was posted into group {group} by {me}, who may not");
                    run.wrong(Wrong::Leaked, me, None, text);
                }
                (Some(id), false)
            }
            Ended::Done(Reply::TooOften) => {
                let text = format!("number {no} into group {group} was refused: as often as it may");
                run.wrong(Wrong::Stuck, me, None, text);
                (None, false)
            }
            Ended::Done(_) | Ended::Stuck => (None, true),
            Ended::Refused { kind, message, is_unsure } => {
                // As many of one account wait as may.
                let is_full = is_held(no) && run.world().groups.may_wait(me) >= REPORTS_OPEN_OF_ONE_MAX;
                if may_post == Tri::Yes && !is_full {
                    let text = format!("number {no} into group {group} was refused: {kind}: {message}");
                    run.wrong(Wrong::Stuck, me, None, text);
                }
                (None, is_unsure)
            }
        };
        let fact = PostedFact::new(group, no, Written::new(me, id, is_unsure));
        run.world().groups.posted.insert(no, fact);
    }

    async fn release(&self, no: WrittenNo) {
        let (run, start) = (self.run, self.run.now());
        let (writer, post) = {
            let mut world = run.world();
            let Some(PostedFact { written, is_held, .. }) = world.groups.posted.get_mut(&no) else { return };
            let Some(post) = written.id else { return };
            // Others look while that is under way, for as long as a fault holds it up: it may show from now on.
            is_held.influence(false, start, OPEN);
            (written.by, post)
        };
        let call = GroupCall::Release { by: self.actor, writer, post };
        let ended = run.call(self.instance, Call::Group(call)).await;
        let mut world = run.world();
        let Some(PostedFact { is_held, .. }) = world.groups.posted.get_mut(&no) else { return };
        match ended {
            Ended::Done(_) => is_held.change(start, run.now(), false),
            Ended::Refused { kind, message, .. } => {
                drop(world);
                let text = format!("number {no} can't be released: {kind}: {message}");
                run.wrong(Wrong::Stuck, self.actor, None, text);
            }
            Ended::Stuck => {}
        }
    }

    /// A post that was not taken back may be liked by whoever sees it.
    async fn like_in_group(&self, no: WrittenNo, on: bool) {
        let (run, me, start) = (self.run, self.actor, self.run.now());
        let Some(post) = run.world().groups.posted.get(&no).and_then(|of| of.written.id) else { return };
        let call = Call::Tie { account: me, post, what: Tie::Like, on };
        let ended = run.call(self.instance, call).await;
        let mut world = run.world();
        let window = Window { from: start.saturating_sub(world.visible_within), to: run.now() };
        let groups = &mut world.groups;
        match ended {
            Ended::Done(_) => groups.like(no, me).change(start, run.now(), on),
            Ended::Refused { kind, message, is_unsure } => {
                if is_unsure {
                    groups.like(no, me).influence(on, start, OPEN);
                }
                // A ban ends, and leaves nothing behind.
                let is_banned = groups.posted.get(&no).is_some_and(|of| groups.is_banned(of.group, me));
                if !is_banned {
                    let why = format!("{kind}: {message}");
                    groups.refused.push(RefusedLike { no, by: me, window, why });
                }
            }
            Ended::Stuck => groups.like(no, me).influence(on, start, OPEN),
        }
    }

    async fn look_at_group(&self, group: GroupNo) {
        let (run, reader, start) = (self.run, self.actor, self.run.now());
        let call = Call::Group(GroupCall::Posted { reader, group: Some(account_of(group)) });
        let Ended::Done(Reply::Messages(read)) = run.call(self.instance, call).await else { return };
        let window = Window { from: start, to: run.now() };
        let found = wrongs_of_a_look(&run.world(), (reader, group), &read, window);
        for (wrong, text) in found {
            run.wrong(wrong, reader, None, text);
        }
    }
}
