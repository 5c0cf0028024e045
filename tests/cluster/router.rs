//! What the router promises when servers are missing, wrong, silent or new.

use std::path::PathBuf;
use std::process::{Child, Command as Process, Stdio};
use std::time::{Duration, Instant};

use futures::future::join_all;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshot};
use tideline::cluster::{Batch, Command, NodeAddr, Request, RouterSettings, Severity};
use tideline::local_cluster::ClusterSpec;
use tideline::{Error, ErrorKind, Store, StoreOptions};

use super::harness::{
    PATIENCE, account, eventually, get_raw, impatient, incr_raw, members, options, own, pairs, raw_key,
    set_raw, store_on, store_with, tell,
};

/// Gives up soon.
fn hasty() -> RouterSettings {
    RouterSettings { deadline: Duration::from_secs(2), ..impatient() }
}

async fn hasty_store(urls: Vec<String>) -> Store {
    Store::open(StoreOptions { router: hasty(), ..options(urls) }).await.unwrap()
}

async fn refusal(options: StoreOptions) -> Error {
    let since = Instant::now();
    let refused = Store::open(options).await.unwrap_err();
    assert!(since.elapsed() < PATIENCE / 3, "it took {:?} to say: {refused}", since.elapsed());
    println!("{:?}: {refused}", refused.kind());
    refused
}

/// The buckets of a store by the server that has them.
fn buckets_at(store: &Store, addr: &NodeAddr) -> Vec<u16> {
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
        let since = Instant::now();
        let failed = store.router().call(request).await.unwrap_err();
        assert!(since.elapsed() < Duration::from_secs(6), "{:?}", since.elapsed());
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
    let since = Instant::now();
    let batch: Batch = (0..16)
        .flat_map(|b| [set_raw(&raw_key(&store, b, "k"), 1), get_raw(&raw_key(&store, b, "k"))])
        .collect();
    for answer in store.router().run(batch).await {
        let failed = answer.unwrap_err();
        assert!(matches!(failed.kind(), ErrorKind::Unavailable | ErrorKind::Unknown), "{failed:?}");
    }
    assert!(since.elapsed() < Duration::from_secs(6), "{:?}", since.elapsed());
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
            assert!(tell(&node.addr(), "FUNCTION FLUSH").await.starts_with("+OK"));
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
    let cluster = own(ClusterSpec::ephemeral()).await;
    let second = cluster.nodes()[1].addr();
    tell(&second, "CONFIG SET maxmemory-policy allkeys-lru").await;
    let refused = refusal(options(cluster.urls())).await;
    assert_eq!(refused.kind(), ErrorKind::Misconfigured);
    for part in ["allkeys-lru", "noeviction", &second.to_string()] {
        assert!(refused.to_string().contains(part), "{refused}");
    }
    tell(&second, "CONFIG SET maxmemory-policy volatile-lru").await;
    tell(&second, "CONFIG SET cluster-require-full-coverage yes").await;
    tell(&second, "CONFIG SET zset-max-listpack-entries 20").await;
    let store = store_on(&cluster).await;
    let findings = store.router().findings();
    for part in ["volatile-lru", "cluster-require-full-coverage", "zset-max-listpack-entries"] {
        let finding =
            findings.iter().find(|f| f.text.contains(part)).unwrap_or_else(|| panic!("{part}: {findings:?}"));
        assert_eq!((&finding.node, finding.severity), (&second, Severity::Warning));
    }
    assert_eq!(store.router().limits().zset_entries, 20);
    tell(&second, "CONFIG SET maxmemory-policy noeviction").await;
    tell(&second, "CONFIG SET cluster-require-full-coverage no").await;
    tell(&second, "CONFIG SET zset-max-listpack-entries 128").await;
    assert_eq!(store_on(&cluster).await.router().findings(), []);
}

/// A server of ours that is in no cluster; ends with this.
struct Single(Child, u16, #[expect(dead_code, reason = "holds its files")] tempfile::TempDir);

impl Single {
    async fn start(arguments: &[&str]) -> Self {
        let binary =
            std::env::var_os("TIDELINE_REDIS_SERVER").map_or_else(|| "redis-server".into(), PathBuf::from);
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let dir = tempfile::tempdir().unwrap();
        let child = Process::new(binary)
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
            .args(arguments)
            .current_dir(dir.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let single = Self(child, port, dir);
        eventually("it answers", async || tell(&single.addr(), "PING").await.starts_with("+PONG")).await;
        single
    }

    fn addr(&self) -> NodeAddr {
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

    let bus = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let empty = Single::start(&["--cluster-enabled", "yes", "--cluster-port", &bus]).await;
    let refused = refusal(options(vec![empty.url()])).await;
    assert_eq!(refused.kind(), ErrorKind::Misconfigured);
    assert!(refused.to_string().contains("no slot is assigned"), "{refused}");

    let nobody = single.url();
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

#[tokio::test]
async fn callers_of_a_frozen_server_wait_within_their_bound_and_hold_up_nobody_else() {
    let cluster = own(ClusterSpec::ephemeral()).await;
    let router = RouterSettings {
        in_flight_per_node: 8,
        pipeline_length: 4,
        deadline: Duration::from_secs(3),
        ..impatient()
    };
    let store = store_with(&cluster, router).await;
    let frozen = &cluster.nodes()[0];
    let stuck = buckets_at(&store, &frozen.addr());
    let others: Vec<u16> = (0..16).filter(|b| !stuck.contains(b)).collect();
    frozen.freeze().unwrap();
    let started = Instant::now();
    let callers = (0..200).map(|i| {
        let key = raw_key(&store, stuck[i % stuck.len()], "stuck");
        let (store, is_read) = (&store, i % 2 == 0);
        async move {
            let failed =
                store.router().call(if is_read { get_raw(&key) } else { incr_raw(&key) }).await.unwrap_err();
            (is_read, failed)
        }
    });
    let bystanders = async {
        let mut longest = Duration::ZERO;
        let mut rounds = 0;
        while started.elapsed() < Duration::from_millis(2_500) {
            let since = Instant::now();
            let key = raw_key(&store, others[rounds % others.len()], "free");
            store.router().call(set_raw(&key, 1)).await.unwrap();
            longest = longest.max(since.elapsed());
            rounds += 1;
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        (longest, rounds)
    };
    let (failures, (longest, rounds)) = futures::join!(join_all(callers), bystanders);
    println!(
        "bystanders: {rounds} rounds, the longest took {longest:?}; callers ended after {:?}",
        started.elapsed()
    );
    assert!(started.elapsed() < Duration::from_secs(8));
    assert!(longest < Duration::from_secs(1), "held up for {longest:?}");
    let mut kinds = std::collections::BTreeMap::new();
    for (is_read, failed) in &failures {
        *kinds.entry(format!("{:?}", failed.kind())).or_insert(0) += 1;
        assert!(
            matches!(failed.kind(), ErrorKind::Overloaded | ErrorKind::Unavailable | ErrorKind::Unknown),
            "{failed:?}"
        );
        assert!(!(*is_read && failed.kind() == ErrorKind::Unknown), "a read is never unknown: {failed}");
        assert!(failed.to_string().contains(&frozen.addr().to_string()), "{failed}");
    }
    println!("callers of the frozen server: {kinds:?}");
    let unknown = failures.iter().filter(|(_, f)| f.kind() == ErrorKind::Unknown).count();
    let overloaded = failures.iter().filter(|(_, f)| f.kind() == ErrorKind::Overloaded).count();
    assert!(unknown > 0 && overloaded > 0, "{kinds:?}");
}

#[tokio::test]
async fn a_write_that_may_have_run_is_never_called_merely_overloaded() {
    // A write timed out once, then found no room for its second try before the deadline, and its caller was told
    // "overloaded": nothing written, try later. But the first sending lay in the server's socket and ran.
    let cluster = own(ClusterSpec::ephemeral()).await;
    let router = RouterSettings {
        in_flight_per_node: 1,
        pipeline_length: 1,
        deadline: Duration::from_millis(1_300),
        ..impatient()
    };
    let store = store_with(&cluster, router).await;
    let frozen = &cluster.nodes()[0];
    let bucket = buckets_at(&store, &frozen.addr())[0];
    frozen.freeze().unwrap();
    let keys: Vec<_> = (0..20).map(|i| raw_key(&store, bucket, &format!("once{i}"))).collect();
    let failures = join_all(keys.iter().map(|key| store.router().call(incr_raw(key)))).await;
    frozen.thaw().unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    for (key, failed) in keys.iter().zip(failures) {
        let mut count = None;
        eventually("it answers", async || {
            count = store.router().call(get_raw(key)).await.ok();
            count.is_some()
        })
        .await;
        let failed = failed.unwrap_err();
        if !count.unwrap().is_nil() {
            assert_eq!(failed.kind(), ErrorKind::Unknown, "it has run: {failed}");
        }
    }
}

#[tokio::test]
async fn a_write_that_must_not_be_repeated_ends_as_unknown_and_runs_at_most_once() {
    let cluster = own(ClusterSpec::ephemeral()).await;
    let store = store_on(&cluster).await;
    let frozen = &cluster.nodes()[2];
    let bucket = buckets_at(&store, &frozen.addr())[0];
    let keys: Vec<_> = (0..10).map(|i| raw_key(&store, bucket, &format!("once{i}"))).collect();
    // The connection is there before the server freezes: what is sent is really sent.
    store.router().call(set_raw(&keys[0], 0)).await.unwrap();
    frozen.freeze().unwrap();
    let batch: Batch = keys.iter().map(|key| incr_raw(key).once()).collect();
    for answer in store.router().run(batch).await {
        let failed = answer.unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::Unknown, "{failed}");
        assert!(failed.to_string().contains("may have run"), "{failed}");
    }
    frozen.thaw().unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    for key in &keys {
        let count = store.router().call(get_raw(key)).await.unwrap();
        assert!(count.is_nil() || count.text().unwrap().parse::<u64>().unwrap() <= 1, "{count:?}");
    }
}

#[tokio::test]
async fn what_follows_a_write_of_unknown_fate_in_its_group_does_not_run() {
    // Of a pipeline whose replies never came, a command chained behind a `once` write was hung onto the command
    // before that write instead, and sent again without it.
    let cluster = own(ClusterSpec::ephemeral()).await;
    let store = store_on(&cluster).await;
    let frozen = &cluster.nodes()[0];
    let bucket = buckets_at(&store, &frozen.addr())[0];
    let key = |name: &str| raw_key(&store, bucket, name);
    store.router().call(set_raw(&key("warm"), 0)).await.unwrap();
    frozen.freeze().unwrap();
    let thaw = async {
        tokio::time::sleep(Duration::from_millis(900)).await;
        frozen.thaw().unwrap();
    };
    let mut batch = Batch::new();
    batch.push(set_raw(&key("before"), 1));
    batch.push_ordered([incr_raw(&key("first")).once(), incr_raw(&key("second"))]);
    let (answers, ()) = futures::join!(store.router().run(batch), thaw);
    assert!(answers[0].is_ok(), "{:?}", answers[0]);
    assert_eq!(answers[1].as_ref().unwrap_err().kind(), ErrorKind::Unknown);
    assert_eq!(answers[2].as_ref().unwrap_err().kind(), ErrorKind::Unknown, "it must not outrun the first");
    let second = store.router().call(get_raw(&key("second"))).await.unwrap();
    assert!(second.is_nil() || second.text().unwrap() == "1", "sent a second time: {second:?}");
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
    let mut touched = tideline::cluster::Touched::new();
    touched.add(&answer);
    store.router().fence(&touched).await.unwrap();
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
