//! Spreading, with copiers that die, freeze and come late.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use futures::future::join_all;
use metrics_util::debugging::DebuggingRecorder;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tideline::cluster::RouterSettings;
use tideline::sharded::{Layout, Order, SetSettings, SortedSet, SpreadStep};
use tideline::{AccountId, Store, StoreOptions};
use tideline_local_cluster::ClusterSpec;

use super::harness::{
    Model, PATIENCE, account, eventually, impatient, members, options, own, pairs, seeded, shared, walk_all,
};
use super::router::counted;

/// Options under which a set of many pieces stays local until somebody spreads it.
fn patient_options() -> StoreOptions {
    let options = options(shared());
    // Many spread at once, and each waits for copiers that died.
    let router = RouterSettings { deadline: PATIENCE * 2, ..options.router };
    StoreOptions { router, sets: SetSettings { spread_at: Some(1_000_000), ..options.sets }, ..options }
}

async fn holds_exactly(set: &SortedSet<AccountId>, model: &Model) {
    assert_eq!(&walk_all(set).await, model);
    assert_eq!(set.len().await.unwrap(), model.len() as u64);
    let mut paged = Model::new();
    let mut after = None;
    loop {
        let page = set.page(.., after.as_ref(), 100, Order::Ascending).await.unwrap();
        assert!(page.entries.iter().all(|(m, _)| !paged.contains_key(m)), "a member twice");
        paged.extend(page.entries);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(&paged, model);
}

/// How many keys of the tenant have this in their name, over all servers.
async fn keys_named(store: &Store, name: &str) -> usize {
    let question = tideline::cluster::Command::new("KEYS").arg(format!("{}*{name}", store.keys().prefix()));
    let replies = store.router().ask_primaries(&question).await;
    replies.into_iter().map(|(_, reply)| reply.unwrap().into_array().unwrap().len()).sum()
}

/// All steps of a copier, in their order.
const STEPS: [SpreadStep; 9] = [
    SpreadStep::Begun,
    SpreadStep::Guarded,
    SpreadStep::Walked,
    SpreadStep::CopiedSome,
    SpreadStep::Copied,
    SpreadStep::Closed,
    SpreadStep::Proven,
    SpreadStep::Ended,
    SpreadStep::Dropped,
];

#[tokio::test]
async fn a_copier_that_dies_at_any_step_is_succeeded_by_whoever_changes_the_set() {
    let options = patient_options();
    let history = async |step: SpreadStep, adds: bool| {
        let name = format!("dies at {step:?} {adds}");
        let (first, second) =
            (Store::open(options.clone()).await.unwrap(), Store::open(options.clone()).await.unwrap());
        let set: SortedSet<AccountId> = first.sets().named(&name).unwrap();
        let mut model = members(1..=300);
        set.add(&pairs(&model)).await.unwrap();
        set.remove(&[account(1), account(2)]).await.unwrap();
        model.retain(|m, _| m.get() > 2);
        set.spread_until(|s| s == step).await.unwrap_err();
        let other: SortedSet<AccountId> = second.sets().named(&name).unwrap();
        holds_exactly(&other, &model).await;
        if adds {
            other.add(&[(account(1_000), 5.0)]).await.unwrap();
            model.insert(account(1_000), 5.0);
        } else {
            other.remove(&[account(3), account(4)]).await.unwrap();
            model.retain(|m, _| m.get() > 4);
        }
        holds_exactly(&other, &model).await;
        holds_exactly(&set, &model).await;
        assert_eq!(other.layout().await.unwrap(), Layout::Spread, "{step:?}");
        set.spread().await.unwrap();
        holds_exactly(&other, &model).await;
        assert_eq!(keys_named(&first, &format!("}}p*:{name}")).await, 0, "pieces are left after {step:?}");
        assert_eq!(keys_named(&first, &format!("}}g{name}")).await, 0, "guards are left after {step:?}");
    };
    join_all(STEPS.iter().flat_map(|step| [history(*step, true), history(*step, false)])).await;
}

#[tokio::test]
async fn pieces_that_a_dead_copier_left_behind_are_dropped_by_whoever_comes() {
    // A copier died between "the parts are the set" and dropping the local pieces. The set worked, and its old
    // pieces stayed for ever: nobody but an explicit `spread` looked at them again.
    let options = patient_options();
    let (first, second) = (Store::open(options.clone()).await.unwrap(), Store::open(options).await.unwrap());
    let set: SortedSet<AccountId> = first.sets().named("left").unwrap();
    set.add(&pairs(&members(1..=300))).await.unwrap();
    set.spread_until(|s| s == SpreadStep::Ended).await.unwrap_err();
    assert!(keys_named(&first, "}p*:left").await > 10);
    let other: SortedSet<AccountId> = second.sets().named("left").unwrap();
    other.add(&[(account(1), 1.0)]).await.unwrap();
    assert_eq!(keys_named(&first, "}p*:left").await, 0);
    holds_exactly(&other, &members(1..=300)).await;
}

/// A copier in a thread and a runtime of its own, stopped in the middle of `step` until it is thawed.
struct FrozenCopier {
    thaw: mpsc::Sender<()>,
    thread: std::thread::JoinHandle<tideline::Result<()>>,
}

impl FrozenCopier {
    fn start(options: StoreOptions, name: &str, step: SpreadStep) -> Self {
        let (thaw, thawed) = mpsc::channel::<()>();
        let (stopped, is_stopped) = mpsc::channel();
        let name = name.to_owned();
        let run = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let store = Store::open(options).await.unwrap();
                let set: SortedSet<AccountId> = store.sets().named(&name).unwrap();
                let once = AtomicBool::new(false);
                let freeze = |s| {
                    if s == step && !once.swap(true, Ordering::SeqCst) {
                        stopped.send(()).unwrap();
                        thawed.recv().unwrap();
                    }
                    false
                };
                set.spread_until(freeze).await
            })
        };
        let thread = std::thread::spawn(run);
        is_stopped.recv().unwrap();
        Self { thaw, thread }
    }

    fn thaw(self) -> tideline::Result<()> {
        self.thaw.send(()).unwrap();
        self.thread.join().unwrap()
    }
}

#[tokio::test]
async fn a_copier_that_was_frozen_brings_back_nothing_that_was_removed_meanwhile() {
    let options = patient_options();
    let store = Store::open(options.clone()).await.unwrap();
    // Behind the last step nothing is left that could come late.
    let steps = &STEPS[..STEPS.len() - 1];
    let history = async |step: SpreadStep| {
        let name = format!("frozen at {step:?}");
        let set: SortedSet<AccountId> = store.sets().named(&name).unwrap();
        // More than one page of a walk.
        let mut model = members(1..=1_600);
        set.add(&pairs(&model)).await.unwrap();
        let copier = FrozenCopier::start(options.clone(), &name, step);
        set.spread().await.unwrap();
        let removed: Vec<_> = model.keys().copied().filter(|m| m.get() % 2 == 0).collect();
        assert_eq!(set.remove(&removed).await.unwrap().members, removed.len() as u64);
        model.retain(|m, _| m.get() % 2 == 1);
        set.add(&[(account(1), 99.0)]).await.unwrap();
        model.insert(account(1), 99.0);
        let thawed = tokio::task::spawn_blocking(move || copier.thaw()).await.unwrap();
        thawed.unwrap();
        holds_exactly(&set, &model).await;
    };
    join_all(steps.iter().map(|step| history(*step))).await;
}

#[tokio::test]
async fn a_record_that_forgot_its_end_in_a_failover_does_not_bring_back_what_was_removed_since() {
    // The copier wrote "spread" and its server failed over before a replica had that: the record said "spreading"
    // again. Somebody had already removed a member from the parts, acknowledged and on replicas. Whoever met the
    // record copied the frozen set once more, and the member was back.
    let options = patient_options();
    let (first, second) =
        (Store::open(options.clone()).await.unwrap(), Store::open(options.clone()).await.unwrap());
    let set: SortedSet<AccountId> = first.sets().named("forgot").unwrap();
    let mut model = members(1..=300);
    set.add(&pairs(&model)).await.unwrap();
    let slot = first.keys().buckets().slot(first.keys().buckets().of_bytes(b"forgot"));
    let tag = tideline::bucket::tag_of_slot(slot);
    let key = format!("{}{{{tag}}}sforgot", first.keys().prefix());
    let fenced = std::sync::Mutex::new(None);
    // What a replica certainly has is the record as it was before the last step.
    let backup = |step| {
        if step == SpreadStep::Proven {
            *fenced.lock().unwrap() = Some(());
        }
        step == SpreadStep::Ended
    };
    set.spread_until(backup).await.unwrap_err();
    assert!(fenced.lock().unwrap().is_some());
    let other: SortedSet<AccountId> = second.sets().named("forgot").unwrap();
    other
        .remove_below(&pairs(&members(1..=50)).iter().map(|(m, s)| (*m, s + 1.0)).collect::<Vec<_>>())
        .await
        .unwrap();
    model.retain(|m, _| m.get() > 50);
    holds_exactly(&other, &model).await;
    let was = tideline::cluster::Command::new("SETRANGE").arg(&key).arg("0").arg("C");
    first.router().call(tideline::cluster::Request::write(slot, was)).await.unwrap();
    let third = Store::open(options).await.unwrap();
    let again: SortedSet<AccountId> = third.sets().named("forgot").unwrap();
    holds_exactly(&again, &model).await;
    again.add(&[(account(999), 1.0)]).await.unwrap();
    model.insert(account(999), 1.0);
    holds_exactly(&again, &model).await;
    holds_exactly(&other, &model).await;
}

#[tokio::test]
async fn a_replica_that_does_not_answer_delays_a_spread_and_does_not_end_it() {
    // One fence that failed ended the spreading, and with it the change that waited for that: "fence: 0 of 1 replicas".
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let cluster = own(ClusterSpec::ephemeral().replicas(1).node_timeout(Duration::from_secs(300))).await;
    let (sets, router) = (patient_options().sets, impatient());
    let store = Store::open(StoreOptions { sets, router, ..options(cluster.urls()) }).await.unwrap();
    let set: SortedSet<AccountId> = store.sets().named("delayed").unwrap();
    let model = members(1..=300);
    set.add(&pairs(&model)).await.unwrap();
    let replica = cluster.replica_of(&cluster.nodes()[0].addr()).await.unwrap();
    replica.freeze().unwrap();
    let failed = || counted(snapshotter.snapshot(), "tideline_fence_rounds_total", [("outcome", "failed")]);
    let thawed = async {
        eventually("a fence fails", async || failed() > 0).await;
        replica.thaw().unwrap();
    };
    let (spread, ()) = futures::join!(set.spread(), thawed);
    spread.unwrap();
    assert_eq!(set.layout().await.unwrap(), Layout::Spread);
    holds_exactly(&set, &model).await;
}

#[tokio::test]
async fn copiers_of_several_clients_at_once_make_one_spread_set() {
    // Clients that waited for a dead copier all saw at the same moment that it had halted. Each put its nonce into
    // the guards before it tried to get the record; so who got the record was refused by the losers' guards,
    // halted in turn, and nobody ever finished.
    let options = patient_options();
    let clients = join_all((0..12).map(|_| Store::open(options.clone()))).await;
    let sets: Vec<SortedSet<AccountId>> =
        clients.iter().map(|c| c.as_ref().unwrap().sets().named("all").unwrap()).collect();
    let mut model = members(1..=1_200);
    sets[0].add(&pairs(&model)).await.unwrap();
    sets[4].spread_until(|step| step == SpreadStep::CopiedSome).await.unwrap_err();
    for spread in join_all(sets.iter().map(SortedSet::spread)).await {
        spread.unwrap();
    }
    holds_exactly(&sets[1], &model).await;
    sets[2].remove(&[account(5)]).await.unwrap();
    model.remove(&account(5));
    for set in &sets {
        assert_eq!(set.layout().await.unwrap(), Layout::Spread);
        holds_exactly(set, &model).await;
    }
}

#[tokio::test]
async fn writers_and_walkers_go_on_while_copiers_die_at_random() {
    let mut random = seeded("copiers_die_at_random");
    let options = patient_options();
    let seed: u64 = random.random();
    let staying = members(50_000..50_200);
    let first = Store::open(options.clone()).await.unwrap();
    let set: SortedSet<AccountId> = first.sets().named("dying").unwrap();
    set.add(&pairs(&staying)).await.unwrap();
    // Writers have begun before the first copier begins, and all go on until the last one is over: so each copier meets
    // changes and walks at every moment.
    let (begun, is_over) = (Cell::new(0), Cell::new(false));
    let writer = async |number: u64| {
        let store = Store::open(options.clone()).await.unwrap();
        let set: SortedSet<AccountId> = store.sets().named("dying").unwrap();
        let mut random = StdRng::seed_from_u64(seed + number);
        let mut mine = Model::new();
        let mut changes = 0;
        while changes < 40 || !is_over.get() {
            let some =
                members((0..12).map(|_| random.random_range(0..300) * 4 + number + 1).collect::<Vec<_>>());
            if random.random_bool(0.7) {
                set.add(&pairs(&some)).await.unwrap();
                mine.extend(some);
            } else {
                set.remove(&some.keys().copied().collect::<Vec<_>>()).await.unwrap();
                mine.retain(|m, _| !some.contains_key(m));
            }
            changes += 1;
            begun.update(|begun| begun + usize::from(changes == 1));
        }
        mine
    };
    let walker = async {
        let mut walks = 0;
        while walks < 40 || !is_over.get() {
            let met = walk_all(&set).await;
            assert!(staying.keys().all(|m| met.contains_key(m)), "a walk missed members that stayed");
            walks += 1;
            begun.update(|begun| begun + usize::from(walks == 1));
        }
    };
    let copiers = async {
        let mut random = StdRng::seed_from_u64(seed + 100);
        eventually("all have begun", async || begun.get() == 4 + 1).await;
        for _ in 0..3 {
            let store = Store::open(options.clone()).await.unwrap();
            let set: SortedSet<AccountId> = store.sets().named("dying").unwrap();
            let dies_after = random.random_range(1..8);
            let steps = Cell::new(0);
            let dies = |_| {
                steps.set(steps.get() + 1);
                steps.get() == dies_after
            };
            println!("a copier dies after {dies_after} steps: {:?}", set.spread_until(dies).await);
        }
        is_over.set(true);
    };
    let (mine, (), ()) = futures::join!(join_all((0..4).map(writer)), walker, copiers);
    let model: Model = mine.into_iter().flatten().chain(staying.clone()).collect();
    set.spread().await.unwrap();
    holds_exactly(&set, &model).await;
    assert_eq!(set.layout().await.unwrap(), Layout::Spread);
}
