//! All systems on their servers, each with its network: loaded, made ready, and let to take turns.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures::future::join_all;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use tideline::DeliveryWay;

use super::memory::check_memory;
use super::rounds::{Bounds, Contender, Warm, take_turns, warm_up};
use super::turns::Measured;
use crate::bench::Bench;
use crate::deadline::Deadline;
use crate::graph::Graph;
use crate::progress;
use crate::scenario::{Loop, Scenario};
use crate::session::Network;
use crate::systems::{BooksPull, Contestant, Expected, Tideline, Timelines, ways};
use crate::workload::Workload;

/// Homes made ready at once.
const WARM_AT_ONCE: usize = 128;
/// Operations a second that a policy reckons with before any was measured.
const EXPECTED_A_SECOND: f64 = 15_000.0;
/// Changes of mode under way at once.
const CHANGES_AT_ONCE: usize = 16;

/// A system with its network.
struct Entrant {
    contestant: Contestant,
    network: Arc<Network>,
    ways: Vec<DeliveryWay>,
    /// What its keys begin with.
    prefix: String,
}

/// All systems, on the same servers.
pub(crate) struct Field {
    entrants: Vec<Entrant>,
    graph: Arc<Graph>,
    /// Whose homes are ready.
    warmed: usize,
    /// How long it took to ask for all keys, the last time.
    weighing: Duration,
}

/// All systems, ready for their rounds.
pub(crate) struct WarmedUp {
    contenders: Vec<Contender>,
    /// How many are wanted, and what warming up has come to.
    rounds: (usize, Warm),
    seed: u64,
}

impl Field {
    /// Loads the network once for each system; nobody has a home yet.
    pub(crate) async fn load(
        bench: &Bench,
        scenario: &Scenario,
        contestants: &[Contestant],
        graph: Arc<Graph>,
        workload: &Workload,
    ) -> anyhow::Result<Self> {
        check_memory(scenario, contestants, (graph.accounts(), graph.follows()), bench.target.is_own())?;
        let expected = expected(scenario, workload);
        let mut entrants = Vec::with_capacity(contestants.len());
        for contestant in contestants {
            let began = Instant::now();
            let prefix = format!("{}{}:", bench.prefix, contestant.name());
            let ways = ways(*contestant, scenario, &graph, &expected)?;
            let load = async {
                anyhow::Ok::<Box<dyn Timelines>>(match contestant {
                    Contestant::BooksPull => {
                        Box::new(BooksPull::load(bench, &prefix, scenario, &graph).await?)
                    }
                    _ => Box::new(Tideline::load(bench, &prefix, scenario, &graph, &ways).await?),
                })
            };
            let timelines = load.await.with_context(|| format!("loading {}", contestant.name()))?;
            let network = Network::new(timelines, graph.accounts(), scenario.activity.text_chars);
            eprintln!("{}: loaded in {:.1} s", contestant.name(), began.elapsed().as_secs_f64());
            entrants.push(Entrant { contestant: *contestant, network, ways, prefix });
        }
        Ok(Self { entrants, graph, warmed: 0, weighing: Duration::ZERO })
    }

    /// Makes the homes of these accounts ready, of which the first ones may be so already, and has everybody delivered
    /// as the policies decide now.
    pub(crate) async fn prepare(&mut self, scenario: &Scenario, workload: &Workload) -> anyhow::Result<()> {
        let active = workload.active();
        let expected = expected(scenario, workload);
        let new = active.get(self.warmed..).unwrap_or_default();
        for entrant in &mut self.entrants {
            let ways = ways(entrant.contestant, scenario, &self.graph, &expected)?;
            entrant.change_ways(ways).await?;
            let timelines = &entrant.network.timelines;
            let bar = progress::bar(new.len() as u64, format!("{}: homes", entrant.contestant.name()));
            stream::iter(new)
                .map(|reader| timelines.warm(*reader))
                .buffer_unordered(WARM_AT_ONCE)
                .try_for_each(|()| {
                    bar.inc(1);
                    std::future::ready(Ok(()))
                })
                .await?;
            timelines.settled().await;
            bar.finish_and_clear();
        }
        self.warmed = self.warmed.max(active.len());
        Ok(())
    }

    /// Has all of them warm up for these operations.
    pub(crate) async fn warmed_up(&self, scenario: &Scenario, seed: u64) -> anyhow::Result<WarmedUp> {
        let mut contenders = self.contenders(scenario, seed);
        let warm = warm_up(&mut contenders).await?;
        Ok(WarmedUp { contenders, rounds: (scenario.drive.rounds, warm), seed })
    }

    /// Lets all take turns: forwards, backwards, and again. There is one round at least; one that would not end in
    /// time, with the keys weighed after it, is left out, and all after it. One that is still under way at the last
    /// moment is dropped; where it is the first one, nothing was measured.
    pub(crate) async fn measure(
        &self,
        bench: &Bench,
        warmed_up: WarmedUp,
        until: Option<Deadline>,
        dropped_at: Option<Deadline>,
    ) -> anyhow::Result<Option<Vec<Measured>>> {
        let WarmedUp { mut contenders, rounds, seed } = warmed_up;
        let bounds = Bounds { begun_until: until, after: self.weighing, dropped_at };
        let benches = vec![bench; contenders.len()];
        let mut measured = take_turns(&mut contenders, &benches, rounds, seed, bounds).await?;
        for (measured, entrant) in measured.iter_mut().zip(&self.entrants) {
            measured.pulled = entrant.ways.iter().filter(|way| **way == DeliveryWay::Pull).count() as u64;
        }
        Ok(Some(measured).filter(|all| all.iter().all(|one| !one.samples.is_empty())))
    }

    /// All of them, each about to do the same.
    pub(crate) fn contenders(&self, scenario: &Scenario, seed: u64) -> Vec<Contender> {
        let contender = |entrant: &Entrant| Contender {
            contestant: entrant.contestant,
            network: entrant.network.clone(),
            scenario: scenario.clone(),
            workload: Workload::new(self.graph.clone(), &scenario.activity, &scenario.mix, seed),
        };
        self.entrants.iter().map(contender).collect()
    }

    /// Adds what the keys of each take. What was measured counts without that too: where servers don't tell what a key
    /// takes, or the time is up before.
    pub(crate) async fn weigh(&mut self, bench: &Bench, measured: &mut [Measured], until: Option<Deadline>) {
        let began = Instant::now();
        let asked = self.memory(bench);
        let told = match until {
            Some(until) => until.within(asked).await,
            None => Some(asked.await),
        };
        self.weighing = began.elapsed();
        match told {
            Some(Ok(bytes)) => {
                measured.iter_mut().zip(bytes).for_each(|(of, bytes)| of.memory = Some(bytes));
            }
            Some(Err(e)) => eprintln!("Memory stays unknown: {e:#}"),
            None => eprintln!("Memory stays unknown: the time was up before all keys were looked at."),
        }
    }

    /// Ends all of them, within bounds: what was cut off has left work behind, which would write keys after ours were
    /// removed.
    pub(crate) async fn stopped(&self) {
        join_all(self.entrants.iter().map(|entrant| entrant.network.timelines.stopped())).await;
    }

    /// Bytes of each system's network at the servers, as it is now.
    pub(crate) async fn memory(&self, bench: &Bench) -> anyhow::Result<Vec<u64>> {
        let prefixes: Vec<String> = self.entrants.iter().map(|entrant| entrant.prefix.clone()).collect();
        bench.memory_of(&prefixes).await
    }
}

impl Entrant {
    async fn change_ways(&mut self, ways: Vec<DeliveryWay>) -> anyhow::Result<()> {
        let changed = (0..).zip(self.ways.iter().zip(&ways)).filter(|(_, (from, to))| from != to);
        let changed: Vec<(u32, DeliveryWay)> = changed.map(|(account, (_, to))| (account, *to)).collect();
        let timelines = &self.network.timelines;
        stream::iter(&changed)
            .map(|(account, way)| timelines.set_way(*account, *way))
            .buffer_unordered(CHANGES_AT_ONCE)
            .try_collect::<Vec<()>>()
            .await?;
        self.ways = ways;
        Ok(())
    }
}

/// What a policy reckons with.
fn expected(scenario: &Scenario, workload: &Workload) -> Expected {
    let rate = match scenario.drive.kind {
        Loop::Open => scenario.drive.rate.into(),
        Loop::Closed => EXPECTED_A_SECOND,
    };
    Expected::of(scenario, rate, workload.posts_share(), workload.active())
}
