//! Shares of the readers: what one kind of question takes at most, so that who asks much of it, or what is dear, keeps
//! nobody waiting who asks for something else.

use std::sync::Arc;
use std::time::Duration;

use tideline_model::error::{Error, ErrorKind, Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Places among the readers for one kind of question.
#[derive(Debug, Clone)]
pub(crate) struct ReaderShare {
    places: Arc<Semaphore>,
    wait: Duration,
    /// What is told who finds none.
    refusal: &'static str,
}

/// A place of a share, for as long as it is held.
#[derive(Debug)]
pub(crate) struct ReaderPlace(#[expect(dead_code, reason = "given back when dropped")] OwnedSemaphorePermit);

impl ReaderShare {
    /// Half of the readers for posts that are looked for by their ids alone: whoever makes ids up asks for nothing
    /// else.
    pub(crate) fn of_lookups(readers: usize, wait: Duration) -> Self {
        let refusal =
            "archive: too many posts are looked for by their ids alone; later, or name their authors";
        Self::new(readers / 2, wait, refusal)
    }

    /// A quarter of the readers for searches (H237).
    pub(crate) fn of_searches(readers: usize, wait: Duration) -> Self {
        Self::new(readers / 4, wait, "archive: too many searches at once; later, or with more readers")
    }

    fn new(places: usize, wait: Duration, refusal: &'static str) -> Self {
        Self { places: Arc::new(Semaphore::new(places.max(1))), wait, refusal }
    }

    /// Waits for a place.
    pub(crate) async fn place(&self) -> Result<ReaderPlace> {
        let place = timeout(self.wait, Arc::clone(&self.places).acquire_owned()).await;
        let place = place.map_err(|_| Error::new(ErrorKind::Overloaded, self.refusal))?;
        place.map(ReaderPlace).map_err(|e| Error::internal(e.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_finds_no_place_is_told_and_each_is_given_back() {
        for (readers, places) in [(1, 1), (4, 1), (8, 2), (20, 5)] {
            let share = ReaderShare::of_searches(readers, Duration::ZERO);
            for _ in 0..2 {
                let mut held = Vec::new();
                for _ in 0..places {
                    held.push(share.place().await.unwrap());
                }
                let refused = share.place().await.unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::Overloaded, "{readers}");
                assert!(refused.to_string().contains("too many searches"), "{refused}");
            }
        }
    }
}
