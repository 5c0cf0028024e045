//! The progress of a fan-out, for whoever wants to know or to wait.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use crate::error::{Error, Result};

/// The progress of a fan-out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct DeliveryProgress {
    /// Homes that have the post.
    pub delivered: u64,
    /// Followers without a home: they read seldom, and find the post when they do.
    pub skipped: u64,
    /// What is left waits for servers that are away.
    pub is_held_up: bool,
    /// All is delivered, and on replicas where there are any.
    pub is_done: bool,
    /// All is delivered, and each server that took part has it on replicas. Where
    /// [`Replicas`](crate::cluster::Replicas) says to go on without, a delivery may be done and not be replicated.
    pub is_replicated: bool,
}

/// A fan-out that was accepted. It goes on whether or not somebody holds this.
#[derive(Debug, Clone)]
pub struct Delivery(pub(crate) Option<watch::Receiver<DeliveryProgress>>);

impl Delivery {
    /// A fan-out that another instance runs, or will when it finds it.
    pub(crate) fn elsewhere() -> Self {
        Self(Some(watch::channel(DeliveryProgress::default()).1))
    }

    /// A fan-out that is over: nobody here knows how many homes it reached.
    pub(crate) fn over(is_replicated: bool) -> Self {
        let progress = DeliveryProgress { is_done: true, is_replicated, ..DeliveryProgress::default() };
        Self(Some(watch::channel(progress).1))
    }

    /// Tells how far it is. What nobody has to deliver is done.
    pub fn progress(&self) -> DeliveryProgress {
        let done = DeliveryProgress { is_done: true, is_replicated: true, ..DeliveryProgress::default() };
        self.0.as_ref().map_or(done, |progress| *progress.borrow())
    }

    /// Waits until so many homes have it, or all.
    pub async fn first(&mut self, homes: u64) -> Result<DeliveryProgress> {
        self.until(|progress| progress.is_done || progress.delivered >= homes).await
    }

    /// Waits until all homes have it, on replicas too where there are any ([`DeliveryProgress::is_replicated`]).
    pub async fn all(&mut self) -> Result<DeliveryProgress> {
        self.until(|progress| progress.is_done).await
    }

    /// Waits as [`first`](Self::first) does. `None`: after that time it waits for servers that are away, or this
    /// instance doesn't run it.
    pub(crate) async fn first_unless_held_up(
        &mut self,
        homes: u64,
        patience: Duration,
    ) -> Option<DeliveryProgress> {
        let is_so = |progress: &DeliveryProgress| progress.is_done || progress.delivered >= homes;
        let progress = match timeout(patience, self.until(is_so)).await {
            Ok(reached) => reached,
            Err(_) => self.until(|progress| progress.is_held_up || is_so(progress)).await,
        };
        progress.ok().filter(is_so)
    }

    async fn until(&mut self, is_so: impl FnMut(&DeliveryProgress) -> bool) -> Result<DeliveryProgress> {
        let Some(progress) = &mut self.0 else { return Ok(self.progress()) };
        let reached = progress.wait_for(is_so).await.map(|progress| *progress);
        reached.map_err(|_| {
            Error::unavailable(
                "this instance doesn't run the fan-out (any more); `Engine::fanout` tells when another one \
                 has finished it",
            )
        })
    }
}

/// A reporter: where an executor tells of progress.
#[derive(Debug, Clone)]
pub(crate) struct Reporter(watch::Sender<DeliveryProgress>);

impl Reporter {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(DeliveryProgress::default()))
    }

    pub(super) fn follow(&self) -> Delivery {
        Delivery(Some(self.0.subscribe()))
    }

    /// Whether somebody wants to know.
    pub(super) fn is_watched(&self) -> bool {
        self.0.receiver_count() > 0
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

    /// Notes that what is left is put aside, or run again.
    pub(super) fn held_up(&self, is_held_up: bool) {
        self.0.send_modify(|progress| progress.is_held_up = is_held_up);
    }

    /// Notes that what was done is fenced.
    pub(crate) fn fenced(&self, is_replicated: bool) {
        self.0.send_modify(|progress| progress.is_replicated = is_replicated);
    }

    pub(crate) fn done(&self) {
        self.0.send_modify(|progress| progress.is_done = true);
    }

    pub(crate) fn progress(&self) -> DeliveryProgress {
        *self.0.borrow()
    }
}
