//! What befalls servers that stay what they are: connections that are cut, functions that are gone, slowness, silence,
//! no memory.
//!
//! A fault lasts until it was met, as the server itself tells where it can: who was refused, who has loaded functions
//! again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rand::RngExt;
use rand::rngs::StdRng;
use tideline::cluster::{Command, NodeAddr, Reply};
use tideline_local_cluster::LocalCluster;
use tokio::time::sleep;

use super::super::args::Chaos;
use super::reach::Reach;
use super::{Admit, PATIENCE, RETRY, Storm, patiently};

/// So often all connections to a server are cut, with pauses of so many milliseconds.
const CUTS: usize = 8;
const CUTS_MS: (u64, u64) = (10, 250);
/// For so long a server stands still before it cuts them: commands wait there.
const CUT_AFTER: Duration = Duration::from_millis(40);
/// How long a server stands still, in milliseconds: shorter than the node timeout, or it would be a failover.
const STILL_MS: (u64, u64) = (50, 900);
/// After how many milliseconds a busy server refuses others instead of letting them wait; by default, and here.
const BUSY_FROM_MS: [u32; 2] = [5_000, 20];
/// How long one is kept busy; and with what, which ends by itself should nobody end it.
const BUSY: Duration = Duration::from_millis(500);
const SCRIPT: &str = "for i = 1, 2e9 do end";
/// A server refuses others until so many were refused, and no longer than this.
const REFUSING_MAX: Duration = Duration::from_secs(10);
const REFUSED_MIN: u64 = 5;
/// How long clients hear nothing, in milliseconds: longer than they wait for an answer; also longer than the node
/// timeout, since its peers do hear the server.
const SILENT_MS: (u64, u64) = (1_000, 3_000);

/// Whom a fault strikes, and what it lets begin once it is there.
struct Victim<'a> {
    cluster: &'a LocalCluster,
    node: NodeAddr,
    reach: Reach,
    admit: Admit,
}

impl Victim<'_> {
    async fn ask(&self, command: Command) -> tideline::Result<Reply> {
        self.cluster.ask(&self.node, command).await
    }

    async fn set(&self, what: &str, value: u32) -> tideline::Result<()> {
        self.ask(Command::new("CONFIG").arg("SET").arg(what).arg(value)).await.map(drop)
    }

    /// Whether no script keeps it busy.
    async fn is_free(&self) -> bool {
        let is_away = self.cluster.node(&self.node).is_none_or(|node| !node.is_running());
        is_away || self.ask(Command::new("PING")).await.is_ok()
    }

    /// How many commands it has refused with this word.
    async fn refused(&self, word: &str) -> tideline::Result<u64> {
        let info = self.ask(Command::new("INFO").arg("errorstats")).await?;
        let line = format!("errorstat_{word}:count=");
        let told = |told: &str| told.trim_end().strip_prefix(&line)?.parse().ok();
        Ok(info.text()?.lines().find_map(told).unwrap_or(0))
    }
}

impl Storm<'_> {
    /// Strikes one primary, or all of them.
    pub(super) async fn strike_server(
        &self,
        cluster: &LocalCluster,
        kind: Chaos,
        admit: Admit,
        random: &mut StdRng,
    ) -> anyhow::Result<Option<bool>> {
        let slot = self.some_slot(random)?;
        let node = patiently(async || cluster.owner_of(slot).await).await?;
        let slots = self.slots_of(cluster, &node).await?;
        let reach = if kind == Chaos::FullServer { Reach::WritesTo(slots) } else { Reach::Slots(slots) };
        let victim = Victim { cluster, node, reach, admit };
        let struck = self.run.now();
        let has_met = match kind {
            Chaos::CutClients => self.cut_clients(&victim, random).await,
            Chaos::FlushFunctions => self.flush_functions(&victim, random).await,
            Chaos::SlowServer => match self.open.try_lock() {
                Ok(_no_slot_is_opened) if random.random_bool(0.5) => self.hold_up(&victim, random).await,
                _ => self.keep_busy(&victim).await,
            },
            Chaos::SilentServer => self.say_nothing(&victim, random).await,
            _ => self.fill(&victim).await,
        };
        Ok(match has_met {
            Ok(has_met) => Some(has_met && self.has_met(&victim.reach, struck)),
            // Work goes on without it; a kind that never meets anything fails the run in the end.
            Err(e) => {
                self.admit(admit);
                tracing::debug!("{}: {e}", kind.name());
                self.run.event("faults that another one was in the way of");
                None
            }
        })
    }

    /// All connections of clients end, again and again, with whatever is under way on them.
    async fn cut_clients(&self, victim: &Victim<'_>, random: &mut StdRng) -> tideline::Result<bool> {
        self.admit(victim.admit);
        let (mut cut, mut has_met) = (0, false);
        for _ in 0..CUTS {
            let kill = Command::new("CLIENT").arg("KILL").arg("TYPE").arg("normal");
            // Whoever comes meanwhile is not read any more.
            let stall = Command::new("DEBUG").arg("SLEEP").arg(CUT_AFTER.as_secs_f64().to_string());
            {
                let _no_keys_move = self.keys.lock().await;
                let since = self.run.now();
                let killed = async {
                    sleep(CUT_AFTER / 4).await;
                    victim.ask(kill).await?.int()
                };
                // It may be cut as well.
                cut += futures::join!(victim.ask(stall), killed).1?;
                has_met |= self.has_met(&victim.reach, since);
            }
            sleep(Duration::from_millis(random.random_range(CUTS_MS.0..CUTS_MS.1))).await;
        }
        self.run.count_event("connections cut", u64::try_from(cut).unwrap_or(0));
        Ok(cut > 0 && has_met)
    }

    /// A server forgets all functions, sometimes all of them do. Met once somebody has missed and loaded them.
    async fn flush_functions(&self, victim: &Victim<'_>, random: &mut StdRng) -> tideline::Result<bool> {
        let flush = || Command::new("FUNCTION").arg("FLUSH").arg("SYNC");
        victim.ask(flush()).await?;
        self.run.event("functions flushed");
        if random.random_bool(0.5) {
            for node in victim.cluster.primaries().await {
                victim.cluster.ask(&node.addr(), flush()).await?;
            }
            self.run.event("functions flushed everywhere");
        }
        self.admit(victim.admit);
        let is_loaded = async || {
            let list = victim.ask(Command::new("FUNCTION").arg("LIST")).await?;
            tideline::Result::Ok(!list.into_array()?.is_empty())
        };
        let since = Instant::now();
        while !is_loaded().await? && since.elapsed() < PATIENCE {
            if tokio::time::timeout(RETRY, self.gate.over()).await.is_ok() {
                break;
            }
        }
        is_loaded().await
    }

    /// A script that goes on and on: the server refuses whoever comes meanwhile.
    async fn keep_busy(&self, victim: &Victim<'_>) -> tideline::Result<bool> {
        let _no_keys_move = self.keys.lock().await;
        self.run.event("servers kept busy");
        victim.set("busy-reply-threshold", BUSY_FROM_MS[1]).await?;
        let before = victim.refused("BUSY").await?;
        self.admit(victim.admit);
        let is_over = AtomicBool::new(false);
        let busy = async {
            // Whoever is killed is told so, and that is an error.
            let _ = victim.ask(Command::new("EVAL").arg(SCRIPT).arg("0")).await;
            is_over.store(true, Ordering::Relaxed);
        };
        // Again and again: at a server that stood still meanwhile the script may begin after the word that ends it.
        let killed = async {
            let since = Instant::now();
            while !(is_over.load(Ordering::Relaxed) && victim.is_free().await) && since.elapsed() < PATIENCE {
                sleep(BUSY).await;
                let _ = victim.ask(Command::new("SCRIPT").arg("KILL")).await;
            }
        };
        futures::join!(busy, killed);
        let has_met = patiently(async || victim.refused("BUSY").await).await? > before;
        victim.set("busy-reply-threshold", BUSY_FROM_MS[0]).await?;
        Ok(has_met)
    }

    /// A server stands still, its bus too.
    async fn hold_up(&self, victim: &Victim<'_>, random: &mut StdRng) -> tideline::Result<bool> {
        self.run.event("servers held up");
        self.admit(victim.admit);
        let seconds = Duration::from_millis(random.random_range(STILL_MS.0..STILL_MS.1)).as_secs_f64();
        victim.ask(Command::new("DEBUG").arg("SLEEP").arg(seconds.to_string())).await?;
        Ok(true)
    }

    /// A server lets its clients wait, while it talks with the other servers as always: nobody takes over.
    async fn say_nothing(&self, victim: &Victim<'_>, random: &mut StdRng) -> tideline::Result<bool> {
        let _no_keys_move = self.keys.lock().await;
        self.run.event("servers silenced");
        let ms = random.random_range(SILENT_MS.0..SILENT_MS.1);
        victim.ask(Command::new("CLIENT").arg("PAUSE").arg(ms).arg("ALL")).await?;
        self.admit(victim.admit);
        // Answered when it is over.
        victim.ask(Command::new("PING")).await?;
        Ok(true)
    }

    /// A server has less memory than its data takes: it refuses all that may need more, until there is some again.
    async fn fill(&self, victim: &Victim<'_>) -> tideline::Result<bool> {
        let before = victim.refused("OOM").await?;
        self.run.event("servers out of memory");
        let filled = victim.set("maxmemory", 1).await;
        self.admit(victim.admit);
        let since = Instant::now();
        let mut met = 0;
        while filled.is_ok() && met < REFUSED_MIN && since.elapsed() < REFUSING_MAX {
            let is_over = tokio::time::timeout(RETRY, self.gate.over()).await.is_ok();
            met = victim.refused("OOM").await.unwrap_or(before).saturating_sub(before);
            if is_over {
                break;
            }
        }
        patiently(async || match victim.set("maxmemory", 0).await {
            // A server that was killed meanwhile comes back with the memory that it has by default.
            Err(_) if victim.cluster.node(&victim.node).is_none_or(|node| !node.is_running()) => Ok(()),
            set => set,
        })
        .await?;
        filled.map(|()| met > 0)
    }
}
