//! What is done in groups, of a plan. Drawn by itself, so that the rest of a plan is what it is without it.

use std::collections::BTreeSet;

use rand::rngs::StdRng;
use rand::seq::IteratorRandom;
use rand::{RngExt, SeedableRng};

use super::Planner;
use crate::verify::groups::{
    GROUPS, GroupKind, GroupNo, MEMBERS, RUSHED, RUSHERS, is_held, kind_of, owner_of,
};
use crate::verify::steps::{Action, Gathering, Rush, Step};
use crate::verify::written::WrittenNo;

/// How often, per step, somebody does something in a group.
const GATHERING: f64 = 0.04;
/// What the seed of groups differs in from that of everything else.
const OTHER_SEED: u64 = 0x0096_0015_eed0_0000;

/// What the plan imagines of groups.
#[derive(Debug)]
pub(super) struct Imagined {
    random: StdRng,
    are_founded: bool,
    members: BTreeSet<(GroupNo, u64)>,
    /// Posts that nobody has taken back, with where they stand and who has written them.
    posted: Vec<(WrittenNo, GroupNo, u64)>,
    /// What was liked once, and by whom.
    liked: Vec<(WrittenNo, u64)>,
    next: WrittenNo,
    rushes: u64,
}

impl Imagined {
    pub(super) fn new(seed: u64) -> Self {
        let random = StdRng::seed_from_u64(seed ^ OTHER_SEED);
        let (members, posted, liked) = (BTreeSet::new(), Vec::new(), Vec::new());
        Self { random, are_founded: false, members, posted, liked, next: 0, rushes: 0 }
    }
}

impl Imagined {
    /// Somebody new who posts more than it may.
    pub(super) fn rush(&mut self, is_alone: bool) -> (u64, Gathering) {
        let (rusher, first) = (RUSHERS + self.rushes, self.next);
        self.rushes += 1;
        self.next += if is_alone { 0 } else { RUSHED };
        let rush = if is_alone { Rush::Alone } else { Rush::Group(first) };
        (rusher, Gathering::Rush(rush))
    }

    /// Somebody who likes a post, mostly a member, or takes that back; some of what is taken back is liked again.
    fn like(&mut self, member: u64) -> Option<(u64, Gathering)> {
        let random = &mut self.random;
        if random.random_bool(0.5) {
            let (no, liker) = self.liked.iter().copied().choose(random)?;
            return Some((liker, Gathering::Like(no, random.random_bool(0.3))));
        }
        let (no, group, _) = self.posted.iter().copied().choose(random)?;
        let in_it = self.members.iter().filter(|(of, _)| *of == group).choose(random);
        let liker = in_it.filter(|_| random.random_bool(0.9)).map_or(member, |(_, member)| *member);
        self.liked.push((no, liker));
        Some((liker, Gathering::Like(no, true)))
    }
}

impl Default for Imagined {
    fn default() -> Self {
        Self::new(0)
    }
}

impl Planner {
    /// Perhaps somebody does something in a group.
    pub(super) fn gather(&mut self) -> Option<Step> {
        let groups = &mut self.imagined.groups;
        let random = &mut groups.random;
        if self.is_plain || self.is_beside_an_older || !random.random_bool(GATHERING) {
            return None;
        }
        let (group, member) = (random.random_range(0..GROUPS), MEMBERS.into_iter().choose(random)?);
        let (who, actor, what) = match random.random_range(0..24) {
            _ if !std::mem::replace(&mut groups.are_founded, true) => (member, member, Gathering::Found),
            0..3 => {
                groups.members.insert((group, member));
                let way = if random.random_bool(0.6) { Gathering::Enter } else { Gathering::Ask };
                (member, member, way(group))
            }
            3 | 4 => {
                groups.members.remove(&(group, member));
                let what = match random.random_range(0..10) {
                    0..5 => Gathering::Exit(group),
                    5..7 => Gathering::TurnedOut(group),
                    _ => Gathering::Ban(group, true),
                };
                (member, member, what)
            }
            5 | 6 => {
                let at = (0..groups.posted.len()).choose(random)?;
                let (no, group, by) = groups.posted.swap_remove(at);
                let actor = match random.random_range(0..10) {
                    0..3 => owner_of(group),
                    3..5 => member,
                    _ => by,
                };
                (by, actor, Gathering::Remove(no))
            }
            7 | 8 => {
                let held = groups.posted.iter().copied().filter(|(no, ..)| is_held(*no)).choose(random);
                let (no, group, by) = held?;
                (by, owner_of(group), Gathering::Release(no))
            }
            9 | 10 => (member, member, Gathering::Look(group)),
            11 => {
                let is_alone = random.random_bool(0.5);
                let (rusher, what) = groups.rush(is_alone);
                (rusher, rusher, what)
            }
            12 => match random.random_bool(0.3) {
                true => (member, member, Gathering::Ban(group, false)),
                false => (member, member, Gathering::Promote(group, random.random_bool(0.7))),
            },
            13..17 => {
                let (liker, what) = groups.like(member)?;
                (liker, liker, what)
            }
            _ => {
                // Mostly somebody who is in it.
                let is_any = random.random_bool(0.1);
                let in_one = groups.members.iter().copied().filter(|_| !is_any).choose(random);
                let (group, member) = match kind_of(group) {
                    GroupKind::Announcement if !is_any => (group, owner_of(group)),
                    _ => in_one.unwrap_or((group, member)),
                };
                let no = groups.next;
                groups.next += 1;
                groups.posted.push((no, group, member));
                (member, member, Gathering::Post(group, no))
            }
        };
        let instance = self.imagined.groups.random.random_range(0..1_000);
        // What is done to a member, and to what it has posted, comes in one line with what it does itself.
        let client = usize::try_from(who).unwrap_or(0) % self.clients;
        Some(Step { actor, client, instance, action: Action::Gather(what) })
    }
}
