//! What was acknowledged, in memory: the truth that the sets are compared with.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is known of one member of one set. A member that was never touched is like the default: absent, for sure.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Known {
    /// Its score; `None`: it is not in the set.
    pub(crate) score: Option<f64>,
    /// A change of it failed and may still have happened, or happen: nothing is expected of it any more.
    pub(crate) is_unsure: bool,
    /// A change of it is under way.
    pub(crate) is_changing: bool,
    /// How many changes of it were begun.
    pub(crate) changes: u64,
}

/// All members of all sets. Locks are held for moments only.
#[derive(Debug)]
pub(crate) struct Record {
    accounts: Vec<Mutex<HashMap<u64, Known>>>,
}

impl Record {
    pub(crate) fn new(accounts: usize) -> Self {
        Self { accounts: (0..accounts).map(|_| Mutex::default()).collect() }
    }

    /// A change is about to be sent. False: another one of the same member is under way, so this one must not be.
    pub(crate) fn begin(&self, account: usize, member: u64) -> bool {
        let mut known = self.lock(account);
        let known = known.entry(member).or_default();
        if known.is_changing {
            return false;
        }
        (known.is_changing, known.changes) = (true, known.changes + 1);
        true
    }

    /// The change was acknowledged: the member follows since `score`, or not at all. A score never falls while the
    /// member stays.
    pub(crate) fn acknowledge(&self, account: usize, member: u64, score: Option<f64>) {
        let mut known = self.lock(account);
        let known = known.entry(member).or_default();
        known.is_changing = false;
        known.score = score.map(|new| known.score.map_or(new, |old| old.max(new)));
    }

    /// The change failed: it may have happened or not.
    pub(crate) fn lose_track(&self, account: usize, member: u64) {
        let mut known = self.lock(account);
        let known = known.entry(member).or_default();
        (known.is_changing, known.is_unsure) = (false, true);
    }

    /// What is known of a member now.
    pub(crate) fn look(&self, account: usize, member: u64) -> Known {
        self.lock(account).get(&member).copied().unwrap_or_default()
    }

    /// Whether a look-up that began when `before` was known could have answered `score`.
    pub(crate) fn allows(&self, account: usize, member: u64, before: Known, score: Option<f64>) -> bool {
        let is_open = before.is_changing || before.is_unsure || self.look(account, member) != before;
        is_open || before.score == score
    }

    /// Everything known of one set.
    pub(crate) fn of_account(&self, account: usize) -> HashMap<u64, Known> {
        self.lock(account).clone()
    }

    fn lock(&self, account: usize) -> MutexGuard<'_, HashMap<u64, Known>> {
        self.accounts[account].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_one_member_never_overlap() {
        let record = Record::new(2);
        assert!(record.begin(0, 5));
        assert!(!record.begin(0, 5));
        assert!(record.begin(1, 5), "another set's member is another one");
        record.acknowledge(0, 5, Some(1.0));
        assert!(record.begin(0, 5));
    }

    #[test]
    fn scores_rise_while_a_member_stays_and_start_anew_when_it_comes_back() {
        let record = Record::new(1);
        record.acknowledge(0, 5, Some(2.0));
        record.acknowledge(0, 5, Some(1.0));
        assert_eq!(record.look(0, 5).score, Some(2.0));
        record.acknowledge(0, 5, None);
        record.acknowledge(0, 5, Some(1.0));
        assert_eq!(record.look(0, 5).score, Some(1.0));
    }

    #[test]
    fn a_look_up_is_judged_only_if_nothing_changed_meanwhile() {
        let record = Record::new(1);
        record.acknowledge(0, 5, Some(2.0));
        let before = record.look(0, 5);
        assert!(record.allows(0, 5, before, Some(2.0)));
        assert!(!record.allows(0, 5, before, None), "an acknowledged follow must show");
        assert!(!record.allows(0, 6, record.look(0, 6), Some(1.0)), "nobody ever followed");
        record.begin(0, 5);
        assert!(record.allows(0, 5, before, None), "it is changing");
        record.acknowledge(0, 5, Some(2.0));
        assert!(record.allows(0, 5, before, None), "it has changed and changed back");
        record.begin(0, 5);
        record.lose_track(0, 5);
        assert!(record.allows(0, 5, record.look(0, 5), None), "nobody knows");
    }
}
