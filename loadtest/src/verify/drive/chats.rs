//! Messages: written, taken back; chats that are left.

use super::Client;
use crate::verify::call::{Call, State, Switch};
use crate::verify::chats::{MESSAGE, Members, MessageFact};
use crate::verify::check::Wrong;
use crate::verify::facts::{Fact, OPEN, Time, Tri, Window};
use crate::verify::run::Ended;
use crate::verify::told::Reply;
use crate::verify::world::World;
use crate::verify::written::{Written, WrittenNo, text_of};

fn message(world: &mut World, no: WrittenNo) -> Option<&mut Written> {
    Some(&mut world.chats.messages.get_mut(&no)?.written)
}

impl Client<'_> {
    pub(super) async fn say(&self, no: WrittenNo, members: Members) {
        let run = self.run;
        for member in &members {
            run.known(*member).await;
        }
        let start = run.now();
        let call = Call::Say { by: self.actor, members: members.clone(), text: text_of(MESSAGE, no) };
        let (id, is_unsure) = match run.call(self.instance, call).await {
            Ended::Done(Reply::Said { id, chat }) => {
                run.world().chats.ids.insert(members.clone(), chat);
                (Some(id), false)
            }
            Ended::Done(_) | Ended::Stuck => (None, true),
            Ended::Refused { kind, message, is_unsure } => {
                if !self.may_be_refused_to(&members, start) {
                    let text = format!("message {no} to {members:?} was refused: {kind}: {message}");
                    run.wrong(Wrong::Stuck, self.actor, None, text);
                }
                (None, is_unsure)
            }
        };
        let fact = MessageFact { members, written: Written::new(self.actor, id, is_unsure) };
        run.world().chats.messages.insert(no, fact);
    }

    /// Somebody isn't there, the writer may write nothing or has left, or one of two blocks the other.
    fn may_be_refused_to(&self, members: &Members, start: Time) -> bool {
        let (run, me) = (self.run, self.actor);
        let window = Window { from: start, to: run.now() };
        let world = run.world();
        let is_there = |member: &u64| world.is_there(*member, window) == Tri::Yes;
        let is_active = |member: u64| {
            let is_so = |state| matches!(state, State::Active | State::Limited);
            world.states.get(&member).is_some_and(|fact| fact.is(window, is_so) == Tri::Yes)
        };
        let has_left = world.chats.has_left(members, me, window) != Tri::No;
        let blocks = |by, other| world.is_on(Switch::Block, by, other, window) != Tri::No;
        let others = members.iter().copied().filter(|member| *member != me);
        let is_two = members.len() == 2;
        let is_shut = others.clone().any(|other| blocks(me, other) || blocks(other, me) || !is_active(other));
        !members.iter().all(is_there) || !is_active(me) || has_left || is_two && is_shut
    }

    pub(super) async fn unsay(&self, no: WrittenNo) {
        let call = |post| Call::Delete { author: self.actor, post };
        self.take_back((MESSAGE, no), call, |world| message(world, no), |_, _| Tri::Yes).await;
    }

    /// Takes back something that was written, if somebody was told of it.
    pub(super) async fn take_back(
        &self,
        (what, no): (&str, WrittenNo),
        call: impl Fn(u64) -> Call,
        written: impl Fn(&mut World) -> Option<&mut Written>,
        may: impl Fn(&World, Window) -> Tri,
    ) {
        let run = self.run;
        let Some(id) = written(&mut run.world()).and_then(|written| written.id) else { return };
        let start = run.now();
        let ended = run.call(self.instance, call(id)).await;
        let mut world = run.world();
        let may = may(&world, Window { from: start, to: run.now() });
        let Some(Written { is_gone, .. }) = written(&mut world) else { return };
        let wrong = match ended {
            Ended::Done(_) => {
                is_gone.change(start, run.now(), true);
                (may == Tri::No).then(|| "was taken back by who may not".to_owned())
            }
            // Sent again: it was gone by then.
            Ended::Refused { kind, is_unsure: true, .. } if kind == "NotFound" && may == Tri::Yes => {
                is_gone.change(start, run.now(), true);
                None
            }
            Ended::Refused { kind, message, is_unsure } => {
                if may == Tri::Yes || is_unsure {
                    is_gone.influence(true, start, OPEN);
                }
                (may == Tri::Yes).then(|| format!("can't be taken back: {kind}: {message}"))
            }
            Ended::Stuck => None,
        };
        drop(world);
        if let Some(wrong) = wrong {
            run.wrong(Wrong::Lost, self.actor, None, format!("{what} {no} {wrong}"));
        }
    }

    pub(super) async fn leave(&self, members: Members) {
        let run = self.run;
        let Some(chat) = run.world().chats.ids.get(&members).copied() else { return };
        let start = run.now();
        let ended = run.call(self.instance, Call::Leave { by: self.actor, chat }).await;
        let mut world = run.world();
        let left = world.chats.left.entry((members, self.actor)).or_insert_with(|| Fact::new(false));
        match ended {
            Ended::Done(_) => left.change(start, run.now(), true),
            Ended::Refused { kind, message, .. } => {
                left.influence(true, start, OPEN);
                drop(world);
                // Whoever is suspended leaves nothing.
                if kind == "Invalid" && self.is_suspended() {
                    return;
                }
                let text = format!("chat {chat} can't be left: {kind}: {message}");
                run.wrong(Wrong::Stuck, self.actor, None, text);
            }
            Ended::Stuck => left.influence(true, start, OPEN),
        }
    }
}
