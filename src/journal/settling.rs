//! Waiting, for a moment, for what a call has left elsewhere: whoever is answered then finds it there.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use tokio::time::timeout;

use super::job::Task;
use super::progress::Delivery;
use crate::meters;

tokio::task_local! {
    /// The tasks that the call which runs here has left so far.
    static LEFT: Arc<Mutex<Vec<Delivery>>>;
}

/// Makes a call, then waits until the tasks that it has left are done, no longer than that: a server that is away holds
/// nobody up. Of tasks that go through many accounts, or need the archive, nobody waits for any.
pub(crate) async fn settled<T>(within: Duration, call: impl Future<Output = T>) -> T {
    let left = Arc::<Mutex<Vec<Delivery>>>::default();
    let made = LEFT.scope(left.clone(), call).await;
    let left = std::mem::take(&mut *left.lock().unwrap_or_else(PoisonError::into_inner));
    if !left.is_empty() {
        let all = join_all(left.into_iter().map(|mut task| async move { task.all().await.is_ok() }));
        let is_in_time = timeout(within, all).await.is_ok_and(|done| done.into_iter().all(|is_done| is_done));
        meters::call_settled(is_in_time);
    }
    made
}

/// Notes that the call which runs here has left that task, if somebody waits for what it leaves.
pub(super) fn leave(task: &Task, follow: impl FnOnce() -> Delivery) {
    if task.kind().is_quick() {
        // Outside of such a call there is nobody to tell.
        let _ = LEFT.try_with(|left| left.lock().unwrap_or_else(PoisonError::into_inner).push(follow()));
    }
}
