//! What goes wrong on purpose while clients work.
//!
//! Five actors are at it at the same time, each with one fault after another: `instances` that die, and that sleep;
//! `failovers` and `slots`, after which others have the data; what befalls `servers` that stay what they are, and the
//! server of an `archive`. A fault ends mended. Beside them, instances are killed as soon as they have delivered a
//! post.

mod archive;
mod behind;
#[path = "../../../../tests/support/bus.rs"]
pub(crate) mod bus;
pub(crate) mod clocks;
pub(crate) mod delays;
mod failovers;
mod instances;
mod partitions;
mod reach;
mod risks;
mod servers;
#[path = "../../../../tests/support/skew.rs"]
pub(crate) mod skew;
mod slots;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng as _};
use tideline::bucket::Buckets;
use tideline::cluster::Command;
use tideline_local_cluster::LocalCluster;
use tokio::sync::Mutex;
use tokio::time::sleep;

use super::archive_ground::ArchiveGround;
use super::args::{Actor, Chaos, Sabotage};
use super::gate::Gate;
use super::run::Run;
use super::setup::Setup;
pub(crate) use failovers::Promotions;

/// How long anything may take that must happen in the end, also on a machine that is busy beside: elections have come
/// to their end after 45 s there.
const PATIENCE: Duration = Duration::from_secs(120);
/// Between two events, in milliseconds.
const PAUSE_MS: (u64, u64) = (200, 1_500);
/// So long nothing is under way only where nothing is left to do: faults take less until they bring their work.
const QUIET: Duration = Duration::from_secs(30);
/// Between two tries of what is bound to happen.
const RETRY: Duration = Duration::from_millis(50);

/// What a fault lets begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Admit {
    /// The round has to have it: a portion of the work comes with it.
    Portion,
    Nothing,
}

/// Everything that can go wrong, and to whom.
#[derive(Debug)]
pub(crate) struct Storm<'a> {
    pub(crate) run: &'a Arc<Run>,
    pub(crate) setup: &'a Setup,
    pub(crate) cluster: Option<&'a LocalCluster>,
    /// If it can be cut.
    pub(crate) bus: Option<&'a bus::Bus>,
    pub(crate) archive: Option<&'a ArchiveGround>,
    pub(crate) buckets: Buckets,
    pub(crate) kinds: &'a [Chaos],
    /// Decides what goes wrong first: also a run of a few short rounds has everything.
    pub(crate) round: usize,
    pub(crate) gate: &'a Gate,
    /// Whether what can take minutes does.
    pub(crate) minutes: bool,
    /// After so long servers take another one for dead.
    pub(crate) node_timeout: Duration,
    /// Held while keys move, and while a server is held up or cut off. In the middle of MIGRATE that would leave the
    /// key on both sides, and only an operator knows which one counts.
    pub(crate) keys: Mutex<()>,
    /// Held while a slot is open, and while a server stands still: a move needs both of its servers.
    pub(crate) open: Mutex<()>,
    /// Who has taken over when.
    pub(crate) promotions: &'a Mutex<Promotions>,
    /// Who the primaries were when that was last looked at, where a failover may lose what they have.
    pub(crate) seen: Mutex<risks::Seen>,
}

impl Storm<'_> {
    /// One fault of each kind, each with a portion of the round's work, then others until that is done; mends what it
    /// broke.
    pub(crate) async fn rage(&self, random: &mut StdRng) -> anyhow::Result<()> {
        if let Some(cluster) = self.cluster {
            self.begin_risks(cluster).await?;
        }
        let actors = Actor::ALL.map(|actor| {
            let random = StdRng::from_rng(random);
            async move { self.of(actor, random).await }
        });
        let killed = self.kill_who_has_delivered(StdRng::from_rng(random));
        let is_unloaded = self.setup.sabotage == Some(Sabotage::Unloaded);
        if is_unloaded {
            self.let_functions_be_loaded(false).await?;
        }
        let (actors, killed, ()) =
            futures::join!(futures::future::join_all(actors), killed, self.admit_where_nothing_is_left());
        if is_unloaded {
            self.let_functions_be_loaded(true).await?;
        }
        actors.into_iter().chain([killed]).collect::<anyhow::Result<()>>()?;
        match self.cluster {
            Some(cluster) => self.look_for_others(cluster).await,
            None => Ok(()),
        }
    }

    /// Whether servers let anybody load functions. Who has forgotten them is nobody's help until then.
    async fn let_functions_be_loaded(&self, may_be: bool) -> anyhow::Result<()> {
        let cluster = self.cluster.context("a cluster of our own")?;
        let right = format!("{}function|load", if may_be { '+' } else { '-' });
        for node in cluster.primaries().await {
            let command = Command::new("ACL").arg("SETUSER").arg("default").arg(&right);
            cluster.ask(&node.addr(), command).await?;
        }
        Ok(())
    }

    /// A fast machine may be done with a portion before its fault has met any of that: the fault would wait for good,
    /// and the next portion for it.
    async fn admit_where_nothing_is_left(&self) {
        loop {
            let since = self.run.now();
            if tokio::time::timeout(QUIET, self.gate.over()).await.is_ok() {
                return;
            }
            if !self.run.sent.any_since(since, |_| true) {
                self.gate.admit();
            }
        }
    }

    /// Faults of one actor, one after another: first those that the round has to have, in its turn.
    async fn of(&self, actor: Actor, mut random: StdRng) -> anyhow::Result<()> {
        let mut kinds: Vec<Chaos> = self.kinds.iter().copied().filter(|kind| kind.actor() == actor).collect();
        if kinds.is_empty() {
            return Ok(());
        }
        let turn = self.round % kinds.len();
        kinds.rotate_left(turn);
        let raged = async {
            for kind in &kinds {
                let mut has_met = self.strike(*kind, Admit::Portion, &mut random).await?;
                while !has_met && self.pause(&mut random).await {
                    has_met = self.strike(*kind, Admit::Nothing, &mut random).await?;
                }
                self.gate.met(kind.portions());
            }
            while self.pause(&mut random).await {
                if let Some(kind) = kinds.choose(&mut random) {
                    let _ = self.strike(*kind, Admit::Nothing, &mut random).await?;
                }
            }
            Ok(())
        };
        let raged = raged.await;
        // Nobody may wait for faults that don't come any more.
        self.gate.admit_all();
        raged
    }

    /// One fault, from its beginning until it is mended; whether it met work that it can affect.
    async fn strike(&self, kind: Chaos, admit: Admit, random: &mut StdRng) -> anyhow::Result<bool> {
        let struck = self.struck_by(kind, admit, random).await.with_context(|| kind.name())?;
        if let Some(has_met) = struck {
            self.run.fault(kind, has_met);
        }
        Ok(struck.unwrap_or(false))
    }

    /// The same; `None` if it came to nothing.
    async fn struck_by(
        &self,
        kind: Chaos,
        admit: Admit,
        random: &mut StdRng,
    ) -> anyhow::Result<Option<bool>> {
        match kind {
            Chaos::KillInstance => return self.kill_instance(admit).await,
            Chaos::FreezeInstance => return self.freeze_instance(admit, random).await,
            Chaos::SleepInstance => return self.send_to_sleep(admit, random).await,
            _ if kind.actor() == Actor::Archive => return self.strike_archive(kind, admit, random).await,
            _ => {}
        }
        let Some(cluster) = self.cluster else { return Ok(None) };
        match kind {
            Chaos::Failover => self.fail_over(cluster, admit, random).await.map(Some),
            Chaos::FailoversInARow => self.fail_over_again_and_again(cluster, admit, random).await.map(Some),
            Chaos::CutBus => {
                let bus = self.bus.context("a bus that can't be cut")?;
                self.cut_bus((cluster, bus), admit, random).await.map(Some)
            }
            Chaos::SetClocks => {
                let clocks = self.setup.clocks.as_deref().context("clocks that can't be set")?;
                self.set_clocks((cluster, clocks), admit, random).await.map(Some)
            }
            Chaos::Reshard => self.move_slots(cluster, admit, random).await,
            Chaos::OpenSlots => self.leave_slots_open(cluster, admit, random).await,
            _ => self.strike_server(cluster, kind, admit, random).await,
        }
    }

    /// Lets the work begin that a fault is to meet.
    fn admit(&self, admit: Admit) {
        if admit == Admit::Portion {
            self.gate.admit();
        }
    }

    async fn pause(&self, random: &mut StdRng) -> bool {
        let pause = Duration::from_millis(random.random_range(PAUSE_MS.0..PAUSE_MS.1));
        tokio::time::timeout(pause, self.gate.over()).await.is_err()
    }

    /// A slot with data in it.
    fn some_slot(&self, random: &mut StdRng) -> anyhow::Result<u16> {
        let bucket = self.buckets.get(random.random_range(0..self.buckets.count()));
        Ok(self.buckets.slot(bucket.context("a bucket is missing")?))
    }
}

/// Tries a step until it is done: other faults may be in its way, each of which ends.
async fn patiently<T>(mut step: impl AsyncFnMut() -> tideline::Result<T>) -> tideline::Result<T> {
    let since = Instant::now();
    loop {
        match step().await {
            Err(e) if since.elapsed() < PATIENCE => tracing::debug!("again, beside a fault: {e}"),
            ended => return ended,
        }
        sleep(RETRY).await;
    }
}
