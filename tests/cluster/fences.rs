//! The fence: what it says "yes" to is on replicas, and what it cannot vouch for it refuses.

use std::time::{Duration, Instant};

use futures::future::join_all;
use metrics_util::debugging::DebuggingRecorder;
use tideline::cluster::{FenceOutcome, NodeAddr, Replicas, RouterSettings, TouchedServers};
use tideline::{Error, ErrorKind, Store};
use tideline_local_cluster::{ClusterSpec, LocalCluster, LocalNode};

use super::harness::{
    Own, PATIENCE, answer, eventually, impatient, incr_raw, order, own, raw_key, replicated, set_raw,
    store_on, store_with, tell,
};
use super::router::{Single, counted};

/// Writes something in the first bucket; tells what to fence, and which server that is.
async fn write(store: &Store) -> (TouchedServers, NodeAddr) {
    let answer = store.router().ask(set_raw(&raw_key(store, 0, "fenced"), 1)).await.unwrap();
    let mut touched = TouchedServers::new();
    touched.add(&answer);
    (touched, answer.epoch.node().clone())
}

/// The first answer of a fence that is not "later": on a busy machine a replica may be behind for longer than a fence
/// waits.
pub(super) async fn settled(store: &Store, touched: &TouchedServers) -> Result<FenceOutcome, Error> {
    let since = Instant::now();
    loop {
        match store.router().fence(touched).await {
            Err(e) if matches!(e.kind(), ErrorKind::Unavailable | ErrorKind::Unknown) => {
                assert!(since.elapsed() < super::harness::PATIENCE, "{e}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            other => return other,
        }
    }
}

async fn with_replicas(cluster: &LocalCluster, replicas: Replicas) -> Store {
    store_with(cluster, RouterSettings { replicas, ..impatient() }).await
}

/// Whether a primary calls its replica dead.
async fn is_called_dead(primary: &NodeAddr, replica: &LocalNode) -> bool {
    let port = format!(":{}@", replica.addr().port);
    let nodes = answer(primary, "CLUSTER NODES").await;
    nodes.lines().find(|line| line.contains(&port)).is_some_and(|line| line.contains("fail"))
}

/// While that replica is frozen, so many fences in a row fail, as long as it isn't called dead; one holds once it is
/// awake.
async fn is_waited_for(store: &Store, replica: &LocalNode, fences: usize) {
    replica.freeze().unwrap();
    let (touched, addr) = write(store).await;
    for _ in 0..fences {
        let Err(refused) = store.router().fence(&touched).await else {
            assert!(is_called_dead(&addr, replica).await, "a fence went on without a replica");
            println!("NOT CHECKED: this machine was slower than the cluster's patience with a replica");
            break;
        };
        assert_eq!(refused.kind(), ErrorKind::Unavailable);
        // Not "0 of 1 replicas": a slow machine's connection gives up before WAIT does.
        assert!(refused.to_string().contains(&format!("fence at {addr}")), "{refused}");
    }
    replica.thaw().unwrap();
    settled(store, &touched).await.unwrap();
}

#[tokio::test]
async fn a_primary_that_restarted_cannot_vouch_for_what_it_said_before() {
    let cluster = own(ClusterSpec::ephemeral()).await;
    let store = store_on(&cluster).await;
    let (touched, addr) = write(&store).await;
    settled(&store, &touched).await.unwrap();
    let node = cluster.node(&addr).unwrap();
    node.kill().unwrap();
    let refused = store.router().fence(&touched).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable, "{refused}");
    cluster.restart(node.index).await.unwrap();
    let refused = settled(&store, &touched).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
    assert!(refused.to_string().contains(&addr.to_string()), "{refused}");
    // What is written again can be vouched for again.
    let (touched, _) = write(&store).await;
    settled(&store, &touched).await.unwrap();
}

#[tokio::test]
async fn a_primary_that_was_deposed_cannot_vouch_and_says_so_for_good() {
    // A fence of what a deposed primary had said answered "no slot there that is not moving", which means "try
    // again", and so it did for ever; its caller had to be told to run the step again.
    let cluster = own(replicated()).await;
    let store = store_on(&cluster).await;
    let (touched, addr) = write(&store).await;
    settled(&store, &touched).await.unwrap();
    let replica = cluster.replica_of(&addr).await.unwrap().addr();
    cluster.failover(&replica).await.unwrap();
    let refused = settled(&store, &touched).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
    eventually("the promoted server vouches for itself", async || {
        let (touched, now_at) = write(&store).await;
        now_at == replica && store.router().fence(&touched).await.is_ok()
    })
    .await;
    // Also after it is primary again, with all its data: what lay between is unknown.
    cluster.wait_healthy(super::harness::PATIENCE).await.unwrap();
    cluster.failover(&addr).await.unwrap();
    let refused = settled(&store, &touched).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
}

#[tokio::test]
async fn without_its_replica_a_fence_holds_or_goes_on_as_the_settings_say() {
    let cluster = own(replicated()).await;
    let required = with_replicas(&cluster, Replicas::Required).await;
    let preferred = with_replicas(&cluster, Replicas::Preferred).await;
    let absent = with_replicas(&cluster, Replicas::Absent).await;
    let (touched, addr) = write(&required).await;
    let (also_touched, _) = write(&preferred).await;
    settled(&required, &touched).await.unwrap();
    let replica = cluster.replica_of(&addr).await.unwrap();
    replica.kill().unwrap();
    // Silent, but not yet known to be dead: nobody may go on.
    for store in [&preferred, &required] {
        let (touched, _) = write(store).await;
        match store.router().fence(&touched).await {
            Err(refused) => assert_eq!(refused.kind(), ErrorKind::Unavailable, "{refused}"),
            // A machine so slow that it is known by now.
            Ok(_) => assert!(std::ptr::eq(store, &preferred) && is_called_dead(&addr, replica).await),
        }
    }
    settled(&absent, &also_touched).await.unwrap();
    settled(&preferred, &also_touched).await.unwrap();
    for _ in 0..8 {
        let refused = required.router().fence(&touched).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unavailable, "{refused}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    cluster.restart(replica.index).await.unwrap();
    settled(&required, &touched).await.unwrap();
}

#[tokio::test]
async fn a_replica_that_came_back_is_waited_for_although_the_map_still_calls_it_dead() {
    // Fences went by the map alone: for up to `refresh_period` they let pass what the returned replica did not have.
    // When the primary died in that time, it was gone.
    let cluster = own(replicated()).await;
    let early = store_on(&cluster).await;
    let (touched, addr) = write(&early).await;
    let replica = cluster.replica_of(&addr).await.unwrap();
    replica.kill().unwrap();
    settled(&early, &touched).await.unwrap();
    // Opened while the replica is dead, it never looks at the map again of itself.
    let router = RouterSettings { refresh_period: Duration::from_secs(600), ..impatient() };
    let store = store_with(&cluster, router).await;
    let (touched, _) = write(&store).await;
    settled(&store, &touched).await.unwrap();
    cluster.restart(replica.index).await.unwrap();
    cluster.wait_healthy(super::harness::PATIENCE).await.unwrap();
    is_waited_for(&store, replica, 1).await;
}

#[tokio::test]
async fn a_replica_that_hangs_holds_no_fence_for_longer_than_the_cluster_takes_to_call_it_dead() {
    // Its connection stands, and the primary counts it for a minute (`repl-timeout`).
    let cluster = own(replicated()).await;
    let store = with_replicas(&cluster, Replicas::Preferred).await;
    let (touched, addr) = write(&store).await;
    let replica = cluster.replica_of(&addr).await.unwrap();
    replica.freeze().unwrap();
    settled(&store, &touched).await.unwrap();
    replica.thaw().unwrap();
}

#[tokio::test]
async fn a_frozen_replica_makes_a_fence_fail_until_it_wakes() {
    // A node timeout far longer than the test: nobody is declared dead.
    let cluster = own(ClusterSpec::ephemeral().replicas(1).node_timeout(Duration::from_secs(30))).await;
    let store = store_on(&cluster).await;
    let (touched, addr) = write(&store).await;
    settled(&store, &touched).await.unwrap();
    let replica = cluster.replica_of(&addr).await.unwrap();
    is_waited_for(&store, replica, 3).await;
}

/// A cluster whose replicas name themselves by this address to their primaries.
async fn announcing(ip: &str) -> Own {
    let spec = ClusterSpec::ephemeral().replicas(1).node_timeout(PATIENCE);
    own(spec.config("replica-announce-ip", ip)).await
}

#[tokio::test]
async fn a_foreign_replica_never_stands_for_the_clusters_own() {
    // H73: a fence counted replicas. A standby elsewhere answered in the place of the only one that could be promoted:
    // six values that fences had covered were gone after its promotion. Also where primaries see other addresses than
    // clients.
    for ip in ["127.0.0.1", "127.0.0.2"] {
        let cluster = announcing(ip).await;
        for replicas in [Replicas::Required, Replicas::Preferred] {
            let store = with_replicas(&cluster, replicas).await;
            let (touched, addr) = write(&store).await;
            assert_eq!(settled(&store, &touched).await.unwrap(), FenceOutcome::Replicated);
            let foreign = Single::start(&["--replicaof", "127.0.0.1", &addr.port.to_string()]).await;
            let is_attached = async |port: u16| {
                let info = tell(&addr, "INFO replication").await;
                info.lines().any(|line| line.contains(&format!("port={port},state=online")))
            };
            eventually("the stranger is attached", async || is_attached(foreign.addr().port).await).await;
            let (touched, _) = write(&store).await;
            assert_eq!(settled(&store, &touched).await.unwrap(), FenceOutcome::Replicated);
            let replica = cluster.replica_of(&addr).await.unwrap();
            replica.freeze().unwrap();
            tell(&addr, "CLIENT KILL TYPE replica").await;
            eventually("only the stranger is attached", async || {
                is_attached(foreign.addr().port).await && !is_attached(replica.addr().port).await
            })
            .await;
            let (touched, _) = write(&store).await;
            for _ in 0..3 {
                let refused = store.router().fence(&touched).await.unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::Unavailable);
                assert!(refused.to_string().contains("not all of its replicas"), "{refused}");
            }
            replica.thaw().unwrap();
            assert_eq!(settled(&store, &touched).await.unwrap(), FenceOutcome::Replicated);
        }
    }
}

#[tokio::test]
async fn fences_that_wait_at_the_same_time_share_their_rounds() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let cluster = own(ClusterSpec::ephemeral().replicas(1)).await;
    // A round that fails is one more, for all who wait: a slow replica is waited for, and what fails is counted.
    let router = RouterSettings {
        fence_timeout: Duration::from_secs(10),
        response_timeout: PATIENCE,
        deadline: PATIENCE * 2,
        ..impatient()
    };
    let store = store_with(&cluster, router).await;
    let (mut touched, addr) = write(&store).await;
    touched.add(&store.router().ask(incr_raw(&raw_key(&store, 15, "other"))).await.unwrap());
    settled(&store, &touched).await.unwrap();
    let failed = || counted(snapshotter.snapshot(), "tideline_fence_rounds_total", [("outcome", "failed")]);
    failed();
    order(&addr, "CONFIG RESETSTAT").await;
    for fenced in join_all((0..500).map(|_| settled(&store, &touched))).await {
        fenced.unwrap();
    }
    let stats = answer(&addr, "INFO commandstats").await;
    let calls = |command: &str| -> u64 {
        let line =
            stats.lines().find_map(|l| l.strip_prefix(&format!("cmdstat_{command}:calls="))).unwrap_or("0,");
        line.split(',').next().unwrap().parse().unwrap()
    };
    // So many rounds as there were besides those that failed.
    let (rounds, failed) = (calls("wait"), failed());
    assert!((1..20 + failed).contains(&rounds), "500 fences took {rounds} rounds, {failed} of them failed");
    assert!(calls("set") == rounds || failed > 0, "{} writes in {rounds} rounds", calls("set"));
}
