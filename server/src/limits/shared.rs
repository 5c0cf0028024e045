//! Counts that instances share.

use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use metrics::counter;
use quick_cache::sync::Cache;
use tideline::registration::Registration;
use tideline::{Engine, ErrorKind};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::rules::{CountedAct, LimitName};
use super::tally::{BringingOutcome, PendingCounts, Tally};
use crate::http::RateStanding;

/// Requests that were refused by a limit, by `limit`.
pub const LIMITED: &str = "tideline_http_requests_limited_total";
/// Counts that could not be brought to the other instances, for now.
pub const UNSHARED: &str = "tideline_http_limits_unshared_total";

/// Counts that an instance keeps. Of one that is forgotten a twentieth of its limit is lost at most.
const TALLIES_MAX: usize = 65_536;
/// Counts that are being brought in at a time; further ones wait for the next request.
const BRINGING_MAX: usize = 256;
/// The longest that a request waits for what others have counted.
const DECIDES_WITHIN: Duration = Duration::from_millis(250);
/// The longest that anything is being brought in.
const BRINGS_WITHIN: Duration = Duration::from_secs(5);
/// The time by which a counter outlasts its span: clocks of instances differ.
const OUTLASTS: Duration = Duration::from_secs(60);

type TallyKey = (LimitName, String);

/// The counts of an instance, and the counters that it shares with others.
pub(crate) struct RateLimits {
    engine: Engine,
    registration: Registration,
    tallies: Cache<TallyKey, Arc<Mutex<Tally>>>,
    bringing: Arc<Semaphore>,
}

impl RateLimits {
    pub(crate) fn new(engine: Engine, registration: Registration) -> Self {
        let (tallies, bringing) = (Cache::new(TALLIES_MAX), Arc::new(Semaphore::new(BRINGING_MAX)));
        Self { engine, registration, tallies, bringing }
    }

    /// Counts what somebody is about to do, unless one of the limits is reached. Tells how much is left of the one of
    /// which least is: the first of several; `None`: there is none.
    pub(crate) async fn take(&self, acts: &[CountedAct]) -> Result<Option<RateStanding>, RateStanding> {
        let now_ms = self.engine.store().router().now_ms();
        let tallies: Vec<_> = acts.iter().map(|act| self.tally(act)).collect();
        // First a look: what is refused counts against nothing.
        for (act, tally) in acts.iter().zip(&tallies) {
            let standing = lock(tally).standing(act.quota, now_ms);
            if standing.remaining == 0 {
                return Err(refused(act, standing));
            }
        }
        let mut least = None;
        for (act, tally) in acts.iter().zip(&tallies) {
            let standing = self.count(act, tally, now_ms).await.map_err(|standing| refused(act, standing))?;
            let is_least = |before: &RateStanding| standing.remaining < before.remaining;
            if least.as_ref().is_none_or(is_least) {
                least = Some(standing);
            }
        }
        Ok(least)
    }

    fn tally(&self, act: &CountedAct) -> Arc<Mutex<Tally>> {
        let key = (act.limit, act.subject.clone());
        let made = || Ok::<_, Infallible>(Arc::new(Mutex::new(Tally::default())));
        match self.tallies.get_or_insert_with(&key, made) {
            Ok(tally) => tally,
            Err(never) => match never {},
        }
    }

    /// Counts one act, and brings in what is due. Where it may be done a few times only, others' counts decide.
    async fn count(
        &self,
        act: &CountedAct,
        tally: &Arc<Mutex<Tally>>,
        now_ms: u64,
    ) -> Result<RateStanding, RateStanding> {
        let brought = lock(tally).count(act.quota, now_ms);
        if let Some(brought) = brought {
            let Ok(permit) = Arc::clone(&self.bringing).try_acquire_owned() else {
                let mut tally = lock(tally);
                tally.brought(brought, BringingOutcome::NotCounted);
                return Ok(tally.standing(act.quota, now_ms));
            };
            let bringing = tokio::spawn(self.bring_in(act, Arc::clone(tally), brought, permit));
            if brought.decides
                && let Ok(Ok(Some(total))) = timeout(DECIDES_WITHIN, bringing).await
                && total > u64::from(act.quota.most)
            {
                return Err(lock(tally).standing(act.quota, now_ms));
            }
        }
        Ok(lock(tally).standing(act.quota, now_ms))
    }

    /// Brings in what was counted. It goes on if nobody waits any more: what is under way ends.
    fn bring_in(
        &self,
        act: &CountedAct,
        tally: Arc<Mutex<Tally>>,
        brought: PendingCounts,
        permit: OwnedSemaphorePermit,
    ) -> impl Future<Output = Option<u64>> + Send + use<> {
        let name = format!("{} {} {}", act.limit.as_str(), act.subject, brought.span);
        let (limit, lasts) = (act.limit.as_str(), Duration::from_secs(act.quota.span_s) + OUTLASTS);
        let registration = self.registration.clone();
        async move {
            let counted = timeout(BRINGS_WITHIN, registration.count_up(name.as_bytes(), brought.more, lasts));
            let outcome = match counted.await {
                Ok(Ok(total)) => BringingOutcome::Counted(total),
                Ok(Err(error)) if error.kind() != ErrorKind::Unknown => {
                    tracing::debug!(%error, limit, "counts of this instance are not shared");
                    BringingOutcome::NotCounted
                }
                Ok(Err(_)) | Err(_) => BringingOutcome::Unknown,
            };
            lock(&tally).brought(brought, outcome);
            drop(permit);
            match outcome {
                BringingOutcome::Counted(total) => Some(total),
                _ => {
                    counter!(UNSHARED).increment(1);
                    None
                }
            }
        }
    }
}

fn refused(act: &CountedAct, standing: RateStanding) -> RateStanding {
    counter!(LIMITED, "limit" => act.limit.as_str()).increment(1);
    RateStanding { remaining: 0, ..standing }
}

/// A count is whole after each step.
fn lock(tally: &Mutex<Tally>) -> MutexGuard<'_, Tally> {
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for RateLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimits").field("counts", &self.tallies.len()).finish_non_exhaustive()
    }
}
