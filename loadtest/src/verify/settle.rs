//! After the work is drained: what couldn't be known is looked up.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt as _};

use super::adopt;
use super::call::{Call, State, Switch};
use super::check::Wrong;
use super::comparisons::Subject;
use super::facts::{Time, Tri, Window};
use super::lateness;
use super::lookups;
use super::losses;
use super::run::{Ended, Run};
use super::setup::Setup;
use super::slept;
use super::told::Reply;
use super::world::{Pair, Request, World};

/// Calls at the same time.
const AT_ONCE: usize = 16;
/// How long the journals may take to be empty.
const DRAIN_MAX_MS: u64 = 45_000;

/// Waits until all is drained, then looks up what couldn't be known.
pub(crate) async fn settle(run: &Arc<Run>, setup: &Setup) -> anyhow::Result<()> {
    drain(run).await;
    if run.world().may_lose {
        losses::settle(run).await;
        drain(run).await;
    }
    slept::settle(run).await;
    judge_suspects(run);
    let now = run.now();
    run.world().drained(now);
    adopt::adopt(run, setup).await?;
    let unsure = unsure_follows(&mut run.world(), now);
    stream::iter(unsure).for_each_concurrent(AT_ONCE, |pair| look_up(run, pair)).await;
    let unsure: Vec<Pair> = {
        let world = run.world();
        world.requests.keys().copied().filter(|pair| world.waits(*pair) == Tri::Maybe).collect()
    };
    stream::iter(unsure).for_each_concurrent(AT_ONCE, |pair| look_up_request(run, pair)).await;
    lookups::settle(run).await;
    if run.world().waits_for_strays {
        losses::wait_for_strays(run).await;
        drain(run).await;
    }
    Ok(())
}

async fn drain(run: &Arc<Run>) {
    // Each of them sums up the followers that it knows to have come or gone.
    for instance in 0..run.pool.len() {
        let ended = run.call(instance, Call::Drained { within_ms: DRAIN_MAX_MS }).await;
        if let Ended::Refused { kind, message, .. } = ended {
            run.wrong(Wrong::Stuck, 0, None, format!("what was accepted is not drained: {kind}: {message}"));
        }
    }
    lateness::judge_untold(run, Duration::from_millis(DRAIN_MAX_MS)).await;
}

/// Where it can't be known who follows whom.
fn unsure_follows(world: &mut World, now: Time) -> Vec<Pair> {
    let at = Window { from: now, to: now };
    let mut unsure = Vec::new();
    for (pair, fact) in &mut world.follows {
        match fact.is(at, |is| is) {
            Tri::Maybe => unsure.push(*pair),
            _ => fact.drained(now),
        }
    }
    unsure.sort_unstable();
    unsure
}

/// Nothing is under way any more: what was told of follows can be judged.
fn judge_suspects(run: &Arc<Run>) {
    let suspects = std::mem::take(&mut run.world().suspects);
    let wrongs: Vec<_> = {
        let world = run.world();
        suspects.iter().filter_map(|suspect| suspect.judge(&world)).collect()
    };
    for (wrong, pair, text) in wrongs.into_iter().filter(|_| !run.has_given_up()) {
        run.wrong_between(wrong, pair, text);
    }
}

/// Whether one follows another, where both had a hand in it.
async fn look_up(run: &Arc<Run>, pair: Pair) {
    let (reader, author) = pair;
    let follows = match run.call(0, Call::IsFollowing { reader, author }).await {
        Ended::Done(Reply::Flag(follows)) => follows,
        other => return run.skipped(Subject::Relations, &other),
    };
    let expected = {
        let mut world = run.world();
        let now = run.now();
        let expected = expected(&world, pair, Window { from: now, to: now });
        let fact = world.follow_fact(pair);
        fact.unmoved(follows);
        fact.settle(now, follows);
        if world.may_lose && !follows {
            world.strays.insert(pair, now);
        }
        expected
    };
    if expected.is_some_and(|expected| expected != follows) {
        let text = format!("{reader} follows {author}: {follows}, it has to be {expected:?}");
        run.wrong_between(if follows { Wrong::Leaked } else { Wrong::Lost }, pair, text);
    }
}

/// Whether one still waits for the answer of another.
async fn look_up_request(run: &Arc<Run>, pair: Pair) {
    let (requester, author) = pair;
    let call = Call::Relations { account: author, others: vec![requester] };
    let waits = match run.call(0, call).await {
        Ended::Done(Reply::Relations(found)) => {
            found.first().is_some_and(|f| f.is_some_and(|f| f.is_requested))
        }
        Ended::Refused { .. } => false,
        other => return run.skipped(Subject::Relations, &other),
    };
    let (mut world, now) = (run.world(), run.now());
    world.requests.remove(&pair);
    if waits {
        world.requests.insert(pair, Request { asked: Some(now), ..Request::default() });
    }
}

/// What must be so although both had a hand in it.
fn expected(world: &World, pair: Pair, now: Window) -> Option<bool> {
    let (reader, author) = pair;
    let is_gone = world.is_deleted(author) || world.is_deleted(reader);
    if is_gone || world.is_on(Switch::Block, author, reader, now) == Tri::Yes {
        return Some(false);
    }
    // Whoever is suspended when an approval is carried out doesn't follow: its request is gone.
    let was_suspended = [reader, author].iter().any(|account| {
        let fact = world.states.get(account);
        fact.is_some_and(|fact| fact.changes.iter().any(|change| change.value == State::Suspended))
    });
    let request = world.requests.get(&pair)?;
    (request.approved && !request.is_disturbed && !was_suspended).then_some(true)
}
