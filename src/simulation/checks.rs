//! What must be true of every page, and of every walk once nothing is under way.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

use super::truth::{self, Posts, State};
use super::world::{World, world};
use crate::ids::AccountId;
use crate::timeline::Page;

/// What was true when a read began.
pub(super) struct Before {
    command: u64,
    deleted: BTreeSet<AccountId>,
    posts: BTreeMap<AccountId, Posts>,
}

impl Before {
    pub(super) fn now() -> Self {
        world(|w| Self { command: w.commands, deleted: deleted(w), posts: all_posts(w) })
    }

    /// All that an account has followed, muted, blocked since.
    fn states(&self, w: &World, account: AccountId) -> Vec<Rc<State>> {
        let past = w.past.get(&account).map_or(&[][..], Vec::as_slice);
        let first = past.partition_point(|(command, _)| *command <= self.command).saturating_sub(1);
        past[first..].iter().map(|(_, state)| state.clone()).collect()
    }

    fn has_failed_over(&self, w: &World, account: AccountId) -> bool {
        let bucket = usize::from(w.keys.bucket_of(account).index());
        w.failovers.iter().any(|(number, command)| *number == bucket && *command >= self.command)
    }

    /// Checks a page that was read of the ids below `from`, since then.
    pub(super) fn check(&self, reader: AccountId, from: u64, limit: usize, page: &Page) {
        world(|w| {
            let reached = page.next.map_or(0, |cursor| cursor.id());
            let shown: Vec<(u64, AccountId)> = page.posts.iter().map(|p| (p.id.get(), p.author)).collect();
            if !shown.is_sorted_by(|a, b| a.0 > b.0)
                || shown.iter().any(|(id, _)| *id >= from || *id < reached)
            {
                w.violated(format!(
                    "page of {reader} below {from} is out of order: {shown:?}, next {reached}"
                ));
            }
            if shown.is_empty() && reached >= from && page.next.is_some() {
                w.violated(format!(
                    "page of {reader} below {from} has not moved: next {reached}, limit {limit}"
                ));
            }
            let now = all_posts(w);
            for (id, author) in &shown {
                if let Some(why) = self.is_hidden(w, &now, reader, *id, *author) {
                    w.violated(format!("page of {reader} shows {id} of {author}: {why}"));
                }
            }
            let shown: BTreeSet<(u64, AccountId)> = shown.into_iter().collect();
            self.compare(w, &now, reader, reached..from, &shown);
        });
    }

    /// Checks a page that was read upwards, of the ids above `least`.
    pub(super) fn check_upwards(&self, reader: AccountId, least: u64, page: &Page) {
        let Some(newest) = page.newer else { return };
        world(|w| {
            let shown: BTreeSet<(u64, AccountId)> =
                page.posts.iter().map(|p| (p.id.get(), p.author)).collect();
            self.compare(w, &all_posts(w), reader, least + 1..newest.get() + 1, &shown);
        });
    }

    fn compare(
        &self,
        w: &mut World,
        now: &BTreeMap<AccountId, Posts>,
        reader: AccountId,
        ids: Range<u64>,
        shown: &BTreeSet<(u64, AccountId)>,
    ) {
        let needed = self.needed(w, now, reader);
        let missing: Vec<_> =
            needed.into_iter().filter(|e| ids.contains(&e.0) && !shown.contains(e)).collect();
        if !missing.is_empty() {
            w.violated(format!("HOLE: page of {reader}, ids {ids:?}, lacks {missing:?}; it shows {shown:?}"));
        }
    }

    /// Why an entry must not be on a page.
    fn is_hidden(
        &self,
        w: &World,
        now: &BTreeMap<AccountId, Posts>,
        reader: AccountId,
        id: u64,
        author: AccountId,
    ) -> Option<&'static str> {
        let (before, now) = (&self.posts[&author], &now[&author]);
        let is_sure = !self.has_failed_over(w, author);
        if truth::is_deleted(w, author) {
            // Its posts are going, one by one.
            return (is_sure && self.deleted.contains(&author)).then_some("its author is deleted");
        }
        if is_sure && before.deleted.contains(&id) {
            return Some("it was deleted");
        }
        let is_known = now.live.contains(&id) || before.live.contains(&id) || now.deleted.contains(&id);
        if is_sure && !is_known {
            return Some("there is no such post");
        }
        if now.live.contains(&id) && !truth::admits(w, id, author, reader) {
            return Some("it is not for that reader");
        }
        if author == reader {
            return None;
        }
        let own = self.states(w, reader);
        if own.iter().all(|state| !state.following.contains_key(&author)) {
            return Some("the reader doesn't follow its author");
        }
        if own.iter().all(|s| s.mutes.contains_key(&author) || s.blocks.contains_key(&author)) {
            return Some("the reader mutes or blocks its author");
        }
        let theirs = self.states(w, author);
        theirs
            .iter()
            .all(|s| s.blocks.contains_key(&reader) || s.hides.contains_key(&reader))
            .then_some("its author blocks the reader, or hides from it")
    }

    /// What every page must show of what lies within it.
    fn needed(
        &self,
        w: &World,
        now: &BTreeMap<AccountId, Posts>,
        reader: AccountId,
    ) -> Vec<(u64, AccountId)> {
        let own = self.states(w, reader);
        let mut needed = Vec::new();
        for author in w.accounts.iter().copied() {
            if self.has_failed_over(w, author)
                || self.deleted.contains(&author)
                || truth::is_deleted(w, author)
            {
                continue;
            }
            if author != reader {
                let theirs = self.states(w, author);
                let since = own[0].following.get(&author);
                let is_followed = since.is_some() && own.iter().all(|s| s.following.get(&author) == since);
                let is_restricted = own
                    .iter()
                    .any(|s| s.mutes.contains_key(&author) || s.blocks.contains_key(&author))
                    || theirs.iter().any(|s| s.blocks.contains_key(&reader) || s.hides.contains_key(&reader));
                if !is_followed || is_restricted {
                    continue;
                }
            }
            let (before, now) = (&self.posts[&author], &now[&author]);
            let is_settled = |id: &&u64| author == reader || !before.unsettled.contains(id);
            let there = before.live.intersection(&now.live).filter(is_settled).copied();
            needed.extend(there.filter(|id| truth::admits(w, *id, author, reader)).map(|id| (id, author)));
        }
        needed
    }
}

fn deleted(w: &World) -> BTreeSet<AccountId> {
    w.accounts.iter().copied().filter(|account| truth::is_deleted(w, *account)).collect()
}

fn all_posts(w: &World) -> BTreeMap<AccountId, Posts> {
    w.accounts.iter().map(|account| (*account, truth::posts(w, *account))).collect()
}

/// All that a reader's timeline holds, newest first, when nothing is under way.
pub(super) fn whole_timeline(reader: AccountId) -> Vec<(u64, AccountId)> {
    let before = Before::now();
    world(|w| {
        let mut all = before.needed(w, &before.posts, reader);
        all.sort_unstable();
        all.reverse();
        all
    })
}
