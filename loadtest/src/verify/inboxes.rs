//! What accounts are told of what others did, held against the model: nothing is under way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::stream::{self, StreamExt as _};
use tideline::NotificationKind;

use super::call::{Call, Tie};
use super::chats::MessageFact;
use super::check::Wrong;
use super::comparisons::Subject;
use super::facts::{Fact, Tri, Window};
use super::groups::{self, is_private};
use super::rules::View;
use super::run::{Ended, Run};
use super::told::{Notice, Reply, Told};
use super::world::{PostFact, PostNo, World};

/// Accounts that are asked at the same time.
const AT_ONCE: usize = 16;
/// Of an account that was told no more than this nothing was cut off: 272 are kept, and follows that it is asked for
/// are not counted here.
const CERTAINLY_KEPT: usize = 200;

/// Something wrong about what somebody is told.
type Finding = (Wrong, String);

/// Holds what everybody is told against what was done.
pub(crate) async fn compare(run: &Arc<Run>) {
    let mut accounts = run.world().accounts.clone();
    accounts.extend(groups::readers().filter(|_| run.world().groups.are_founded));
    stream::iter(accounts).for_each_concurrent(AT_ONCE, |account| compare_one(run, account)).await;
}

async fn compare_one(run: &Arc<Run>, reader: u64) {
    let number = usize::try_from(reader).unwrap_or(0);
    let notices = match run.call(number, Call::Notices { reader, limit: 1 + number % 9 }).await {
        Ended::Done(Reply::Notices(notices)) => notices,
        // It was counted otherwise than it was told, or told otherwise from the oldest on.
        Ended::Refused { kind, message, .. } if kind == "Internal" => {
            return run.wrong(Wrong::Miscounted, reader, None, message);
        }
        other => return run.skipped(Subject::Notifications, &other),
    };
    let (found, is_whole) = {
        let world = run.world();
        let now = run.now();
        let now = Window { from: now, to: now };
        let is_whole = !world.may_lose && told_at_most(&world, reader) <= CERTAINLY_KEPT;
        (wrongs(&world, reader, &notices, (now, is_whole)), is_whole)
    };
    run.event(if is_whole { "inboxes that lack nothing" } else { "inboxes that may have been cut" });
    for (wrong, text) in found {
        run.wrong(wrong, reader, None, format!("what {reader} is told: {text}"));
    }
}

/// What is wrong about what somebody is told. `is_whole`: nothing was cut off, or lost.
fn wrongs(world: &World, reader: u64, notices: &[Notice], (now, is_whole): (Window, bool)) -> Vec<Finding> {
    let all = all_told(world, reader, now);
    let mut found = Vec::new();
    for pair in notices.windows(2).filter(|pair| pair[0].id <= pair[1].id) {
        found.push((Wrong::Reordered, format!("{:?} before {:?}", pair[0], pair[1])));
    }
    let mut met = BTreeSet::new();
    for notice in notices {
        // Of posts pages show one of those that say the same; of follows and requests each is another one.
        if !met.insert(notice.told) {
            found.push((Wrong::Doubled, format!("{notice:?} a second time")));
        }
        match all.get(&notice.told) {
            Some(Tri::Yes | Tri::Maybe) => {}
            None if may_be_an_unheard_message(world, reader, notice.told) => {}
            _ => found.push((Wrong::Leaked, format!("{notice:?} is not so, or not for it"))),
        }
    }
    let lacks = all.into_iter().filter(|(told, is_so)| is_whole && *is_so == Tri::Yes && !met.contains(told));
    found.extend(lacks.map(|(told, _)| (Wrong::Missing, format!("{told:?} is not among it"))));
    found
}

/// Whether it may be of a message of which nobody was told that it was written.
fn may_be_an_unheard_message(world: &World, reader: u64, told: Told) -> bool {
    let is_known = |id: &u64| {
        let messages = world.chats.messages.values();
        world.by_id.contains_key(id) || messages.clone().any(|of| of.written.id == Some(*id))
    };
    let is_unsure = |of: &MessageFact| of.written.id.is_none() && of.written.is_unsure;
    told.kind == NotificationKind::Mention
        && told.post.is_some_and(|id| !is_known(&id))
        && world
            .chats
            .messages
            .values()
            .any(|of| is_unsure(of) && of.written.by == told.by && of.members.contains(&reader))
}

/// All that an account may be told, with whether it is.
fn all_told(world: &World, reader: u64, now: Window) -> BTreeMap<Told, Tri> {
    let view = View::new(world, reader, now);
    let mut all = BTreeMap::new();
    let mut tell = |kind, by: u64, post, is_so: Tri| {
        let is_so = if by == reader { Tri::No } else { is_so };
        all.entry(Told { kind, by, post }).and_modify(|is: &mut Tri| *is = is.or(is_so)).or_insert(is_so);
    };
    for (_, by, no) in world.ties.keys().filter(|(what, ..)| *what == Tie::Like) {
        let Some((id, post)) = own(world, reader, *no) else { continue };
        let is_so = view.likes(*by, *no).and(view.may_meet(post)).and(view.is_told_by(*by));
        tell(NotificationKind::Like, *by, Some(id), is_so);
    }
    for (id, no) in &world.by_id {
        let Some(post) = world.post(*no) else { continue };
        let meets = view.is_told_by(post.author);
        let mentions = post.mentions(reader, view.window_of(post.author));
        if mentions != Tri::No {
            let is_so = mentions.and(view.on_list(post)).and(meets);
            tell(NotificationKind::Mention, post.author, Some(*id), is_so);
        }
        let Some((original, passed_on)) = post.original.and_then(|no| own(world, reader, no)) else {
            continue;
        };
        if post.has_text {
            // What was gone before its quote came onto its list told nobody of that.
            let was_there = if passed_on.deleted.is_some() { Tri::Maybe } else { Tri::Yes };
            let is_so = view.on_list(post).and(meets).and(was_there);
            tell(NotificationKind::Quote, post.author, Some(*id), is_so);
        } else {
            // A repost that doesn't show, since a moderator hides it, is one all the same.
            let shows = if view.on_list(post) == Tri::Yes { Tri::Yes } else { Tri::Maybe };
            let is_so = view.exists(post).and(view.may_meet(passed_on)).and(meets).and(shows);
            tell(NotificationKind::Repost, post.author, Some(original), is_so);
        }
    }
    for by in &world.accounts {
        let follows = world.is_listed((*by, reader), view.window_of(*by));
        tell(NotificationKind::Follow, *by, None, follows.and(view.is_told_by(*by)));
        let waits = world.waits((*by, reader)).and(view.is_told_by(*by));
        tell(NotificationKind::FollowRequest, *by, None, waits);
    }
    for of in world.chats.messages.values().filter(|of| of.members.contains(&reader)) {
        let (by, Some(id)) = (of.written.by, of.written.id) else { continue };
        let has_left = world.chats.has_left(&of.members, reader, now);
        // Who is back wasn't told meanwhile.
        let was_there = world.chats.left.contains_key(&(of.members.clone(), reader));
        let was_there = if was_there { Tri::Maybe } else { Tri::Yes };
        let is_so = of.written.stands(now).and(view.hears(by)).and(has_left.not()).and(was_there);
        tell(NotificationKind::Mention, by, Some(id), is_so);
    }
    for (told, is_so) in likes_in_groups(world, reader, now) {
        tell(told.kind, told.by, told.post, is_so);
    }
    all
}

/// Who likes what that account has posted into groups. Nobody is told what is done with posts of a private group while
/// it is out of that.
fn likes_in_groups(world: &World, reader: u64, now: Window) -> impl Iterator<Item = (Told, Tri)> {
    let groups = &world.groups;
    groups.likes.iter().filter_map(move |((no, by), like)| {
        let of = groups.posted.get(no).filter(|of| of.written.by == reader)?;
        let was_out = groups.members.get(&(of.group, reader)).is_some_and(|fact| {
            fact.changes
                .iter()
                .map(|change| change.value)
                .chain(fact.influences.iter().map(|i| i.value))
                .any(|is| !is)
        });
        let may_be_out = is_private(of.group) && was_out || groups.is_banned(of.group, reader);
        let is_so = like.is(now, |is| is).and(of.written.stands(now));
        let is_so = is_so.and(if may_be_out { Tri::Maybe } else { Tri::Yes });
        Some((Told { kind: NotificationKind::Like, by: *by, post: of.written.id }, is_so))
    })
}

/// The id of a post of that account which others like, quote or repost.
fn own(world: &World, author: u64, no: PostNo) -> Option<(u64, &PostFact)> {
    let post = world.post(no).filter(|post| post.author == author && !post.is_plain_repost())?;
    Some((post.id?, post))
}

/// How often an account was told something, at most.
fn told_at_most(world: &World, reader: u64) -> usize {
    let often = |fact: &Fact<bool>| fact.changes.len() + fact.influences.len();
    let is_own = |no: PostNo| own(world, reader, no).is_some();
    let likes = world.ties.iter().filter(|((what, _, no), _)| *what == Tie::Like && is_own(*no));
    let posts = world.posts.iter().flatten().map(|post| {
        let said = std::iter::once(&post.said).chain(post.edits.iter().map(|edit| &edit.value));
        let mentions = said.filter(|said| said.mentions.contains(&reader)).count();
        mentions + usize::from(post.original.is_some_and(is_own))
    });
    let follows = world.follows.iter().filter(|(pair, _)| pair.1 == reader);
    let messages = world.chats.messages.values().filter(|of| of.members.contains(&reader)).count();
    let is_by_it = |no| world.groups.posted.get(no).is_some_and(|of| of.written.by == reader);
    let in_groups = world.groups.likes.iter().filter(|((no, _), _)| is_by_it(no));
    let acts = likes.map(|(_, fact)| fact).chain(follows.map(|(_, fact)| fact));
    let acts = acts.chain(in_groups.map(|(_, fact)| fact)).map(often);
    acts.sum::<usize>() + posts.sum::<usize>() + messages
}

#[cfg(test)]
mod tests {
    use super::super::call::{Reach, Switch};
    use super::super::steps::PostPlan;
    use super::*;

    #[test]
    fn what_others_did_is_told_once_while_it_is_so_and_to_whom_wants_to_meet_them() {
        let mut world = World::default();
        (1..=3).for_each(|account| world.created(account, false));
        world.posts.push(Some(PostPlan::new(0, Reach::Public).fact(1, 5)));
        world.published(0, 100, 6);
        world.tie_fact(Tie::Like, 2, 0).change(10, 11, true);
        world.followed((3, 1), 10, 11, true);
        let notice = |id, kind, by, post| Notice { id, told: Told { kind, by, post } };
        let like = notice(7, NotificationKind::Like, 2, Some(100));
        let follow = notice(8, NotificationKind::Follow, 3, None);
        let kinds = |world: &World, notices: &[&Notice], is_whole| -> Vec<Wrong> {
            let now = Window { from: 50, to: 50 };
            let notices: Vec<Notice> = notices.iter().map(|notice| (*notice).clone()).collect();
            wrongs(world, 1, &notices, (now, is_whole)).into_iter().map(|(wrong, _)| wrong).collect()
        };
        assert!(kinds(&world, &[&follow, &like], true).is_empty());
        assert_eq!(kinds(&world, &[&like, &follow], true), [Wrong::Reordered]);
        assert_eq!(kinds(&world, &[&follow], true), [Wrong::Missing]);
        assert!(kinds(&world, &[&follow], false).is_empty());
        let again = Notice { id: 9, ..like.clone() };
        assert_eq!(kinds(&world, &[&again, &follow, &like], true), [Wrong::Doubled]);
        let quote = notice(9, NotificationKind::Quote, 3, Some(200));
        assert_eq!(kinds(&world, &[&quote, &follow, &like], true), [Wrong::Leaked]);
        // Who is muted is heard of no more; and what is taken back is not so.
        world.switched(Switch::Mute, (1, 3), true, (20, 21));
        world.tie_fact(Tie::Like, 2, 0).change(20, 21, false);
        assert!(kinds(&world, &[], true).is_empty());
        assert_eq!(kinds(&world, &[&follow, &like], true), [Wrong::Leaked, Wrong::Leaked]);
    }
}
