//! One server of the cluster: its connections, its epoch, and the bound on what is under way at it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use tokio::sync::{Mutex, Notify, Semaphore};

use super::clock::{ClockLook, ServerClock, steady_us};
use super::epoch::{Epoch, EpochCell};
use super::facts::{Finding, Info, Severity};
use super::fence::FenceRound;
use super::library::Library;
use super::meters::NodeMeters;
use super::presence::Presence;
use super::settings::RouterSettings;
use super::wire::{Command, Dialer, NodeAddr, Pipeline, Reply, Wire, WireError};
use tideline_model::error::ErrorKind;

/// After a failed attempt to connect, others fail at once for this long instead of dialing again.
const REDIAL_PAUSE: Duration = Duration::from_millis(50);

/// The parts that all nodes of one router share.
#[derive(Debug)]
pub(crate) struct SharedByNodes {
    pub(crate) dialer: Dialer,
    pub(crate) settings: RouterSettings,
    pub(crate) library: Option<Library>,
}

pub(crate) struct Node {
    pub(crate) addr: NodeAddr,
    common: Arc<SharedByNodes>,
    /// Carry the commands of batches.
    lanes: Box<[Lane]>,
    next_lane: AtomicUsize,
    /// Questions about the node and the cluster: never behind a full pipeline, never behind a WAIT.
    control: Lane,
    /// WAIT blocks its connection: fences have one of their own.
    pub(crate) fence_lane: Lane,
    pub(crate) fence: FenceRound,
    epoch: EpochCell,
    pub(super) presence: Presence,
    /// One permit for each command under way.
    pub(crate) permits: Semaphore,
    pub(crate) meters: NodeMeters,
    /// Rings when the node stops being a primary.
    pub(crate) demoted: Notify,
    /// The node's clock, as it was probed.
    clock: ServerClock,
    probing: Mutex<()>,
    /// When the last look for the functions began, and how it ended.
    loading: Mutex<Option<(Instant, tideline_model::Result<()>)>>,
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node")
            .field("addr", &self.addr)
            .field("epoch", &self.epoch.get())
            .finish_non_exhaustive()
    }
}

/// A connection that is opened when first needed, and again after it broke; only one caller dials at a time.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    open: ArcSwapOption<Wire>,
    dialing: Mutex<Option<(Instant, WireError)>>,
}

impl Node {
    pub(crate) fn new(addr: NodeAddr, common: Arc<SharedByNodes>) -> Self {
        let settings = &common.settings;
        Self {
            meters: NodeMeters::new(&addr),
            lanes: (0..settings.connections_per_node).map(|_| Lane::default()).collect(),
            next_lane: AtomicUsize::new(0),
            control: Lane::default(),
            fence_lane: Lane::default(),
            fence: FenceRound::default(),
            epoch: EpochCell::default(),
            presence: Presence::default(),
            permits: Semaphore::new(settings.in_flight_per_node),
            demoted: Notify::new(),
            clock: ServerClock::default(),
            probing: Mutex::default(),
            loading: Mutex::default(),
            addr,
            common,
        }
    }

    /// The last epoch that the node was seen in.
    pub(crate) fn epoch(&self) -> Option<Epoch> {
        self.epoch.get()
    }

    /// Sends one pipeline of `commands` commands; the epoch is one in which the node was before it ran any.
    pub(crate) async fn send(
        &self,
        pipeline: &Pipeline,
        commands: usize,
    ) -> Result<(Vec<Reply>, Epoch), WireError> {
        let lane = &self.lanes[self.next_lane.fetch_add(1, Ordering::Relaxed) % self.lanes.len()];
        let wire = self.open(lane).await?;
        let Some(epoch) = self.epoch() else {
            return Err(WireError::NotSent("the node's epoch is unknown".into()));
        };
        self.meters.commands.increment(commands as u64);
        self.meters.batches.increment(1);
        let _in_flight = InFlight::enter(self, commands);
        let started = Instant::now();
        let replies = wire.send(pipeline).await;
        self.meters.batch_seconds.record(started.elapsed());
        self.presence.note(&replies);
        match replies {
            Ok(replies) => Ok((replies, epoch)),
            Err(e) => {
                // After a timeout too: a connection that lost its other end may never notice by itself.
                lane.discard(&wire);
                Err(e)
            }
        }
    }

    /// Sends a few commands outside of all batches.
    pub(crate) async fn ask<const N: usize>(&self, commands: [Command; N]) -> Result<Vec<Reply>, WireError> {
        self.ask_on(&self.control, commands).await
    }

    pub(crate) async fn ask_on<const N: usize>(
        &self,
        lane: &Lane,
        commands: [Command; N],
    ) -> Result<Vec<Reply>, WireError> {
        let wire = self.open(lane).await?;
        let mut pipeline = Pipeline::with_capacity(N);
        commands.iter().for_each(|c| pipeline.push(c));
        let replies = wire.send(&pipeline).await;
        self.presence.note(&replies);
        if replies.is_err() {
            lane.discard(&wire);
        }
        replies
    }

    async fn open(&self, lane: &Lane) -> Result<Arc<Wire>, WireError> {
        match lane.open.load_full() {
            Some(wire) => Ok(wire),
            // Boxed, for it is rare, and everything that is sent would carry its size along.
            None => Box::pin(self.open_anew(lane)).await,
        }
    }

    /// Opens a lane that nobody has opened yet, or somebody has discarded.
    async fn open_anew(&self, lane: &Lane) -> Result<Arc<Wire>, WireError> {
        let mut failure = lane.dialing.lock().await;
        if let Some(wire) = lane.open.load_full() {
            return Ok(wire);
        }
        if let Some((at, why)) = &*failure
            && at.elapsed() < REDIAL_PAUSE
        {
            return Err(why.clone());
        }
        let dialed = self.dial().await;
        self.presence.note(&dialed);
        match dialed {
            Ok(wire) => {
                let wire = Arc::new(wire);
                lane.open.store(Some(wire.clone()));
                *failure = None;
                self.meters.connects.increment(1);
                Ok(wire)
            }
            Err(why) => {
                *failure = Some((Instant::now(), why.clone()));
                self.meters.connect_failures.increment(1);
                Err(why)
            }
        }
    }

    async fn dial(&self) -> Result<Wire, WireError> {
        let wire = self.common.dialer.dial(&self.addr).await?;
        let reply = wire.call(&Info::command()).await.map_err(|e| WireError::NotSent(e.to_string()))?;
        self.observe(&reply).map_err(|e| match e.kind() {
            ErrorKind::Misconfigured => WireError::Refused(e.to_string()),
            _ => WireError::NotSent(e.to_string()),
        })?;
        Ok(wire)
    }

    /// Notes the epoch that an `INFO` reply tells.
    pub(crate) fn observe(&self, info: &Reply) -> tideline_model::Result<(Info, Epoch)> {
        let info = Info::parse(info)?;
        let epoch = self.epoch.observe(&self.addr, &info.run_id, &info.replication_id);
        Ok((info, epoch))
    }

    /// Looks at the node's epoch and clock, and gives what it says of itself; does nothing while another look is under
    /// way.
    pub(crate) async fn probe(&self) -> Option<Info> {
        let _only = self.probing.try_lock().ok()?;
        let before = steady_us();
        let replies = self.ask([Command::new("TIME"), Info::command()]).await.ok()?;
        let after = steady_us();
        let [time, info] = replies.as_slice() else { return None };
        // Who slept meanwhile, or waited for a connection, doesn't know when the node has looked at its clock.
        let longest = i64::try_from(self.common.settings.response_timeout.as_micros()).unwrap_or(i64::MAX);
        let is_exact = after - before <= longest || self.clock_offset_us().is_none();
        if let Some(node_us) = parse_time(time).filter(|_| is_exact) {
            self.clock.learn(ClockLook::new(node_us, before, after));
        }
        // A reply that we cannot read leaves the old epoch, which at worst makes a fence fail.
        self.observe(info).ok().map(|(info, _)| info)
    }

    /// The finding that it is not there to work, as far as was seen, and what to do about it.
    pub(crate) fn absence(&self) -> Option<Finding> {
        let (node, severity) = (Some(self.addr.clone()), Severity::Warning);
        self.presence.absence().map(|text| Finding { node, severity, text: text.into() })
    }

    /// The node's clock less our monotonic one, in microseconds.
    pub(crate) fn clock_offset_us(&self) -> Option<i64> {
        self.clock.offset()
    }

    /// Makes sure that the node has the function library; callers at the same time share one look.
    pub(crate) async fn load_library(&self) -> tideline_model::Result<()> {
        let Some(library) = &self.common.library else { return Ok(()) };
        let arrived = Instant::now();
        let mut last = self.loading.lock().await;
        if let Some((began, outcome)) = &*last
            && *began >= arrived
        {
            return outcome.clone();
        }
        let began = Instant::now();
        let outcome = library.ensure(self).await;
        *last = Some((began, outcome.clone()));
        outcome
    }
}

/// Counts commands as under way for as long as it lives, also if the caller goes away.
struct InFlight<'a>(&'a Node, usize);

impl<'a> InFlight<'a> {
    #[expect(clippy::cast_precision_loss, reason = "a gauge")]
    fn enter(node: &'a Node, commands: usize) -> Self {
        node.meters.in_flight.increment(commands as f64);
        Self(node, commands)
    }
}

impl Drop for InFlight<'_> {
    #[expect(clippy::cast_precision_loss, reason = "a gauge")]
    fn drop(&mut self) {
        self.0.meters.in_flight.decrement(self.1 as f64);
    }
}

impl Lane {
    fn discard(&self, wire: &Arc<Wire>) {
        // Only if it is still the one that failed: somebody may have opened another one meanwhile.
        self.open.compare_and_swap(&Some(wire.clone()), None);
    }
}

fn parse_time(reply: &Reply) -> Option<i64> {
    let parts = reply.clone().into_array().ok()?;
    let [seconds, micros] = parts.as_slice() else { return None };
    Some(seconds.int().ok()? * 1_000_000 + micros.int().ok()?)
}
