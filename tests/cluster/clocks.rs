//! Clocks of servers and of instances that are an hour off: posts, leases, imports go by none of them.

mod history;
mod process;

use std::time::Duration;

use tideline::cluster::NodeAddr;
use tideline::post::Draft;
use tideline::{AccountId, Engine, EngineSettings, ErrorKind, PostId, Query, Range, StoreOptions};
use tideline_local_cluster::ClusterSpec;
use tokio::time::{sleep, timeout};

use super::engine::{accounts, drained, engine_with, small};
use super::harness::{Own, PATIENCE, eventually, impatient, options, own, store_on};
use super::skew::{Clocks, HOUR_S, real_ms};

/// By how much an id may be off the time at which it was taken: a clock is measured to within half of the time that an
/// answer may take, and that is half a second here.
const EXACT_MS: i64 = 2_000;

/// A cluster whose servers each go by a clock of their own, named by their numbers.
async fn skewed(clocks: &Clocks) -> Own {
    let spec = ClusterSpec::ephemeral().node_timeout(Duration::from_secs(30));
    own(clocks.of_servers(spec, &[(0, "0"), (1, "1"), (2, "2")])).await
}

fn node_of(engine: &Engine, account: AccountId) -> NodeAddr {
    let buckets = engine.store().keys().buckets();
    engine.store().router().owner(buckets.slot(buckets.of_account(account.get()))).unwrap()
}

#[tokio::test]
async fn a_server_whose_clock_is_hours_off_neither_lifts_ids_nor_ages_them_nor_turns_them_back() {
    let Some(clocks) = Clocks::new() else { return };
    let cluster = skewed(&clocks).await;
    let store = store_on(&cluster).await;
    let node = cluster.nodes()[1].addr();
    let buckets = store.keys().buckets();
    let at_node =
        |b: &tideline::bucket::Bucket| store.router().owner(buckets.slot(*b)).as_ref() == Some(&node);
    let at_node: Vec<_> = buckets.all().filter(at_node).collect();
    let bucket = at_node[0];
    let mut last: Option<PostId> = None;
    let mut last_tick = 0;
    for (step, hours) in [-1, 0, 1, 0, -1, 0, 2, -2, 1].into_iter().enumerate() {
        clocks.set_server("1", &cluster, &node, hours * HOUR_S).await.unwrap();
        // Where nothing was published before, no id tells what time it may be.
        let began = real_ms();
        let quiet = at_node[step % at_node.len()];
        let at = i64::try_from(store.clock().post_ids(quiet, 1).await.unwrap()[0].unix_ms()).unwrap();
        let in_time = (began - EXACT_MS..real_ms() + EXACT_MS).contains(&at);
        assert!(in_time, "{} ms off with a clock {hours} hours off", at - began);
        // From the first moment on, and when the router has looked at the clocks again.
        for pause in [0, 800] {
            sleep(Duration::from_millis(pause)).await;
            for _ in 0..10 {
                let began = real_ms();
                let id = store.clock().post_ids(bucket, 2).await.unwrap()[0];
                assert!(last.is_none_or(|last| id > last), "{id:?} after {last:?}, {hours} hours off");
                let at = i64::try_from(id.unix_ms()).unwrap();
                assert!(
                    (began - EXACT_MS..real_ms() + EXACT_MS).contains(&at),
                    "with a clock {hours} hours off an id is {} ms off",
                    at - began
                );
                last = Some(id);
                let tick = store.clock().ticks(bucket, 1).await.unwrap()[0];
                assert!(tick > last_tick, "a tick went back, the clock {hours} hours off");
                last_tick = tick;
            }
        }
    }
    let off = i64::try_from(store.router().now_ms()).unwrap() - real_ms();
    assert!(off.abs() < EXACT_MS, "the median clock is {off} ms off");
}

/// Of two clocks the lower one counted: a server an hour behind gave ids an hour old. The author's next page didn't
/// show the post, nor its follower's newest one, and who paged up from the newest that it had seen never got it.
#[tokio::test]
async fn a_post_shows_where_its_readers_look_also_if_its_server_is_an_hour_behind() {
    let Some(clocks) = Clocks::new() else { return };
    let cluster = skewed(&clocks).await;
    let settings = EngineSettings { visible_within: Duration::ZERO, ..EngineSettings::default() };
    let options = StoreOptions { router: impatient(), ..options(cluster.urls()) };
    let engine = engine_with(options, settings).await;
    let all = accounts(&engine, 40).await;
    let behind = cluster.nodes()[1].addr();
    clocks.set_server("1", &cluster, &behind, -HOUR_S).await.unwrap();
    let author = *all.iter().find(|account| node_of(&engine, **account) == behind).unwrap();
    let mut others = all.iter().filter(|account| node_of(&engine, **account) != behind);
    let (other, reader) = (*others.next().unwrap(), *others.next().unwrap());
    for (who, whom) in [(reader, author), (reader, other), (author, other)] {
        engine.follow(who, whom).await.unwrap();
    }
    engine.warm(reader).await.unwrap();
    for n in 0..25 {
        engine.publish(other, &Draft::text(format!("post {n}"))).await.unwrap();
    }
    drained(&engine).await;
    let newest = engine.as_reader(reader).read(&Query::home()).await.unwrap().ids()[0];
    // Later by more than any look at a clock can be wrong.
    sleep(Duration::from_millis(EXACT_MS.unsigned_abs())).await;
    let post = engine.publish(author, &Draft::text("an hour behind")).await.unwrap().id;
    let shows = async |who: AccountId, range: Range| {
        engine.as_reader(who).read(&Query::home().range(range)).await.unwrap().ids().contains(&post)
    };
    assert!(shows(author, Range::default()).await, "the author's own next page shows {post:?}");
    drained(&engine).await;
    assert!(shows(reader, Range::default()).await, "the newest page of a follower shows {post:?}");
    let above = Some(newest);
    assert!(shows(reader, Range { min_id: above, ..Range::default() }).await, "{post:?} is above {newest:?}");
    assert!(
        shows(reader, Range { since_id: above, ..Range::default() }).await,
        "{post:?} is above {newest:?}"
    );
    eventually("health names the server and how far it is off", async || {
        let findings = engine.health().await.unwrap().findings;
        // More may be said of that server, as that it keeps nothing on disk.
        let mut said = findings.iter().filter(|finding| finding.node.as_ref() == Some(&behind));
        said.any(|said| said.text.starts_with("its clock is 3") && said.text.contains("s behind"))
    })
    .await;
}

/// Runs something in a runtime whose only thread dies with it, as a killed process does: nothing is said to anybody.
async fn killed_after<T: Send + 'static, F: Future<Output = T>>(
    life: impl FnOnce() -> F + Send + 'static,
) -> T {
    let thread = std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let done = runtime.block_on(life());
        runtime.shutdown_background();
        done
    });
    tokio::task::spawn_blocking(|| thread.join().unwrap()).await.unwrap()
}

/// "Until when" was told by the clock of the leases' server. It went two hours ahead, leases were renewed, it came
/// back: whoever had died meanwhile lived on for two hours, and nobody searched its share of the journals.
#[tokio::test]
async fn the_work_of_the_dead_is_taken_over_also_if_the_clock_of_their_leases_is_set_back() {
    let Some(clocks) = Clocks::new() else { return };
    let cluster = skewed(&clocks).await;
    let options = StoreOptions { router: impatient(), ..options(cluster.urls()) };
    let engine = engine_with(options.clone(), small()).await;
    let leases = cluster.nodes()[0].addr();
    assert_eq!(engine.store().router().owner(0), Some(leases.clone()));
    let people = accounts(&engine, 2).await;
    let [author, reader] = people[..] else { unreachable!() };
    engine.follow(reader, author).await.unwrap();
    engine.warm(reader).await.unwrap();
    drained(&engine).await;
    for ahead in [2 * HOUR_S, -2 * HOUR_S] {
        clocks.set_server("0", &cluster, &leases, ahead).await.unwrap();
        let options = options.clone();
        let post = killed_after(move || async move {
            let engine = engine_with(options, small()).await;
            // Its lease is renewed by that clock.
            sleep(small().lease_renewal * 3).await;
            let post = engine.publish(author, &Draft::text("left behind")).await.unwrap().id;
            std::mem::forget(engine);
            post
        })
        .await;
        clocks.set_server("0", &cluster, &leases, 0).await.unwrap();
        drained(&engine).await;
        let page = engine.as_reader(reader).read(&Query::home()).await.unwrap();
        assert!(page.ids().contains(&post), "{post:?} was left behind with a clock {ahead} s ahead");
    }
}

#[tokio::test]
async fn an_import_and_engines_exclude_each_other_whatever_the_clock_of_their_leases_does() {
    let Some(clocks) = Clocks::new() else { return };
    let cluster = skewed(&clocks).await;
    let leases = cluster.nodes()[0].addr();
    for hours in [2, -2] {
        let options = StoreOptions { router: impatient(), ..options(cluster.urls()) };
        let builder = || Engine::builder().store(options.clone()).settings(small());
        // One that lives is not taken for dead because the clock jumps ahead.
        clocks.set_server("0", &cluster, &leases, 0).await.unwrap();
        let mut importer = builder().import().await.unwrap();
        clocks.set_server("0", &cluster, &leases, hours * HOUR_S).await.unwrap();
        assert_eq!(builder().start().await.unwrap_err().kind(), ErrorKind::Conflict, "{hours}");
        importer.finish().await.unwrap();
        // Nor is an engine.
        clocks.set_server("0", &cluster, &leases, 0).await.unwrap();
        let engine = builder().start().await.unwrap();
        clocks.set_server("0", &cluster, &leases, hours * HOUR_S).await.unwrap();
        assert_eq!(builder().import().await.unwrap_err().kind(), ErrorKind::Conflict, "{hours}");
        sleep(small().lease_renewal * 2).await;
        assert!(engine.health().await.unwrap().is_well, "it gave way to an import that was refused");
        engine.shutdown(PATIENCE).await.unwrap();
        // One that was killed holds nobody up for longer than its lease, though the clock goes back.
        let killed = options.clone();
        killed_after(move || async move {
            let importer = Engine::builder().store(killed).settings(small()).import().await.unwrap();
            sleep(small().lease_renewal * 3).await;
            std::mem::forget(importer);
        })
        .await;
        clocks.set_server("0", &cluster, &leases, 0).await.unwrap();
        let engine = timeout(PATIENCE, builder().start()).await.expect("it starts").unwrap();
        engine.shutdown(PATIENCE).await.unwrap();
    }
}
