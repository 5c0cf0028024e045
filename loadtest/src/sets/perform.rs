//! One operation: sent, timed from when it was due, its answer checked, its outcome counted and recorded.

use std::time::{Duration, Instant};

use tideline::AccountId;
use tideline::sharded::{Order, SortedSet};

use super::plan::{Action, Planned};
use super::record::Record;
use crate::drive::Perform;
use crate::members::{account_id, member_id, stamp_of_change};
use crate::tally::Tally;

/// An operation is given up after this long. It outlasts the router's own deadline, so that its error is what shows.
pub(crate) const OPERATION_MAX: Duration = Duration::from_secs(40);
/// Members on a page.
const PAGE_LENGTH: usize = 20;
/// The kinds of errors that are not the library's own.
const GIVEN_UP: &str = "given_up";
pub(crate) const WRONG_ANSWER: &str = "wrong_answer";

/// The sets, what was acknowledged of them, and what became of the operations.
#[derive(Debug)]
pub(crate) struct Performer {
    /// By rank of the account.
    pub(crate) sets: Vec<SortedSet<AccountId>>,
    pub(crate) record: Record,
    tallies: [Tally; Action::ALL.len()],
}

impl Perform<Planned> for Performer {
    async fn perform(&self, planned: Planned, due: Instant) {
        self.carry_out(&planned, due).await;
    }

    fn dropped(&self, planned: &Planned) {
        self.tally(planned.action).dropped();
    }
}

impl Performer {
    pub(crate) fn new(sets: Vec<SortedSet<AccountId>>) -> Self {
        let record = Record::new(sets.len());
        Self { sets, record, tallies: Action::ALL.map(|_| Tally::new()) }
    }

    /// The tally of one kind of operation.
    pub(crate) fn tally(&self, action: Action) -> &Tally {
        &self.tallies[action as usize]
    }

    async fn carry_out(&self, planned: &Planned, due: Instant) {
        let is_change = matches!(planned.action, Action::Follow | Action::Unfollow);
        if is_change && !self.record.begin(planned.account, planned.member) {
            self.tally(planned.action).overlapping();
            return;
        }
        let sent = tokio::time::timeout(OPERATION_MAX, self.send(planned)).await;
        let error = match sent {
            Ok(Ok(true)) => None,
            Ok(Ok(false)) => Some(WRONG_ANSWER.to_owned()),
            Ok(Err(e)) => Some(format!("{:?}", e.kind()).to_lowercase()),
            Err(_) => Some(GIVEN_UP.to_owned()),
        };
        if is_change && error.is_some() {
            self.record.lose_track(planned.account, planned.member);
        }
        self.tally(planned.action).ended(due.elapsed(), error);
    }

    /// Sends it, and tells whether the answer can be right.
    async fn send(&self, planned: &Planned) -> tideline::Result<bool> {
        let Planned { account, member, .. } = *planned;
        let set = &self.sets[account];
        match planned.action {
            Action::Follow => {
                let score = stamp_of_change(planned.number);
                set.add_greater(&[(member_id(member)?, score)]).await?;
                self.record.acknowledge(account, member, Some(score));
                Ok(true)
            }
            Action::Unfollow => {
                set.remove(&[member_id(member)?]).await?;
                self.record.acknowledge(account, member, None);
                Ok(true)
            }
            Action::LookUp => {
                let before = self.record.look(account, member);
                let scores = set.scores(&[member_id(member)?]).await?;
                Ok(scores.len() == 1 && self.record.allows(account, member, before, scores[0]))
            }
            Action::Page => {
                let page = set.page(.., None, PAGE_LENGTH, Order::Descending).await?;
                Ok(is_page(&page.entries))
            }
            // How many it is right now nobody knows while others change it; the comparison tells in the end.
            Action::Count => set.len().await.map(|_| true),
        }
    }
}

/// Whether it can be a page of the newest: not too long, in descending order, nobody twice.
fn is_page(entries: &[(AccountId, f64)]) -> bool {
    let descends = entries.is_sorted_by(|(a, newer), (b, older)| newer > older || (newer == older && a > b));
    let mut members: Vec<AccountId> = entries.iter().map(|(member, _)| *member).collect();
    members.sort_unstable();
    members.dedup();
    entries.len() <= PAGE_LENGTH && descends && members.len() == entries.len()
}

/// The follower sets of accounts by their rank.
pub(crate) fn open_sets(
    store: &tideline::Store,
    accounts: usize,
) -> tideline::Result<Vec<SortedSet<AccountId>>> {
    (0..accounts).map(|rank| store.sets().of_account(account_id(rank as u64)?, "followers")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_out_of_order_too_long_or_with_somebody_twice_is_wrong() {
        let entry = |member, score: u32| (member_id(member).unwrap(), f64::from(score));
        assert!(is_page(&[]));
        assert!(is_page(&[entry(1, 9), entry(3, 8), entry(2, 8)]));
        assert!(!is_page(&[entry(1, 8), entry(2, 9)]));
        assert!(!is_page(&[entry(1, 9), entry(1, 8)]));
        let long: Vec<_> = (0..21).map(|n| entry(n, 100 - u32::try_from(n).unwrap())).collect();
        assert!(is_page(&long[..20]) && !is_page(&long));
    }
}
