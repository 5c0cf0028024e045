//! What callers of a server that stands still are promised: bounds, and writes whose fate is unknown.

use std::time::Duration;

use futures::future::join_all;
use metrics_util::debugging::DebuggingRecorder;
use tideline::cluster::{Batch, RouterSettings};
use tideline::{Error, ErrorKind, Store};
use tideline_local_cluster::ClusterSpec;

use super::harness::{
    eventually, get_raw, impatient, in_the_end, incr_raw, own, raw_key, set_raw, store_on, store_with,
};
use super::router::{buckets_at, counted};

/// What a call to that bucket ends with, and whether it was a read.
async fn one_call(store: &Store, bucket: u16, is_read: bool) -> (bool, Error) {
    let key = raw_key(store, bucket, "stuck");
    let request = if is_read { get_raw(&key) } else { incr_raw(&key) };
    (is_read, store.router().call(request).await.unwrap_err())
}

#[tokio::test]
async fn callers_of_a_frozen_server_wait_within_their_bound_and_hold_up_nobody_else() {
    const IN_FLIGHT: usize = 8;
    // Nobody is called dead.
    let cluster = own(ClusterSpec::ephemeral().node_timeout(Duration::from_secs(300))).await;
    let router = RouterSettings {
        in_flight_per_node: IN_FLIGHT,
        pipeline_length: 4,
        deadline: Duration::from_secs(3),
        ..impatient()
    };
    // The same, whose callers wait for ever.
    let patient =
        store_with(&cluster, RouterSettings { deadline: Duration::from_secs(3_600), ..router.clone() }).await;
    let store = store_with(&cluster, router).await;
    let frozen = &cluster.nodes()[0];
    let stuck = buckets_at(&store, &frozen.addr());
    let others: Vec<u16> = (0..16).filter(|b| !stuck.contains(b)).collect();
    let of_all = |store| {
        let at = &stuck;
        join_all((0..200).map(move |i| one_call(store, at[i % at.len()], i % 2 == 0)))
    };
    frozen.freeze().unwrap();
    let bystanders = async {
        for round in 0..50 {
            let key = raw_key(&patient, others[round % others.len()], "free");
            patient.router().call(set_raw(&key, 1)).await.unwrap();
        }
    };
    // Callers come first.
    tokio::select! {
        biased;
        _ = of_all(&patient) => panic!("callers of a frozen server have ended"),
        () = in_the_end("bystanders", bystanders) => {}
    }
    let failures = in_the_end("callers", of_all(&store)).await;
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
    // Nobody is called dead: all who find no room wait for it until their deadline.
    let cluster = own(ClusterSpec::ephemeral().node_timeout(Duration::from_secs(300))).await;
    let router = RouterSettings {
        in_flight_per_node: 1,
        pipeline_length: 1,
        deadline: Duration::from_millis(1_300),
        ..impatient()
    };
    let store = store_with(&cluster, router).await;
    let frozen = &cluster.nodes()[0];
    let bucket = buckets_at(&store, &frozen.addr())[0];
    let count = async |key: &(String, u16)| store.router().call(get_raw(key)).await.ok();
    let has_run = async |key: &(String, u16)| count(key).await.is_some_and(|count| !count.is_nil());
    // Who has the one place when a deadline ends is a matter of luck: until it is another one than the first caller.
    for round in 0.. {
        assert!(round < 20, "the first one always had room when its deadline ended");
        let keys: Vec<_> = (0..20).map(|i| raw_key(&store, bucket, &format!("once{round}-{i}"))).collect();
        // The connection is there before the server freezes: what is sent is really sent, by the first one.
        eventually("it is connected", async || count(&keys[0]).await.is_some()).await;
        frozen.freeze().unwrap();
        let failures = join_all(keys.iter().map(|key| store.router().call(incr_raw(key)))).await;
        frozen.thaw().unwrap();
        eventually("the first sending runs", async || has_run(&keys[0]).await).await;
        let failures: Vec<_> = failures.into_iter().map(Result::unwrap_err).collect();
        for (key, failed) in keys.iter().zip(&failures) {
            eventually("it answers", async || count(key).await.is_some()).await;
            if has_run(key).await {
                assert_eq!(failed.kind(), ErrorKind::Unknown, "it has run: {failed}");
            }
        }
        let overloaded = failures.iter().filter(|failed| failed.kind() == ErrorKind::Overloaded).count();
        if failures[0].to_string().contains("none came free before the deadline") && overloaded > 0 {
            return;
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
