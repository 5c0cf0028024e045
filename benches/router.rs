//! Small ZADDs through the router, through the redis crate's cluster client, and by redis-benchmark as the ceiling:
//! the same cluster, the same keys and arguments, rounds taking turns. What counts is CPU time.

#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "figures for people")]
#![allow(missing_docs, reason = "a benchmark")]

mod support;

use std::process::Stdio;
use std::time::Duration;

use comfy_table::Table;
use comfy_table::presets::ASCII_MARKDOWN;
use futures::StreamExt;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use support::{Cost, cluster, flush, measure, median, us_each};
use tideline::bucket::{SLOTS, mix64, slot_of, tag_of_slot};
use tideline::cluster::{Batch, Command, NodeAddr, Request, Router, RouterSettings};

const OPERATIONS: usize = 1_000_000;
const KEYS_PER_NODE: u64 = 100_000;
const ROUNDS: usize = 5;
/// The cluster client is so much slower that a part of the work tells as much.
const CLIENT_OPERATIONS: usize = 200_000;
const CLIENT_CALLERS: usize = 256;

/// Slots and keys of everything that is written, made beforehand: making keys is not the router's work.
///
/// They are the very keys that redis-benchmark makes: one tag for each node, a random number behind it.
struct Keys {
    tags: Vec<(NodeAddr, &'static str)>,
    drawn: Vec<(u16, Vec<u8>)>,
}

impl Keys {
    fn new(router: &Router) -> Self {
        let first_slot = |node: NodeAddr| {
            let slot =
                (0..SLOTS).find(|s| router.owner(*s).as_ref() == Some(&node)).expect("a slot of each node");
            (node, tag_of_slot(slot))
        };
        let tags: Vec<_> = router.primaries().into_iter().map(first_slot).collect();
        // Drawn beforehand too: looking a random key up in our own memory is not the router's work either.
        let draw = |n: u64| {
            let (_, tag) = tags[usize::try_from(n).expect("few") % tags.len()];
            (slot_of(tag.as_bytes()), format!("k:{{{tag}}}:{:012}", mix64(n) % KEYS_PER_NODE).into_bytes())
        };
        let drawn = (0..OPERATIONS as u64).map(draw).collect();
        Self { tags, drawn }
    }
}

async fn through_router(router: &Router, keys: &Keys, callers: usize, batch: usize) {
    let per_caller = OPERATIONS / callers;
    let caller = |c: usize| async move {
        let mut n = c * per_caller;
        for _ in 0..per_caller / batch {
            let mut requests = Batch::with_capacity(batch);
            for _ in 0..batch {
                let (slot, key) = &keys.drawn[n];
                n += 1;
                requests.push(Request::write(*slot, Command::new("ZADD").arg(key).arg("1").arg("m")));
            }
            for answer in router.run(requests).await {
                answer.expect("an answer").ok().expect("no error");
            }
        }
    };
    (0..callers).map(caller).collect::<FuturesUnordered<_>>().collect::<()>().await;
}

async fn through_cluster_client(connection: &redis::cluster_async::ClusterConnection, keys: &Keys) {
    let caller = |c: usize| {
        let mut connection = connection.clone();
        async move {
            for i in 0..CLIENT_OPERATIONS / CLIENT_CALLERS {
                let (_, key) = &keys.drawn[c * (CLIENT_OPERATIONS / CLIENT_CALLERS) + i];
                redis::cmd("ZADD")
                    .arg(key)
                    .arg("1")
                    .arg("m")
                    .query_async::<i64>(&mut connection)
                    .await
                    .expect("ZADD");
            }
        }
    };
    (0..CLIENT_CALLERS).map(caller).collect::<FuturesUnordered<_>>().collect::<()>().await;
}

/// 12 connections in all, 4 to each node; its own cluster mode would send each pipeline to one slot's few keys.
async fn redis_benchmark(keys: &Keys) {
    let programs = keys.tags.iter().map(|(node, tag)| {
        let operations = (OPERATIONS / keys.tags.len()).to_string();
        tokio::process::Command::new("redis-benchmark")
            .args(["-p", &node.port.to_string(), "-c", "4", "-P", "500", "-q", "-n", &operations])
            .args(["-r", &KEYS_PER_NODE.to_string(), "ZADD", &format!("k:{{{tag}}}:__rand_int__"), "1", "m"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
    });
    for status in join_all(programs).await {
        assert!(status.expect("redis-benchmark on the path").success());
    }
}

struct Row {
    name: &'static str,
    operations: usize,
    costs: Vec<Cost>,
}

impl Row {
    fn us(&self) -> (f64, f64, f64) {
        let all = |c: &Cost| us_each(c.server + c.client, self.operations);
        median(&self.costs.iter().map(all).collect::<Vec<_>>())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let cluster = cluster(3).await;
    let settings = RouterSettings { deadline: Duration::from_secs(60), ..RouterSettings::default() };
    let router = Router::connect(&cluster.urls(), "", settings, None).await.expect("a router");
    let client = redis::cluster::ClusterClient::new(cluster.urls()).expect("a client");
    let connection = client.get_async_connection().await.expect("a connection");
    let own = support::own_cpu;
    let keys = Keys::new(&router);
    let row = |name, operations| Row { name, operations, costs: Vec::new() };
    let mut rows = [
        row("router, 4 callers, batches of 1,500", OPERATIONS),
        row("router, 64 callers, batches of 30", OPERATIONS),
        row("redis-benchmark -c 12 -P 500", OPERATIONS),
        row("redis crate's cluster client, 256 callers, single commands", CLIENT_OPERATIONS),
    ];
    if std::env::args().any(|arg| arg == "--profile") {
        // For a profiler: nothing but the router's work.
        for _ in 0..2 * ROUNDS {
            through_router(&router, &keys, 4, 1_500).await;
        }
        return;
    }
    for round in 0..=ROUNDS {
        let costs = [
            measure(&cluster, own, through_router(&router, &keys, 4, 1_500)).await.0,
            measure(&cluster, own, through_router(&router, &keys, 64, 30)).await.0,
            measure(&cluster, support::children_cpu, redis_benchmark(&keys)).await.0,
            measure(&cluster, own, through_cluster_client(&connection, &keys)).await.0,
        ];
        // The first round warms up: it makes the keys.
        if round > 0 {
            rows.iter_mut().zip(costs).for_each(|(row, cost)| row.costs.push(cost));
        }
    }
    flush(&router).await;
    print_table(&rows);
    cluster.down().await.expect("the cluster ends");
}

fn print_table(rows: &[Row]) {
    let ceiling = rows[2].us().0;
    let client = rows[3].us().0;
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN);
    table.set_header([
        "small ZADDs",
        "ops/s",
        "server us",
        "client us",
        "CPU us (range)",
        "ops per CPU-second",
        "against redis-benchmark",
        "against cluster client",
    ]);
    for row in rows {
        let of = |f: fn(&Cost) -> Duration| {
            median(&row.costs.iter().map(|c| us_each(f(c), row.operations)).collect::<Vec<_>>()).0
        };
        let (us, low, high) = row.us();
        table.add_row([
            row.name.to_owned(),
            format!("{:.0}", 1e6 / of(|c| c.wall)),
            format!("{:.2}", of(|c| c.server)),
            format!("{:.2}", of(|c| c.client)),
            format!("{us:.2} ({low:.2}-{high:.2})"),
            format!("{:.0}", 1e6 / us),
            format!("{:.0} %", 100.0 * ceiling / us),
            format!("{:.1} x", client / us),
        ]);
    }
    println!("{ROUNDS} rounds, medians; CPU of all servers and the client per operation\n{table}");
}
