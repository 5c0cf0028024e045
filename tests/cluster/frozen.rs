//! What callers of a server that stands still are promised: bounds, and writes whose fate is unknown.

use std::cell::Cell;
use std::time::Duration;

use futures::future::join_all;
use metrics_util::debugging::DebuggingRecorder;
use tideline::ErrorKind;
use tideline::cluster::{Batch, RouterSettings};
use tideline_local_cluster::ClusterSpec;

use super::harness::{
    eventually, get_raw, impatient, in_the_end, incr_raw, own, raw_key, set_raw, store_on, store_with,
};
use super::router::{buckets_at, counted};

#[tokio::test]
async fn callers_of_a_frozen_server_wait_within_their_bound_and_hold_up_nobody_else() {
    const IN_FLIGHT: usize = 8;
    let cluster = own(ClusterSpec::ephemeral()).await;
    let router = RouterSettings {
        in_flight_per_node: IN_FLIGHT,
        pipeline_length: 4,
        deadline: Duration::from_secs(3),
        ..impatient()
    };
    let store = store_with(&cluster, router).await;
    let frozen = &cluster.nodes()[0];
    let stuck = buckets_at(&store, &frozen.addr());
    let others: Vec<u16> = (0..16).filter(|b| !stuck.contains(b)).collect();
    frozen.freeze().unwrap();
    let is_over = Cell::new(false);
    let callers = (0..200).map(|i| {
        let key = raw_key(&store, stuck[i % stuck.len()], "stuck");
        let (store, is_read) = (&store, i % 2 == 0);
        async move {
            let failed =
                store.router().call(if is_read { get_raw(&key) } else { incr_raw(&key) }).await.unwrap_err();
            (is_read, failed)
        }
    });
    let callers = async {
        let failures = in_the_end("callers", join_all(callers)).await;
        is_over.set(true);
        failures
    };
    let bystanders = async {
        let mut rounds = 0;
        while !is_over.get() {
            let key = raw_key(&store, others[rounds % others.len()], "free");
            store.router().call(set_raw(&key, 1)).await.unwrap();
            rounds += 1;
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        rounds
    };
    let (failures, rounds) = futures::join!(callers, bystanders);
    println!("bystanders had {rounds} answers while callers waited");
    // Whoever is held up has one when callers end, or two.
    assert!(rounds > 10, "{rounds} answers");
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
    // Of a hundred writes only those were sent that had room. The others have waited for that until the deadline, or
    // until the server was known to be away: which of the two comes first is the machine's affair.
    assert!((1..=IN_FLIGHT * 2).contains(&unknown), "{kinds:?}");
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
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let cluster = own(ClusterSpec::ephemeral()).await;
    let store = store_on(&cluster).await;
    let frozen = &cluster.nodes()[0];
    let bucket = buckets_at(&store, &frozen.addr())[0];
    let key = |name: &str| raw_key(&store, bucket, name);
    store.router().call(set_raw(&key("warm"), 0)).await.unwrap();
    let retries = || counted(snapshotter.snapshot(), "tideline_redis_retries_total", [("cause", "timeout")]);
    retries();
    frozen.freeze().unwrap();
    let thaw = async {
        // Not before the pipeline was given up.
        eventually("what may be sent again is", async || retries() > 0).await;
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
