//! Long computations aside: on threads of their own, which take what others leave of the processors.
//!
//! A lower `nice` is not enough: Linux lets a running thread go on for milliseconds however little it weighs, and lets
//! one that wakes wait behind others rather than on a core where such a thread runs. A thread of the class `SCHED_IDLE`
//! makes way at once for the others of its group (its unit, container or session), and its core counts as free. Where
//! nothing is left, nothing would ever come of it: after a while the same is computed once more by a thread like any
//! other.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};
use std::thread::Builder;
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

/// So long a computation takes what is left; then it is begun again, as one among others.
const PATIENCE: Duration = Duration::from_millis(300);

/// Places for computations that take what is left. Where none is free (each of them gets next to nothing, and a second
/// has overtaken it), a computation is one among others from the beginning.
#[derive(Debug, Clone)]
pub(super) struct ComputingPlaces(Arc<Semaphore>);

impl ComputingPlaces {
    pub(super) fn new(places: usize) -> Self {
        Self(Arc::new(Semaphore::new(places)))
    }

    /// Computes something that nobody waits for who serves requests. `work` may be run twice, and the slower run may go
    /// on behind the answer.
    pub(super) async fn computed<T: Send + 'static>(
        &self,
        work: impl Fn() -> T + Send + Sync + 'static,
    ) -> io::Result<T> {
        self.computed_within(PATIENCE, work).await
    }

    async fn computed_within<T: Send + 'static>(
        &self,
        patience: Duration,
        work: impl Fn() -> T + Send + Sync + 'static,
    ) -> io::Result<T> {
        let (work, makes_way) = (Arc::new(work), Arc::new(AtomicBool::new(false)));
        let (first, flag) = (work.clone(), makes_way.clone());
        let place = self.0.clone().try_acquire_owned().ok();
        let mut first = begin(move || {
            flag.store(place.is_some() && make_way(), Ordering::Relaxed);
            let computed = first();
            drop(place);
            computed
        })?;
        let ended = loop {
            match timeout(patience, &mut first).await {
                Ok(ended) => break ended,
                // One that competes already needs no second.
                Err(_) if !makes_way.load(Ordering::Relaxed) => {}
                Err(_) => match begin(move || work()) {
                    Ok(second) => break tokio::select! { ended = first => ended, ended = second => ended },
                    Err(_) => break first.await,
                },
            }
        };
        ended.map_err(|_| io::Error::other("the thread that computed it has panicked"))
    }
}

/// Begins some work on a thread of its own.
fn begin<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<oneshot::Receiver<T>> {
    let (tell, told) = oneshot::channel();
    // Nobody may wait for it any more.
    Builder::new().name("tideline-aside".into()).spawn(move || drop(tell.send(work())))?;
    Ok(told)
}

/// Has this thread make way for others, for good; whether it does.
fn make_way() -> bool {
    static TOLD: Once = Once::new();
    let makes_way = become_idle();
    if !makes_way {
        TOLD.call_once(|| {
            tracing::info!("the system doesn't let threads that hash passwords make way for others")
        });
    }
    makes_way
}

#[cfg(target_os = "linux")]
fn become_idle() -> bool {
    use thread_priority::{
        NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
        thread_native_id, thread_schedule_policy,
    };
    let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
    // It sets the niceness too, and fails where that may not be set: what it has come to is what counts.
    drop(set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle));
    thread_schedule_policy() == Ok(idle)
}

/// Has this thread make way: which other systems don't offer.
#[cfg(not(target_os = "linux"))]
fn become_idle() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc;

    use super::*;

    const LONG: Duration = Duration::from_secs(3_600);

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_computation_makes_way_where_a_place_is_free_and_who_asks_stays_what_it_is() {
        // The policy is field 41, the state behind the name in brackets field 3; 5 is `SCHED_IDLE`.
        let policy = || {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            let (_, fields) = stat.rsplit_once(") ").unwrap();
            fields.split(' ').nth(41 - 3).unwrap().to_owned()
        };
        let ours = policy();
        assert_eq!(ComputingPlaces::new(1).computed_within(LONG, policy).await.unwrap(), "5");
        assert_eq!(ComputingPlaces::new(0).computed_within(LONG, policy).await.unwrap(), ours);
        assert_eq!(policy(), ours);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn where_nothing_is_left_a_thread_like_any_other_computes_it_and_the_next_ones_from_the_beginning()
    {
        let aside = ComputingPlaces::new(1);
        // One of the two runs gets nowhere as long as nobody sends.
        let (go_on, goes_on) = mpsc::channel::<()>();
        let stuck = Mutex::new(Some(goes_on));
        let work = move || {
            let waits = stuck.lock().unwrap().take();
            waits.is_some_and(|goes_on| goes_on.recv().is_err())
        };
        let answer = aside.computed_within(Duration::from_millis(1), work);
        let waits = timeout(LONG, answer).await.expect("a second begins").unwrap();
        assert!(!waits, "the other one has ended first");
        // Whichever is stuck, one after the other is answered.
        for n in 0..3 {
            assert_eq!(aside.computed_within(Duration::from_millis(1), move || n).await.unwrap(), n);
        }
        drop(go_on);
    }

    #[tokio::test]
    async fn a_panic_is_an_error() {
        let panics = || -> u8 { panic!("on purpose") };
        let error = ComputingPlaces::new(1).computed_within(LONG, panics).await.unwrap_err();
        assert!(error.to_string().contains("panicked"), "{error}");
    }
}
