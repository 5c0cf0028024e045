//! Follower sets of four sizes, sharded against one plain sorted set: memory, and CPU time of adds, pages and walks.

#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "figures for people")]
#![allow(missing_docs, reason = "a benchmark")]

mod support;

use comfy_table::Table;
use comfy_table::presets::ASCII_MARKDOWN;
use support::{Cost, cluster, flush, measure, own_cpu, us_each, used_memory};
use tideline::bucket::mix64;
use tideline::cluster::{Batch, Command, Replicas, Request, RouterSettings};
use tideline::keys::slot_of_key;
use tideline::sharded::{Checkpoint, Layout, Order, SortedSet};
use tideline::{AccountId, Store, StoreOptions};
use tideline_local_cluster::LocalCluster;

const SIZES: [u64; 9] = [20, 100, 200, 2_000, 16_000, 16_384, 32_768, 100_000, 1_000_000];
/// Small sets are made many times, so that what is measured is large enough.
const MEMBERS_AT_LEAST: u64 = 200_000;
const CALL: usize = 500;
const TICK: u64 = 1_700_000_000_000;
const PAGE: usize = 20;

/// One way to keep a set.
struct Measured {
    size: u64,
    sets: u64,
    layout: String,
    bytes: f64,
    add: Cost,
    page: Cost,
    pages: usize,
    walk: Cost,
}

fn member(n: u64) -> AccountId {
    AccountId::new(mix64(n) >> 1 | 1).expect("an id")
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let cluster = cluster(3).await;
    let settings = RouterSettings { replicas: Replicas::Absent, ..RouterSettings::default() };
    let options = StoreOptions { router: settings, ..StoreOptions::new(cluster.urls()) };
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN);
    table.set_header([
        "members",
        "kept as",
        "bytes an edge",
        "add, us",
        "page of 20, us",
        "walk, us a member",
    ]);
    for size in SIZES {
        let sets = (MEMBERS_AT_LEAST / size).clamp(1, 2_000);
        let store = Store::open(options.clone()).await.expect("a store");
        let sharded = sharded(&cluster, &store, size, sets).await;
        flush(store.router()).await;
        let plain = plain(&cluster, &store, size, sets).await;
        flush(store.router()).await;
        for measured in [sharded, plain] {
            table.add_row(row(&measured));
        }
    }
    println!("CPU of all servers + client; a page: the newest 20\n{table}");
    cluster.down().await.expect("the cluster ends");
}

fn row(m: &Measured) -> [String; 6] {
    let members = (m.size * m.sets) as usize;
    let both = |cost: &Cost, count| {
        format!("{:.1} + {:.1}", us_each(cost.server, count), us_each(cost.client, count))
    };
    let walk =
        |cost: &Cost| format!("{:.2} + {:.2}", us_each(cost.server, members), us_each(cost.client, members));
    [
        m.size.to_string(),
        m.layout.clone(),
        format!("{:.1}", m.bytes),
        both(&m.add, members),
        both(&m.page, m.pages),
        walk(&m.walk),
    ]
}

async fn sharded(cluster: &LocalCluster, store: &Store, size: u64, sets: u64) -> Measured {
    let set = |s: u64| -> SortedSet<AccountId> { store.sets().of_account(member(s), "f").expect("a set") };
    // The keys that a store has anyway must not count.
    set(u64::MAX - 1).add(&[(member(1), 0.0)]).await.expect("add");
    let before = used_memory(store.router()).await;
    let adding = async {
        for s in 0..sets {
            let pairs: Vec<_> = (0..size).map(|n| (member(s * size + n), (TICK + n) as f64)).collect();
            for chunk in pairs.chunks(CALL) {
                set(s).add_greater(chunk).await.expect("add");
            }
        }
    };
    let (add, ()) = measure(cluster, own_cpu, adding).await;
    let bytes = (used_memory(store.router()).await - before) as f64 / (size * sets) as f64;
    let pages = usize::try_from((200_000 / size).clamp(5, 500)).expect("few");
    let paging = async {
        for p in 0..pages as u64 {
            let page = set(p % sets).page(.., None, PAGE, Order::Descending).await.expect("page");
            assert_eq!(page.entries.len(), PAGE);
        }
    };
    let (page, ()) = measure(cluster, own_cpu, paging).await;
    let walking = async {
        for s in 0..sets {
            let mut met = 0;
            let mut next = Some(Checkpoint::START);
            while let Some(from) = next {
                let walk = set(s).walk(from).await.expect("walk");
                met += walk.entries.len() as u64;
                next = walk.next;
            }
            assert_eq!(met, size);
        }
    };
    let (walk, ()) = measure(cluster, own_cpu, walking).await;
    let layout = match set(0).layout().await.expect("layout") {
        Layout::Local => "Tideline, local",
        Layout::Spread => "Tideline, spread",
    };
    Measured { size, sets, layout: layout.into(), bytes, add, page, pages, walk }
}

async fn plain(cluster: &LocalCluster, store: &Store, size: u64, sets: u64) -> Measured {
    let router = store.router();
    let key = |s: u64| format!("plain:{}", member(s));
    let slot = |key: &str| slot_of_key(key.as_bytes());
    let before = used_memory(router).await;
    let adding = async {
        for s in 0..sets {
            let key = key(s);
            for first in (0..size).step_by(CALL) {
                let zadd = |n: u64| {
                    let add = Command::new("ZADD").arg(&key).arg("GT").arg(TICK + n);
                    Request::write(slot(&key), add.arg(&member(s * size + n).to_bytes()))
                };
                let batch: Batch = (first..(first + CALL as u64).min(size)).map(zadd).collect();
                for answer in router.run(batch).await {
                    answer.expect("an answer").ok().expect("ZADD");
                }
            }
        }
    };
    let (add, ()) = measure(cluster, own_cpu, adding).await;
    let bytes = (used_memory(router).await - before) as f64 / (size * sets) as f64;
    let pages = 500;
    let paging = async {
        for p in 0..pages {
            let key = key(p as u64 % sets);
            let page = Command::new("ZREVRANGE").arg(&key).arg("0").arg(PAGE - 1).arg("WITHSCORES");
            router.call(Request::read(slot(&key), page)).await.expect("page");
        }
    };
    let (page, ()) = measure(cluster, own_cpu, paging).await;
    let walking = async {
        for s in 0..sets {
            let key = key(s);
            let mut cursor = "0".to_owned();
            loop {
                let scan = Command::new("ZSCAN").arg(&key).arg(&cursor).arg("COUNT").arg(1_000_usize);
                let reply = router.call(Request::read(slot(&key), scan)).await.expect("ZSCAN");
                let reply = reply.into_array().expect("an array");
                reply[0].text().expect("a cursor").clone_into(&mut cursor);
                if cursor == "0" {
                    break;
                }
            }
        }
    };
    let (walk, ()) = measure(cluster, own_cpu, walking).await;
    Measured { size, sets, layout: "one zset".into(), bytes, add, page, pages, walk }
}
