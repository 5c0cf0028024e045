//! Whether a page is right. Pure: a page and the world in, violations out.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;

use super::call::{Asked, List, Tie, WITH_EACH, Which};
use super::facts::{OPEN, Time, Tri, Window};
use super::places::misplaced_on;
use super::rules::View;
use super::told::{Page, Shown};
use super::world::{PostFact, PostNo, World};

/// What can be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Wrong {
    /// It had to be on the page.
    Missing,
    /// Twice on a page, or on two pages of a walk.
    Doubled,
    /// It must not be on the page.
    Leaked,
    /// Not newest first, or not within the range that was asked for.
    Reordered,
    /// Acknowledged, and gone; or undone, and back.
    Lost,
    /// An old text.
    Stale,
    /// A cursor that doesn't move, work that doesn't end, a call that is not answered.
    Stuck,
    /// Sets and counts that differ from the truth.
    Miscounted,
    /// Stored data that fsck calls wrong.
    OutOfStep,
}

impl Wrong {
    pub(crate) const ALL: [Self; 9] = [
        Self::Missing,
        Self::Doubled,
        Self::Leaked,
        Self::Reordered,
        Self::Lost,
        Self::Stale,
        Self::Stuck,
        Self::Miscounted,
        Self::OutOfStep,
    ];
}

/// Something that breaks a law.
#[derive(Debug, Clone)]
pub(crate) struct Violation {
    pub(crate) wrong: Wrong,
    /// Whose timeline, or whose data.
    pub(crate) reader: u64,
    pub(crate) post: Option<PostNo>,
    /// The other account, where it is about two.
    pub(crate) other: Option<u64>,
    pub(crate) text: String,
    /// The page, with what was asked.
    pub(crate) seen: Option<Box<Seen>>,
}

/// A page that somebody got.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) asked: Asked,
    pub(crate) page: Page,
    pub(crate) window: Window,
    pub(crate) instance: usize,
    /// There was no page: what it was about, the engine said, isn't there for the reader.
    pub(crate) is_refused: bool,
}

impl Seen {
    /// From which id to which the page is everything; both included. `None`: nothing.
    fn covers(&self) -> Option<(u64, u64)> {
        let (lower, upper) = self.range();
        let (mut from, mut to) = (lower.saturating_add(1), upper.saturating_sub(1));
        match (self.asked.min, self.page.next, self.page.newer) {
            (None, Some(next), _) => from = from.max(next),
            (Some(_), _, Some(newer)) => to = to.min(newer),
            _ => {}
        }
        (from <= to).then_some((from, to))
    }

    /// What was asked for: between these, both left out.
    fn range(&self) -> (u64, u64) {
        let asked = &self.asked;
        let upper = asked.max.unwrap_or(OPEN).min(asked.cursor.unwrap_or(OPEN));
        (asked.since.max(asked.min).unwrap_or(0), upper)
    }

    fn holds(&self, id: u64) -> bool {
        self.page.posts.iter().any(|shown| shown.id == id)
    }

    fn wrong(&self, wrong: Wrong, post: Option<PostNo>, text: String) -> Violation {
        Violation {
            wrong,
            reader: self.asked.reader,
            post,
            other: None,
            text,
            seen: Some(Box::new(self.clone())),
        }
    }
}

/// Everything that is wrong about a page.
pub(crate) fn check(world: &World, seen: &Seen) -> Vec<Violation> {
    let view = View::new(world, seen.asked.reader, seen.window);
    let (no, is_there) = subject(world, &view, seen.asked.which);
    let wrong = |wrong, text: &str| seen.wrong(wrong, no, format!("{:?} {text}", seen.asked.which));
    match (seen.is_refused, is_there) {
        (true, Tri::Yes) => return vec![wrong(Wrong::Missing, "was refused, and its subject is there")],
        (true, _) => return Vec::new(),
        (false, Tri::No) => return vec![wrong(Wrong::Leaked, "was told, and its subject must not be seen")],
        (false, _) => {}
    }
    let mut found = order(seen);
    for shown in &seen.page.posts {
        found.extend(shown_rightly(world, &view, seen, shown));
    }
    found.extend(collapsed(world, seen));
    found.extend(missing(world, &view, seen));
    found.extend(ends_where_archive_is_away(seen));
    found
}

/// Everything that is wrong about a home by importance that was read whole, in whatever order: each post once, and all
/// that was there from its first page to its last.
pub(crate) fn check_scroll(world: &World, scroll: &Seen) -> Vec<Violation> {
    let view = View::new(world, scroll.asked.reader, scroll.window);
    let mut met = BTreeSet::new();
    let twice = scroll.page.posts.iter().filter(|shown| !met.insert(shown.id));
    let twice =
        twice.map(|shown| scroll.wrong(Wrong::Doubled, None, format!("{} twice by importance", shown.id)));
    let mut found: Vec<Violation> = twice.collect();
    let wrongly = scroll.page.posts.iter().filter_map(|shown| shown_rightly(world, &view, scroll, shown));
    found.extend(wrongly);
    // Where the archive is away there may be less of it, and it says so.
    for (id, shows) in view.list(List::Ranked).into_iter().filter(|_| !scroll.page.lacks_archive) {
        let Some((no, post)) = world.by_id.get(&id).and_then(|no| Some((*no, world.post(*no)?))) else {
            continue;
        };
        let is_settled = settled(world, scroll, post) <= scroll.window.from;
        if shows == Tri::Yes && is_settled && !met.contains(&id) {
            found.push(scroll.wrong(Wrong::Missing, Some(no), format!("{id} must show by importance")));
        }
    }
    found
}

/// What a page is of, and whether that is there for the reader: replies to a post only for who may see it, the page of
/// an account for everybody until it is gone, all else until the reader itself is: somebody else may look at its home.
fn subject(world: &World, view: &View<'_>, which: Which) -> (Option<PostNo>, Tri) {
    match which {
        Which::Replies(parent) => {
            let known = world.by_id.get(&parent).and_then(|no| Some((*no, world.post(*no)?)));
            known.map_or((None, Tri::Maybe), |(no, post)| (Some(no), view.may_meet(post)))
        }
        Which::Profile { account, .. } => (None, view.is_there(account)),
        Which::Home | Which::Mentions | Which::Tag(_) | Which::Public => {
            // Until its burial is done, one that is deleted may get pages, which are held against the model as ever.
            (None, view.is_there(view.reader()).or(Tri::Maybe))
        }
    }
}

fn belongs(world: &World, view: &View<'_>, which: Which, post: &PostFact) -> Tri {
    let on_list = |is_on: Tri| if is_on == Tri::No { Tri::No } else { is_on.and(view.on_list(post)) };
    match which {
        Which::Mentions => {
            let mentions = post.mentions(view.reader(), view.window_of(post.author));
            on_list(Tri::from(post.author != view.reader()).and(mentions))
        }
        Which::Tag(tag) => on_list(post.bears(tag, view.window_of(post.author))),
        Which::Replies(parent) => {
            let answered = world.by_id.get(&parent).map(|no| world.subject(*no));
            let answers = post.parent.map(|no| world.subject(no));
            on_list(Tri::from(answers.is_some() && answers == answered))
        }
        Which::Public => view.on_public_page(post),
        Which::Home => view.at_home(post),
        Which::Profile { account, .. } if account != post.author => Tri::No,
        Which::Profile { replies, reposts, .. } => view.on_profile(post, replies, reposts),
    }
}

/// Newest first, each once, within the range; and the page goes on from where it ended.
fn order(seen: &Seen) -> Vec<Violation> {
    let (lower, upper) = seen.range();
    let ids: Vec<u64> = seen.page.posts.iter().map(|shown| shown.id).collect();
    let mut found = Vec::new();
    for pair in ids.windows(2) {
        if pair[0] == pair[1] {
            found.push(seen.wrong(Wrong::Doubled, None, format!("post {} twice in a row", pair[0])));
        } else if pair[0] < pair[1] {
            found.push(seen.wrong(Wrong::Reordered, None, format!("{} before {}", pair[0], pair[1])));
        }
    }
    for id in ids.iter().filter(|id| **id <= lower || **id >= upper) {
        found.push(seen.wrong(Wrong::Reordered, None, format!("{id} is not between {lower} and {upper}")));
    }
    if ids.len() > seen.asked.limit {
        found.push(seen.wrong(Wrong::Doubled, None, format!("{} posts on the page", ids.len())));
    }
    match (seen.asked.min, seen.page.next, seen.page.newer) {
        (None, Some(next), _) => {
            if next >= upper {
                let text = format!("the next page begins at {next}, this one began at {upper}");
                found.push(seen.wrong(Wrong::Stuck, None, text));
            }
            if let Some(id) = ids.iter().find(|id| **id < next) {
                let text = format!("{id} is below the next page's beginning, {next}: it shows again there");
                found.push(seen.wrong(Wrong::Doubled, None, text));
            }
        }
        (Some(_), _, Some(newer)) => {
            if newer <= lower {
                let text = format!("the next newer page begins at {newer}, this one at {lower}");
                found.push(seen.wrong(Wrong::Stuck, None, text));
            }
            if let Some(id) = ids.iter().find(|id| **id > newer) {
                let text = format!("{id} is above the newer page's beginning, {newer}: it shows again there");
                found.push(seen.wrong(Wrong::Doubled, None, text));
            }
        }
        _ => {}
    }
    found
}

/// A post that shows may show, and says what it says.
fn shown_rightly(world: &World, view: &View<'_>, seen: &Seen, shown: &Shown) -> Option<Violation> {
    let known = world.by_id.get(&shown.id).and_then(|no| Some((*no, world.post(*no)?)));
    let Some((no, post)) = known else {
        let (id, by, now) = (shown.id, shown.author, view.window_of(shown.author));
        match world.groups.shows_in_public(id, by, view.reader(), now) {
            Some(shows) if seen.asked.which == Which::Public => {
                let leaked = || seen.wrong(Wrong::Leaked, None, format!("{id} by {by} must not show"));
                return (shows == Tri::No).then(leaked);
            }
            _ => {}
        }
        if world.may_be_unheard_of(shown.author, seen.window) {
            return None;
        }
        let (id, author, unsure) = (shown.id, shown.author, world.unsure_posts(shown.author));
        let (text, passes_on) = (&shown.text, shown.passes_on);
        let text = format!(
            "nobody has published {id} by {author}; it says {text:?}, passes on {passes_on:?}; not known what came of: \
             {unsure}"
        );
        return Some(seen.wrong(Wrong::Leaked, None, text));
    };
    if post.author != shown.author {
        let text = format!("{} is by {}, shown as by {}", shown.id, post.author, shown.author);
        return Some(seen.wrong(Wrong::Leaked, Some(no), text));
    }
    if belongs(world, view, seen.asked.which, post) == Tri::No {
        let text = format!("{} must not show", shown.id);
        return Some(seen.wrong(Wrong::Leaked, Some(no), text));
    }
    let wrong = told_rightly(view, shown, no, post, seen.asked.hydrate)
        .or_else(|| around(world, view, seen, shown, no))?;
    Some(seen.wrong(wrong.0, Some(no), wrong.1))
}

/// What is told of a post: all that was asked for, its text, and what the reader has done with it.
pub(crate) fn told_rightly(
    view: &View<'_>,
    shown: &Shown,
    no: PostNo,
    post: &PostFact,
    is_hydrated: bool,
) -> Option<(Wrong, String)> {
    if let Some(text) = brought(view, shown, post, is_hydrated) {
        return Some((Wrong::Missing, text));
    }
    let said = shown.text.as_deref()?;
    let texts = post.texts(view.window_of(post.author));
    if !texts.contains(&said) {
        return Some((Wrong::Stale, format!("{} says {said:?}, it may say {texts:?}", shown.id)));
    }
    let ties = shown.ties?;
    let facts = [
        ("liked", ties.likes, view.is_tied(Tie::Like, no)),
        ("bookmarked", ties.has_bookmarked, view.is_tied(Tie::Bookmark, no)),
        ("reposted", ties.has_reposted, view.has_reposted(no)),
    ];
    let (what, said, is) = facts.into_iter().find(|(_, said, is)| is_untrue(*said, *is))?;
    Some((Wrong::Stale, format!("{}: {what} shows as {said}, it is {is:?}", shown.id)))
}

/// What is wrong about what a post came with: everything where posts are hydrated, else nothing.
fn brought(view: &View<'_>, shown: &Shown, post: &PostFact, is_hydrated: bool) -> Option<String> {
    let has = (shown.text.is_some(), shown.account.map(|(id, _)| id), shown.ties.is_some());
    let wanted = (is_hydrated, is_hydrated.then_some(shown.author), is_hydrated);
    if has != wanted {
        return Some(format!("{} came with text, author, ties {has:?}, not {wanted:?}", shown.id));
    }
    let original = view.original(post).filter(|_| is_hydrated);
    let is_right = match (shown.original, original) {
        (Some((id, author)), Some((original, is_there))) => {
            is_there != Tri::No && (original.id, original.author) == (Some(id), author)
        }
        (None, original) => original.is_none_or(|(_, is_there)| is_there != Tri::Yes),
        (Some(_), None) => false,
    };
    let wanted = original.map(|(original, is_there)| (original.id, original.author, is_there));
    (!is_right).then(|| format!("{} came with the original {:?}, not {wanted:?}", shown.id, shown.original))
}

pub(crate) fn is_untrue(said: bool, is: Tri) -> bool {
    is != Tri::Maybe && Tri::from(said) != is
}

/// The likers of a post and the replies to it that came along: only those that may, and all of few.
fn around(world: &World, view: &View<'_>, seen: &Seen, shown: &Shown, no: PostNo) -> Option<(Wrong, String)> {
    // Where the archive is away the page may lack some of it, and says so.
    if !seen.asked.around || seen.page.lacks_archive {
        return None;
    }
    let likers = world.states.keys().map(|account| {
        let likes = view.likes(*account, no);
        (*account, likes, likes.and(view.meets(*account)), shown.likers.contains(account))
    });
    if let Some(wrong) = around_of(shown, "liker", likers.collect()) {
        return Some(wrong);
    }
    if let Some((one, other)) = misplaced_on(world, view, List::Likers(shown.id), &shown.likers) {
        return Some((Wrong::Reordered, format!("liker {one} stands before {other} with {}", shown.id)));
    }
    let subject = world.subject(no);
    let known: Vec<(u64, PostNo, &PostFact)> =
        world.by_id.iter().filter_map(|(id, no)| Some((*id, *no, world.post(*no)?))).collect();
    let is_shown = |id: u64| shown.replies.iter().any(|reply| reply.id == id);
    let answers = |post: &PostFact| post.parent.map(|no| world.subject(no)) == Some(subject);
    let replies = known.iter().filter(|(id, _, post)| answers(post) || is_shown(*id));
    let replies = replies.map(|(id, _, post)| {
        let is_there = Tri::from(answers(post)).and(post.exists(view.window_of(post.author)));
        (*id, is_there, is_there.and(view.on_list(post)), is_shown(*id))
    });
    let replies: Vec<_> = replies.collect();
    if let Some(wrong) = newest_of(shown, &replies).or_else(|| around_of(shown, "reply", replies)) {
        return Some(wrong);
    }
    shown.replies.iter().find_map(|reply| {
        let (_, no, post) = known.iter().find(|(id, ..)| *id == reply.id)?;
        told_rightly(view, reply, *no, post, seen.asked.hydrate)
    })
}

/// Each with whether it is on the list at all, whether it may show, and whether it does.
fn around_of(shown: &Shown, what: &str, all: Vec<(u64, Tri, Tri, bool)>) -> Option<(Wrong, String)> {
    let listed = all.iter().filter(|(_, is_listed, ..)| *is_listed != Tri::No).count();
    for (id, _, may_show, is_shown) in all {
        match (may_show, is_shown) {
            (Tri::No, true) => {
                return Some((Wrong::Leaked, format!("{what} {id} must not show with {}", shown.id)));
            }
            (Tri::Yes, false) if listed <= WITH_EACH => {
                return Some((Wrong::Missing, format!("{what} {id} must show with {}", shown.id)));
            }
            _ => {}
        }
    }
    None
}

/// The replies that come along stand newest first, and are of the newest so many those that may show. `all`: by their
/// ids.
fn newest_of(shown: &Shown, all: &[(u64, Tri, Tri, bool)]) -> Option<(Wrong, String)> {
    let wrong = |wrong, id, text| Some((wrong, format!("reply {id} {text} {}", shown.id)));
    if let Some(pair) = shown.replies.windows(2).find(|pair| pair[0].id <= pair[1].id) {
        return wrong(Wrong::Reordered, pair[0].id, "does not stand where it belongs with");
    }
    // Newer ones: surely, and perhaps.
    let (mut surely, mut perhaps) = (0, 0);
    for (id, is_listed, may_show, is_shown) in all.iter().rev() {
        if *is_shown && surely >= WITH_EACH {
            return wrong(Wrong::Leaked, *id, "is none of the newest that come with");
        }
        if *may_show == Tri::Yes && !is_shown && perhaps < WITH_EACH {
            return wrong(Wrong::Missing, *id, "must show with");
        }
        surely += usize::from(*is_listed == Tri::Yes);
        perhaps += usize::from(*is_listed != Tri::No);
    }
    None
}

/// The original of a plain repost.
fn reposted(world: &World, id: u64) -> Option<PostNo> {
    world.post(*world.by_id.get(&id)?).filter(|post| post.is_plain_repost())?.original
}

/// Of several plain reposts of one original a page shows one.
fn collapsed(world: &World, seen: &Seen) -> Vec<Violation> {
    let mut met: HashMap<PostNo, u64> = HashMap::new();
    let mut found = Vec::new();
    for shown in &seen.page.posts {
        let Some(original) = reposted(world, shown.id) else { continue };
        if let Some(other) = met.insert(original, shown.id) {
            let text = format!("{other} and {} pass on the same post, on one page", shown.id);
            found.push(seen.wrong(Wrong::Doubled, world.by_id.get(&shown.id).copied(), text));
        }
    }
    found
}

/// A page that ends where the archive is away shows something and goes on from there: one of nothing is refused.
fn ends_where_archive_is_away(seen: &Seen) -> Option<Violation> {
    let page = &seen.page;
    let goes_on = if seen.asked.min.is_some() { page.newer } else { page.next };
    let is_right = !page.lacks_archive || !page.posts.is_empty() && (goes_on.is_some() || seen.asked.around);
    let text = || "it lacks the archive, and is empty or doesn't go on".to_owned();
    (!is_right).then(|| seen.wrong(Wrong::Stuck, None, text()))
}

/// When a post must show to the reader: its delivery was done, and no cache can be older.
fn settled(world: &World, seen: &Seen, post: &PostFact) -> Time {
    match seen.asked.which {
        Which::Home if post.author != seen.asked.reader => {
            post.delivered.saturating_add(world.visible_within)
        }
        which if which.is_list() => post.listed.saturating_add(world.visible_within),
        _ => post.acknowledged,
    }
}

fn missing(world: &World, view: &View<'_>, seen: &Seen) -> Vec<Violation> {
    let Some((from, to)) = seen.covers() else { return Vec::new() };
    let mut found = Vec::new();
    for (id, no) in world.by_id.range(from..=to) {
        let Some(post) = world.post(*no) else { continue };
        if settled(world, seen, post) > seen.window.from || seen.holds(*id) {
            continue;
        }
        if belongs(world, view, seen.asked.which, post) != Tri::Yes || is_collapsed(world, seen, *id) {
            continue;
        }
        let text = format!("{id} must show: the page is everything from {from} to {to}");
        found.push(seen.wrong(Wrong::Missing, Some(*no), text));
    }
    found
}

/// Whether the page shows another repost of the same original in its place: the newest, or, read upwards, any.
fn is_collapsed(world: &World, seen: &Seen, id: u64) -> bool {
    let Some(original) = reposted(world, id) else { return false };
    let stands_for =
        |other: u64| (other > id || seen.asked.min.is_some()) && reposted(world, other) == Some(original);
    seen.page.posts.iter().any(|shown| stands_for(shown.id))
}
