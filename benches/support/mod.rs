//! What the cluster benchmarks share: a cluster, CPU time of servers and client, and tables.

#![allow(dead_code, unreachable_pub, reason = "each benchmark uses a part of it")]
#![allow(clippy::cast_precision_loss, reason = "figures for people")]

use std::path::Path;
use std::time::{Duration, Instant};

use tideline::AccountId;
use tideline::bucket::mix64;
use tideline::cluster::{Command, Router};
use tideline_local_cluster::{ClusterSpec, LocalCluster};

/// The account with that number: ids spread over all buckets.
pub fn account(number: u64) -> AccountId {
    AccountId::new(mix64(number) >> 1 | 1).expect("an id")
}

/// CPU time and wall time of one measured piece of work.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cost {
    /// All servers together.
    pub server: Duration,
    /// Our own process, or the client program's.
    pub client: Duration,
    /// From beginning to end.
    pub wall: Duration,
}

/// A cluster of primaries without replicas and without AOF.
pub async fn cluster(primaries: u16) -> LocalCluster {
    LocalCluster::up(ClusterSpec::ephemeral().primaries(primaries)).await.expect("a local cluster")
}

/// Measures what `work` costs; `client` gives the CPU time that counts as the client's.
pub async fn measure<T>(
    cluster: &LocalCluster,
    client: impl Fn() -> Duration,
    work: impl Future<Output = T>,
) -> (Cost, T) {
    let (server_before, client_before, started) = (servers(cluster), client(), Instant::now());
    let result = work.await;
    let wall = started.elapsed();
    (Cost { server: servers(cluster) - server_before, client: client() - client_before, wall }, result)
}

fn servers(cluster: &LocalCluster) -> Duration {
    cluster.nodes().iter().filter_map(|n| n.pid()).map(|pid| cpu_of(&pid.to_string())).sum()
}

/// CPU time of this process, in nanosecond steps.
pub fn own_cpu() -> Duration {
    cpu_of("self")
}

/// CPU time of all threads of a process that are alive, as the scheduler counts it.
fn cpu_of(pid: &str) -> Duration {
    let tasks = std::fs::read_dir(Path::new("/proc").join(pid).join("task")).expect("Linux' /proc");
    let of_task = |task: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        stat.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
    };
    Duration::from_nanos(tasks.flatten().map(of_task).sum())
}

/// CPU time of all child processes that have ended, in steps of 10 ms.
pub fn children_cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux' /proc");
    // Behind the command's name: field 3 of the manual is the first here; 16 and 17 are cutime and cstime.
    let behind_name = stat.rsplit(')').next().unwrap_or_default();
    let fields: Vec<u64> = behind_name.split_whitespace().map(|f| f.parse().unwrap_or(0)).collect();
    Duration::from_millis((fields[13] + fields[14]) * 10)
}

/// Bytes that all primaries have allocated.
pub async fn used_memory(router: &Router) -> u64 {
    info(router, "memory", &["used_memory"]).await
}

/// Bytes that all primaries have received and sent.
pub async fn wire_bytes(router: &Router) -> u64 {
    info(router, "stats", &["total_net_input_bytes", "total_net_output_bytes"]).await
}

/// The sum of these figures, of all primaries.
async fn info(router: &Router, section: &str, names: &[&str]) -> u64 {
    let replies = router.ask_primaries(&Command::new("INFO").arg(section)).await;
    let of = |(_, reply): (_, tideline::Result<tideline::cluster::Reply>)| {
        let reply = reply.expect("INFO");
        let text = reply.text().expect("text").to_owned();
        let figure = |name: &&str| {
            let mut values = text.lines().filter_map(|line| line.split_once(':'));
            let (_, value) = values.find(|(of, _)| of == name).expect("a figure of that name");
            value.trim().parse::<u64>().expect("a number")
        };
        names.iter().map(figure).sum::<u64>()
    };
    replies.into_iter().map(of).sum()
}

/// Removes everything from all primaries.
pub async fn flush(router: &Router) {
    for (_, reply) in router.ask_primaries(&Command::new("FLUSHALL").arg("SYNC")).await {
        reply.expect("FLUSHALL");
    }
}

/// The median, and how far the lowest and the highest are from it.
pub fn median(values: &[f64]) -> (f64, f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    (sorted[sorted.len() / 2], sorted[0], sorted[sorted.len() - 1])
}

/// Microseconds of `time` for each of `count`.
pub fn us_each(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1e6 / count as f64
}

/// Prints what each of `count` pieces of work has cost, one way and the other, by the median of rounds that took turns,
/// and how many times as much the second way cost, round by round.
pub fn compare_rounds(names: [&str; 2], rounds: [&[Cost]; 2], count: usize) {
    let server = |cost: &Cost| us_each(cost.server, count);
    let both = |cost: &Cost| server(cost) + us_each(cost.client, count);
    for (name, costs) in names.iter().zip(rounds) {
        let of = |side: &dyn Fn(&Cost) -> f64| median(&costs.iter().map(side).collect::<Vec<_>>()).0;
        println!("{name}: servers {:.3} us, with the client {:.3} us", of(&server), of(&both));
    }
    for (side, of) in [("servers", &server as &dyn Fn(&Cost) -> f64), ("with the client", &both)] {
        let ratios: Vec<f64> =
            rounds[0].iter().zip(rounds[1]).map(|(one, other)| of(other) / of(one)).collect();
        let (ratio, low, high) = median(&ratios);
        println!("{side}: {ratio:.3} times as much ({low:.3} to {high:.3})");
    }
}
