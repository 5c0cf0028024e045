//! What the tests share: a cluster, stores with prefixes of their own, seeded randomness.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::StdRng;
use tideline::cluster::{Command, Finding, NodeAddr, Request, RouterSettings, Severity};
use tideline::sharded::{Checkpoint, SetSettings, SortedSet};
use tideline::{AccountId, Store, StoreOptions};
use tideline_local_cluster::{ClusterSpec, LocalCluster};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Semaphore, SemaphorePermit};

pub(crate) use crate::program::program;

/// What a set must hold.
pub(crate) type Model = BTreeMap<AccountId, f64>;

/// Longest wait for anything that must happen in the end.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The seeds of a cluster of three primaries that lives as long as the test binary.
pub(crate) fn shared() -> Vec<String> {
    static SHARED: OnceLock<(Vec<String>, LocalCluster, tokio::runtime::Runtime)> = OnceLock::new();
    let start = || {
        // A runtime and a thread of its own: the first test's runtime ends with that test.
        let start = || {
            let runtime =
                tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
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

/// The same seed each time; `TIDELINE_SEED` takes another one, `TIDELINE_SEED=random` a new one. It is printed, so that
/// a failed run can be repeated.
pub(crate) fn seeded(test: &str) -> StdRng {
    let seed = match std::env::var("TIDELINE_SEED").as_deref() {
        Ok("random") => rand::random(),
        Ok(seed) => seed.parse().expect("TIDELINE_SEED is a number, or `random`"),
        Err(_) => 1,
    };
    println!("{test}: TIDELINE_SEED={seed}");
    StdRng::seed_from_u64(seed)
}

/// What was found of settings and connections: what the program costs that tests run on is not theirs to choose.
pub(crate) fn findings_of_settings(store: &Store) -> Vec<Finding> {
    store.router().findings().into_iter().filter(|finding| !costs_much(finding)).collect()
}

/// Whether a finding is about a server's allocator or version.
pub(crate) fn costs_much(finding: &Finding) -> bool {
    finding.severity == Severity::Warning && finding.text.contains("a delivery")
}

pub(crate) fn account(id: u64) -> AccountId {
    AccountId::new(id).unwrap()
}

/// A cluster that one test may break.
pub(crate) struct Own {
    cluster: LocalCluster,
    _permit: SemaphorePermit<'static>,
}

impl Deref for Own {
    type Target = LocalCluster;

    fn deref(&self) -> &LocalCluster {
        &self.cluster
    }
}

impl DerefMut for Own {
    fn deref_mut(&mut self) -> &mut LocalCluster {
        &mut self.cluster
    }
}

/// Starts a cluster for this test alone; waits while three others have one.
pub(crate) async fn own(spec: ClusterSpec) -> Own {
    try_own(spec).await.unwrap()
}

/// The same, for servers that may refuse the settings.
pub(crate) async fn try_own(spec: ClusterSpec) -> tideline::Result<Own> {
    own_with(async { Ok((LocalCluster::up(spec).await?, ())) }).await.map(|(own, ())| own)
}

/// The same, for one that comes with something.
pub(crate) async fn own_with<T>(
    up: impl Future<Output = tideline::Result<(LocalCluster, T)>>,
) -> tideline::Result<(Own, T)> {
    static OWN: Semaphore = Semaphore::const_new(8);
    let permit = OWN.acquire().await.unwrap();
    let (cluster, with) = up.await?;
    Ok((Own { cluster, _permit: permit }, with))
}

/// Three primaries with a replica each, that notice a dead node sooner than by default.
pub(crate) fn replicated() -> ClusterSpec {
    ClusterSpec::ephemeral().replicas(1).node_timeout(Duration::from_millis(1_500))
}

/// Settings that notice a silent node sooner than the defaults.
pub(crate) fn impatient() -> RouterSettings {
    RouterSettings {
        response_timeout: Duration::from_millis(500),
        connect_timeout: Duration::from_secs(1),
        fence_timeout: Duration::from_millis(250),
        refresh_period: Duration::from_millis(500),
        ..RouterSettings::default()
    }
}

/// Settings for where no server is silent for good: at a load of 30 one that lives took a second to greet.
pub(crate) fn patient_at_first() -> RouterSettings {
    RouterSettings { connect_timeout: PATIENCE, ..impatient() }
}

/// The same, but a replica that is only slow is waited for: where a write has to be told as replicated.
pub(crate) fn patient_with_replicas() -> RouterSettings {
    RouterSettings {
        response_timeout: Duration::from_secs(6),
        fence_timeout: Duration::from_secs(5),
        ..impatient()
    }
}

/// A store on `cluster`, with settings that notice faults soon.
pub(crate) async fn store_on(cluster: &LocalCluster) -> Store {
    store_with(cluster, impatient()).await
}

/// A store on `cluster`, with these settings.
pub(crate) async fn store_with(cluster: &LocalCluster, router: RouterSettings) -> Store {
    Store::open(StoreOptions { router, ..options(cluster.urls()) }).await.unwrap()
}

/// Everything in the set, by a walk whose checkpoints are stored and read back.
pub(crate) async fn walk_all(set: &SortedSet<AccountId>) -> Model {
    let mut met = Model::new();
    let mut next = Some(Checkpoint::START);
    while let Some(from) = next {
        let walk = set.walk(from.to_string().parse().unwrap()).await.unwrap();
        met.extend(walk.entries);
        next = walk.next;
    }
    met
}

/// Says an inline command to a server, beside all clients, and gives back what it answers; empty if it is silent.
pub(crate) async fn tell(addr: &NodeAddr, command: &str) -> String {
    let answer = async {
        let mut stream = tokio::net::TcpStream::connect((&*addr.host, addr.port)).await.ok()?;
        stream.write_all(format!("{command}\r\n").as_bytes()).await.ok()?;
        let mut answer = vec![0; 64 * 1024];
        let length = stream.read(&mut answer).await.ok()?;
        Some(String::from_utf8_lossy(&answer[..length]).into_owned())
    };
    tokio::time::timeout(Duration::from_millis(500), answer).await.ok().flatten().unwrap_or_default()
}

/// The answer of a server that is there to what can be asked twice: a slow one is asked again.
pub(crate) async fn answer(addr: &NodeAddr, command: &str) -> String {
    let mut said = String::new();
    eventually("a server answers", async || {
        said = tell(addr, command).await;
        !said.is_empty()
    })
    .await;
    said
}

/// Tells a server to do something that can be done twice, until it says that it has.
pub(crate) async fn order(addr: &NodeAddr, command: &str) {
    let said = answer(addr, command).await;
    assert!(said.starts_with("+OK"), "{command}: {said}");
}

/// Waits for what has to end, however fast the machine is: the bound is there so that "for ever" fails.
pub(crate) async fn in_the_end<T>(what: &str, work: impl Future<Output = T>) -> T {
    let ended = tokio::time::timeout(PATIENCE, work).await;
    ended.unwrap_or_else(|_| panic!("never ended: {what}"))
}

/// Waits until `is_so`.
pub(crate) async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let since = Instant::now();
    while !is_so().await {
        assert!(since.elapsed() < PATIENCE, "never happened: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A key of a store's own in the bucket with that number, and its slot.
pub(crate) fn raw_key(store: &Store, bucket: u16, name: &str) -> (String, u16) {
    let buckets = store.keys().buckets();
    let bucket = buckets.get(bucket).unwrap();
    (format!("{}{{{}}}-{name}", store.keys().prefix(), buckets.tag(bucket)), buckets.slot(bucket))
}

pub(crate) fn set_raw((key, slot): &(String, u16), value: u64) -> Request {
    Request::write(*slot, Command::new("SET").arg(key).arg(value))
}

pub(crate) fn get_raw((key, slot): &(String, u16)) -> Request {
    Request::read(*slot, Command::new("GET").arg(key))
}

pub(crate) fn incr_raw((key, slot): &(String, u16)) -> Request {
    Request::write(*slot, Command::new("INCR").arg(key))
}

/// Makes a map of pairs: from the first id on, each with its id as score.
pub(crate) fn members(ids: impl IntoIterator<Item = u64>) -> Model {
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    ids.into_iter().map(|id| (account(id), id as f64)).collect()
}

pub(crate) fn pairs(model: &Model) -> Vec<(AccountId, f64)> {
    model.iter().map(|(m, s)| (*m, *s)).collect()
}
