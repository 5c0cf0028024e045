//! Servers that die, freeze and wake in the middle of work.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use futures::future::join_all;
use metrics_util::debugging::DebuggingRecorder;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tideline::cluster::{NodeAddr, RouterSettings, TouchedServers};
use tideline::sharded::SortedSet;
use tideline::{AccountId, ErrorKind, PostId, Store, StoreOptions};
use tideline_local_cluster::{ClusterSpec, LocalCluster, LocalNode};

use super::harness::{
    Model, PATIENCE, eventually, get_raw, impatient, incr_raw, members, options, order, own, pairs, raw_key,
    replicated, seeded, set_raw, store_on, store_with, tell, walk_all,
};
use super::router::counted;

/// A node timeout after which nobody is called dead as long as a test lasts.
const NEVER: Duration = Duration::from_secs(300);
/// One after which somebody is.
const SOON: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Kill,
    Freeze,
}

impl Fault {
    fn strike(self, node: &LocalNode) {
        match self {
            Self::Kill => node.kill(),
            Self::Freeze => node.freeze(),
        }
        .unwrap();
    }

    async fn undo(self, cluster: &LocalCluster, node: &LocalNode) {
        match self {
            Self::Kill => cluster.restart(node.index).await.unwrap(),
            Self::Freeze => node.thaw().unwrap(),
        }
    }
}

/// When a server began to call itself a primary.
async fn promoted_at(replica: &NodeAddr) -> Instant {
    let since = Instant::now();
    while !tell(replica, "ROLE").await.contains("master") {
        assert!(since.elapsed() < PATIENCE, "{replica} was never promoted");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Instant::now()
}

/// What one fault did to the slots, as a client saw it.
#[derive(Debug)]
struct Healing {
    /// From the fault to the promotion of the replica.
    promotion: Duration,
    /// From the promotion until the last of the failed server's slots had answered.
    heal: Duration,
    /// The longest time that any other slot left a caller without an answer.
    stall: Duration,
}

/// After so long living nodes call each other dead from now on.
async fn call_dead_after(cluster: &LocalCluster, except: Option<&LocalNode>, timeout: Duration) {
    let living = cluster.nodes().iter().filter(|node| except.is_none_or(|dead| dead.index != node.index));
    for node in living {
        order(&node.addr(), &format!("CONFIG SET cluster-node-timeout {}", timeout.as_millis())).await;
    }
}

/// One caller for each bucket writes all the time, while a primary fails. It is called dead only once each caller of
/// another slot has had answers meanwhile: whoever waits with the slots of the failed one has none, or one, and waits
/// for ever.
async fn measure(cluster: &LocalCluster, store: &Store, victim: &LocalNode, fault: Fault) -> Healing {
    let replica = cluster.replica_of(&victim.addr()).await.unwrap().addr();
    let is_over = Cell::new(false);
    let struck = Cell::new(None);
    let meanwhile: RefCell<BTreeMap<u16, u32>> = RefCell::default();
    let healed: RefCell<Vec<Instant>> = RefCell::default();
    let longest = Cell::new(Duration::ZERO);
    let is_of_victim =
        |bucket: &u16| store.router().owner(raw_key(store, *bucket, "").1) == Some(victim.addr());
    let hit = (0..16).filter(is_of_victim).count();
    let caller = async |bucket: u16| {
        let key = raw_key(store, bucket, "measured");
        let is_hit = store.router().owner(key.1) == Some(victim.addr());
        let mut number = 0;
        let mut has_healed = false;
        while !is_over.get() {
            let since = Instant::now();
            number += 1;
            store.router().call(set_raw(&key, number)).await.unwrap();
            let was_struck = struck.get().is_some_and(|at| since > at);
            if is_hit && was_struck && !has_healed {
                has_healed = true;
                healed.borrow_mut().push(Instant::now());
            }
            if !is_hit {
                longest.set(longest.get().max(since.elapsed()));
                *meanwhile.borrow_mut().entry(bucket).or_default() += u32::from(was_struck);
            }
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    };
    let script = async {
        eventually("all others have answers", async || meanwhile.borrow().len() == 16 - hit).await;
        fault.strike(victim);
        struck.set(Some(Instant::now()));
        let have_answers = || meanwhile.borrow().values().all(|answers| *answers > 5);
        eventually("others have answers while a server is silent", async || have_answers()).await;
        assert!(healed.borrow().is_empty(), "a slot of the failed server has answered");
        call_dead_after(cluster, Some(victim), SOON).await;
        let promoted = promoted_at(&replica).await;
        eventually("all its slots answer again", async || healed.borrow().len() == hit).await;
        is_over.set(true);
        promoted
    };
    let (promoted, _) = futures::join!(script, join_all((0..16).map(caller)));
    let last = healed.into_inner().into_iter().max().unwrap();
    Healing {
        promotion: promoted - struck.get().unwrap(),
        heal: last.saturating_duration_since(promoted),
        stall: longest.get(),
    }
}

#[tokio::test]
async fn slots_of_a_failed_primary_answer_soon_after_the_promotion_and_the_others_hardly_notice() {
    // The settings that clients have by default, but for the periodic look at the slot map: the faults themselves must
    // make the map suspect. Whoever waits for that look waits for ever.
    let cluster = own(ClusterSpec::ephemeral().replicas(1).node_timeout(NEVER)).await;
    let router = RouterSettings {
        refresh_period: Duration::from_secs(3_600),
        // An election may take long on a slow machine.
        deadline: PATIENCE * 2,
        ..RouterSettings::default()
    };
    let store = store_with(&cluster, router).await;
    for fault in [Fault::Kill, Fault::Freeze] {
        cluster.wait_healthy(PATIENCE).await.unwrap();
        call_dead_after(&cluster, None, NEVER).await;
        eventually("the map is whole", async || store.router().primaries().len() == 3).await;
        let owner = store.router().owner(raw_key(&store, 7, "").1).unwrap();
        let victim = cluster.node(&owner).unwrap();
        let healing = measure(&cluster, &store, victim, fault).await;
        println!(
            "{fault:?}, node timeout {SOON:?}: promoted after {:?}, all its slots answered {:?} later; other slots \
             stalled {:?}",
            healing.promotion, healing.heal, healing.stall
        );
        fault.undo(&cluster, victim).await;
    }
}

/// Does `step` and fences it, again and again until a fence has covered it.
async fn durably(store: &Store, mut step: impl AsyncFnMut() -> tideline::Result<TouchedServers>) {
    let since = Instant::now();
    loop {
        let fenced = match step().await {
            Ok(touched) => store.router().fence(&touched).await,
            Err(e) => Err(e),
        };
        match fenced {
            Ok(_) => return,
            Err(e) => assert!(e.kind().is_retryable() && since.elapsed() < PATIENCE, "{e:?}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Changes members of its own in a local and in a spread set, each change fenced; what must be there in the end.
async fn durable_work(
    options: StoreOptions,
    number: u64,
    seed: u64,
    fenced: &Fenced,
    until: impl Fn() -> bool,
) -> [Model; 2] {
    let store = Store::open(options).await.unwrap();
    let sets: [SortedSet<AccountId>; 2] =
        [store.sets().named("local").unwrap().pinned(), store.sets().named("spread").unwrap()];
    let mut random = StdRng::seed_from_u64(seed + number);
    let mut models = [Model::new(), Model::new()];
    while !until() {
        let which = random.random_range(0..2);
        let (set, model) = (&sets[which], &mut models[which]);
        let some = members((0..5).map(|_| random.random_range(0..100) * 4 + number + 1).collect::<Vec<_>>());
        if random.random_bool(0.7) {
            durably(&store, async || Ok(set.add(&pairs(&some)).await?.touched)).await;
            model.extend(some);
        } else {
            let gone: Vec<_> = some.keys().copied().collect();
            durably(&store, async || Ok(set.remove(&gone).await?.touched)).await;
            model.retain(|m, _| !some.contains_key(m));
        }
        fenced.0[which].update(|changes| changes + 1);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    models
}

/// Changes that were fenced so far, of each set.
#[derive(Debug, Default)]
struct Fenced([Cell<usize>; 2]);

impl Fenced {
    /// Waits for further ones of each set, so that there is something to lose.
    async fn more(&self) {
        for changes in &self.0 {
            let until = changes.get() + 20;
            eventually("changes are fenced", async || changes.get() >= until).await;
        }
    }
}

/// Fenced work goes on through `faults`; afterwards every set holds exactly what was acknowledged.
async fn nothing_fenced_is_lost(
    cluster: &LocalCluster,
    random: &mut StdRng,
    faults: impl AsyncFnOnce(&Store, &Fenced),
) {
    let options = StoreOptions { router: impatient(), ..options(cluster.urls()) };
    let store = Store::open(options.clone()).await.unwrap();
    let spread: SortedSet<AccountId> = store.sets().named("spread").unwrap();
    spread.spread().await.unwrap();
    let seed = random.random();
    let (is_over, fenced) = (Cell::new(false), Fenced::default());
    let script = async {
        fenced.more().await;
        faults(&store, &fenced).await;
        fenced.more().await;
        is_over.set(true);
    };
    let workers = (0..4).map(|number| durable_work(options.clone(), number, seed, &fenced, || is_over.get()));
    let (models, ()) = futures::join!(join_all(workers), script);
    for (which, name) in ["local", "spread"].into_iter().enumerate() {
        let wanted: Model = models.iter().flat_map(|m| m[which].clone()).collect();
        assert!(!wanted.is_empty(), "there was nothing to lose");
        let set: SortedSet<AccountId> = store.sets().named(name).unwrap();
        let met = walk_all(&set).await;
        let lost: Vec<_> = wanted.iter().filter(|(m, s)| met.get(*m) != Some(*s)).collect();
        let back: Vec<_> = met.keys().filter(|m| !wanted.contains_key(*m)).collect();
        assert!(lost.is_empty() && back.is_empty(), "{name}: lost {lost:?}, came back {back:?}");
        assert_eq!(set.len().await.unwrap(), wanted.len() as u64);
    }
}

/// The next victim is who has that key's slot by then.
async fn map_follows(store: &Store, number: u16, promoted: &NodeAddr) {
    let slot = raw_key(store, number, "").1;
    eventually("the map follows", async || store.router().owner(slot).as_ref() == Some(promoted)).await;
}

#[tokio::test]
async fn no_member_that_a_fence_covered_is_lost_when_primaries_are_killed() {
    let mut random = seeded("primaries_are_killed");
    let cluster = own(replicated()).await;
    let number = random.random_range(0..16);
    nothing_fenced_is_lost(&cluster, &mut random, async |store, fenced| {
        for _ in 0..2 {
            let owner = store.router().owner(raw_key(store, number, "").1).unwrap();
            let replica = cluster.replica_of(&owner).await.unwrap().addr();
            let victim = cluster.node(&owner).unwrap();
            fenced.more().await;
            victim.kill().unwrap();
            promoted_at(&replica).await;
            tokio::time::sleep(Duration::from_millis(300)).await;
            cluster.restart(victim.index).await.unwrap();
            cluster.wait_healthy(PATIENCE).await.unwrap();
            map_follows(store, number, &replica).await;
        }
    })
    .await;
}

#[tokio::test]
async fn no_member_that_a_fence_covered_is_lost_when_a_primary_freezes_and_wakes() {
    let mut random = seeded("a_primary_freezes_and_wakes");
    let cluster = own(replicated()).await;
    let number = random.random_range(0..16);
    nothing_fenced_is_lost(&cluster, &mut random, async |store, fenced| {
        for _ in 0..2 {
            let owner = store.router().owner(raw_key(store, number, "").1).unwrap();
            let replica = cluster.replica_of(&owner).await.unwrap().addr();
            let victim = cluster.node(&owner).unwrap();
            fenced.more().await;
            victim.freeze().unwrap();
            promoted_at(&replica).await;
            tokio::time::sleep(Duration::from_millis(500)).await;
            // It wakes with sockets full of old commands, and believes itself a primary for a moment.
            victim.thaw().unwrap();
            cluster.wait_healthy(PATIENCE).await.unwrap();
            map_follows(store, number, &replica).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_short_freeze_without_failover_brings_no_old_change_back() {
    // Longer than clients wait for an answer, and nobody is called dead: every change under way is sent again, and the
    // first sending runs when the server wakes.
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let mut random = seeded("a_short_freeze");
    let cluster = own(ClusterSpec::ephemeral().replicas(1).node_timeout(NEVER)).await;
    let addrs = async || cluster.primaries().await.iter().map(|node| node.addr()).collect::<Vec<_>>();
    let before = addrs().await;
    let mut victims = StdRng::seed_from_u64(random.random());
    let given_up = || counted(snapshotter.snapshot(), "tideline_redis_retries_total", [("cause", "timeout")]);
    nothing_fenced_is_lost(&cluster, &mut random, async |_, fenced| {
        for _ in 0..3 {
            let primaries = cluster.primaries().await;
            let victim = primaries[victims.random_range(0..primaries.len())];
            given_up();
            victim.freeze().unwrap();
            eventually("a change was under way, and is sent again", async || given_up() > 0).await;
            victim.thaw().unwrap();
            fenced.more().await;
        }
    })
    .await;
    assert_eq!(addrs().await, before, "somebody was replaced");
}

#[tokio::test]
async fn a_deposed_primary_that_wakes_is_not_believed() {
    let cluster = own(replicated()).await;
    // Looks at the map all the time, so that a stale view has every chance.
    let router = RouterSettings { refresh_period: Duration::from_millis(20), ..impatient() };
    let store = store_with(&cluster, router.clone()).await;
    let key = raw_key(&store, 3, "register");
    store.router().call(set_raw(&key, 1)).await.unwrap();
    let old = store.router().owner(key.1).unwrap();
    let replica = cluster.replica_of(&old).await.unwrap().addr();
    cluster.node(&old).unwrap().freeze().unwrap();
    promoted_at(&replica).await;
    store.router().call(set_raw(&key, 2)).await.unwrap();
    let newcomer_knows = Cell::new(false);
    cluster.node(&old).unwrap().thaw().unwrap();
    // A client that starts just now, and knows nobody but the one that slept.
    let newcomer = async {
        let seeds = vec![format!("redis://{old}")];
        let store =
            Store::open(StoreOptions { router, prefix: store.keys().prefix().into(), ..options(seeds) })
                .await;
        let store = store.unwrap();
        let read = async || store.router().call(get_raw(&key)).await.unwrap().text().unwrap().to_owned();
        // Until the one that slept hears of it, the newcomer can't know either; from then on it does.
        eventually("a newcomer reads what is true", async || read().await == "2").await;
        for _ in 0..300 {
            assert_eq!(read().await, "2", "the newcomer went back");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        newcomer_knows.set(true);
    };
    let settled = async {
        // Also long after the wake: the view of the one that slept is old for a while.
        let (mut looks, woken) = (0, Instant::now());
        while !newcomer_knows.get() || looks < 300 || woken.elapsed() < Duration::from_secs(3) {
            assert_ne!(store.router().owner(key.1).as_ref(), Some(&old), "the map turned back");
            let read = store.router().call(get_raw(&key)).await.unwrap();
            assert_eq!(read.text().unwrap(), "2", "read from the past");
            looks += 1;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    futures::join!(newcomer, settled);
}

#[tokio::test]
async fn callers_queued_before_a_frozen_primary_leave_with_its_deposition() {
    // The queue for the bound on commands under way was not woken: each of the queued still tried the deposed
    // server, one response timeout after the other.
    let cluster = own(replicated()).await;
    let router = RouterSettings { in_flight_per_node: 4, pipeline_length: 4, ..RouterSettings::default() };
    let store = store_with(&cluster, router).await;
    let key = raw_key(&store, 5, "queued");
    store.router().call(set_raw(&key, 0)).await.unwrap();
    let old = store.router().owner(key.1).unwrap();
    let replica = cluster.replica_of(&old).await.unwrap().addr();
    cluster.node(&old).unwrap().freeze().unwrap();
    let callers = (0..120).map(|i| {
        let key = raw_key(&store, 5, &format!("queued{i}"));
        let store = &store;
        async move {
            store.router().call(set_raw(&key, 1)).await.unwrap();
            Instant::now()
        }
    });
    let (ended, promoted) = futures::join!(join_all(callers), promoted_at(&replica));
    let after = ended.into_iter().max().unwrap().saturating_duration_since(promoted);
    // One response timeout after the other takes half a minute: beyond their deadline, so they would have failed above.
    println!("120 queued callers had their answers {after:?} after the promotion");
    cluster.node(&old).unwrap().thaw().unwrap();
}

#[tokio::test]
async fn ids_keep_going_up_across_failovers_that_lose_nothing() {
    let cluster = own(replicated()).await;
    let store = store_on(&cluster).await;
    let buckets = store.keys().buckets();
    let bucket = buckets.get(4).unwrap();
    let is_over = Cell::new(false);
    let caller = async || {
        let mut seen: Vec<PostId> = Vec::new();
        while !is_over.get() {
            match store.clock().post_ids(bucket, 3).await {
                Ok(ids) => seen.extend(ids),
                Err(e) => assert!(e.kind().is_retryable(), "{e:?}"),
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(seen.is_sorted_by(|a, b| a < b));
        seen
    };
    let script = async {
        for _ in 0..3 {
            cluster.wait_healthy(PATIENCE).await.unwrap();
            let owner = cluster.owner_of(buckets.slot(bucket)).await.unwrap();
            let replica = cluster.replica_of(&owner).await.unwrap().addr();
            let answer = store.router().ask(incr_raw(&raw_key(&store, 4, "fenced"))).await.unwrap();
            let mut touched = TouchedServers::new();
            touched.add(&answer);
            super::fences::settled(&store, &touched).await.unwrap();
            // Callers go on: a failover that the primary agrees to loses nothing at all.
            cluster.failover(&replica).await.unwrap();
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        is_over.set(true);
    };
    let (ids, ()) = futures::join!(join_all((0..6).map(|_| caller())), script);
    let all = ids.concat();
    println!("{} ids across three failovers", all.len());
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len(), "an id came twice");
    let last = all.iter().max().unwrap();
    assert!(store.clock().post_ids(bucket, 1).await.unwrap()[0] > *last);
}

#[tokio::test]
async fn a_failed_request_in_a_failover_says_unknown_only_where_it_may_have_run() {
    let cluster = own(ClusterSpec::ephemeral()).await;
    let router = RouterSettings { deadline: Duration::from_secs(2), ..impatient() };
    let store = store_with(&cluster, router).await;
    let key = raw_key(&store, 9, "doubt");
    let node = cluster.node(&store.router().owner(key.1).unwrap()).unwrap();
    store.router().call(set_raw(&key, 1)).await.unwrap();
    node.freeze().unwrap();
    let (write, read) =
        futures::join!(store.router().call(set_raw(&key, 2)), store.router().call(get_raw(&key)));
    assert_eq!(write.unwrap_err().kind(), ErrorKind::Unknown, "it lies in the frozen server's socket");
    assert_eq!(read.unwrap_err().kind(), ErrorKind::Unavailable);
    node.thaw().unwrap();
    node.kill().unwrap();
    // Everybody knows by now that nobody listens there: nothing is sent.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let refused = store.router().call(set_raw(&key, 3)).await.unwrap_err();
    let again = store.router().call(set_raw(&key, 3)).await.unwrap_err();
    println!("{refused}\n{again}");
    assert_eq!(again.kind(), ErrorKind::Unavailable, "nothing was sent: {again}");
}
