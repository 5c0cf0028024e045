//! Two instances while the primary that holds the leases is frozen, for longer than a lease lasts.

use std::time::Instant;

use metrics_util::debugging::DebuggingRecorder;
use tideline::post::Draft;
use tideline::{AccountId, Engine, PostId};

use super::super::{accounts, drained, engine_with};
use super::{
    copies, few_places, followed, have_each_once, met, nothing_is_under_way, published, servers, split,
    tenant_on,
};
use crate::harness::eventually;
use crate::router::counted;

/// Posts of each instance between two looks at the time: few enough that homes hold all.
const POSTS: usize = 4;

/// An instance, who posts by it, and what they have posted.
struct Instance<'a> {
    engine: Engine,
    authors: &'a [AccountId],
    posts: Vec<PostId>,
}

#[tokio::test]
async fn nobody_is_taken_for_dead_while_the_server_of_the_leases_is_frozen() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let (cluster, settings) = (servers().await, few_places());
    let tenant = tenant_on(&cluster);
    let (first, second) =
        (engine_with(tenant.clone(), settings.clone()), engine_with(tenant, settings.clone()));
    let (first, second) = futures::join!(first, second);
    let people = accounts(&first, 60).await;
    // Leases lie in bucket 0.
    let server = first.store().router().owner(0).unwrap();
    let (there, living) = split(&first, &people, &server);
    let (authors, living, there) = (&living[..4], &living[4..7], &there[..2]);
    followed(&first, &[living, there].concat(), authors).await;
    let instance = |engine, authors| Instance { engine, authors, posts: Vec::new() };
    let mut instances = [instance(first, &authors[..2]), instance(second, &authors[2..])];
    cluster.node(&server).unwrap().freeze().unwrap();
    let frozen = Instant::now();
    let mut of_both = Vec::new();
    for instance in &instances {
        of_both.push(met(&instance.engine, instance.authors[0]).await);
    }
    while frozen.elapsed() < settings.lease_ttl * 4 {
        for Instance { engine, authors, posts } in &mut instances {
            posts.extend(published(engine, authors, POSTS, living.len()).await);
            // What is left of these waits for the server, each with the instance that it is of.
            nothing_is_under_way(engine).await;
        }
        tokio::time::sleep(settings.lease_ttl / 5).await;
    }
    cluster.node(&server).unwrap().thaw().unwrap();
    let [first, second] = &instances;
    drained(&first.engine).await;
    for Instance { engine, posts, .. } in &instances {
        have_each_once(engine, living, posts).await;
        have_each_once(engine, there, posts).await;
    }
    have_each_once(&first.engine, living, &of_both).await;
    for copies in copies(&second.engine, there[0], &of_both).await.into_values() {
        // These lay in its sockets when it froze.
        assert!((1..=2).contains(&copies), "{copies} copies");
    }
    let claimed = counted(snapshotter.snapshot(), "tideline_tasks_recovered_total", [("how", "claimed")]);
    assert_eq!(claimed, 0, "an instance was taken for dead");
    for Instance { engine, authors, .. } in &instances {
        assert!(engine.health().await.unwrap().is_well);
        engine.publish(authors[0], &Draft::text("still here")).await.unwrap().delivery.all().await.unwrap();
    }
    // Whoever ends is gone at once: the leases are there, and looked at.
    let Instance { engine, .. } = second;
    engine.shutdown(settings.lease_ttl).await.unwrap();
    eventually("the other one has all to itself", async || {
        first.engine.health().await.unwrap().journal_entries == 0
    })
    .await;
}
