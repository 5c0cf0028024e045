//! What runs on the cluster: instances of the engine, and the accounts that they serve.

use std::sync::Arc;

use tokio::time::Instant;

use super::archive::{archive, decided_archive};
use super::history::Outcome;
use super::link::Link;
use super::lua;
use super::shape::{of_instance, settings};
use super::world::{Instance, World, world};
use crate::bucket::Bucket;
use crate::charter::{Decision, TenantSettings};
use crate::cluster::Router;
use crate::engine::{Engine, OwnParts};
use crate::error::Result;
use crate::graph::Graph;
use crate::ids::AccountId;
use crate::modes::Policy;
use crate::settings::EngineSettings;
use crate::store::Store;
use crate::tenant::Tenant;
use crate::{DraftJudge, charter, journal, rules, tenant};

/// Lives through something in a world of its own, without these rules.
pub(super) fn in_a_world<F>(
    seed: u64,
    rules_out: &[&'static str],
    is_traced: bool,
    life: impl FnOnce() -> F,
) -> Outcome
where
    F: Future<Output = std::collections::BTreeMap<&'static str, u64>>,
{
    rules::without(rules_out, seed ^ 0x5eed, || {
        lua::load(rules_out);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.expect("a runtime");
        let counts = runtime.block_on(async {
            World::begin(seed, is_traced);
            life().await
        });
        drop(runtime);
        world(|w| Outcome {
            violations: std::mem::take(&mut w.violations),
            commands: w.commands,
            digest: w.digest,
            trace: w.trace.take().unwrap_or_default(),
            counts,
            sites: lua::take_sites(),
        })
    })
}

/// What one more process works with, and its number.
fn parts() -> (usize, Store, EngineSettings, Arc<dyn Policy>) {
    let (number, keys) = world(|w| {
        w.instances.push(Instance { is_dead: false, frozen_until: Instant::now() });
        (w.instances.len() - 1, w.keys.clone())
    });
    let (visible_within, policy, decide_every, outbox_posts) =
        world(|w| (w.visible_within, w.policy.clone(), w.decide_every, w.outbox_posts));
    let (engine, sets) = settings(visible_within, decide_every, outbox_posts);
    let engine = world(|w| EngineSettings {
        shows_profiles: w.shows_profiles,
        public_posts: w.public_posts,
        keeps_notifications: w.keeps_notifications,
        ..of_instance(number, engine)
    });
    let router = Router::simulated(Arc::new(Link(number))).expect("a router");
    if number % 2 == 1 {
        // Its homes outgrow a list node, and are written anew.
        router.learn_list_size(14);
    }
    let store = Store::simulated(router, keys, sets).expect("a store");
    (number, store, engine, policy)
}

/// One more instance, and its number.
pub(super) async fn instance() -> (usize, Engine) {
    let (number, store, engine, policy) = parts();
    let own = || OwnParts { policy: Some(policy.clone()), archive: archive(), ..OwnParts::default() };
    loop {
        begun(&store, &engine).await;
        // Its first lease may be lost.
        if let Ok(engine) = Engine::over(store.clone(), engine.clone(), own()).await {
            return (number, engine);
        }
    }
}

/// One more instance, which asks a judge, and its number.
pub(super) async fn judging(judge: impl DraftJudge + 'static) -> (usize, Engine) {
    let (number, store, engine, policy) = parts();
    let own = OwnParts {
        policy: Some(policy),
        archive: archive(),
        judge: Some(Arc::new(judge)),
        ..OwnParts::default()
    };
    begun(&store, &engine).await;
    (number, Engine::over(store, engine, own).await.expect("an instance"))
}

/// The tenant is there, and takes these settings if it is new, as where a store is opened. An error: whoever starts
/// meets it too.
async fn begun(store: &Store, engine: &EngineSettings) {
    let own = TenantSettings::of(engine, store.router().settings().replicas);
    let (keys, first) = (store.keys(), Decision { archive: decided_archive(), ..Decision::first(own) });
    let slot = keys.buckets().slot(Bucket(0));
    let begin = charter::begin(keys.charter(), slot, keys.buckets().count(), Some(&first));
    let is_new = async { store.router().call(begin).await?.int() };
    if is_new.await.is_ok_and(|is_new| is_new == 1) {
        drop(charter::tell_what_stands(store.router(), keys, Some(&first)).await);
    }
}

/// One more instance, if it may start.
pub(super) async fn starting() -> (usize, Result<Engine>) {
    let (number, store, engine, policy) = parts();
    begun(&store, &engine).await;
    (
        number,
        Engine::over(
            store,
            engine,
            OwnParts { policy: Some(policy), archive: archive(), ..OwnParts::default() },
        )
        .await,
    )
}

/// One more process that imports, if it may.
pub(super) async fn importing() -> (usize, Result<Arc<Graph>>) {
    let (number, store, engine, _) = parts();
    let known = tenant::known_to_a_tool(&store, &engine).await.expect("a record");
    let graph = Graph::new(&Tenant::new(store, engine, known, archive()));
    (number, journal::begin_import(&graph.journal).await.map(|()| graph))
}

/// Ids of accounts that lie in these buckets, one after the other.
pub(super) fn ids_in(buckets: &[u16]) -> Vec<AccountId> {
    let mut ids = (100..).map(|id| AccountId::new(id).expect("an id"));
    let keys = world(|w| w.keys.clone());
    let mut next =
        |bucket: &u16| ids.find(|id| keys.bucket_of(*id).index() == *bucket).expect("there are more");
    buckets.iter().map(&mut next).collect()
}

/// From now on these accounts are watched. Everything is on replicas.
pub(super) fn watch(accounts: &[AccountId]) {
    world(|w| {
        w.accounts = accounts.to_vec();
        for number in 0..w.nodes.len() {
            w.note_states(number, None);
            w.note_locks(number);
            // Those that are behind have it too.
            w.sync(number);
            w.sync(number);
        }
        for account in accounts {
            w.past.entry(*account).or_default()[0].0 = 0;
        }
    });
}
