//! What must be true of every page.

mod named;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::sync::Arc;

use tokio::time::Instant;

use super::own_ties::{check_brought, check_ties};
use super::truth::{self, Posts, State};
use super::world::{World, world};
use crate::ids::{AccountId, PostId};
use crate::post::{Post, PostRef, Visibility};
use crate::timeline::{Cursor, Page, Query};

type AllPosts = BTreeMap<AccountId, Posts>;

/// What was true at some moment.
#[derive(Debug)]
pub(super) struct Moment {
    at: Instant,
    ms: u64,
    command: u64,
    deleted: BTreeSet<AccountId>,
    posts: AllPosts,
    /// Follows whose authors were still to be asked whether they are locked.
    unasked: BTreeSet<(AccountId, AccountId)>,
}

impl Moment {
    fn now(w: &World) -> Arc<Self> {
        let deleted = w.accounts.iter().copied().filter(|account| truth::is_deleted(w, *account)).collect();
        let (posts, unasked) = (all_posts(w), truth::unasked(w));
        let (at, ms) = (Instant::now(), w.now_ms());
        Arc::new(Self { at, ms, command: w.commands, deleted, posts, unasked })
    }
}

/// What was true when a read began.
pub(super) struct Before {
    /// What the reader itself has done by then shows.
    own: Arc<Moment>,
    /// What others have done by then shows: caches may be behind.
    others: Arc<Moment>,
    /// Reads that deposed primaries had answered by then.
    stale_reads: u64,
}

impl Before {
    pub(super) fn now() -> Self {
        world(|w| {
            let now = Moment::now(w);
            if w.visible_within.is_zero() {
                return Self { own: now.clone(), others: now, stale_reads: w.stale_reads };
            }
            w.moments.push_back(now.clone());
            let is_past = |moment: &Arc<Moment>| moment.at + w.visible_within <= now.at;
            while w.moments.get(1).is_some_and(is_past) {
                w.moments.pop_front();
            }
            let nothing = || {
                let posts = w.accounts.iter().map(|account| (*account, Posts::default())).collect();
                let (deleted, unasked) = Default::default();
                Arc::new(Moment { at: now.at, ms: now.ms, command: 0, deleted, posts, unasked })
            };
            let others = w.moments.front().filter(|moment| is_past(moment)).cloned().unwrap_or_else(nothing);
            Self { own: now, others, stale_reads: w.stale_reads }
        })
    }

    /// Nothing is under way, and no cache is behind.
    fn at_rest(w: &World) -> Self {
        let now = Moment::now(w);
        Self { own: now.clone(), others: now, stale_reads: w.stale_reads }
    }

    fn of(&self, author: AccountId, reader: AccountId) -> &Moment {
        if author == reader { &self.own } else { &self.others }
    }

    /// All that an account has followed, muted, blocked since.
    fn states(&self, w: &World, account: AccountId, reader: AccountId) -> Vec<Rc<State>> {
        let past = w.past.get(&account).map_or(&[][..], Vec::as_slice);
        let since = self.of(account, reader).command;
        let first = past.partition_point(|(command, _)| *command <= since).saturating_sub(1);
        past[first..].iter().map(|(_, state)| state.clone()).collect()
    }

    /// Checks a page that was read downwards, since then.
    pub(super) fn check(&self, reader: AccountId, query: &Query, page: &Page) {
        let from = query.cursor.map_or(u64::MAX, Cursor::id);
        let reached = page.next.map_or(0, Cursor::id);
        world(|w| {
            if page.posts.is_empty() && reached >= from && page.next.is_some() {
                w.violated(format!("page of {reader} has not moved: {reached}, {query:?}"));
            }
            if let Some(end) = from.checked_sub(1) {
                self.check_page(w, reader, query, reached..=end, page);
            }
        });
    }

    /// Checks a page that was read upwards, from some post on: those next to it, all of them.
    pub(super) fn check_upwards(&self, reader: AccountId, query: &Query, page: &Page) {
        let least = query.range.min_id.map_or(0, PostId::get);
        let newest = page.posts.first().map_or(least, |post| post.id.get());
        let is_all = query.limit.is_some_and(|limit| page.posts.len() < limit);
        let reached = if is_all { u64::MAX } else { newest };
        world(|w| self.check_page(w, reader, query, least + 1..=reached, page));
    }

    /// A page that should hold all there is of these ids.
    fn check_page(
        &self,
        w: &mut World,
        reader: AccountId,
        query: &Query,
        ids: RangeInclusive<u64>,
        page: &Page,
    ) {
        let shown: Vec<(u64, AccountId)> = page.posts.iter().map(|p| (p.id.get(), p.author)).collect();
        let is_sorted = shown.is_sorted_by(|a, b| a.0 > b.0);
        if !is_sorted || shown.iter().any(|(id, _)| !ids.contains(id)) {
            w.violated(format!("page of {reader}, ids {ids:?}, is out of order: {shown:?}"));
        }
        // Whoever asks a deposed primary sees what was, until it hears of the new one; that heals by itself.
        let is_stale = w.stale_reads != self.stale_reads;
        w.pages[usize::from(is_stale)] += 1;
        if is_stale {
            return;
        }
        let now = all_posts(w);
        for (id, author) in &shown {
            if let Some(why) = self.is_hidden(w, &now, reader, *id, *author) {
                w.violated(format!("page of {reader} shows {id} of {author}: {why}"));
            }
        }
        for post in page.posts.iter().filter_map(|post| post.post.as_ref()) {
            self.check_edits(w, reader, post);
        }
        self.check_around(w, &now, reader, page);
        check_brought(w, reader, query, &page.posts);
        check_ties(w, reader, self.own.command, &page.posts);
        let needed = self.needed(w, &now, reader, &ids);
        let is_missing = |e: &(u64, AccountId)| {
            !shown.contains(e) && !is_collapsed(w, *e, &shown) && !is_below_a_gone(w, *e, page)
        };
        let missing: Vec<_> = needed.into_iter().filter(is_missing).collect();
        if !missing.is_empty() && w.fences_hold {
            w.violated(format!("HOLE: page of {reader}, ids {ids:?}, lacks {missing:?}; it shows {shown:?}"));
        }
    }

    /// What comes along with the posts of a page leaks nothing either.
    fn check_around(&self, w: &mut World, now: &AllPosts, reader: AccountId, page: &Page) {
        let own = self.states(w, reader, reader);
        let mut wrong = Vec::new();
        for post in &page.posts {
            for reply in &post.replies {
                if let Some(why) = self.leaks(w, now, reader, &own, (reply.id.get(), reply.author)) {
                    wrong.push(format!(
                        "page of {reader} shows the reply {} of {}: {why}",
                        reply.id, reply.author
                    ));
                }
            }
            for liker in post.likers.iter().map(|liker| liker.id).filter(|liker| *liker != reader) {
                let is_gone = self.of(liker, reader).deleted.contains(&liker);
                if is_gone || self.is_barred(w, reader, &own, liker) {
                    wrong.push(format!("page of {reader} shows that {liker} likes {}", post.id));
                }
            }
        }
        wrong.into_iter().for_each(|what| w.violated(what));
    }

    /// A post says what the last edit has made of it that was acknowledged by then.
    fn check_edits(&self, w: &mut World, reader: AccountId, post: &Post) {
        let header = post.header();
        let since = self.of(header.author, reader).command;
        let is_due = |edit: &&Edited| {
            let is_it = edit.post.author == header.author && edit.command <= since;
            is_it && edit.revision > header.revision && !w.has_failed_over(header.author, edit.command)
        };
        // Texts tell posts apart: a page's post doesn't know its id.
        let text = &post.content().text;
        if let Some(edit) = w.edits.iter().filter(|edit| edit.text == *text).find(is_due) {
            let (of, seen, wanted) = (edit.post, header.revision, edit.revision);
            w.violated(format!("page of {reader} shows revision {seen} of {of:?}, not {wanted}"));
        }
    }

    /// Why an entry must not be on a home page.
    fn is_hidden(
        &self,
        w: &World,
        now: &AllPosts,
        reader: AccountId,
        id: u64,
        author: AccountId,
    ) -> Option<&'static str> {
        let own = self.states(w, reader, reader);
        if let Some(why) = self.leaks(w, now, reader, &own, (id, author)) {
            return Some(why);
        }
        if author == reader {
            return None;
        }
        if self.names_unwanted(w, &own, reader, (id, author)) {
            return Some("it mentions somebody whom the reader mutes or blocks");
        }
        let answers = truth::post(w, id, author).and_then(|post| post.header().reply_to);
        if let Some(parent) = answers {
            let is_known = [reader, author].contains(&parent.author);
            if !is_known && own.iter().all(|s| !s.following.contains_key(&parent.author)) {
                return Some("it answers a stranger");
            }
        }
        if own.iter().all(|state| !state.following.contains_key(&author)) {
            return Some("the reader doesn't follow its author");
        }
        let is_repost = truth::post(w, id, author).is_some_and(|post| post.is_plain_repost());
        if is_repost && own.iter().all(|s| s.hidden_reposts.contains(&author)) {
            return Some("the reader leaves its author's reposts out");
        }
        let is_muted = own.iter().all(|s| s.mutes_at(author, w.now_ms()));
        is_muted.then_some("the reader mutes its author")
    }

    /// Why a post must not be shown to that reader anywhere.
    fn leaks(
        &self,
        w: &World,
        now: &AllPosts,
        reader: AccountId,
        own: &[Rc<State>],
        (id, author): (u64, AccountId),
    ) -> Option<&'static str> {
        let moment = self.of(author, reader);
        let (before, now) = (&moment.posts[&author], &now[&author]);
        let is_sure = !w.has_failed_over(author, moment.command);
        if truth::is_deleted(w, author) {
            // Its posts are going, one by one.
            return (is_sure && moment.deleted.contains(&author)).then_some("its author is deleted");
        }
        if is_sure && before.deleted.contains(&id) {
            return Some("it was deleted");
        }
        let is_there = |posts: &Posts| posts.live.contains(&id) || posts.cut.contains(&id);
        // It came, was deleted, and left the outbox, all since then (calm seed 7).
        let is_between = |before: u64, now: u64| before < id && id <= now;
        let has_left = is_between(before.floor, now.floor) || is_between(before.archived, now.archived);
        let is_known = is_there(now) || is_there(before) || now.deleted.contains(&id) || has_left;
        if is_sure && !is_known {
            return Some("there is no such post");
        }
        if let Some(post) = truth::post(w, id, author) {
            if !self.is_for(w, reader, own, (id, &post)) {
                return Some("it is not for that reader");
            }
            if let Some(why) = self.original_leaks(w, reader, own, &post) {
                return Some(why);
            }
        }
        (author != reader && self.is_barred(w, reader, own, author))
            .then_some("its author and the reader don't want each other")
    }

    /// Whether a post may be for that reader: named, mentioned, or a follower at some time.
    fn is_for(&self, w: &World, reader: AccountId, own: &[Rc<State>], (id, post): (u64, &Post)) -> bool {
        let (header, since) = (post.header(), self.of(post.header().author, reader).command);
        let is_stable = !PostId::from_u64(id).is_ok_and(|id| w.was_edited(id, since))
            && !w.has_failed_over(header.author, since);
        let is_mentioned = match is_stable {
            true => post.mentions(reader),
            // What was read, or lies in a cache, may be what it said before.
            false => post.mentioned_ever(reader),
        };
        let is_open = header.author == reader || header.visibility != Visibility::Followers || is_mentioned;
        let follows = |state: &Rc<State>| {
            let score = state.following.get(&header.author);
            score.is_some_and(|score| !w.is_uninvited(reader, header.author, *score, since))
        };
        post.admits(reader) && (is_open || own.iter().any(follows))
    }

    /// Whether all the time one of two has blocked the other, or hidden from it.
    fn is_barred(&self, w: &World, reader: AccountId, own: &[Rc<State>], author: AccountId) -> bool {
        let theirs = self.states(w, author, reader);
        own.iter().all(|s| s.blocks.contains_key(&author))
            || theirs.iter().all(|s| s.blocks.contains_key(&reader) || s.hides.contains_key(&reader))
    }

    /// Why what a post passes on keeps it from being shown; of a plain repost also what its original quotes.
    fn original_leaks(
        &self,
        w: &World,
        reader: AccountId,
        own: &[Rc<State>],
        post: &Post,
    ) -> Option<&'static str> {
        let original = post.header().original?;
        let moment = self.of(original.author, reader);
        let is_sure = !w.has_failed_over(original.author, moment.command);
        let is_gone = is_sure && moment.posts[&original.author].deleted.contains(&original.id.get());
        // What is added to a post that is gone stands for itself.
        if is_gone && post.is_plain_repost() {
            return Some("what it reposts was deleted");
        }
        if let Some(stored) = truth::post(w, original.id.get(), original.author) {
            if !self.is_for(w, reader, own, (original.id.get(), &stored)) {
                return Some("what it passes on is not for that reader");
            }
            if post.is_plain_repost()
                && let Some(why) = self.original_leaks(w, reader, own, &stored)
            {
                return Some(why);
            }
            return (original.author != reader && self.is_barred(w, reader, own, original.author))
                .then_some("the reader and the author of what it passes on don't want each other");
        }
        None
    }

    /// What every page of these ids must show.
    fn needed(
        &self,
        w: &World,
        now: &AllPosts,
        reader: AccountId,
        ids: &RangeInclusive<u64>,
    ) -> Vec<(u64, AccountId)> {
        let own = self.states(w, reader, reader);
        let mut needed = Vec::new();
        for author in w.accounts.iter().copied() {
            if author != reader {
                let since = own[0].following.get(&author);
                if since.is_none() || own.iter().any(|s| s.following.get(&author) != since) {
                    continue;
                }
            }
            let is_muted = own.iter().any(|s| s.mutes_at(author, self.own.ms));
            let has_no_reposts = own.iter().any(|s| s.hidden_reposts.contains(&author));
            if is_muted || !self.is_welcome(w, reader, &own, author) {
                continue;
            }
            let (before, now) = (&self.of(author, reader).posts[&author], &now[&author]);
            let is_settled = |id: &&u64| author == reader || !before.unsettled.contains(id);
            for id in before.live.range(ids.clone()).filter(is_settled) {
                let Some(post) = truth::post(w, *id, author).filter(|_| now.live.contains(id)) else {
                    continue;
                };
                let is_for_reader = author == reader
                    || post.admits(reader) && !self.may_wait(w, reader, &own, (author, &post));
                let is_left_out = has_no_reposts && author != reader && post.is_plain_repost();
                if is_for_reader && !is_left_out && self.references_show(w, reader, &own, &post) {
                    needed.push((*id, author));
                }
            }
        }
        needed
    }

    /// Whether a post is for followers only, and its author, which was locked, still to be asked about this one.
    fn may_wait(
        &self,
        w: &World,
        reader: AccountId,
        own: &[Rc<State>],
        (by, post): (AccountId, &Post),
    ) -> bool {
        post.header().visibility == Visibility::Followers
            && self.own.unasked.contains(&(reader, by))
            && own[0].following.get(&by).is_some_and(|since| w.was_locked_during(reader, by, *since))
    }

    /// Whether what a post passes on was for that reader at any time. It need not follow who wrote that: a repost of
    /// its own may be of a quote of what is for followers, whom it was one of once (harsh seed 2097: that was missed,
    /// and rightly doesn't show).
    fn is_open_to(
        &self,
        w: &World,
        reader: AccountId,
        own: &[Rc<State>],
        (id, post): (PostId, &Post),
    ) -> bool {
        let author = post.header().author;
        let is_for_all = post.header().visibility != Visibility::Followers
            || own.iter().all(|state| state.following.contains_key(&author))
            || post.mentions(reader) && !w.was_edited(id, self.of(author, reader).command);
        is_for_all && post.admits(reader) && !self.may_wait(w, reader, own, (author, post))
    }

    /// Whether nothing was in the way between the reader and that account at any time: failovers, blocks.
    fn is_welcome(&self, w: &World, reader: AccountId, own: &[Rc<State>], author: AccountId) -> bool {
        let moment = self.of(author, reader);
        if w.has_failed_over(author, moment.command) || truth::is_deleted(w, author) {
            return false;
        }
        let theirs = self.states(w, author, reader);
        author == reader
            || !own.iter().any(|s| s.blocks.contains_key(&author))
                && !theirs.iter().any(|s| s.blocks.contains_key(&reader) || s.hides.contains_key(&reader))
    }

    /// Whether what a post answers or reposts keeps it from nobody at any time.
    fn references_show(&self, w: &World, reader: AccountId, own: &[Rc<State>], post: &Post) -> bool {
        let header = post.header();
        let follows = |account| own.iter().all(|s| s.following.contains_key(&account));
        let answers = header.reply_to.filter(|_| header.author != reader).is_none_or(|parent| {
            let is_unwanted = |s: &Rc<State>| {
                s.mutes_at(parent.author, self.own.ms) || s.blocks.contains_key(&parent.author)
            };
            let is_known = [reader, header.author].contains(&parent.author) || follows(parent.author);
            is_known && !own.iter().any(is_unwanted)
        });
        answers
            && self.names_nobody_unwanted(w, reader, own, post)
            && self.original_shows(w, reader, own, post)
    }

    fn original_shows(&self, w: &World, reader: AccountId, own: &[Rc<State>], post: &Post) -> bool {
        let Some(PostRef { id, author }) = post.header().original else { return true };
        // What one reposts oneself shows, muted or not.
        let is_muted = |s: &Rc<State>| s.mutes_at(author, self.own.ms);
        let is_free = post.header().author == reader || !own.iter().any(is_muted);
        let moment = self.of(author, reader);
        let is_there = moment.posts[&author].all().any(|other| other == id.get());
        let stored = truth::post(w, id.get(), author);
        if !is_there && stored.is_none() {
            // What is added to a post that is gone stands for itself.
            return !post.is_plain_repost() && !w.has_failed_over(author, moment.command);
        }
        let shows = |original: Post| {
            let is_for_reader = author == reader || self.is_open_to(w, reader, own, (id, &original));
            is_for_reader && (!post.is_plain_repost() || self.original_shows(w, reader, own, &original))
        };
        is_free && is_there && stored.is_some_and(shows) && self.is_welcome(w, reader, own, author)
    }
}

/// An edit that was acknowledged.
#[derive(Debug)]
pub(super) struct Edited {
    pub(super) command: u64,
    pub(super) post: PostRef,
    /// What the post said before and says still: edits change something else.
    pub(super) text: String,
    pub(super) revision: u32,
}

/// Whether a repost gives way to another one of the same post above it.
pub(super) fn is_collapsed(w: &World, entry: (u64, AccountId), shown: &[(u64, AccountId)]) -> bool {
    let original = |(id, author): (u64, AccountId)| passes_on(&truth::post(w, id, author)?);
    let Some(of) = original(entry) else { return false };
    shown.iter().any(|other| other.0 > entry.0 && original(*other) == Some(of))
}

fn passes_on(post: &Post) -> Option<PostId> {
    post.passes_on().map(|original| original.id)
}

/// Whether it gives way to one above it that was deleted since the page was made (harsh seed 17438). What a bare page
/// showed there nobody can say any more.
fn is_below_a_gone(w: &World, (id, author): (u64, AccountId), page: &Page) -> bool {
    let Some(of) = truth::post(w, id, author).as_ref().and_then(passes_on) else { return false };
    let gone = page.posts.iter().filter(|above| above.id.get() > id);
    let mut gone = gone.filter(|above| truth::post(w, above.id.get(), above.author).is_none());
    gone.any(|above| above.post.as_ref().is_none_or(|post| passes_on(post) == Some(of)))
}

fn all_posts(w: &World) -> AllPosts {
    w.accounts.iter().map(|account| (*account, truth::posts(w, *account))).collect()
}

/// All that a reader's timeline holds, newest first, when nothing is under way.
pub(super) fn whole_timeline(reader: AccountId) -> Vec<(u64, AccountId)> {
    world(|w| {
        let before = Before::at_rest(w);
        let mut all = before.needed(w, &before.own.posts, reader, &(0..=u64::MAX));
        all.sort_unstable();
        all.reverse();
        all
    })
}
