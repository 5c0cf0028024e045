//! The instances under test.

use std::sync::{Arc, PoisonError, RwLock};

use super::call::Call;
use super::perform::Performer;
use super::told::Reply;
use super::worker::Worker;

/// An instance: an engine in this process, or a process with one.
#[derive(Debug, Clone)]
pub(crate) enum Instance {
    Here(Arc<Performer>),
    There(Arc<Worker>),
}

impl Instance {
    /// `None`: the instance is gone; the call may have been carried out or not.
    pub(crate) async fn call(&self, call: Call) -> Option<Reply> {
        match self {
            Self::Here(performer) => Some(performer.perform(call).await),
            Self::There(worker) => worker.call(call).await,
        }
    }
}

/// The instances under test; one that is killed is replaced.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    instances: RwLock<Vec<Instance>>,
}

impl Pool {
    pub(crate) fn new(instances: Vec<Instance>) -> Self {
        Self { instances: RwLock::new(instances) }
    }

    pub(crate) fn len(&self) -> usize {
        self.instances.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The instance with that number, around and around.
    pub(crate) fn instance(&self, number: usize) -> Instance {
        let instances = self.instances.read().unwrap_or_else(PoisonError::into_inner);
        instances[number % instances.len()].clone()
    }

    pub(crate) fn replace(&self, number: usize, instance: Instance) {
        let mut instances = self.instances.write().unwrap_or_else(PoisonError::into_inner);
        let number = number % instances.len();
        instances[number] = instance;
    }
}
