//! Chats: what was written to them, held against what their members read and list.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::call::Call;
use super::check::Wrong;
use super::comparisons::Subject;
use super::facts::{Fact, Tri, Window};
use super::rules::View;
use super::run::{Ended, Run};
use super::told::{Message, Reply};
use super::world::World;
use super::written::{self, Written, WrittenNo};

/// Who is in a chat, in order: of the same there is one.
pub(crate) type Members = Vec<u64>;

/// What is known of a message.
#[derive(Debug, Clone)]
pub(crate) struct MessageFact {
    pub(crate) members: Members,
    pub(crate) written: Written,
}

/// What is known of chats.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChatFacts {
    pub(crate) messages: BTreeMap<WrittenNo, MessageFact>,
    /// The ids of those of which one is known.
    pub(crate) ids: BTreeMap<Members, u64>,
    /// Who has left which.
    pub(crate) left: BTreeMap<(Members, u64), Fact<bool>>,
}

impl ChatFacts {
    pub(crate) fn has_left(&self, members: &Members, account: u64, window: Window) -> Tri {
        self.left.get(&(members.clone(), account)).map_or(Tri::No, |left| left.is(window, |is| is))
    }

    /// How many an account has left, for sure or perhaps.
    pub(crate) fn left_by(&self, account: u64, window: Window, sure: Tri) -> u64 {
        let own = self.left.iter().filter(|((_, by), _)| *by == account);
        own.filter(|(_, left)| left.is(window, |is| is) == sure).map(|_| 1).sum()
    }
}

/// Something wrong about what somebody reads.
type Finding = (Wrong, u64, String);

/// What messages say begins so.
pub(crate) const MESSAGE: &str = "message";

/// Holds what members of chats read, and the lists of their chats, against what was written. Nothing may be under way.
pub(crate) async fn compare(run: &Arc<Run>) {
    let chats = run.world().chats.ids.clone();
    let (mut newest, mut found) = (BTreeMap::<u64, Vec<(u64, u64)>>::new(), Vec::new());
    for (n, (members, chat)) in chats.into_iter().enumerate() {
        for reader in members.iter().copied().filter(|reader| is_there(run, *reader)) {
            let read = match run.call(n, Call::Messages { reader, chat }).await {
                Ended::Done(Reply::Messages(read)) => read,
                other => {
                    run.skipped(Subject::Chats, &other);
                    continue;
                }
            };
            let of = newest.entry(reader).or_default();
            of.extend(read.first().map(|newest| (chat, newest.id)));
            let now = run.now();
            found.extend(wrongs(&run.world(), (reader, &members), &read, Window { from: now, to: now }));
        }
    }
    for (reader, mut of) in newest {
        // As the list has them: by their newest messages.
        of.sort_unstable_by_key(|(_, id)| std::cmp::Reverse(*id));
        match run.call(1, Call::Chats { reader }).await {
            Ended::Done(Reply::Chats(mut listed)) => {
                // One whose newest message doesn't show stands where that does.
                listed.sort_unstable_by_key(|(_, id)| std::cmp::Reverse(*id));
                if listed != of {
                    let text = format!("the list of chats of {reader}: {listed:?}, it reads {of:?}");
                    found.push((Wrong::Missing, reader, text));
                }
            }
            other => run.skipped(Subject::Chats, &other),
        }
    }
    for (wrong, account, text) in found {
        run.wrong(wrong, account, None, text);
    }
}

fn is_there(run: &Run, account: u64) -> bool {
    let now = run.now();
    run.world().is_there(account, Window { from: now, to: now }) == Tri::Yes
}

/// What is wrong about what one of the members of a chat reads there.
fn wrongs(world: &World, (reader, members): (u64, &Members), read: &[Message], now: Window) -> Vec<Finding> {
    let view = View::new(world, reader, now);
    let is_in = world.chats.has_left(members, reader, now).not();
    let messages = world.chats.messages.iter().filter(|(_, of)| of.members == *members);
    let all: Vec<_> = messages
        .map(|(no, MessageFact { written, .. })| {
            (*no, written, written.stands(now).and(view.hears(written.by)).and(is_in))
        })
        .collect();
    let found = written::wrongs(&all, |text| written::no_of(MESSAGE, text), read);
    found.into_iter().map(|(wrong, text)| (wrong, reader, format!("chat {members:?}: {text}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_left_reads_nothing() {
        let mut world = World::default();
        (1..=2).for_each(|account| world.created(account, false));
        let fact = MessageFact { members: vec![1, 2], written: Written::new(2, Some(10), false) };
        world.chats.messages.insert(0, fact);
        let read = [Message { id: 10, text: written::text_of(MESSAGE, 0) }];
        let now = Window { from: 5, to: 5 };
        let kinds = |world: &World, read: &[Message]| -> Vec<Wrong> {
            let found = wrongs(world, (1, &vec![1, 2]), read, now);
            found.into_iter().map(|(wrong, ..)| wrong).collect()
        };
        assert!(kinds(&world, &read).is_empty());
        assert_eq!(kinds(&world, &[]), [Wrong::Missing]);
        world.chats.left.insert((vec![1, 2], 1), Fact::new(true));
        assert!(kinds(&world, &[]).is_empty());
        assert_eq!(kinds(&world, &read), [Wrong::Leaked]);
    }
}
