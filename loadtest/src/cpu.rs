//! CPU time of processes on this machine, as Linux' scheduler counts it.

use std::path::Path;
use std::time::Duration;

use crate::stats::count;

/// CPU time of the servers and of this process, where it can be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CpuTime {
    pub(crate) server: Option<Duration>,
    pub(crate) client: Option<Duration>,
}

impl CpuTime {
    /// What was used since `before`. A server that was restarted meanwhile makes it unknown.
    pub(crate) fn since(self, before: &Self) -> Self {
        let since = |now: Option<Duration>, before: Option<Duration>| now?.checked_sub(before?);
        Self { server: since(self.server, before.server), client: since(self.client, before.client) }
    }
}

/// Microseconds for each of `ended`; unknown if nothing was done.
pub(crate) fn us_each(time: Option<Duration>, ended: u64) -> Option<f64> {
    time.filter(|_| ended > 0).map(|time| time.as_secs_f64() * 1e6 / count(ended))
}

/// CPU time of this process.
pub(crate) fn own() -> Option<Duration> {
    of_process("self")
}

/// CPU time of several processes together; `None` if one of them cannot be read.
pub(crate) fn of_processes(pids: &[u32]) -> Option<Duration> {
    pids.iter().map(|pid| of_process(&pid.to_string())).sum()
}

/// CPU time of a process and of its children, which come and go: those that have gone count as long as it lives, in
/// steps of the system's clock. `None` if the first of `pids` can't be read.
#[cfg(feature = "archive")]
pub(crate) fn of_family(pids: &[u32]) -> Option<Duration> {
    let first = pids.first()?.to_string();
    let alive: Duration = pids.iter().filter_map(|pid| of_process(&pid.to_string())).sum();
    let stat = std::fs::read_to_string(Path::new("/proc").join(first).join("stat")).ok()?;
    // Behind the name, which may hold anything: fields 16 and 17 of all, of children that were waited for.
    let (_, fields) = stat.rsplit_once(") ")?;
    let ticks = |nth| fields.split(' ').nth(nth)?.parse::<u64>().ok();
    let gone_ms = (ticks(13)? + ticks(14)?) * 1_000 / TICKS_PER_SECOND;
    Some(alive + Duration::from_millis(gone_ms))
}

/// CPU time of a process and of all threads that it has ever had, in steps of the system's clock: of one whose threads
/// come and go. `None` where there is no /proc, or no such process.
#[cfg(feature = "site")]
pub(crate) fn of_all_threads(pid: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    // Behind the name, which may hold anything: fields 14 and 15 of all.
    let (_, fields) = stat.rsplit_once(") ")?;
    let ticks = |nth| fields.split(' ').nth(nth)?.parse::<u64>().ok();
    Some(Duration::from_millis((ticks(11)? + ticks(12)?) * 1_000 / TICKS_PER_SECOND))
}

/// Linux tells user programs so many, whatever it counts itself.
#[cfg(any(feature = "archive", feature = "site"))]
const TICKS_PER_SECOND: u64 = 100;

/// CPU time of all threads that are alive, in nanosecond steps; `None` where there is no /proc, or no such process.
fn of_process(pid: &str) -> Option<Duration> {
    let tasks = std::fs::read_dir(Path::new("/proc").join(pid).join("task")).ok()?;
    let of_task = |task: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        stat.split(' ').next()?.parse::<u64>().ok()
    };
    // A thread may end between the listing and the reading: it no longer counts. None at all: no such statistics.
    let times: Vec<u64> = tasks.flatten().filter_map(of_task).collect();
    (!times.is_empty()).then(|| Duration::from_nanos(times.iter().sum()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn work_shows_in_our_own_time() {
        let before = own().unwrap();
        let mut sum = 0_u64;
        while own().unwrap() < before + Duration::from_millis(5) {
            sum = std::hint::black_box(sum + 1);
        }
        assert_eq!(of_processes(&[]), Some(Duration::ZERO));
    }

    #[cfg(all(target_os = "linux", feature = "archive"))]
    #[test]
    fn what_children_have_used_counts_when_they_are_gone() {
        let family = || of_family(&[std::process::id()]).unwrap();
        let before = family();
        let busy = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
        while family() < before + Duration::from_millis(30) {
            std::process::Command::new("sh").args(["-c", busy]).status().unwrap();
        }
        assert_eq!(of_family(&[]), None);
    }

    /// A server whose threads came and went had less CPU time after a turn than before it.
    #[cfg(all(target_os = "linux", feature = "site"))]
    #[test]
    fn what_threads_have_used_counts_when_they_are_gone() {
        let all = || of_all_threads(std::process::id()).unwrap();
        let before = all();
        let busy = || {
            let began = own().unwrap();
            let mut sum = 0_u64;
            while own().unwrap() < began + Duration::from_millis(50) {
                sum = std::hint::black_box(sum + 1);
            }
        };
        std::thread::spawn(busy).join().unwrap();
        assert!(all() > before, "{before:?}");
        assert_eq!(of_all_threads(u32::MAX), None);
    }

    #[test]
    fn a_process_that_does_not_exist_makes_the_sum_unknown() {
        assert_eq!(of_processes(&[std::process::id(), u32::MAX]), None);
    }
}
