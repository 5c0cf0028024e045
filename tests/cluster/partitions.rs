//! Servers that are cut off from each other, while clients reach all of them.

use tideline::cluster::{NodeAddr, RouterSettings};
use tideline::post::Draft;
use tideline::{AccountId, Engine, PostAck, PostId, Query, StoreOptions};
use tideline_local_cluster::ClusterSpec;

use super::bus::{Bus, Cut};
use super::engine::{accounts, drained, engine_with, small};
use super::harness::{Own, PATIENCE, answer, eventually, impatient, options, own_with, tell};

/// A primary.
const VICTIM: usize = 1;

/// Three primaries with replicas, which go on answering reads when they are cut off.
async fn partitionable() -> (Own, Bus) {
    let spec = ClusterSpec::ephemeral()
        .replicas(1)
        .node_timeout(std::time::Duration::from_secs(2))
        .config("cluster-allow-reads-when-down", "yes");
    let (cluster, bus) = own_with(Bus::up(spec)).await.unwrap();
    cluster.wait_healthy(PATIENCE).await.unwrap();
    (cluster, bus)
}

fn server_of(engine: &Engine, account: AccountId) -> NodeAddr {
    let keys = engine.store().keys();
    engine.store().router().owner(keys.buckets().slot(keys.buckets().of_account(account.get()))).unwrap()
}

/// Who asks the deposed primary before that one notices that it hears nobody is answered by it: a post that is only
/// accepted stands there alone, and goes with it.
async fn hears_of(engine: &Engine, account: AccountId, new: &NodeAddr) {
    eventually("another one takes over", async || server_of(engine, account) == *new).await;
}

/// Settings of one that never looks at the map of itself, as between two looks. A slow answer would make it look.
fn looks_never() -> RouterSettings {
    RouterSettings {
        refresh_period: PATIENCE * 10,
        response_timeout: PATIENCE,
        deadline: PATIENCE * 2,
        ..impatient()
    }
}

#[tokio::test]
async fn a_fill_believes_nobody_who_was_replaced_and_is_cut_off() {
    // H72: a fill read the author's outbox from a primary that the others had replaced, and claimed that nothing else
    // was there: a post that was acknowledged as replicated, and delivered, was missing for good.
    let (cluster, bus) = partitionable().await;
    let deposed = cluster.nodes()[VICTIM].addr();
    let tenant = options(cluster.urls());
    let slow = engine_with(StoreOptions { router: looks_never(), ..tenant.clone() }, small()).await;
    let findings = slow.health().await.unwrap().findings;
    assert!(findings.iter().any(|f| f.text.contains("cluster-allow-reads-when-down")), "{findings:?}");
    let quick = engine_with(StoreOptions { router: impatient(), ..tenant }, small()).await;
    let people = accounts(&quick, 60).await;
    let author = *people.iter().find(|id| server_of(&quick, **id) == deposed).unwrap();
    let reader = *people.iter().find(|id| server_of(&quick, **id) != deposed).unwrap();
    quick.follow(reader, author).await.unwrap();
    replicated(&quick, author, "old").await;
    drained(&quick).await;
    let replica = cluster.replica_of(&deposed).await.unwrap().addr();
    bus.cut(Cut::Off(VICTIM));
    hears_of(&quick, author, &replica).await;
    let mut new = None;
    eventually("the new primary takes posts", async || {
        let draft = Draft::text("new").token("new");
        new = quick.publish_with(author, &draft, PostAck::Replicated).await.ok();
        new.as_ref().is_some_and(|new| new.reached == PostAck::Accepted || new.reached == PostAck::Replicated)
    })
    .await;
    let mut new = new.unwrap();
    new.delivery.all().await.unwrap();
    assert_eq!(server_of(&slow, author), deposed, "the test's own ground: it has not heard of that");
    let filled = slow.warm(reader).await;
    bus.cut(Cut::Nobody);
    cluster.wait_healthy(PATIENCE).await.unwrap();
    assert!(filled.is_err(), "{filled:?}");
    eventually("the post is on the page", async || {
        let page = quick.as_reader(reader).read(&Query::home()).await;
        page.is_ok_and(|page| page.ids().contains(&new.id))
    })
    .await;
}

/// The one exception to L3: who has not looked at the map since a failover asks the primary that was replaced. Once it
/// has looked, or that one has heard of it, it is over, without anybody doing anything.
#[tokio::test]
async fn ones_own_post_is_missing_only_where_the_map_is_older_than_a_failover() {
    let (cluster, bus) = partitionable().await;
    let deposed = cluster.nodes()[VICTIM].addr();
    let tenant = options(cluster.urls());
    let of = async |router| engine_with(StoreOptions { router, ..tenant.clone() }, small()).await;
    let (slow, quick, other) = (of(looks_never()).await, of(impatient()).await, of(impatient()).await);
    let people = accounts(&quick, 60).await;
    let author = *people.iter().find(|id| server_of(&quick, **id) == deposed).unwrap();
    quick.warm(author).await.unwrap();
    let old = replicated(&quick, author, "old").await;
    drained(&quick).await;
    let replica = cluster.replica_of(&deposed).await.unwrap().addr();
    let page = async |engine: &Engine| {
        let page = engine.as_reader(author).read(&Query::home()).await;
        page.map(|page| page.ids())
    };
    bus.cut(Cut::Off(VICTIM));
    hears_of(&quick, author, &replica).await;
    let mut new = None;
    eventually("the new primary takes posts", async || {
        new = quick.publish(author, &Draft::text("new").token("new")).await.ok().map(|new| new.id);
        new.is_some()
    })
    .await;
    let all = [new.unwrap(), old];
    assert_eq!(server_of(&slow, author), deposed, "the test's own ground: it has not heard of that");
    assert_eq!(page(&slow).await.unwrap(), [old]);
    // While the servers are cut off from each other: whoever looks sees it.
    eventually("the map is new", async || server_of(&other, author) == replica).await;
    assert_eq!(page(&other).await.unwrap(), all);
    bus.cut(Cut::Nobody);
    // Whom it asks has heard of it, and sends it on.
    eventually("the page is whole", async || page(&slow).await.is_ok_and(|page| page == all)).await;
    assert_eq!(server_of(&slow, author), replica);
}

/// Publishes a post that a replica has: one that is slow is waited for.
async fn replicated(engine: &Engine, author: AccountId, text: &str) -> PostId {
    let mut id = None;
    eventually("a replica has it", async || {
        let draft = Draft::text(text).token(text);
        id =
            engine.publish_with(author, &draft, PostAck::Replicated).await.ok().map(|published| published.id);
        id.is_some()
    })
    .await;
    id.unwrap()
}

/// What verify's faults rest on: a cut one way only.
#[tokio::test]
async fn who_hears_nobody_refuses_and_who_is_not_heard_is_replaced() {
    let (cluster, bus) = partitionable().await;
    let victim = cluster.nodes()[VICTIM].addr();
    let replica = cluster.replica_of(&victim).await.unwrap().addr();
    bus.cut(Cut::Deaf(VICTIM));
    eventually("it takes itself for cut off", async || {
        tell(&victim, "CLUSTER INFO").await.contains("cluster_state:fail")
    })
    .await;
    assert!(
        answer(&victim, "ROLE").await.contains("master") && answer(&replica, "ROLE").await.contains("slave")
    );
    bus.cut(Cut::Nobody);
    cluster.wait_healthy(PATIENCE).await.unwrap();
    bus.cut(Cut::Mute(VICTIM));
    // It hears of that while it still is not heard.
    eventually("another one takes over", async || tell(&replica, "ROLE").await.contains("master")).await;
    eventually("it gives way", async || tell(&victim, "ROLE").await.contains("slave")).await;
    bus.cut(Cut::Nobody);
    cluster.wait_healthy(PATIENCE).await.unwrap();
}
