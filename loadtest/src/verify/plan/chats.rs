//! Messages of a plan. Drawn by themselves, so that the rest of a plan is what it is without them.

use rand::rngs::StdRng;
use rand::seq::IteratorRandom;
use rand::{RngExt, SeedableRng};

use super::Planner;
use crate::verify::chats::Members;
use crate::verify::steps::{Action, Step};
use crate::verify::written::WrittenNo;

/// How often, per step, somebody writes to a chat, or leaves one.
const MESSAGING: f64 = 0.04;
/// What the seed of messages differs in from that of everything else.
const OTHER_SEED: u64 = 0x00c4_a75e_ed00_0000;

/// What the plan imagines of chats.
#[derive(Debug)]
pub(super) struct Imagined {
    random: StdRng,
    /// Messages that were not taken back, with who has written them.
    messages: Vec<(WrittenNo, u64)>,
    next: WrittenNo,
    /// Chats of more than two.
    large: Vec<Members>,
}

impl Imagined {
    pub(super) fn new(seed: u64) -> Self {
        let random = StdRng::seed_from_u64(seed ^ OTHER_SEED);
        Self { random, messages: Vec::new(), next: 0, large: Vec::new() }
    }
}

impl Default for Imagined {
    fn default() -> Self {
        Self::new(0)
    }
}

impl Planner {
    /// Perhaps somebody writes to a chat, takes that back, or leaves one.
    pub(super) fn chat(&mut self) -> Option<Step> {
        let (gone, chats) = (&self.imagined.gone, &mut self.imagined.chats);
        if self.is_plain || self.is_beside_an_older || !chats.random.random_bool(MESSAGING) {
            return None;
        }
        let is_there = |account: &u64| !gone.contains(account);
        let (actor, action) = match chats.random.random_range(0..20) {
            0 => {
                let members = chats.large.iter().choose(&mut chats.random)?.clone();
                let actor = members.iter().copied().filter(is_there).choose(&mut chats.random)?;
                (actor, Action::Leave(members))
            }
            1 | 2 => {
                chats.messages.retain(|(_, by)| is_there(by));
                let at = (0..chats.messages.len()).choose(&mut chats.random)?;
                let (no, actor) = chats.messages.swap_remove(at);
                (actor, Action::Unsay(no))
            }
            _ => {
                // Neighbours, so that chats are met again.
                let first = chats.random.random_range(1..=self.accounts.saturating_sub(3).max(1));
                let many = if chats.random.random_bool(0.6) { 2 } else { 3 };
                let members: Members = (first..first + many).filter(is_there).collect();
                let actor = members.iter().copied().choose(&mut chats.random)?;
                if members.len() > 2 && !chats.large.contains(&members) {
                    chats.large.push(members.clone());
                }
                let no = chats.next;
                chats.next += 1;
                chats.messages.push((no, actor));
                (actor, Action::Say(no, members))
            }
        };
        let instance = chats.random.random_range(0..1_000);
        let client = usize::try_from(actor).unwrap_or(0) % self.clients;
        Some(Step { actor, client, instance, action })
    }
}
