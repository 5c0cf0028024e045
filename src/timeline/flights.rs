//! One of us for all who want the same at the same time: reading an outbox that many readers pull, filling a home.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::ids::{AccountId, IdMap};

/// What is under way in this instance, by the account that it is about: no more than there are calls, so bounded by these.
#[derive(Debug)]
pub(crate) struct Flights<V>(Mutex<IdMap<AccountId, watch::Receiver<Option<V>>>>);

/// Whose turn it is.
#[derive(Debug)]
pub(super) enum Turn<'a, V> {
    /// Ours; the others wait for us.
    Ours(Flight<'a, V>),
    /// Somebody is at it already.
    Theirs(Waiting<V>),
}

/// What we do for all. Dropping it before it has landed tells those who wait that nothing came of it.
#[derive(Debug)]
pub(super) struct Flight<'a, V> {
    flights: &'a Flights<V>,
    account: AccountId,
    landed: watch::Sender<Option<V>>,
}

/// What somebody else does.
#[derive(Debug)]
pub(super) struct Waiting<V>(watch::Receiver<Option<V>>);

impl<V> Default for Flights<V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<V> Flights<V> {
    fn under_way(&self) -> MutexGuard<'_, IdMap<AccountId, watch::Receiver<Option<V>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn join(&self, account: AccountId) -> Turn<'_, V> {
        let mut under_way = self.under_way();
        if let Some(theirs) = under_way.get(&account) {
            return Turn::Theirs(Waiting(theirs.clone()));
        }
        let (landed, waiting) = watch::channel(None);
        under_way.insert(account, waiting);
        Turn::Ours(Flight { flights: self, account, landed })
    }
}

impl<V> Flight<'_, V> {
    pub(super) fn land(self, value: V) {
        self.landed.send_replace(Some(value));
    }
}

impl<V> Drop for Flight<'_, V> {
    fn drop(&mut self) {
        self.flights.under_way().remove(&self.account);
    }
}

impl<V: Clone> Waiting<V> {
    /// `None`: whoever was at it has given up.
    pub(super) async fn landed(mut self) -> Option<V> {
        self.0.wait_for(Option::is_some).await.ok()?.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(id: u64) -> AccountId {
        AccountId::new(id).unwrap()
    }

    #[tokio::test]
    async fn one_does_it_and_all_get_what_came_of_it() {
        let flights = Flights::default();
        let Turn::Ours(flight) = flights.join(account(1)) else { panic!("nobody is at it yet") };
        let Turn::Theirs(waiting) = flights.join(account(1)) else { panic!("somebody is at it") };
        assert!(matches!(flights.join(account(2)), Turn::Ours(_)), "that is another one");
        flight.land(9);
        assert_eq!(waiting.landed().await, Some(9));
        assert!(matches!(flights.join(account(1)), Turn::Ours(_)), "it is over");
        assert!(flights.under_way().is_empty());
    }

    #[tokio::test]
    async fn what_was_given_up_holds_nobody_up() {
        let flights: Flights<u64> = Flights::default();
        let Turn::Ours(flight) = flights.join(account(1)) else { panic!("nobody is at it yet") };
        let Turn::Theirs(waiting) = flights.join(account(1)) else { panic!("somebody is at it") };
        drop(flight);
        assert_eq!(waiting.landed().await, None);
        assert!(matches!(flights.join(account(1)), Turn::Ours(_)));
    }
}
