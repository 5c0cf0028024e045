//! Writes that an instance had under way when it was sent to sleep. Whoever had sent them asked another one and went
//! on; the sleeper goes on with them when it wakes. So they may be carried out at any time until it is killed: what
//! they are about is in doubt, and looked up once all is drained. Whatever follows from it has to agree with that.

use std::sync::Arc;

use super::call::{Call, Switch};
use super::facts::{Change, Time, UNTIL_DRAINED, Window};
use super::groups;
use super::losses::{self, Doubts};
use super::run::Run;
use super::suspects::Suspect;
use super::world::{Pair, World};

/// Such a write, from when until when it may have been carried out.
pub(crate) type LateWrite = (Call, Window);

impl Call {
    /// Whether it can be looked up what has come of it, should it be carried out long after its caller has gone on.
    pub(crate) fn may_come_late(&self) -> bool {
        match self {
            Self::Publish { post, .. } => post.token.is_some() && post.original.is_none(),
            Self::Switch { what, .. } => *what != Switch::Block,
            Self::Follow { .. } | Self::Unfollow { .. } | Self::Approve { .. } | Self::Reject { .. } => true,
            Self::Tie { .. } | Self::Delete { .. } => true,
            _ => false,
        }
    }
}

impl World {
    /// Doubts what late writes are about. They are over: their instances are gone.
    fn doubt_late_writes(&mut self) -> Doubts {
        let mut doubts = Doubts::default();
        for (call, window) in std::mem::take(&mut self.late_writes) {
            let from = window.from;
            match call {
                Call::Follow { reader, author } => self.doubt_follow((reader, author), Some(true), from),
                Call::Unfollow { reader, author } => self.doubt_follow((reader, author), Some(false), from),
                Call::Approve { account, requester } => {
                    self.doubt_follow((requester, account), Some(true), from);
                }
                Call::Reject { account, requester } => self.doubt_follow((requester, account), None, from),
                Call::Switch { account, other, what, on } => {
                    self.switch_fact(what, account, other).influence(on, from, UNTIL_DRAINED);
                    doubts.switches.entry(account).or_default().push(other);
                }
                Call::Tie { account, post, what, on } => {
                    let Some(no) = self.by_id.get(&post).map(|no| self.subject(*no)) else {
                        self.groups.doubt_like(post, account, on, from);
                        continue;
                    };
                    self.tie_fact(what, account, no).influence(on, from, UNTIL_DRAINED);
                    doubts.ties.entry(account).or_default().push((what, no));
                }
                // The first that was carried out has its token.
                Call::Publish { author, .. } => self.unsure_publishes.push((author, window)),
                // What is gone is gone.
                _ => {}
            }
        }
        doubts
    }

    /// A task of a sleeper has looked at a follow, and writes its edge when it wakes, whatever has become of it since.
    /// Edges are looked at a minute after they were written.
    fn note_late_edges(&mut self, now: Time) {
        let (sleeps, since) = (std::mem::take(&mut self.sleeps), self.drained);
        let may_be_late = |change: &Change<bool>| {
            change.value && change.end > since && sleeps.iter().any(|sleep| change.start < sleep.to)
        };
        let late = self.follows.iter().filter(|(_, fact)| fact.changes.iter().any(may_be_late));
        let joined = self.groups.members.iter().filter(|(_, fact)| fact.changes.iter().any(may_be_late));
        let joined = joined.map(|((group, member), _)| (*member, groups::account_of(*group)));
        let late: Vec<Pair> = late.map(|(pair, _)| *pair).chain(joined).collect();
        self.strays.extend(late.into_iter().map(|pair| (pair, now)));
    }

    /// Follows and requests that can't be known are looked up anyway.
    fn doubt_follow(&mut self, pair: Pair, follows: Option<bool>, from: Time) {
        if let Some(follows) = follows {
            self.follow_fact(pair).influence(follows, from, UNTIL_DRAINED);
        }
        self.requests.entry(pair).or_default().is_disturbed = true;
        let is_of_it = |suspect: &Suspect| matches!(suspect, Suspect::Unanswered(of, ..) if *of == pair);
        self.suspects.retain(|suspect| !is_of_it(suspect));
    }
}

/// Doubts what late writes are about, and ends the doubts.
pub(crate) async fn settle(run: &Arc<Run>) {
    let doubts = {
        let (mut world, now) = (run.world(), run.now());
        world.note_late_edges(now);
        world.doubt_late_writes()
    };
    losses::look_up(run, doubts).await;
}

#[cfg(test)]
mod tests {
    use super::super::facts::Tri;
    use super::*;

    #[test]
    fn what_a_sleeper_had_under_way_may_come_until_it_is_gone() {
        let mut world = World::default();
        (1..=2).for_each(|account| world.created(account, false));
        let at = |time| Window { from: time, to: time };
        // Sent again elsewhere, and taken back.
        world.followed((1, 2), 10, 30, true);
        world.unfollowed((1, 2), 40, 50);
        world.late_writes.push((Call::Follow { reader: 1, author: 2 }, Window { from: 20, to: 90 }));
        world.late_writes.push((
            Call::Switch { account: 1, other: 2, what: Switch::Mute, on: true },
            Window { from: 20, to: 90 },
        ));
        assert_eq!(world.is_following(1, 2, at(60)), Tri::No);
        let doubts = world.doubt_late_writes();
        assert_eq!(world.is_following(1, 2, at(60)), Tri::Maybe);
        assert_eq!(world.waits((1, 2)), Tri::Maybe);
        assert_eq!(world.is_on(Switch::Mute, 1, 2, at(10)), Tri::No);
        assert_eq!(world.is_on(Switch::Mute, 1, 2, at(60)), Tri::Maybe);
        assert_eq!(doubts.switches.get(&1), Some(&vec![2]));
    }

    #[test]
    fn an_edge_of_a_follow_before_a_sleeper_woke_may_be_late() {
        let mut world = World::default();
        (1..=3).for_each(|account| world.created(account, false));
        world.followed((1, 2), 10, 30, true);
        world.drained(40);
        world.followed((2, 3), 50, 60, true);
        world.followed((3, 1), 200, 210, true);
        world.sleeps.push(Window { from: 55, to: 90 });
        world.note_late_edges(300);
        assert_eq!([(1, 2), (2, 3), (3, 1)].map(|pair| world.is_stray(pair, 301)), [false, true, false]);
        assert!(world.sleeps.is_empty());
    }
}
