//! What an instance does beside its calls: things that recur, and single steps for which no caller waits. A shutdown
//! waits for both.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::tasks::Tasks;

/// Something that an instance does again and again.
pub(crate) trait Recurring: Send + 'static {
    /// Whose it is. It ends with that.
    type Owner: Send + Sync + 'static;

    /// Tells how long to wait before the next round.
    fn pause(&mut self, owner: &Self::Owner) -> Duration;

    /// Does it once.
    fn round(&mut self, owner: &Arc<Self::Owner>) -> impl Future<Output = ()> + Send;
}

impl Tasks {
    /// Begins to do something again and again, until its owner is gone or the instance stops.
    pub(crate) fn recur<R: Recurring>(&self, owner: &Arc<R::Owner>, mut recurring: R) {
        let owner = Arc::downgrade(owner);
        let mut stopping = self.is_stopping.subscribe();
        self.beside(async move {
            // Between two rounds nothing keeps the owner.
            while let Some(pause) = owner.upgrade().map(|owner| recurring.pause(&owner)) {
                let is_over = timeout(pause, stopping.wait_for(|is_stopping| *is_stopping)).await.is_ok();
                let Some(owner) = owner.upgrade().filter(|_| !is_over) else { return };
                recurring.round(&owner).await;
            }
        });
    }

    /// Begins a step for which no caller has to wait.
    pub(crate) fn beside(&self, step: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        let running = self.beside.subscribe();
        tokio::spawn(async move {
            let _running = running;
            step.await;
        })
    }

    /// Waits until nothing is done beside any more.
    pub(crate) async fn nothing_beside(&self) {
        self.beside.closed().await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::settings::EngineSettings;

    struct Rounds(Arc<AtomicU32>);

    impl Recurring for Rounds {
        type Owner = ();

        fn pause(&mut self, _: &()) -> Duration {
            Duration::from_secs(10)
        }

        async fn round(&mut self, _: &Arc<()>) {
            self.0.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_stops_waits_for_a_round_that_is_under_way_and_for_no_further_one() {
        let (tasks, owner, steps) = (Tasks::new(&EngineSettings::default()), Arc::new(()), Arc::default());
        tasks.recur(&owner, Rounds(Arc::clone(&steps)));
        tokio::time::sleep(Duration::from_millis(10_500)).await;
        assert_eq!(steps.load(Ordering::Relaxed), 1);
        tasks.stop();
        tasks.nothing_beside().await;
        assert_eq!(steps.load(Ordering::Relaxed), 2);
        // One that only sleeps isn't waited for.
        tasks.recur(&owner, Rounds(Arc::clone(&steps)));
        tasks.nothing_beside().await;
        assert_eq!(steps.load(Ordering::Relaxed), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn what_recurs_ends_with_its_owner() {
        let (tasks, owner, steps) = (Tasks::new(&EngineSettings::default()), Arc::new(()), Arc::default());
        tasks.recur(&owner, Rounds(Arc::clone(&steps)));
        drop(owner);
        tasks.nothing_beside().await;
        assert_eq!(steps.load(Ordering::Relaxed), 0);
    }
}
