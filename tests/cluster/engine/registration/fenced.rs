//! Servers that fail over, give their slots away, or lose touch with their replicas, between a step and its fence.
//!
//! `set_login` answered "fence: ... serves no slot any more; run the step again", as a `Conflict`, which means that
//! somebody else has the name; and for a minute after that "another change of names is under way".

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tideline::cluster::{Replicas, RouterSettings, TouchedServers};
use tideline::registration::{AttemptStep, Registration, SignUp};
use tideline::{AccountId, Engine, ErrorKind, NewAccount, Store, StoreOptions};
use tideline_local_cluster::{ClusterSpec, LocalCluster};

use super::super::{engine_with, slot_of, small};
use super::{ada, claimed, is_clean, keys, settings};
use crate::harness::{
    Own, PATIENCE, eventually, impatient, in_the_end, options, own, raw_key, replicated, set_raw,
};

async fn on(cluster: &Own, router: RouterSettings) -> (Engine, Registration) {
    let options = StoreOptions { router, ..options(cluster.urls()) };
    let engine = engine_with(options, small()).await;
    let registration = Registration::new(&engine, settings()).await.unwrap();
    (engine, registration)
}

/// Kills nobody, but does something when a step is reached for the first time, while the call stands still.
fn when<W: Future<Output = ()>>(
    step: AttemptStep,
    work: impl Fn() -> W + Sync,
) -> impl Fn(AttemptStep) -> bool + Sync {
    let (is_done, runtime) = (AtomicBool::new(false), tokio::runtime::Handle::current());
    move |now| {
        if now == step && !is_done.swap(true, Ordering::SeqCst) {
            std::thread::scope(|scope| scope.spawn(|| runtime.block_on(work())).join().unwrap());
        }
        false
    }
}

/// The replica of whoever has that slot takes over, and nothing is lost.
async fn fail_over(cluster: &LocalCluster, slot: u16) {
    cluster.wait_healthy(PATIENCE).await.unwrap();
    let primary = cluster.owner_of(slot).await.unwrap();
    let replica = cluster.replica_of(&primary).await.unwrap().addr();
    cluster.failover(&replica).await.unwrap();
}

fn with_id(id: u64, sign_up: SignUp) -> SignUp {
    SignUp {
        account: NewAccount { id: Some(AccountId::new(id).unwrap()), ..NewAccount::default() },
        ..sign_up
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_registers_or_changes_names_hears_nothing_of_a_failover_between_a_step_and_its_fence() {
    let cluster = own(replicated()).await;
    let (engine, registration) = on(&cluster, impatient()).await;
    let id = registration.sign_up(&ada()).await.unwrap().id;
    let of_account = || fail_over(&cluster, slot_of(&engine, id));
    // Where the account has said what it is to have; where it says that it has it; where its old name is given up.
    registration.set_login_until(id, "lovelace", &when(AttemptStep::Begun, of_account)).await.unwrap();
    registration.set_login_until(id, "byron", &when(AttemptStep::Settled, of_account)).await.unwrap();
    registration.set_login_until(id, "king", &when(AttemptStep::Reread, of_account)).await.unwrap();
    // Where a name is claimed.
    let of_claim = || async {
        let slots = claimed(&engine).await.into_iter().map(|(_, slot, _)| slot);
        fail_over(&cluster, slots.into_iter().next().unwrap()).await;
    };
    let email = Some("king@example.org");
    registration.set_email_until(id, email, &when(AttemptStep::Begun, of_account)).await.unwrap();
    registration.set_email_until(id, None, &when(AttemptStep::Claimed(1), of_claim)).await.unwrap();
    assert_eq!(registration.id_of("king").await.unwrap(), id);
    assert_eq!(registration.email(id).await.unwrap(), None);
    for (n, step) in [(0, AttemptStep::Begun), (1, AttemptStep::Settled)] {
        for (m, token) in [(0, None), (1, Some("form"))] {
            let (new, login) = (50 + 2 * n + m, format!("n{n}-{m}"));
            let sign_up = with_id(new, SignUp::new(&login, "correct horse"));
            let sign_up = SignUp { token: token.map(str::to_owned), ..sign_up };
            let of_new = || fail_over(&cluster, slot_of(&engine, AccountId::new(new).unwrap()));
            let registered = registration.sign_up_until(&sign_up, &when(step, of_new)).await.unwrap();
            assert_eq!(registration.id_of(&login).await.unwrap(), registered.id, "{step:?} {token:?}");
        }
    }
    // Of none of these attempts anything is left.
    is_clean(&engine).await;
    assert_eq!(claimed(&engine).await.len(), 1 + 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nor_of_a_server_that_gives_its_last_slot_away() {
    // Else who gives its last slot away becomes a replica of whoever gets it.
    let stays = ClusterSpec::ephemeral().config("cluster-allow-replica-migration", "no");
    let mut cluster = own(stays).await;
    let extra = cluster.start_extra_node().await.unwrap();
    let (engine, registration) = on(&cluster, impatient()).await;
    let id = registration.sign_up(&ada()).await.unwrap().id;
    let slot = slot_of(&engine, id);
    let first = cluster.owner_of(slot).await.unwrap();
    for (step, name) in [(AttemptStep::Begun, "lovelace"), (AttemptStep::Settled, "byron")] {
        cluster.migrate_slot(slot, &extra).await.unwrap();
        let moved_back = || async { cluster.migrate_slot(slot, &first).await.unwrap() };
        registration.set_login_until(id, name, &when(step, moved_back)).await.unwrap();
        assert_eq!(registration.id_of(name).await.unwrap(), id);
    }
    is_clean(&engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_needs_a_replica_is_refused_at_once_where_there_is_none() {
    // It was begun all the same, and its fence tried again until the deadline: here for an hour.
    let cluster = own(replicated()).await;
    let router =
        RouterSettings { replicas: Replicas::Required, deadline: Duration::from_secs(3_600), ..impatient() };
    let (engine, registration) = on(&cluster, router.clone()).await;
    let id = registration.sign_up(&ada()).await.unwrap().id;
    // No server has one: whichever a name or an account lies on.
    for primary in cluster.primaries().await {
        cluster.replica_of(&primary.addr()).await.unwrap().kill().unwrap();
    }
    for bucket in 0..16 {
        let (store, mut touched) = (engine.store(), TouchedServers::new());
        touched.add(&store.router().ask(set_raw(&raw_key(store, bucket, "any"), 1)).await.unwrap());
        eventually("its replica is known to be gone", async || {
            let refused = store.router().fence(&touched).await.unwrap_err();
            refused.to_string().contains("has no replica")
        })
        .await;
    }
    let before = keys(&engine).await;
    let new = with_id(id.get() + 1, SignUp::new("grace", "correct horse"));
    let other = StoreOptions { router: router.clone(), ..options(cluster.urls()) };
    let refused = [
        in_the_end("a sign-up", registration.sign_up(&new)).await.unwrap_err(),
        in_the_end("another login", registration.set_login(id, "lovelace")).await.unwrap_err(),
        in_the_end("another address", registration.set_email(id, None)).await.unwrap_err(),
        in_the_end("a new tenant", Store::open(other.clone())).await.unwrap_err(),
    ];
    for refused in refused {
        assert_eq!(refused.kind(), ErrorKind::Unavailable, "{refused}");
        assert!(refused.to_string().contains("replicas = required"), "{refused}");
    }
    // Nothing was begun.
    assert_eq!(keys(&engine).await, before);
    assert_eq!(Store::open_existing(other).await.unwrap_err().kind(), ErrorKind::NotFound);
    // A tenant that is there is opened all the same.
    let there =
        StoreOptions { router, prefix: engine.store().keys().prefix().into(), ..options(cluster.urls()) };
    Store::open(there).await.unwrap();
}

/// The replica is frozen, and the cluster doesn't call it dead: no fence can be had.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_can_t_be_fenced_is_ended_by_the_call_itself_and_blocks_no_name() {
    let cluster = own(ClusterSpec::ephemeral().replicas(1).node_timeout(Duration::from_secs(300))).await;
    // Only fences are to fail: a slow answer to anything else is waited for.
    let (deadline, response_timeout) = (Duration::from_secs(5), Duration::from_secs(4));
    let router = RouterSettings { deadline, response_timeout, ..impatient() };
    let (engine, registration) = on(&cluster, router).await;
    let id = registration.sign_up(&ada()).await.unwrap().id;
    let primary = cluster.owner_of(slot_of(&engine, id)).await.unwrap();
    let replica = cluster.replica_of(&primary).await.unwrap();
    replica.freeze().unwrap();
    let sign_up = with_id(id.get() + 1, SignUp::new("grace", "correct horse"));
    let beside = slot_of(&engine, AccountId::new(id.get() + 1).unwrap());
    let refused = [
        registration.set_login(id, "lovelace").await.unwrap_err(),
        registration.set_email(id, None).await.unwrap_err(),
        registration.set_login(id, "byron").await.unwrap_err(),
    ];
    for refused in refused {
        assert_eq!(refused.kind(), ErrorKind::Unavailable, "{refused}");
        // Not "0 of 1 replicas": a slow machine's connection gives up before WAIT does.
        assert!(refused.to_string().contains(&format!("fence at {primary}")), "{refused}");
    }
    replica.thaw().unwrap();
    // The same for somebody new, wherever that one lies.
    let primary = cluster.owner_of(beside).await.unwrap();
    let replica = cluster.replica_of(&primary).await.unwrap();
    replica.freeze().unwrap();
    let refused = registration.sign_up(&sign_up).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable, "{refused}");
    assert!(refused.to_string().contains(&format!("fence at {primary}")), "{refused}");
    replica.thaw().unwrap();
    eventually("replicas answer again", async || registration.set_email(id, None).await.is_ok()).await;
    let other = registration.sign_up(&SignUp::new("grace", "battery staple")).await.unwrap().id;
    registration.set_login(id, "byron").await.unwrap();
    registration.set_login(other, "lovelace").await.unwrap();
    is_clean(&engine).await;
}
