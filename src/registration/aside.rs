//! Long computations aside: on threads of their own, which take what others leave of the processors.
//!
//! A lower `nice` is not enough: Linux lets a running thread go on for milliseconds however little it weighs, and lets
//! one that wakes wait behind others rather than on a core where such a thread runs. A thread of the class `SCHED_IDLE`
//! makes way at once, and its core counts as free. Where nothing is left, nothing would ever come of it: after a while
//! the same is computed once more by a thread like any other.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

/// So long a computation takes what is left; then it is begun again, as one among others.
const PATIENCE: Duration = Duration::from_millis(300);

/// Computes something, which nobody waits for who serves requests. It goes on if its caller doesn't wait for it.
///
/// `work` may be run twice.
pub(super) async fn computed<T: Send + 'static>(
    work: impl Fn() -> T + Send + Sync + 'static,
) -> io::Result<T> {
    computed_within(PATIENCE, work).await
}

async fn computed_within<T: Send + 'static>(
    patience: Duration,
    work: impl Fn() -> T + Send + Sync + 'static,
) -> io::Result<T> {
    let work = Arc::new(work);
    let makes_way = Arc::new(AtomicBool::new(false));
    let (first, flag) = (work.clone(), makes_way.clone());
    let mut first = begin(move || {
        flag.store(make_way(), Ordering::Relaxed);
        first()
    })?;
    let ended = loop {
        match timeout(patience, &mut first).await {
            Ok(ended) => break ended,
            // One that competes already needs no second.
            Err(_) if !makes_way.load(Ordering::Relaxed) => {}
            Err(_) => {
                let second = begin(move || work())?;
                break tokio::select! { ended = first => ended, ended = second => ended };
            }
        }
    };
    ended.map_err(|_| io::Error::other("the thread that computed it has panicked"))
}

/// Begins some work on a thread of its own.
fn begin<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<oneshot::Receiver<T>> {
    let (tell, told) = oneshot::channel();
    // Nobody may wait for it any more.
    Builder::new().name("tideline-aside".into()).spawn(move || drop(tell.send(work())))?;
    Ok(told)
}

/// Has this thread make way for all others, for good; whether it does.
#[cfg(target_os = "linux")]
fn make_way() -> bool {
    use thread_priority::{
        NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
        thread_native_id,
    };
    let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
    set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle).is_ok()
}

/// Has this thread make way: which other systems don't offer.
#[cfg(not(target_os = "linux"))]
fn make_way() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc;

    use super::*;

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_computation_makes_way_for_whoever_has_something_to_do() {
        // The policy is field 41, the state behind the name in brackets field 3; 5 is `SCHED_IDLE`.
        let policy = || {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            let (_, fields) = stat.rsplit_once(") ").unwrap();
            fields.split(' ').nth(41 - 3).unwrap().to_owned()
        };
        assert_eq!(computed_within(Duration::from_secs(3_600), policy).await.unwrap(), "5");
        assert_eq!(policy(), "0", "who asks stays what it is");
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn where_nothing_is_left_a_thread_like_any_other_computes_it() {
        // The first one gets nowhere as long as nobody sends.
        let (go_on, goes_on) = mpsc::channel::<()>();
        let first = Mutex::new(Some(goes_on));
        let work = move || {
            let waits = first.lock().unwrap().take();
            waits.is_some_and(|goes_on| goes_on.recv().is_err())
        };
        assert!(
            !computed_within(Duration::from_millis(1), work).await.unwrap(),
            "the second has ended first"
        );
        drop(go_on);
    }

    #[tokio::test]
    async fn a_panic_is_an_error() {
        let panics = || -> u8 { panic!("on purpose") };
        let error = computed_within(Duration::from_secs(3_600), panics).await.unwrap_err();
        assert!(error.to_string().contains("panicked"), "{error}");
    }
}
