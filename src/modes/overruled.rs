//! Accounts that somebody else hands back again and again: policies of instances that differ, of which each is asked
//! about whomever it delivers.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use quick_cache::sync::Cache;

use super::policy::DeliveryWay;
use crate::cluster::{Finding, Severity};
use crate::ids::AccountId;

/// Accounts whose last decisions are remembered.
const ACCOUNTS_MAX: usize = 10_000;
/// So many decisions for the same way, with none for the other one between them, are no accident: who decides by facts
/// that were old may make two.
const DECISIONS: u32 = 3;
/// Within this time of the first of them; and for so long it is told.
const PERIOD: Duration = Duration::from_secs(3_600);

/// Decisions of this instance, and whom it was overruled about.
#[derive(Debug)]
pub(super) struct OverruledDecisions {
    /// How it was last decided, how often in a row, and since when.
    decided: Cache<AccountId, (DeliveryWay, u32, Instant)>,
    last: Mutex<Option<(AccountId, DeliveryWay, Instant)>>,
}

impl OverruledDecisions {
    pub(super) fn new() -> Self {
        Self { decided: Cache::new(ACCOUNTS_MAX), last: Mutex::default() }
    }

    /// An account was handed over that way by what this instance's policy says.
    pub(super) fn note(&self, account: AccountId, way: DeliveryWay, now: Instant) {
        let before = self.decided.get(&account);
        let before = before.filter(|(last, _, since)| *last == way && now.duration_since(*since) < PERIOD);
        let (times, since) = before.map_or((1, now), |(_, times, since)| (times + 1, since));
        self.decided.insert(account, (way, times, since));
        if times >= DECISIONS {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            if last.replace((account, way, now)).is_none_or(|(.., at)| now.duration_since(at) >= PERIOD) {
                tracing::warn!("{}", text(account, way));
            }
        }
    }

    /// The health finding about it, if there is one.
    pub(super) fn finding(&self, now: Instant) -> Option<Finding> {
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (account, way, _) = last.filter(|(.., at)| now.duration_since(*at) < PERIOD)?;
        Some(Finding { node: None, severity: Severity::Warning, text: text(account, way) })
    }
}

fn text(account: AccountId, way: DeliveryWay) -> String {
    format!(
        "account {account} was to be {}ed by this instance's policy {DECISIONS} times within an hour, and was handed \
         back in between; each hand-over costs about two posts. As a rule that is an instance whose settings under \
         `modes`, or `visible_within`, differ: make them the same, or decide about that account with `tideline mode`",
        way.label()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_decides_the_same_again_and_again_is_overruled() {
        let (pull, push) = (DeliveryWay::Pull, DeliveryWay::Push);
        let [one, other] = [1, 2].map(|id| AccountId::new(id).unwrap());
        let decisions = OverruledDecisions::new();
        let start = Instant::now();
        let at = |minutes: u64| start + Duration::from_secs(60 * minutes);
        // Its own changes of mind are none of others', nor are two decisions.
        for (minute, way) in [(0, pull), (1, push), (2, pull), (3, pull), (4, push), (5, push)] {
            decisions.note(one, way, at(minute));
        }
        decisions.note(other, push, at(6));
        // Nor those that are hours apart.
        for hour in 1..6 {
            decisions.note(other, pull, at(60 * hour));
        }
        assert_eq!(decisions.finding(at(360)), None);
        (361..364).for_each(|minute| decisions.note(one, pull, at(minute)));
        let told = decisions.finding(at(364)).unwrap().text;
        assert!(told.contains("account 1 was to be pulled by this instance's policy 3 times"), "{told}");
        assert_eq!(decisions.finding(at(363 + 60)), None);
    }
}
