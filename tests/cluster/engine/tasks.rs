//! Tasks that cannot be carried out, how many an instance takes, and how it ends.

use std::time::Duration;

use tideline::cluster::{Command, Request, RouterSettings};
use tideline::post::Draft;
use tideline::{AccountId, EngineSettings, StoreOptions};
use tideline_local_cluster::ClusterSpec;

use super::{accounts, at_key, drained, engine_with, small, tenant, walk_home};
use crate::harness::{eventually, in_the_end, options, own};

const OFTEN: Duration = Duration::from_millis(50);
/// A lease of an hour, as it stands there: nobody need renew it.
const LONG_LEASE: &str = "1.3600000";

#[tokio::test]
async fn what_cannot_be_carried_out_is_never_struck_and_never_taken_over_beyond_the_places() {
    let options = tenant(40);
    let first = engine_with(options.clone(), small()).await;
    let people = accounts(&first, 2).await;
    let [author, reader] = people[..] else { unreachable!() };
    first.follow(reader, author).await.unwrap();
    drained(&first).await;
    // Somebody has damaged the reader's home: every delivery fails.
    at_key(&first, 'h', reader, "SET", &["damaged"]).await;
    let mut posts = Vec::new();
    for n in 0..12 {
        posts.insert(0, first.publish(author, &Draft::text(format!("post {n}"))).await.unwrap().id);
    }
    assert!(first.health().await.unwrap().tasks >= 12);
    // A task that pauses holds nobody up.
    let shutdown = first.shutdown(Duration::from_secs(3_600));
    assert_eq!(in_the_end("a shutdown beside tasks that pause", shutdown).await.unwrap(), 0);

    let settings = EngineSettings { tasks_max: 4, tasks_at_once: 2, ..small() };
    let second = engine_with(options, settings).await;
    eventually("the other instance takes over what it has places for", async || {
        second.health().await.unwrap().tasks == 4
    })
    .await;
    for _ in 0..20 {
        let health = second.health().await.unwrap();
        assert!(health.tasks <= 4, "{} tasks with four places", health.tasks);
        assert_eq!(health.journal_entries, 12);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    at_key(&second, 'h', reader, "DEL", &[]).await;
    drained(&second).await;
    assert_eq!(walk_home(&second, reader, 20).await, posts);
}

#[tokio::test]
async fn a_lease_lasts_while_its_instance_drains() {
    let cluster = own(ClusterSpec::ephemeral().node_timeout(Duration::from_secs(30))).await;
    // So that the delivery below is waited for: what the router knows to be silent nobody waits for.
    let patient = RouterSettings { response_timeout: Duration::from_secs(15), ..RouterSettings::default() };
    let options = StoreOptions { router: patient, ..options(cluster.urls()) };
    let engine = engine_with(options, small()).await;
    let (router, buckets) = (engine.store().router(), engine.store().keys().buckets());
    let at = |account: AccountId| router.owner(buckets.slot(buckets.of_account(account.get()))).unwrap();
    let leases = router.owner(0).unwrap();
    let people = accounts(&engine, 40).await;
    let author = *people.iter().find(|id| at(**id) == leases).unwrap();
    let reader = *people.iter().find(|id| at(**id) != leases).unwrap();
    engine.follow(reader, author).await.unwrap();
    drained(&engine).await;
    let node = cluster.node(&at(reader)).unwrap();
    node.freeze().unwrap();
    engine.publish(author, &Draft::text("to somebody whose server sleeps")).await.unwrap();
    let key = format!("{}{{{}}}v", engine.store().keys().prefix(), buckets.tag(buckets.get(0).unwrap()));
    let living = async || {
        let all = Request::read(0, Command::new("HVALS").arg(&key));
        let all = router.call(all).await.unwrap().into_array().unwrap();
        all.iter().map(|lease| lease.text().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let stopping = engine.clone();
    let shutdown = tokio::spawn(async move { stopping.shutdown(Duration::from_secs(3_600)).await });
    // For longer than a lease lasts that isn't renewed.
    for _ in 0..8 {
        let said = living().await;
        assert_eq!(said.len(), 1);
        eventually("it is renewed", async || living().await != said).await;
    }
    assert!(!shutdown.is_finished());
    node.thaw().unwrap();
    assert_eq!(in_the_end("the shutdown", shutdown).await.unwrap().unwrap(), 0);
    assert!(living().await.is_empty());
    // Nor does a renewal that was on its way bring it back.
    tokio::time::sleep(small().lease_renewal * 2).await;
    assert!(living().await.is_empty());
}

/// H284. Of the living one searches a bucket. While two releases served a tenant that was the older one, of some
/// buckets, and what it couldn't read it left standing: an account that had signed up through the newer one, which was
/// killed, was not found by how its name begins until the last of the older release had gone.
#[tokio::test]
async fn what_the_searcher_of_a_bucket_leaves_standing_another_takes() {
    let options = tenant(40);
    let engine = engine_with(options.clone(), EngineSettings { scan_period: OFTEN, ..small() }).await;
    let (keys, buckets) = (engine.store().keys(), engine.store().keys().buckets());
    let people = accounts(&engine, 40).await;
    drained(&engine).await;
    let first = buckets.all().next().unwrap();
    let leases = format!("{}{{{}}}v", keys.prefix(), buckets.tag(first));
    let call = async |slot, command: Command| {
        engine.store().router().call(Request::write(slot, command)).await.unwrap()
    };
    // Many live beside it, by leases that last longer than any test, and search nothing.
    let others = (0..40u64)
        .fold(Command::new("HSET").arg(&leases), |all, n| all.arg(&(n << 32).to_be_bytes()).arg(LONG_LEASE));
    call(buckets.slot(first), others).await;
    for account in &people {
        let bucket = buckets.of_account(account.get());
        let journal = format!("{}{{{}}}j", keys.prefix(), buckets.tag(bucket));
        let entry = [&b"nobody..O"[..], &account.get().to_be_bytes()].concat();
        let left = Command::new("HSET").arg(&journal).arg(&account.get().to_be_bytes()).arg(&entry);
        call(buckets.slot(bucket), left).await;
    }
    eventually("all is done", async || engine.health().await.unwrap().journal_entries == 0).await;
}
