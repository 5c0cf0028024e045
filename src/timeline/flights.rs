//! One look at an outbox for all who want it at the same time: with the cache, a pulled outbox is read once in
//! `visible_within` by each instance, however many readers pull it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio::time::Instant;

use super::outbox::Newest;
use crate::ids::{AccountId, IdMap};

/// What a look brought, and when it was sent.
type Landed = Option<(Instant, Arc<Newest>)>;

/// The looks that are under way in this instance: as many as reads that wait for a first trip, so bounded by these.
#[derive(Debug, Default)]
pub(crate) struct Flights(Mutex<IdMap<AccountId, watch::Receiver<Landed>>>);

/// Who looks.
#[derive(Debug)]
pub(super) enum Turn<'a> {
    /// We do, and tell the others.
    Ours(Flight<'a>),
    /// Somebody does already.
    Theirs(Waiting),
}

/// A look that is ours. Dropping it tells those who wait that they must look themselves.
#[derive(Debug)]
pub(super) struct Flight<'a> {
    flights: &'a Flights,
    author: AccountId,
    landed: watch::Sender<Landed>,
}

/// A look that somebody else has sent.
#[derive(Debug)]
pub(super) struct Waiting(watch::Receiver<Landed>);

impl Flights {
    fn under_way(&self) -> MutexGuard<'_, IdMap<AccountId, watch::Receiver<Landed>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn join(&self, author: AccountId) -> Turn<'_> {
        let mut under_way = self.under_way();
        if let Some(theirs) = under_way.get(&author) {
            return Turn::Theirs(Waiting(theirs.clone()));
        }
        let (landed, waiting) = watch::channel(None);
        under_way.insert(author, waiting);
        Turn::Ours(Flight { flights: self, author, landed })
    }
}

impl Flight<'_> {
    pub(super) fn land(self, sent: Instant, newest: Arc<Newest>) {
        self.landed.send_replace(Some((sent, newest)));
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        self.flights.under_way().remove(&self.author);
    }
}

impl Waiting {
    /// `None`: whoever looked has given up.
    pub(super) async fn landed(mut self) -> Landed {
        self.0.wait_for(Option::is_some).await.ok()?.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Mode;
    use crate::timeline::outbox::Part;

    fn author() -> AccountId {
        AccountId::new(7).unwrap()
    }

    fn newest() -> Arc<Newest> {
        Arc::new(Newest { mode: Mode::Pull, pushed_since: 0, part: Part { ids: vec![9], bound: 0 } })
    }

    #[tokio::test]
    async fn one_looks_and_all_get_what_it_saw() {
        let flights = Flights::default();
        let Turn::Ours(flight) = flights.join(author()) else { panic!("nobody looks yet") };
        let Turn::Theirs(waiting) = flights.join(author()) else { panic!("somebody looks") };
        let sent = Instant::now();
        flight.land(sent, newest());
        assert_eq!(waiting.landed().await, Some((sent, newest())));
        assert!(matches!(flights.join(author()), Turn::Ours(_)), "the look is over");
    }

    #[tokio::test]
    async fn a_look_that_was_given_up_holds_nobody_up() {
        let flights = Flights::default();
        let Turn::Ours(flight) = flights.join(author()) else { panic!("nobody looks yet") };
        let Turn::Theirs(waiting) = flights.join(author()) else { panic!("somebody looks") };
        drop(flight);
        assert_eq!(waiting.landed().await, None);
        assert!(matches!(flights.join(author()), Turn::Ours(_)));
    }
}
