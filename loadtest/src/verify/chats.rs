//! Chats: what was written to them, held against what their members read and list.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::call::Call;
use super::check::Wrong;
use super::comparisons::Subject;
use super::facts::{Fact, Tri, Window};
use super::rules::View;
use super::run::{Ended, Run};
use super::told::{Message, Reply};
use super::world::World;

/// A message by its place in the plan.
pub(crate) type MessageNo = usize;
/// Who is in a chat, in order: of the same there is one.
pub(crate) type Members = Vec<u64>;

/// What is known of a message.
#[derive(Debug, Clone)]
pub(crate) struct MessageFact {
    pub(crate) by: u64,
    pub(crate) members: Members,
    /// Once it was acknowledged.
    pub(crate) id: Option<u64>,
    /// Whether it may have been written, though nobody was told.
    pub(crate) is_unsure: bool,
    /// Whether its writer has taken it back.
    pub(crate) is_gone: Fact<bool>,
}

/// What is known of chats.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChatFacts {
    pub(crate) messages: BTreeMap<MessageNo, MessageFact>,
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

/// What a message says: each another thing.
pub(crate) fn text_of(no: MessageNo) -> String {
    format!("message {no}")
}

/// The message that says that.
fn no_of(text: &str) -> Option<MessageNo> {
    text.strip_prefix("message ")?.parse().ok().filter(|no| text_of(*no) == text)
}

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
    let mut found = Vec::new();
    let view = View::new(world, reader, now);
    let has_left = world.chats.has_left(members, reader, now);
    let mut wrong = |wrong, text: String| found.push((wrong, reader, format!("chat {members:?}: {text}")));
    for pair in read.windows(2).filter(|pair| pair[0].id <= pair[1].id) {
        wrong(Wrong::Reordered, format!("{:?} before {:?}", pair[0], pair[1]));
    }
    let of = |text: &str| {
        let found = world.chats.messages.get_key_value(&no_of(text)?);
        found.filter(|(_, of)| of.members == *members)
    };
    let mut met = BTreeSet::new();
    for message in read {
        let known = of(&message.text).filter(|(_, fact)| fact.id.is_none_or(|id| id == message.id));
        let Some((no, fact)) = known else {
            wrong(Wrong::Leaked, format!("{message:?} was never written, or under another id"));
            continue;
        };
        if !met.insert(*no) {
            wrong(Wrong::Doubled, format!("{message:?} is there twice"));
        }
        if fact.id.is_none() && !fact.is_unsure {
            wrong(Wrong::Leaked, format!("{message:?} was refused"));
        }
        if shows(&view, fact, now).and(has_left.not()) == Tri::No {
            wrong(Wrong::Leaked, format!("{message:?} doesn't show to {reader}"));
        }
    }
    let missing = world
        .chats
        .messages
        .iter()
        .filter(|(no, fact)| fact.members == *members && fact.id.is_some() && !met.contains(no));
    for (no, fact) in missing {
        if shows(&view, fact, now).and(has_left.not()) == Tri::Yes {
            wrong(Wrong::Missing, format!("message {no} isn't there: {fact:?}"));
        }
    }
    found
}

/// Whether a member reads a message.
fn shows(view: &View<'_>, message: &MessageFact, now: Window) -> Tri {
    message.is_gone.is(now, |is| is).not().and(view.hears(message.by))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(by: u64, id: Option<u64>, is_unsure: bool, is_gone: bool) -> MessageFact {
        MessageFact { by, members: vec![1, 2], id, is_unsure, is_gone: Fact::new(is_gone) }
    }

    #[test]
    fn each_message_is_read_once_by_whom_it_is_for() {
        let mut world = World::default();
        (1..=2).for_each(|account| world.created(account, false));
        let all = [
            fact(1, Some(10), false, false),
            fact(2, Some(20), false, false),
            fact(2, Some(30), false, true),
            fact(1, None, true, false),
            fact(1, None, false, false),
        ];
        world.chats.messages.extend(all.into_iter().enumerate());
        let message = |no: usize, id| Message { id, text: text_of(no) };
        let now = Window { from: 5, to: 5 };
        let kinds = |world: &World, read: &[Message]| -> Vec<Wrong> {
            let found = wrongs(world, (1, &vec![1, 2]), read, now);
            found.into_iter().map(|(wrong, ..)| wrong).collect()
        };
        let [one, two] = [message(0, 10), message(1, 20)];
        assert!(kinds(&world, &[two.clone(), one.clone()]).is_empty());
        assert!(kinds(&world, &[message(3, 25), two.clone(), one.clone()]).is_empty());
        assert_eq!(kinds(&world, std::slice::from_ref(&two)), [Wrong::Missing]);
        assert_eq!(kinds(&world, &[one.clone(), two.clone()]), [Wrong::Reordered]);
        for leaked in [message(2, 30), message(4, 30), message(9, 30), message(0, 30)] {
            assert_eq!(kinds(&world, &[leaked, two.clone(), one.clone()]), [Wrong::Leaked]);
        }
        world.chats.left.insert((vec![1, 2], 1), Fact::new(true));
        assert!(kinds(&world, &[]).is_empty());
        assert_eq!(kinds(&world, &[one]), [Wrong::Leaked]);
    }
}
