//! An instance that dies with work left, and a lease that never ends: nobody takes over what it has left. As if whoever
//! looks at leases never took anybody for dead.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tideline::Store;
use tideline::cluster::{Command, Request};

use super::call::{Call, Reach, State};
use super::facts::{Tri, Window};
use super::pool::Instance;
use super::run::Run;
use super::setup::Setup;
use super::steps::PostPlan;
use super::stored::{ask, key_of_bucket};
use super::told::Reply;
use super::worker::Worker;

/// Instances that are killed until one of them leaves something.
const TRIES: usize = 20;
/// A lease that nobody lives to see the end of, in milliseconds.
const FOR_EVER: u64 = 1_000_000_000_000;
/// Whoever lives has finished its own work by then, on most machines; else another one is killed.
const A_WHILE: Duration = Duration::from_secs(1);

/// Kills instances as soon as they have acknowledged a post, until one has not delivered it.
pub(crate) async fn leave(run: &Arc<Run>, setup: &Setup) -> anyhow::Result<()> {
    let store = setup.store().await?;
    for number in 0..TRIES {
        let Instance::There(worker) = run.pool.instance(number) else {
            anyhow::bail!("only a process can be killed");
        };
        publish(run, &worker, number).await?;
        worker.kill();
        prolong(&store).await?;
        run.pool.replace(
            number,
            &worker,
            Instance::There(Arc::new(Worker::started(&setup.of_instance(number), number).await?)),
        );
        tokio::time::sleep(A_WHILE).await;
        let left = journals(&store).await?;
        if left > 0 {
            eprintln!("Sabotage: {left} tasks of an instance that was killed, and lives for ever.");
            return Ok(());
        }
    }
    anyhow::bail!("no instance that was killed left any work")
}

/// One of the accounts that most follow publishes a post, each time another one: of who is pulled nothing is delivered.
async fn publish(run: &Arc<Run>, worker: &Worker, number: usize) -> anyhow::Result<()> {
    let (no, author, post) = {
        let mut world = run.world();
        let start = run.now();
        let now = Window { from: start, to: start };
        let may = |author: &&u64| {
            world.states.get(author).is_some_and(|fact| fact.is(now, |is| is == State::Active) == Tri::Yes)
        };
        let mut authors: Vec<u64> = world.accounts.iter().filter(may).copied().collect();
        authors.sort_by_key(|author| Reverse(*world.followers(*author, now).start()));
        let author = authors.iter().cycle().nth(number).copied().context("nobody may publish")?;
        let no = world.posts.len();
        let fact = PostPlan::new(no, Reach::Public).fact(author, start);
        let post = fact.spec(no, [None, None]);
        world.posts.push(Some(fact));
        (no, author, post)
    };
    let published = worker.send(Call::Publish { author, post }).context("an instance is gone")?.await?;
    let Reply::Published { id, .. } = published else { anyhow::bail!("not published: {published:?}") };
    let now = run.now();
    run.world().published(no, id, now);
    Ok(())
}

/// All that live now do so for ever; those that still do renew their leases, as ever.
async fn prolong(store: &Store) -> anyhow::Result<()> {
    let first = store.keys().buckets().all().next().context("there is no bucket")?;
    let (leases, slot) = key_of_bucket(store, 'v', first);
    let names = ask(store, slot, Command::new("HKEYS").arg(&leases)).await?.into_array()?;
    for name in names {
        let lease = format!("{FOR_EVER}.{FOR_EVER}");
        let set = Command::new("HSET").arg(&leases).arg(name.bytes()?).arg(lease.as_bytes());
        store.router().call(Request::write(slot, set)).await?;
    }
    Ok(())
}

/// How many entries all journals hold.
async fn journals(store: &Store) -> anyhow::Result<i64> {
    let mut entries = 0;
    for bucket in store.keys().buckets().all() {
        let (journal, slot) = key_of_bucket(store, 'j', bucket);
        entries += ask(store, slot, Command::new("HLEN").arg(&journal)).await?.int()?;
    }
    Ok(entries)
}
