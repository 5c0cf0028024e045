//! Where the entries of lists stand: which of two comes first, as far as anybody can know. Pure, like `rules`.

use std::collections::{BTreeSet, HashMap};

use super::call::{List, People, Tie};
use super::facts::{Fact, Time, Tri};
use super::rules::View;
use super::world::{Pair, PostNo, World};

/// So far apart servers' clocks, and what ticks run ahead of them, may put what several accounts have done, in
/// microseconds.
const CLOCKS_APART: Time = 500_000;

/// Between which times, or ids, an entry stands on its list; both included.
pub(crate) type Span = (u64, u64);

/// When something that stands was done, if nobody else had a hand in it. Done again, it may have kept its place.
fn done_between(fact: &Fact<bool>) -> Option<Span> {
    if !fact.influences.is_empty() {
        return None;
    }
    let from = fact.changes.iter().rposition(|change| !change.value).map_or(0, |at| at + 1);
    let on = &fact.changes[from..];
    Some((on.first()?.start, on.last()?.end))
}

/// Two entries of a list, newest first, that stand the wrong way round: the one listed first is surely the older one.
pub(crate) fn misplaced(listed: &[u64], slack: u64, span: impl Fn(u64) -> Option<Span>) -> Option<Pair> {
    let mut oldest: Option<(u64, u64)> = None;
    for id in listed {
        let Some((from, to)) = span(*id) else { continue };
        match oldest {
            Some((older, until)) if until.saturating_add(slack) < from => return Some((older, *id)),
            Some((_, until)) if until <= to => {}
            _ => oldest = Some((*id, to)),
        }
    }
    None
}

/// The same of whom an account follows, or who follows it: the times of several followers are from several clocks.
pub(crate) fn misplaced_follows(
    world: &World,
    (of, is_following): (u64, bool),
    listed: &[u64],
) -> Option<Pair> {
    let done = |pair: Pair| world.follows.get(&pair).and_then(done_between);
    match is_following {
        true => misplaced(listed, 0, |other| done((of, other))),
        false => misplaced(listed, CLOCKS_APART, |other| done((other, of))),
    }
}

/// The same of any list, as its reader gets it.
pub(crate) fn misplaced_on(world: &World, view: &View<'_>, of: List, listed: &[u64]) -> Option<Pair> {
    let reader = view.reader();
    let subject = |post: u64| world.by_id.get(&post).map(|no| world.subject(*no));
    let tied = |what, by, post: Option<PostNo>| world.ties.get(&(what, by, post?)).and_then(done_between);
    match of {
        List::People(People::Following(whose)) => misplaced_follows(world, (whose, true), listed),
        List::People(People::Followers(whose)) => misplaced_follows(world, (whose, false), listed),
        List::People(People::Own(what)) => {
            misplaced(listed, 0, |other| done_between(world.switches.get(&(what, reader, other))?))
        }
        // When they asked isn't known: they come by their ids, as what quotes a post does.
        List::People(People::Requests | People::Requested) | List::Quotes(_) => {
            misplaced(listed, 0, |id| Some((id, id)))
        }
        List::Likers(post) => {
            let post = subject(post);
            misplaced(listed, CLOCKS_APART, |by| tied(Tie::Like, by, post))
        }
        List::Reposters(post) => {
            let spans = reposts(view, post);
            misplaced(listed, 0, |by| spans.get(&by).copied())
        }
        // Where a post stands its scorer decides.
        List::Ranked => None,
        List::Tied(what) => misplaced(listed, 0, |post| tied(what, reader, subject(post))),
    }
}

/// Those who have reposted a post stand where their repost does: one that may still be there.
fn reposts(view: &View<'_>, post: u64) -> HashMap<u64, Span> {
    let mut spans = HashMap::new();
    for repost in view.passing_on(post).filter(|repost| repost.is_plain_repost()) {
        let Some(id) = repost.id.filter(|_| view.exists(repost) != Tri::No) else { continue };
        let span: &mut Span = spans.entry(repost.author).or_insert((id, id));
        *span = (span.0.min(id), span.1.max(id));
    }
    spans
}

/// A conversation as it is read, whether or not anybody may see these posts: what a post answers, the first of all
/// first, itself, and what answers it, each followed by what answers that, the oldest first.
pub(crate) fn conversation(world: &World, post: PostNo) -> Vec<PostNo> {
    let mut all = vec![post];
    let mut answers: HashMap<PostNo, BTreeSet<(u64, PostNo)>> = HashMap::new();
    for (id, no) in &world.by_id {
        if let Some(parent) = world.post(*no).and_then(|post| post.parent) {
            answers.entry(parent).or_default().insert((*id, *no));
        }
    }
    while let Some(parent) = all.last().and_then(|no| world.post(*no)?.parent).filter(|no| !all.contains(no))
    {
        all.push(parent);
    }
    all.reverse();
    let mut to_come: Vec<PostNo> =
        answers.remove(&post).unwrap_or_default().into_iter().rev().map(|(_, no)| no).collect();
    while let Some(next) = to_come.pop() {
        all.push(next);
        to_come.extend(answers.remove(&next).unwrap_or_default().into_iter().rev().map(|(_, no)| no));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::call::{Reach, Switch};
    use crate::verify::facts::Window;
    use crate::verify::steps::PostPlan;
    use crate::verify::world::PostFact;

    fn post(no: PostNo) -> PostFact {
        PostPlan::new(no, Reach::Public).fact(9, 0)
    }

    #[test]
    fn only_what_surely_stands_the_wrong_way_round_is_misplaced() {
        let spans = HashMap::from([(1, (10, 20)), (2, (30, 40)), (3, (35, 50)), (5, (60, 70))]);
        let span = |id: u64| spans.get(&id).copied();
        assert_eq!(misplaced(&[5, 3, 2, 1], 0, span), None);
        assert_eq!(misplaced(&[5, 2, 3, 1], 0, span), None, "nobody knows which one is older");
        assert_eq!(misplaced(&[5, 3, 1, 2], 0, span), Some((1, 2)));
        assert_eq!(misplaced(&[5, 3, 1, 2], 10, span), None);
        // 4 is unknown: what stands around it is compared all the same.
        assert_eq!(misplaced(&[1, 4, 3], 0, span), Some((1, 3)));
        assert_eq!(misplaced(&[2, 3, 4, 5], 0, span), Some((2, 5)));
    }

    #[test]
    fn each_list_has_an_order_of_its_own() {
        let mut world = World { posts: (0..4).map(|no| Some(post(no))).collect(), ..World::default() };
        let second = 1_000_000;
        for no in 0..4 {
            world.published(no, 100 + no as u64, 1);
        }
        // 1 and 2 repost post 0; 3, and then 1, like it; 1 likes post 3 before that.
        for (no, author) in [(1, 1), (2, 2)] {
            let repost = world.post_mut(no).expect("it is there");
            (repost.author, repost.original, repost.has_text) = (author, Some(0), false);
        }
        for (at, by, no) in [(1, 1, 3), (3, 3, 0), (5, 1, 0)] {
            world.tie_fact(Tie::Like, by, no).change(at * second, at * second + 10, true);
        }
        for (at, other) in [(1, 5), (2, 4)] {
            world.switch_fact(Switch::Mute, 1, other).change(at, at, true);
        }
        (1..=9).for_each(|account| world.created(account, false));
        let view = View::new(&world, 1, Window { from: 9 * second, to: 9 * second });
        let people = |of| List::People(of);
        for (of, listed) in [
            (List::Likers(100), [1, 3]),
            (List::Reposters(100), [2, 1]),
            (List::Quotes(100), [9, 8]),
            (List::Tied(Tie::Like), [100, 103]),
            (people(People::Own(Switch::Mute)), [4, 5]),
            (people(People::Requests), [7, 3]),
        ] {
            assert_eq!(misplaced_on(&world, &view, of, &listed), None, "{of:?}");
            let [one, other] = listed;
            assert_eq!(misplaced_on(&world, &view, of, &[other, one]), Some((other, one)), "{of:?}");
        }
    }

    #[test]
    fn a_conversation_is_read_down_each_branch_the_oldest_first() {
        // 0 <- 1 <- {2, 4}, 2 <- 3, and 5 answers 0 besides.
        let parents = [None, Some(0), Some(1), Some(2), Some(1), Some(0)];
        let posts = parents.iter().enumerate().map(|(no, parent)| PostFact { parent: *parent, ..post(no) });
        let mut world = World { posts: posts.map(Some).collect(), ..World::default() };
        (0..6).for_each(|no| world.published(no, 10 + no as u64, 1));
        assert_eq!(conversation(&world, 1), [0, 1, 2, 3, 4]);
        assert_eq!(conversation(&world, 0), [0, 1, 2, 3, 4, 5]);
        assert_eq!(conversation(&world, 3), [0, 1, 2, 3]);
    }
}
