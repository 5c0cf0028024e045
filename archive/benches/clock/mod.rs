//! CPU time, for tables.

use std::fs;
use std::time::Instant;

/// CPU time and the clock's since some moment.
pub(crate) struct Clock<'a> {
    started: Instant,
    ours: f64,
    servers: f64,
    pids: &'a dyn Fn() -> Vec<u32>,
}

impl<'a> Clock<'a> {
    pub(crate) fn start(pids: &'a dyn Fn() -> Vec<u32>) -> Self {
        let servers = pids().into_iter().map(|pid| cpu_s(&pid.to_string())).sum();
        Self { started: Instant::now(), ours: cpu_s("self"), servers, pids }
    }

    pub(crate) fn tell(&self, name: &str, step: &str, many: u64) {
        let each = 1e6 / many as f64;
        let ours = (cpu_s("self") - self.ours) * each;
        let servers: f64 = (self.pids)().into_iter().map(|pid| cpu_s(&pid.to_string())).sum();
        let a_second = many as f64 / self.started.elapsed().as_secs_f64();
        println!(
            "| {name} | {step} | {a_second:.0} | {ours:.1} us | {:.1} us |",
            (servers - self.servers) * each
        );
    }
}

/// User and system time of a process, in steps of 10 ms.
fn cpu_s(pid: &str) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks: Vec<f64> =
        fields.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse().ok()).collect();
    ticks.iter().sum::<f64>() / 100.0
}
