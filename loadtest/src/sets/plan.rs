//! What is done, to which set and member, and when: all of it decided by the seed. Pure.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::arrivals::Arrivals;
use crate::power_law::PowerLaw;

/// Of 100 changes so many are follows; of these 100 again so many by members who never followed before.
const FOLLOWS_PERCENT: u32 = 75;
const NEW_FOLLOWERS_PERCENT: u32 = 75;
/// Of 100 reads so many are look-ups, and so many pages; the others are counts.
const LOOK_UPS_PERCENT: u32 = 50;
const PAGES_PERCENT: u32 = 25;
/// By how many members 100 changes let a set grow, at least: what the shares above come to.
const GROWTH_PERCENT: u64 = 30;

/// A kind of operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Follow,
    Unfollow,
    LookUp,
    Page,
    Count,
}

impl Action {
    /// All kinds, in the order of the report.
    pub(crate) const ALL: [Self; 5] = [Self::Follow, Self::Unfollow, Self::LookUp, Self::Page, Self::Count];

    /// Its name in the report.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Follow => "follow",
            Self::Unfollow => "unfollow",
            Self::LookUp => "look_up",
            Self::Page => "page",
            Self::Count => "count",
        }
    }
}

/// One operation of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Planned {
    /// When it is due, from the beginning of the run.
    pub(crate) at: Duration,
    /// Its place in the run, from 1.
    pub(crate) number: u64,
    pub(crate) action: Action,
    /// Rank of the account, from 0.
    pub(crate) account: usize,
    /// Number of the follower. It says nothing for pages and counts.
    pub(crate) member: u64,
}

/// All operations of a run, in the order of their time.
#[derive(Debug)]
pub(crate) struct Plan {
    arrivals: Arrivals,
    random: StdRng,
    law: PowerLaw,
    writers_percent: u32,
    /// By account: the first follower's number that was never used.
    unused: Vec<u64>,
    number: u64,
}

impl Plan {
    /// `start` is how many followers each account has when the run begins: numbers 0 to there.
    pub(crate) fn new(
        law: PowerLaw,
        start: Vec<u64>,
        writers_percent: u32,
        arrivals: Arrivals,
        seed: u64,
    ) -> Self {
        Self { arrivals, random: StdRng::seed_from_u64(seed), law, writers_percent, unused: start, number: 0 }
    }

    fn percent(&mut self, percent: u32) -> bool {
        self.random.random_range(0..100) < percent
    }

    fn action(&mut self) -> Action {
        if self.percent(self.writers_percent) {
            return if self.percent(FOLLOWS_PERCENT) { Action::Follow } else { Action::Unfollow };
        }
        match self.random.random_range(0..100) {
            n if n < LOOK_UPS_PERCENT => Action::LookUp,
            n if n < LOOK_UPS_PERCENT + PAGES_PERCENT => Action::Page,
            _ => Action::Count,
        }
    }

    fn member(&mut self, action: Action, account: usize) -> u64 {
        let unused = self.unused[account];
        match action {
            Action::Follow if self.percent(NEW_FOLLOWERS_PERCENT) => {
                self.unused[account] += 1;
                unused
            }
            // About a fifth of them never followed.
            Action::LookUp => self.random.random_range(0..unused + unused / 4 + 1),
            _ => self.random.random_range(0..unused),
        }
    }
}

impl Iterator for Plan {
    type Item = Planned;

    fn next(&mut self) -> Option<Planned> {
        let at = self.arrivals.next()?;
        self.number += 1;
        let account = self.law.pick(&mut self.random);
        let action = self.action();
        let member = self.member(action, account);
        Some(Planned { at, number: self.number, action, account, member })
    }
}

/// How many followers each account has when the run begins: what the power law says, except that every second of
/// those that are large enough to be spread stops short of it, so that it is spread by what the `changes` of the
/// run add to it, one sooner, the other later.
pub(crate) fn start_sizes(law: &PowerLaw, spread_at: u64, changes: u64) -> Vec<u64> {
    let large = law.sizes().iter().filter(|size| **size >= spread_at).count() as u64;
    let start = |(rank, size): (u64, u64)| {
        if size < spread_at || rank % 2 == 0 {
            return size;
        }
        let growth = changes * size / law.total() * GROWTH_PERCENT / 100;
        let missing = growth * rank / large;
        spread_at.saturating_sub(missing.max(1)).max(1)
    };
    (0..).zip(law.sizes().iter().copied()).map(start).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(seed: u64, writers_percent: u32) -> Vec<Planned> {
        let law = PowerLaw::new(20, 500);
        let start = law.sizes().to_vec();
        Plan::new(law, start, writers_percent, Arrivals::new(1_000, 10, seed), seed).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_operations() {
        assert_eq!(plan(3, 20), plan(3, 20));
        assert_ne!(plan(3, 20), plan(4, 20));
    }

    #[test]
    fn the_mix_is_what_was_asked_for() {
        let is_change = |planned: &&Planned| matches!(planned.action, Action::Follow | Action::Unfollow);
        let share = |percent| {
            let plan = plan(1, percent);
            plan.iter().filter(is_change).count() * 100 / plan.len()
        };
        assert_eq!((share(0), share(100)), (0, 100));
        assert!((18..=22).contains(&share(20)), "{}", share(20));
    }

    #[test]
    fn some_large_sets_begin_spread_and_others_just_short_of_it() {
        let law = PowerLaw::new(200, 2_000);
        let start = start_sizes(&law, 512, 4_000);
        assert_eq!(start[0], 2_000);
        assert!((400..512).contains(&start[1]), "{}", start[1]);
        assert!((400..512).contains(&start[3]), "{}", start[3]);
        assert_eq!(start[100..], law.sizes()[100..]);
    }

    #[test]
    fn sets_that_begin_short_of_it_pass_the_threshold() {
        let law = PowerLaw::new(200, 2_000);
        let start = start_sizes(&law, 512, 4_000);
        let mut members: Vec<std::collections::HashSet<u64>> =
            start.iter().map(|n| (0..*n).collect()).collect();
        for planned in Plan::new(law, start, 20, Arrivals::new(2_000, 10, 1), 1) {
            match planned.action {
                Action::Follow => members[planned.account].insert(planned.member),
                Action::Unfollow => members[planned.account].remove(&planned.member),
                _ => false,
            };
        }
        assert!(
            members[1].len() >= 512 && members[3].len() >= 512,
            "{} {}",
            members[1].len(),
            members[3].len()
        );
    }
}
