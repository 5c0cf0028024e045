//! What the router promises when servers are missing, wrong, silent or new.

use std::path::PathBuf;
use std::process::{Child, Command as Process, Stdio};
use std::time::Duration;

use futures::future::join_all;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshot};
use tideline::cluster::{Batch, Command, NodeAddr, Request, RouterSettings, Severity};
use tideline::{Error, ErrorKind, Store, StoreOptions};
use tideline_local_cluster::ClusterSpec;

use super::harness::{
    PATIENCE, account, eventually, findings_of_settings, get_raw, impatient, in_the_end, incr_raw, members,
    options, order, own, pairs, raw_key, set_raw, store_on, store_with, tell,
};

/// Gives up soon.
fn hasty() -> RouterSettings {
    RouterSettings { deadline: Duration::from_secs(2), ..impatient() }
}

async fn hasty_store(urls: Vec<String>) -> Store {
    Store::open(StoreOptions { router: hasty(), ..options(urls) }).await.unwrap()
}

async fn refusal(options: StoreOptions) -> Error {
    let refused = in_the_end("a refusal", Store::open(options)).await.unwrap_err();
    println!("{:?}: {refused}", refused.kind());
    refused
}

/// The buckets of a store by the server that has them.
pub(crate) fn buckets_at(store: &Store, addr: &NodeAddr) -> Vec<u16> {
    let at = |b: &u16| store.router().owner(raw_key(store, *b, "").1).as_ref() == Some(addr);
    (0..16).filter(at).collect()
}

#[tokio::test]
async fn an_error_names_the_server_the_slot_and_what_was_tried() {
    let cluster = own(ClusterSpec::ephemeral()).await;
    let store = hasty_store(cluster.urls()).await;
    let dead = &cluster.nodes()[1];
    let bucket = buckets_at(&store, &dead.addr())[0];
    let key = raw_key(&store, bucket, "k");
    dead.kill().unwrap();
    for (request, name) in [(get_raw(&key), "GET"), (set_raw(&key, 1), "SET")] {
        let failed = in_the_end("a call", store.router().call(request)).await.unwrap_err();
        assert!(matches!(failed.kind(), ErrorKind::Unavailable | ErrorKind::Unknown), "{failed:?}");
        let text = failed.to_string();
        for part in [name, &format!("slot {}", key.1), &dead.addr().to_string(), "tries", "connect"] {
            assert!(text.contains(part), "`{text}` does not say {part}");
        }
    }
    // The other two go on, in the same batch too.
    let batch: Batch = (0..16).map(|b| set_raw(&raw_key(&store, b, "k"), 2)).collect();
    let answers = store.router().run(batch).await;
    let failed = answers.iter().filter(|a| a.is_err()).count();
    assert_eq!(failed, buckets_at(&store, &dead.addr()).len());
}

#[tokio::test]
async fn when_everything_is_dead_every_request_ends_by_the_deadline_and_goes_on_after() {
    let cluster = own(ClusterSpec::ephemeral()).await;
    let store = hasty_store(cluster.urls()).await;
    cluster.nodes().iter().for_each(|node| node.kill().unwrap());
    let batch: Batch = (0..16)
        .flat_map(|b| [set_raw(&raw_key(&store, b, "k"), 1), get_raw(&raw_key(&store, b, "k"))])
        .collect();
    for answer in in_the_end("a batch", store.router().run(batch)).await {
        let failed = answer.unwrap_err();
        assert!(matches!(failed.kind(), ErrorKind::Unavailable | ErrorKind::Unknown), "{failed:?}");
    }
    for index in 0..3 {
        cluster.restart(index).await.unwrap();
    }
    eventually("all slots answer again", async || {
        let batch: Batch = (0..16).map(|b| set_raw(&raw_key(&store, b, "k"), 1)).collect();
        store.router().run(batch).await.iter().all(Result::is_ok)
    })
    .await;
}

#[tokio::test]
async fn functions_that_a_server_lost_are_loaded_again_without_anybody_noticing() {
    let cluster = own(ClusterSpec::ephemeral()).await;
    let store = store_on(&cluster).await;
    let set = store.sets().named("functions").unwrap();
    for round in 0..3 {
        for node in cluster.nodes() {
            order(&node.addr(), "FUNCTION FLUSH").await;
        }
        // Many at once: all meet the missing function, one load serves them.
        let model = members(round * 100 + 1..round * 100 + 100);
        let changes = pairs(&model).chunks(5).map(<[_]>::to_vec).collect::<Vec<_>>();
        for added in join_all(changes.iter().map(|c| set.add(c))).await {
            added.unwrap();
        }
    }
    assert_eq!(set.len().await.unwrap(), 297);
}

#[tokio::test]
async fn a_server_that_joins_and_gets_slots_is_used_with_functions_and_all() {
    let mut cluster = own(ClusterSpec::ephemeral()).await;
    let store = store_on(&cluster).await;
    let set = store.sets().named("joins").unwrap();
    let model = members(1..=300);
    set.add(&pairs(&model)).await.unwrap();
    let fresh = cluster.start_extra_node().await.unwrap();
    for bucket in 0..16 {
        cluster.migrate_slot(raw_key(&store, bucket, "").1, &fresh).await.unwrap();
    }
    set.add(&pairs(&members(301..=400))).await.unwrap();
    set.remove(&[account(1)]).await.unwrap();
    assert_eq!(set.len().await.unwrap(), 399);
    store.clock().post_ids(store.keys().buckets().of_account(1), 3).await.unwrap();
    eventually("the map shows the new server", async || store.router().primaries().contains(&fresh)).await;
    assert_eq!(buckets_at(&store, &fresh).len(), 16);
}

#[tokio::test]
async fn settings_that_would_lose_data_are_refused_and_others_that_do_not_fit_are_named() {
    let cluster = own(ClusterSpec::ephemeral().replicas(1).config("appendonly", "yes")).await;
    let second = cluster.nodes()[1].addr();
    order(&second, "CONFIG SET maxmemory-policy allkeys-lru").await;
    let refused = refusal(options(cluster.urls())).await;
    assert_eq!(refused.kind(), ErrorKind::Misconfigured);
    for part in ["allkeys-lru", "noeviction", &second.to_string()] {
        assert!(refused.to_string().contains(part), "{refused}");
    }
    order(&second, "CONFIG SET maxmemory-policy volatile-lru").await;
    order(&second, "CONFIG SET cluster-require-full-coverage yes").await;
    order(&second, "CONFIG SET zset-max-listpack-entries 20").await;
    order(&second, "CONFIG SET cluster-allow-reads-when-down yes").await;
    // What decides who is promoted is the replica's own.
    let replica = cluster.replica_of(&second).await.unwrap().addr();
    order(&replica, "CONFIG SET cluster-replica-validity-factor 0").await;
    order(&replica, "CONFIG SET appendonly no").await;
    let store = store_on(&cluster).await;
    let findings = store.router().findings();
    for (part, node) in [
        ("volatile-lru", &second),
        ("cluster-require-full-coverage", &second),
        ("zset-max-listpack-entries", &second),
        ("cluster-allow-reads-when-down", &second),
        ("cluster-replica-validity-factor", &replica),
        ("keeps nothing on disk", &replica),
    ] {
        let finding =
            findings.iter().find(|f| f.text.contains(part)).unwrap_or_else(|| panic!("{part}: {findings:?}"));
        assert_eq!((finding.node.as_ref(), finding.severity), (Some(node), Severity::Warning));
    }
    assert_eq!(store.router().limits().zset_entries, 20);
    order(&second, "CONFIG SET maxmemory-policy noeviction").await;
    order(&second, "CONFIG SET cluster-require-full-coverage no").await;
    order(&second, "CONFIG SET zset-max-listpack-entries 128").await;
    order(&second, "CONFIG SET cluster-allow-reads-when-down no").await;
    order(&replica, "CONFIG SET cluster-replica-validity-factor 10").await;
    order(&replica, "CONFIG SET appendonly yes").await;
    assert_eq!(findings_of_settings(&store_on(&cluster).await), []);
}

#[tokio::test]
async fn a_primary_that_restarts_in_place_is_told_for_good_and_one_that_was_replaced_is_not() {
    // Its replica copies what its disk had: fenced deliveries, marks, edges were lost, and the router, which saw the
    // new process, said nothing.
    let cluster = own(ClusterSpec::ephemeral().replicas(1).node_timeout(PATIENCE)).await;
    let store = store_on(&cluster).await;
    let losses = || {
        let told = store.router().findings().into_iter().filter(|f| f.severity == Severity::Loss);
        told.collect::<Vec<_>>()
    };
    let [restarts, replaced, another] = [0, 1, 2].map(|n| cluster.nodes()[n].addr());
    // Replaced, restarted, and primary again: nothing is lost that a replica had.
    let replica = cluster.replica_of(&replaced).await.unwrap().addr();
    cluster.failover(&replica).await.unwrap();
    eventually("the map shows who took over", async || store.router().primaries().contains(&replica)).await;
    let node = cluster.node(&replaced).unwrap();
    node.kill().unwrap();
    cluster.restart(node.index).await.unwrap();
    cluster.wait_healthy(PATIENCE).await.unwrap();
    cluster.failover(&replaced).await.unwrap();
    eventually("the map shows who is back", async || store.router().primaries().contains(&replaced)).await;
    assert_eq!(losses(), []);
    // Within the node timeout, so that nobody takes over.
    let node = cluster.node(&restarts).unwrap();
    node.kill().unwrap();
    cluster.restart(node.index).await.unwrap();
    eventually("it is told", async || !losses().is_empty()).await;
    let told = losses();
    assert_eq!((told.len(), told[0].node.as_ref()), (1, Some(&restarts)));
    assert!(told[0].text.contains("tideline fsck"), "{}", told[0]);
    // Also once settings are read again.
    let replica = cluster.replica_of(&another).await.unwrap().addr();
    cluster.failover(&replica).await.unwrap();
    eventually("the map changes", async || store.router().primaries().contains(&replica)).await;
    assert_eq!(losses(), told);
}

/// A server of ours that is in no cluster; ends with this.
pub(crate) struct Single(Child, u16, tempfile::TempDir);

/// Stands for a port that is free when a server is started.
const FREE_PORT: &str = "a free port";
/// So often the port of a server is taken by somebody else before it listens there, at most.
const PORTS_TAKEN_MAX: usize = 20;

/// Free just now: outgoing connections of others take such ones, too.
fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Single {
    /// Starts one; [`FREE_PORT`] among its arguments is one.
    pub(crate) async fn start(arguments: &[&str]) -> Self {
        for _ in 0..PORTS_TAKEN_MAX {
            let mut single = Self::begin(arguments);
            if single.listens().await {
                return single;
            }
        }
        panic!("somebody is faster each time: {arguments:?}");
    }

    /// Waits until it answers itself; or it has ended, because its port was taken.
    async fn listens(&mut self) -> bool {
        let (addr, dir) = (self.addr(), self.2.path().canonicalize().unwrap());
        let mut has_ended = false;
        eventually("it answers, or has ended", async || {
            has_ended = self.0.try_wait().unwrap().is_some();
            has_ended || tell(&addr, "CONFIG GET dir").await.contains(dir.to_str().unwrap())
        })
        .await;
        !has_ended
    }

    fn begin(arguments: &[&str]) -> Self {
        let binary =
            std::env::var_os("TIDELINE_REDIS_SERVER").map_or_else(|| "redis-server".into(), PathBuf::from);
        let port = free_port();
        let dir = tempfile::tempdir().unwrap();
        let arguments = arguments.iter().map(|argument| match *argument {
            FREE_PORT => free_port().to_string(),
            other => other.to_owned(),
        });
        let child = Process::new(binary)
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
            .args(arguments)
            .current_dir(dir.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self(child, port, dir)
    }

    pub(crate) fn addr(&self) -> NodeAddr {
        NodeAddr::new("127.0.0.1", self.1)
    }

    fn url(&self) -> String {
        format!("redis://{}", self.addr())
    }
}

impl Drop for Single {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn what_is_no_cluster_or_not_there_is_told_apart() {
    let single = Single::start(&[]).await;
    let refused = refusal(options(vec![single.url()])).await;
    assert_eq!(refused.kind(), ErrorKind::Misconfigured);
    assert!(refused.to_string().contains("cluster-enabled yes"), "{refused}");

    let empty = Single::start(&["--cluster-enabled", "yes", "--cluster-port", FREE_PORT]).await;
    let refused = refusal(options(vec![empty.url()])).await;
    assert_eq!(refused.kind(), ErrorKind::Misconfigured);
    assert!(refused.to_string().contains("no slot is assigned"), "{refused}");

    // A port that nothing gives out.
    let nobody = "redis://127.0.0.1:1".to_owned();
    drop(single);
    let refused = refusal(options(vec![nobody.clone()])).await;
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
    for wanted in ["no seed answered", "Is the address right", "tideline cluster up"] {
        assert!(refused.to_string().contains(wanted), "{wanted}: {refused}");
    }
    for wrong in ["http://127.0.0.1:1", "redis://", "redis://127.0.0.1:99999", "unix:///tmp/x"] {
        let refused = refusal(options(vec![wrong.into()])).await;
        assert!(
            matches!(refused.kind(), ErrorKind::Invalid | ErrorKind::Unavailable),
            "{wrong}: {refused:?}"
        );
    }
    assert_eq!(refusal(options(Vec::new())).await.kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn a_dead_seed_among_living_ones_does_no_harm() {
    let cluster = own(ClusterSpec::ephemeral()).await;
    let mut seeds = vec!["redis://127.0.0.1:1".to_owned()];
    seeds.extend(cluster.urls().into_iter().take(1));
    let store = Store::open(options(seeds)).await.unwrap();
    assert_eq!(store.router().primaries().len(), 3);
}

pub(crate) fn counted<'a>(
    snapshot: Snapshot,
    name: &str,
    labels: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> u64 {
    let labels: Vec<(&str, &str)> = labels.into_iter().collect();
    let metrics = snapshot.into_vec().into_iter();
    let of = metrics.filter(|(key, ..)| {
        let key = key.key();
        let has = |(k, v): &(&str, &str)| key.labels().any(|l| l.key() == *k && l.value() == *v);
        key.name() == name && labels.iter().all(has)
    });
    of.map(|(.., value)| match value {
        DebugValue::Counter(count) => count,
        DebugValue::Gauge(_) => 1,
        DebugValue::Histogram(values) => values.len() as u64,
    })
    .sum()
}

#[tokio::test]
async fn commands_batches_redirects_retries_and_fences_are_counted_per_server() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let guard = metrics::set_default_local_recorder(&recorder);
    let cluster = own(ClusterSpec::ephemeral()).await;
    let store = store_on(&cluster).await;
    let counts = |name: &str, label| counted(snapshotter.snapshot(), name, label);
    counts("", None);
    let batch: Batch = (0..160).map(|i| incr_raw(&raw_key(&store, i % 16, "counted"))).collect();
    store.router().run(batch).await.into_iter().for_each(|a| drop(a.unwrap()));
    assert_eq!(counts("tideline_redis_commands_total", None), 160);
    let batch: Batch = (0..160).map(|i| incr_raw(&raw_key(&store, i % 16, "counted"))).collect();
    store.router().run(batch).await.into_iter().for_each(|a| drop(a.unwrap()));
    assert_eq!(counts("tideline_redis_batches_total", None), 3);
    // A moved slot, met before the map is looked at.
    let key = raw_key(&store, 0, "counted");
    let from = cluster.owner_of(key.1).await.unwrap();
    let to = cluster.nodes().iter().map(|n| n.addr()).find(|a| *a != from).unwrap();
    cluster.begin_migration(key.1, &from, &to).await.unwrap();
    while cluster.migrate_keys(key.1, &from, &to, 10).await.unwrap() > 0 {}
    store.router().call(get_raw(&key)).await.unwrap();
    assert!(counts("tideline_redis_retries_total", Some(("cause", "ask"))) >= 1);
    cluster.end_migration(key.1, &to).await.unwrap();
    store.router().call(get_raw(&key)).await.unwrap();
    let causes = snapshotter.snapshot();
    println!(
        "redirects after the move: {}",
        counted(causes, "tideline_redis_retries_total", Some(("cause", "moved")))
    );
    let answer = store.router().ask(set_raw(&key, 1)).await.unwrap();
    let mut touched = tideline::cluster::TouchedServers::new();
    touched.add(&answer);
    super::fences::settled(&store, &touched).await.unwrap();
    assert_eq!(counts("tideline_fence_rounds_total", Some(("outcome", "without_replicas"))), 1);
    // A dropped connection: noticed, opened again, the command repeated.
    let node = NodeAddr::new("127.0.0.1", to.port);
    tell(&node, "CLIENT KILL TYPE normal").await;
    store.router().call(get_raw(&key)).await.unwrap();
    assert!(counts("tideline_redis_connects_total", None) >= 1);
    eventually("the map is looked at", async || {
        counted(snapshotter.snapshot(), "tideline_slot_map_refreshes_total", None) > 0
    })
    .await;
    drop(guard);
}

#[tokio::test]
async fn a_command_of_its_own_is_answered_with_the_servers_error() {
    let cluster = own(ClusterSpec::ephemeral()).await;
    let store = store_on(&cluster).await;
    let key = raw_key(&store, 0, "text");
    store.router().call(Request::write(key.1, Command::new("SET").arg(&key.0).arg("text"))).await.unwrap();
    let failed = store.router().call(incr_raw(&key)).await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Internal);
    assert!(failed.to_string().contains("not an integer"), "{failed}");
    let answer = store.router().ask(incr_raw(&key)).await.unwrap();
    assert_eq!(answer.reply.error().map(|(code, _)| code), Some("ERR"));
}

#[tokio::test]
async fn thousands_of_tries_of_one_batch_do_not_pile_up() {
    // Each try used to be a future inside the one before: with pauses this short the stack overflowed.
    let cluster = own(ClusterSpec::ephemeral()).await;
    let router = RouterSettings {
        backoff: (Duration::from_micros(200), Duration::from_micros(400)),
        deadline: Duration::from_secs(4),
        ..RouterSettings::default()
    };
    let store = store_with(&cluster, router).await;
    let victim = store.router().owner(0).unwrap();
    cluster.node(&victim).unwrap().kill().unwrap();
    let refused = store.router().call(Request::read(0, Command::new("GET").arg("{06S}x"))).await.unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::Unavailable), "{refused}");
}
