//! Slots that move while they are used.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures::future::join_all;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tideline::cluster::{Batch, Command, NodeAddr, Request, RouterSettings};
use tideline::sharded::{Order, SetSettings, SortedSet};
use tideline::{AccountId, Engine, ErrorKind, NewAccount, Store, StoreOptions};
use tideline_local_cluster::{ClusterSpec, LocalCluster};

use super::engine::drained;
use super::harness::{
    Model, account, eventually, get_raw, impatient, incr_raw, members, options, own, pairs, raw_key, seeded,
    set_raw, store_on, store_with, walk_all,
};

/// Slots that move under a test's work, which goes on until so many have moved: not so long as a machine may need for
/// that.
const MOVES: usize = 25;

/// How many slots have moved.
#[derive(Debug, Default)]
struct Moves(Cell<usize>);

impl Moves {
    /// Whether the work has to go on.
    fn go_on(&self) -> bool {
        self.0.get() < MOVES
    }
}

/// Moves the slots of random buckets, a few keys at a time.
async fn shuffle(cluster: &LocalCluster, store: &Store, random: &mut StdRng, moves: &Moves) {
    let nodes: Vec<NodeAddr> = cluster.nodes().iter().map(|n| n.addr()).collect();
    while moves.go_on() {
        let slot = raw_key(store, random.random_range(0..16), "").1;
        // A node that is busy moving keys may be silent for a moment.
        let Ok(from) = cluster.owner_of(slot).await else { continue };
        let to = &nodes[random.random_range(0..nodes.len())];
        if *to == from {
            continue;
        }
        cluster.begin_migration(slot, &from, to).await.unwrap();
        let portion = random.random_range(1..8);
        while cluster.migrate_keys(slot, &from, to, portion).await.unwrap() > 0 {
            tokio::time::sleep(Duration::from_millis(random.random_range(0..4))).await;
        }
        cluster.end_migration(slot, to).await.unwrap();
        moves.0.update(|moves| moves + 1);
    }
}

/// Runs `work`, which goes on while slots move back and forth.
async fn while_slots_move<T>(
    cluster: &LocalCluster,
    store: &Store,
    random: &mut StdRng,
    work: impl AsyncFnOnce(&Moves) -> T,
) -> T {
    let moves = Moves::default();
    let (done, ()) = futures::join!(work(&moves), shuffle(cluster, store, random, &moves));
    done
}

#[tokio::test]
async fn a_redirect_repeats_its_own_command_and_no_other() {
    // Sending a whole pipeline again because of one redirect in it makes other increments count twice.
    let mut random = seeded("a_redirect_repeats_its_own_command");
    let cluster = own(ClusterSpec::ephemeral()).await;
    // What is silent for too long is sent again too, and may run twice; here nothing but redirects repeats anything.
    let router = RouterSettings {
        response_timeout: Duration::from_secs(30),
        deadline: Duration::from_secs(60),
        ..impatient()
    };
    let store = store_with(&cluster, router).await;
    let keys: Vec<_> = (0..480).map(|i| raw_key(&store, i % 16, &format!("counter{i}"))).collect();
    let counted = async |moves: &Moves| {
        let mut rounds = 0u64;
        while moves.go_on() {
            // Several clients' worth of batches at once, each on keys of its own; replies must be in order.
            let run = async |part: &[(String, u16)]| {
                let batch: Batch = part.iter().map(incr_raw).collect();
                for (answer, key) in store.router().run(batch).await.into_iter().zip(part) {
                    let count = answer.unwrap().ok().unwrap().count().unwrap();
                    assert_eq!(count, rounds + 1, "{key:?}");
                }
            };
            join_all(keys.chunks(120).map(run)).await;
            rounds += 1;
        }
        rounds
    };
    let rounds = while_slots_move(&cluster, &store, &mut random, counted).await;
    println!("{rounds} increments of each of {} keys", keys.len());
    let batch: Batch = keys.iter().map(get_raw).collect();
    for answer in store.router().run(batch).await {
        assert_eq!(answer.unwrap().reply.text().unwrap(), rounds.to_string());
    }
}

#[tokio::test]
async fn ordered_groups_keep_their_order_while_their_slot_moves() {
    let mut random = seeded("ordered_groups");
    let cluster = own(ClusterSpec::ephemeral()).await;
    let store = store_on(&cluster).await;
    let work = async |moves: &Moves| {
        let mut round = 0;
        while moves.go_on() {
            round += 1;
            let mut batch = Batch::new();
            for bucket in 0..16 {
                // Two keys of one slot. While one has moved and the other not, MSET must wait, and the reads with it.
                let (a, b) = (raw_key(&store, bucket, "a"), raw_key(&store, bucket, "b"));
                let both = Command::new("MSET").arg(&a.0).arg(round).arg(&b.0).arg(round);
                let again = set_raw(&a, round + 1);
                batch.push_ordered([Request::write(a.1, both), get_raw(&a), get_raw(&b), again, get_raw(&a)]);
                batch.push(set_raw(&raw_key(&store, bucket, "alone"), round));
            }
            let answers = store.router().run(batch).await;
            for group in answers.chunks(6) {
                let read = |i: usize| group[i].as_ref().unwrap().reply.text().unwrap().to_owned();
                assert_eq!([read(1), read(2), read(4)], [round, round, round + 1].map(|n| n.to_string()));
            }
        }
    };
    while_slots_move(&cluster, &store, &mut random, work).await;
}

/// Pages through the set; refuses doubles.
async fn page_all(set: &SortedSet<AccountId>) -> Model {
    let (mut all, mut after) = (Model::new(), None);
    loop {
        let page = set.page(.., after.as_ref(), 50, Order::Descending).await.unwrap();
        for (member, score) in page.entries {
            assert!(all.insert(member, score).is_none(), "{member:?} twice");
        }
        after = page.next;
        if after.is_none() {
            return all;
        }
    }
}

#[tokio::test]
async fn sets_lose_nothing_and_repeat_nothing_while_their_slots_move() {
    let mut random = seeded("sets_while_slots_move");
    let cluster = own(ClusterSpec::ephemeral()).await;
    let options = StoreOptions { router: impatient(), ..options(cluster.urls()) };
    let store = Store::open(options.clone()).await.unwrap();
    let seed: u64 = random.random();
    // One set stays local, one spreads meanwhile; every client has members of its own in both.
    let writer = async |number: u64, moves: &Moves| {
        let store = Store::open(options.clone()).await.unwrap();
        let sets: [SortedSet<AccountId>; 2] =
            [store.sets().named("local").unwrap().pinned(), store.sets().named("spreads").unwrap()];
        let mut random = StdRng::seed_from_u64(seed + number);
        let mut models = [Model::new(), Model::new()];
        while moves.go_on() {
            let which = random.random_range(0..2);
            let (set, model) = (&sets[which], &mut models[which]);
            let some =
                members((0..6).map(|_| random.random_range(0..80) * 4 + number + 1).collect::<Vec<_>>());
            if random.random_bool(0.7) {
                set.add(&pairs(&some)).await.unwrap();
                model.extend(some);
            } else {
                set.remove(&some.keys().copied().collect::<Vec<_>>()).await.unwrap();
                model.retain(|m, _| !some.contains_key(m));
            }
            store.clock().post_ids(store.keys().buckets().of_account(number + 1), 2).await.unwrap();
        }
        models
    };
    let reader = async |moves: &Moves| {
        let sets: [SortedSet<AccountId>; 2] =
            [store.sets().named("local").unwrap().pinned(), store.sets().named("spreads").unwrap()];
        let staying = members(90_000..90_040);
        for set in &sets {
            set.add(&pairs(&staying)).await.unwrap();
        }
        let mut looks = 0;
        while moves.go_on() {
            for set in &sets {
                let (walked, paged) = (walk_all(set).await, page_all(set).await);
                for member in staying.keys() {
                    assert!(
                        walked.contains_key(member) && paged.contains_key(member),
                        "{member:?} was missed"
                    );
                }
            }
            looks += 1;
        }
        println!("{looks} looks at both sets");
        staying
    };
    let work = async |moves: &Moves| {
        futures::join!(join_all((0..4).map(|number| writer(number, moves))), reader(moves))
    };
    let (models, staying) = while_slots_move(&cluster, &store, &mut random, work).await;
    for (which, name) in ["local", "spreads"].into_iter().enumerate() {
        let wanted: Model = models.iter().flat_map(|m| m[which].clone()).chain(staying.clone()).collect();
        let set: SortedSet<AccountId> = store.sets().named(name).unwrap();
        let set = if which == 0 { set.pinned() } else { set };
        assert_eq!(walk_all(&set).await, wanted, "{name}");
        assert_eq!(page_all(&set).await, wanted, "{name}");
        assert_eq!(set.len().await.unwrap(), wanted.len() as u64, "{name}");
    }
}

#[tokio::test]
async fn a_half_moved_set_is_read_key_by_key_and_changed_once_it_has_moved() {
    // Reading a set of many pieces took a pause for each piece that had moved: following ASK counted as trying
    // the same thing again, and pauses double. A walk of sixty pieces took ten seconds.
    let cluster = own(ClusterSpec::ephemeral()).await;
    let base = options(cluster.urls());
    let sets = SetSettings { spread_at: Some(100_000), ..base.sets };
    let store = Store::open(StoreOptions { router: impatient(), sets: sets.clone(), ..base }).await.unwrap();
    let set: SortedSet<AccountId> = store.sets().named("half").unwrap();
    let mut model = members(1..=1_000);
    set.add(&pairs(&model)).await.unwrap();
    let slot = store.keys().buckets().slot(store.keys().buckets().of_bytes(b"half"));
    let from = cluster.owner_of(slot).await.unwrap();
    let to = cluster.nodes().iter().map(|n| n.addr()).find(|a| *a != from).unwrap();
    cluster.begin_migration(slot, &from, &to).await.unwrap();
    let mut moved = 0;
    while moved < 60 {
        moved += cluster.migrate_keys(slot, &from, &to, 5).await.unwrap();
    }
    // Whoever pauses, be it once, is too late: following ASK needs none.
    let (deadline, pause) = (Duration::from_secs(20), Duration::from_millis(19_999));
    // A slow server's answer is waited for: who takes it for silent pauses, too.
    let response_timeout = deadline / 2;
    let router = RouterSettings { deadline, response_timeout, backoff: (pause, pause), ..impatient() };
    let base = StoreOptions { prefix: store.keys().prefix().into(), ..options(cluster.urls()) };
    let hasty = Store::open(StoreOptions { router, sets, ..base }).await.unwrap();
    let read: SortedSet<AccountId> = hasty.sets().named("half").unwrap();
    assert_eq!(walk_all(&read).await, model);
    assert_eq!(read.len().await.unwrap(), 1_000);
    assert_eq!(read.count(..=100.0).await.unwrap(), 100);
    let asked: Vec<_> = (1..200).map(account).collect();
    assert!(read.scores(&asked).await.unwrap().iter().all(Option::is_some));
    // Changes are functions with several keys: they wait, and go on as soon as the slot has moved.
    let finish = async {
        tokio::time::sleep(Duration::from_millis(400)).await;
        while cluster.migrate_keys(slot, &from, &to, 10).await.unwrap() > 0 {}
        cluster.end_migration(slot, &to).await.unwrap();
        Instant::now()
    };
    let change = async {
        let some = members(900..1_100);
        set.add(&pairs(&some)).await.unwrap();
        model.extend(some);
        Instant::now()
    };
    let (moved_at, changed_at) = futures::join!(finish, change);
    println!("changed {:?} after the slot had moved", changed_at.saturating_duration_since(moved_at));
    assert_eq!(walk_all(&set).await, model);
}

#[tokio::test]
async fn a_change_that_finds_no_end_of_a_move_says_so_and_has_changed_nothing() {
    let cluster = own(ClusterSpec::ephemeral()).await;
    // Nothing but TRYAGAIN ends it: a write that a slow server answers too late would be unknown.
    let (deadline, response_timeout) = (Duration::from_secs(10), Duration::from_secs(9));
    let router = RouterSettings { deadline, response_timeout, ..impatient() };
    let store = store_with(&cluster, router).await;
    let set: SortedSet<AccountId> = store.sets().named("stuck").unwrap();
    let model = members(1..=100);
    set.add(&pairs(&model)).await.unwrap();
    let slot = store.keys().buckets().slot(store.keys().buckets().of_bytes(b"stuck"));
    let from = cluster.owner_of(slot).await.unwrap();
    let to = cluster.nodes().iter().map(|n| n.addr()).find(|a| *a != from).unwrap();
    cluster.begin_migration(slot, &from, &to).await.unwrap();
    // Half of the keys: the tree and a piece are never on the same side for all members.
    for _ in 0..4 {
        cluster.migrate_keys(slot, &from, &to, 1).await.unwrap();
    }
    let failed = set.remove(&model.keys().copied().collect::<Vec<_>>()).await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Unavailable, "{failed}");
    assert!(
        failed.to_string().contains("tryagain") && failed.to_string().contains(&format!("slot {slot}")),
        "{failed}"
    );
    let left = walk_all(&set).await;
    assert_eq!(set.len().await.unwrap(), left.len() as u64, "the count goes with the members");
    assert!(!left.is_empty());
    while cluster.migrate_keys(slot, &from, &to, 10).await.unwrap() > 0 {}
    cluster.end_migration(slot, &to).await.unwrap();
    set.remove(&model.keys().copied().collect::<Vec<_>>()).await.unwrap();
    assert_eq!(walk_all(&set).await, BTreeMap::new());
    assert_eq!(set.len().await.unwrap(), 0);
}

#[tokio::test]
async fn a_group_of_hundreds_follows_its_keys_one_by_one() {
    // Each followed ASK used to be a future inside the one before: 500 of them overflowed the stack.
    let cluster = own(ClusterSpec::ephemeral()).await;
    let store = store_on(&cluster).await;
    let keys: Vec<_> = (0..600).map(|n| raw_key(&store, 3, &format!("long {n}"))).collect();
    let slot = keys[0].1;
    for answer in store.router().run(keys.iter().map(|key| set_raw(key, 7)).collect()).await {
        answer.unwrap().ok().unwrap();
    }
    let from = store.router().owner(slot).unwrap();
    let to = store.router().primaries().into_iter().find(|node| *node != from).unwrap();
    cluster.begin_migration(slot, &from, &to).await.unwrap();
    while cluster.migrate_keys(slot, &from, &to, 200).await.unwrap() > 0 {}
    let mut batch = Batch::new();
    batch.push_ordered(keys.iter().map(get_raw));
    for answer in store.router().run(batch).await {
        assert_eq!(answer.unwrap().ok().unwrap().text().unwrap(), "7");
    }
    cluster.end_migration(slot, &to).await.unwrap();
}

/// The target hears of nobody else who has a slot that is on its way to it, and of who was replaced that it has nothing
/// any more: no key came in.
#[tokio::test]
async fn a_move_whose_source_was_replaced_and_is_back_is_begun_anew() {
    let cluster = own(ClusterSpec::ephemeral().replicas(1)).await;
    let store = store_on(&cluster).await;
    let key = raw_key(&store, 3, "on its way");
    store.router().call(set_raw(&key, 7)).await.unwrap();
    let (slot, from) = (key.1, cluster.owner_of(key.1).await.unwrap());
    let primaries: Vec<NodeAddr> = cluster.primaries().await.iter().map(|node| node.addr()).collect();
    let to = primaries.into_iter().find(|node| *node != from).unwrap();
    cluster.begin_migration(slot, &from, &to).await.unwrap();
    let replica = cluster.replica_of(&from).await.unwrap().addr();
    cluster.failover(&replica).await.unwrap();
    let said_of_source = format!(":{}@", from.port);
    eventually("the target hears that its source was replaced", async || {
        let nodes = cluster.ask(&to, Command::new("CLUSTER").arg("NODES")).await.unwrap();
        nodes.text().unwrap().lines().any(|line| line.contains(&said_of_source) && line.contains("slave"))
    })
    .await;
    cluster.failover(&from).await.unwrap();
    cluster.migrate_slot(slot, &to).await.unwrap();
    assert_eq!(cluster.owner_of(slot).await.unwrap(), to);
    assert_eq!(store.router().call(get_raw(&key)).await.unwrap().text().unwrap(), "7");
}

/// In a slot that moves a function may not ask for what is gone: not for a set, either, whose last member it has taken.
/// One that did ended half-way, and a record counted a block that there was no more.
#[tokio::test]
async fn a_set_that_loses_its_last_member_while_its_slot_moves_is_counted_all_the_same() {
    let cluster = own(ClusterSpec::ephemeral()).await;
    let options = StoreOptions { router: impatient(), ..options(cluster.urls()) };
    let engine = Engine::builder().store(options).start().await.unwrap();
    let by = engine.create_account(NewAccount::default()).await.unwrap().value;
    let other = engine.create_account(NewAccount::default()).await.unwrap().value;
    engine.block(by, other).await.unwrap();
    engine.warm(by).await.unwrap();
    drained(&engine).await;
    // Every key of that function is there, so it runs where the slot still is: besides the set the account's home, a
    // pull mark that says nothing, a request, and an entry that nobody understands.
    let (keys, router) = (engine.store().keys(), engine.store().router());
    let bucket = keys.buckets().of_account(by.get());
    let (slot, tag) =
        (keys.buckets().slot(bucket), format!("{}{{{}}}", keys.prefix(), keys.buckets().tag(bucket)));
    let of_account = |letter: &str| [format!("{tag}{letter}").as_bytes(), &by.get().to_be_bytes()].concat();
    let nobody = 4_711_u64.to_be_bytes();
    for (key, value) in [
        (of_account("m"), [7; 8].to_vec()),
        (of_account("r"), [7; 8].to_vec()),
        (format!("{tag}j").into_bytes(), b"nobody..?".to_vec()),
    ] {
        let set = Command::new("HSET").arg(&key).arg(&nobody).arg(&value);
        router.call(Request::write(slot, set)).await.unwrap();
    }
    let from = cluster.owner_of(slot).await.unwrap();
    let to = cluster.nodes().iter().map(|n| n.addr()).find(|a| *a != from).unwrap();
    cluster.begin_migration(slot, &from, &to).await.unwrap();
    engine.unblock(by, other).await.unwrap();
    while cluster.migrate_keys(slot, &from, &to, 10).await.unwrap() > 0 {}
    cluster.end_migration(slot, &to).await.unwrap();
    assert_eq!(engine.stored().account(by).await.unwrap().blocks, 0);
}
