//! The instances under test.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::call::Call;
use super::perform::Performer;
use super::told::Reply;
use super::worker::{Blow, Worker};

/// An instance: an engine in this process, or a process with one.
#[derive(Debug, Clone)]
pub(crate) enum Instance {
    Here(Arc<Performer>),
    There(Arc<Worker>),
}

impl Instance {
    /// `None`: it is gone; the call may have been carried out or not.
    pub(crate) async fn call(&self, call: Call) -> Option<Reply> {
        match self {
            Self::Here(performer) => Some(performer.perform(call).await),
            Self::There(worker) => worker.send(call)?.await.ok(),
        }
    }

    /// Whether it is that process.
    fn is(&self, process: &Arc<Worker>) -> bool {
        matches!(self, Self::There(worker) if Arc::ptr_eq(worker, process))
    }
}

/// Tells which instance was struck: its number, and itself.
type Struck = oneshot::Sender<(usize, Arc<Worker>)>;

/// The instances under test; one that is killed is replaced.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    instances: RwLock<Vec<Instance>>,
    /// Blows that fall with the next call that they may fall on, or with the next post that is delivered.
    due: Mutex<Vec<(Blow, Struck)>>,
    turns: AtomicU32,
}

/// A write goes on for so long before its instance falls asleep, once, twice or more often.
const MOMENT: Duration = Duration::from_micros(400);
const MOMENTS: u32 = 8;

impl Pool {
    pub(crate) fn new(instances: Vec<Instance>) -> Self {
        Self { instances: RwLock::new(instances), ..Self::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.instances.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Calls the instance with that number. `None`: it is gone; the call may have been carried out or not.
    pub(crate) async fn call(&self, number: usize, call: Call) -> Option<Reply> {
        match self.instance(number) {
            Instance::Here(performer) => Some(performer.perform(call).await),
            Instance::There(worker) => {
                let may_come_late = call.may_come_late();
                let answer = worker.send(call)?;
                if may_come_late {
                    self.wait_within(Blow::SleepInWrite).await;
                }
                self.fall(&worker, number, false);
                let reply = answer.await.ok()?;
                if matches!(reply, Reply::Published { is_delivered: true, is_repeat: false, .. }) {
                    self.fall(&worker, number, true);
                }
                Some(reply)
            }
        }
    }

    /// Has a blow fall on the instance that gets the next call, as soon as that was sent: so there is one under way; or
    /// on the next that has delivered a post. Tells which instance it was.
    pub(crate) fn strike(&self, blow: Blow) -> oneshot::Receiver<(usize, Arc<Worker>)> {
        let (struck, receiver) = oneshot::channel();
        self.due().push((blow, struck));
        receiver
    }

    /// Takes back a blow that has not fallen; whether there was one.
    pub(crate) fn spare(&self, blow: Blow) -> bool {
        let mut due = self.due();
        let before = due.len();
        due.retain(|(other, _)| *other != blow);
        due.len() < before
    }

    /// If such a blow is due: lets a call go on for a moment, each time another one, so that it falls somewhere between
    /// its steps.
    async fn wait_within(&self, blow: Blow) {
        if self.due().iter().any(|(other, _)| *other == blow) {
            let turn = self.turns.fetch_add(1, Ordering::Relaxed) % MOMENTS + 1;
            let since = Instant::now();
            while since.elapsed() < MOMENT * turn {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Has the first blow fall on an instance that may fall on it now, as it was sent a call or has delivered a post;
    /// and tells who waits for that.
    fn fall(&self, worker: &Arc<Worker>, number: usize, has_delivered: bool) {
        let mut due = self.due();
        let falls = |blow: Blow| (blow == Blow::KillDelivered) == has_delivered && worker.suffer(blow);
        if let Some(first) = due.iter().position(|(blow, _)| falls(*blow)) {
            let _ = due.remove(first).1.send((number, worker.clone()));
        }
    }

    fn due(&self) -> MutexGuard<'_, Vec<(Blow, Struck)>> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The instance with that number, around and around.
    pub(crate) fn instance(&self, number: usize) -> Instance {
        let instances = self.instances.read().unwrap_or_else(PoisonError::into_inner);
        instances[number % instances.len()].clone()
    }

    /// Puts another instance in the place of one that is gone, unless somebody else has: two faults may befall one, and
    /// who came in its place is nobody's to push out.
    pub(crate) fn replace(&self, number: usize, gone: &Arc<Worker>, instance: Instance) {
        let mut instances = self.instances.write().unwrap_or_else(PoisonError::into_inner);
        let number = number % instances.len();
        if instances[number].is(gone) {
            instances[number] = instance;
        }
    }

    /// Whether somebody else has put another instance in its place.
    pub(crate) fn has_another(&self, number: usize, gone: &Arc<Worker>) -> bool {
        !self.instance(number).is(gone)
    }
}
