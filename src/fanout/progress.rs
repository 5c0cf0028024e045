//! How far a fan-out is, for whoever wants to know or to wait.

use tokio::sync::watch;

use crate::error::{Error, Result};

/// How far a fan-out is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeliveryProgress {
    /// Homes that have the post.
    pub delivered: u64,
    /// Followers without a home: they read seldom, and find the post when they do.
    pub skipped: u64,
    /// All is delivered, and on replicas.
    pub is_done: bool,
}

/// A fan-out that was accepted. It goes on whether or not somebody holds this.
#[derive(Debug, Clone)]
pub struct Delivery(pub(crate) Option<watch::Receiver<DeliveryProgress>>);

impl Delivery {
    /// A fan-out that another instance runs, or will when it finds it.
    pub(crate) fn elsewhere() -> Self {
        Self(Some(watch::channel(DeliveryProgress::default()).1))
    }

    /// How far it is. What nobody has to deliver is done.
    pub fn progress(&self) -> DeliveryProgress {
        let done = DeliveryProgress { is_done: true, ..DeliveryProgress::default() };
        self.0.as_ref().map_or(done, |progress| *progress.borrow())
    }

    /// Waits until so many homes have it, or all.
    pub async fn first(&mut self, homes: u64) -> Result<DeliveryProgress> {
        self.until(|progress| progress.is_done || progress.delivered >= homes).await
    }

    /// Waits until all homes have it, on replicas too.
    pub async fn all(&mut self) -> Result<DeliveryProgress> {
        self.until(|progress| progress.is_done).await
    }

    async fn until(&mut self, is_so: impl FnMut(&DeliveryProgress) -> bool) -> Result<DeliveryProgress> {
        let Some(progress) = &mut self.0 else { return Ok(self.progress()) };
        let reached = progress.wait_for(is_so).await.map(|progress| *progress);
        reached.map_err(|_| {
            Error::unavailable("this instance doesn't run the fan-out (any more); `Engine::fanout` tells when another one has finished it")
        })
    }
}

/// What an executor reports to.
#[derive(Debug, Clone)]
pub(crate) struct Reporter(watch::Sender<DeliveryProgress>);

impl Reporter {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(DeliveryProgress::default()))
    }

    pub(super) fn follow(&self) -> Delivery {
        Delivery(Some(self.0.subscribe()))
    }

    /// An executor begins (again).
    pub(crate) fn restart(&self) {
        self.0.send_replace(DeliveryProgress::default());
    }

    pub(crate) fn add(&self, delivered: u64, skipped: u64) {
        self.0.send_modify(|progress| {
            progress.delivered += delivered;
            progress.skipped += skipped;
        });
    }

    pub(super) fn done(&self) {
        self.0.send_modify(|progress| progress.is_done = true);
    }

    pub(super) fn progress(&self) -> DeliveryProgress {
        *self.0.borrow()
    }
}
