//! An instance that stops while a server is away.

use std::time::Duration;

use metrics_util::debugging::DebuggingRecorder;
use tideline::cluster::{Command, Request, RouterSettings};
use tideline::{Engine, Query, StoreOptions};

use super::super::{accounts, drained, engine_with, small};
use super::{few_places, servers, split, tenant_on};
use crate::harness::{Own, PATIENCE, eventually, in_the_end};
use crate::router::counted;

/// An engine whose commands are tried for longer than any test.
async fn patient_engine(cluster: &Own) -> Engine {
    let tenant = tenant_on(cluster);
    let router = RouterSettings { deadline: PATIENCE * 100, ..tenant.router };
    engine_with(StoreOptions { router, ..tenant }, few_places()).await
}

/// How many leases there are.
async fn leases(engine: &Engine) -> i64 {
    let (keys, buckets) = (engine.store().keys(), engine.store().keys().buckets());
    let first = buckets.all().next().unwrap();
    let key = format!("{}{{{}}}v", keys.prefix(), buckets.tag(first));
    let length = Request::read(buckets.slot(first), Command::new("HLEN").arg(&key));
    engine.store().router().call(length).await.unwrap().int().unwrap()
}

#[tokio::test]
async fn a_shutdown_waits_for_no_server_that_is_away() {
    let cluster = servers().await;
    let engine = patient_engine(&cluster).await;
    let leases = engine.store().router().owner(0).unwrap();
    cluster.node(&leases).unwrap().freeze().unwrap();
    // Also if the lease is being renewed just then.
    tokio::time::sleep(small().lease_renewal * 2).await;
    let shutdown = engine.shutdown(Duration::from_millis(10));
    assert_eq!(in_the_end("a shutdown without the leases' server", shutdown).await.unwrap(), 0);
}

/// A fill for which nobody waits any more asked for an outbox there: the lease was renewed as long as that was tried,
/// and nobody took over what was left.
#[tokio::test]
async fn who_stops_gives_its_lease_back_whatever_it_does_beside_its_calls() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let cluster = servers().await;
    let engine = patient_engine(&cluster).await;
    let leases_at = engine.store().router().owner(0).unwrap();
    let server = engine.store().router().primaries().into_iter().find(|addr| *addr != leases_at).unwrap();
    let (there, living) = split(&engine, &accounts(&engine, 30).await, &server);
    engine.follow(living[0], there[0]).await.unwrap();
    drained(&engine).await;
    assert_eq!(leases(&engine).await, 1);
    cluster.node(&server).unwrap().freeze().unwrap();
    let reading = {
        let engine = engine.clone();
        tokio::spawn(async move { engine.as_reader(living[0]).read(&Query::home()).await.map(drop) })
    };
    eventually("the reader's home is being filled", async || {
        counted(snapshotter.snapshot(), "tideline_fills_total", [("outcome", "begun")]) > 0
    })
    .await;
    reading.abort();
    let shutdown = engine.shutdown(PATIENCE * 100);
    assert_eq!(in_the_end("a shutdown beside a fill", shutdown).await.unwrap(), 0);
    assert_eq!(leases(&engine).await, 0);
}
