//! Instances that are killed, or stopped in their tracks.

use std::sync::Arc;
use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;
use tokio::time::sleep;

use super::super::args::Chaos;
use super::super::facts::Window;
use super::super::pool::Instance;
use super::super::worker::{Blow, Worker};
use super::{Admit, Storm};

/// How long an instance is frozen; its lease ends after 1.5 s, and others take its work over.
const FROZEN_MS: (u64, u64) = (100, 4_500);
/// How long one sleeps, in milliseconds; and in a run that takes minutes.
const ASLEEP_MS: (u64, u64) = (5_000, 8_000);
const ASLEEP_LONG_MS: (u64, u64) = (60_000, 120_000);
const IN_WRITE: &str = "instances sent to sleep in the middle of a write";
/// An event and no fault: a kill after a call has met none, and would hide that no other kill did.
const DELIVERED: &str = "instances that had just delivered";
/// How long it is awake then.
const AWAKE: Duration = Duration::from_secs(3);

impl Storm<'_> {
    /// Freezes an instance for a moment; sometimes it ends there.
    pub(super) async fn freeze_instance(
        &self,
        admit: Admit,
        random: &mut StdRng,
    ) -> anyhow::Result<Option<bool>> {
        let Some((number, worker)) = self.struck(Blow::Freeze, admit).await? else { return Ok(None) };
        self.run.event("instances frozen");
        sleep(Duration::from_millis(random.random_range(FROZEN_MS.0..FROZEN_MS.1))).await;
        if self.kinds.contains(&Chaos::KillInstance) && random.random_bool(0.3) {
            worker.kill();
            self.replace_killed(number, &worker).await?;
        } else {
            worker.freeze(false);
        }
        // A call had just been sent there.
        Ok(Some(true))
    }

    /// Kills an instance in the middle of a call.
    pub(super) async fn kill_instance(&self, admit: Admit) -> anyhow::Result<Option<bool>> {
        let Some((number, worker)) = self.struck(Blow::Kill, admit).await? else { return Ok(None) };
        self.replace_killed(number, &worker).await?;
        Ok(Some(true))
    }

    /// Kills one instance after another, each as soon as it has said of a post that everybody has it. No portion of the
    /// work comes with it, and none waits for it: what has begun may publish nothing that anybody waits for.
    pub(super) async fn kill_who_has_delivered(&self, mut random: StdRng) -> anyhow::Result<()> {
        if !self.kinds.contains(&Chaos::KillInstance) {
            return Ok(());
        }
        while let Some((number, worker)) = self.struck(Blow::KillDelivered, Admit::Nothing).await? {
            self.run.event(DELIVERED);
            self.replace_killed(number, &worker).await?;
            if !self.pause(&mut random).await {
                break;
            }
        }
        Ok(())
    }

    async fn replace_killed(&self, number: usize, killed: &Arc<Worker>) -> anyhow::Result<()> {
        self.run.event("instances killed");
        self.fill_place(number, killed).await
    }

    /// Sends an instance to sleep for many leases. Others do its work, another one comes in its place; then it wakes,
    /// goes on with what it was at, and finds out.
    pub(super) async fn send_to_sleep(
        &self,
        admit: Admit,
        random: &mut StdRng,
    ) -> anyhow::Result<Option<bool>> {
        // The first of a round in the middle of a write. Not where the write of somebody else, sent again, may be lost.
        let is_in_write = !self.setup.may_lose && (admit == Admit::Portion || random.random_bool(0.5));
        let blow = if is_in_write { Blow::SleepInWrite } else { Blow::Sleep };
        let since = self.run.now();
        let Some((number, worker)) = self.struck(blow, admit).await? else { return Ok(None) };
        let writes = worker.late_writes();
        self.run.event(if is_in_write { IN_WRITE } else { "instances sent to sleep" });
        self.fill_place(number, &worker).await?;
        let (least, most) = if self.minutes { ASLEEP_LONG_MS } else { ASLEEP_MS };
        sleep(Duration::from_millis(random.random_range(least..most))).await;
        worker.freeze(false);
        self.admit(admit);
        sleep(AWAKE).await;
        let left = worker.late_writes().len();
        worker.kill();
        let ended = u64::try_from(writes.len().saturating_sub(left))?;
        self.run.count_event("writes that an instance ended after its sleep", ended);
        let window = Window { from: since, to: self.run.now() };
        let mut world = self.run.world();
        world.sleeps.push(window);
        world.late_writes.extend(writes.into_iter().map(|call| (call, window)));
        Ok(Some(true))
    }

    /// Strikes an instance that has a call under way, or has delivered. `None`: the round was over before.
    async fn struck(&self, blow: Blow, admit: Admit) -> anyhow::Result<Option<(usize, Arc<Worker>)>> {
        let mut struck = self.run.pool.strike(blow);
        self.admit(admit);
        tokio::select! {
            struck = &mut struck => Ok(Some(struck?)),
            () = self.gate.over() => match self.run.pool.spare(blow) {
                true => Ok(None),
                false => Ok(Some(struck.await?)),
            },
        }
    }

    /// Puts a new instance in the place of one that is gone. Servers may be failing meanwhile: then again, unless
    /// somebody else has done so, since two faults may befall one. Where the archive is a file, a second one never
    /// starts.
    async fn fill_place(&self, number: usize, gone: &Arc<Worker>) -> anyhow::Result<()> {
        let (pool, number) = (&self.run.pool, number % self.run.pool.len());
        let is_empty = || !pool.has_another(number, gone);
        let new = Worker::start_while(&self.setup.of_instance(number), number, is_empty).await?;
        if let Some(worker) = new {
            pool.replace(number, gone, Instance::There(Arc::new(worker)));
        }
        Ok(())
    }
}
