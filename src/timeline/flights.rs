//! One of us for all who want the same at the same time: reading an outbox that many readers pull, filling a home.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::ids::{AccountId, IdMap};

/// Flights under way in this instance, by the account that it is about: no more than there are calls, so bounded by
/// these.
#[derive(Debug)]
pub(crate) struct Flights<V>(Mutex<IdMap<AccountId, Arc<FlightEnd<V>>>>);

/// The end of a flight: where what is under way is told.
///
/// A bell and a lock in place of a watch channel: that wakes those who wait in a random order, and no history of the
/// simulation could be repeated.
#[derive(Debug)]
pub(super) struct FlightEnd<V> {
    outcome: Mutex<FlightOutcome<V>>,
    bell: Notify,
}

#[derive(Debug, Clone)]
enum FlightOutcome<V> {
    UnderWay,
    Landed(V),
    /// Whoever was at it has gone.
    GivenUp,
}

/// A turn: ours, or somebody else's.
#[derive(Debug)]
pub(super) enum FlightTurn<'a, V> {
    /// Ours; the others wait for us.
    Ours(Flight<'a, V>),
    /// Somebody is at it already.
    Theirs(FlightWait<V>),
}

/// A flight that we make for all. Dropping it before it has landed tells those who wait that nothing came of it.
#[derive(Debug)]
pub(super) struct Flight<'a, V> {
    flights: &'a Flights<V>,
    account: AccountId,
    landing: Arc<FlightEnd<V>>,
}

/// A wait for a flight that somebody else makes.
#[derive(Debug)]
pub(super) struct FlightWait<V>(pub(super) Arc<FlightEnd<V>>);

impl<V> Default for Flights<V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<V> Default for FlightEnd<V> {
    fn default() -> Self {
        Self { outcome: Mutex::new(FlightOutcome::UnderWay), bell: Notify::new() }
    }
}

impl<V> FlightEnd<V> {
    pub(super) fn land(&self, value: V) {
        *lock(&self.outcome) = FlightOutcome::Landed(value);
    }

    /// Tells those who wait: what came of it, or that nothing did.
    pub(super) fn end(&self) {
        let mut outcome = lock(&self.outcome);
        if matches!(*outcome, FlightOutcome::UnderWay) {
            *outcome = FlightOutcome::GivenUp;
        }
        drop(outcome);
        self.bell.notify_waiters();
    }
}

pub(super) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<V> Flights<V> {
    pub(super) fn join(&self, account: AccountId) -> FlightTurn<'_, V> {
        let mut under_way = lock(&self.0);
        if let Some(theirs) = under_way.get(&account) {
            return FlightTurn::Theirs(FlightWait(theirs.clone()));
        }
        let landing = Arc::new(FlightEnd::default());
        under_way.insert(account, landing.clone());
        FlightTurn::Ours(Flight { flights: self, account, landing })
    }
}

impl<V> Flight<'_, V> {
    pub(super) fn land(self, value: V) {
        self.landing.land(value);
    }
}

impl<V> Drop for Flight<'_, V> {
    fn drop(&mut self) {
        lock(&self.flights.0).remove(&self.account);
        self.landing.end();
    }
}

impl<V: Clone> FlightWait<V> {
    /// `None`: whoever was at it has given up.
    pub(super) async fn landed(self) -> Option<V> {
        loop {
            // It hears the bell from here on, whatever the look at the outcome says.
            let rung = self.0.bell.notified();
            let outcome = lock(&self.0.outcome).clone();
            match outcome {
                FlightOutcome::UnderWay => rung.await,
                FlightOutcome::Landed(value) => return Some(value),
                FlightOutcome::GivenUp => return None,
            }
        }
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
        let FlightTurn::Ours(flight) = flights.join(account(1)) else { panic!("nobody is at it yet") };
        let FlightTurn::Theirs(waiting) = flights.join(account(1)) else { panic!("somebody is at it") };
        assert!(matches!(flights.join(account(2)), FlightTurn::Ours(_)), "that is another one");
        flight.land(9);
        assert_eq!(waiting.landed().await, Some(9));
        assert!(matches!(flights.join(account(1)), FlightTurn::Ours(_)), "it is over");
        assert!(lock(&flights.0).is_empty());
    }

    #[tokio::test]
    async fn what_was_given_up_holds_nobody_up() {
        let flights: Flights<u64> = Flights::default();
        let FlightTurn::Ours(flight) = flights.join(account(1)) else { panic!("nobody is at it yet") };
        let FlightTurn::Theirs(waiting) = flights.join(account(1)) else { panic!("somebody is at it") };
        drop(flight);
        assert_eq!(waiting.landed().await, None);
        assert!(matches!(flights.join(account(1)), FlightTurn::Ours(_)));
    }
}
