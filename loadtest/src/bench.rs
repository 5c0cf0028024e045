//! The servers that a run works on, as the systems and the measuring see them.

use std::collections::BTreeMap;
use std::iter::Sum;
use std::str::FromStr;
use std::time::Duration;

use anyhow::Context as _;
use futures::stream::{self, TryStreamExt as _};
use tideline::cluster::{Batch, Command, NodeAddr, Replicas, Request, Router, RouterSettings, Seed};
use tideline::keys::slot_of_key;

use crate::cpu::CpuTime;
use crate::deadline::Deadline;
use crate::interrupt;
use crate::keys;
use crate::leftover::{self, Leftover, new_prefix};
use crate::target::{Servers, Target};

/// Batches of fillings under way at a time.
const FILL_BATCHES: usize = 4;
/// So long replicas may be behind when they are waited for.
const REPLICAS_WAIT_MS: u64 = 8_000;
/// Emptying a node of a million homes is one command. And what fails since a busy machine stood still for a second
/// nobody can measure.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// A cluster is started, or connected with, within this time, ...
const OPENING_MAX: Duration = Duration::from_secs(5 * 60);
/// ... and left within this: on a cluster of others all its keys are looked through.
const LEAVING_MAX: Duration = Duration::from_secs(10 * 60);

/// What servers and client have used until now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Used {
    pub(crate) cpu: CpuTime,
    /// Received and sent by the servers, replication left out.
    pub(crate) wire_bytes: u64,
}

impl Used {
    /// What was used since `before`. Servers that were restarted meanwhile have used nothing.
    pub(crate) fn since(self, before: &Self) -> Self {
        Self {
            cpu: self.cpu.since(&before.cpu),
            wire_bytes: self.wire_bytes.saturating_sub(before.wire_bytes),
        }
    }
}

/// A cluster with a router of our own settings.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) target: Target,
    pub(crate) router: Router,
    /// What all keys begin with.
    pub(crate) prefix: String,
    /// Of each primary.
    replicas: u16,
    /// A slot of each primary.
    slots: BTreeMap<NodeAddr, u16>,
}

/// Settings of a router that waits for answers as long as some of a load test's commands take.
fn patient(replicas: Replicas) -> RouterSettings {
    RouterSettings {
        response_timeout: RESPONSE_TIMEOUT,
        deadline: 4 * RESPONSE_TIMEOUT,
        replicas,
        ..RouterSettings::default()
    }
}

impl Bench {
    /// Connects; starts a cluster of these servers if there are no seeds.
    pub(crate) async fn open(seeds: &[Seed], servers: Servers) -> anyhow::Result<Self> {
        let target = Target::open(seeds.to_vec(), servers).await?;
        // Nobody knows how many replicas a cluster of others has.
        let replicas = if target.is_own() { servers.replicas } else { 0 };
        match Self::connect(&target, replicas).await {
            Ok((router, prefix, slots)) => Ok(Self { target, router, prefix, replicas, slots }),
            Err(error) => {
                // Its end is not what the caller wants to hear of now.
                let _ = target.close().await;
                Err(error)
            }
        }
    }

    async fn connect(
        target: &Target,
        replicas: u16,
    ) -> anyhow::Result<(Router, String, BTreeMap<NodeAddr, u16>)> {
        let settings = RouterSettings {
            in_flight_per_node: 1_000_000,
            ..patient(match (target.is_own(), replicas) {
                (true, 0) => Replicas::Absent,
                (true, _) => Replicas::Required,
                (false, _) => Replicas::Preferred,
            })
        };
        // Ours is empty: keys are as long as the books'.
        let prefix = if target.is_own() { String::new() } else { new_prefix(leftover::PREFIX) };
        let router = Router::connect(&target.seeds(), &prefix, settings, None).await?;
        for finding in router.findings().iter().filter(|_| !target.is_own()) {
            eprintln!("Note: {finding}");
        }
        if !target.is_own() {
            interrupt::remove_too(Leftover::new(&target.seeds(), &prefix));
        }
        let slots = keys::slots_of(&router);
        Ok((router, prefix, slots))
    }

    /// Removes the cluster if it is ours.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        drop(self.router);
        self.target.close().await
    }

    /// The same; and on a cluster of others our keys go, whatever happened.
    pub(crate) async fn leave(self) -> anyhow::Result<()> {
        if !self.target.is_own() {
            self.empty().await?;
            leftover::forget();
        }
        self.close().await
    }

    /// How an engine that is measured reaches it: as patient as what is measured beside it.
    pub(crate) fn router_settings(&self) -> RouterSettings {
        patient(self.replicas())
    }

    /// Whether its primaries have replicas, as far as is known.
    pub(crate) fn replicas(&self) -> Replicas {
        self.router.settings().replicas
    }

    /// A slot of each primary.
    pub(crate) fn slots(&self) -> &BTreeMap<NodeAddr, u16> {
        &self.slots
    }

    /// Sends many requests, in batches of that length.
    pub(crate) async fn run_all(
        &self,
        requests: impl Iterator<Item = tideline::Result<Request>> + Send,
        batch: usize,
    ) -> anyhow::Result<()> {
        let batches = stream::try_unfold(requests, move |mut requests| async move {
            let batch: Batch = requests.by_ref().take(batch).collect::<tideline::Result<_>>()?;
            anyhow::Ok((!batch.is_empty()).then_some((batch, requests)))
        });
        let run = async |batch| {
            run(&self.router, batch).await?;
            // Replicas that fall far behind are cut off by their primaries.
            self.wait_for_replicas().await
        };
        batches.try_for_each_concurrent(FILL_BATCHES, run).await
    }

    /// Waits until replicas have everything; returns at once where there are none.
    pub(crate) async fn wait_for_replicas(&self) -> anyhow::Result<()> {
        if self.replicas == 0 {
            return Ok(());
        }
        let wait =
            |slot: &u16| Request::write(*slot, Command::new("WAIT").arg(self.replicas).arg(REPLICAS_WAIT_MS));
        for answer in self.router.run(self.slots.values().map(wait).collect()).await {
            let reached = answer?.ok()?.count()?;
            anyhow::ensure!(reached >= u64::from(self.replicas), "a replica did not keep up");
        }
        Ok(())
    }

    /// Bytes that all primaries have allocated.
    pub(crate) async fn used_memory(&self) -> anyhow::Result<u64> {
        self.sum_of("memory", &["used_memory"]).await
    }

    /// Bytes of the keys with each of these beginnings, our own prefix included. Every key is asked for: what servers
    /// have allocated besides (buffers of clients, statistics of commands, functions) comes and goes with the load, and
    /// would count for whichever system is at work.
    pub(crate) async fn memory_of(&self, beginnings: &[String]) -> anyhow::Result<Vec<u64>> {
        let mut bytes = vec![0; beginnings.len()];
        let mut add = async |keys: Vec<Vec<u8>>| {
            let owner = |key: &Vec<u8>| beginnings.iter().position(|b| key.starts_with(b.as_bytes()));
            let keys: Vec<(usize, Vec<u8>)> =
                keys.into_iter().filter_map(|key| Some((owner(&key)?, key))).collect();
            let ask = |(_, key): &(usize, Vec<u8>)| {
                let usage = Command::new("MEMORY").arg("USAGE").arg(key).arg("SAMPLES").arg("0");
                Request::read(slot_of_key(key), usage)
            };
            let answers = self.router.run(keys.iter().map(ask).collect()).await;
            for ((owner, _), answer) in keys.iter().zip(answers) {
                let usage = answer?.ok()?;
                bytes[*owner] += if usage.is_nil() { 0 } else { usage.count()? };
            }
            Ok(())
        };
        for slot in self.slots.values() {
            keys::each(&self.router, *slot, &self.prefix, &mut add).await?;
        }
        Ok(bytes)
    }

    /// CPU time of the servers and of this process. Servers of others tell it themselves: their primaries, and whatever
    /// else these do counts too.
    pub(crate) async fn cpu_time(&self) -> anyhow::Result<CpuTime> {
        let time = self.target.cpu_time();
        if self.target.is_own() {
            return Ok(time);
        }
        let seconds = self.sum_of("cpu", &["used_cpu_user", "used_cpu_sys"]).await?;
        Ok(CpuTime { server: Duration::try_from_secs_f64(seconds).ok(), ..time })
    }

    /// CPU time, and what has gone over the wire. On a cluster of others, whatever else its primaries do counts too.
    pub(crate) async fn used(&self) -> anyhow::Result<Used> {
        let wire_bytes = self.sum_of("stats", &["total_net_input_bytes", "total_net_output_bytes"]).await?;
        Ok(Used { cpu: self.cpu_time().await?, wire_bytes })
    }

    /// Figures of a section of INFO, of all primaries together.
    async fn sum_of<T>(&self, section: &str, fields: &[&str]) -> anyhow::Result<T>
    where
        T: FromStr + Sum,
        T::Err: std::error::Error + Send + Sync + 'static,
    {
        let mut all = Vec::new();
        for (node, reply) in self.router.ask_primaries(&Command::new("INFO").arg(section)).await {
            let reply = reply?;
            for field in fields {
                let told = reply.text()?.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
                let told = told.with_context(|| format!("{node} does not tell its {field}"))?;
                all.push(told.trim().parse::<T>()?);
            }
        }
        Ok(all.into_iter().sum())
    }

    /// Removes all that we wrote: everything on a cluster of our own, else what begins with our prefix.
    pub(crate) async fn empty(&self) -> anyhow::Result<()> {
        if self.target.is_own() {
            for (_, reply) in self.router.ask_primaries(&Command::new("FLUSHALL").arg("SYNC")).await {
                if let Some((code, rest)) = reply?.error() {
                    anyhow::bail!("FLUSHALL: {code} {rest}");
                }
            }
            return self.wait_for_replicas().await;
        }
        keys::remove(&self.router, &self.prefix).await.map(drop)
    }
}

/// Opens a cluster for some work, and leaves it however that ends. Both end in bounded time; the work has to see to
/// that itself.
pub(crate) async fn on_cluster<T>(
    seeds: &[Seed],
    servers: impl Into<Servers>,
    work: impl AsyncFnOnce(&Bench) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let bench = open(seeds, servers.into()).await?;
    let found = work(&bench).await;
    let left = leave(bench).await;
    let found = found?;
    left?;
    Ok(found)
}

/// The same for several clusters of our own at once, of so many primaries each, without replicas.
pub(crate) async fn on_clusters<T>(
    sizes: &[u16],
    work: impl AsyncFnOnce(&[Bench]) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let mut benches = Vec::with_capacity(sizes.len());
    let all = async {
        for primaries in sizes {
            benches.push(open(&[], Servers::from((*primaries, 0))).await?);
        }
        anyhow::Ok(())
    };
    let found = match all.await {
        Ok(()) => work(&benches).await,
        Err(error) => Err(error),
    };
    let mut left = Ok(());
    for bench in benches {
        left = left.and(leave(bench).await);
    }
    let found = found?;
    left?;
    Ok(found)
}

async fn open(seeds: &[Seed], servers: Servers) -> anyhow::Result<Bench> {
    let opened = Box::pin(Bench::open(seeds, servers));
    Deadline::after(OPENING_MAX).phase("starting the cluster, or connecting with it", opened).await
}

async fn leave(bench: Bench) -> anyhow::Result<()> {
    let left = Box::pin(bench.leave());
    Deadline::after(LEAVING_MAX).phase("removing the cluster, or our keys", left).await
}

/// Runs a batch in which nothing may fail.
pub(crate) async fn run(router: &Router, batch: Batch) -> anyhow::Result<()> {
    for answer in router.run(batch).await {
        answer?.ok()?;
    }
    Ok(())
}
