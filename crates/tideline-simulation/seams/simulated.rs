//! What stands in for the servers in the simulation: the one place where all requests of an instance go.

use std::sync::Arc;

use arc_swap::ArcSwap;
use futures::future::BoxFuture;

use super::batch::{Answer, Batch};
use super::epoch::Epoch;
use super::facts::ListpackLimits;
use super::fence::TouchedServers;
use super::node::SharedByNodes;
use super::router::{PrimaryFacts, SharedRouter, Router};
use super::settings::RouterSettings;
use super::topology::Topology;
use super::wire::{Dialer, NodeAddr};
use tideline_model::error::Result;

/// A cluster that doesn't exist, as one instance sees it.
pub trait Simulated: std::fmt::Debug + Send + Sync {
    /// As [`Router::run`].
    fn run(&self, batch: Batch) -> BoxFuture<'_, Vec<Result<Answer>>>;

    /// As [`Router::fence`].
    fn fence<'a>(&'a self, touched: &'a TouchedServers) -> BoxFuture<'a, Result<()>>;

    /// As [`Router::now_ms`].
    fn now_ms(&self) -> u64;

    /// The epoch that this server is in.
    fn epoch_of(&self, node: &NodeAddr) -> Epoch {
        Epoch::over(node.clone())
    }

    /// As [`Router::is_away`].
    fn is_away(&self, _slot: u16) -> bool {
        false
    }

    /// As [`Router::is_held_up`].
    fn is_held_up(&self, slot: u16) -> bool {
        self.is_away(slot)
    }
}

impl Router {
    /// A router that hands everything over.
    pub fn simulated(simulated: Arc<dyn Simulated>) -> Result<Self> {
        let settings = RouterSettings::default();
        let (timeout, seed) = (settings.response_timeout, super::Seed::from("redis://127.0.0.1:1"));
        let (dialer, seeds) = Dialer::from_urls(&[seed], &settings.tls, timeout, timeout)?;
        let inner = SharedRouter {
            common: Arc::new(SharedByNodes { dialer, settings, library: None }),
            prefix: String::new(),
            seeds,
            topology: ArcSwap::from_pointee(Topology::new(Vec::new())),
            known: std::sync::Mutex::default(),
            tenures: std::sync::Mutex::default(),
            nodes: std::sync::Mutex::default(),
            health: ArcSwap::default(),
            replicas: std::sync::Mutex::default(),
            time: super::clock::ClockOffset::default(),
            told_time: super::clock::ToldTime::default(),
            told_clocks: std::sync::Mutex::default(),
            refresh: Arc::default(),
            simulated: Some(simulated),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// As if the servers had been asked again, and said this of their lists.
    pub fn learn_list_size(&self, list_size: i64) {
        let limits = ListpackLimits { list_size, ..self.limits() };
        self.inner.health.store(Arc::new(PrimaryFacts { limits, ..PrimaryFacts::default() }));
    }
}
