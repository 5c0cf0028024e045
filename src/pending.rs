//! Accounts for which something is to be done later, each once.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::ids::AccountId;

/// So many wait at once; of more it is forgotten here, and whoever else notices remembers.
const PENDING_MAX: usize = 10_000;

/// Accounts that wait for something.
#[derive(Debug, Default)]
pub(crate) struct PendingAccounts(Mutex<HashSet<AccountId>>);

impl PendingAccounts {
    fn accounts(&self) -> MutexGuard<'_, HashSet<AccountId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, account: AccountId) {
        let mut accounts = self.accounts();
        if accounts.len() < PENDING_MAX {
            accounts.insert(account);
        }
    }

    /// Gives all that wait: none does any more.
    pub(crate) fn take(&self) -> HashSet<AccountId> {
        std::mem::take(&mut *self.accounts())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_waits_once_and_no_more_do_than_may() {
        let (pending, account) = (PendingAccounts::default(), |id| AccountId::new(id).unwrap());
        pending.add(account(1));
        pending.add(account(1));
        assert_eq!(pending.take().len(), 1);
        assert!(pending.take().is_empty());
        (1..=PENDING_MAX as u64 + 9).for_each(|id| pending.add(account(id)));
        assert_eq!(pending.take().len(), PENDING_MAX);
    }
}
