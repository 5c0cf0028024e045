//! Making a healthy cluster of nodes that answer: look, do what is missing, look again.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::cluster::{LocalCluster, POLL};
use super::facts::{Facts, Live};
use super::health::ClusterHealth;
use super::plan::{PlanStep, next_steps};
use super::progress::Progress;
use super::slots::SlotSet;
use tideline_model::error::{Error, Result};
use tideline_router::wire::Command;

/// After an introduction of nodes that knew each other they drop a connection and open it again.
const SETTLING: Duration = Duration::from_millis(300);
/// Problems that an error message names.
const SHOWN_PROBLEMS: usize = 4;

/// A listener that progress is told to.
pub(super) type Watch<'a> = &'a (dyn Fn(Progress) + Sync);

impl LocalCluster {
    /// Looks, does what is missing, looks again, until all is well.
    pub(super) async fn mend(&self, watch: &mut Watcher<'_>, deadline: Instant) -> Result<()> {
        let (mut refused, mut last_step) = (None, None);
        loop {
            let facts = self.facts().await;
            let health = self.judge(&facts);
            let is_settled = last_step.is_none_or(|last: Instant| last.elapsed() >= SETTLING);
            watch.health(&health, &facts);
            if health.problems.is_empty() && is_settled {
                watch.tell(Progress::Ready);
                return self.save(&facts);
            }
            if Instant::now() >= deadline || facts.iter().any(|facts| matches!(facts, Facts::Stopped)) {
                return Err(self.explain(&health, refused));
            }
            let live: Vec<&Live> = facts.iter().filter_map(Facts::live).collect();
            if live.len() == facts.len() {
                for step in next_steps(self.shape(), &live) {
                    tracing::debug!(?step, "local cluster");
                    // A node can be a moment behind the facts: what is still missing comes up again.
                    refused = self.take(&step, &live).await.err().or(refused);
                    last_step = Some(Instant::now());
                }
            }
            sleep(POLL).await;
        }
    }

    async fn take(&self, step: &PlanStep, live: &[&Live]) -> Result<()> {
        let cluster = |word: &str| Command::new("CLUSTER").arg(word);
        match step {
            PlanStep::SetEpoch { node, epoch } => {
                self.tell(*node, cluster("SET-CONFIG-EPOCH").arg(*epoch)).await
            }
            PlanStep::Meet { at, whom } => {
                let ports = self.nodes[*whom].ports;
                self.tell(*at, cluster("MEET").arg("127.0.0.1").arg(ports.client).arg(ports.bus)).await
            }
            PlanStep::Forget { at, id } => self.tell(*at, cluster("FORGET").arg(id)).await,
            PlanStep::TakeOver { node } => self.tell(*node, cluster("FAILOVER").arg("TAKEOVER")).await,
            PlanStep::Replicate { node, primary } => {
                self.tell(*node, cluster("REPLICATE").arg(&live[*primary].view.me.id)).await
            }
            PlanStep::Claim { node, slots, outdated, must_win } => {
                if !outdated.is_empty() {
                    self.tell(*node, with_ranges(cluster("DELSLOTSRANGE"), outdated)).await?;
                }
                self.tell(*node, with_ranges(cluster("ADDSLOTSRANGE"), slots)).await?;
                if *must_win { self.tell(*node, cluster("BUMPEPOCH")).await } else { Ok(()) }
            }
        }
    }

    async fn tell(&self, node: usize, command: Command) -> Result<()> {
        self.admin.act(&self.nodes[node].addr(), command).await.map(drop)
    }

    /// Waits until every node runs, every slot is served and every replica is in sync.
    ///
    /// # Errors
    /// `Unavailable` after `patience`, naming what is wrong.
    pub async fn wait_healthy(&self, patience: Duration) -> Result<()> {
        let deadline = Instant::now() + patience;
        loop {
            let health = self.judge(&self.facts().await);
            if health.problems.is_empty() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(self.explain(&health, None));
            }
            sleep(POLL).await;
        }
    }

    fn explain(&self, health: &ClusterHealth, refused: Option<Error>) -> Error {
        let problems: Vec<_> =
            health.problems.iter().take(SHOWN_PROBLEMS).map(|problem| problem.what.clone()).collect();
        let more = health.problems.len().saturating_sub(SHOWN_PROBLEMS);
        let mut text = format!("the cluster is not healthy: {}", problems.join("; "));
        if more > 0 {
            text += &format!("; and {more} more");
        }
        if let Some(error) = refused {
            text += &format!("; last refusal: {error}");
        }
        if let Some(node) = health.problems.iter().find_map(|problem| problem.node) {
            text += &format!("; {}", self.nodes[node].log_tail());
        }
        Error::unavailable(text)
    }
}

fn with_ranges(command: Command, slots: &SlotSet) -> Command {
    slots.ranges().into_iter().fold(command, |command, range| command.arg(*range.start()).arg(*range.end()))
}

/// Passes on progress, each state once.
pub(super) struct Watcher<'a> {
    watch: Watch<'a>,
    last: Option<Progress>,
}

impl<'a> Watcher<'a> {
    pub(super) fn new(watch: Watch<'a>) -> Self {
        Self { watch, last: None }
    }

    pub(super) fn tell(&mut self, progress: Progress) {
        if self.last.replace(progress) != Some(progress) {
            (self.watch)(progress);
        }
    }

    fn health(&mut self, health: &ClusterHealth, facts: &[Facts]) {
        let of = facts.len();
        let replicas = facts.iter().filter_map(Facts::live).filter(|live| !live.is_primary()).count();
        if health.joined < of {
            self.tell(Progress::Joining { joined: health.joined, of });
        } else if health.serving < of {
            self.tell(Progress::Serving { ready: health.serving, of });
        } else if health.in_sync < replicas {
            self.tell(Progress::Syncing { in_sync: health.in_sync, of: replicas });
        }
    }
}
