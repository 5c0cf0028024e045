//! What is done in groups, of a plan. Drawn by itself, so that the rest of a plan is what it is without it.

use std::collections::BTreeSet;

use rand::rngs::StdRng;
use rand::seq::IteratorRandom;
use rand::{RngExt, SeedableRng};

use super::Planner;
use crate::verify::groups::{GROUPS, GroupNo, MEMBERS, is_held, owner_of};
use crate::verify::steps::{Action, Gathering, Step};
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
    next: WrittenNo,
}

impl Imagined {
    pub(super) fn new(seed: u64) -> Self {
        let random = StdRng::seed_from_u64(seed ^ OTHER_SEED);
        Self { random, are_founded: false, members: BTreeSet::new(), posted: Vec::new(), next: 0 }
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
        let (who, actor, what) = match random.random_range(0..20) {
            _ if !std::mem::replace(&mut groups.are_founded, true) => (member, member, Gathering::Found),
            0..3 => {
                groups.members.insert((group, member));
                (member, member, Gathering::Enter(group))
            }
            3 | 4 => {
                groups.members.remove(&(group, member));
                let way = if random.random_bool(0.6) { Gathering::Exit } else { Gathering::TurnedOut };
                (member, member, way(group))
            }
            5 | 6 => {
                let at = (0..groups.posted.len()).choose(random)?;
                let (no, group, by) = groups.posted.swap_remove(at);
                let actor = if random.random_bool(0.4) { owner_of(group) } else { by };
                (by, actor, Gathering::Remove(no))
            }
            7 | 8 => {
                let held = groups.posted.iter().copied().filter(|(no, ..)| is_held(*no)).choose(random);
                let (no, group, by) = held?;
                (by, owner_of(group), Gathering::Release(no))
            }
            9..13 => (member, member, Gathering::Look(group)),
            _ => {
                // Mostly somebody who is in it.
                let is_any = random.random_bool(0.1);
                let in_one = groups.members.iter().copied().filter(|_| !is_any).choose(random);
                let (group, member) = in_one.unwrap_or((group, member));
                let no = groups.next;
                groups.next += 1;
                groups.posted.push((no, group, member));
                (member, member, Gathering::Post(group, no))
            }
        };
        let instance = random.random_range(0..1_000);
        // What is done to a member, and to what it has posted, comes in one line with what it does itself.
        let client = usize::try_from(who).unwrap_or(0) % self.clients;
        Some(Step { actor, client, instance, action: Action::Gather(what) })
    }
}
