//! What a run tells Prometheus about itself, beside what the engine does; loadtest/README.md lists it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use metrics::{Counter, Histogram, counter, histogram};
use tokio::task::JoinHandle;

use crate::lookups::Counting;
use crate::workload::Op;

/// How often the time of a turn is told.
const TICK: Duration = Duration::from_millis(100);

/// Serves all metrics of this process over HTTP from now on, before any engine is started, if an address is given;
/// look-ups of caches are counted in any case.
pub(crate) fn start(address: Option<SocketAddr>) -> anyhow::Result<()> {
    let serve = |address: SocketAddr| {
        let recorder = tideline_exporter::recorder()?;
        tideline_exporter::serve(address, recorder.handle())
            .with_context(|| format!("metrics cannot be served at {address}; choose another port"))?;
        eprintln!("Metrics are at http://{address}/metrics.");
        anyhow::Ok(recorder)
    };
    let is_first = metrics::set_global_recorder(Counting(address.map(serve).transpose()?)).is_ok();
    anyhow::ensure!(is_first, "metrics are recorded already");
    Ok(())
}

/// How long it took until everybody had a post of this system, or of these accounts.
pub(crate) fn fanout(system: &'static str) -> Histogram {
    histogram!("loadtest_fanout_lag_seconds", "system" => system)
}

/// How many operations of an open loop were not sent, because too many were under way.
pub(crate) fn dropped(system: &'static str, kind: &'static str) -> Counter {
    counter!("loadtest_operations_dropped_total", "system" => system, "kind" => kind)
}

/// The turn of a system, of several that take turns on the same servers: while it lasts its time is told. What a system
/// does in a second is by this, not by the clock.
#[derive(Debug)]
pub(crate) struct Turn {
    clock: Arc<Clock>,
    ticking: JoinHandle<()>,
}

#[derive(Debug)]
struct Clock {
    counter: Counter,
    began: Instant,
    told_ms: AtomicU64,
}

impl Clock {
    fn tell(&self) {
        let ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.counter.increment(ms.saturating_sub(self.told_ms.fetch_max(ms, Ordering::Relaxed)));
    }
}

impl Turn {
    pub(crate) fn begin(system: &'static str) -> Self {
        let counter = counter!("loadtest_turn_ms_total", "system" => system);
        let clock = Arc::new(Clock { counter, began: Instant::now(), told_ms: AtomicU64::new(0) });
        let told = clock.clone();
        let ticking = tokio::spawn(async move {
            loop {
                tokio::time::sleep(TICK).await;
                told.tell();
            }
        });
        Self { clock, ticking }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.ticking.abort();
        self.clock.tell();
    }
}

/// Of one system.
#[derive(Debug, Clone)]
pub(crate) struct Gauges {
    operations: [(Counter, Counter, Histogram); Op::KINDS.len()],
    dropped: [Counter; Op::KINDS.len()],
    fanouts: Histogram,
}

impl Gauges {
    pub(crate) fn new(system: &'static str) -> Self {
        let of = |kind: &'static str| {
            let name = "loadtest_operations_total";
            let count =
                |of: &'static str| counter!(name, "system" => system, "kind" => kind, "outcome" => of);
            let times = histogram!("loadtest_operation_seconds", "system" => system, "kind" => kind);
            (count("succeeded"), count("failed"), times)
        };
        let dropped = Op::KINDS.map(|kind| dropped(system, kind));
        Self { operations: Op::KINDS.map(of), dropped, fanouts: fanout(system) }
    }

    pub(crate) fn operation(&self, op: Op, took: Duration, has_failed: bool) {
        let (succeeded, failed, times) = &self.operations[op.kind()];
        if has_failed {
            failed.increment(1)
        } else {
            succeeded.increment(1)
        }
        times.record(took);
    }

    pub(crate) fn dropped(&self, op: Op) {
        self.dropped[op.kind()].increment(1);
    }

    pub(crate) fn fanout(&self, took: Duration) {
        self.fanouts.record(took);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metrics_exporter_prometheus::PrometheusBuilder;

    #[tokio::test]
    async fn a_turn_tells_its_time_and_nothing_after_it() {
        let recorder = PrometheusBuilder::new().build_recorder();
        let told = recorder.handle();
        let ms = || {
            let page = told.render();
            let line =
                page.lines().find(|line| line.starts_with("loadtest_turn_ms_total{system=\"push_only\"}"));
            line.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
        };
        let turn = metrics::with_local_recorder(&recorder, || Turn::begin("push_only"));
        // It tells while it goes on, and the rest at its end.
        while ms().unwrap() == 0 {
            tokio::time::sleep(TICK).await;
        }
        let least = u64::try_from(turn.clock.began.elapsed().as_millis()).unwrap();
        drop(turn);
        let at_end = ms().unwrap();
        assert!(at_end >= least, "{at_end} of {least} ms");
        tokio::time::sleep(2 * TICK).await;
        assert_eq!(ms().unwrap(), at_end);
    }

    #[test]
    fn operations_that_were_not_sent_are_counted_by_kind() {
        let recorder = PrometheusBuilder::new().build_recorder();
        let told = recorder.handle();
        metrics::with_local_recorder(&recorder, || Gauges::new("push_only").dropped(Op::Read { reader: 1 }));
        let line = |kind: &str, count| {
            format!("loadtest_operations_dropped_total{{system=\"push_only\",kind=\"{kind}\"}} {count}\n")
        };
        let page = told.render();
        assert!(page.contains(&line("read", 1)) && page.contains(&line("post", 0)), "{page}");
    }
}
