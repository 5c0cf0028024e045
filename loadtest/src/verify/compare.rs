//! What is listed and counted, held against the model: nothing is under way, and what couldn't be known is settled.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use futures::stream::{self, StreamExt as _};

use super::call::{Call, List, Switch, Tie};
use super::check::Wrong;
use super::comparisons::Subject;
use super::facts::{Tri, Window};
use super::looks::Look;
use super::places::misplaced_follows;
use super::run::{Ended, Run};
use super::told::{Counts, Reply, Stored};
use super::world::{Pair, PostFact, PostNo, World, range};

/// Calls at the same time.
const AT_ONCE: usize = 16;

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
    /// How many of each may be there besides: blocks and hides of whom is gone; plain reposts that nobody can find, for
    /// their original is gone; edges of follows that are lost.
    besides: Counts,
    following: BTreeSet<u64>,
    followers: BTreeSet<u64>,
    /// Who may be listed as a follower besides.
    strays: BTreeSet<u64>,
    /// Who certainly waits for an answer, and who certainly doesn't.
    waiting: [BTreeSet<u64>; 2],
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
            followers_told: size(followers.len()),
            // Who has left a chat blocks it.
            blocks: count(Switch::Block, Tri::Yes) + world.chats.left_by(account, now, Tri::Yes),
            hides: count(Switch::Hide, Tri::Yes),
        };
        let waiting = [Tri::Yes, Tri::No]
            .map(|sure| all().filter(|other| world.waits((*other, account)) == sure).collect());
        let strays: BTreeSet<u64> = all()
            .filter(|other| !followers.contains(other) && world.is_stray((*other, account), now.to))
            .collect();
        let is_unsure = |p: &&PostFact| p.is_unsure && p.start > 0 && p.id.is_none() && p.is_plain_repost();
        let unsure_posts = world.posts.iter().flatten().filter(|p| p.author == account).filter(is_unsure);
        let besides = Counts {
            posts: size(unsure_posts.count()),
            following: 0,
            followers: size(strays.len()),
            // Else the record doesn't tell how many they are.
            followers_told: if world.summed.contains(&account) { size(strays.len()) } else { u64::MAX },
            blocks: count(Switch::Block, Tri::Maybe) + world.chats.left_by(account, now, Tri::Maybe),
            hides: count(Switch::Hide, Tri::Maybe),
        };
        Self { counts, besides, following, followers, strays, waiting }
    }

    fn admits(&self, counts: Counts) -> bool {
        let all = counts.each().into_iter().zip(self.counts.each()).zip(self.besides.each());
        all.into_iter().all(|((counted, sure), besides)| counted.wrapping_sub(sure) <= besides)
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
        // Nothing is asked any more, and that was said already.
        Ended::Stuck => {}
        other => {
            let text = format!("counts of {account} are {other:?}, they must be {:?}", wanted.counts);
            run.wrong(Wrong::Miscounted, account, None, text);
        }
    }
    for (limit, descending) in [(7, false), (40, true)] {
        let following = Call::Following { account, descending, limit };
        compare_list(run, account, following, (&wanted.following, &BTreeSet::new())).await;
        let followers = Call::Followers { account, descending, limit };
        compare_list(run, account, followers, (&wanted.followers, &wanted.strays)).await;
    }
    for what in [Tie::Like, Tie::Bookmark] {
        Look { run, reader: account }.list(List::Tied(what), 1 + number % 7).await;
    }
    let waiting = match run.call(number, Call::Requests { account }).await {
        Ended::Done(Reply::Ids(waiting)) => waiting,
        other => return run.skipped(Subject::Requests, &other),
    };
    let waiting: BTreeSet<u64> = waiting.into_iter().collect();
    let [certainly, never] = &wanted.waiting;
    for other in certainly.difference(&waiting) {
        let text = format!("the request of {other} to follow {account} is not listed");
        run.wrong_between(Wrong::Lost, (*other, account), text);
    }
    for other in waiting.intersection(never) {
        let text = format!("{other} is listed as waiting for {account}, and isn't");
        run.wrong_between(Wrong::Miscounted, (*other, account), text);
    }
}

/// A list of accounts: those that must be on it, and those that may be.
async fn compare_list(
    run: &Arc<Run>,
    account: u64,
    call: Call,
    (wanted, may_be): (&BTreeSet<u64>, &BTreeSet<u64>),
) {
    let number = usize::try_from(account).unwrap_or(0);
    let subject = if matches!(call, Call::Common { .. }) { Subject::InCommon } else { Subject::Follows };
    let listed = match run.call(number, call.clone()).await {
        Ended::Done(Reply::Ids(listed)) => listed,
        other => return run.skipped(subject, &other),
    };
    let misplaced = misplaced(&run.world(), &call, &listed);
    if let Some((one, other)) = misplaced {
        let text = format!("{call:?} lists {one} and {other} the wrong way round: {listed:?}");
        run.wrong(Wrong::Reordered, account, None, text);
    }
    let set: BTreeSet<u64> = listed.iter().copied().collect();
    if set.len() != listed.len() {
        run.wrong(Wrong::Doubled, account, None, format!("{call:?} lists accounts twice: {listed:?}"));
    }
    for other in wanted.difference(&set) {
        run.wrong_between(Wrong::Lost, (account, *other), format!("{call:?} lacks {other}"));
    }
    for other in set.difference(wanted) {
        if may_be.contains(other) {
            run.event("edges of follows that are lost");
            continue;
        }
        run.wrong_between(Wrong::Miscounted, (account, *other), format!("{call:?} has {other} besides"));
    }
}

/// Two entries of a list of follows that stand the wrong way round: they are in the order in which they were made.
fn misplaced(world: &World, call: &Call, listed: &[u64]) -> Option<Pair> {
    let (of, is_following, descending) = match call {
        Call::Following { account, descending, .. } => (*account, true, *descending),
        Call::Followers { account, descending, .. } => (*account, false, *descending),
        _ => return None,
    };
    let mut newest_first = listed.to_vec();
    if !descending {
        newest_first.reverse();
    }
    misplaced_follows(world, (of, is_following), &newest_first)
}

/// What two accounts have in common.
async fn compare_pair(run: &Arc<Run>, (one, other): Pair) {
    let (following, followers, strays, is_mutual) = {
        let world = run.world();
        let now = run.now();
        let follows = |a, b| world.is_following(a, b, Window { from: now, to: now }) == Tri::Yes;
        let all = || world.accounts.iter().copied();
        let following: BTreeSet<u64> = all().filter(|x| follows(one, *x) && follows(other, *x)).collect();
        let followers: BTreeSet<u64> = all().filter(|x| follows(*x, one) && follows(*x, other)).collect();
        let lists = |a, b| follows(a, b) || world.is_stray((a, b), now);
        let listed = all().filter(|x| lists(*x, one) && lists(*x, other));
        let strays: BTreeSet<u64> = listed.filter(|x| !followers.contains(x)).collect();
        (following, followers, strays, follows(one, other) && follows(other, one))
    };
    compare_list(run, one, Call::Common { one, other, followers: false }, (&following, &BTreeSet::new()))
        .await;
    compare_list(run, one, Call::Common { one, other, followers: true }, (&followers, &strays)).await;
    let ended = run.call(0, Call::IsMutual { one, other }).await;
    let Ended::Done(Reply::Flag(flag)) = ended else { return run.skipped(Subject::InCommon, &ended) };
    if flag != is_mutual {
        run.wrong_between(
            Wrong::Miscounted,
            (one, other),
            format!("{one} and {other} follow each other: {flag}"),
        );
    }
}

/// What must be counted of a post: likes, replies, reposts, quotes.
fn counted(world: &World, no: PostNo, now: Window) -> [RangeInclusive<u64>; 4] {
    let likes = world.accounts.iter().map(|account| world.is_tied(Tie::Like, *account, no, now));
    let of = |refers: fn(&PostFact) -> Option<PostNo>| {
        let all = world.posts.iter().flatten().filter(move |post| refers(post) == Some(no) && post.start > 0);
        range(all.map(|post| post.exists(now)))
    };
    [
        range(likes),
        of(|post| post.parent),
        of(|post| post.original.filter(|_| !post.has_text)),
        of(|post| post.original.filter(|_| post.has_text)),
    ]
}

async fn compare_post(run: &Arc<Run>, no: PostNo) {
    let Some((id, author)) = run.world().reference(no) else { return };
    let found = match run.call(no, Call::Post { post: id }).await {
        Ended::Done(Reply::Post(found)) => found,
        other => return run.skipped(Subject::Posts, &other),
    };
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
    let Some(Stored { likes, replies, reposts, quotes, .. }) = found else { return };
    let told = [("likes", likes), ("replies", replies), ("reposts", reposts), ("quotes", quotes)];
    for ((what, count), wanted) in told.into_iter().zip(counted) {
        if !wanted.contains(&count) {
            let text = format!("post {id} counts {count} {what}, there are {wanted:?}");
            run.wrong(Wrong::Miscounted, author, Some(no), text);
        }
    }
}
