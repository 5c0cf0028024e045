//! After the work is drained: what couldn't be known is looked up, and what is stored is held against the model.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::stream::{self, StreamExt as _};

use super::call::{Asked, Call, Counts, Reply, State, Stored, Switch, Tie, Which};
use super::check::Wrong;
use super::facts::{Tri, Window};
use super::rules::View;
use super::run::{Ended, Run};
use super::world::{Pair, PostFact, PostNo, World};

/// Calls at the same time.
const AT_ONCE: usize = 16;
/// How long the journals may take to be empty.
const DRAIN_MAX_MS: u64 = 45_000;

/// Waits until all is drained, then looks up what couldn't be known.
pub(crate) async fn settle(run: &Arc<Run>) {
    if let Ended::Refused { kind, message, .. } = run.call(0, Call::Drained { within_ms: DRAIN_MAX_MS }).await
    {
        run.wrong(Wrong::Stuck, 0, None, format!("what was accepted is not drained: {kind}: {message}"));
    }
    let now = run.now();
    for post in run.world().posts.iter_mut().flatten() {
        post.delivered = post.delivered.min(now);
        post.listed = post.listed.min(now);
        if let Some(deleted) = &mut post.deleted {
            deleted.end = deleted.end.min(now);
        }
    }
    adopt(run).await;
    let unsure: Vec<Pair> = {
        let world = run.world();
        let at = Window { from: now, to: now };
        let mut unsure: Vec<Pair> = world
            .follows
            .iter()
            .filter(|(_, fact)| fact.is(at, |is| is) == Tri::Maybe)
            .map(|f| *f.0)
            .collect();
        unsure.sort_unstable();
        unsure
    };
    stream::iter(unsure).for_each_concurrent(AT_ONCE, |pair| look_up(run, pair)).await;
}

/// Posts that were refused in the end, after a try that may have been carried out.
async fn adopt(run: &Arc<Run>) {
    let unsure: Vec<(PostNo, u64)> = {
        let world = run.world();
        let is_open =
            |no: &PostNo| world.post(*no).is_some_and(|p| p.is_unsure && p.start > 0 && p.id.is_none());
        (0..world.posts.len()).filter(is_open).filter_map(|no| Some((no, world.post(no)?.author))).collect()
    };
    for (no, author) in unsure {
        let mut cursor = None;
        // The newest posts are enough: it was published in this round.
        for _ in 0..20 {
            let which = Which::Profile { account: author, replies: true, reposts: true };
            let asked = Asked { which, cursor, hydrate: true, ..Asked::home(author, 100) };
            let Ended::Done(Reply::Page(page)) = run.call(no, Call::Read(asked)).await else { break };
            let mut world = run.world();
            let found = page.posts.iter().find(|shown| {
                let post = world.post(no);
                let is_known = world.by_id.contains_key(&shown.id);
                let same_original = || {
                    let original = post.and_then(|p| p.original).and_then(|no| world.post(no)?.id);
                    shown.original == original
                };
                !is_known && post.is_some_and(|p| shown.text.as_deref() == Some(&p.said.0) && same_original())
            });
            if let Some(id) = found.map(|shown| shown.id) {
                let now = run.now();
                world.published(no, id, now);
                if let Some(post) = world.post_mut(no) {
                    (post.delivered, post.listed) = (now, now);
                }
                break;
            }
            drop(world);
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
    }
}

/// Whether one follows another, where both had a hand in it.
async fn look_up(run: &Arc<Run>, pair: Pair) {
    let (reader, author) = pair;
    let Ended::Done(Reply::Flag(follows)) = run.call(0, Call::IsFollowing { reader, author }).await else {
        return;
    };
    let expected = {
        let mut world = run.world();
        let now = run.now();
        let expected = expected(&world, pair, Window { from: now, to: now });
        world.follow_fact(pair).settle(now, follows);
        expected
    };
    if expected.is_some_and(|expected| expected != follows) {
        let text = format!("{reader} follows {author}: {follows}, it has to be {expected:?}");
        run.wrong_between(if follows { Wrong::Leaked } else { Wrong::Lost }, pair, text);
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

/// Holds everything that can be asked besides timelines against the model.
pub(crate) async fn compare(run: &Arc<Run>) {
    let accounts = run.world().accounts.clone();
    stream::iter(&accounts).for_each_concurrent(AT_ONCE, |account| compare_account(run, *account)).await;
    let pairs: Vec<Pair> = accounts.iter().copied().zip(accounts.iter().copied().skip(1)).collect();
    stream::iter(pairs).for_each_concurrent(AT_ONCE, |pair| compare_pair(run, pair)).await;
    let posts = run.world().posts.len();
    stream::iter(0..posts).for_each_concurrent(AT_ONCE, |no| compare_post(run, no)).await;
}

/// What must be counted and listed of an account.
struct Wanted {
    counts: Counts,
    /// Blocks and hides that nobody can be sure of: whom they were of is gone.
    unsure: (u64, u64),
    following: BTreeSet<u64>,
    followers: BTreeSet<u64>,
    /// Who certainly waits for an answer, and who certainly doesn't.
    waiting: (BTreeSet<u64>, BTreeSet<u64>),
}

impl Wanted {
    fn of(world: &World, account: u64, now: Window) -> Self {
        let is_following = |a, b| world.is_following(a, b, now) == Tri::Yes;
        let all = || world.accounts.iter().copied();
        let following: BTreeSet<u64> = all().filter(|other| is_following(account, *other)).collect();
        let followers: BTreeSet<u64> = all().filter(|other| is_following(*other, account)).collect();
        let count = |what, sure| {
            let is_on = |other: &u64| world.is_on(what, account, *other, now) == sure;
            // Those that are deleted stay in one's lists.
            u64::try_from(world.states.keys().filter(|other| is_on(other)).count()).unwrap_or(u64::MAX)
        };
        let own = world.by_id.values().filter_map(|no| world.post(*no)).filter(|p| p.author == account);
        let posts = own.filter(|post| post.exists(now) == Tri::Yes).count();
        let size = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        let counts = Counts {
            posts: size(posts),
            following: size(following.len()),
            followers: size(followers.len()),
            blocks: count(Switch::Block, Tri::Yes),
            hides: count(Switch::Hide, Tri::Yes),
        };
        let waits = |other: &u64| {
            let request = world.requests.get(&(*other, account));
            request.is_some_and(|r| r.asked.is_some() && !r.approved && !r.is_disturbed)
        };
        let certainly = all().filter(waits).collect();
        let never = all().filter(|other| !world.requests.contains_key(&(*other, account))).collect();
        let unsure = (count(Switch::Block, Tri::Maybe), count(Switch::Hide, Tri::Maybe));
        Self { counts, unsure, following, followers, waiting: (certainly, never) }
    }
}

impl Wanted {
    fn admits(&self, counts: Counts) -> bool {
        let besides = |counted: u64, sure: u64| counted.wrapping_sub(sure);
        let sure = Counts { blocks: self.counts.blocks, hides: self.counts.hides, ..counts };
        sure == self.counts
            && besides(counts.blocks, self.counts.blocks) <= self.unsure.0
            && besides(counts.hides, self.counts.hides) <= self.unsure.1
    }
}

async fn compare_account(run: &Arc<Run>, account: u64) {
    let wanted = {
        let world = run.world();
        let now = run.now();
        Wanted::of(&world, account, Window { from: now, to: now })
    };
    let number = usize::try_from(account).unwrap_or(0);
    match run.call(number, Call::Counts { account }).await {
        Ended::Done(Reply::Counts(counts)) if wanted.admits(counts) => {}
        other => {
            let text = format!("counts of {account} are {other:?}, they must be {:?}", wanted.counts);
            run.wrong(Wrong::Miscounted, account, None, text);
        }
    }
    for (limit, descending) in [(7, false), (40, true)] {
        let following = Call::Following { account, descending, limit };
        compare_list(run, account, following, &wanted.following).await;
        let followers = Call::Followers { account, descending, limit };
        compare_list(run, account, followers, &wanted.followers).await;
    }
    for what in [Tie::Like, Tie::Bookmark] {
        compare_tied(run, account, what).await;
    }
    let Ended::Done(Reply::Ids(waiting)) = run.call(number, Call::Requests { account }).await else {
        return;
    };
    let waiting: BTreeSet<u64> = waiting.into_iter().collect();
    let was_suspended = run.world().states.get(&account).is_some_and(|s| !s.changes.is_empty());
    let (certainly, never) = &wanted.waiting;
    for other in certainly.difference(&waiting).filter(|_| !was_suspended) {
        let text = format!("the request of {other} to follow {account} is not listed");
        run.wrong_between(Wrong::Lost, (*other, account), text);
    }
    for other in waiting.intersection(never) {
        let text = format!("{other} is listed as waiting for {account}, and isn't");
        run.wrong_between(Wrong::Miscounted, (*other, account), text);
    }
}

async fn compare_list(run: &Arc<Run>, account: u64, call: Call, wanted: &BTreeSet<u64>) {
    let number = usize::try_from(account).unwrap_or(0);
    let Ended::Done(Reply::Ids(listed)) = run.call(number, call.clone()).await else { return };
    let set: BTreeSet<u64> = listed.iter().copied().collect();
    if set.len() != listed.len() {
        run.wrong(Wrong::Doubled, account, None, format!("{call:?} lists accounts twice: {listed:?}"));
    }
    for other in wanted.difference(&set) {
        run.wrong_between(Wrong::Lost, (account, *other), format!("{call:?} lacks {other}"));
    }
    for other in set.difference(wanted) {
        run.wrong_between(Wrong::Miscounted, (account, *other), format!("{call:?} has {other} besides"));
    }
}

/// What two accounts have in common.
async fn compare_pair(run: &Arc<Run>, (one, other): Pair) {
    let (following, followers, is_mutual) = {
        let world = run.world();
        let now = run.now();
        let follows = |a, b| world.is_following(a, b, Window { from: now, to: now }) == Tri::Yes;
        let all = || world.accounts.iter().copied();
        let following: BTreeSet<u64> = all().filter(|x| follows(one, *x) && follows(other, *x)).collect();
        let followers: BTreeSet<u64> = all().filter(|x| follows(*x, one) && follows(*x, other)).collect();
        (following, followers, follows(one, other) && follows(other, one))
    };
    compare_list(run, one, Call::Common { one, other, followers: false }, &following).await;
    compare_list(run, one, Call::Common { one, other, followers: true }, &followers).await;
    if let Ended::Done(Reply::Flag(flag)) = run.call(0, Call::IsMutual { one, other }).await
        && flag != is_mutual
    {
        run.wrong_between(
            Wrong::Miscounted,
            (one, other),
            format!("{one} and {other} follow each other: {flag}"),
        );
    }
}

/// What an account likes, or has bookmarked, as far as it may see it.
async fn compare_tied(run: &Arc<Run>, account: u64, what: Tie) {
    let number = usize::try_from(account).unwrap_or(0);
    let limit = 1 + number % 7;
    let Ended::Done(Reply::Ids(listed)) = run.call(number, Call::Tied { account, what, limit }).await else {
        return;
    };
    let set: BTreeSet<u64> = listed.iter().copied().collect();
    if set.len() != listed.len() {
        run.wrong(Wrong::Doubled, account, None, format!("{what:?} lists posts twice: {listed:?}"));
    }
    let mut found = Vec::new();
    {
        let world = run.world();
        let now = run.now();
        let view = View::new(&world, account, Window { from: now, to: now });
        for (id, no) in &world.by_id {
            let Some(post) = world.post(*no) else { continue };
            // Of a plain repost the original is meant, which is another post.
            let is_tied = if post.is_plain_repost() { Tri::No } else { view.is_tied(what, *no) };
            match (is_tied.and(view.may_meet(post)), set.contains(id)) {
                (Tri::Yes, false) => {
                    found.push((Wrong::Lost, *no, format!("{what:?} of {id} is not listed")))
                }
                (Tri::No, true) => {
                    found.push((Wrong::Leaked, *no, format!("{what:?} of {id} is listed and must not be")));
                }
                _ => {}
            }
        }
    }
    for (wrong, no, text) in found {
        run.wrong(wrong, account, Some(no), text);
    }
}

/// How many of these there are, at least and at most.
fn range(all: impl Iterator<Item = Tri>) -> (u64, u64) {
    all.fold((0, 0), |(least, most), is| (least + u64::from(is == Tri::Yes), most + u64::from(is != Tri::No)))
}

/// What must be counted of a post: likes, replies, reposts.
fn counted(world: &World, no: PostNo, now: Window) -> [(u64, u64); 3] {
    let likes = world.accounts.iter().map(|account| world.is_tied(Tie::Like, *account, no, now));
    let of = |refers: fn(&PostFact) -> Option<PostNo>| {
        let all = world.posts.iter().flatten().filter(move |post| refers(post) == Some(no) && post.start > 0);
        range(all.map(|post| post.exists(now)))
    };
    [range(likes), of(|post| post.parent), of(|post| post.original.filter(|_| !post.has_text))]
}

async fn compare_post(run: &Arc<Run>, no: PostNo) {
    let Some((id, author)) = run.world().reference(no) else { return };
    let Ended::Done(Reply::Post(found)) = run.call(no, Call::Post { post: id }).await else { return };
    let (wanted, counted) = {
        let world = run.world();
        let now = run.now();
        let now = Window { from: now, to: now };
        let post = world.post(no).filter(|post| post.exists(now) == Tri::Yes);
        (post.map(|post| (author, post.texts(now).concat())), counted(&world, no, now))
    };
    let said = found.as_ref().map(|found| (found.author, found.text.clone()));
    // A deletion that is undone is lost too.
    if said != wanted {
        run.wrong(Wrong::Lost, author, Some(no), format!("post {id} is {said:?}, it must be {wanted:?}"));
        return;
    }
    let Some(Stored { likes, replies, reposts, .. }) = found else { return };
    for ((what, count), (least, most)) in
        [("likes", likes), ("replies", replies), ("reposts", reposts)].into_iter().zip(counted)
    {
        if !(least..=most).contains(&count) {
            let text = format!("post {id} counts {count} {what}, there are {least} to {most}");
            run.wrong(Wrong::Miscounted, author, Some(no), text);
        }
    }
}
