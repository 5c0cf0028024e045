//! What a reader is told besides pages of timelines, when nothing changes any more: conversations, who likes and
//! reposts what, posts by their ids, lists of people, and how it stands to others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::call::{Call, List};
use super::check::{Wrong, is_untrue, told_rightly};
use super::comparisons::Subject;
use super::facts::{Time, Tri, Window};
use super::places::{conversation, misplaced_on};
use super::rules::View;
use super::run::{Ended, Run};
use super::told::{Page, Reply, Shown};
use super::world::{PostNo, World};

/// A conversation of so few posts is told as a whole.
const CONVERSATION_SMALL: usize = 20;

pub(crate) struct Look<'a> {
    pub(crate) run: &'a Arc<Run>,
    pub(crate) reader: u64,
}

impl Look<'_> {
    async fn ask(&self, call: Call) -> Ended {
        self.run.call(usize::try_from(self.reader).unwrap_or(0), call).await
    }

    /// A list, page by page: what belongs on it, each once, and nothing else.
    pub(crate) async fn list(&self, of: List, limit: usize) {
        let (run, reader) = (self.run, self.reader);
        let from = run.now();
        let ended = self.ask(Call::List { reader, of, limit }).await;
        let (found, is_of_posts) = {
            let world = run.world();
            let view = View::new(&world, reader, Window { from, to: run.now() });
            let has_list = view.has_list(of);
            let (listed, posts) = match ended {
                Ended::Done(Reply::Ids(listed)) => (Some(listed), Vec::new()),
                Ended::Done(Reply::Page(Page { posts, .. })) => {
                    (Some(posts.iter().map(|shown| shown.id).collect()), posts)
                }
                Ended::Refused { kind, .. } if kind == "NotFound" => (None, Vec::new()),
                other => return run.skipped(Subject::of_list(of), &other),
            };
            let misplaced = listed.as_ref().and_then(|listed| misplaced_on(&world, &view, of, listed));
            let misplaced = misplaced.map(|(one, other)| {
                (Wrong::Reordered, one, None, format!("{one} stands before {other}, and is older"))
            });
            let found = match listed {
                Some(_) if has_list == Tri::No => {
                    vec![(Wrong::Leaked, reader, "told, and its subject must not be seen")]
                }
                Some(ref listed) => wrongs(listed, &view.list(of)),
                None if has_list == Tri::Yes => {
                    vec![(Wrong::Missing, reader, "refused, and its subject is there")]
                }
                None => return,
            };
            let found = found.into_iter().map(|(wrong, id, text)| {
                let post = world.by_id.get(&id).copied().filter(|_| of.is_of_posts());
                // What an account has done itself was acknowledged.
                let is_own = wrong == Wrong::Missing && matches!(of, List::Tied(_));
                (if is_own { Wrong::Lost } else { wrong }, id, post, format!("{id} is {text}"))
            });
            let told = posts.iter().filter_map(|shown| {
                let (no, wrong, text) = told_wrongly(&world, &view, shown)?;
                Some((wrong, shown.id, Some(no), text))
            });
            (found.chain(told).chain(misplaced).collect::<Vec<_>>(), of.is_of_posts())
        };
        for (wrong, id, post, text) in found {
            let text = format!("{of:?} for {reader}: {text}");
            match is_of_posts {
                true => run.wrong(wrong, reader, post, text),
                false => run.wrong_between(wrong, (reader, id), text),
            }
        }
    }

    /// Whatever shows in a conversation may show, and says what it says.
    pub(crate) async fn conversation(&self, post: u64) {
        let (run, reader) = (self.run, self.reader);
        let from = run.now();
        let call = Call::Conversation { reader, post };
        let posts = match self.ask(call).await {
            Ended::Done(Reply::Page(page)) => page.posts,
            Ended::Refused { kind, .. } if kind == "NotFound" => return self.refused(post, from),
            other => return run.skipped(Subject::Conversations, &other),
        };
        let shown: Vec<u64> = posts.iter().map(|shown| shown.id).collect();
        let mut found = Vec::new();
        {
            let world = run.world();
            let view = View::new(&world, reader, Window { from, to: run.now() });
            let told = posts.iter().filter_map(|shown| told_wrongly(&world, &view, shown));
            found.extend(told.map(|(no, wrong, text)| (wrong, no, text)));
            let fact = |id: &u64| world.by_id.get(id).and_then(|no| Some((*no, world.post(*no)?)));
            for id in &shown {
                if let Some((no, _)) = fact(id).filter(|(_, post)| view.may_meet(post) == Tri::No) {
                    found.push((
                        Wrong::Leaked,
                        no,
                        format!("{id} must not show in the conversation of {post}"),
                    ));
                }
            }
            found.extend(told_in_order(&world, &view, post, &shown));
        }
        for (wrong, no, text) in found {
            run.wrong(wrong, reader, Some(no), text);
        }
    }

    /// A conversation was refused: its post must not be one that shows.
    fn refused(&self, post: u64, from: Time) {
        let (run, reader) = (self.run, self.reader);
        let shows = {
            let world = run.world();
            let view = View::new(&world, reader, Window { from, to: run.now() });
            let no = world.by_id.get(&post).copied();
            no.filter(|no| world.post(*no).is_some_and(|post| view.may_meet(post) == Tri::Yes))
        };
        if shows.is_some() {
            run.wrong(Wrong::Missing, reader, shows, format!("the conversation of {post} was refused"));
        }
    }

    /// Posts by their ids: those that may show, each once, in the order asked, and nothing else.
    pub(crate) async fn by_ids(&self, posts: Vec<u64>) {
        let (run, reader) = (self.run, self.reader);
        let from = run.now();
        let call = Call::ByIds { reader, posts: posts.clone() };
        let page = match self.ask(call).await {
            Ended::Done(Reply::Page(page)) => page,
            other => return run.skipped(Subject::PostsByIds, &other),
        };
        let (mut found, mut reordered) = (Vec::new(), None);
        {
            let world = run.world();
            let view = View::new(&world, reader, Window { from, to: run.now() });
            let places: BTreeMap<u64, usize> =
                posts.iter().enumerate().map(|(at, id)| (*id, at)).rev().collect();
            let at = |id: &u64| places.get(id).copied();
            if !page.posts.iter().map(|shown| at(&shown.id)).is_sorted() {
                reordered = Some(format!("{:?} were asked for in another order", posts));
            }
            if let Some(shown) = page.posts.iter().find(|shown| at(&shown.id).is_none()) {
                reordered = Some(format!("{} was not asked for", shown.id));
            }
            for id in places.into_keys() {
                let Some((no, post)) = world.by_id.get(&id).and_then(|no| Some((*no, world.post(*no)?)))
                else {
                    continue;
                };
                let shown: Vec<_> = page.posts.iter().filter(|shown| shown.id == id).collect();
                let wrong = match (view.may_meet(post), shown.as_slice()) {
                    (Tri::Yes, []) => Some((Wrong::Missing, format!("{id} must show by its id"))),
                    (Tri::No, [_, ..]) => Some((Wrong::Leaked, format!("{id} must not show by its id"))),
                    (_, [_, _, ..]) => Some((Wrong::Doubled, format!("{id} shows twice by its id"))),
                    (_, [shown]) => told_rightly(&view, shown, no, post, true).or_else(|| {
                        let (wrong, text) = (Wrong::Miscounted, miscounted(&world, shown, run.now())?);
                        Some((wrong, text))
                    }),
                    _ => None,
                };
                found.extend(wrong.map(|(wrong, text)| (wrong, no, text)));
            }
        }
        if let Some(text) = reordered {
            run.wrong(Wrong::Reordered, reader, None, text);
        }
        for (wrong, no, text) in found {
            run.wrong(wrong, reader, Some(no), text);
        }
    }

    /// How the reader stands to others.
    pub(crate) async fn relations(&self, others: Vec<u64>) {
        let (run, reader) = (self.run, self.reader);
        let others: Vec<u64> = others.into_iter().filter(|other| *other != reader).collect();
        let from = run.now();
        let call = Call::Relations { account: reader, others: others.clone() };
        let said = match self.ask(call).await {
            Ended::Done(Reply::Relations(said)) => said,
            other => return run.skipped(Subject::Relations, &other),
        };
        let mut found = Vec::new();
        {
            let world = run.world();
            let view = View::new(&world, reader, Window { from, to: run.now() });
            for (other, said) in others.into_iter().zip(said) {
                if is_untrue(said.is_some(), view.is_there(other)) {
                    found.push((other, format!("is told that {other} is there: {}", said.is_some())));
                }
                let Some(said) = said else { continue };
                for (what, said, is) in view.relation(other, said) {
                    if is_untrue(said, is) {
                        found.push((other, format!("{what} {other}: {said}, it is {is:?}")));
                    }
                }
            }
        }
        for (other, text) in found {
            run.wrong_between(Wrong::Miscounted, (reader, other), format!("{reader} {text}"));
        }
    }
}

/// What is wrong about which posts make up a conversation, and in which order they come.
fn told_in_order(world: &World, view: &View<'_>, post: u64, shown: &[u64]) -> Vec<(Wrong, PostNo, String)> {
    let Some(post) = world.by_id.get(&post).map(|no| world.subject(*no)) else { return Vec::new() };
    let whole = conversation(world, post);
    let place = |no: PostNo| whole.iter().position(|other| *other == no);
    let mut found = Vec::new();
    let mut last = None;
    for no in shown.iter().filter_map(|id| world.by_id.get(id)) {
        let wrong = match (place(*no), last) {
            (None, _) => Some((Wrong::Leaked, "is not part of it")),
            (place, last) if place == last => Some((Wrong::Doubled, "is told twice")),
            (place, last) if place < last => Some((Wrong::Reordered, "comes too late")),
            _ => None,
        };
        last = place(*no).max(last);
        found.extend(
            wrong.map(|(wrong, text)| (wrong, *no, format!("in the conversation of post {post} it {text}"))),
        );
    }
    if whole.len() > CONVERSATION_SMALL {
        return found;
    }
    let at = place(post).unwrap_or(0);
    let exists = |no: PostNo| world.post(no).is_some_and(|post| view.exists(post) == Tri::Yes);
    // Above and below what is gone nothing is known; what is only hidden stands between others all the same.
    let mut known: BTreeSet<PostNo> =
        whole[..=at].iter().rev().copied().take_while(|no| exists(*no)).collect();
    for (n, no) in whole.iter().enumerate() {
        let Some(fact) = world.post(*no) else { continue };
        if n > at && exists(*no) && fact.parent.is_some_and(|parent| known.contains(&parent)) {
            known.insert(*no);
        }
        let shows = if n > at { view.on_list(fact) } else { view.may_meet(fact) };
        let is_shown = fact.id.is_none_or(|id| shown.contains(&id));
        if known.contains(no) && shows == Tri::Yes && !is_shown {
            found.push((Wrong::Missing, *no, format!("it must show in the conversation of post {post}")));
        }
    }
    found
}

/// What is wrong about what is told of a post that is hydrated.
fn told_wrongly(world: &World, view: &View<'_>, shown: &Shown) -> Option<(PostNo, Wrong, String)> {
    let no = *world.by_id.get(&shown.id)?;
    let (wrong, text) = told_rightly(view, shown, no, world.post(no)?, true)?;
    Some((no, wrong, text))
}

/// What is wrong about how many are said to follow the author of a post, when nothing changes any more.
fn miscounted(world: &World, shown: &Shown, now: Time) -> Option<String> {
    let (author, told) = shown.account.filter(|(author, _)| world.summed.contains(author))?;
    let followers = world.followers(author, Window { from: now, to: now });
    let text = || format!("{} says that {told} follow {author}, they are {followers:?}", shown.id);
    (!followers.contains(&told)).then(text)
}

/// What is wrong about a list. `all`: everything that there is, with whether it belongs there.
fn wrongs(listed: &[u64], all: &BTreeMap<u64, Tri>) -> Vec<(Wrong, u64, &'static str)> {
    let set: BTreeSet<u64> = listed.iter().copied().collect();
    let mut found = Vec::new();
    for (place, id) in listed.iter().enumerate() {
        if listed[..place].contains(id) {
            found.push((Wrong::Doubled, *id, "listed twice"));
        }
    }
    let belongs = |id: &u64| all.get(id).copied().unwrap_or(Tri::No);
    let strays = set.iter().filter(|id| belongs(id) == Tri::No);
    found.extend(strays.map(|id| (Wrong::Leaked, *id, "listed and must not be")));
    let holes = all.iter().filter(|(id, is)| **is == Tri::Yes && !set.contains(id));
    found.extend(holes.map(|(id, _)| (Wrong::Missing, *id, "not listed")));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_holds_what_belongs_there_once_and_nothing_else() {
        let all = BTreeMap::from([(1, Tri::Yes), (2, Tri::Maybe), (3, Tri::No), (4, Tri::Yes)]);
        assert!(wrongs(&[4, 1], &all).is_empty() && wrongs(&[1, 2, 4], &all).is_empty());
        let kinds: Vec<(Wrong, u64)> =
            wrongs(&[1, 3, 1, 9], &all).into_iter().map(|(wrong, id, _)| (wrong, id)).collect();
        let expected = [(Wrong::Doubled, 1), (Wrong::Leaked, 3), (Wrong::Leaked, 9), (Wrong::Missing, 4)];
        assert_eq!(kinds, expected);
    }
}
