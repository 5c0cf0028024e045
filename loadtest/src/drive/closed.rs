//! The closed loop: so many users at once, each with its next operation when the last one is answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::Perform;

/// Performs these operations, `at_once` of them at a time, and begins none after `longest`. Tells how many were
/// performed: the first ones.
pub(crate) async fn closed<T: Copy + Send + Sync + 'static>(
    performer: &Arc<impl Perform<T>>,
    operations: Vec<T>,
    at_once: usize,
    longest: Duration,
) -> anyhow::Result<usize> {
    let end = Instant::now() + longest;
    closed_while(performer, operations, at_once, move |now| now < end).await
}

/// The same, and begins none once a user finds that it is to go on no more.
async fn closed_while<T: Copy + Send + Sync + 'static>(
    performer: &Arc<impl Perform<T>>,
    operations: Vec<T>,
    at_once: usize,
    goes_on: impl Fn(Instant) -> bool + Clone + Send + Sync + 'static,
) -> anyhow::Result<usize> {
    let all = operations.len();
    let (operations, next) = (Arc::new(operations), Arc::new(AtomicUsize::new(0)));
    // They go with this call, also where it is dropped.
    let mut users = JoinSet::new();
    for _ in 0..at_once.min(all) {
        let (performer, operations, next) = (performer.clone(), operations.clone(), next.clone());
        let goes_on = goes_on.clone();
        users.spawn(async move {
            loop {
                let now = Instant::now();
                let number = if goes_on(now) { next.fetch_add(1, Ordering::Relaxed) } else { usize::MAX };
                let Some(operation) = operations.get(number) else { return };
                performer.perform(*operation, now).await;
            }
        });
    }
    while let Some(user) = users.join_next().await {
        user?;
    }
    Ok(next.load(Ordering::Relaxed).min(all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[derive(Debug, Default)]
    struct Noting(Mutex<Vec<u32>>, AtomicUsize);

    impl Perform<u32> for Noting {
        async fn perform(&self, number: u32, _: Instant) {
            assert!(self.1.fetch_add(1, Ordering::SeqCst) < 4, "more than four at once");
            tokio::time::sleep(Duration::from_millis(1)).await;
            self.0.lock().unwrap().push(number);
            self.1.fetch_sub(1, Ordering::SeqCst);
        }

        fn dropped(&self, _: &u32) {
            unreachable!("nothing falls due here");
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn every_operation_is_performed_once_so_many_at_a_time() {
        let noting = Arc::new(Noting::default());
        let done = closed(&noting, (0..50).collect(), 4, Duration::from_secs(60)).await.unwrap();
        let mut performed = noting.0.lock().unwrap().clone();
        performed.sort_unstable();
        assert_eq!((done, performed), (50, (0..50).collect::<Vec<_>>()));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn at_the_end_nothing_more_is_begun_and_what_was_done_is_told() {
        let noting = Arc::new(Noting::default());
        assert_eq!(closed(&noting, (0..10).collect(), 4, Duration::ZERO).await.unwrap(), 0);
        // The end comes when so many have been performed.
        let goes_on = {
            let noting = noting.clone();
            move |_| noting.0.lock().unwrap().len() < 20
        };
        let done = closed_while(&noting, (0..10_000).collect(), 4, goes_on).await.unwrap();
        // Those that were under way then are waited for.
        assert!((20..24).contains(&done), "{done}");
        assert_eq!(noting.0.lock().unwrap().len(), done);
    }
}
