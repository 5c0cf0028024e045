//! Users of a network at work: carries operations out, and counts what becomes of them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tideline::Delivery;
use tokio::task::JoinSet;

use crate::drive::Perform;
use crate::gauges::Gauges;
use crate::systems::Timelines;
use crate::tally::{Summary, Tally};
use crate::workload::Op;

/// An operation is given up after this long: later than by whatever carries it out, so that its error is what shows.
pub(crate) const OPERATION_MAX: Duration = Duration::from_secs(40);
/// So long fan-outs are waited for that are under way at the end.
const FANOUT_MAX: Duration = Duration::from_secs(60);

/// A network, and what its users have seen of it.
pub(crate) struct Network {
    pub(crate) timelines: Box<dyn Timelines>,
    /// By account: the newest post that it has seen.
    seen: Vec<AtomicU64>,
    text: String,
}

impl Network {
    pub(crate) fn new(timelines: Box<dyn Timelines>, accounts: usize, text_chars: usize) -> Arc<Self> {
        let seen = (0..accounts).map(|_| AtomicU64::new(0)).collect();
        Arc::new(Self {
            timelines,
            seen,
            text: "a word of the sea ".chars().cycle().take(text_chars).collect(),
        })
    }
}

/// A stretch of time in which operations are counted.
pub(crate) struct Session {
    network: Arc<Network>,
    tallies: [Tally; Op::KINDS.len()],
    /// Of checks and reads together.
    pages: Tally,
    /// Of posts, until everybody has them.
    fanouts: Arc<Tally>,
    shown: AtomicU64,
    under_way: Mutex<JoinSet<()>>,
    gauges: Gauges,
}

/// What was counted.
#[derive(Debug, Clone)]
pub(crate) struct Counted {
    /// By kind of operation.
    pub(crate) operations: Vec<(&'static str, Summary)>,
    pub(crate) pages: Summary,
    pub(crate) fanouts: Summary,
    /// Posts on all pages.
    pub(crate) shown: u64,
}

impl Counted {
    /// What was counted, of whatever kind.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Summary> {
        self.operations.iter().map(|(_, summary)| summary).chain([&self.pages, &self.fanouts])
    }
}

impl Session {
    pub(crate) fn new(network: Arc<Network>, name: &'static str) -> Arc<Self> {
        Arc::new(Self {
            network,
            tallies: Op::KINDS.map(|_| Tally::new()),
            pages: Tally::new(),
            fanouts: Arc::new(Tally::new()),
            shown: AtomicU64::new(0),
            under_way: Mutex::default(),
            gauges: Gauges::new(name),
        })
    }

    /// Waits until all that was begun has come to its end, within bounds. A fan-out that hasn't counts as failed.
    pub(crate) async fn settle(&self) {
        let mut under_way =
            std::mem::take(&mut *self.under_way.lock().unwrap_or_else(PoisonError::into_inner));
        let all = async { while under_way.join_next().await.is_some() {} };
        if tokio::time::timeout(FANOUT_MAX, all).await.is_err() {
            for _ in 0..under_way.len() {
                self.fanouts.ended(FANOUT_MAX, Some("given_up".to_owned()));
            }
        }
        self.network.timelines.settled().await;
    }

    pub(crate) fn counted(&self) -> Counted {
        let operations = Op::KINDS.iter().zip(&self.tallies);
        Counted {
            operations: operations.map(|(name, tally)| (*name, tally.summary())).collect(),
            pages: self.pages.summary(),
            fanouts: self.fanouts.summary(),
            shown: self.shown.load(Ordering::Relaxed),
        }
    }

    async fn carry_out(&self, op: Op, due: Instant) -> tideline::Result<()> {
        let network = &self.network;
        let timelines = &network.timelines;
        match op {
            Op::Post { author } => {
                let delivery = timelines.post(author, &network.text).await?;
                self.watch(delivery, due);
                Ok(())
            }
            Op::Check { reader } => {
                let seen = &network.seen[reader as usize];
                let shown = timelines.page(reader, seen.load(Ordering::Relaxed)).await?;
                // Another check of the same reader may have seen more.
                seen.fetch_max(shown.newest, Ordering::Relaxed);
                self.shown.fetch_add(shown.posts as u64, Ordering::Relaxed);
                Ok(())
            }
            Op::Read { reader } => {
                let shown = timelines.page(reader, 0).await?;
                self.shown.fetch_add(shown.posts as u64, Ordering::Relaxed);
                Ok(())
            }
            Op::Subscribe { reader, author } => timelines.follow(reader, author).await,
            Op::Unsubscribe { reader, author } => timelines.unfollow(reader, author).await,
            Op::Logout { next, .. } => {
                network.seen[next as usize].store(0, Ordering::Relaxed);
                Ok(())
            }
        }
    }

    /// Notes when a post has reached everybody.
    fn watch(&self, delivery: Option<Delivery>, due: Instant) {
        let Some(mut delivery) = delivery.filter(|delivery| !delivery.progress().is_done) else {
            self.gauges.fanout(due.elapsed());
            self.fanouts.ended(due.elapsed(), None);
            return;
        };
        let (fanouts, gauges) = (self.fanouts.clone(), self.gauges.clone());
        let watch = async move {
            let error = delivery.all().await.err().map(|e| kind(&e));
            gauges.fanout(due.elapsed());
            fanouts.ended(due.elapsed(), error);
        };
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner).spawn(watch);
    }
}

impl Perform<Op> for Session {
    async fn perform(&self, op: Op, due: Instant) {
        let error = match tokio::time::timeout(OPERATION_MAX, self.carry_out(op, due)).await {
            Ok(Ok(())) => None,
            Ok(Err(e)) => Some(kind(&e)),
            Err(_) => Some("given_up".to_owned()),
        };
        let took = due.elapsed();
        self.gauges.operation(op, took, error.is_some());
        if op.is_page() {
            self.pages.ended(took, error.clone());
        }
        self.tallies[op.kind()].ended(took, error);
    }

    fn dropped(&self, op: &Op) {
        self.gauges.dropped(*op);
        self.tallies[op.kind()].dropped();
    }
}

/// A kind of error as reports name it.
pub(crate) fn kind(error: &tideline::Error) -> String {
    tracing::debug!("{error}");
    format!("{:?}", error.kind()).to_lowercase()
}
