//! The work of an instance beside its calls: things that recur, and single steps for which no caller waits. All of it
//! may end at any point, as where its process is killed, and does when the instance stops: a server that is away would
//! keep a shutdown, and with it the instance's lease.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::tasks::Tasks;

/// Something that an instance does again and again.
pub(crate) trait Recurring: Send + 'static {
    /// The value that it belongs to; it ends with that.
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
        self.beside(async move {
            // Between two rounds nothing keeps the owner.
            while let Some(pause) = owner.upgrade().map(|owner| recurring.pause(&owner)) {
                sleep(pause).await;
                let Some(owner) = owner.upgrade() else { return };
                recurring.round(&owner).await;
            }
        });
    }

    /// Begins a step for which no caller has to wait. It is dropped where it is when the instance stops.
    pub(crate) fn beside(&self, step: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        let (running, mut stopping) = (self.beside.subscribe(), self.is_stopping.subscribe());
        tokio::spawn(async move {
            let _running = running;
            tokio::select! {
                // The same way each time: histories of the simulation are repeated.
                biased;
                _ = stopping.wait_for(|is_stopping| *is_stopping) => {}
                () = step => {}
            }
        })
    }

    /// Waits until nothing is done beside any more, once that was stopped.
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
    async fn whoever_stops_drops_a_round_that_is_under_way_and_begins_no_further_one() {
        let (tasks, owner, steps) = (Tasks::new(&EngineSettings::default()), Arc::new(()), Arc::default());
        tasks.recur(&owner, Rounds(Arc::clone(&steps)));
        tokio::time::sleep(Duration::from_millis(10_500)).await;
        assert_eq!((steps.load(Ordering::Relaxed), Arc::strong_count(&owner)), (1, 2));
        tasks.stop();
        tasks.nothing_beside().await;
        assert_eq!(Arc::strong_count(&owner), 1, "it is gone by now");
        tasks.recur(&owner, Rounds(Arc::clone(&steps)));
        tasks.nothing_beside().await;
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert_eq!(steps.load(Ordering::Relaxed), 1);
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
