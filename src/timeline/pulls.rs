//! Pulling the newest posts of authors for one page: from the cache, in the page's own first trip, or with a look that
//! another reader has just sent.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Timelines;
use super::flights::{Flight, FlightTurn, FlightWait};
use super::outbox::{self, NewestPosts};
use crate::cluster::Batch;
use crate::error::Result;
use crate::ids::AccountId;
use crate::tenant::Answers;

/// The time for which somebody else's look is waited for.
const PATIENCE: Duration = Duration::from_millis(50);

/// The answer to a look at an outbox, and when that was sent.
pub(crate) type OutboxLook = (Instant, Arc<NewestPosts>);

/// The outboxes that a page pulls.
#[derive(Debug)]
pub(super) struct PagePulls<'a> {
    timelines: &'a Timelines,
    limit: usize,
    sent: Instant,
    known: Vec<(AccountId, Arc<NewestPosts>)>,
    /// What we ask ourselves, in the order of the requests.
    ours: Vec<(AccountId, Option<Flight<'a, OutboxLook>>)>,
    theirs: Vec<(AccountId, FlightWait<OutboxLook>)>,
}

impl<'a> PagePulls<'a> {
    /// Plans who is asked for what.
    pub(super) fn plan(
        timelines: &'a Timelines,
        authors: impl Iterator<Item = AccountId>,
        limit: usize,
    ) -> Self {
        let sent = Instant::now();
        let caches = &timelines.caches;
        let mut pulls =
            Self { timelines, limit, sent, known: Vec::new(), ours: Vec::new(), theirs: Vec::new() };
        for author in authors {
            match caches.outboxes.get(&author, sent) {
                Some(cached) if pulls.suffices(&cached) => pulls.known.push((author, cached)),
                _ if !caches.outboxes.keeps() => pulls.ours.push((author, None)),
                _ => match caches.flights.join(author) {
                    FlightTurn::Ours(flight) => pulls.ours.push((author, Some(flight))),
                    FlightTurn::Theirs(waiting) => pulls.theirs.push((author, waiting)),
                },
            }
        }
        caches.outboxes.count(pulls.known.len() + pulls.theirs.len(), pulls.ours.len());
        pulls
    }

    /// Whether a page has enough of that.
    fn suffices(&self, newest: &NewestPosts) -> bool {
        newest.asked >= self.depth() || newest.part.bound == 0 || newest.part.archived.is_some()
    }

    fn depth(&self) -> usize {
        self.limit + 1
    }

    /// Adds what we ask ourselves to the page's first trip.
    pub(super) fn ask(&self, batch: &mut Batch) {
        for (author, _) in &self.ours {
            batch.push_ordered(outbox::newest_requests(&self.timelines.tenant, *author, self.depth()));
        }
    }

    /// Everything, from the answers to what was asked last and from others.
    pub(super) async fn read(mut self, answers: Answers) -> Result<Vec<(AccountId, Arc<NewestPosts>)>> {
        self.take(answers)?;
        let mut late = Vec::new();
        for (author, waiting) in std::mem::take(&mut self.theirs) {
            // One that is held up, by a node that has nothing to do with us perhaps, is not waited for.
            let landed = tokio::time::timeout(PATIENCE, waiting.landed()).await;
            match landed.ok().flatten() {
                // H29: a look at an outbox is joined only while it is fresh.
                Some((sent, newest)) if self.is_fresh(sent) && self.suffices(&newest) => {
                    self.known.push((author, newest));
                }
                // It was given up, or was another page's: we look ourselves.
                _ => late.push((author, None)),
            }
        }
        if !late.is_empty() {
            self.ours = late;
            self.sent = Instant::now();
            let mut batch = Batch::new();
            self.ask(&mut batch);
            let answers = Answers::of(&self.timelines.tenant, batch).await?;
            self.take(answers)?;
        }
        Ok(self.known)
    }

    fn is_fresh(&self, sent: Instant) -> bool {
        sent.elapsed() < self.timelines.tenant.settings.visible_within
    }

    fn take(&mut self, mut answers: Answers) -> Result<()> {
        for (author, flight) in std::mem::take(&mut self.ours) {
            let (mode, ids) = (answers.next()?, answers.next()?);
            let newest = Arc::new(outbox::read_newest(mode, ids, self.depth())?);
            self.timelines.caches.outboxes.put(author, self.sent, newest.clone());
            if let Some(flight) = flight {
                flight.land((self.sent, newest.clone()));
            }
            self.known.push((author, newest));
        }
        Ok(())
    }
}
