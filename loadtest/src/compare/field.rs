//! All systems on their servers, each with its network: loaded, made ready, and let to take turns.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures::future::join_all;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use tideline::Way;

use super::memory::check_memory;
use super::turns::{Measured, Sample};
use crate::arrivals::Arrivals;
use crate::bench::Bench;
use crate::deadline::Deadline;
use crate::drive;
use crate::gauges::Turn;
use crate::graph::Graph;
use crate::lookups::Lookups;
use crate::progress;
use crate::scenario::{Loop, Scenario};
use crate::session::{Counted, Network, OPERATION_MAX, Session};
use crate::systems::{BooksPull, Contestant, Expected, Tideline, ways};
use crate::tally::Summary;
use crate::workload::{Op, Workload};

/// Homes made ready at once.
const WARM_AT_ONCE: usize = 128;
/// Operations a second that a policy reckons with before any was measured.
const EXPECTED_A_SECOND: f64 = 15_000.0;
/// Operations that are planned for a second of warming up: more than can be done.
const WARM_UP_A_SECOND: usize = 150_000;
/// A slow system's round takes at most so many times as long as was asked for.
const SLOW_TIMES: f64 = 4.0;
/// A round is cut off after so many times as long as was asked for.
const CUT_TIMES: u32 = 12;
/// Changes of mode under way at once.
const CHANGES_AT_ONCE: usize = 16;
/// Operations of a round, at least and at most.
const ROUND_LEAST: usize = 100;
const ROUND_MOST: usize = 20_000_000;

/// A system with its network.
pub(crate) struct Entrant {
    pub(crate) contestant: Contestant,
    network: Arc<Network>,
    ways: Vec<Way>,
    /// What its keys begin with.
    prefix: String,
}

/// All systems, on the same servers.
pub(crate) struct Field {
    pub(crate) entrants: Vec<Entrant>,
    graph: Arc<Graph>,
    /// Whose homes are ready.
    warmed: usize,
    /// How long it took to ask for all keys, the last time.
    weighing: Duration,
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
            let loaded = load(bench, &prefix, *contestant, scenario, &graph, &ways);
            let timelines = loaded.await.with_context(|| format!("loading {}", contestant.name()))?;
            let network = Network::new(timelines, graph.accounts(), scenario.activity.text_chars);
            eprintln!("{}: loaded in {:.1} s", contestant.name(), began.elapsed().as_secs_f64());
            entrants.push(Entrant { contestant: *contestant, network, ways, prefix });
        }
        Ok(Self { entrants, graph, warmed: 0, weighing: Duration::ZERO })
    }

    /// Makes the homes of these accounts ready, of which the first ones may be so already, and has everybody delivered as the
    /// policies decide now.
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

    /// Warms up, then lets all take turns: forwards, backwards, and again. There is one round at least; one that would not end
    /// in time, with the keys weighed after it, is left out, and all after it.
    pub(crate) async fn measure(
        &mut self,
        bench: &Bench,
        scenario: &Scenario,
        workload: &mut Workload,
        seed: u64,
        until: Option<Deadline>,
    ) -> anyhow::Result<Vec<Measured>> {
        let rounds = scenario.drive.rounds;
        let length = self.warm_up(scenario, workload).await?;
        let mut measured: Vec<Measured> =
            self.entrants.iter().map(|entrant| Measured::new(entrant.contestant)).collect();
        let sessions: Vec<Arc<Session>> =
            self.entrants.iter().map(|e| Session::new(e.network.clone(), e.contestant.name())).collect();
        let bar = progress::bar((rounds * self.entrants.len()) as u64, "rounds".to_owned());
        let mut longest = Duration::ZERO;
        for round in 0..rounds {
            if round > 0 && until.is_some_and(|until| !until.allows(longest + self.weighing)) {
                break;
            }
            let round_began = Instant::now();
            let operations = workload.take(length);
            let mut order: Vec<usize> = (0..self.entrants.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for number in order {
                bar.set_message(self.entrants[number].contestant.name());
                let _turn = Turn::begin(self.entrants[number].contestant.name());
                let lookups = Lookups::so_far();
                let (before, began) = (bench.used().await?, Instant::now());
                let seed = seed ^ round as u64;
                let (done, late) = run(&sessions[number], scenario, operations.clone(), seed).await?;
                sessions[number].settle().await;
                let (wall, used) = (began.elapsed(), bench.used().await?.since(&before));
                measured[number].samples.push(Sample::new(done as u64, wall, &used));
                measured[number].late += late;
                measured[number].lookups += Lookups::so_far() - lookups;
                bar.inc(1);
            }
            longest = longest.max(round_began.elapsed());
        }
        bar.finish_and_clear();
        for (number, (measured, entrant)) in measured.iter_mut().zip(&self.entrants).enumerate() {
            measured.counted = Some(sessions[number].counted());
            measured.readers = workload.active().len() as u64;
            measured.pulled = entrant.ways.iter().filter(|way| **way == Way::Pull).count() as u64;
        }
        Ok(measured)
    }

    /// Adds what the keys of each take. What was measured counts without that too: where servers don't tell what a key takes,
    /// or the time is up before.
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

    /// Ends all of them, within bounds: what was cut off has left work behind, which would write keys after ours were removed.
    pub(crate) async fn stopped(&self) {
        join_all(self.entrants.iter().map(|entrant| entrant.network.timelines.stopped())).await;
    }

    /// Bytes of each system's network at the servers, as it is now.
    pub(crate) async fn memory(&self, bench: &Bench) -> anyhow::Result<Vec<u64>> {
        let prefixes: Vec<String> = self.entrants.iter().map(|entrant| entrant.prefix.clone()).collect();
        bench.memory_of(&prefixes).await
    }

    /// Lets each do what it can for a while. Tells how many operations a round has: in the time that was asked for in the
    /// middle, and not much more than that for the slowest.
    async fn warm_up(&self, scenario: &Scenario, workload: &mut Workload) -> anyhow::Result<usize> {
        let drive = &scenario.drive;
        let seconds = drive.round_seconds;
        let warm_up = Duration::from_secs(drive.warm_up_seconds.into());
        let operations = workload.take(warm_up_operations(scenario));
        let mut rates = Vec::with_capacity(self.entrants.len());
        let bar = progress::bar(self.entrants.len() as u64, "warming up".to_owned());
        for entrant in &self.entrants {
            let session = Session::new(entrant.network.clone(), entrant.contestant.name());
            let _turn = Turn::begin(entrant.contestant.name());
            let began = Instant::now();
            let done = drive::closed(&session, operations.clone(), drive.at_once, warm_up).await?;
            session.settle().await;
            rates.push(crate::report::count(done as u64) / began.elapsed().as_secs_f64());
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(match drive.kind {
            Loop::Open => (drive.rate as usize).saturating_mul(seconds as usize).max(ROUND_LEAST),
            Loop::Closed => operations_of_round(&rates, seconds),
        })
    }
}

impl Entrant {
    async fn change_ways(&mut self, ways: Vec<Way>) -> anyhow::Result<()> {
        let changed = (0..).zip(self.ways.iter().zip(&ways)).filter(|(_, (from, to))| from != to);
        let changed: Vec<(u32, Way)> = changed.map(|(account, (_, to))| (account, *to)).collect();
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

async fn load(
    bench: &Bench,
    prefix: &str,
    contestant: Contestant,
    scenario: &Scenario,
    graph: &Graph,
    ways: &[Way],
) -> anyhow::Result<Box<dyn crate::systems::Timelines>> {
    Ok(match contestant {
        Contestant::BooksPull => Box::new(BooksPull::load(bench, prefix, scenario, graph).await?),
        _ => Box::new(Tideline::load(bench, prefix, scenario, graph, ways).await?),
    })
}

/// What a policy reckons with.
pub(crate) fn expected(scenario: &Scenario, workload: &Workload) -> Expected {
    let rate = match scenario.drive.kind {
        Loop::Open => scenario.drive.rate.into(),
        Loop::Closed => EXPECTED_A_SECOND,
    };
    Expected::of(scenario, rate, workload.posts_share(), workload.active())
}

/// Operations that are planned for warming up.
pub(crate) fn warm_up_operations(scenario: &Scenario) -> usize {
    WARM_UP_A_SECOND * scenario.drive.warm_up_seconds as usize
}

/// Does these operations; tells how many were done, and how many of them left late.
async fn run(
    session: &Arc<Session>,
    scenario: &Scenario,
    operations: Vec<Op>,
    seed: u64,
) -> anyhow::Result<(usize, u64)> {
    let drive = &scenario.drive;
    match drive.kind {
        Loop::Closed => {
            let longest = Duration::from_secs((drive.round_seconds * CUT_TIMES).into());
            Ok((drive::closed(session, operations, drive.at_once, longest).await?, 0))
        }
        Loop::Open => {
            let before = done(&session.counted());
            let length = Duration::from_secs(drive.round_seconds.into());
            let due = Arrivals::new(drive.rate, u32::MAX, seed).zip(operations);
            let at_once = u32::try_from(drive.at_once).unwrap_or(u32::MAX);
            let punctuality = drive::open(session, due, length, at_once, OPERATION_MAX).await?;
            let done = usize::try_from(done(&session.counted()) - before)?;
            Ok((done, punctuality.late))
        }
    }
}

/// Operations that were sent.
fn done(counted: &Counted) -> u64 {
    let sent = |(_, summary): &(&str, Summary)| summary.counts.succeeded + summary.counts.failed();
    counted.operations.iter().map(sent).sum()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded, and not negative")]
fn operations_of_round(rates: &[f64], seconds: u32) -> usize {
    let seconds = f64::from(seconds);
    let middle = crate::stats::median(rates).unwrap_or(0.0) * seconds;
    let slowest = rates.iter().copied().min_by(f64::total_cmp).unwrap_or(0.0) * seconds * SLOW_TIMES;
    (middle.min(slowest) as usize).clamp(ROUND_LEAST, ROUND_MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_goes_by_the_middle_one_unless_the_slowest_would_take_for_ever() {
        assert_eq!(operations_of_round(&[1_000.0, 2_000.0, 30_000.0], 3), 6_000);
        assert_eq!(operations_of_round(&[1_000.0, 20_000.0, 30_000.0], 3), 12_000);
        assert_eq!(operations_of_round(&[0.0], 3), ROUND_LEAST);
    }
}
