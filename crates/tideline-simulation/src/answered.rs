//! Parts of the engine on a router that a test answers for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::bucket::Buckets;
use crate::charter::{Decision, FORMAT, NewTenantRule, TenantSettings, charter};
use crate::cluster::simulated::Simulated;
use crate::cluster::{Answer, Batch, Epoch, NodeAddr, Replicas, Reply, Request, Router, TouchedServers};
use crate::error::{Error, ErrorKind, Result};
use crate::keys::Keyspace;
use crate::post::TagKey;
use crate::settings::EngineSettings;
use crate::sharded::SetSettings;
use crate::store::Store;
use crate::tenant::{KnownDecision, Tenant};

/// A cluster that nobody asks.
#[derive(Debug)]
struct Silent;

impl Simulated for Silent {
    fn run(&self, _: Batch) -> BoxFuture<'_, Vec<Result<Answer>>> {
        unreachable!("nobody asks")
    }

    fn fence<'a>(&'a self, _: &'a TouchedServers) -> BoxFuture<'a, Result<()>> {
        unreachable!("nobody asks")
    }

    fn now_ms(&self) -> u64 {
        0
    }
}

#[test]
fn homes_fit_the_servers_as_they_are_now() {
    let router = Router::simulated(Arc::new(Silent)).unwrap();
    let keys = Keyspace::new("", Buckets::default()).unwrap();
    let store = Store::simulated(router.clone(), keys, SetSettings::default()).unwrap();
    let settings = EngineSettings { home_posts: 250, ..EngineSettings::default() };
    let own = TenantSettings::of(&settings, Replicas::default());
    let known = KnownDecision::new(own, true, Decision::none(own));
    let tenant = Tenant::new(store, settings, known, None);
    assert!(tenant.fit().is_one_node());
    // A primary with nodes of 4 kB has joined.
    router.learn_list_size(-1);
    assert!(!tenant.fit().is_one_node());
}

/// A server that fails over before the first fence.
#[derive(Debug, Default)]
struct FailsOver {
    written: AtomicU32,
    fences: AtomicU32,
}

impl Simulated for FailsOver {
    fn run(&self, batch: Batch) -> BoxFuture<'_, Vec<Result<Answer>>> {
        let epoch = Epoch::of_life(NodeAddr::new("h", 1), self.fences.load(Ordering::Relaxed));
        let number = |n: u32| Reply::of_bytes(n.to_string().as_bytes());
        let reply = |request: &Request| match request.traits.read {
            true if self.written.load(Ordering::Relaxed) == 0 => {
                Reply::of_items(vec![Reply::of_nil(), Reply::of_nil(), Reply::of_nil()])
            }
            true => Reply::of_items(vec![number(FORMAT), number(64), Reply::of_bytes(&[7; TagKey::LEN])]),
            // The first write makes it.
            false => Reply::of_int(i64::from(self.written.fetch_add(1, Ordering::Relaxed) < 1)),
        };
        let answer = |request: &Request| Ok(Answer { reply: reply(request), epoch: epoch.clone() });
        let answers = batch.requests.iter().map(answer).collect();
        async move { answers }.boxed()
    }

    fn fence<'a>(&'a self, _: &'a TouchedServers) -> BoxFuture<'a, Result<()>> {
        let fence = self.fences.fetch_add(1, Ordering::Relaxed);
        let failed = || Err(Error::of_fence(ErrorKind::Conflict, "it has failed over"));
        async move { if fence == 0 { failed() } else { Ok(()) } }.boxed()
    }

    fn now_ms(&self) -> u64 {
        0
    }
}

/// A new tenant was refused with "fence: ... run the step again"; the second start found it written, and nothing to
/// fence.
#[tokio::test(start_paused = true)]
async fn who_opens_a_new_tenant_hears_nothing_of_a_failover_and_its_charter_is_fenced() {
    let server = Arc::new(FailsOver::default());
    let router = Router::simulated(server.clone()).unwrap();
    let wanted = Buckets::new(64).unwrap();
    assert_eq!(
        charter(&router, "", Some(wanted), NewTenantRule::Begun(None), &mut false).await.unwrap().0,
        wanted
    );
    assert_eq!(server.fences.load(Ordering::Relaxed), 2);
}
