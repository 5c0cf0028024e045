//! What must be true once nothing is under way.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::checks::{is_collapsed, whole_timeline};
use super::operations::TAGS;
use super::truth::{self, State};
use super::world::{Faults, World, world};
use crate::Mode;
use crate::engine::Engine;
use crate::graph::{self, ListItem, ListNumber, list_score};
use crate::ids::{AccountId, PostId};
use crate::post::{NamedList, PostRef, Tag};
use crate::sharded::{Order, SortedSet};
use crate::timeline::{ChosenAuthors, ChosenReplies, Cursor, Query};

/// How often something that comes to rest is looked at, and how far apart.
const LOOKS_MAX: usize = 20;
const A_LOOK: Duration = Duration::from_millis(20);

/// So long it may take until everything has come to rest.
pub(super) const REST_MAX: Duration = Duration::from_secs(120);

/// Entries in journals, copies that are still to arrive, notes that nobody has looked at.
fn left() -> (usize, u32, usize) {
    world(|w| (truth::journal_entries(w), w.late, truth::noted_edges(w)))
}

/// Whether nothing is left, and nobody is at anything. An executor may outlive its entry: it sleeps, somebody else
/// takes over and strikes that, it wakes up and goes on. What it writes then is derived from what was, until it looks
/// again, or its note is looked at (harsh seed 8065).
pub(super) fn is_at_rest<'a>(mut engines: impl Iterator<Item = &'a Engine>) -> bool {
    let now = Instant::now();
    let is_awake = world(|w| w.instances.iter().all(|one| one.is_dead || one.frozen_until <= now));
    is_awake && left() == (0, 0, 0) && engines.all(|engine| engine.graph().journal.tasks.len() == 0)
}

/// Nothing goes wrong any more; all journals run empty. False, and a violation: they don't.
pub(super) async fn run_dry() -> bool {
    world(|w| {
        w.note(|| "DRAIN".into());
        w.faults = Faults { has_delays: w.faults.has_delays, ..Faults::default() };
        w.nodes.iter_mut().for_each(|node| node.moving = None);
    });
    let deadline = Instant::now() + REST_MAX;
    loop {
        sleep(Duration::from_millis(100)).await;
        let (entries, late, noted) = left();
        if (entries, late, noted) == (0, 0, 0) {
            return true;
        }
        if Instant::now() > deadline {
            world(|w| w.violated(format!("{entries} entries stay in the journals, {noted} edges noted")));
            return false;
        }
    }
}

/// Accounts that are among the followers of `author` and don't follow it.
async fn strays(engine: &Engine, author: AccountId) -> Vec<AccountId> {
    let followers = engine.stored().followers(author, None, 100, Order::Ascending).await;
    let all = followers.map(|page| page.entries).unwrap_or_default().into_iter().map(|(reader, _)| reader);
    all.filter(|reader| world(|w| !State::of(w, *reader).following.contains_key(&author))).collect()
}

/// Nobody is named among the followers of an account who doesn't follow it.
pub(super) async fn check_strays(engine: &Engine, author: AccountId, when: &str) {
    let strays = strays(engine, author).await;
    if !strays.is_empty() {
        world(|w| {
            w.violated(format!("{when}: {strays:?} don't follow {author}, and are among its followers"))
        });
    }
}

/// Nobody follows a locked account that hasn't let it in, and each author has been asked.
pub(super) fn check_locks(when: &str) {
    world(|w| {
        let follows = |reader: &AccountId| {
            let reader = *reader;
            State::of(w, reader).following.into_iter().map(move |(author, since)| (reader, author, since))
        };
        let all: Vec<_> = w.accounts.iter().flat_map(follows).collect();
        let unasked = truth::unasked(w);
        for (reader, author, since) in all {
            if unasked.contains(&(reader, author)) {
                w.violated(format!("{when}: nobody has asked {author} whether {reader} may follow it"));
            }
            if w.is_uninvited(reader, author, since, u64::MAX) {
                w.violated(format!("{when}: {reader} follows {author}, which is locked and never let it in"));
            }
        }
    });
}

/// A follow of what is deleted is wrong, one of an author that blocks, and one that nobody has made of a request that
/// was approved.
pub(super) fn check_follows(readers: &[AccountId], authors: &[AccountId], when: &str) {
    world(|w| {
        for (reader, author) in readers.iter().flat_map(|r| authors.iter().map(move |a| (*r, *a))) {
            if truth::is_forgotten(w, reader, author) {
                w.violated(format!("{when}: {author} has approved {reader}, which doesn't follow it"));
            }
            let state = State::of(w, author);
            let is_barred = state.blocks.contains_key(&reader);
            if is_barred && State::of(w, reader).following.contains_key(&author) {
                w.violated(format!("{when}: {reader} follows {author}, which blocks it"));
            }
            let is_gone = truth::is_deleted(w, author) || truth::is_deleted(w, reader);
            if !is_gone && truth::is_misled(w, reader, author) {
                w.violated(format!(
                    "{when}: whether {reader} waits for {author} is not what {author} is told"
                ));
            }
            if is_gone && State::of(w, reader).following.contains_key(&author) {
                w.violated(format!("{when}: {reader} follows {author}, and one of them is deleted"));
            }
        }
    });
}

/// Whoever follows an account that is pulled pulls it; no change of mode has come to a halt.
pub(super) fn check_modes(when: &str) {
    world(|w| {
        let is_there = |w: &World, account: &AccountId| !truth::is_deleted(w, *account);
        let all: Vec<AccountId> = w.accounts.iter().copied().filter(|account| is_there(w, account)).collect();
        for author in &all {
            match truth::mode(w, *author) {
                Mode::Push => {}
                Mode::Promoting => {
                    w.violated(format!("{when}: {author} is promoting, and nobody works on that"))
                }
                Mode::Pull => {
                    let misses = |w: &World, reader: &AccountId| {
                        State::of(w, *reader).following.contains_key(author)
                            && !truth::marked(w, *reader).contains(author)
                    };
                    let missing: Vec<_> = all.iter().filter(|reader| misses(w, reader)).collect();
                    if !missing.is_empty() {
                        w.violated(format!("{when}: {author} is pulled, and {missing:?} don't"));
                    }
                }
            }
        }
    });
}

/// Posts that are missing on a list that they name make a hole. What is on one needlessly, nobody is shown; the number
/// of those is given.
pub(super) async fn check_lists(engine: &Engine, when: &str) -> u64 {
    let key = engine.tenant().tags();
    let tags = TAGS.iter().filter_map(|tag| Tag::new(tag).ok());
    let mut lists: Vec<NamedList> = tags.map(|tag| NamedList::Tagged(tag.number(key))).collect();
    let there = |w: &mut World| {
        let all = w.accounts.iter().copied();
        all.filter(|account| !truth::is_deleted(w, *account)).collect::<Vec<_>>()
    };
    lists.extend(world(there).into_iter().map(NamedList::Mentions));
    let mut needless = 0;
    for list in lists {
        let sets = engine.store().sets();
        let set: SortedSet<ListItem> = match list {
            NamedList::Mentions(account) => sets.of_account(account, "mentions").expect("a name"),
            NamedList::Tagged(number) => sets.of_tag(number),
            NamedList::Written(account) => sets.of_account(account, "written").expect("a name"),
            NamedList::Chats(account) => sets.of_account(account, "chats").expect("a name"),
        };
        let on = match set.page(.., None, 1_000, Order::Ascending).await {
            Ok(page) => page.entries,
            Err(e) => {
                world(|w| w.violated(format!("{when}: {list:?} can't be read: {e:?}")));
                continue;
            }
        };
        let floor = on
            .iter()
            .find(|(listed, _)| *listed == ListItem::Number(ListNumber::Floor))
            .map(|(_, score)| *score);
        let floors = graph::floors(engine.tenant(), list).expect("a name");
        let floors = match floors.page(.., None, 1_000, Order::Ascending).await {
            Ok(page) => page.entries.into_iter().collect::<BTreeMap<_, _>>(),
            Err(e) => {
                world(|w| w.violated(format!("{when}: floors of {list:?} can't be read: {e:?}")));
                continue;
            }
        };
        let on: BTreeMap<(u64, AccountId), f64> = on
            .into_iter()
            .filter_map(|(listed, score)| match listed {
                ListItem::Post(post) => Some(((post.id.get(), post.author), score)),
                _ => None,
            })
            .collect();
        let named = world(|w| truth::naming(w, list, key));
        needless += on.keys().filter(|post| !named.contains_key(*post)).count() as u64;
        for (post, is_named) in named {
            let score = PostId::from_u64(post.0).map(list_score).unwrap_or_default();
            let place = PostId::from_u64(post.0).map(|post| post.place(engine.store().keys().buckets()));
            let has_left = floor.is_some_and(|floor| score <= floor)
                || floors.get(&post.1).is_some_and(|floor| place.is_ok_and(|place| place <= *floor));
            // With an archive nothing leaves but to there.
            let has_left = has_left
                && world(|w| {
                    let on = w.archive.as_ref().map(|archive| archive.on_list(&list.to_bytes()));
                    let id = PostId::from_u64(post.0);
                    on.is_none_or(|on| id.is_ok_and(|id| on.contains(&PostRef { id, author: post.1 })))
                });
            if is_named && !has_left && on.get(&post) != Some(&score) {
                world(|w| w.violated(format!("{when}: {list:?} lacks {post:?}")));
            }
        }
    }
    needless
}

/// What lies in one slot never disagrees: outboxes and their posts, records and what they count.
pub(super) fn check_slots() {
    world(|w| {
        for account in w.accounts.clone() {
            for what in truth::disagreements(w, account) {
                w.violated(format!("{account}: {what}"));
            }
        }
    });
}

/// Each account's record tells how many follow it: at once while they are few, else once they are summed up.
pub(super) async fn check_followers(engine: &Engine, when: &str) {
    for account in world(|w| w.accounts.clone()) {
        if world(|w| truth::is_deleted(w, account)) {
            continue;
        }
        let counted = async || {
            graph::count_followers(engine.tenant(), account).await?;
            let told = engine.stored().account(account).await?;
            Ok::<_, crate::Error>((
                told.followers,
                told.uncounted_since,
                engine.stored().counts(account).await?.1,
            ))
        };
        let mut last = counted().await;
        for _ in 0..LOOKS_MAX {
            match last {
                Ok((told, None, there)) if told == there => break,
                // What was read has pairs looked at again, beside all journals: that is soon over.
                _ => sleep(A_LOOK).await,
            }
            last = counted().await;
        }
        if !matches!(last, Ok((told, None, there)) if told == there) {
            world(|w| w.violated(format!("{when}: the followers of {account} are {last:?}")));
        }
    }
}

/// What was published with a token is there once.
pub(super) fn check_tokens() {
    for author in world(|w| w.accounts.clone()) {
        let mut seen = BTreeSet::new();
        for text in world(|w| truth::texts(w, author)) {
            if text.starts_with("token") && !seen.insert(text.clone()) {
                world(|w| w.violated(format!("DOUBLE: {author} has published {text} twice")));
            }
        }
    }
}

/// A reader's walk equals the truth.
pub(super) async fn compare(engine: &Engine, reader: AccountId, limit: usize, when: &str) {
    if world(|w: &mut World| truth::is_deleted(w, reader)) {
        return;
    }
    // Nothing is under way, but a mute of the reader's may end meanwhile (harsh, seed 1483).
    let before = whole_timeline(reader);
    let pages = walk(engine, reader, limit, None).await;
    let walked: Vec<Entry> = pages.iter().flat_map(|page| page.entries.clone()).collect();
    let wanted = whole_timeline(reader);
    // Reposts of one post collapse, within a page.
    let is_collapsed_there = |w: &World, entry: Entry| {
        let page = pages.iter().find(|page| page.reached <= entry.0);
        page.is_some_and(|page| is_collapsed(w, entry, &page.entries))
    };
    let lacks = wanted.iter().filter(|e| before.contains(e) && !walked.contains(e));
    let lacks: Vec<_> = world(|w| lacks.filter(|e| w.fences_hold && !is_collapsed_there(w, **e)).collect());
    // A home may hold what has left its author's outbox.
    let is_cut = |(id, author): &Entry| world(|w| truth::posts(w, *author).cut.contains(id));
    let is_wanted = |e: &Entry| wanted.contains(e) || before.contains(e);
    let extra: Vec<_> = walked.iter().filter(|e| !is_wanted(e) && !is_cut(e)).collect();
    if !lacks.is_empty() || !extra.is_empty() || !walked.is_sorted_by(|a, b| a.0 > b.0) {
        world(|w| {
            w.violated(format!(
                "{when}, walk of {reader}, {limit} a page: lacks {lacks:?}, shows {extra:?} too"
            ));
        });
    }
}

/// A reader's walk through what some accounts have posted is that part of the truth. It changes nothing, and looks only
/// at what has come to rest.
pub(super) async fn compare_chosen(engine: &Engine, reader: AccountId) {
    if world(|w: &mut World| truth::is_deleted(w, reader)) {
        return;
    }
    let authors: Vec<AccountId> = world(|w| w.accounts.iter().copied().step_by(2).collect());
    let chosen = ChosenAuthors::of(authors.clone()).replies(ChosenReplies::Followed);
    let part = || {
        let mut part = whole_timeline(reader);
        part.retain(|(id, author)| {
            // One's own answers to strangers show at home, and on no list.
            let post = world(|w| truth::post(w, *id, *author));
            let to = post.and_then(|post| post.header().reply_to).map(|parent| parent.author);
            let is_known =
                |to: AccountId| to == reader || world(|w| State::of(w, reader).following.contains_key(&to));
            authors.contains(author) && to.is_none_or(|to| to == *author || is_known(to))
        });
        part
    };
    let before = part();
    let pages = walk(engine, reader, 50, Some(&chosen)).await;
    let walked: Vec<Entry> = pages.iter().flat_map(|page| page.entries.clone()).collect();
    let wanted = part();
    let lacks: Vec<_> = world(|w| {
        let must = wanted.iter().filter(|e| before.contains(e) && !walked.contains(e));
        must.filter(|e| w.fences_hold && !is_collapsed(w, **e, &walked)).collect()
    });
    let extra: Vec<_> = walked.iter().filter(|e| !wanted.contains(e) && !before.contains(e)).collect();
    if !lacks.is_empty() || !extra.is_empty() {
        world(|w| w.violated(format!("{reader} of {authors:?}: lacks {lacks:?}, shows {extra:?} too")));
    }
}

type Entry = (u64, AccountId);

/// A page of a walk, and down to where it is all.
struct Walked {
    entries: Vec<Entry>,
    reached: u64,
}

/// All of a timeline, page by page.
async fn walk(
    engine: &Engine,
    reader: AccountId,
    limit: usize,
    chosen: Option<&ChosenAuthors>,
) -> Vec<Walked> {
    let mut walked = Vec::new();
    let mut cursor = None;
    for _ in 0..500 {
        let query = Query { cursor, limit: Some(limit), ..Query::home() };
        let as_reader = engine.as_reader(reader);
        let page = match chosen {
            None => as_reader.read(&query).await,
            Some(chosen) => as_reader.read_chosen(chosen, &query).await,
        };
        match page {
            Err(e) => {
                world(|w| w.violated(format!("a walk of {reader} fails: {e:?}")));
                return walked;
            }
            Ok(page) => {
                let entries = page.posts.iter().map(|post| (post.id.get(), post.author)).collect();
                walked.push(Walked { entries, reached: page.next.map_or(0, Cursor::id) });
                cursor = page.next;
            }
        }
        if cursor.is_none() {
            return walked;
        }
    }
    world(|w| w.violated(format!("a walk of {reader} never ends")));
    walked
}
