//! A share of readers for posts that are looked for by their ids alone: whoever makes ids up asks for nothing else, and
//! would keep all others waiting.

use std::time::Duration;

use tideline_model::archive::PostAsk;
use tideline_model::error::{Error, ErrorKind, Result};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// Places for such look-ups.
#[derive(Debug)]
pub(crate) struct LookupShare {
    places: Semaphore,
    wait: Duration,
}

impl LookupShare {
    /// Half of the readers; whoever finds no place waits so long.
    pub(crate) fn of(readers: usize, wait: Duration) -> Self {
        Self { places: Semaphore::new((readers / 2).max(1)), wait }
    }

    /// A place for these questions, as long as it is held; none is needed where the posts' authors are known.
    pub(crate) async fn place(&self, asks: &[PostAsk]) -> Result<Option<SemaphorePermit<'_>>> {
        if asks.iter().all(|ask| ask.owner.is_some()) {
            return Ok(None);
        }
        match timeout(self.wait, self.places.acquire()).await {
            Ok(place) => Ok(place.ok()),
            Err(_) => Err(Error::new(
                ErrorKind::Overloaded,
                "archive: too many posts are looked for by their ids alone; later, or name their authors",
            )),
        }
    }
}
