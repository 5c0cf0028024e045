//! What the tests share: a cluster, stores with prefixes of their own, seeded randomness.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use rand::SeedableRng;
use rand::rngs::StdRng;
use tideline::local_cluster::{ClusterSpec, LocalCluster};
use tideline::sharded::SetSettings;
use tideline::{AccountId, Store, StoreOptions};

/// The seeds of a cluster of three primaries that lives as long as the test binary.
pub(crate) fn shared() -> Vec<String> {
    static SHARED: OnceLock<(Vec<String>, LocalCluster, tokio::runtime::Runtime)> = OnceLock::new();
    let start = || {
        // A runtime and a thread of its own: the first test's runtime ends with that test.
        let start = || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
            let cluster = runtime.block_on(LocalCluster::up(ClusterSpec::ephemeral())).unwrap();
            (cluster.urls(), cluster, runtime)
        };
        std::thread::spawn(start).join().unwrap()
    };
    SHARED.get_or_init(start).0.clone()
}

/// Options with a prefix that no other test has, few buckets, small pieces and an early spread.
pub(crate) fn options(seeds: Vec<String>) -> StoreOptions {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    StoreOptions {
        prefix: format!("test{number}:"),
        buckets: Some(16),
        sets: SetSettings { piece_limit: Some(16), spread_at: Some(200), ..SetSettings::default() },
        ..StoreOptions::new(seeds)
    }
}

pub(crate) async fn store() -> Store {
    Store::open(options(shared())).await.unwrap()
}

/// A seed that is printed, so that a failed run can be repeated with `TIDELINE_SEED`.
pub(crate) fn seeded(test: &str) -> StdRng {
    let seed = std::env::var("TIDELINE_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or_else(rand::random);
    println!("{test}: TIDELINE_SEED={seed}");
    StdRng::seed_from_u64(seed)
}

pub(crate) fn account(id: u64) -> AccountId {
    AccountId::new(id).unwrap()
}
