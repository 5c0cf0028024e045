//! The open loop: every operation leaves when it is due, whether the earlier ones are answered or not.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::perform::{OPERATION_MAX, Performer};
use super::plan::Plan;

/// An operation that leaves so long after it was due counts as late: the load generator itself was behind.
const LATE: Duration = Duration::from_millis(10);
/// So long after the end of the run nothing more is sent.
const OVERTIME_MAX: Duration = Duration::from_secs(5);

/// How well the schedule was kept.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Punctuality {
    /// Operations that were due.
    pub(crate) scheduled: u64,
    /// Those that left late. Their latency counts from when they were due.
    pub(crate) late: u64,
    /// The latest of all, in microseconds.
    pub(crate) latest_us: u64,
}

/// Performs the plan with at most `concurrency` operations under way; what would be one too many is dropped, and
/// counted as that. Returns when all operations have ended.
pub(crate) async fn drive(
    performer: &Arc<Performer>,
    plan: Plan,
    length: Duration,
    concurrency: u32,
) -> anyhow::Result<Punctuality> {
    let permits = Arc::new(Semaphore::new(concurrency as usize));
    let dispatch = {
        let (performer, permits, runtime) = (performer.clone(), permits.clone(), Handle::current());
        // A thread of its own: the runtime's timers have steps of a millisecond, which would show in every latency.
        move || dispatch(&performer, plan, length, &permits, &runtime)
    };
    let punctuality = tokio::task::spawn_blocking(dispatch).await?;
    // Whoever has all permits knows that nothing is under way any more.
    let _all = tokio::time::timeout(2 * OPERATION_MAX, permits.acquire_many(concurrency)).await??;
    Ok(punctuality)
}

fn dispatch(
    performer: &Arc<Performer>,
    plan: Plan,
    length: Duration,
    permits: &Arc<Semaphore>,
    runtime: &Handle,
) -> Punctuality {
    let mut punctuality = Punctuality::default();
    let start = Instant::now();
    for planned in plan {
        let due = start + planned.at;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let behind = due.elapsed();
        punctuality.scheduled += 1;
        let permit = permits.clone().try_acquire_owned();
        let (Ok(permit), true) = (permit, start.elapsed() < length + OVERTIME_MAX) else {
            performer.tally(planned.action).dropped();
            continue;
        };
        punctuality.late += u64::from(behind > LATE);
        punctuality.latest_us =
            punctuality.latest_us.max(u64::try_from(behind.as_micros()).unwrap_or(u64::MAX));
        let performer = performer.clone();
        runtime.spawn(async move {
            performer.perform(&planned, due).await;
            drop(permit);
        });
    }
    punctuality
}
