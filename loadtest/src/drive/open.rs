//! The open loop: every operation leaves when it is due, whether the earlier ones are answered or not.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::Perform;

/// An operation that leaves so long after it was due counts as late: the load generator itself was behind.
const LATE: Duration = Duration::from_millis(10);
/// So long after the end of the run nothing more is sent, ...
const OVERTIME_MAX: Duration = Duration::from_secs(5);
/// ... for this reason.
pub(crate) const OVERDUE: &str = "this program was still behind 5 s after the end";

/// How well the schedule was kept.
#[derive(Debug, Clone, Default)]
pub(crate) struct Punctuality {
    /// Operations that were due.
    pub(crate) scheduled: u64,
    /// Those that left late. Their latency counts from when they were due.
    pub(crate) late: u64,
    /// Those that were dropped because they would have left long after the end of the run: the load generator was
    /// behind, or the machine stood still.
    pub(crate) overdue: u64,
}

/// Closes these permits when it goes: whoever waited for all operations to end doesn't any more.
struct Closing(Arc<Semaphore>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Performs operations, each when it is due (from the start of the run on), with at most `concurrency` of them under
/// way; what would be one too many, or would leave long after the end, is dropped, and counted as that. Returns when
/// all operations have ended, of which each takes up to `operation_max`. They go with this call, also where it is
/// dropped.
pub(crate) async fn open<T: Send + 'static>(
    performer: &Arc<impl Perform<T>>,
    planned: impl IntoIterator<Item = (Duration, T)> + Send + 'static,
    length: Duration,
    concurrency: u32,
    operation_max: Duration,
) -> anyhow::Result<Punctuality> {
    let permits = Arc::new(Semaphore::new(concurrency as usize));
    let _closing = Closing(permits.clone());
    let dispatch = {
        let (performer, permits, runtime) = (performer.clone(), permits.clone(), Handle::current());
        // A thread of its own: the runtime's timers have steps of a millisecond, which would show in every latency.
        move || dispatch(&performer, planned, length, &permits, &runtime)
    };
    let (punctuality, _under_way) = tokio::task::spawn_blocking(dispatch).await?;
    // Whoever has all permits knows that nothing is under way any more.
    let _all = tokio::time::timeout(2 * operation_max, permits.acquire_many(concurrency)).await??;
    Ok(punctuality)
}

fn dispatch<T: Send + 'static>(
    performer: &Arc<impl Perform<T>>,
    planned: impl IntoIterator<Item = (Duration, T)>,
    length: Duration,
    permits: &Arc<Semaphore>,
    runtime: &Handle,
) -> (Punctuality, JoinSet<()>) {
    let mut punctuality = Punctuality::default();
    let mut under_way = JoinSet::new();
    let start = Instant::now();
    for (at, operation) in planned {
        let due = start + at;
        while under_way.try_join_next().is_some() {}
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if permits.is_closed() {
            break;
        }
        let behind = due.elapsed();
        punctuality.scheduled += 1;
        let is_overdue = start.elapsed() >= length + OVERTIME_MAX;
        punctuality.overdue += u64::from(is_overdue);
        let permit = permits.clone().try_acquire_owned();
        let (Ok(permit), false) = (permit, is_overdue) else {
            performer.dropped(&operation);
            continue;
        };
        punctuality.late += u64::from(behind > LATE);
        let performer = performer.clone();
        let perform = async move {
            performer.perform(operation, due).await;
            drop(permit);
        };
        under_way.spawn_on(perform, runtime);
    }
    (punctuality, under_way)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Stalls until two were dropped, and notes when operations were due.
    #[derive(Debug, Default)]
    struct Slow {
        due: Mutex<Vec<Instant>>,
        dropped: Mutex<Vec<u32>>,
    }

    const HOUR: Duration = Duration::from_secs(3_600);

    impl Perform<u32> for Slow {
        async fn perform(&self, number: u32, due: Instant) {
            assert!(number < 3);
            self.due.lock().unwrap().push(due);
            while self.dropped.lock().unwrap().len() < 2 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }

        fn dropped(&self, number: &u32) {
            self.dropped.lock().unwrap().push(*number);
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn nothing_is_under_way_any_more_after_it_was_dropped() {
        #[derive(Default)]
        struct Endless(std::sync::atomic::AtomicU32);
        impl Perform<()> for Endless {
            async fn perform(&self, (): (), _: Instant) {
                self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                std::future::pending().await
            }

            fn dropped(&self, (): &()) {}
        }
        let endless = Arc::new(Endless::default());
        // Of two minutes: longer than is waited below, and a test that fails ends.
        let planned = (0..120_000).map(|number| (Duration::from_millis(number), ()));
        let run = open(&endless, planned, HOUR, 1_000_000, HOUR);
        let some_are_under_way = async {
            while endless.0.load(std::sync::atomic::Ordering::Relaxed) < 10 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::select! {
            ended = run => panic!("it ended: {ended:?}"),
            () = some_are_under_way => {}
        }
        let all_are_gone = async {
            while Arc::strong_count(&endless) > 1 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), all_are_gone)
            .await
            .expect("something is still under way");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_is_one_too_many_is_dropped_and_latency_counts_from_when_it_was_due() {
        let slow = Arc::new(Slow::default());
        let planned = (0..5).map(|number| (Duration::from_micros(number.into()), number));
        let punctuality = open(&slow, planned, HOUR, 3, HOUR).await.unwrap();
        assert_eq!(punctuality.scheduled, 5);
        assert_eq!(*slow.dropped.lock().unwrap(), [3, 4]);
        assert_eq!(punctuality.overdue, 0);
        // As planned, a microsecond after the other, whenever they left.
        let mut due = slow.due.lock().unwrap().clone();
        due.sort_unstable();
        assert_eq!([due[1] - due[0], due[2] - due[1]], [Duration::from_micros(1); 2]);
    }

    /// It counted among those for which there was no room.
    #[test]
    fn what_would_leave_long_after_the_end_is_dropped_as_overdue() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let (slow, permits) = (Arc::new(Slow::default()), Arc::new(Semaphore::new(3)));
        // The end was long ago: with no length, overtime is over after 5 s, and due is whatever falls due then.
        let planned = [(OVERTIME_MAX + Duration::from_millis(1), 7)];
        let (punctuality, _) = dispatch(&slow, planned, Duration::ZERO, &permits, runtime.handle());
        assert_eq!((punctuality.scheduled, punctuality.overdue), (1, 1));
        assert_eq!(*slow.dropped.lock().unwrap(), [7]);
    }
}
