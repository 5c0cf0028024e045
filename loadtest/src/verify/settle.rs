//! After the work is drained: what couldn't be known is looked up.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt as _};

use super::call::{Asked, Call, State, Switch, Which};
use super::check::Wrong;
use super::facts::{Time, Tri, Window};
use super::lateness;
use super::lookups;
use super::losses;
use super::run::{Ended, Run};
use super::slept;
use super::told::Reply;
use super::world::{Pair, PostNo, Request, World};

/// Calls at the same time.
const AT_ONCE: usize = 16;
/// How long the journals may take to be empty.
const DRAIN_MAX_MS: u64 = 45_000;

/// Waits until all is drained, then looks up what couldn't be known.
pub(crate) async fn settle(run: &Arc<Run>) {
    drain(run).await;
    if run.world().may_lose {
        losses::settle(run).await;
        drain(run).await;
    }
    slept::settle(run).await;
    judge_suspects(run);
    let now = run.now();
    run.world().drained(now);
    adopt(run).await;
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

/// Posts that were refused in the end, after a try that may have been carried out.
async fn adopt(run: &Arc<Run>) {
    let unsure: Vec<(PostNo, u64, bool)> = {
        let world = run.world();
        let posts = world.posts.iter().enumerate().filter_map(|(no, post)| Some((no, post.as_ref()?)));
        let open = posts.filter(|(_, post)| post.is_unsure && post.start > 0 && post.id.is_none());
        open.map(|(no, post)| (no, post.author, post.is_plain_repost())).collect()
    };
    for (no, author, is_plain_repost) in unsure {
        // Who may not see the original any more doesn't see its own repost of it either; others do.
        let others = if is_plain_repost { run.world().accounts.clone() } else { Vec::new() };
        for viewer in std::iter::once(author).chain(others) {
            let Some(id) = unknown_on_profile(run, viewer, no, author).await else { continue };
            let now = run.now();
            let mut world = run.world();
            world.published(no, id, now);
            if let Some(post) = world.post_mut(no) {
                (post.delivered, post.listed) = (now, now);
            }
            break;
        }
    }
}

/// A post on its author's profile, as somebody sees that, that says what this one was to say, and is not known.
async fn unknown_on_profile(run: &Arc<Run>, viewer: u64, no: PostNo, author: u64) -> Option<u64> {
    let mut cursor = None;
    // The newest posts are enough: it was published in this round.
    for _ in 0..20 {
        let which = Which::Profile { account: author, replies: true, reposts: true };
        let asked = Asked { which, cursor, hydrate: true, ..Asked::home(viewer, 100) };
        let page = match run.call(no, Call::Read(asked)).await {
            Ended::Done(Reply::Page(page)) => page,
            // Its author is gone: it was published if somebody has seen it before.
            Ended::Refused { kind, .. } if kind == "NotFound" => {
                return run.unknown_post_of(author).filter(|_| viewer == author);
            }
            other => {
                run.skipped(&other);
                return None;
            }
        };
        let world = run.world();
        let post = world.post(no)?;
        let original = post.original.and_then(|no| world.post(no)?.id);
        let found = page.posts.iter().find(|shown| {
            let is_known = world.by_id.contains_key(&shown.id);
            !is_known && shown.text.as_deref() == Some(&post.said.text) && shown.passes_on == original
        });
        if let Some(shown) = found {
            return Some(shown.id);
        }
        drop(world);
        cursor = Some(page.next?);
    }
    None
}

/// Whether one follows another, where both had a hand in it.
async fn look_up(run: &Arc<Run>, pair: Pair) {
    let (reader, author) = pair;
    let follows = match run.call(0, Call::IsFollowing { reader, author }).await {
        Ended::Done(Reply::Flag(follows)) => follows,
        other => return run.skipped(&other),
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
        other => return run.skipped(&other),
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
