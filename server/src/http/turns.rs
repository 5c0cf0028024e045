//! Turns: what costs much is done a few times at once, whoever asks.

use tokio::sync::{Semaphore, SemaphorePermit};

use super::refusal::Refusal;

/// Lets a few callers go on at a time, and a few more wait for that; others are refused at once, so that those who wait
/// don't take the places of all other requests.
#[derive(Debug)]
pub struct LimitedTurns {
    going_on: Semaphore,
    /// Of those that go on and those that wait.
    places: Semaphore,
}

/// Somebody's turn, until it is dropped.
#[derive(Debug)]
pub struct Turn<'a> {
    _going_on: SemaphorePermit<'a>,
    _place: SemaphorePermit<'a>,
}

impl LimitedTurns {
    /// So many at a time, and so many that wait.
    pub const fn new(at_once: usize, waiting: usize) -> Self {
        Self { going_on: Semaphore::const_new(at_once), places: Semaphore::const_new(at_once + waiting) }
    }

    /// Waits for a turn.
    ///
    /// # Errors
    ///
    /// 503: too many wait already.
    pub async fn take(&self) -> Result<Turn<'_>, Refusal> {
        let place = self.places.try_acquire().map_err(|_| Refusal::try_again())?;
        let going_on = self.going_on.acquire().await.map_err(|_| Refusal::try_again())?;
        Ok(Turn { _going_on: going_on, _place: place })
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn a_few_go_on_a_few_wait_and_others_are_refused() {
        let turns = LimitedTurns::new(2, 1);
        let now = || turns.take().now_or_never();
        let (one, other) = (now().unwrap().unwrap(), now().unwrap().unwrap());
        let mut waits = std::pin::pin!(turns.take());
        assert!(waits.as_mut().now_or_never().is_none());
        assert_eq!(now().unwrap().unwrap_err().status().as_u16(), 503);
        drop(one);
        let third = waits.now_or_never().unwrap().unwrap();
        drop((other, third));
        assert!(now().unwrap().is_ok());
    }
}
