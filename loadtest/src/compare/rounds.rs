//! Rounds: all that are compared warm up with the same operations, and then take turns with the same ones, forwards,
//! backwards, and again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::turns::{Measured, Sample};
use crate::arrivals::Arrivals;
use crate::bench::Bench;
use crate::deadline::Deadline;
use crate::drive::{self, Punctuality};
use crate::gauges::Turn;
use crate::lookups::Lookups;
use crate::progress;
use crate::report::count;
use crate::scenario::{Loop, Scenario};
use crate::session::{Counted, Network, OPERATION_MAX, Session};
use crate::stats::{median, whole};
use crate::systems::Contestant;
use crate::workload::{Op, Workload};

/// Operations that warming up begins with: what these take tells how many more there are time for.
const FIRST: usize = 2_000;
/// So long each part of a system's warming up may take: it is sized for some seconds.
const WARM_UP_MAX: Duration = Duration::from_secs(120);
/// A slow system's operations take at most so many times as long as was asked for.
const SLOW_TIMES: f64 = 4.0;
/// A round is cut off after so many times as long as was asked for.
const CUT_TIMES: u32 = 12;
/// Operations of a round, at least and at most.
const ROUND_LEAST: usize = 100;
const ROUND_MOST: usize = 20_000_000;

/// One that takes turns.
pub(crate) struct Contender {
    pub(crate) contestant: Contestant,
    pub(crate) network: Arc<Network>,
    pub(crate) scenario: Scenario,
    /// What it does next: the same as all others, if they are of the same network.
    pub(crate) workload: Workload,
}

/// What warming up has come to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Warm {
    /// Operations that each has done, besides the looks at the end.
    pub(crate) operations: usize,
    /// Operations of a round.
    pub(crate) length: usize,
}

impl Contender {
    /// Does all of these operations, within bounds, and what comes of them; tells how many in a second.
    async fn warm_up(&self, operations: Vec<Op>) -> anyhow::Result<f64> {
        let name = self.contestant.name();
        let session = Session::new(self.network.clone(), name);
        let _turn = Turn::begin(name);
        let (all, began) = (operations.len(), Instant::now());
        let done = drive::closed(&session, operations, self.scenario.drive.at_once, WARM_UP_MAX).await?;
        session.settle().await;
        if done < all {
            eprintln!("{name}: only {done} of {all} operations were done in time to warm up.");
        }
        Ok(count(done as u64) / began.elapsed().as_secs_f64())
    }
}

/// Has all of them do the same operations, and all of these: who acts when the rounds begin, and who has a home by
/// then, must not depend on how fast a system is. In the end everybody who acts then looks at their home.
pub(crate) async fn warm_up(contenders: &mut [Contender]) -> anyhow::Result<Warm> {
    let Some(drive) = contenders.first().map(|first| first.scenario.drive.clone()) else {
        anyhow::bail!("there is nothing to measure");
    };
    let bar = progress::bar(3 * contenders.len() as u64, "warming up".to_owned());
    let mut all = async |next: &dyn Fn(&mut Workload) -> Vec<Op>| {
        let mut rates = Vec::with_capacity(contenders.len());
        for contender in contenders.iter_mut() {
            let operations = next(&mut contender.workload);
            rates.push(contender.warm_up(operations).await?);
            bar.inc(1);
        }
        anyhow::Ok(rates)
    };
    let rates = all(&|workload| workload.take(FIRST)).await?;
    let more = operations_within(&rates, drive.warm_up_seconds);
    let rates = all(&|workload| workload.take(more)).await?;
    all(&|workload| workload.looks()).await?;
    bar.finish_and_clear();
    let length = match drive.kind {
        Loop::Open => (drive.rate as usize).saturating_mul(drive.round_seconds as usize).max(ROUND_LEAST),
        Loop::Closed => operations_within(&rates, drive.round_seconds),
    };
    Ok(Warm { operations: FIRST + more, length })
}

/// When rounds have to be over; by default never.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Bounds {
    /// No round is begun that would end later, if it takes as long as the longest so far: ...
    pub(crate) begun_until: Option<Deadline>,
    /// ... with what comes after it, which takes so long. The first one is begun in any case.
    pub(crate) after: Duration,
    /// A round that has not ended by then is dropped where it stands. Those before it count.
    pub(crate) dropped_at: Option<Deadline>,
}

impl Bounds {
    /// What comes of so many rounds, as far as there is time.
    async fn rounds<T>(
        &self,
        many: usize,
        mut round: impl AsyncFnMut(usize) -> anyhow::Result<T>,
    ) -> anyhow::Result<Vec<T>> {
        let (mut ended, mut longest) = (Vec::with_capacity(many), Duration::ZERO);
        for number in 0..many {
            let is_too_late =
                self.begun_until.is_some_and(|until| !until.allows(longest + self.after)) && number > 0;
            if is_too_late {
                break;
            }
            let began = Instant::now();
            let round = round(number);
            let done = match self.dropped_at {
                Some(at) => at.within(round).await,
                None => Some(round.await),
            };
            let Some(done) = done else { break };
            ended.push(done?);
            longest = longest.max(began.elapsed());
        }
        Ok(ended)
    }
}

/// What one turn has shown.
struct Turned {
    sample: Sample,
    punctuality: Punctuality,
    lookups: Lookups,
    /// Of all its turns until now.
    counted: Counted,
}

/// Lets all take turns on their servers, which are given in the same order, in so many rounds, as far as there is time:
/// a round counts for all of them, or for none.
pub(crate) async fn take_turns(
    contenders: &mut [Contender],
    benches: &[&Bench],
    (rounds, warm): (usize, Warm),
    seed: u64,
    bounds: Bounds,
) -> anyhow::Result<Vec<Measured>> {
    let mut measured: Vec<Measured> = contenders.iter().map(|one| Measured::new(one.contestant)).collect();
    let sessions: Vec<Arc<Session>> =
        contenders.iter().map(|one| Session::new(one.network.clone(), one.contestant.name())).collect();
    let bar = progress::bar((rounds * contenders.len()) as u64, "rounds".to_owned());
    let round = async |round: usize| {
        let mut order: Vec<usize> = (0..contenders.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        let mut turns = Vec::with_capacity(order.len());
        for number in order {
            let (contender, session) = (&mut contenders[number], &sessions[number]);
            bar.set_message(contender.contestant.name());
            let seed = seed ^ round as u64;
            turns.push((number, turn(contender, session, benches[number], warm.length, seed).await?));
            bar.inc(1);
        }
        anyhow::Ok(turns)
    };
    for (number, turn) in bounds.rounds(rounds, round).await?.into_iter().flatten() {
        measured[number].add(turn.sample, turn.counted);
        measured[number].late += turn.punctuality.late;
        measured[number].overdue += turn.punctuality.overdue;
        measured[number].lookups += turn.lookups;
    }
    bar.finish_and_clear();
    for (measured, contender) in measured.iter_mut().zip(contenders) {
        measured.readers = contender.workload.active().len() as u64;
        measured.warm_up_operations = warm.operations as u64;
    }
    Ok(measured)
}

/// One turn: so many operations, until all that they began has come to its end.
async fn turn(
    contender: &mut Contender,
    session: &Arc<Session>,
    bench: &Bench,
    length: usize,
    seed: u64,
) -> anyhow::Result<Turned> {
    let _turn = Turn::begin(contender.contestant.name());
    let operations = contender.workload.take(length);
    let lookups = Lookups::so_far();
    let (before, began) = (bench.used().await?, Instant::now());
    let (done, punctuality) = run(session, &contender.scenario, operations, seed).await?;
    session.settle().await;
    let (wall, used) = (began.elapsed(), bench.used().await?.since(&before));
    let sample = Sample::new(done as u64, wall, &used);
    Ok(Turned { sample, punctuality, lookups: Lookups::so_far() - lookups, counted: session.counted() })
}

/// Does these operations; tells how many were done, and how well they left when they were due.
async fn run(
    session: &Arc<Session>,
    scenario: &Scenario,
    operations: Vec<Op>,
    seed: u64,
) -> anyhow::Result<(usize, Punctuality)> {
    let drive = &scenario.drive;
    match drive.kind {
        Loop::Closed => {
            let longest = Duration::from_secs((drive.round_seconds * CUT_TIMES).into());
            let done = drive::closed(session, operations, drive.at_once, longest).await?;
            Ok((done, Punctuality::default()))
        }
        Loop::Open => {
            let before = done(&session.counted());
            let length = Duration::from_secs(drive.round_seconds.into());
            let due = Arrivals::new(drive.rate, u32::MAX, seed).zip(operations);
            let at_once = u32::try_from(drive.at_once).unwrap_or(u32::MAX);
            let punctuality = drive::open(session, due, length, at_once, OPERATION_MAX).await?;
            let done = usize::try_from(done(&session.counted()) - before)?;
            Ok((done, punctuality))
        }
    }
}

/// Operations that were sent.
fn done(counted: &Counted) -> u64 {
    let sent =
        |(_, summary): &(&str, crate::tally::Summary)| summary.counts.succeeded + summary.counts.failed();
    counted.operations.iter().map(sent).sum()
}

/// So many that the system in the middle takes so long, and the slowest not much longer.
fn operations_within(rates: &[f64], seconds: u32) -> usize {
    let seconds = f64::from(seconds);
    let middle = median(rates).unwrap_or(0.0) * seconds;
    let slowest = rates.iter().copied().min_by(f64::total_cmp).unwrap_or(0.0) * seconds * SLOW_TIMES;
    usize::try_from(whole(middle.min(slowest))).unwrap_or(ROUND_MOST).clamp(ROUND_LEAST, ROUND_MOST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::systems::{Shown, Timelines};
    use futures::future::{BoxFuture, FutureExt as _};
    use std::sync::Mutex;
    use tideline::Delivery;

    #[test]
    fn a_round_goes_by_the_middle_one_unless_the_slowest_would_take_for_ever() {
        assert_eq!(operations_within(&[1_000.0, 2_000.0, 30_000.0], 3), 6_000);
        assert_eq!(operations_within(&[1_000.0, 20_000.0, 30_000.0], 3), 12_000);
        assert_eq!(operations_within(&[0.0], 3), ROUND_LEAST);
    }

    /// The last moment dropped the rounds before the one that was under way, too: a sweep threw away all that it had
    /// measured at its last share, because one round took a little longer than those before.
    #[tokio::test]
    async fn a_round_that_does_not_end_is_dropped_and_those_before_it_count() {
        let bounds =
            Bounds { dropped_at: Some(Deadline::after(Duration::from_millis(1))), ..Bounds::default() };
        for ended in [2, 0] {
            let round = async |number: usize| match number < ended {
                true => anyhow::Ok(number),
                false => std::future::pending().await,
            };
            assert_eq!(bounds.rounds(5, round).await.unwrap(), (0..ended).collect::<Vec<_>>());
        }
    }

    #[tokio::test]
    async fn no_round_is_begun_that_would_end_too_late_but_the_first() {
        let round = async |number: usize| anyhow::Ok(number);
        let begun_until = Some(Deadline::after(Duration::ZERO));
        let bounds = Bounds { begun_until, ..Bounds::default() };
        assert_eq!(bounds.rounds(5, round).await.unwrap(), [0]);
        let begun_until = Some(Deadline::after(Duration::from_secs(3_600)));
        assert_eq!(Bounds { begun_until, ..bounds }.rounds(2, round).await.unwrap(), [0, 1]);
        let after = Duration::from_secs(7_200);
        assert_eq!(Bounds { begun_until, after, ..bounds }.rounds(2, round).await.unwrap(), [0]);
    }

    /// Notes who has read, and takes its time for that.
    struct Noting {
        readers: Arc<Mutex<Vec<u32>>>,
        pause: Duration,
    }

    impl Timelines for Noting {
        fn post<'a>(&'a self, _: u32, _: &'a str) -> BoxFuture<'a, tideline::Result<Option<Delivery>>> {
            async { Ok(None) }.boxed()
        }

        fn page(&self, reader: u32, _: u64) -> BoxFuture<'_, tideline::Result<Shown>> {
            async move {
                tokio::time::sleep(self.pause).await;
                self.readers.lock().unwrap().push(reader);
                Ok(Shown { posts: 0, newest: 0 })
            }
            .boxed()
        }

        fn follow(&self, _: u32, _: u32) -> BoxFuture<'_, tideline::Result<()>> {
            async { Ok(()) }.boxed()
        }

        fn unfollow(&self, _: u32, _: u32) -> BoxFuture<'_, tideline::Result<()>> {
            async { Ok(()) }.boxed()
        }

        fn warm(&self, _: u32) -> BoxFuture<'_, tideline::Result<()>> {
            async { Ok(()) }.boxed()
        }
    }

    /// Operations were planned for the fastest system imaginable, and each did as many as it had the time for: rounds
    /// began with people for whom most systems had done nothing yet.
    #[tokio::test(flavor = "multi_thread")]
    async fn fast_and_slow_ones_warm_up_alike_and_whoever_acts_then_has_read() {
        let scenario = Scenario::parse(
            "name = 'x'\n[graph]\npreset = 'twip'\naccounts = 500\nmean = 10\n[mix]\npost = 1\ncheck = 10\nlogout = 5\n\
             [activity]\nactive_percent = 20\n[drive]\nat_once = 16\nwarm_up_seconds = 1\nround_seconds = 1\n",
        )
        .unwrap();
        let graph = Arc::new(scenario.graph.make(1).unwrap());
        let readers = [0, 1].map(|_| Arc::new(Mutex::new(Vec::new())));
        let contender = |number: usize| {
            let pause = Duration::from_micros(100 + 2_000 * number as u64);
            let timelines = Noting { readers: readers[number].clone(), pause };
            Contender {
                contestant: Contestant::ALL[number],
                network: Network::new(Box::new(timelines), 500, 10),
                scenario: scenario.clone(),
                workload: Workload::new(graph.clone(), &scenario.activity, &scenario.mix, 5),
            }
        };
        let mut contenders = [0, 1].map(contender);
        let warm = warm_up(&mut contenders).await.unwrap();
        assert!(warm.operations > FIRST && warm.length >= ROUND_LEAST, "{warm:?}");
        let sorted = |mut readers: Vec<u32>| {
            readers.sort_unstable();
            readers
        };
        let [fast, slow] = readers.map(|readers| readers.lock().unwrap().clone());
        let acting = sorted(contenders[0].workload.active().to_vec());
        let last = sorted(fast[fast.len() - acting.len()..].to_vec());
        assert_eq!(sorted(fast), sorted(slow));
        assert_eq!(last, acting);
        let [first, second] = contenders.map(|mut contender| contender.workload.take(1_000));
        assert_eq!(first, second);
    }
}
