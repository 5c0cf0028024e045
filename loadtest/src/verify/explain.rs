//! Says in words what is known about a violation.

use std::fmt::Write as _;

use super::call::Switch;
use super::check::{Seen, Violation, Wrong};
use super::facts::{Fact, OPEN, Time, Window};
use super::world::{PostFact, PostNo, World};

/// Changes of one fact that are listed; the newest.
const CHANGES_MAX: usize = 12;
/// Events that are told.
const HAPPENED: usize = 400;
/// Posts of the page that are listed around the one in question.
const AROUND: usize = 6;

/// All that the model knows, then what is stored.
pub(crate) fn explain(world: &World, violation: &Violation, stored: &str) -> String {
    let mut text = format!("\n== {:?}, account {}: {}\n", violation.wrong, violation.reader, violation.text);
    if let Some(seen) = &violation.seen {
        page(&mut text, world, seen, violation.post);
    }
    if let Some(no) = violation.post {
        post(&mut text, world, "the post", no);
        if let Some(fact) = world.post(no) {
            pair(&mut text, world, violation.reader, fact.author);
            for (what, other) in [("its original", fact.original), ("its parent", fact.parent)] {
                let Some(other) = other else { continue };
                post(&mut text, world, what, other);
                if let Some(fact) = world.post(other) {
                    pair(&mut text, world, violation.reader, fact.author);
                }
            }
        }
    }
    if let Some(other) = violation.other {
        pair(&mut text, world, violation.reader, other);
        pair(&mut text, world, other, violation.reader);
    }
    if violation.wrong == Wrong::Miscounted && violation.other.is_none() {
        for (&(what, by, other), switched) in &world.switches {
            if by == violation.reader && what != Switch::Mute {
                fact(&mut text, &format!("{what:?} of {other} by {by}"), Some(switched));
            }
        }
    }
    if let Some(person) = world.names.get(violation.reader) {
        let _ = writeln!(text, "names of {}: {person:?}", violation.reader);
    }
    text.push_str(stored);
    text
}

/// What went wrong on purpose, and when something may have been lost by it; the last of it.
pub(crate) fn happened(events: &[(Time, &'static str)], losses: &[Window]) -> String {
    let last = |many: usize| many.saturating_sub(HAPPENED);
    let events = &events[last(events.len())..];
    let events: Vec<String> = events.iter().map(|(time, what)| format!("{} {what}", at(*time))).collect();
    let losses = &losses[last(losses.len())..];
    let losses: Vec<String> = losses.iter().map(|l| format!("{} to {}", at(l.from), at(l.to))).collect();
    let lost = if losses.is_empty() { "nothing".to_owned() } else { losses.join("; ") };
    format!("\nwhat happened: {}\nwhat was acknowledged then may be lost: {lost}", events.join("; "))
}

fn page(text: &mut String, world: &World, seen: &Seen, about: Option<PostNo>) {
    let (from, to) = (at(seen.window.from), at(seen.window.to));
    let _ = writeln!(text, "read from {from} to {to}, instance {}: {:?}", seen.instance, seen.asked);
    let id = about.and_then(|no| world.post(no)?.id);
    let place = id.map_or(0, |id| seen.page.posts.partition_point(|shown| shown.id > id));
    let first = place.saturating_sub(AROUND);
    let shown: Vec<String> = seen
        .page
        .posts
        .iter()
        .skip(first)
        .take(AROUND * 2)
        .map(|s| format!("{} by {}", s.id, s.author))
        .collect();
    let (count, next, newer) = (seen.page.posts.len(), seen.page.next, seen.page.newer);
    let _ =
        writeln!(text, "page: {count} posts, next {next:?}, newer {newer:?}; from number {first}: {shown:?}");
}

fn at(time: Time) -> String {
    if time == OPEN { "never".to_owned() } else { format!("{}.{:03} ms", time / 1_000, time % 1_000) }
}

fn post(text: &mut String, world: &World, what: &str, no: PostNo) {
    let Some(post) = world.post(no) else { return };
    let PostFact { author, reach, only_to, not_to, original, parent, .. } = post;
    let _ = writeln!(
        text,
        "{what}: number {no}, id {:?}, by {author}, {reach:?}, only to {only_to:?}, not to {not_to:?}, original \
         {original:?}, parent {parent:?}, has text {}, says {:?}; published {} to {}, delivered {}, listed {}",
        post.id,
        post.has_text,
        post.said,
        at(post.start),
        at(post.acknowledged),
        at(post.delivered),
        at(post.listed)
    );
    for edit in &post.edits {
        let _ = writeln!(text, "  edited {} to {}: {:?}", at(edit.start), at(edit.end), edit.value);
    }
    if let Some(deleted) = post.deleted {
        let _ = writeln!(text, "  deleted {} to {}", at(deleted.start), at(deleted.end));
    }
    fact(text, "  hidden by a moderator", Some(&post.hidden));
    let mut ties: Vec<_> = world.ties.iter().filter(|((.., tied), _)| *tied == no).collect();
    ties.sort_by_key(|(tie, _)| **tie);
    for ((what, by, _), tie) in ties {
        fact(text, &format!("  {what:?} by {by}"), Some(tie));
    }
}

/// What two accounts have done to each other.
fn pair(text: &mut String, world: &World, reader: u64, author: u64) {
    fact(text, &format!("{reader} follows {author}"), world.follows.get(&(reader, author)));
    let all = [Switch::Mute, Switch::Block, Switch::Hide, Switch::Note, Switch::Reposts, Switch::LeftOut];
    for what in all {
        for (by, other) in [(reader, author), (author, reader)] {
            fact(text, &format!("{what:?} of {other} by {by}"), world.switches.get(&(what, by, other)));
        }
    }
    if let Some(request) = world.requests.get(&(reader, author)) {
        let _ = writeln!(text, "request of {reader} to {author}: {request:?}");
    }
    for account in [reader, author] {
        let states = world.states.get(&account).filter(|states| !states.changes.is_empty());
        fact(text, &format!("state of {account}"), states);
        let locks = world.locks.get(&account).filter(|locks| locks.first || !locks.changes.is_empty());
        fact(text, &format!("{account} is locked"), locks);
    }
}

fn fact<T: std::fmt::Debug>(text: &mut String, what: &str, fact: Option<&Fact<T>>) {
    let Some(fact) = fact else { return };
    let _ = write!(text, "{what}: at first {:?}", fact.first);
    let skipped = fact.changes.len().saturating_sub(CHANGES_MAX);
    for change in &fact.changes[skipped..] {
        let _ = write!(text, "; {} to {}: {:?}", at(change.start), at(change.end), change.value);
    }
    let skipped = fact.influences.len().saturating_sub(CHANGES_MAX);
    for other in &fact.influences[skipped..] {
        let (from, over, until) = (at(other.start), at(other.over), at(other.until));
        let _ = write!(
            text,
            "; the other side may make it {:?} from {from}, over {over}, until {until}",
            other.value
        );
    }
    text.push('\n');
}
